"""What a worker elsewhere says about a job that it holds, and what it is told."""

from __future__ import annotations

from typing import Any

import pytest

from headway import App
from headway.core import Outcome, RetryPolicy
from headway.engine.hands.remote import Beat
from headway.store.records import Errand
from headway.testing import World
from tests.engine.kit import check_trail, takes, trail
from tests.engine.workers import Worker, asking, brain_of, put


def test_heartbeats_prolong_a_lease_and_silence_ends_it(app: App) -> None:
    with World(app) as world:
        asking(
            app, lambda remote, now: remote.hello("w1", {"resize": RetryPolicy(timeout_s=1e6)}, now)
        )
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        for _ in range(10):
            world.run_for(80)
            assert worker.beat(work) == Beat(90.0, None)
        assert handle.state == "running"
        world.run_for(91)
        assert handle.state == "queued"
        assert worker.beat(work) == Beat(None, "lost")
        assert worker.complete(work) is None
        assert trail(handle)[-1] == "lost"
        (again,) = worker.taken()
        assert (again.id, again.attempt) == (work.id, 2)
        assert again.fence > work.fence
        check_trail(handle)


def test_the_brain_renews_nothing_that_it_does_not_run_itself(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        Worker(app).taken()
        world.run_for(89)
        assert handle.state == "running"
        world.run_for(2)
        assert handle.state == "queued"


def test_the_time_of_a_lease_begins_when_the_worker_hears_of_it(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        brain_of(app).at_hand.take(handle.id)
        errands = app.store.errands

        def slow(ids: list[int]) -> list[Errand]:
            world.clock.at += 60.0
            return errands(ids)

        app.store.errands = slow  # type: ignore[method-assign,assignment]
        (work,) = Worker(app).taken()
        assert work.lease_s == 90.0
        world.run_for(89)
        assert handle.state == "running"
        world.run_for(2)
        assert handle.state == "queued"


def test_a_lost_lease_ends_a_job_at_the_third_time(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        worker = Worker(app)
        for _ in range(3):
            world.run_for(1)
            assert len(worker.taken()) == 1
            world.run_for(95)
        assert handle.state == "failed"


@pytest.mark.parametrize("wrong", ["fence", "id"])
def test_a_stale_word_changes_nothing(app: App, wrong: str) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        stale = work._replace(**{wrong: getattr(work, wrong) + 1})
        before = list(app.store.events(0, 1_000))
        assert worker.complete(stale, result="1") is None
        assert worker.beat(stale, progress=(1.0, None, "")) == Beat(None, "lost")
        assert list(app.store.events(0, 1_000)) == before
        assert (handle.state, handle.progress()) == ("running", None)
        assert worker.complete(work) == "completed"
        assert worker.complete(work) is None, "not twice"


def test_nobody_elsewhere_ends_what_runs_here(app: App) -> None:
    @app.job()
    async def local() -> str:
        await takes(10)
        return "done here"

    with World(app) as world:
        handle = local.enqueue()
        world.run_for(1)
        fence = handle.row().fence
        worker = Worker(app)
        for call in (
            lambda remote, now: remote.complete(handle.id, fence, Outcome.ok(), "1", now),
            lambda remote, now: remote.heartbeat(handle.id, fence, now).lease_s,
        ):
            assert asking(app, call) is None
        assert worker.answers == 0
        world.run_for(20)
        assert handle.result() == "done here"


# --- notes


def test_progress_checkpoints_and_log_lines_are_kept(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        worker.beat(
            work, progress=(3, 10, "n" * 600), checkpoint='{"at":3}',
            logs=[(world.now, "info", "x" * 3_000), (world.now, "error", "nul \x00")],
        )  # fmt: skip
        progress = handle.progress()
        assert progress is not None
        assert (progress.done, progress.total, progress.note) == (3, 10, "n" * 500)
        lines = [(level, line) for _, level, line in app.store.logs(work.id)]
        assert lines == [("info", "x" * 2_000), ("error", "nul \\0")]
        worker.complete(work, Outcome.failed("no"))
        world.run_for("1m")
        (again,) = worker.taken()
        assert again.checkpoint == '{"at":3}'


def test_the_last_words_in_one_turn_with_the_end_are_kept(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        (work,) = Worker(app).taken()
        brain = brain_of(app)
        beat = (work.id, work.fence)
        brain.ask(lambda now: brain.remote.heartbeat(*beat, now, progress=(1, 2, "half")))
        brain.ask(lambda now: brain.remote.heartbeat(*beat, now, progress=(2, 2, "all")))
        brain.ask(lambda now: brain.remote.complete(*beat, Outcome.ok(), "7", now))
        brain.turn()
        assert handle.result() == 7
        progress = handle.progress()
        assert progress is not None
        assert progress.note == "all"


def test_log_lines_of_an_attempt_are_bounded(app: App) -> None:
    with World(app) as world:
        put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        for size in (600, 300, 300, 5_000):
            worker.beat(work, logs=[(world.now, "info", "line")] * size)
        lines = [line for _, _, line in app.store.logs(work.id)]
        assert len(lines) == 1_000
        assert lines[998] == "line"
        assert "not kept" in lines[999]


@pytest.mark.parametrize(
    "notes",
    [
        {"progress": (float("nan"), None, "")},
        {"progress": (1, float("inf"), "")},
        {"progress": (True, None, "")},
        {"progress": ("1", None, "")},
        {"checkpoint": '"' + "x" * 1_048_577 + '"'},
        {"checkpoint": "{no json"},
        {"logs": [(float("nan"), "info", "line")]},
        {"logs": [(None, "info", "line")]},
    ],
)
def test_notes_that_cannot_be_kept_are_refused_whole(app: App, notes: dict[str, Any]) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        world.run_for(50)
        with pytest.raises(ValueError, match=r"plain numbers|characters|JSON|time when"):
            worker.beat(work, **{"progress": (1, 2, ""), "logs": [(world.now, "a", "b")], **notes})
        assert (handle.progress(), list(app.store.logs(work.id))) == (None, [])
        world.run_for(41)
        assert handle.state == "queued", "nor was the lease prolonged"


def test_a_result_that_is_too_long_fails_the_job_for_good(app: App) -> None:
    with World(app) as world:
        handle = put(app)
        world.run_for(1)
        worker = Worker(app)
        (work,) = worker.taken()
        assert worker.complete(work, result='"' + "x" * 1_048_576 + '"') == "failed"
        assert "characters" in str(handle.row().error)
