"""Unique jobs: both scopes, all three answers to a conflict."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import App, Job
from headway.errors import DuplicateJob
from headway.testing import World
from tests.engine.kit import Diary, states, takes
from tests.stores import second_store_in_the_soak


def unique_job(app: App, diary: Diary, **options: Any) -> Job[Any, Any]:
    @app.job(unique=lambda name: name, **options)
    async def refresh(name: str, n: int = 0) -> None:
        diary.note((name, n))
        await takes(60)

    return refresh


def test_a_second_job_joins_the_one_that_waits(app: App, diary: Diary) -> None:
    refresh = unique_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first, second, other = (
            refresh.enqueue("a", 1),
            refresh.enqueue("a", 2),
            refresh.enqueue("b"),
        )
        assert (second.id, second.joined, other.joined) == (first.id, True, False)
        world.run_for("5m")
    assert diary.names == [("a", 1), ("b", 0)]


def test_it_joins_the_one_that_runs_and_not_one_that_has_ended(app: App, diary: Diary) -> None:
    refresh = unique_job(app, diary)
    with World(app) as world:
        diary.begin(world)
        first = refresh.enqueue("a")
        world.run_for(30)
        assert refresh.enqueue("a").id == first.id
        world.run_for(60)
        assert refresh.enqueue("a").id != first.id
        world.run_for(60)
    assert len(diary.rows) == 2


def test_unique_while_queued_lets_the_next_one_in_as_soon_as_it_runs(
    app: App, diary: Diary
) -> None:
    refresh = unique_job(app, diary, unique_while="queued")
    with World(app) as world:
        diary.begin(world)
        first = refresh.enqueue("a", 1)
        world.run_for(30)
        second, third = refresh.enqueue("a", 2), refresh.enqueue("a", 3)
        assert len({first.id, second.id}) == 2
        world.run_for(0)
        # The second one was admitted at once, so the third is a new one or has joined it.
        assert third.id == second.id
        world.run_for("5m")
    assert diary.names == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("scope", ["queued", "queued+running"])
def test_the_key_is_kept_over_a_restart(app: App, diary: Diary, scope: str) -> None:
    refresh = unique_job(app, diary, unique_while=scope)
    with World(app) as world:
        diary.begin(world)
        first = refresh.options(delay="1h").enqueue("a")
        world.run_for(1)
        world.restart()
        world.run_for(1)
        assert refresh.enqueue("a").id == first.id
        world.run_for("2h")
        assert refresh.enqueue("a").id != first.id


@pytest.mark.parametrize("how", ["complete", "fail", "cancel", "deadline"])
def test_every_end_frees_the_key(app: App, how: str) -> None:
    @app.job(unique=True, retries=0)
    def work(what: str) -> None:
        if what == "fail":
            raise LookupError

    with World(app) as world:
        ask = work.options(delay="1m", within="1m")
        if how == "deadline":
            app.pause("lane:default")
        first = ask.enqueue(how)
        world.run_for(1)
        assert ask.enqueue(how).id == first.id
        if how == "cancel":
            app.cancel(first.id)
        world.run_for("10m")
        assert first.state in ("completed", "failed", "cancelled")
        assert ask.enqueue(how).id != first.id


def test_joining_raises_the_priority_but_never_lowers_it(app: App, diary: Diary) -> None:
    app.lane("narrow", limit=1)
    refresh = unique_job(app, diary, lane="narrow")
    with World(app) as world:
        diary.begin(world)
        refresh.enqueue("running")
        world.run_for(1)
        low, other = refresh.enqueue("low"), refresh.enqueue("other")
        refresh.options(priority=1).enqueue("low")
        refresh.options(priority=9).enqueue("other")
        world.run_for(1)
        assert (low.row().priority, other.row().priority) == (1, 5)
        later = refresh.options(priority=3).enqueue("later")
        assert not later.joined
        world.run_for("10m")
    assert [name for name, _ in diary.names] == ["running", "low", "later", "other"]


def test_replace_gives_the_waiting_job_the_new_payload_time_and_priority(
    app: App, diary: Diary
) -> None:
    refresh = unique_job(app, diary, on_conflict="replace")
    with World(app) as world:
        diary.begin(world)
        first = refresh.options(delay="1h").enqueue("a", 1)
        world.run_for(1)
        second = refresh.options(delay="10m", priority=2).enqueue("a", 2)
        world.run_for(1)
        assert second.id == first.id
        assert first.row().priority == 2
        world.run_for("2h")
    assert diary.rows == [(601.0, ("a", 2))]


def test_what_runs_cannot_be_replaced(app: App, diary: Diary) -> None:
    refresh = unique_job(app, diary, on_conflict="replace")
    with World(app) as world:
        diary.begin(world)
        first = refresh.enqueue("a")
        world.run_for(1)
        with pytest.raises(DuplicateJob, match="runs already") as caught:
            refresh.enqueue("a")
        assert caught.value.job_id == first.id


def test_reject_says_which_job_is_there(app: App, diary: Diary) -> None:
    refresh = unique_job(app, diary, on_conflict="reject")
    with World(app):
        first = refresh.enqueue("a")
        with pytest.raises(DuplicateJob, match=f"job {first.id}") as caught:
            refresh.enqueue("a")
        assert caught.value.job_id == first.id


def test_unique_true_means_the_same_arguments(app: App) -> None:
    @app.job(unique=True)
    def work(a: int, b: int = 0) -> None: ...

    with World(app):
        one = work.enqueue(1, b=2)
        assert work.enqueue(1, 2).id == one.id
        assert work.enqueue(1, 3).id != one.id


def test_the_same_key_of_another_type_is_another_key(app: App) -> None:
    one = app.job(type="one", unique="k")(lambda: None)
    two = app.job(type="two", unique="k")(lambda: None)
    with World(app):
        assert one.enqueue().id != two.enqueue().id


@second_store_in_the_soak
@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 90)), max_size=12))
def test_never_do_two_of_one_key_run_at_once(asked: list[tuple[str, int]]) -> None:
    app = App()
    inside: list[str] = []

    @app.job(unique=lambda name: name)
    async def work(name: str) -> None:
        assert name not in inside
        inside.append(name)
        await takes(60)
        inside.remove(name)

    with World(app) as world:
        handles = []
        for name, wait_s in asked:
            handles.append(work.enqueue(name))
            world.run_for(wait_s)
        world.run_for("1h")
        assert set(states(handles)) <= {"completed"}
