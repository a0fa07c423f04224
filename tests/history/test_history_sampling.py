"""Looking every other second: on the clock of a world, on both stores, and in trouble."""

from __future__ import annotations

import asyncio
import logging
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from headway import App, Pushback
from headway.api.config import Config
from headway.apps.history import sampling, tables
from headway.apps.history.application import History
from headway.apps.history.looking import Watcher
from headway.apps.history.recorder import ALL, BY_NAME, Recorder, SpanName
from headway.apps.history.sampling import Sampler
from headway.errors import EngineStopped, StoreUnavailable
from headway.store import Store, open_store
from headway.testing import World
from headway.testing.world import START_AT
from tests.engine.kit import takes
from tests.history.test_history_recorder import NOON, known, reckoning, tallied

SITE = ("upstream", "x.com")


class Quiet(Sampler):
    """Stores nothing by itself."""

    async def save(self) -> None:
        pass


def started(app: App, recorder: Recorder, kind: type[Sampler] = Quiet) -> Sampler:
    engine: Any = app.engine
    return kind(app, engine, recorder)


def test_an_hour_of_a_site_that_pushes_back(app: App) -> None:
    app.upstream("x.com", limit=2)
    recorder, refused = Recorder(), [20]

    @app.job(upstream="x.com", lane="a")
    async def work(number: int) -> None:
        await takes(10)
        if number in refused:
            refused.clear()
            raise Pushback(retry_after=120)

    async def play() -> None:
        sampler = started(app, recorder)
        sampler.start()
        await takes(30)
        for number in range(40):
            work.enqueue(number)
        await takes(1_200)
        await sampler.stop()

    with World(app) as world:
        world.run(play())
        hour = recorder.read("1h", SITE, world.now)["series"]
        everything = recorder.read("1h", ALL, world.now)
        live = recorder.read("live", ALL, world.now)
    sums = {
        name: sum(known(everything, name))
        for name in ("submitted", "started", "completed", "failed", "pushbacks")
    }
    assert sums == {"submitted": 40, "started": 41, "completed": 40, "failed": 0, "pushbacks": 1}
    assert max(filter(None, hour["running"])) == 2
    assert 30 < max(filter(None, hour["waiting"])) <= 38
    closed_s = 15 * sum(filter(None, hour["closed"]))
    assert closed_s == pytest.approx(120, abs=4)
    waits = [each for each in hour["wait_p95_s"] if each is not None]
    assert waits[0] < 20 < waits[-1] < 400
    assert live["series"]["started"].count(None) == 0, "each bucket has its look"


def test_what_is_believed_is_seen(app: App) -> None:
    app.upstream("x.com", learn={"pin_rpm": 90, "pin_concurrency": 7})

    @app.job(upstream="x.com")
    async def work() -> None:
        await takes(60)

    with World(app) as world:
        work.enqueue()
        app.pause("upstream:y.com")
        world.run_for(1)
        engine: Any = app.engine
        seen = Watcher(engine.brain).look(["default", "none"], ["y.com", "gone"], world.now)
    assert seen.running == 1
    assert seen.lanes == {"default": 1, "none": 0}
    found = seen.upstreams["x.com"]
    assert (found.running, found.waiting, found.closed) == (1, 0, 0.0)
    assert (found.limit_rpm, found.limit_concurrency) == (90, 7)
    assert seen.upstreams["y.com"].closed == 1.0
    assert (seen.upstreams["gone"].running, seen.upstreams["gone"].closed) == (0, 0.0)


def test_a_pace_that_ticks_and_a_full_house_are_not_closed(app: App) -> None:
    app.upstream("x.com", every="10s", limit=1)

    @app.job(upstream="x.com")
    async def work() -> None:
        await takes(5)

    with World(app) as world:
        for _ in range(3):
            work.enqueue()
        world.run_for(1)
        engine: Any = app.engine
        seen = Watcher(engine.brain).look([], ["x.com"], world.now)
    assert (seen.upstreams["x.com"].waiting, seen.upstreams["x.com"].closed) == (2, 0.0)


def test_those_who_are_idle_make_room_in_the_tallies(app: App) -> None:
    recorder = Recorder()

    @app.job()
    async def work() -> None:
        pass

    async def play() -> None:
        sampler = started(app, recorder)
        for round in range(4):
            for number in range(100):
                work.options(upstream=f"u{round}-{number}.com").enqueue()
            for _ in range(40):
                await takes(2)
                await sampler.sample()

    with World(app) as world:
        world.run(play())
        engine: Any = app.engine
        upstreams = engine.brain.meters.reckon().upstreams
        names = recorder.names("upstream")
        found = [recorder.read("24h", ("upstream", name), world.now) for name in names]
    assert "other" not in upstreams
    assert len(upstreams) <= 200
    assert len(names) == 200
    assert sum(1 for name in names if name.startswith("u3-")) == 100
    assert [sum(known(each, "started")) for each in found] == [1] * 200


# ---------------------------------------------------------------------- over restarts


def test_it_is_the_same_after_a_restart(url: str) -> None:
    recorder = Recorder()
    for step in range(1_000):
        reading = reckoning(tallied(step, step // 2), step, a=tallied(step, waiting=step % 7))
        recorder.record(NOON + 2 * step, reading, None)
        if step % 500 == 499:
            now = NOON + 2 * step
            with_store(url, lambda store, now=now: tables.save(store, recorder.unsaved(), now))
    again = Recorder()
    with_store(url, lambda store: again.load(tables.stored(store), now))
    spans: tuple[SpanName, ...] = ("1h", "24h")
    for span, subject in product(spans, (ALL, ("lane", "a"), ("upstream", "x"), ("lane", "none"))):
        before, after = recorder.read(span, subject, now), again.read(span, subject, now)
        for name, values in before["series"].items():
            assert after["series"][name] == pytest.approx(values, abs=1e-3), name


def with_store(url: str, do: Any) -> None:
    store: Store = open_store(url)
    try:
        store.install(tables.APP, tables.MIGRATIONS)
        do(store)
    finally:
        store.close()


def test_what_is_too_old_goes_and_what_cannot_be_read_is_left_out(url: str) -> None:
    def check(store: Store) -> None:
        tables.save(store, [(15, int(NOON // 15), {"all:": 0})], NOON)
        later = NOON + 3_700
        tables.save(store, [(15, int(later // 15), {}), (300, 1, {})], NOON + 3_500)
        assert len(list(tables.stored(store))) == 2, "the day's first is older than a day"
        store.write([(tables.PUT, [(15, int(later // 15), "}{"), (15, 7, "[]")])])
        assert [row[1] for row in tables.stored(store)] == [int(NOON // 15)]
        tables.save(store, [], later)
        assert list(tables.stored(store)) == []

    with_store(url, check)


# ---------------------------------------------------------------------- trouble


def test_a_brain_that_does_not_answer_is_asked_once_and_waited_for_no_longer(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, asked = Recorder(), []

    with World(app) as world:
        engine: Any = app.engine
        answer = engine.ask_for
        monkeypatch.setattr(engine, "ask_for", lambda *said: asked.append(said))
        sampler = started(app, recorder)

        async def play() -> None:
            for _ in range(3):
                await takes(2)
                await sampler.sample()
            assert len(asked) == 1
            engine.ask_for = answer
            answer(*asked.pop())
            await takes(2)
            await sampler.sample()

        world.run(play())
        running = recorder.read("live", ALL, world.now + 3)["series"]["running"]
        counted = recorder.read("live", ALL, world.now + 3)
    assert known(counted, "started") == [0] * len(known(counted, "started"))
    assert running[-1] == 0
    assert None in running[-4:-1]


def test_an_engine_that_is_over_is_no_end(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def over(*_: object) -> None:
        raise EngineStopped("it was asked to")

    recorder = Recorder()
    with World(app) as world:
        monkeypatch.setattr(app.engine, "ask_for", over)
        world.run(started(app, recorder).sample())
        assert known(recorder.read("24h", ALL, world.now + 3), "started") == [0]


def test_a_store_that_is_away_is_said_once_and_nothing_is_lost(
    app: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    saved: list[int] = []
    away = True

    def save(_store: Store, rows: list[Any], _now: float) -> None:
        if away:
            raise StoreUnavailable("it is away")
        saved.append(len(rows))

    async def inline(call: Any, *args: Any) -> Any:
        return call(*args)

    monkeypatch.setattr(sampling, "save", save)
    monkeypatch.setattr(asyncio, "to_thread", inline)

    async def play(sampler: Sampler) -> None:
        nonlocal away
        sampler.start()
        await takes(600)
        away = False
        await takes(120)
        await sampler.stop()

    with World(app) as world, caplog.at_level(logging.INFO, logger="headway.history"):
        world.run(play(started(app, Recorder(), Sampler)))
    messages = [each.message for each in caplog.records if each.name == "headway.history"]
    assert messages == [
        "the history has gaps for now (store): it is away",
        "the history goes on (store)",
    ]
    assert saved[0] > 40, "all of the ten minutes"
    assert max(saved[1:]) < 10


def test_a_fault_of_ours_is_said_once_too(
    app: App, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()

    async def play(sampler: Sampler) -> None:
        sampler.start()
        await takes(60)

    with World(app) as world, caplog.at_level(logging.INFO, logger="headway.history"):
        monkeypatch.setattr(recorder, "record", lambda *_: 1 / 0)
        world.run(play(started(app, recorder)))
    assert [each.message for each in caplog.records if each.name == "headway.history"] == [
        "the history has gaps for now (sample): division by zero"
    ]


@pytest.mark.parametrize("idle", [True, False])
def test_a_command_without_a_server_writes_no_history(tmp_path: Path, idle: bool) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    history = History()
    history.prepare(app, Config(data=str(tmp_path)), None)
    app.start(idle=idle)

    async def serve() -> bool:
        await history.start()
        samples = len(asyncio.all_tasks()) > 1
        await history.stop()
        return samples

    try:
        assert asyncio.run(serve()) is not idle
        written = app.store.rows("select count(*) from history_buckets")[0][0]
        assert (written == 0) is idle
    finally:
        app.close()


def test_spans_and_steps_fit_the_worlds_clock() -> None:
    assert {span.name: span.step_s * span.length for span in BY_NAME.values()} == {
        "live": 300, "1h": 3_600, "24h": 86_400,
    }  # fmt: skip
    assert START_AT % 300 == NOON % 300 == 0
