"""A worker whose server is away, slow, started anew, or has given a job to somebody else."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway import App, job
from headway.lease_clock import lease_clock
from headway.remote import completing, taking
from headway.remote.worker import Worker
from tests.hands.kit import Endless
from tests.remote.kit import WAIT_S, FakeServer, eventually, problem

Start = Callable[..., Worker]


@contextmanager
def at_work(server: FakeServer, app: App) -> Iterator[Worker]:
    worker = server.worker(app)
    worker.start()
    try:
        yield worker
    finally:
        server.let_go()
        worker.stop(0.0)


@pytest.fixture
def quick(app: App) -> App:
    @app.job()
    async def quick(number: int = 0) -> int:
        return number

    return app


# ---------------------------------------------------------------------- lost answers


@pytest.mark.parametrize(
    "trouble",
    ["refused", "lost", problem(503, "unavailable"), problem(429, "busy"), problem(500, "bug")],
)
@pytest.mark.usefixtures("quick")
def test_an_end_is_reported_until_it_has_arrived(
    trouble: object, server: FakeServer, working: Start
) -> None:
    server.troubles["complete"].extend([trouble, trouble])
    fence = server.put("quick", {"number": 7})
    working()
    assert server.has_ended(fence)["body"] == 7
    said = [body["jobs"] for name, body in server.calls if name.startswith("complete")]
    eventually(lambda: len(said) >= 1)
    assert all(each == [server.ended[fence]] for each in said)  # the same each time


@pytest.mark.usefixtures("quick")
def test_what_was_heard_before_is_not_reported_for_ever(server: FakeServer, working: Start) -> None:
    """The server has it, its answer was lost, and a heartbeat says that nobody waits for it."""
    server.troubles["complete"].append("lost")
    server.put("quick")
    worker = working()
    eventually(lambda: len(server.said("complete")) == 2)
    eventually(lambda: not worker._desk.held)  # type: ignore[union-attr]


@pytest.mark.usefixtures("quick")
def test_a_lost_poll_is_asked_again(server: FakeServer, working: Start) -> None:
    server.troubles["take"].extend(["refused", "refused", problem(503, "busy")])
    worker = working()
    fence = server.put("quick", {"number": 1})
    assert server.has_ended(fence)["body"] == 1
    assert len(server.said("hello")) > 1  # it may be another server after an error
    assert worker.trouble == ""


def test_notes_that_were_not_heard_are_said_again(
    app: App, server: FakeServer, working: Start
) -> None:
    free = threading.Event()

    @app.job()
    def talk() -> None:
        job.log("first")
        job.checkpoint([1])
        assert free.wait(WAIT_S)
        job.log("second")
        job.checkpoint([2])
        job.progress(5)

    server.troubles["heartbeat"].append("refused")
    fence = server.put("talk")
    working()
    eventually(lambda: any(name == "heartbeat refused" for name, _ in list(server.calls)))
    free.set()
    server.has_ended(fence)
    said = [each for body in server.said("heartbeat") for each in body["jobs"]]
    lines = [line["line"] for each in said for line in each.get("logs", ())]
    assert lines == ["first", "second"]
    assert [each["checkpoint"] for each in said if "checkpoint" in each][-1] == [2]


def test_notes_that_cannot_be_kept_do_not_cost_the_lease(
    app: App, server: FakeServer, working: Start
) -> None:
    @app.job()
    def talk(text: str) -> str:
        job.log(text)
        return text

    refusal = problem(422, "wrong-input", "a line is too long")
    server.troubles["heartbeat"].extend([refusal, refusal])
    fence = server.put("talk", {"text": "x"})
    working()
    assert server.has_ended(fence)["body"] == "x"
    assert [each for body in server.said("heartbeat") for each in body["jobs"]][-1].keys() == {
        "id", "fence",
    }  # fmt: skip


@pytest.mark.usefixtures("quick")
def test_an_end_that_is_refused_fails_that_job_alone(server: FakeServer, working: Start) -> None:
    server.troubles["complete"].append("hang")
    first = server.put("quick", {"number": 0})
    working()
    eventually(lambda: server.said("complete"))
    others = [server.put("quick", {"number": n}) for n in (1, 2, 3)]
    eventually(lambda: not server.queue)
    refusal = problem(422, "wrong-input", "it makes no sense")
    # Three together, then a half of one, which is told apart; the rest is taken.
    server.troubles["complete"].extend([refusal, refusal])
    eventually(lambda: not server.queue)
    server.let_go()
    assert server.has_ended(first)["outcome"] == {"kind": "ok"}
    outcomes = [server.has_ended(fence)["outcome"] for fence in others]
    failed = [each for each in outcomes if each["kind"] == "failed"]
    assert len(failed) == 1
    assert failed[0]["fatal"]
    assert "it makes no sense" in failed[0]["error"]


# ---------------------------------------------------------------------- leases


@pytest.mark.parametrize("kind", ["task", "thread", "program"])
def test_a_job_is_stopped_when_its_lease_is_over_and_nobody_answers(
    kind: str, app: App, tmp_path: Path
) -> None:
    server = FakeServer(lease_s=0.8)
    endless = Endless(app, kind, tmp_path)
    fence = server.put("endless")
    with at_work(server, app) as worker:
        endless.has_started()
        begun = lease_clock()
        server.away = True
        eventually(lambda: not endless.is_at_work())
        assert lease_clock() - begun < 5.0
        eventually(lambda: not worker._desk.held)  # type: ignore[union-attr]
        server.restart()
        eventually(lambda: server.said("take")[-1]["size"] > 0)
        assert fence not in server.ended
        assert not server.said("complete")


def test_a_slow_server_does_not_keep_a_job_beyond_its_lease(app: App) -> None:
    """An answer that comes late is of no use: the lease counts from when it was asked for."""
    server = FakeServer(lease_s=1.0)
    started, over = threading.Event(), threading.Event()

    @app.job()
    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()

    server.put("wait")
    server.troubles["heartbeat"].extend(["hang"] * 50)
    with at_work(server, app):
        assert started.wait(WAIT_S)
        assert over.wait(WAIT_S)
        assert not server.said("complete")


@pytest.mark.parametrize("how", ["gone", "order"])
def test_what_the_server_has_given_up_is_stopped_and_not_reported(
    how: str, app: App, tmp_path: Path
) -> None:
    server = FakeServer(lease_s=0.6)
    endless = Endless(app, "task", tmp_path)
    fence = server.put("endless")
    with at_work(server, app) as worker:
        endless.has_started()
        if how == "gone":
            server.gone.add(fence)
        else:
            server.order(fence, "lost")
        eventually(lambda: not endless.is_at_work())
        eventually(lambda: not worker._desk.held)  # type: ignore[union-attr]
        assert not server.said("complete")


def test_a_lease_that_the_server_has_ended_early_stops_the_job(
    app: App, server: FakeServer, working: Start
) -> None:
    started, over = threading.Event(), threading.Event()

    @app.job()
    def talk() -> None:
        between = threading.Event()
        try:
            while True:
                job.progress(1)
                started.set()
                between.wait(0.01)
        finally:
            over.set()

    fence = server.put("talk")
    working()
    assert started.wait(WAIT_S)
    server.gone.add(fence)
    assert over.wait(WAIT_S)  # long before the 90 s of its lease
    assert not server.said("complete")


def test_a_result_that_comes_too_late_is_not_taken(
    app: App, caplog: pytest.LogCaptureFixture, server: FakeServer, working: Start
) -> None:
    free = threading.Event()

    @app.job()
    def late() -> str:
        assert free.wait(WAIT_S)
        return "late"

    fence = server.put("late")
    worker = working()
    eventually(lambda: not server.queue)
    server.gone.add(fence)
    with caplog.at_level(logging.WARNING, "headway.worker"):
        free.set()
        eventually(lambda: server.said("complete"))
        eventually(lambda: not worker._desk.held)  # type: ignore[union-attr]
    assert "was not held here any more" in caplog.text
    assert fence not in server.ended


@pytest.mark.usefixtures("quick")
def test_a_job_whose_lease_is_over_when_it_arrives_is_not_begun(
    server: FakeServer, working: Start
) -> None:
    fence = server.put("quick", {"number": 3})
    server.queue[0]["late"] = True
    deal = server._deal

    def deal_late(body: dict[str, object]) -> list[dict[str, object]]:
        return [{**each, "lease_s": 0.0} for each in deal(body)]

    server._deal = deal_late  # type: ignore[method-assign]
    working()
    assert server.has_ended(fence)["outcome"] == {"kind": "returned", "retry_after_s": 0.0}


# ---------------------------------------------------------------------- restarts


@pytest.mark.usefixtures("quick")
def test_a_server_that_was_started_anew_hears_hello_again(
    server: FakeServer, working: Start
) -> None:
    working()
    eventually(lambda: server.taking)
    server.restart()
    fence = server.put("quick")
    server.has_ended(fence)
    eventually(lambda: len(server.said("hello")) == 2)


def test_work_goes_on_while_the_server_is_away(
    app: App, server: FakeServer, working: Start, caplog: pytest.LogCaptureFixture
) -> None:
    free, started = threading.Event(), threading.Event()

    @app.job()
    def work() -> str:
        started.set()
        assert free.wait(WAIT_S)
        return "done"

    fence = server.put("work")
    worker = working()
    assert started.wait(WAIT_S)
    with caplog.at_level(logging.WARNING, "headway.worker"):
        server.away = True
        server.ring()
        free.set()
        eventually(lambda: worker.trouble)
        eventually(lambda: sum(name == "complete refused" for name, _ in list(server.calls)) > 1)
        server.restart()
        assert server.has_ended(fence)["body"] == "done"
        eventually(lambda: not worker.trouble)
    assert caplog.text.count("trying again") == 1  # one line for one absence
    assert "is back" in caplog.text


@pytest.mark.usefixtures("quick")
def test_a_server_that_comes_later_is_waited_for(server: FakeServer, working: Start) -> None:
    server.away = True
    working()
    eventually(lambda: server.calls)
    server.away = False
    fence = server.put("quick", {"number": 5})
    assert server.has_ended(fence)["body"] == 5


# ---------------------------------------------------------------------- nothing waits for others


def test_a_report_that_hangs_keeps_nothing_else_waiting(
    app: App, server: FakeServer, working: Start
) -> None:
    server.lease_s = 0.6

    @app.job()
    async def quick(number: int) -> int:
        return number

    @app.job()
    async def talk() -> None:
        job.log("here")
        await asyncio.Event().wait()

    server.troubles["complete"].append("hang")
    first = server.put("quick", {"number": 1})
    working()
    eventually(lambda: server.said("complete"))
    fence = server.put("talk")  # is still taken, and prolonged
    eventually(lambda: any(each["fence"] == fence for body in server.said("heartbeat")
                           for each in body["jobs"]))  # fmt: skip
    assert first not in server.ended
    server.order(fence, "cancel")
    server.let_go()
    server.has_ended(first)


def test_a_heartbeat_that_hangs_keeps_nothing_else_waiting(
    app: App, server: FakeServer, working: Start
) -> None:
    @app.job()
    async def talk() -> None:
        job.progress(1)
        await asyncio.Event().wait()

    @app.job()
    async def quick() -> str:
        return "quick"

    server.troubles["heartbeat"].append("hang")
    server.put("talk")
    working()
    eventually(lambda: server.said("heartbeat"))
    assert server.has_ended(server.put("quick"))["body"] == "quick"


# ---------------------------------------------------------------------- limits


def test_with_too_many_unreported_ends_nothing_more_is_begun(
    quick: App, server: FakeServer, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(taking, "MAX_WAITING", 5)
    quick.tasks = 4
    server.troubles["complete"].append("hang")
    fences = [server.put("quick") for _ in range(50)]
    worker = working()
    eventually(lambda: len(worker._desk.ended) >= 5)  # type: ignore[union-attr]
    asked = len(server.said("take"))
    assert len(server.queue) >= 50 - 5 - 4
    server.let_go()
    for fence in fences:
        server.has_ended(fence)
    assert len(server.said("take")) > asked


@pytest.mark.usefixtures("quick")
def test_an_end_that_nobody_will_hear_is_dropped_at_last(
    server: FakeServer, working: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completing, "LATE_S", -1e9)
    fence = server.put("quick")
    worker = working()
    eventually(lambda: server.taking == 1 and not worker._desk.held)  # type: ignore[union-attr]
    assert fence not in server.ended


# ---------------------------------------------------------------------- leaving


def test_leaving_lets_running_jobs_end(app: App, server: FakeServer) -> None:
    free, started = threading.Event(), threading.Event()

    @app.job()
    def work() -> str:
        started.set()
        assert free.wait(WAIT_S)
        return "done"

    fence = server.put("work")
    worker = server.worker(app)
    worker.start()
    assert started.wait(WAIT_S)
    stopping = threading.Thread(target=worker.stop, args=(WAIT_S,))
    stopping.start()
    eventually(lambda: worker._taking.draining)  # type: ignore[union-attr]
    late = server.put("work")
    free.set()
    stopping.join(WAIT_S)
    assert server.ended[fence]["body"] == "done"
    assert late not in server.ended or server.ended[late]["outcome"]["kind"] == "returned"


def test_leaving_gives_back_what_does_not_end(app: App, server: FakeServer) -> None:
    started = threading.Event()

    @app.job()
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    fence = server.put("work")
    worker = server.worker(app)
    worker.start()
    assert started.wait(WAIT_S)
    worker.stop(0.0)
    assert server.ended[fence]["outcome"]["kind"] == "returned"


def test_an_idle_worker_leaves_at_once(quick: App, server: FakeServer) -> None:
    worker = server.worker(quick)
    worker.start()
    eventually(lambda: server.taking)
    begun = time.monotonic()
    worker.stop(60.0)
    assert time.monotonic() - begun < 5.0
    assert worker.done.is_set()
    assert worker.error is None


def test_what_is_given_back_is_waited_for_however_often_one_asks(
    app: App, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    @app.job()
    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    fence = server.put("endless")
    worker = server.worker(app)
    waits: list[bool] = []
    give_back = worker._give_back

    def asked_meanwhile() -> None:
        worker.hurry()
        waits.append(not worker._may_go_on.is_set())
        give_back()

    monkeypatch.setattr(worker, "_give_back", asked_meanwhile)
    worker.start()
    assert begun.wait(WAIT_S)
    worker.hurry()
    worker.stop(60.0)
    assert waits == [True]
    assert server.has_ended(fence)["outcome"]["kind"] == "returned"


def test_in_a_hurry_nothing_is_waited_for(app: App, server: FakeServer) -> None:
    started, free = threading.Event(), threading.Event()

    @app.job()
    def stubborn() -> None:
        started.set()
        free.wait(WAIT_S)

    fence = server.put("stubborn")
    worker = server.worker(app)
    worker.start()
    assert started.wait(WAIT_S)
    stopping = threading.Thread(target=worker.stop, args=(1000.0,))
    stopping.start()
    eventually(lambda: worker._taking.draining)  # type: ignore[union-attr]
    worker.hurry()
    stopping.join(WAIT_S)
    assert not stopping.is_alive()
    assert server.ended[fence]["outcome"]["kind"] == "returned"
    free.set()


def test_leaving_while_the_server_is_away_has_an_end(
    quick: App, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.remote.worker.LAST_WORDS_S", 0.2)
    server.troubles["complete"].append("hang")
    server.put("quick")
    worker = server.worker(quick)
    worker.start()
    eventually(lambda: server.said("complete"))
    server.away = True
    monkeypatch.setattr("headway.remote.worker.GRACE_S", 0.5)
    worker.stop(0.1)
    server.let_go()
    assert worker.done.wait(WAIT_S)
