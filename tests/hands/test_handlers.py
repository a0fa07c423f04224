"""Handlers: where they run, what they may return, and what becomes of their exceptions."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from headway import App, job
from headway.errors import JobFailed
from tests.hands.kit import WAIT_S


def test_async_handlers_run_side_by_side_in_one_thread(app: App) -> None:
    met: list[asyncio.Event] = []
    threads = set()

    @app.job()
    async def meet() -> None:
        threads.add(threading.get_ident())
        met.append(asyncio.Event())
        if len(met) == 2:
            for each in met:
                each.set()
        await met[0].wait()

    with app.running():
        handles = [meet.enqueue(), meet.enqueue()]
        assert [handle.wait(WAIT_S) for handle in handles] == ["completed", "completed"]
    assert len(threads) == 1


def test_plain_handlers_run_side_by_side_in_threads_of_their_own(app: App) -> None:
    together = threading.Barrier(3)
    threads = set()

    @app.job()
    def meet() -> None:
        threads.add(threading.get_ident())
        together.wait(WAIT_S)

    with app.running():
        handles = [meet.enqueue() for _ in range(3)]
        assert {handle.wait(WAIT_S) for handle in handles} == {"completed"}
    assert len(threads) == 3


def test_there_are_never_more_plain_handlers_at_work_than_threads(url: str) -> None:
    app = App(url, threads=2)
    at_work, most = 0, 0
    lock = threading.Lock()

    @app.job()
    def count() -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        threading.Event().wait(0.01)
        with lock:
            at_work -= 1

    with app.running():
        handles = app.enqueue_many(count.call() for _ in range(20))
        assert {handle.wait(WAIT_S) for handle in handles} == {"completed"}
    app.close()
    assert most == 2


@pytest.mark.parametrize("is_async", [True, False])
def test_what_a_handler_returns_is_the_result(app: App, is_async: bool) -> None:
    async def coroutine(x: int) -> dict[str, int]:
        return {"doubled": 2 * x}

    def function(x: int) -> dict[str, int]:
        return {"doubled": 2 * x}

    double: Any = app.job(type="double")(coroutine if is_async else function)
    with app.running():
        assert double.enqueue(x=21).result(WAIT_S) == {"doubled": 42}


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("error", [KeyError("gone"), SystemExit(3), KeyboardInterrupt()])
def test_an_exception_fails_the_attempt_and_nothing_else(
    app: App, is_async: bool, error: BaseException
) -> None:
    async def coroutine() -> None:
        raise error

    def function() -> None:
        raise error

    stumble: Any = app.job(type="stumble", retries=0)(coroutine if is_async else function)

    @app.job()
    def go_on() -> str:
        return "fine"

    with app.running():
        failed = stumble.enqueue()
        assert failed.wait(WAIT_S) == "failed"
        assert type(error).__name__ in failed.row().error
        level, line = failed.logs()[-1][1:]
        assert level == "error"
        assert "Traceback" in line
        assert go_on.enqueue().result(WAIT_S) == "fine"


def test_waiting_for_the_result_of_a_failed_job_says_why(app: App) -> None:
    @app.job(retries=0)
    def stumble() -> None:
        raise KeyError("gone")

    with app.running(), pytest.raises(JobFailed, match="gone"):
        stumble.enqueue().result(WAIT_S)


def test_a_failed_attempt_is_followed_by_another(app: App) -> None:
    attempts = []

    @app.job(retries=2, retry_delay=0)
    def third_time_lucky() -> int:
        attempts.append(job.attempt)
        if job.attempt < 3:
            raise ConnectionError
        return job.attempt

    with app.running():
        assert third_time_lucky.enqueue().result(WAIT_S) == 3
    assert attempts == [1, 2, 3]


def test_a_result_that_is_no_json_fails_for_good(app: App) -> None:
    @app.job()
    def give() -> object:
        return object()

    with app.running():
        handle = give.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert "no JSON" in (handle.row().error or "")


def test_a_result_that_is_too_large_fails_for_good(url: str) -> None:
    app = App(url, payload_limit=1_000)

    @app.job()
    def give() -> str:
        return "x" * 2_000

    with app.running():
        handle = give.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert "1000 are allowed" in (handle.row().error or "")
    app.close()


def test_a_payload_that_fits_no_more_fails_with_a_clear_error(app: App, url: str) -> None:
    before = App(url)

    @before.job(type="greet")
    def greet_by_name(name: str) -> None: ...

    handle = greet_by_name.enqueue("Ann")
    before.close()

    @app.job(type="greet", retries=0)
    def greet_by_number(number: int) -> None: ...

    with app.running():
        assert app.handle(handle.id).wait(WAIT_S) == "failed"
    assert "does not fit the handler" in (app.handle(handle.id).row().error or "")


# The job as its handler sees it


def test_outside_of_a_handler_there_is_no_job() -> None:
    with pytest.raises(RuntimeError, match=r"job\.progress was asked for, but no job runs here"):
        job.progress(1)
    assert repr(job) == "<no job runs here>"


def test_a_handler_knows_its_job(app: App) -> None:
    @app.job(upstream="api.example.com", tenant="ann", key="k")
    def look() -> list[Any]:
        return [job.id, job.type, job.attempt, job.upstream, job.tenant, job.key, job.fence]

    with app.running():
        handle = look.enqueue()
        found = handle.result(WAIT_S)
        fence = handle.row().fence
    assert found == [handle.id, "look", 1, "api.example.com", "ann", "k", fence]


def test_tasks_of_a_handler_belong_to_its_job(app: App) -> None:
    @app.job()
    async def ask_a_task() -> list[int]:
        async def inner() -> int:
            return job.id

        return [job.id, await asyncio.create_task(inner()), await asyncio.to_thread(lambda: job.id)]

    with app.running():
        handle = ask_a_task.enqueue()
        assert handle.result(WAIT_S) == [handle.id] * 3


def test_a_thread_forgets_the_job_that_is_over(url: str) -> None:
    app = App(url, threads=1)

    @app.job()
    def who() -> int:
        return job.id

    with app.running():
        handles = [who.enqueue() for _ in range(5)]
        assert [handle.result(WAIT_S) for handle in handles] == [each.id for each in handles]
    app.close()


# Reports


def test_progress_logs_and_checkpoints_are_stored(app: App) -> None:
    told, go_on = threading.Event(), threading.Event()

    @app.job()
    def report() -> None:
        job.progress(1, 2, "half way")
        job.log("a line", level="warning")
        job.checkpoint({"page": 7})
        told.set()
        go_on.wait(WAIT_S)
        job.progress(2, 2, "done")

    with app.running():
        handle = report.enqueue()
        assert told.wait(WAIT_S)
        app.engine.ask(lambda _: None).result(WAIT_S)  # type: ignore[union-attr]
        progress = handle.progress()
        assert progress is not None
        assert progress[:3] == (1.0, 2.0, "half way")
        assert app.store.checkpoint(handle.id) == '{"page":7}'
        go_on.set()
        handle.wait(WAIT_S)
        assert [line[1:] for line in handle.logs()] == [("warning", "a line")]
        final = handle.progress()
        assert final is not None
        assert final[:3] == (2.0, 2.0, "done")


def test_progress_may_be_told_ten_thousand_times(app: App) -> None:
    @app.job()
    def count() -> None:
        for number in range(10_001):
            job.progress(number, 10_000)

    with app.running():
        handle = count.enqueue()
        assert handle.wait(WAIT_S) == "completed"
        progress = handle.progress()
    assert progress is not None
    assert progress.done == 10_000


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_progress_that_is_no_number_is_the_fault_of_its_handler_alone(
    app: App, number: float
) -> None:
    @app.job(retries=0)
    def report() -> None:
        job.progress(number)

    with app.running():
        handle = report.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert "plain numbers" in (handle.row().error or "")
        assert app.engine is not None
        assert app.engine.error is None


@pytest.mark.parametrize("text", ["file \udcff.txt", "nul \x00 inside", "x" * 100_000, "文字"])
def test_a_log_takes_any_text(app: App, text: str) -> None:
    @app.job(retries=0)
    def report() -> None:
        job.log(text)
        job.progress(1, note=text)
        raise ValueError(text)

    with app.running():
        handle = report.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert len(handle.logs()) == 2


def test_a_log_is_bounded(app: App) -> None:
    @app.job()
    def chatter() -> None:
        for number in range(5_000):
            job.log(f"line {number}")

    with app.running():
        handle = chatter.enqueue()
        assert handle.wait(WAIT_S) == "completed"
        lines = handle.logs()
    assert len(lines) == 1_000
    assert "is not kept" in lines[-1][2]


def test_a_checkpoint_that_is_too_large_is_refused(url: str) -> None:
    app = App(url, payload_limit=1_000)

    @app.job(retries=0)
    def keep() -> None:
        job.checkpoint("x" * 2_000)

    with app.running():
        handle = keep.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        assert "at most 1000" in (handle.row().error or "")
    app.close()


def test_the_next_attempt_finds_what_the_last_one_saved(app: App) -> None:
    @app.job(retries=1, retry_delay=0)
    async def resume() -> Any:
        if job.saved is None:
            job.checkpoint(["here"])
            raise ConnectionError
        return job.saved

    with app.running():
        assert resume.enqueue().result(WAIT_S) == ["here"]
