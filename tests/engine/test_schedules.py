"""Recurring jobs: one open occurrence, in phase, whatever happens in between."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from headway import App, Cron, Every, Job
from headway.core.recurrence import spread_anchor
from headway.errors import BadJob
from headway.store.records import Query, Schedule
from headway.testing import World
from tests.engine.kit import Diary, gaps, takes

HALF_HOUR = 1800.0


def recurring(app: App, diary: Diary, seconds: float = 0.0) -> Job[[str], None]:
    @app.job(retries=0)
    async def tick(name: str = "") -> None:
        diary.note(name)
        if seconds:
            await takes(seconds)

    return tick


def every(world: World, seconds: float, **more: Any) -> Every:
    """A rule whose first occurrence is one interval from now."""
    return Every(seconds, anchor_at=world.now, **more)


def row(app: App, name: str = "s") -> Schedule:
    return next(each for each in app.schedules() if each.name == name)


def open_occurrences(app: App) -> int:
    return sum(
        app.store.count(Query(schedule="s", states=(state,)))
        for state in ("pending", "queued", "running", "paused")
    )


# --- rules


@pytest.mark.parametrize("rule", ["30m", Every(HALF_HOUR), Every(HALF_HOUR, jitter_s=60)])
def test_it_runs_at_its_interval_with_a_phase_of_its_own(app: App, diary: Diary, rule: Any) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), rule)
        world.run_for("1d")
        phase = spread_anchor("s", HALF_HOUR)
        assert len(diary.times) == 48
        for at in diary.times:
            late_s = (world.clock.at - 86_400 + at - phase) % HALF_HOUR
            assert late_s < (60.0 if isinstance(rule, Every) and rule.jitter_s else 0.01)


def test_a_job_may_be_declared_recurring(app: App, diary: Diary) -> None:
    @app.job(every="1h")
    def tick() -> None:
        diary.note()

    with World(app) as world:
        diary.begin(world)
        world.run_for("1d")
        assert row(app, "tick").source == "code"
    assert len(diary.times) == 24
    assert set(gaps(diary.times)) == {3600.0}


def test_a_cron_expression_follows_the_calendar(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), Cron("30 6 * * MON-FRI", zone="Europe/Berlin"))
        world.run_for("1w")
        start = world.now - 7 * 86_400
        seen = [datetime.fromtimestamp(start + at, UTC).strftime("%a %H:%M") for at in diary.times]
    assert seen == ["Thu 05:30", "Fri 05:30", "Mon 05:30", "Tue 05:30", "Wed 05:30"]


@pytest.mark.parametrize("rule", ["soon", "30", 1800, None, "0s"])
def test_a_rule_that_is_none_is_refused(app: App, diary: Diary, rule: Any) -> None:
    tick = recurring(app, diary)
    with World(app):
        with pytest.raises(ValueError):  # noqa: PT011 - each says something else
            app.schedule("s", tick.call(), rule)
        assert app.schedules() == []


def test_what_cannot_recur_is_refused(app: App) -> None:
    @app.job()
    def work() -> None: ...

    with World(app):
        for options in ({"unique": True}, {"after": 1}, {"within": "1h"}):
            with pytest.raises(BadJob, match="recurring"):
                app.schedule("s", work.options(**options).call(), "1h")
        with pytest.raises(BadJob, match="name"):
            app.schedule("", work.call(), "1h")


# --- one after the other


def test_a_long_run_delays_the_next_to_its_next_turn_and_keeps_the_phase(
    app: App, diary: Diary
) -> None:
    tick = recurring(app, diary, seconds=250)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        world.run_for(1000)
        assert row(app).missed == 6
    assert diary.times == [100.0, 400.0, 700.0, 1000.0]


def test_there_is_one_open_occurrence_at_any_time(app: App, diary: Diary) -> None:
    tick = recurring(app, diary, seconds=130)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 60.0))
        for n in range(60):
            world.run_for(17)
            assert open_occurrences(app) == 1
            if n % 7 == 0:
                world.restart()


def test_what_was_slept_through_is_made_up_for_once_and_in_phase(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, HALF_HOUR))
        world.run_for("45m")
        world.crash()
        world.run_for("10h")
        world.restart()
        world.run_for("1h")
        assert row(app).missed == 19
    back = 38_700.0
    assert diary.times == [1800.0, back, 39_600.0, 41_400.0]


def test_an_occurrence_that_is_retried_by_itself_delays_the_next(app: App, diary: Diary) -> None:
    @app.job(retries=2, retry_delay="10m")
    def tick() -> None:
        diary.note()
        raise LookupError

    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 900.0))
        world.run_for("1h")
        assert open_occurrences(app) == 1
    assert diary.times == [900.0, 1500.0, 2100.0, 2700.0, 3300.0]


def test_failures_stretch_the_interval_and_a_success_brings_it_back(app: App, diary: Diary) -> None:
    healthy = False

    @app.job(retries=0)
    def tick() -> None:
        diary.note()
        if not healthy:
            raise LookupError

    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 600.0, growth=2.0, max_s=4800.0))
        world.run_for("6h")
        assert gaps(diary.times)[:5] == [1200.0, 2400.0, 4800.0, 4800.0, 4800.0]
        assert row(app).strikes == len(diary.times)
        world.restart()  # which does not forgive
        world.run_for("1h20m")
        assert gaps(diary.times)[-1] == 4800.0
        healthy = True
        world.run_for("6h")
        assert gaps(diary.times)[-1] == 600.0
        assert row(app).strikes == 0
        assert all(at % 600 == 0 for at in diary.times), "stretched, but in phase"


def test_a_dead_chain_cannot_come_of_failures(app: App, diary: Diary) -> None:
    @app.job(retries=0, timeout="10s")
    async def tick() -> None:
        diary.note()
        match len(diary.rows) % 4:
            case 0:
                raise LookupError
            case 1:
                await takes(1000)
            case 2:
                app.cancel(app.store.open_occurrences()["s"])

    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 60.0))
        world.run_for("1h")
    assert len(diary.times) == 60


# --- operators


def test_pause_and_resume_before_the_next_run_lose_nothing(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        world.run_for(150)
        app.pause_schedule("s")
        app.resume_schedule("s")
        world.run_for(100)
        app.pause_schedule("s")
        world.run_for(10)
        app.resume_schedule("s")
        world.run_for(240)
    assert diary.times == [100.0, 200.0, 300.0, 400.0, 500.0]


def test_a_paused_schedule_stands_still_over_a_restart_and_comes_back_in_phase(
    app: App, diary: Diary
) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        world.run_for(150)
        app.pause_schedule("s")
        world.run_for(1000)
        world.restart()
        world.run_for(1000)
        assert open_occurrences(app) == 0
        app.resume_schedule("s")
        world.run_for(100)
    assert diary.times == [100.0, 2200.0]


def test_an_occurrence_that_runs_may_end_when_its_schedule_is_paused(
    app: App, diary: Diary
) -> None:
    tick = recurring(app, diary, seconds=60)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        world.run_for(110)
        app.pause_schedule("s")
        world.run_for(500)
        app.resume_schedule("s")
        world.run_for(200)
        assert app.stats()[0].cancelled == 0
    assert diary.times == [100.0, 700.0, 800.0]


def test_unschedule_ends_it_for_good(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        world.run_for(150)
        app.unschedule("s")
        assert app.schedules() == []
        world.run_for(500)
        world.restart()
        world.run_for(500)
    assert diary.times == [100.0]


def test_unschedule_right_after_schedule_runs_nothing(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        app.unschedule("s")
        world.run_for("1h")
        assert open_occurrences(app) == 0
    assert diary.times == []


@pytest.mark.parametrize("between", ["nothing", "a turn", "a restart"])
def test_the_last_declaration_of_a_name_counts(app: App, diary: Diary, between: str) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        rule = every(world, 100.0)
        for name in ("first", "second", "third"):
            app.schedule("s", tick.call(name), rule)
            if between == "a turn":
                world.run_for(0)
            elif between == "a restart":
                world.restart()
        world.run_for(310)
        assert open_occurrences(app) == 1
    assert diary.rows == [(100.0, "third"), (200.0, "third"), (300.0, "third")]


def test_declaring_the_same_again_changes_nothing(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        rule = every(world, 100.0)
        for _ in range(5):
            app.schedule("s", tick.call(), rule)
            world.run_for(50)
        assert app.store.count(Query(schedule="s", states=("cancelled",))) == 0
    assert diary.times == [100.0, 200.0]


def test_a_changed_rule_takes_over_at_once(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        diary.begin(world)
        start = world.now
        app.schedule("s", tick.call(), Every(1000.0, anchor_at=start))
        world.run_for(1010)
        app.schedule("s", tick.call(), Every(300.0, anchor_at=start))
        world.run_for(700)
        assert open_occurrences(app) == 1
    assert diary.times == [1000.0, 1200.0, 1500.0]


@pytest.mark.parametrize("again", [False, True])
def test_a_rule_changed_while_it_runs_holds_from_the_next_one_on(
    app: App, diary: Diary, again: bool
) -> None:
    tick = recurring(app, diary, seconds=60)
    with World(app) as world:
        diary.begin(world)
        start = world.now
        app.schedule("s", tick.call("old"), Every(100.0, anchor_at=start))
        world.run_for(110)
        if again:
            app.unschedule("s")
        app.schedule("s", tick.call("new"), Every(300.0, anchor_at=start))
        world.run_for(1000)
        assert open_occurrences(app) == 1
    assert diary.rows == [(100.0, "old"), (300.0, "new"), (600.0, "new"), (900.0, "new")]


def test_a_retried_occurrence_starts_no_second_chain(app: App, diary: Diary) -> None:
    @app.job(retries=0)
    async def tick() -> None:
        diary.note()
        if len(diary.rows) == 1:
            raise LookupError
        await takes(5)

    with World(app) as world:
        diary.begin(world)
        app.schedule("s", tick.call(), every(world, 100.0))
        world.run_for(101)
        app.pause("all")
        app.retry(1)
        world.restart()
        app.resume("all")
        world.run_for(500)
    assert diary.times == [100.0, 101.0, 200.0, 300.0, 400.0, 500.0, 600.0]


def test_what_operators_do_to_schedules_is_in_the_trail(app: App, diary: Diary) -> None:
    tick = recurring(app, diary)
    with World(app) as world:
        app.schedule("s", tick.call(), every(world, 100.0))
        app.pause_schedule("s")
        app.resume_schedule("s")
        app.unschedule("s")
        said = [each.event for each in app.store.events(0, 99) if each.subject == "schedule:s"]
        assert said == ["schedule", "pause_schedule", "resume_schedule", "unschedule"]
        with pytest.raises(ValueError, match="no schedule 'other'"):
            app.pause_schedule("other")
