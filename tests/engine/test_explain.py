"""Waiting has a reason: `explain`, and numbers about what is over: `stats`."""

from __future__ import annotations

import pytest

from headway import App
from headway.core import UnknownTicket
from headway.errors import UnknownJob
from headway.testing import World
from tests.engine.kit import takes


def test_a_full_lane_names_itself_and_the_place_in_line(app: App) -> None:
    app.lane("narrow", limit=1)

    @app.job(lane="narrow")
    async def work() -> None:
        await takes(60)

    with World(app) as world:
        handles = [work.enqueue() for _ in range(5)]
        world.run_for(10)
        assert handles[0].explain().reason == "running"
        for place, handle in enumerate(handles[1:], start=1):
            why = handle.explain()
            assert (why.reason, why.gate, why.position) == ("full", "lane:narrow", place)
            assert why.detail == "1 in use of 1"
            assert why.since == pytest.approx(world.now - 10)


def test_a_pace_says_when_it_opens(app: App) -> None:
    app.upstream("example.com", every="10m")

    @app.job(upstream="example.com")
    def work() -> None: ...

    with World(app) as world:
        work.enqueue()
        second = work.enqueue()
        world.run_for(60)
        why = second.explain()
        assert (why.reason, why.gate) == ("pace", "upstream:example.com")
        assert why.opens_at == pytest.approx(world.now + 540)


def test_a_locked_key_is_the_reason(app: App) -> None:
    @app.job(key="feed 7")
    async def work() -> None:
        await takes(60)

    with World(app) as world:
        work.enqueue()
        second = work.enqueue()
        world.run_for(1)
        assert (second.explain().reason, second.explain().gate) == ("full", "key:feed 7")


def test_an_ordered_key_names_who_is_first(app: App) -> None:
    @app.job(key="k", ordered="hold", retries=1, retry_delay="5m")
    def work(fails: bool) -> None:
        if fails:
            raise LookupError

    with World(app) as world:
        first, second = work.enqueue(True), work.enqueue(False)
        world.run_for(1)
        why = second.explain()
        assert (why.reason, why.detail) == ("order", f"after {first.id} (pending)")
        world.run_for("1h")
        assert (first.state, second.state) == ("failed", "completed")


def test_what_has_ended_or_never_was_is_not_explained(app: App) -> None:
    @app.job()
    def work() -> None: ...

    with World(app) as world:
        handle = work.enqueue()
        world.run_for(0)
        with pytest.raises(UnknownTicket, match="completed"):
            handle.explain()
        with pytest.raises(UnknownJob):
            app.explain(99)


def test_stats_tell_of_each_type_how_it_fared(app: App) -> None:
    app.lane("narrow", limit=1)

    @app.job(type="even", lane="narrow")
    async def even(seconds: float) -> None:
        await takes(seconds)

    @app.job(type="odd", retries=0)
    def odd() -> None:
        raise LookupError

    with World(app) as world:
        for seconds in (10, 20, 30):
            even.enqueue(seconds)
        odd.enqueue()
        even.options(delay="1d").enqueue(1).cancel()
        world.run_for("1h")
        first, second = app.stats()
        assert (first.type, first.ended, first.completed, first.cancelled) == ("even", 4, 3, 1)
        assert first.mean_run_s == pytest.approx(20, abs=0.01)
        assert first.p95_run_s == pytest.approx(30, abs=0.01)
        assert first.mean_wait_s == pytest.approx((0 + 10 + 30) / 3, abs=0.01)
        assert (second.type, second.failed) == ("odd", 1)
        assert app.stats(since=world.now) == []
