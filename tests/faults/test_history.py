"""The checker accepts a good history, and notices each kind of fault."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.store.records import Event
from tests.faults import history as rules
from tests.faults.history import Asked, Began, Ended, Entry, History, Row, check


def event(id: int, job: int, name: str, before: str | None, after: str | None, fence: int) -> Event:
    return Event(id, float(id), job, name, before, after, fence, "", None)


ROWS = [Row(1, "a", "completed", 1), Row(2, "b", "completed", 3)]
EVENTS = [
    event(1, 1, "submit", None, "queued", 0),
    event(2, 2, "submit", None, "queued", 0),
    event(3, 1, "grant", "queued", "running", 1),
    event(4, 2, "grant", "queued", "running", 2),
    event(5, 1, "ok", "running", "completed", 1),
    event(6, 2, "lost", "running", "queued", 2),
    event(7, 2, "grant", "queued", "running", 3),
    event(8, 2, "ok", "running", "completed", 3),
]
JOURNAL: list[Entry] = [
    Asked(("a", "b"), "stored", (1, 2)),
    Asked(("never",), "refused"),
    Asked(("perhaps", "also"), "unknown"),
    Began(1, 1, "p"),
    Began(2, 2, "p"),
    Ended(1, 1, "p"),
    Began(2, 3, "q"),
    Ended(2, 3, "q"),
    Ended(2, 2, "p"),
]
GOOD = History(JOURNAL, ROWS, EVENTS, 2)


def test_a_good_history_passes() -> None:
    check(GOOD)


def with_journal(*more: Entry) -> History:
    return GOOD._replace(journal=[*JOURNAL, *more])


def with_row(*more: Row) -> History:
    return GOOD._replace(rows=[*ROWS, *more])


def without_event(id: int) -> History:
    return GOOD._replace(events=[each for each in EVENTS if each.id != id])


def with_event(new: Event) -> History:
    return GOOD._replace(events=[*EVENTS[: new.id - 1], new, *EVENTS[new.id :]])


FAULTS: list[tuple[Callable[[History], object], History]] = [
    (rules.nothing_acknowledged_is_lost, with_journal(Asked(("c",), "stored", (3,)))),
    (rules.nothing_acknowledged_is_lost, with_journal(Asked(("c",), "stored", (1,)))),
    (rules.nothing_refused_is_stored, with_row(Row(3, "never", "completed", 4))),
    (rules.what_belongs_together_is_there_or_not, with_row(Row(3, "also", "completed", 4))),
    (rules.nothing_is_stored_twice, with_row(Row(3, "a", "completed", 4))),
    (rules.nothing_comes_from_nowhere, with_row(Row(3, "ghost", "completed", 4))),
    (rules.all_is_drained, GOOD._replace(rows=[ROWS[0], Row(2, "b", "running", 3)])),
    (rules.all_is_drained, GOOD._replace(rows=[ROWS[0], Row(2, "b", "failed", 3)])),
    (rules.fences_rise_as_handlers_see_them, with_journal(Began(2, 3, "q"))),
    (rules.fences_rise_as_handlers_see_them, with_journal(Began(2, 1, "q"))),
    (
        rules.fences_rise_as_they_are_granted,
        with_event(event(7, 2, "grant", "queued", "running", 2)),
    ),
    (rules.who_runs_was_granted, with_journal(Began(2, 9, "q"))),
    # The first run was never given back, so both leases held.
    (
        rules.no_job_runs_twice_at_once,
        GOOD._replace(journal=[Began(1, 1, "p"), Began(1, 2, "q"), Ended(1, 1, "p")]),
    ),
    # One process knows when it has lost a lease, and does not begin before the first run is over.
    (rules.no_job_runs_twice_at_once, GOOD._replace(journal=[Began(2, 2, "p"), Began(2, 3, "p")])),
    (
        rules.what_counts_was_done_by_the_last_holder,
        GOOD._replace(journal=[each for each in JOURNAL if each != Ended(2, 3, "q")]),
    ),
    (
        rules.what_counts_was_done_by_the_last_holder,
        with_event(event(8, 2, "ok", "running", "completed", 2)),
    ),
    (rules.the_pool_is_never_exceeded, GOOD._replace(pool=1)),
    (rules.events_have_no_gaps, without_event(4)),
    (rules.events_have_no_gaps, GOOD._replace(events=[EVENTS[1], EVENTS[0], *EVENTS[2:]])),
    (rules.every_trail_is_legal, without_event(1)),
    (rules.every_trail_is_legal, without_event(7)),
    (rules.every_trail_is_legal, without_event(8)),
    (
        rules.every_trail_is_legal,
        GOOD._replace(events=[*EVENTS, event(9, 1, "submit", None, "queued", 0)]),
    ),
    (
        rules.every_trail_is_legal,
        GOOD._replace(events=[*EVENTS, event(9, 1, "ok", "running", "completed", 1)]),
    ),
    (
        rules.every_trail_is_legal,
        GOOD._replace(events=[*EVENTS, event(9, 7, "submit", None, "queued", 0)]),
    ),
]


@pytest.mark.parametrize(("rule", "bad"), FAULTS)
def test_each_fault_is_noticed_by_its_rule(
    rule: Callable[[History], list[str]], bad: History
) -> None:
    assert list(rule(bad))
    with pytest.raises(AssertionError, match="complaints"):
        check(bad)


def test_every_rule_has_a_fault_that_it_notices() -> None:
    assert {rule for rule, _ in FAULTS} == set(rules.RULES)
