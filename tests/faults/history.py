"""What must be true of a history: what producers were told, what handlers saw, what is stored.

Each rule is a function from the three to a list of complaints, and asks no database.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from headway.core.lifecycle import TERMINAL, TRANSITIONS, Event, State
from headway.store.records import Event as EventRow

ENDS = frozenset(state.value for state in TERMINAL)


class Asked(NamedTuple):
    """One enqueue of jobs that belong together. `answer`: stored, refused or unknown."""

    names: tuple[str, ...]
    answer: str
    ids: tuple[int, ...] = ()


class Began(NamedTuple):
    job: int
    fence: int
    process: str


class Ended(NamedTuple):
    job: int
    fence: int
    process: str


class Row(NamedTuple):
    """A job as it is stored."""

    id: int
    name: str
    state: str
    fence: int


Entry = Asked | Began | Ended


class Journal:
    """What happened, in order, from any thread."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._lock = threading.Lock()

    def write(self, entry: Entry) -> None:
        with self._lock:
            self.entries.append(entry)

    def asked(self, answer: str) -> list[Asked]:
        with self._lock:
            entries = list(self.entries)
        return [each for each in entries if isinstance(each, Asked) and each.answer == answer]


class History(NamedTuple):
    journal: list[Entry]
    rows: list[Row]
    events: list[EventRow]
    pool: int  # how many may run at once

    @property
    def asked(self) -> list[Asked]:
        return [each for each in self.journal if isinstance(each, Asked)]

    def trails(self) -> dict[int, list[EventRow]]:
        trails: dict[int, list[EventRow]] = defaultdict(list)
        for event in self.events:
            if event.job is not None and event.after is not None:
                trails[event.job].append(event)
        return trails


Rule = Callable[[History], Iterator[str]]


def check(history: History) -> None:
    complaints = [each for rule in RULES for each in rule(history)]
    shown = "\n".join(complaints[:20])
    assert not complaints, f"{len(complaints)} complaints:\n{shown}"


def nothing_acknowledged_is_lost(history: History) -> Iterator[str]:
    stored = {row.id: row.name for row in history.rows}
    for each in history.asked:
        if each.answer == "stored":
            for id, name in zip(each.ids, each.names, strict=True):
                if stored.get(id) != name:
                    yield f"{name} was acknowledged as job {id}, which is {stored.get(id)}"


def nothing_refused_is_stored(history: History) -> Iterator[str]:
    stored = {row.name for row in history.rows}
    for each in history.asked:
        if each.answer == "refused":
            for name in stored.intersection(each.names):
                yield f"{name} was refused, and is there"


def what_belongs_together_is_there_or_not(history: History) -> Iterator[str]:
    stored = {row.name for row in history.rows}
    for each in history.asked:
        there = len(stored.intersection(each.names))
        if there not in (0, len(each.names)):
            yield f"{there} of {each.names} are there"


def nothing_is_stored_twice(history: History) -> Iterator[str]:
    for name, times in Counter(row.name for row in history.rows).items():
        if times > 1:
            yield f"{name} is there {times} times"


def nothing_comes_from_nowhere(history: History) -> Iterator[str]:
    asked = {name for each in history.asked for name in each.names}
    for row in history.rows:
        if row.name not in asked:
            yield f"nobody asked for {row.name}"


def all_is_drained(history: History) -> Iterator[str]:
    for row in history.rows:
        if row.state != State.COMPLETED.value:
            yield f"job {row.id} is {row.state}"


def fences_rise_as_handlers_see_them(history: History) -> Iterator[str]:
    last: dict[int, int] = {}
    for entry in history.journal:
        if isinstance(entry, Began):
            if entry.fence <= last.get(entry.job, 0):
                yield f"job {entry.job} began with fence {entry.fence} after {last[entry.job]}"
            last[entry.job] = entry.fence


def fences_rise_as_they_are_granted(history: History) -> Iterator[str]:
    last = 0
    for event in history.events:
        if event.event == Event.GRANT.value:
            if event.fence <= last:
                yield f"fence {event.fence} was granted after {last}"
            last = event.fence


def who_runs_was_granted(history: History) -> Iterator[str]:
    granted = {
        (event.job, event.fence) for event in history.events if event.event == Event.GRANT.value
    }
    for entry in history.journal:
        if isinstance(entry, Began) and (entry.job, entry.fence) not in granted:
            yield f"job {entry.job} ran with fence {entry.fence}, which was never granted"


def no_job_runs_twice_at_once(history: History) -> Iterator[str]:
    """Two runs may overlap only if the first had lost its lease when the second was granted."""
    given_back = {
        (event.job, event.fence)
        for event in history.events
        if event.before == State.RUNNING.value and event.event != Event.OK.value
    }
    at_work: dict[int, set[Began]] = defaultdict(set)
    for entry in history.journal:
        if isinstance(entry, Began):
            for other in at_work[entry.job]:
                if (other.job, other.fence) not in given_back or other.process == entry.process:
                    yield f"job {entry.job} runs as {other} and as {entry} at once"
            at_work[entry.job].add(entry)
        elif isinstance(entry, Ended):
            at_work[entry.job].discard(Began(*entry))


def what_counts_was_done_by_the_last_holder(history: History) -> Iterator[str]:
    ran = {(each.job, each.fence) for each in history.journal if isinstance(each, Ended)}
    fences = {row.id: row.fence for row in history.rows}
    for event in history.events:
        if event.event == Event.OK.value and event.job is not None:
            if (event.job, event.fence) not in ran:
                yield f"job {event.job} is done with fence {event.fence}, but did not run so"
            if fences.get(event.job) != event.fence:
                yield f"job {event.job} is done with fence {event.fence}, not with its last"


def the_pool_is_never_exceeded(history: History) -> Iterator[str]:
    inside: set[tuple[int, int]] = set()
    for entry in history.journal:
        if isinstance(entry, Began):
            inside.add((entry.job, entry.fence))
            if len(inside) > history.pool:
                yield f"{len(inside)} are in a pool of {history.pool} when {entry} begins"
        elif isinstance(entry, Ended):
            inside.discard((entry.job, entry.fence))


def events_have_no_gaps(history: History) -> Iterator[str]:
    for expected, event in enumerate(history.events, start=1):
        if event.id != expected:
            yield f"event {event.id} is where {expected} should be"
            return


def every_trail_is_legal(history: History) -> Iterator[str]:
    """One submit, then what may follow, and an end after the last grant."""
    trails = history.trails()
    for row in history.rows:
        trail = trails.get(row.id, [])
        names = [event.event for event in trail]
        if names.count("submit") != 1 or names[0] != "submit":
            yield f"job {row.id} has the trail {names}"
            continue
        yield from _illegal_steps(row, trail)
        ends = [event.event for event in trail if event.after in ENDS]
        if len(ends) != 1 or trail[-1].after != row.state:
            yield f"job {row.id} is {row.state}, after {names}"
    for id in trails.keys() - {row.id for row in history.rows}:
        yield f"job {id} has a trail, and is not there"


def _illegal_steps(row: Row, trail: list[EventRow]) -> Iterator[str]:
    state = trail[0].after
    for event in trail[1:]:
        legal = TRANSITIONS.get(State(event.before or ""), {}).get(Event(event.event))
        at_once = legal is State.PENDING and event.after == State.QUEUED.value
        if event.before != state or legal is None or not (at_once or event.after == legal.value):
            yield f"job {row.id} was {state}, then came {event}"
            return
        state = event.after


RULES: tuple[Rule, ...] = (
    nothing_acknowledged_is_lost,
    nothing_refused_is_stored,
    what_belongs_together_is_there_or_not,
    nothing_is_stored_twice,
    nothing_comes_from_nowhere,
    all_is_drained,
    fences_rise_as_handlers_see_them,
    fences_rise_as_they_are_granted,
    who_runs_was_granted,
    no_job_runs_twice_at_once,
    what_counts_was_done_by_the_last_holder,
    the_pool_is_never_exceeded,
    events_have_no_gaps,
    every_trail_is_legal,
)
