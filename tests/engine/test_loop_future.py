"""Futures of a loop that the brain's thread answers: once, in order, and to whoever still waits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headway.engine.loop_future import LoopFuture


@pytest.fixture(autouse=True)
def on_every_store() -> None:
    """There is no store in these."""


def elsewhere(call: Callable[..., Any], *args: Any) -> None:
    """In another thread, and it has been when this returns."""
    thread = threading.Thread(target=call, args=args)
    thread.start()
    thread.join()


def answer(future: LoopFuture, result: Any) -> bool:
    if not future.set_running_or_notify_cancel():
        return False
    future.set_result(result)
    return True


async def turns(count: int = 3) -> None:
    """Let the loop do what is there to be done."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_an_answer_from_another_thread_wakes_whoever_awaits_it() -> None:
    async def play() -> None:
        future = LoopFuture()
        waiting = asyncio.ensure_future(wait_for(future))
        await turns()
        elsewhere(answer, future, "granted")
        assert await waiting == "granted"

    asyncio.run(play())


async def wait_for(future: LoopFuture) -> Any:
    return await future


def test_an_error_from_another_thread_is_raised_where_it_is_awaited() -> None:
    async def play() -> None:
        future = LoopFuture()
        assert future.set_running_or_notify_cancel()
        elsewhere(future.set_exception, LookupError("no"))
        with pytest.raises(LookupError, match="no"):
            await future

    asyncio.run(play())


def test_an_answer_may_come_before_anybody_awaits_it() -> None:
    async def play() -> None:
        future = LoopFuture()
        elsewhere(answer, future, 1)
        await turns()
        assert await future == 1

    asyncio.run(play())


def test_whoever_cancels_first_is_not_answered() -> None:
    async def play() -> None:
        future = LoopFuture()
        assert not future.cancelled()
        assert future.cancel()
        assert future.cancelled()
        assert future.cancel(), "still"
        assert not future.set_running_or_notify_cancel()

    asyncio.run(play())


def test_whoever_is_answered_first_cannot_cancel() -> None:
    async def play() -> None:
        future = LoopFuture()
        assert future.set_running_or_notify_cancel()
        assert not future.cancel()
        assert not future.cancelled()
        assert not future.set_running_or_notify_cancel(), "one answer is enough"

    asyncio.run(play())


def test_of_an_answer_and_a_cancel_at_once_exactly_one_wins() -> None:
    async def play() -> None:
        with ThreadPoolExecutor(4) as threads:
            for _ in range(200):
                future, start = LoopFuture(), threading.Barrier(4)

                def race(call: Callable[[], bool], start: threading.Barrier = start) -> bool:
                    start.wait()
                    return call()

                calls = [future.cancel, *[future.set_running_or_notify_cancel] * 3]
                won = list(threads.map(race, calls))
                assert won.count(True) == 1
                assert future.cancelled() == won[0]

    asyncio.run(play())


def test_an_answer_that_comes_after_its_task_was_cancelled_is_not_lost() -> None:
    async def play() -> None:
        missed: list[Any] = []
        future = LoopFuture(missed=missed.append)
        task = asyncio.ensure_future(wait_for(future))
        await turns()
        assert future.set_running_or_notify_cancel(), "the answer is on its way,"
        task.cancel()  # and the task goes
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not future.cancel()
        elsewhere(future.set_result, "granted")
        await turns()
        assert missed == ["granted"]

    asyncio.run(play())


def test_an_error_that_nobody_awaits_is_nothing_to_miss() -> None:
    async def play() -> None:
        missed: list[Any] = []
        future = LoopFuture(missed=missed.append)
        future.answer_here("late")
        elsewhere(future.set_exception, LookupError("no"))
        await turns()
        assert (await future, missed) == ("late", [])

    asyncio.run(play())


def test_whoever_does_not_want_to_wait_longer_goes_on_with_its_own_answer() -> None:
    async def play() -> None:
        missed: list[Any] = []
        future = LoopFuture(missed=missed.append)
        future.answer_here("late")
        future.answer_here("later")
        elsewhere(answer, future, "granted")
        assert await future == "late"
        await turns()
        assert missed == ["granted"]

    asyncio.run(play())


def test_answers_to_many_arrive_in_order_whichever_thread_they_come_from() -> None:
    async def play() -> None:
        heard: list[int] = []
        futures = [LoopFuture() for _ in range(50)]

        async def hear(number: int) -> None:
            heard.append(await futures[number])

        tasks = [asyncio.ensure_future(hear(number)) for number in range(50)]
        await turns()

        def answer_all() -> None:
            for number, future in enumerate(futures):
                answer(future, number)

        elsewhere(answer_all)
        await asyncio.gather(*tasks)
        assert heard == list(range(50))

    asyncio.run(play())


def test_no_answer_is_left_when_many_threads_answer_all_the_time() -> None:
    async def play() -> None:
        for _ in range(50):
            futures = [LoopFuture() for _ in range(40)]
            threads = [
                threading.Thread(target=lambda part: [answer(each, 1) for each in part],
                                 args=(futures[n::4],))
                for n in range(4)
            ]  # fmt: skip
            for thread in threads:
                thread.start()
            async with asyncio.timeout(30):
                assert sum([await each for each in futures]) == 40
            for thread in threads:
                thread.join()

    asyncio.run(play())


def test_an_answer_for_a_loop_that_is_closed_is_nobodys() -> None:
    async def make() -> LoopFuture:
        return LoopFuture()

    future = asyncio.run(make())
    assert answer(future, 1)
    assert answer(asyncio.run(make()), 1)


def test_every_loop_hears_its_own_answers() -> None:
    async def play() -> Any:
        future = LoopFuture()
        elsewhere(answer, future, threading.get_ident())
        return await future

    def run() -> bool:
        return bool(asyncio.run(play()) == threading.get_ident())

    with ThreadPoolExecutor(4) as threads:
        assert all(each.result() for each in [threads.submit(run) for _ in range(40)])
