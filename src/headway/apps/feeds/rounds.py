"""Rounds: many feeds that are refreshed together, or imported, and how far that is.

A round knows which of its feeds it still waits for. It hears how a run of their source ended in the
very turn in which it ends, so its counts are stored by the same commit: after a crash it goes on
where it was, and counts nothing twice. What fails is counted as failed; what is removed, paused or
cancelled meanwhile as skipped. So a round always ends.

All of this happens in the brain's turn. What the routes show is read from the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import Any, NamedTuple

import msgspec

from headway.apps.feeds.catalog import Name
from headway.apps.feeds.model import Source, Subscription
from headway.apps.feeds.register import Register
from headway.apps.feeds.round_rows import (
    COUNT_ROUND,
    COUNTS,
    DONE,
    DROP_ITEMS_OF_ROUND,
    DROP_ROUND,
    FAILED,
    IMPORT,
    SKIPPED,
    WAITING,
    ItemRow,
    Report,
    RoundRow,
)
from headway.apps.feeds.scheduling import BY_HAND
from headway.apps.feeds.tables import PUT_ROUND, PUT_ROUND_ITEM, ROUND_ITEMS, ROUNDS
from headway.core import State
from headway.engine import Engine
from headway.engine.brain import Brain
from headway.engine.loop_future import LoopFuture
from headway.engine.slots import Waiter
from headway.errors import HeadwayError
from headway.store import Store

AT_ONCE = 200  # feeds of one turn, so that nobody waits long for the brain
MOST_OPEN = 10  # rounds of one tenant
KEPT = 20  # rounds of one tenant that have ended
LONGEST_S = 2 * 86_400.0  # a site may ask to be left alone for a day


class TooManyRounds(HeadwayError):
    """So many rounds of this tenant are under way already; wait until one of them has ended."""


@dataclass(slots=True)
class Round:
    """One that has not ended."""

    row: RoundRow
    report: Report
    growing: bool  # more feeds are added to it
    waiting: dict[str, int] = field(default_factory=dict)  # feeds, and what they lead to
    waiters: list[Waiter] = field(default_factory=list)  # who wants to hear of its end

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def tenant(self) -> str:
        return self.row.tenant


class Asked(NamedTuple):
    """What came of asking for the refresh of some feeds."""

    scheduled: int = 0
    already_running: int = 0
    skipped: tuple[tuple[str, str], ...] = ()  # feed, why

    def plus(self, other: Asked) -> Asked:
        return Asked(
            self.scheduled + other.scheduled, self.already_running + other.already_running,
            self.skipped + other.skipped,
        )  # fmt: skip


class Rounds:
    def __init__(self, store: Store, register: Register) -> None:
        self._store = store
        self._register = register
        self.brain: Brain  # from the moment that an engine is about to start
        self.open: dict[str, Round] = {}
        self._of_source: dict[int, set[tuple[str, str]]] = {}  # (round, feed) that wait for it
        self._past: dict[str, list[str]] = {}  # of each tenant, the oldest first
        register.schedule.heard.append(self.heard)

    # ------------------------------------------------------------------ starting

    def meet(self, brain: Brain) -> None:
        """An engine is about to start; after the register has met it."""
        self.brain = brain
        brain.entered.append(self._load)
        brain.loaded.append(self.loaded)

    def _load(self, now: float) -> None:
        """Nobody else changes the store any more."""
        self.open, self._of_source, self._past = {}, {}, {}
        for row in self._rows("order by created_at, id", ()):
            if row.finished_at is not None:
                self._past.setdefault(row.tenant, []).append(row.id)
                continue
            report = msgspec.json.decode(row.report, type=Report)
            # Whoever was asking for a refresh is gone with the last engine; a list is a job, and
            # that is here again.
            growing = row.kind == IMPORT and report.position < report.size
            self.open[row.id] = Round(row, report, growing)
        columns = ", ".join(f"i.{name}" for name in ROUND_ITEMS.columns)
        found = self._store.rows(
            f"select {columns} from feed_round_items i join feed_rounds r on r.id = i.round "
            "where r.finished_at is null and i.state = ?",
            (WAITING,),
        )
        for item in map(ItemRow._make, found):
            self._await(self.open[item.round], item.feed, item.source)

    def loaded(self, now: float) -> None:
        """All that was open is here again: what is waited for still goes before the rest."""
        schedule = self._register.schedule
        for source in list(self._of_source):
            row = self._register.sources.get(source)
            ticket = self.brain.core.tickets.get(schedule.jobs.get(source, 0))
            if row is not None and ticket is not None and ticket.priority != BY_HAND:
                schedule.want(row, now)
        for each in list(self.open.values()):
            self.mend(each, now)

    # ------------------------------------------------------------------ in the brain's turn

    def begin(
        self, tenant: str, kind: str, now: float, *, total: int = 0, report: Report | None = None
    ) -> Round:
        """A new one, which grows until `grown`."""
        for each in list(self.open.values()):
            if each.tenant == tenant:
                self.mend(each, now)
        under_way = sum(each.tenant == tenant for each in self.open.values())
        if under_way >= MOST_OPEN:
            raise TooManyRounds(
                f"{under_way} rounds are under way already; wait until one of them has ended"
            )
        report = report or Report()
        skipped = report.duplicates + report.invalid
        row = RoundRow(token_hex(8), tenant, kind, total, 0, 0, skipped, 0, "", now, None)
        made = self.open[row.id] = Round(row, report, growing=True)
        self._put(made)
        return made

    def refresh(self, id: str, feeds: Sequence[str], named: bool, now: float) -> Asked:
        """Ask for the refresh of these feeds, now, and wait for them. `named`: each of them was
        asked for, and not just all; then one that has ended is tried again.
        """
        round = self.open.get(id)
        if round is None:
            return Asked()
        skipped: list[tuple[str, str]] = []
        rows: list[ItemRow] = []
        running = 0
        for feed in feeds:
            subscription = self._register.subscriptions.get((round.tenant, feed))
            if subscription is None or feed in round.waiting:
                continue
            source = self._register.sources[subscription.source]
            why = _why_not(subscription, source, named)
            if why:
                skipped.append((feed, why))
                rows.append(ItemRow(id, feed, source.id, SKIPPED, 0, why))
                continue
            running += self._register.schedule.want(source, now) is State.RUNNING
            rows.append(ItemRow(id, feed, source.id, WAITING, 0, None))
        round.row = round.row._replace(total=round.row.total + len(rows))
        self.add(round, rows)
        return Asked(len(rows) - len(skipped) - running, running, tuple(skipped))

    def add(self, round: Round, rows: Iterable[ItemRow]) -> None:
        """Feeds that are waited for, or have been dealt with already."""
        rows = list(rows)
        row = round.row
        for item in rows:
            if item.state == WAITING:
                self._await(round, item.feed, item.source)
            else:
                row = row._replace(**{item.state: getattr(row, item.state) + 1})
        round.row = row
        if rows:
            self.brain.write(PUT_ROUND_ITEM, *rows)
        self._put(round)

    def grown(self, id: str, now: float) -> None:
        """No more feeds are added to it."""
        round = self.open.get(id)
        if round is not None:
            round.growing = False
            self._end_if_over(round, now)

    def heard(self, source: int, state: State, new: int, error: str, now: float) -> None:
        """A run has ended, or was dropped: `Schedule.heard`."""
        for id, feed in sorted(self._of_source.get(source, ())):
            round = self.open[id]
            became, why = self._verdict((round.tenant, feed), source, state, error)
            self._settle(round, feed, became, new if became == DONE else 0, why, now)

    def mend(self, round: Round, now: float) -> None:
        """What nobody will tell of: a feed that was given up before its job was taken in."""
        late = now > round.row.created_at + LONGEST_S
        round.growing = round.growing and not late
        schedule = self._register.schedule
        for feed, source in list(round.waiting.items()):
            subscription = self._register.subscriptions.get((round.tenant, feed))
            if subscription is None:
                self._settle(round, feed, SKIPPED, 0, REMOVED, now)
            elif late:
                self._settle(round, feed, SKIPPED, 0, "it was not refreshed within two days", now)
            elif source in schedule.jobs:
                continue
            elif subscription.paused:
                self._settle(round, feed, SKIPPED, 0, PAUSED, now)
            elif subscription.source != source:
                self._settle(round, feed, SKIPPED, 0, MOVED, now)
            else:
                schedule.want(self._register.sources[source], now)
        self._end_if_over(round, now)

    # ------------------------------------------------------------------ looking

    def row(self, tenant: str, id: str) -> RoundRow | None:
        return next(iter(self._rows("where tenant = ? and id = ?", (tenant, id))), None)

    def last(self, tenant: str, limit: int) -> list[RoundRow]:
        ending = "where tenant = ? order by created_at desc, id limit ?"
        return self._rows(ending, (tenant, limit))

    def items(self, id: str, state: str, limit: int) -> list[ItemRow]:
        columns = ", ".join(ROUND_ITEMS.columns)
        found = self._store.rows(
            f"select {columns} from feed_round_items where round = ? and state = ? "
            "order by feed limit ?",
            (id, state, limit),
        )
        return [ItemRow._make(each) for each in found]

    async def until_end(self, engine: Engine, id: str, within_s: float) -> None:
        """Wait for the end of a round, but no longer than this."""
        waiter = LoopFuture()
        engine.ask_for(waiter, partial(self._tell_at_end, id, waiter), later=True)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await waiter
        finally:
            waiter.cancel()

    # ------------------------------------------------------------------ how

    def _rows(self, ending: str, values: tuple[Any, ...]) -> list[RoundRow]:
        columns = ", ".join(ROUNDS.columns)
        found = self._store.rows(f"select {columns} from feed_rounds {ending}", values)
        return [RoundRow._make(each) for each in found]

    def _tell_at_end(self, id: str, waiter: Waiter, now: float) -> None:
        round = self.open.get(id)
        if round is not None:
            self.mend(round, now)
        if id in self.open:
            waiters = [each for each in self.open[id].waiters if not each.cancelled()]
            self.open[id].waiters = [*waiters, waiter]
        else:
            self.brain.outbox.acks.append((waiter, None))

    def _await(self, round: Round, feed: str, source: int) -> None:
        round.waiting[feed] = source
        self._of_source.setdefault(source, set()).add((round.id, feed))

    def _verdict(self, name: Name, source: int, state: State, error: str) -> tuple[str, str | None]:
        subscription = self._register.subscriptions.get(name)
        if subscription is None:
            return SKIPPED, REMOVED
        if state is State.COMPLETED:
            return DONE, None
        if state is State.FAILED:
            return FAILED, error
        if subscription.source != source:
            return SKIPPED, MOVED
        return SKIPPED, PAUSED if subscription.paused else "its refresh was cancelled"

    def _settle(
        self, round: Round, feed: str, state: str, new: int, why: str | None, now: float
    ) -> None:
        source = round.waiting.pop(feed)
        others = self._of_source[source]
        others.discard((round.id, feed))
        if not others:
            del self._of_source[source]
        row = round.row
        counted = {state: getattr(row, state) + 1, "new_count": row.new_count + new}
        round.row = row._replace(**counted)
        self.brain.write(PUT_ROUND_ITEM, ItemRow(round.id, feed, source, state, new, why))
        self._count(round)
        self._end_if_over(round, now)

    def _end_if_over(self, round: Round, now: float) -> None:
        if round.growing or round.waiting or round.id not in self.open:
            return
        round.row = round.row._replace(finished_at=now)
        self._count(round)
        del self.open[round.id]
        self.brain.outbox.acks += [(waiter, None) for waiter in round.waiters]
        past = self._past.setdefault(round.tenant, [])
        past.append(round.id)
        while len(past) > KEPT:
            gone = past.pop(0)
            self.brain.write(DROP_ITEMS_OF_ROUND, (gone,))
            self.brain.write(DROP_ROUND, (gone,))

    def _put(self, round: Round) -> None:
        text = msgspec.json.encode(round.report).decode()
        round.row = round.row._replace(report=text)
        self.brain.write(PUT_ROUND, round.row)

    def _count(self, round: Round) -> None:
        counts = (getattr(round.row, name) for name in COUNTS)
        self.brain.write(COUNT_ROUND, (round.id, *counts))


REMOVED = "it was removed"
PAUSED = "it is paused; resume it first"
MOVED = "it has moved to another feed that is here"


def _why_not(subscription: Subscription, source: Source, named: bool) -> str:
    """Why a feed is not refreshed. Empty: it is."""
    if subscription.paused:
        return PAUSED
    if source.has_ended and not named:
        return f"it has ended: {source.error or subscription.note or source.status}"
    return ""
