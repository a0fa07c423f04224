"""One open job for each source that somebody wants refreshed, and never two.

The job that waits is the schedule. When it ends, however it ends, the next one is inserted by the
commit that ends it; there is no other place where a chain goes on, and none where it can break. A
change of the interval, or a wish to have it now, moves the job that is there. All of this happens
in the brain's turn, so nothing comes in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from headway.apps.feeds.model import Source, Status, error_text, hints_of
from headway.apps.feeds.pacing import (
    backoff_s,
    due_after_restart,
    next_refresh,
)
from headway.core import State, Ticket
from headway.core.change import Change
from headway.engine.brain import Brain
from headway.engine.tickets import names_text, number_in_key
from headway.store.records import NewJob, Unique

if TYPE_CHECKING:
    from headway.apps.feeds.register import Register

PREFIX = "feeds."  # of the types of jobs that are ours
REFRESH = "feeds.refresh"
LANE = "feeds"
KEY = "feed:"  # of a job, followed by the number of its source
# Whoever subscribed first is who a request is counted for, so that one with a thousand feeds on a
# site leaves room for others. Nobody signs in under such a name, so nobody can pause what others
# read, too.
COUNTED_FOR = "feeds:"
BY_CLOCK, BY_HAND = 5, 2  # priorities
AHEAD_S = 60.0  # by which the clock may have gone back, and nobody minds
WHY_NOT_TWICE = "the next refresh of this feed is in line already, and goes at once"
WHY_DROPPED = "nobody wants this feed refreshed any more"

# source, how its run ended, articles that were new, what went wrong, when
Heard = Callable[[int, State, int, str, float], None]


class Schedule:
    def __init__(self, register: Register) -> None:
        self._register = register
        self.brain: Brain  # from the moment that an engine is about to start
        self.jobs: dict[int, int] = {}  # the open job of each source
        self.heard: list[Heard] = []  # who hears, in the turn, that a run has ended
        self.found: dict[int, int] = {}  # new articles of runs that end in this turn
        # Jobs that are stored, but not taken in yet: when they are wanted, and how much.
        self._coming: dict[int, tuple[float, int] | None] = {}
        self._again: set[int] = set()  # wanted now, by somebody who came when the last run ended

    # ------------------------------------------------------------------ the engine's side

    def meet(self, brain: Brain) -> None:
        self.brain = brain
        self.jobs.clear()
        self.found.clear()
        self._coming.clear()
        self._again.clear()
        brain.loaded.append(self.loaded)

    def arrived(self, ticket: Ticket, now: float) -> None:
        """`JobType.arrived`."""
        number: Any = ticket.id
        source = source_of(ticket.key)
        wish = self._coming.pop(source, None)
        row = self._register.sources.get(source)
        by_hand = BY_HAND in (ticket.priority, None if wish is None else wish[1])
        if self.jobs.get(source, number) != number:
            self.brain.core.cancel(number, now, WHY_NOT_TWICE)
            if row is not None:
                self.want(row, now)  # as somebody did who has put it here, or retries it
            return
        if row is None or not (by_hand or self._register.is_wanted(row)):
            self.brain.core.cancel(number, now, WHY_DROPPED)
            self._tell(source, State.CANCELLED, 0, WHY_DROPPED, now)
            return
        self.jobs[source] = number
        self.brain.core.reroute(number, (row.host,), now)  # it may be old, and the source has moved
        if wish is not None:
            self._move(number, *wish, now)

    def ended(self, batch: int | None, change: Change, now: float) -> None:
        """`JobType.ended`: the one place where a chain goes on."""
        number: Any = change.ticket.id
        source = source_of(change.ticket.key)
        new = self.found.pop(source, 0)
        if self.jobs.get(source) != number:
            return  # one that was dropped
        del self.jobs[source]
        row = self._register.sources.get(source)
        error = ""
        if row is not None:
            if change.after is State.FAILED:
                error = error_text(change.detail) or row.error or "it failed"
                row = row._replace(
                    failures=row.failures + 1, error=error,
                    status=row.status if row.has_ended else Status.ERROR.value, tried_at=now,
                )  # fmt: skip
            self._follow(row, now)
        self._tell(source, change.after, new, error, now)

    def _tell(self, source: int, state: State, new: int, error: str, now: float) -> None:
        for hear in self.heard:
            hear(source, state, new, error, now)

    def _follow(self, row: Source, now: float) -> None:
        """Plan the next run of a source, if there is one."""
        if row.id in self._again:
            self._again.discard(row.id)
            self._enqueue(row, now, BY_HAND, now)
            self._coming[row.id] = (now, BY_HAND)
        elif self._register.is_wanted(row):
            following = next_refresh(
                str(row.id), self._register.interval_s(row), due_at=row.due_at, now=now,
                failures=row.failures, hints=hints_of(row.hints),
            )  # fmt: skip
            row = row._replace(due_at=following.due_at)
            self._enqueue(row, row.due_at, BY_CLOCK, now)
        self._register.put(row)

    def loaded(self, now: float) -> None:
        """All that was open is here again: each source that is wanted has its job, at a time at
        which not all others have theirs.
        """
        for row in list(self._register.sources.values()):
            if row.id not in self.jobs:
                if self._register.is_wanted(row):
                    self._start(row, self._late(row, now), now)
                continue
            ticket = self._ticket(row.id)
            if ticket is None:
                continue  # the last engine died while it ran, and that was once too often
            is_late = ticket.not_before <= now or _is_ahead(row, now)
            waits = ticket.state in (State.PENDING, State.QUEUED) and is_late
            at = self._late(row, now)
            if waits and ticket.priority == BY_CLOCK and at > now:
                self._move(self.jobs[row.id], at, BY_CLOCK, now)
                self._register.put(row._replace(due_at=at))

    def _late(self, row: Source, now: float) -> float:
        if row.tried_at is None:
            return now
        due_at = 0.0 if _is_ahead(row, now) else row.due_at
        return due_after_restart(str(row.id), self._register.interval_s(row), due_at, now)

    # ------------------------------------------------------------------ the feeds' side

    def begin(self, row: Source, now: float) -> None:
        """A source is wanted that was not, or in another way than before."""
        if row.id not in self.jobs and row.id not in self._coming:
            self._start(row, self._due_at(row, now), now)

    def want(self, row: Source, now: float) -> State | None:
        """Now, please. The state of its job; None: it is on its way."""
        if row.has_ended:
            row = self._register.revive(row)
        row = row._replace(due_at=now)
        self._register.put(row)
        if row.id in self._coming:
            self._coming[row.id] = (now, BY_HAND)
            return None
        number = self.jobs.get(row.id)
        if number is None:
            self._enqueue(row, now, BY_HAND, now)
            self._coming[row.id] = (now, BY_HAND)
            return None
        ticket = self._ticket(row.id)
        if ticket is None:
            self._again.add(row.id)
            return None
        if ticket.state is not State.RUNNING:
            self._move(number, now, BY_HAND, now)
        return ticket.state

    def replan(self, row: Source, now: float) -> None:
        """The interval is another one: the job that waits is moved, unless somebody asked for it
        by hand or it waits for another attempt.
        """
        number = self.jobs.get(row.id)
        at = self._due_at(row, now)
        if number is None:
            if row.id in self._coming:
                self._coming[row.id] = self._coming[row.id] or (at, BY_CLOCK)
                self._register.put(row._replace(due_at=at))
            return
        ticket = self._ticket(row.id)
        if ticket is None or ticket.state is not State.PENDING or ticket.tries is not None:
            return
        if ticket.priority == BY_CLOCK:
            self._register.put(row._replace(due_at=at))
            self._move(number, at, BY_CLOCK, now)

    def drop(self, source: int, now: float) -> None:
        """Nobody wants it any more. What runs may end, and is stopped if its source is gone; until
        then its key is taken, so it stays the one job of its source.
        """
        self._again.discard(source)
        if source in self._coming:
            self._coming[source] = None  # it is cancelled when it comes, unless somebody wants it
        ticket = self._ticket(source)
        if ticket is None:
            return
        number = self.jobs[source]
        if ticket.state is State.RUNNING:
            if source not in self._register.sources:
                self.brain.core.cancel(number, now, WHY_DROPPED)
            return
        del self.jobs[source]
        self.brain.core.cancel(number, now, WHY_DROPPED)
        self._tell(source, State.CANCELLED, 0, WHY_DROPPED, now)

    # ------------------------------------------------------------------ how

    def _ticket(self, source: int) -> Ticket | None:
        """Of its open job. None: it has none, or that has ended in this very turn."""
        return self.brain.core.tickets.get(self.jobs.get(source, 0))

    def _due_at(self, row: Source, now: float) -> float:
        """From what is known of the last visit; at once, if there was none."""
        if row.tried_at is None:
            return now
        at = min(row.tried_at, now) + backoff_s(self._register.interval_s(row), row.failures)
        retry_at = hints_of(row.hints).retry_at
        return max(now, at if retry_at is None else max(at, retry_at))

    def _start(self, row: Source, at: float, now: float) -> None:
        self._register.put(row._replace(due_at=at))
        self._enqueue(row, at, BY_CLOCK, now)

    def _enqueue(self, row: Source, at: float, priority: int, now: float) -> None:
        self._coming[row.id] = None
        self.brain.batch.jobs.append(
            NewJob(
                REFRESH, msgspec.json.encode({"source": row.id}).decode(), created_at=now,
                lane=LANE, tenant=COUNTED_FOR + self._register.payer(row.id),
                upstreams=names_text((row.host,)), key=f"{KEY}{row.id}", priority=priority,
                not_before=at, unique=Unique(f"{REFRESH}:{row.id}"),
            )
        )  # fmt: skip

    def _move(self, number: int, at: float, priority: int, now: float) -> None:
        core = self.brain.core
        ticket = core.tickets[number]
        if ticket.state is State.RUNNING:
            return
        core.prioritise(number, priority, now)
        core.reschedule(number, at, now)
        self.brain.ledger.touch(ticket)


def _is_ahead(row: Source, now: float) -> bool:
    """Whether the clock was set back: by what it says now, the last visit has yet to come."""
    return row.tried_at is not None and row.tried_at > now + AHEAD_S


def source_of(key: str | None) -> int:
    """The number of the source that a job visits; 0 if its key names none."""
    return number_in_key(key, KEY)
