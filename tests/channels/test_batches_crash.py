"""Batches in a server that dies: every line once, whatever the moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from headway.apps.channels.batches.files import Writer
from headway.apps.channels.batches.life import Batches
from tests.channels.batch_world import ChannelsWorld, channels_world, names, refusal, well


@pytest.fixture
def world() -> Iterator[ChannelsWorld]:
    with channels_world() as started:
        yield started


class Death:
    """Ends whatever calls this for the n-th time, before it does anything or right after."""

    def __init__(self, call: Callable[..., Any], at: int, *, after: bool) -> None:
        self._call = call
        self._left = at
        self._after = after
        self.came = False

    def __get__(self, thing: object, _owner: type) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            self._left -= 1
            dies = self._left == 0
            if dies and not self._after:
                self.came = True
                raise MemoryError("the process is gone")
            found = self._call(thing, *values)
            if dies:
                self.came = True
                raise MemoryError("the process is gone")
            return found

        return call


def died_and_came_back(world: ChannelsWorld, death: Death) -> bool:
    """False: the moment never came."""
    for _ in range(40):
        world.run_for(0.25)
        if death.came:
            world.restart()
            return True
    return False


def all_is_well(world: ChannelsWorld, batch: str, many: int) -> None:
    done = world.until(batch, "completed", within_s=600)
    assert world.answers(batch) == names(many)
    assert done["request_counts"] == {"total": many, "completed": many, "failed": 0}
    assert world.count("jobs", "type = 'llm.line'") == many
    assert world.count("llm_bills") == many
    assert world.count("llm_batches") == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_dying_at_each_step_of_planning(monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    """Around the commit that counts the lines, and around each that makes jobs of some."""
    monkeypatch.setattr("headway.apps.channels.batches.planning.CHUNK", 5)
    turn = Batches.turn
    for step in range(1, 6):
        with channels_world() as world:
            world.channel(at_once=5)
            batch = world.batch(20)
            monkeypatch.setattr(Batches, "turn", death := Death(turn, step, after=after))
            assert died_and_came_back(world, death)
            monkeypatch.setattr(Batches, "turn", turn)
            all_is_well(world, batch, 20)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_dying_at_each_step_of_writing_the_files(
    monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr("headway.apps.channels.batches.files.PART", 1_000)
    flush = Writer.flush
    for step in range(1, 5):
        with channels_world() as world:
            world.channel(at_once=20)
            batch = world.batch(20)
            monkeypatch.setattr(Writer, "flush", death := Death(flush, step, after=after))
            assert died_and_came_back(world, death)
            assert world.seen(batch)["output_file_id"] is None  # none of it is seen
            monkeypatch.setattr(Writer, "flush", flush)
            all_is_well(world, batch, 20)
            assert world.count("llm_files") == 2


@pytest.mark.parametrize("seed", range(8))
def test_dying_at_any_moment(world: ChannelsWorld, seed: int) -> None:
    """What was on its way is asked again; an answer that was seen is billed once."""
    random = Random(seed)
    world.channel(at_once=5)
    world.provider.says = lambda text, time: (
        refusal(503, retry_after="1") if time == 1 and text.endswith("7") else well(text)
    )
    batch = world.batch(60)
    for _ in range(5):
        world.run_for(random.uniform(0.2, 4.0))
        world.restart()
    all_is_well(world, batch, 60)
    assert set(world.provider.answered) == set(names(60))


def test_dying_while_it_is_cancelled(world: ChannelsWorld) -> None:
    world.channel(at_once=2)
    batch = world.batch(30)
    world.run_for(1.5)
    world.cancel(batch)
    world.restart()  # before the job that cancels the lines has begun
    done = world.until(batch, "cancelled", within_s=60)
    assert len(world.answers(batch)) + len(world.faults(batch)) == 30
    assert done["request_counts"]["completed"] == len(world.answers(batch)) < 10
    assert set(world.faults(batch).values()) == {"batch_cancelled"}


def test_its_window_ends_while_nothing_runs(world: ChannelsWorld) -> None:
    world.channel(at_once=2)
    batch = world.batch(30, window_s=60)
    world.run_for(3.5)
    world.crash()
    world.clock.at += 3_600
    world.restart()
    done = world.until(batch, "expired", within_s=60)
    assert done["request_counts"] == {"total": 30, "completed": 6, "failed": 24}
    assert world.faults(batch) == dict.fromkeys(names(30)[6:], "batch_expired")


def test_a_line_that_an_operator_starts_again_is_waited_for(world: ChannelsWorld) -> None:
    world.channel(at_once=1)
    world.provider.says = lambda text, time: (
        refusal(400) if time == 1 and text == "line-1" else well(text)
    )
    batch = world.batch(4)
    world.run_for(2.5)
    ((id,),) = world.app.store.rows("select id from jobs where state = 'failed'")
    controls = world.app.engine.brain.controls  # type: ignore[union-attr]
    world.channels.batches.turn(lambda now: controls.retry(id, now))
    done = world.until(batch, "completed")
    assert world.answers(batch) == names(4)
    assert done["request_counts"] == {"total": 4, "completed": 4, "failed": 0}


def test_a_plan_that_an_operator_cancels_ends_its_batch(world: ChannelsWorld) -> None:
    world.channel()
    batch = world.batch(4)
    ((id,),) = world.app.store.rows("select id from jobs where type = 'llm.plan'")
    controls = world.app.engine.brain.controls  # type: ignore[union-attr]
    world.channels.batches.turn(lambda now: controls.cancel(id, now))
    done = world.until(batch, "failed", within_s=5)
    assert done["errors"]["data"][0]["code"] == "server_error"
    assert world.provider.calls == []


def test_lines_wait_over_a_restart_for_a_channel_of_their_model(world: ChannelsWorld) -> None:
    world.channel(at_once=2)
    batch = world.batch(12)
    world.run_for(2.5)
    directory = world.channels.directory
    world.channels.batches.turn(lambda now: directory.remove("c1", now))
    world.run_for(5)
    world.restart()
    grants = world.count("events", "event = 'grant'")
    world.run_for(60)
    assert world.count("events", "event = 'grant'") == grants  # nobody goes where nothing is
    world.channel(at_once=2)
    all_is_well(world, batch, 12)


@pytest.mark.parametrize("ended", ["cancelled", "failed"])
def test_files_that_could_not_be_written_are_written_later(
    world: ChannelsWorld, monkeypatch: pytest.MonkeyPatch, ended: str
) -> None:
    def no_room(*_: Any) -> None:
        raise OSError("no space left on device")

    world.channel()
    batch = world.batch(4)
    with monkeypatch.context() as full:
        full.setattr(Writer, "begin", no_room)
        world.until(batch, "finalizing", within_s=60)
        if ended == "cancelled":
            steer(world, "llm.assemble", "cancel")
        world.run_for("2h")
        assert world.count("jobs", f"type = 'llm.assemble' and state = '{ended}'") == 1
        assert world.seen(batch)["status"] == "finalizing"
    world.until(batch, "completed", within_s=3_700)
    assert world.answers(batch) == names(4)


def test_cancelling_is_not_given_up_because_its_job_is_cancelled(world: ChannelsWorld) -> None:
    world.channel(at_once=1)
    world.provider.takes_s = 100
    batch = world.batch(20)
    world.run_for(10)
    world.cancel(batch)
    steer(world, "llm.cancel", "cancel")
    world.until(batch, "cancelled", within_s=300)
    assert len(world.provider.calls) <= 3


def steer(world: ChannelsWorld, type: str, verb: str) -> None:
    ((id,),) = world.app.store.rows("select id from jobs where type = ?", (type,))
    controls = world.app.engine.brain.controls  # type: ignore[union-attr]
    world.channels.batches.turn(lambda now: getattr(controls, verb)(id, now))
