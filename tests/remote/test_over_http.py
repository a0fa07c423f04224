"""The whole Python API over HTTP, with a real server on every kind of store."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import App, Cron, Pushback, errors, job
from headway.core import IllegalTransition
from headway.core.change import UnknownTicket
from headway.store.records import Query
from tests.hands.kit import eventually
from tests.remote.processes import Server
from tests.stores import PLACES, SECOND_STORE_IN_THE_SOAK


@pytest.fixture(scope="module", params=SECOND_STORE_IN_THE_SOAK)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    directory: Path = tmp_path_factory.mktemp("server")
    server = Server(PLACES[request.param](directory), directory)
    server.start()
    yield server
    server.end()


@pytest.fixture
def app(server: Server) -> Iterator[App]:
    app = App(server.url)
    yield app
    app.close()


def test_a_job_from_its_call_to_its_result(app: App) -> None:
    @app.job(type="sum_up", keep_result="1h")
    def sum_up(numbers: list[int], extra: int = 0) -> int:
        job.progress(1, 2, "half")
        job.checkpoint({"at": 1})
        job.log("adding", level="debug")
        return sum(numbers) + extra

    handle = sum_up.options(labels={"team": "a"}, tenant="t", key="k").enqueue([1, 2], extra=3)
    assert handle.state == "queued"
    assert handle.explain().detail == "no worker knows this type"
    with app.running():
        assert handle.result(20) == 6
        assert asyncio.run(handle.aresult(20)) == 6
    row = handle.row()
    assert (row.type, row.state, row.tenant, row.key) == ("sum_up", "completed", "t", "k")
    assert row.finished_at is not None
    assert row.spec == '{"labels":{"team":"a"}}'
    progress = handle.progress()
    assert progress is not None
    assert (progress.done, progress.total, progress.note) == (1.0, 2.0, "half")
    assert [(level, line) for _, level, line in handle.logs()] == [("debug", "adding")]
    assert [event.event for event in handle.events()] == ["submit", "grant", "ok"]
    assert app.store.payload(handle.id) == '{"numbers":[1,2],"extra":3}'
    with pytest.raises(UnknownTicket):
        handle.explain()


def test_a_job_that_fails_says_why(app: App) -> None:
    @app.job(type="break_down", retries=0)
    async def break_down() -> None:
        raise ValueError("no luck")

    with app.running():
        with pytest.raises(errors.JobFailed, match="no luck") as caught:
            break_down.enqueue().result(20)
        assert caught.value.state == "failed"


def test_a_pushback_closes_the_upstream_for_everybody(app: App) -> None:
    @app.job(type="push", upstream="busy.example")
    async def push() -> None:
        raise Pushback("later", retry_after="1h")

    with app.running():
        first = push.enqueue()
        eventually(lambda: first.row().tries)  # it was pushed back
        second = push.enqueue()
        assert "upstream:busy.example" in second.explain().gate
    app.open("upstream:busy.example")
    assert first.cancel() == second.cancel() == "cancelled"


def test_many_at_once_are_stored_all_or_none(app: App) -> None:
    @app.job(type="one_of_many")
    async def one_of_many(n: int) -> int:
        return n

    batch = app.batch("many")
    calls = [one_of_many.options(batch=batch).call(n) for n in range(1_000)]
    handles = app.enqueue_many(calls)
    assert batch.counts() == {"queued": 1_000}
    assert not batch.done
    with app.running():
        assert [handle.result(30) for handle in handles] == list(range(1_000))
    assert (batch.total, batch.done) == (1_000, True)
    before = app.store.count(Query(type="one_of_many"))
    taken = one_of_many.options(unique="x", delay="1h").enqueue(1)
    reject = one_of_many.options(unique="x", on_conflict="reject")
    with pytest.raises(errors.DuplicateJob) as caught:
        app.enqueue_many([one_of_many.call(2), reject.call(3)])
    assert caught.value.job_id == taken.id
    assert app.store.count(Query(type="one_of_many")) == before + 1
    joined = one_of_many.options(unique="x").enqueue(4)
    assert (joined.id, joined.joined) == (taken.id, True)
    taken.cancel()


def test_bad_jobs_are_refused_like_at_home(app: App) -> None:
    @app.job(type="picky")
    async def picky(text: str) -> None: ...

    with pytest.raises(errors.BadJob):
        picky.enqueue(5)  # type: ignore[arg-type]
    with pytest.raises(errors.PayloadTooLarge):
        picky.enqueue("x" * 1_100_000)
    app.payload_limit = 10_000_000

    @app.job(type="large")
    async def large(text: str) -> None: ...

    with pytest.raises(errors.PayloadTooLarge):
        large.enqueue("x" * 1_100_000)
    with pytest.raises(errors.PayloadTooLarge):
        large.enqueue("x" * 9_000_000)
    with pytest.raises(errors.UnknownJob):
        app.handle(10**15).row()
    with pytest.raises(errors.UnknownJob):
        app.cancel(10**15)
    with pytest.raises(errors.UnknownJob):
        app.handle(10**15).wait(1)


def test_following_and_steering(app: App) -> None:
    @app.job(type="steered")
    async def steered() -> None: ...

    first = steered.options(delay="1h").enqueue()
    second = steered.options(after=first).enqueue()
    assert second.explain().reason == "after"
    assert app.pause(first.id) == "paused"
    assert app.resume(first.id) == "pending"
    assert app.prioritise(first.id, 1) == "pending"
    assert first.row().priority == 1
    assert app.pin(first.id) == "pending"
    assert first.row().pin is not None
    assert app.unpin(first.id) == "pending"
    assert first.row().pin is None
    at = app.now() + 7_200
    assert app.reschedule(first.id, at) == "pending"
    assert first.row().not_before == pytest.approx(at, abs=0.001)
    assert first.cancel() == "cancelled"
    assert second.wait(10) == "cancelled"
    with pytest.raises(IllegalTransition) as caught:
        app.pause(first.id)
    assert caught.value.state == "cancelled"
    assert app.retry(first.id) in ("pending", "queued")
    assert app.by("somebody").cancel(first.id) == "cancelled"


def test_gates_and_settings(app: App) -> None:
    @app.job(type="gated", lane="narrow")
    async def gated() -> None: ...

    app.set("lane:narrow", limit=3)
    assert ("lane", "narrow", '{"limit":3}', 0.0) in app.store.settings()
    app.reset("lane:narrow")
    assert not any(name == "narrow" for _, name, _, _ in app.store.settings())
    with pytest.raises(ValueError, match="cannot be set"):
        app.set("lane:narrow", nonsense=1)
    handle = gated.enqueue()
    app.pause("lane:narrow")
    assert handle.explain().reason in ("paused", "closed")
    app.resume("lane:narrow")
    app.close_until("lane:narrow", app.now() + 3_600, "a test")
    app.open("lane:narrow")
    app.pause("all")
    app.resume("all")
    handle.cancel()


def test_schedules(app: App) -> None:
    @app.job(type="recurring")
    async def recurring(n: int) -> None: ...

    app.schedule("often", recurring.options(lane="slow").call(1), "30m")
    app.schedule("nightly", recurring.call(2), Cron("0 3 * * *"))
    found = {row.name: row for row in app.schedules()}
    assert found["often"].args == '{"n":1}'
    assert '"lane":"slow"' in found["often"].options
    assert found["often"].next_due_at is not None
    app.pause_schedule("often")
    assert {row.name: row.paused for row in app.schedules()}["often"] == 1
    app.resume_schedule("often")
    app.unschedule("often")
    app.unschedule("nightly")
    assert not {"often", "nightly"} & {row.name for row in app.schedules()}
    with pytest.raises(ValueError, match="no schedule"):
        app.unschedule("often")


def test_what_a_worker_declares_holds_at_the_server(app: App) -> None:
    app.lane("declared", limit=1)
    ran = threading.Event()

    @app.job(type="ticking", lane="declared", every="1s")
    async def ticking() -> None:
        ran.set()

    with app.running():
        assert ran.wait(20)
        assert "ticking" in {row.name for row in app.schedules()}
        assert app.store._get("lanes", "declared")["limit"] == 1  # type: ignore[attr-defined]
    app.unschedule("ticking")


def test_looking(app: App) -> None:
    @app.job(type="looked_at", retries=0)
    async def looked_at(n: int) -> None:
        raise ValueError(f"odd {n}")

    handles = app.enqueue_many(looked_at.options(labels={"n": str(n)}).call(n) for n in range(5))
    with app.running():
        for handle in handles:
            assert handle.wait(20) == "failed"
    store = app.store
    ids = [handle.id for handle in reversed(handles)]
    assert [row.id for row in store.jobs(Query(type="looked_at"))] == ids
    assert [row.id for row in store.jobs(Query(type="looked_at", limit=2, offset=1))] == ids[1:3]
    assert [row.id for row in store.jobs(Query(type="looked_at", error="ODD 3"))] == [ids[1]]
    assert [row.id for row in store.jobs(Query(labels=(("n", "2"),), type="looked_at"))] == [ids[2]]
    assert store.count(Query(states=("failed",), type="looked_at")) == 5
    # The server counts once a second.
    eventually(lambda: {state: n for _, state, n in store.tally()}.get("failed", 0) >= 5)
    [stats] = [each for each in app.stats() if each.type == "looked_at"]
    assert (stats.ended, stats.failed) == (5, 5)
    assert [each for each in app.stats(app.now() - 3600) if each.type == "looked_at"] == [stats]
    first, last = store.event_range()
    assert [event.id for event in store.events(last - 2, 10)][:2] == [last - 1, last]
    assert first <= last <= store.last_event()
    assert store.trail(last - 1, 1)[0].id == last
    assert app.purge(0.0, 0.0).jobs >= 5
    assert store.count(Query(type="looked_at")) == 0


def test_a_forked_process_may_enqueue_too(app: App) -> None:
    @app.job(type="forked")
    async def forked() -> None: ...

    own = forked.options(delay="1h").enqueue()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, str(forked.options(delay="1h").enqueue().id).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        theirs = int(pipe.read())
    os.waitpid(child, 0)
    assert theirs > own.id
    assert app.handle(theirs).cancel() == own.cancel() == "cancelled"


def test_many_threads_and_loops_enqueue_at_once(app: App) -> None:
    @app.job(type="crowd")
    async def crowd(n: int) -> None: ...

    ids: list[int] = []

    def from_thread() -> None:
        ids.extend(crowd.options(delay="1h").enqueue(n).id for n in range(5))

    async def from_loop() -> None:
        many = (crowd.options(delay="1h").aenqueue(n) for n in range(50))
        ids.extend(handle.id for handle in await asyncio.gather(*many))

    threads = [threading.Thread(target=from_thread) for _ in range(4)]
    threads += [threading.Thread(target=lambda: asyncio.run(from_loop())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 4 * 5 + 2 * 50
    assert app.store.count(Query(type="crowd")) == len(ids)
