"""Every store: what a turn of the engine decided is written whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import DuplicateJob, HeadwayError
from headway.store import Store
from headway.store.records import (
    Job,
    NewJob,
    OnConflict,
    Progress,
    Receipt,
    Result,
    Schedule,
    SlotRow,
)
from tests.store.kit import (
    T0,
    Engine,
    Opener,
    all_jobs,
    ended,
    event,
    granted,
    job,
    mark_of,
    moved,
    put,
    put_one,
    rows_of,
    unique,
)

NIGHTLY = Schedule(
    "nightly", "report", "[]", '{"cron": "0 3 * * *"}', "{}", 0, 0, None, T0, 0, T0, "code"
)


def the_job(store: Store, number: int) -> Job:
    found = store.job(number)
    assert found is not None
    return found


# Jobs that move


def test_a_moved_job_stands_where_the_engine_put_it(engine: Engine) -> None:
    store = engine.store
    number, untouched = put(store, job(), job())

    engine.commit(
        moved=[
            moved(
                number,
                "running",
                since=T0 + 1,
                not_before=T0 + 2,
                priority=3,
                pin=4,
                fence=5,
                upstream="x.com",
                granted_at=T0 + 6,
                lease_end=T0 + 7,
                waited_s=0.5,
                tries="[1,0,0,null]",
                asked="cancel",
                error="it was slow",
            )
        ]
    )

    seen = the_job(store, number)
    assert (seen.state, seen.since, seen.not_before, seen.priority) == (
        "running", T0 + 1, T0 + 2, 3,
    )  # fmt: skip
    assert (seen.pin, seen.fence, seen.upstream, seen.granted_at) == (4, 5, "x.com", T0 + 6)
    assert (seen.waited_s, seen.tries, seen.asked) == (0.5, "[1,0,0,null]", "cancel")
    assert (seen.finished_at, seen.error) == (None, "it was slow")
    [loaded] = store.load_some([number])
    assert loaded.lease_end == T0 + 7
    assert the_job(store, untouched).state == "queued"


def test_a_move_without_an_error_keeps_the_one_before(engine: Engine) -> None:
    number = put_one(engine.store)
    engine.commit(moved=[moved(number, "pending", error="refused")])

    engine.commit(moved=[moved(number, "queued")])

    assert the_job(engine.store, number).error == "refused"


def test_many_jobs_move_at_once(engine: Engine) -> None:
    numbers = put(engine.store, *[job()] * 300)

    engine.commit(moved=[moved(number, fence=number + 1) for number in numbers])

    assert [the_job(engine.store, number).fence for number in numbers] == [
        number + 1 for number in numbers
    ]


def test_a_job_that_moved_twice_stands_where_it_went_last(engine: Engine) -> None:
    number = put_one(engine.store)

    engine.commit(moved=[moved(number, "running", fence=1), moved(number, "pending", fence=2)])

    seen = the_job(engine.store, number)
    assert (seen.state, seen.fence) == ("pending", 2)


def test_moving_a_job_that_is_gone_is_harmless(engine: Engine) -> None:
    engine.commit(moved=[moved(7)], ended=[ended(8)])

    assert all_jobs(engine.store) == []


def test_an_ended_job_says_when_how_and_why(engine: Engine) -> None:
    number = put_one(engine.store)
    engine.commit(moved=[moved(number, "running", granted_at=T0, lease_end=T0 + 60)])

    engine.commit(ended=[ended(number, "failed", T0 + 5, "[3,0,0,null]", "it broke")])

    seen = the_job(engine.store, number)
    assert (seen.state, seen.since, seen.finished_at) == ("failed", T0 + 5, T0 + 5)
    assert (seen.tries, seen.error, seen.granted_at) == ("[3,0,0,null]", "it broke", T0)
    assert list(engine.store.load_open(mark_of(engine.store))) == []


def test_a_job_may_move_and_end_in_one_turn(engine: Engine) -> None:
    number = put_one(engine.store)

    engine.commit(moved=[moved(number, "running")], ended=[ended(number, at=T0 + 1)])

    seen = the_job(engine.store, number)
    assert (seen.state, seen.finished_at) == ("completed", T0 + 1)


def test_a_granted_job_runs_and_keeps_the_rest(engine: Engine) -> None:
    number = put_one(engine.store, priority=3, not_before=T0 - 5)
    engine.commit(moved=[moved(number, "queued", priority=3, pin=4, tries="[1]", asked="pause")])

    engine.commit(granted=[granted(number, at=T0 + 1, fence=7, upstream="x.com")])

    seen = the_job(engine.store, number)
    assert (seen.state, seen.since, seen.granted_at) == ("running", T0 + 1, T0 + 1)
    assert (seen.fence, seen.upstream, seen.waited_s, seen.asked) == (7, "x.com", 0.5, None)
    assert (seen.priority, seen.pin, seen.tries) == (3, 4, "[1]")
    assert [each.lease_end for each in engine.store.load_some([number])] == [T0 + 61]


def test_a_completed_job_is_over_and_keeps_the_rest(engine: Engine) -> None:
    number = put_one(engine.store)
    engine.commit(moved=[moved(number, "pending", tries="[1]", error="it was slow")])
    engine.commit(granted=[granted(number, fence=7)])

    engine.commit(completed=[(number, T0 + 9)])

    seen = the_job(engine.store, number)
    assert (seen.state, seen.since, seen.finished_at) == ("completed", T0 + 9, T0 + 9)
    assert (seen.error, seen.fence, seen.granted_at, seen.tries) == (None, 7, T0, "[1]")
    assert list(engine.store.load_open(mark_of(engine.store))) == []


def test_a_reopened_job_is_open_again(engine: Engine) -> None:
    number = put_one(engine.store)
    engine.commit(ended=[ended(number, "failed", error="it broke")])

    engine.commit(reopened=[number], moved=[moved(number, "pending")])

    seen = the_job(engine.store, number)
    assert (seen.state, seen.finished_at, seen.error) == ("pending", None, None)
    assert [each.id for each in engine.store.load_open(mark_of(engine.store))] == [number]


def test_a_freed_key_is_no_longer_shown(engine: Engine) -> None:
    number = put_one(engine.store, unique=unique("k"))

    engine.commit(freed=[number])

    assert the_job(engine.store, number).unique_key is None


def test_a_released_job_waits_for_nobody(engine: Engine) -> None:
    store = engine.store
    [first] = put(store)
    second, third = put(store, job(after=(first,)), job(after=(first,)))

    engine.commit(released=[second])

    assert store.waits() == [(third, first)]
    assert [each.waits for each in store.load_some([second, third])] == [0, 1]


def test_jobs_of_a_batch_are_inserted_with_it(engine: Engine) -> None:
    [first] = put(engine.store)

    engine.commit(ended=[ended(first)], jobs=[job(f"[{each}]") for each in range(6)])

    later = all_jobs(engine.store)[1:]
    assert [engine.store.payload(number) for number in later] == [f"[{n}]" for n in range(6)]


def test_an_occurrence_of_a_batch_is_claimed_once(engine: Engine) -> None:
    engine.commit(jobs=[job(occurrence="n@1")])
    engine.commit(jobs=[job(occurrence="n@1"), job(occurrence="n@2")])

    assert len(all_jobs(engine.store)) == 2


def test_a_key_freed_by_a_batch_is_free_for_its_jobs(engine: Engine) -> None:
    first = put_one(engine.store, unique=unique("k"))

    engine.commit(freed=[first], jobs=[job(unique=unique("k", OnConflict.REJECT))])

    assert len(all_jobs(engine.store)) == 2


# The audit trail


def test_events_come_back_in_order_and_with_numbers(engine: Engine) -> None:
    number = put_one(engine.store)
    rows = [
        event(number, "grant", at=T0, before="queued", after="running", fence=1),
        event(None, "closed", at=T0 + 1, detail='{"s": 3}', subject="upstream/x.com"),
        event(number, "ok", at=T0 + 2, before="running", after="completed", fence=1),
    ]

    engine.commit(events=rows)

    events = engine.store.events(0, 10)
    assert [each.id for each in events] == [1, 2, 3]
    assert rows_of(events) == rows


def test_event_numbers_have_no_gaps_even_when_commits_fail(
    engine: Engine, open_store: Opener
) -> None:
    taken = job(unique=unique("k", OnConflict.REJECT))
    put(engine.store, taken)
    for _ in range(3):
        engine.commit(events=[event(), event()])
        with pytest.raises(DuplicateJob):
            engine.commit(events=[event()] * 5, jobs=[taken])
    engine.store.close()
    reopened = open_store()
    Engine(reopened).commit(events=[event()])

    assert [each.id for each in reopened.events(0, 100)] == [1, 2, 3, 4, 5, 6, 7]


sizes = st.lists(st.integers(0, 5), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(sizes)
def test_event_numbers_never_have_gaps(engine: Engine, sizes: list[int]) -> None:
    _, last = engine.store.event_range()
    for size in sizes:
        engine.commit(events=[event()] * size)

    new = [each.id for each in engine.store.events(last, 1_000)]
    assert new == list(range(last + 1, last + 1 + sum(sizes)))


# What belongs to a job


def test_the_last_result_holds(engine: Engine) -> None:
    number = put_one(engine.store)
    assert engine.store.result(number) is None

    engine.commit(results=[(number, '{"a": 1}', T0 + 60)])
    assert engine.store.result(number) == Result('{"a": 1}', T0 + 60)

    engine.commit(results=[(number, "1", T0), (number, "2", T0 + 1)])
    assert engine.store.result(number) == Result("2", T0 + 1)


def test_the_last_progress_holds(engine: Engine) -> None:
    number = put_one(engine.store)
    assert engine.store.progress(number) is None

    engine.commit(progress=[(number, 1, 10, "one", T0), (number, 2.5, None, "two", T0 + 1)])

    assert engine.store.progress(number) == Progress(2.5, None, "two", T0 + 1)


def test_the_last_checkpoint_holds(engine: Engine) -> None:
    number = put_one(engine.store)
    assert engine.store.checkpoint(number) is None

    engine.commit(checkpoints=[(number, "[1]", T0)])
    engine.commit(checkpoints=[(number, "[2]", T0), (number, "[3]", T0 + 1)])

    assert engine.store.checkpoint(number) == "[3]"


def test_logs_add_up_in_order(engine: Engine) -> None:
    number, another = put(engine.store, job(), job())

    engine.commit(logs=[(number, T0, "info", "one"), (another, T0, "info", "elsewhere")])
    engine.commit(logs=[(number, T0, "error", "two\nlines"), (number, T0 - 1, "info", "")])

    assert engine.store.logs(number) == [
        (T0, "info", "one"),
        (T0, "error", "two\nlines"),
        (T0 - 1, "info", ""),
    ]


# What is known by name: the last row of a name counts, and one that ends in None takes it away.


def test_a_process_is_known_until_it_is_gone(engine: Engine) -> None:
    engine.commit(processes=[(1, 100, T0), (2, 200, T0)])
    assert sorted(engine.store.processes()) == [(1, 100, T0), (2, 200, T0)]

    engine.commit(processes=[(1, None, None), (2, 201, T0 + 1)])

    assert engine.store.processes() == [(2, 201, T0 + 1)]


def test_a_gate_keeps_what_it_was_told_until_it_is_gone(engine: Engine) -> None:
    engine.commit(gates=[("upstream", "x", "", "{}"), ("upstream", "x", "acme", "[1]")])
    assert sorted(engine.store.gates()) == [
        ("upstream", "x", "", "{}"),
        ("upstream", "x", "acme", "[1]"),
    ]

    engine.commit(gates=[("upstream", "x", "", None), ("upstream", "x", "acme", "[2]")])

    assert engine.store.gates() == [("upstream", "x", "acme", "[2]")]


def test_a_setting_holds_until_it_is_gone(engine: Engine) -> None:
    engine.commit(settings=[("cap", "x", "1", T0), ("cap", "y", "2", T0)])
    engine.commit(settings=[("cap", "x", None, T0), ("cap", "y", "3", T0 + 1)])

    assert engine.store.settings() == [("cap", "y", "3", T0 + 1)]


KEYED = {
    "processes": ((1, 100, T0), (1, None, None)),
    "gates": (("upstream", "x", "", "{}"), ("upstream", "x", "", None)),
    "settings": (("cap", "x", "1", T0), ("cap", "x", None, T0)),
}


@pytest.mark.parametrize("name", KEYED)
def test_gone_and_back_in_one_turn_is_there(engine: Engine, name: str) -> None:
    there, gone = KEYED[name]

    engine.commit(**{name: [there, gone, there]})

    assert getattr(engine.store, name)() == [there]


@pytest.mark.parametrize("name", KEYED)
def test_there_and_gone_in_one_turn_is_gone(engine: Engine, name: str) -> None:
    there, gone = KEYED[name]

    engine.commit(**{name: [gone, there, gone]})

    assert getattr(engine.store, name)() == []


def test_a_schedule_is_kept_as_it_is(engine: Engine) -> None:
    engine.commit(schedules=[NIGHTLY])

    assert engine.store.schedules() == [NIGHTLY]


def test_a_schedule_changes_but_not_when_it_was_created(engine: Engine) -> None:
    engine.commit(schedules=[NIGHTLY])
    changed = NIGHTLY._replace(
        type="digest",
        args="[1]",
        rule='{"every": 60}',
        options='{"priority": 1}',
        paused=1,
        strikes=2,
        last_due_at=T0,
        next_due_at=None,
        missed=3,
        source="operator",
    )

    engine.commit(schedules=[changed._replace(created_at=T0 + 99)])

    assert engine.store.schedules() == [changed]


def test_a_schedule_that_is_gone_is_gone(engine: Engine) -> None:
    engine.commit(schedules=[NIGHTLY, NIGHTLY._replace(name="hourly")])

    engine.commit(schedules_gone=["nightly"])

    assert [each.name for each in engine.store.schedules()] == ["hourly"]


WISH = '{"tenant": "ip:1 \\" é \\u0000"}'
WAITING = SlotRow(7, "waiting", 0, None, WISH, T0, 0.0, 0.0, 0)
OWN = SlotRow(3, "granted", 2, "x.com", None, T0, T0 + 1, T0 + 61, 1)


def test_slots_wait_are_held_and_gone(engine: Engine) -> None:
    engine.commit(slots=[WAITING, OWN])
    assert engine.store.slots() == [OWN, WAITING]

    held = WAITING._replace(phase="granted", fence=9, upstream="x.com", granted_at=T0 + 5,
                            lease_end=T0 + 7)  # fmt: skip
    engine.commit(slots=[held])
    assert engine.store.slots() == [OWN, held]

    claimed = held._replace(lease_end=T0 + 65, claimed=1)
    engine.commit(slots=[claimed])
    assert engine.store.slots() == [OWN, claimed]

    engine.commit(slots_gone=[OWN.number])
    assert engine.store.slots() == [claimed]


def test_what_is_said_last_of_a_slot_in_a_batch_holds(engine: Engine) -> None:
    claimed = WAITING._replace(phase="granted", fence=9, claimed=1)
    unheard = claimed._replace(claimed=0)
    engine.commit(slots=[WAITING, claimed, unheard, OWN], slots_gone=[OWN.number])
    assert engine.store.slots() == [unheard]


def test_what_is_asked_for_may_change_but_not_since_when(engine: Engine) -> None:
    engine.commit(slots=[WAITING])
    engine.commit(slots=[WAITING._replace(wish="{}", created_at=T0 + 9, phase="reclaimed")])
    [row] = engine.store.slots()
    assert (row.wish, row.created_at, row.phase) == ("{}", T0, "reclaimed")


def test_totals_of_slots_are_kept_by_upstream(engine: Engine) -> None:
    engine.commit(slot_totals=[("x.com", 1, 0, 0.0), ("a.com", 2, 1, 0.5), ("", 1, 0, 0.0)])
    engine.commit(slot_totals=[("x.com", 3, 2, 7.25)])
    assert sorted(engine.store.slot_totals()) == [
        ("", 1, 0, 0.0),
        ("a.com", 2, 1, 0.5),
        ("x.com", 3, 2, 7.25),
    ]


# All or nothing


def everything(number: int) -> dict[str, Any]:
    """A batch with something in every list."""
    return {
        "fence": 9,
        "obeyed": [1],
        "moved": [moved(number, "running", fence=9)],
        "granted": [granted(number, fence=9)],
        "completed": [(number, T0)],
        "freed": [number],
        "events": [event(number)],
        "results": [(number, "1", T0)],
        "progress": [(number, 1, 2, "", T0)],
        "checkpoints": [(number, "[]", T0)],
        "logs": [(number, T0, "info", "line")],
        "processes": [(number, 100, T0)],
        "gates": [("upstream", "x", "", "{}")],
        "settings": [("cap", "x", "1", T0)],
        "schedules": [NIGHTLY],
        "slots": [OWN],
        "slot_totals": [("x.com", 1, 0, 0.0)],
    }


def all_that_is_there(store: Store, number: int) -> tuple[Any, ...]:
    return (
        store.job(number),
        store.commands(10),
        store.events(0, 10),
        store.result(number),
        store.progress(number),
        store.checkpoint(number),
        store.logs(number),
        store.processes(),
        store.gates(),
        store.settings(),
        store.schedules(),
        store.slots(),
        store.slot_totals(),
        all_jobs(store),
    )


class Impossible:
    """A batch of which the last thing fails, each in its own way."""

    taken = job(unique=unique("taken", OnConflict.REJECT))
    nameless: Any = NewJob(None, "{}", created_at=T0)  # type: ignore[arg-type]


@pytest.mark.parametrize("last", [Impossible.taken, Impossible.nameless], ids=["taken", "broken"])
def test_a_batch_that_fails_at_its_end_changes_nothing(
    store: Store, other: Store, last: NewJob
) -> None:
    number, _ = put(store, job(unique=unique("k")), job(unique=unique("taken")))
    store.command("pause", "7", None, T0)
    engine = Engine(store)
    before = all_that_is_there(store, number)

    with pytest.raises(HeadwayError):
        engine.commit(**everything(number), jobs=[job(), last])

    assert all_that_is_there(store, number) == before
    store.leave()
    assert other.enter(lambda: None)[1:3] == (0, "")


def test_the_same_batch_without_its_fault_changes_everything(store: Store) -> None:
    number, _ = put(store, job(unique=unique("k")), job(unique=unique("taken")))
    store.command("pause", "7", None, T0)
    engine = Engine(store)
    before = all_that_is_there(store, number)

    engine.commit(**everything(number), jobs=[job()])

    after = all_that_is_there(store, number)
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_an_engine_goes_on_after_a_batch_that_failed(engine: Engine) -> None:
    put(engine.store, Impossible.taken)
    with pytest.raises(DuplicateJob):
        engine.commit(jobs=[Impossible.taken])

    engine.commit(jobs=[job(occurrence="n@1")])

    assert engine.store.insert([job(occurrence="n@1")])[0].joined
    assert engine.store.insert([job()]) == [Receipt(all_jobs(engine.store)[-1])]
