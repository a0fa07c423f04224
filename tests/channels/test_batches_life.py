"""What becomes of a batch, on virtual time: its lines, its files, its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headway.apps.channels.batches.life import WrongState
from headway.apps.channels.queue.calls import new_call
from tests.channels.batch_world import (
    CHAT,
    MODEL,
    ChannelsWorld,
    channels_world,
    jsonl,
    names,
    refusal,
    well,
)


@pytest.fixture
def world() -> Iterator[ChannelsWorld]:
    with channels_world() as started:
        yield started


def test_every_line_is_answered_and_stands_where_it_stood(world: ChannelsWorld) -> None:
    world.channel(at_once=3)
    batch = world.batch(20)
    assert world.seen(batch)["status"] == "validating"
    done = world.until(batch, "completed")
    assert world.answers(batch) == names(20)
    assert done["request_counts"] == {"total": 20, "completed": 20, "failed": 0}
    assert done["error_file_id"] is None  # a file that would be empty is not made
    assert done["created_at"] <= done["in_progress_at"] <= done["finalizing_at"]
    assert done["finalizing_at"] <= done["completed_at"]
    assert (done["failed_at"], done["expired_at"], done["cancelled_at"]) == (None, None, None)


def test_how_far_it_is_can_be_seen_while_it_runs(world: ChannelsWorld) -> None:
    world.channel(at_once=2)
    batch = world.batch(10)
    world.run_for(3.5)
    seen = world.seen(batch)
    assert seen["status"] == "in_progress"
    assert seen["request_counts"] == {"total": 10, "completed": 6, "failed": 0}
    assert seen["output_file_id"] is None


def test_each_line_that_went_wrong_says_how(world: ChannelsWorld) -> None:
    """400 is final, 500 is tried again, and 429 is no error at all."""
    world.channel()
    said = {
        "line-1": [refusal(400)] * 9,
        "line-2": [refusal(500), refusal(502), well("line-2")],
        "line-3": [refusal(429, retry_after="2")] * 6 + [well("line-3")],
        "line-4": [refusal(500)] * 9,
    }
    world.provider.says = lambda text, time: said[text][time - 1] if text in said else well(text)
    batch = world.batch(6)
    done = world.until(batch, "completed")
    assert world.answers(batch) == ["line-0", "line-2", "line-3", "line-5"]
    assert world.faults(batch) == {"line-1": 400, "line-4": 500}
    assert done["request_counts"] == {"total": 6, "completed": 4, "failed": 2}
    assert world.provider.answered["line-1"] == 1
    assert world.provider.answered["line-4"] == 5  # and then it was given up


def test_a_line_that_nobody_answers_says_why(world: ChannelsWorld) -> None:
    world.channel()

    def says(text: str, _time: int):  # type: ignore[no-untyped-def]
        if text == "line-1":
            raise ConnectionResetError("the provider hung up")
        return well(text)

    world.provider.says = says
    batch = world.batch(3)
    world.until(batch, "completed")
    (wrong,) = world.lines_of(world.seen(batch)["error_file_id"])
    assert wrong["custom_id"] == "line-1"
    assert wrong["response"] is None
    assert wrong["error"]["code"] == "failed"
    assert "the provider hung up" in wrong["error"]["message"]


def test_an_attempt_that_is_made_again_carries_the_same_mark(world: ChannelsWorld) -> None:
    world.channel()
    world.provider.says = lambda text, time: refusal(500) if time == 1 else well(text)
    world.until(world.batch(1), "completed")
    first, second = world.provider.marks
    assert first == second


# ---------------------------------------------------------------------- cancelling


def test_cancelling_gives_up_what_waits_and_keeps_what_runs(world: ChannelsWorld) -> None:
    world.channel(at_once=2)
    batch = world.batch(50)
    world.run_for(3.5)
    assert world.cancel(batch)["status"] == "cancelling"
    done = world.until(batch, "cancelled", within_s=10)
    assert world.answers(batch) == names(50)[:8]  # six were answered, and two on their way
    assert world.faults(batch) == dict.fromkeys(names(50)[8:], "batch_cancelled")
    assert done["request_counts"] == {"total": 50, "completed": 8, "failed": 42}
    assert done["cancelling_at"] is not None
    assert len(world.provider.calls) == 8


def test_a_line_that_runs_while_its_batch_is_cancelled_is_not_tried_again(
    world: ChannelsWorld,
) -> None:
    world.channel(at_once=1)
    world.provider.says = lambda _text, _time: refusal(500)
    batch = world.batch(3)
    world.run_for(0.5)
    world.cancel(batch)
    world.until(batch, "cancelled", within_s=10)
    assert set(world.faults(batch).values()) == {"batch_cancelled"}
    assert len(world.provider.calls) == 1


def test_cancelling_before_a_line_was_read(world: ChannelsWorld) -> None:
    world.channel()
    batch = world.batch(5)
    assert world.cancel(batch)["status"] == "cancelling"
    done = world.until(batch, "cancelled", within_s=5)
    assert (done["output_file_id"], done["error_file_id"]) == (None, None)
    assert done["request_counts"]["total"] == 0
    assert world.provider.calls == []


def test_cancelling_twice_is_the_same_as_once_and_an_end_is_final(world: ChannelsWorld) -> None:
    world.channel()
    batch = world.batch(5)
    world.run_for(0.5)
    world.cancel(batch)
    assert world.cancel(batch)["status"] == "cancelling"
    world.until(batch, "cancelled")
    with pytest.raises(WrongState):
        world.cancel(batch)
    assert world.seen(batch)["status"] == "cancelled"


# ---------------------------------------------------------------------- its window


def test_what_is_not_answered_within_the_window_is_given_up(world: ChannelsWorld) -> None:
    world.channel(at_once=1)
    batch = world.batch(100, window_s=60)
    done = world.until(batch, "expired", within_s=120)
    answered = world.answers(batch)
    assert answered == names(100)[: len(answered)]
    assert 55 <= len(answered) <= 61
    assert world.faults(batch) == dict.fromkeys(names(100)[len(answered) :], "batch_expired")
    counts = done["request_counts"]
    assert counts["completed"] + counts["failed"] == counts["total"] == 100
    assert done["expired_at"] >= done["expires_at"]


def test_a_line_that_is_refused_until_its_time_is_over_has_expired(world: ChannelsWorld) -> None:
    """Whatever the provider said last: it was to be asked again."""
    world.channel()
    refused = {"line-1": refusal(429, retry_after="20"), "line-2": refusal(500)}
    world.provider.says = lambda text, _time: refused.get(text) or well(text)
    batch = world.batch(3, window_s=60)
    world.until(batch, "expired", within_s=120)
    assert world.answers(batch) == ["line-0"]
    assert world.faults(batch) == {"line-1": "batch_expired", "line-2": "batch_expired"}


def test_a_batch_near_the_end_of_its_window_goes_before_other_work_of_its_tenant(
    world: ChannelsWorld,
) -> None:
    world.channel(at_once=1)
    world.batch(1_000, named="long")
    urgent = world.batch(20, named="urgent", window_s=600)
    begun = world.now
    world.until(urgent, "completed", within_s=600)
    asked = world.provider.asked("urgent")
    assert len(asked) == 20
    assert asked[0] - begun >= 0.75 * 600  # not before it was near
    between = [at for at in world.provider.asked("long") if asked[0] <= at <= asked[-1]]
    assert between == []  # and then nothing else goes


# ---------------------------------------------------------------------- others


def test_a_large_batch_does_not_hold_up_the_small_one_of_another_tenant(
    world: ChannelsWorld,
) -> None:
    world.channel(at_once=4)
    large = world.batch(2_000, tenant="large", named="large")
    world.run_for(10)
    small = world.batch(10, tenant="small", named="small")
    before = len(world.provider.asked("large"))
    world.until(small, "completed", within_s=60)
    meanwhile = len(world.provider.asked("large")) - before
    # One for one, and what was on its way.
    assert meanwhile <= 10 + 2 * 4
    assert world.seen(large)["status"] == "in_progress"


def test_lines_do_not_run_into_a_channel_that_is_removed(world: ChannelsWorld) -> None:
    """There are more of them than can move elsewhere in one turn."""
    world.channel(at_once=1)
    world.provider.takes_s = 1_000
    world.batch(1_200)
    world.run_for(5)
    directory = world.channels.directory
    world.channels.batches.turn(lambda now: directory.remove("c1", now))
    world.run_for(100)
    assert world.count("events", "event = 'grant' and job in (select id from jobs "
                       "where type = 'llm.line')") == 1  # fmt: skip
    world.provider.takes_s = 0.0
    world.channel(at_once=500)
    world.run_for(20)
    assert world.count("llm_answers") >= 1_199


# ---------------------------------------------------------------------- what is kept


def test_answers_go_when_they_stand_in_files_and_files_when_their_time_is_over(
    world: ChannelsWorld,
) -> None:
    world.channel()
    batch = world.batch(10)
    done = world.until(batch, "completed")
    world.run_for(5)
    assert world.count("llm_answers") == 0
    assert world.count("llm_files") == 2
    world.run_for("29d")
    assert world.answers(batch) == names(10)
    world.run_for("3d")
    assert world.count("llm_files") == world.count("llm_file_parts") == 0
    assert world.seen(batch) == done  # the batch itself is still known
    assert world.count("llm_bills") == 10


def test_the_input_of_a_batch_that_runs_is_kept(world: ChannelsWorld) -> None:
    world.channel(at_once=1)
    batch = world.batch(3, window_s=7 * 86_400)
    world.provider.takes_s = 1_000
    file = world.seen(batch)["input_file_id"]
    assert world.channels.batches.turn(
        lambda now: world.channels.batches.give_up_file(file, now)
    ) == batch  # fmt: skip
    dropped = world.channels.files.drop_old(
        world.now + 40 * 86_400, world.channels.batches.turn(world.channels.batches.in_use)
    )
    assert dropped == 0
    world.until(batch, "completed")


def test_what_was_written_half_and_left_goes_after_a_day(world: ChannelsWorld) -> None:
    writer = world.channels.files.writer("file-half", "", "x", "batch", world.now)
    writer.add(b"some of it")
    writer.flush()
    assert world.channels.files.get("file-half", None) is None  # nobody sees it
    world.restart()
    world.run_for("3d")
    assert world.count("llm_files") == world.count("llm_file_parts") == 0


def test_the_answer_to_a_single_call_is_kept_as_long_as_its_job(world: ChannelsWorld) -> None:
    """No file and no batch is needed for that to be looked after."""
    world.channel()
    world.run_for(5)
    assert world.count("jobs") == 0  # as long as nothing is kept, nothing is to be done
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
    call = new_call(CHAT, body, tenant="", now=world.now, priority=5, deadline=None, callback=None,
                    host=None, metadata={})  # fmt: skip
    world.app.enqueue(call)
    world.run_for("3d")
    assert world.count("llm_answers") == 1
    world.app.store.purge(world.now + 1, world.now + 1, world.now)
    world.run_for("2d")
    assert world.count("llm_answers") == 0
    assert world.count("jobs", "type = 'llm.tidy' and finished_at is null") == 0
    world.app.enqueue(call)
    world.run_for(5)
    assert world.count("jobs", "type = 'llm.tidy' and finished_at is null") == 1


# ---------------------------------------------------------------------- long files


def test_lines_may_be_cut_anywhere_between_two_parts(
    world: ChannelsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.apps.channels.batches.files.PART", 1_001)
    text = "\n".join(["é" * length for length in range(1, 200)])
    file = world.upload(text)
    assert world.count("llm_file_parts") > 10
    assert "".join(world.channels.files.content(file)) == text
    lines = list(world.channels.files.lines(file, 10_000))
    assert lines == [(length, "é" * length) for length in range(1, 200)]


def test_lines_that_are_empty_or_too_long_are_told_apart(world: ChannelsWorld) -> None:
    text = "\ufeffa\r\n\n  \n" + "b" * 50 + "\nc"
    file = world.upload(text)
    assert list(world.channels.files.lines(file, 49)) == [(1, "a"), (4, None), (5, "c")]


def test_a_batch_of_many_parts(world: ChannelsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.apps.channels.batches.files.PART", 2_000)
    monkeypatch.setattr("headway.apps.channels.batches.planning.CHUNK", 7)
    monkeypatch.setattr("headway.apps.channels.batches.assembling.PAGE", 3)
    monkeypatch.setattr("headway.apps.channels.batches.assembling.MANY", 3)
    world.channel(at_once=10)
    world.provider.says = lambda text, _time: refusal(400) if text.endswith("3") else well(text)
    batch = world.batch(jsonl(100))
    world.run_for(2.5)
    world.cancel(batch)
    world.until(batch, "cancelled")
    well_ones = [name for name in names(100)[:30] if not name.endswith("3")]
    assert world.answers(batch) == well_ones
    faults = world.faults(batch)
    assert len(faults) == 100 - len(well_ones)
    assert [name for name, said in faults.items() if said == 400] == [
        "line-3",
        "line-13",
        "line-23",
    ]
