"""Retention: what is over is kept for days, and purged at 02:00 local time or on request."""

from __future__ import annotations

from datetime import datetime

import pytest

from headway import App
from headway.errors import UnknownJob
from headway.testing import World
from tests.engine.kit import check_no_gaps


def is_there(app: App, id: int) -> bool:
    try:
        app.handle(id).row()
    except UnknownJob:
        return False
    return True


def test_completed_jobs_go_after_seven_days_and_failed_ones_after_thirty(app: App) -> None:
    @app.job(retries=0)
    def work(fails: bool) -> None:
        if fails:
            raise LookupError

    with World(app) as world:
        good, bad, gone = work.enqueue(False), work.enqueue(True), work.enqueue(False)
        gone.cancel()
        waiting = work.options(delay="52w").enqueue(False)
        world.run_for("6d20h")
        assert all(is_there(app, handle.id) for handle in (good, bad, gone, waiting))
        world.run_for("2d")
        there = [is_there(app, handle.id) for handle in (good, bad, gone, waiting)]
        assert there == [False, True, False, True]
        world.run_for("23d")
        assert not is_there(app, bad.id)
        assert waiting.state == "pending"
        check_no_gaps(app)


def test_what_an_operator_sets_holds_from_now_on_and_after_a_restart(app: App) -> None:
    @app.job()
    def work() -> None: ...

    with World(app) as world:
        first = work.enqueue()
        app.set("retention:jobs", completed_days=1)
        world.restart()
        shown = app.retention.shown()
        assert (shown["completed_days"], shown["failed_days"]) == (1.0, 30.0)
        assert shown["from"] == {"completed_days": "operator", "failed_days": "code"}
        world.run_for("2d1h")
        assert not is_there(app, first.id)
        app.reset("retention:jobs")
        second = work.enqueue()
        world.restart()
        assert app.retention.shown()["overridden"] is False
        world.run_for("6d")
        assert is_there(app, second.id)
        said = [(each.event, each.detail) for each in app.store.events(0, 1_000)
                if each.subject == "retention:jobs"]  # fmt: skip
        assert said == [("set", '{"completed_days":1}'), ("set", "reset")]


def test_what_makes_no_sense_changes_nothing(app: App) -> None:
    with World(app) as world:
        app.set("retention:jobs", failed_days=90)
        for wrong in ({"failed_days": -1}, {"failed_days": float("nan")}, {"failed_days": "1"},
                      {"days": 1}, {}, {"completed_days": True}):  # fmt: skip
            with pytest.raises(ValueError, match=r"days|retention"):
                app.set("retention:jobs", **wrong)  # type: ignore[arg-type]
        world.crash()
        app.purge()
        assert app.retention.failed_days == 90.0, "it is what holds where no engine runs, too"
        world.restart()
        assert app.retention.failed_days == 90.0


def test_what_runs_again_and_again_may_be_kept_for_hours_only(app: App) -> None:
    @app.job(type="visit", retries=0)
    def visit(fails: bool) -> None:
        if fails:
            raise LookupError

    @app.job(type="other")
    def other() -> None: ...

    app.retention.sooner["visit"] = 26 * 3_600.0
    with World(app) as world:
        good, bad, rest = visit.enqueue(False), visit.enqueue(True), other.enqueue()
        world.run_for("25h")
        late = visit.enqueue(False)
        assert all(is_there(app, handle.id) for handle in (good, bad, rest))
        world.run_for("3h")
        there = [is_there(app, handle.id) for handle in (good, bad, rest, late)]
        assert there == [False, True, True, True]
        world.run_for("2d")
        assert not is_there(app, late.id)


def test_the_purge_comes_at_two_in_the_morning(app: App) -> None:
    @app.job()
    def work() -> None: ...

    with World(app) as world:
        handle = work.enqueue()
        world.run_for("7d1m")
        steps = 0
        while is_there(app, handle.id):
            world.run_for("10m")
            steps += 1
            assert steps <= 24 * 6, "within a day"
        local = datetime.fromtimestamp(world.now)
        assert (local.hour, local.minute <= 10) == (2, True)


def test_purge_on_request_takes_what_is_older_than_asked(app: App) -> None:
    @app.job(retries=0)
    def work(fails: bool) -> int:
        if fails:
            raise LookupError
        return 1

    with World(app) as world:
        handles = [work.enqueue(n % 2 == 0) for n in range(10)]
        world.run_for("1h")
        young = work.enqueue(False)
        world.run_for(1)
        assert app.purge().jobs == 0
        purged = app.purge(completed_days=1 / 48)
        assert (purged.jobs, purged.events) == (5, 0), "an older trail is still needed"
        purged = app.purge(completed_days=1 / 48, failed_days=1 / 48)
        assert purged.jobs == 5
        assert purged.events > 0
        assert not any(is_there(app, handle.id) for handle in handles)
        assert young.state == "completed"
        check_no_gaps(app)


def test_the_days_can_be_set() -> None:
    app = App(completed_days=0.5, failed_days=0)

    @app.job()
    def work() -> None: ...

    with World(app) as world:
        handle = work.enqueue()
        world.run_for("2d")
        assert not is_there(app, handle.id)
    with pytest.raises(ValueError, match="0 or more"):
        App(completed_days=-1)
