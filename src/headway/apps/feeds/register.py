"""Subscribing, changing, moving and going: whatever happens to the catalog, in the brain's turn.

What is here is also in the store: every change is written with the commit of its turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headway.apps.feeds.catalog import Catalog, Name
from headway.apps.feeds.hosts import HostPaces
from headway.apps.feeds.model import DEFAULT_INTERVAL_S, Source, Status, Subscription, new_source
from headway.apps.feeds.moving import ADOPT_ARTICLES, LEAD_TO_TWINS, WITHDRAW_ARTICLES
from headway.apps.feeds.pacing import interval_within_bounds_s
from headway.apps.feeds.scheduling import COUNTED_FOR, LANE, Schedule
from headway.apps.feeds.tables import (
    DROP_ENTRIES_OF_FEED,
    DROP_SOURCE,
    DROP_SUBSCRIPTION,
    PUT_SOURCE,
    PUT_SUBSCRIPTION,
)
from headway.core import State
from headway.engine.brain import Brain
from headway.net.urls import host_of, plain_url
from headway.store import Store
from headway.store.records import NewJob, Unique, UniqueScope

FILL = "feeds.fill"
FILL_MOST = 500  # articles; nobody wants ten thousand unread ones at once
TIDY = "feeds.tidy"
TIDY_AFTER_S = 60.0  # so that feeds which go one after the other are tidied up after once


class Wanted(NamedTuple):
    """A feed that somebody wants to subscribe to."""

    id: str
    url: str  # in its plain form
    title: str | None = None
    folder: str = ""
    interval_s: float = DEFAULT_INTERVAL_S
    adaptive: bool = False
    paused: bool = False


class Before(NamedTuple):
    """How much a source was wanted."""

    source: int
    wanted: bool
    interval_s: float


class Duplicates(Exception):
    """Some of them are there already; nothing was changed. Says which, and under which id."""

    def __init__(self, found: list[tuple[Wanted, Subscription]]) -> None:
        super().__init__(", ".join(wanted.url for wanted, _ in found))
        self.found = found


class Register(Catalog):
    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.schedule = Schedule(self)
        self.brain: Brain  # from the moment that an engine is about to start
        self._hosts = HostPaces()
        self._asked: set[Name] = set()  # feeds that are paused, and wanted once
        self.schedule.heard.append(self._ended)

    def meet(self, brain: Brain) -> None:
        """An engine is about to start."""
        self.brain = brain
        self._hosts.meet(brain)
        self.schedule.meet(brain)
        brain.entered.append(self._begin)

    def _begin(self, now: float) -> None:
        """Nobody else changes the store any more."""
        self.load()
        self._asked.clear()
        for row in self.sources.values():
            self._hosts.count(row.host, 1, now)

    # ------------------------------------------------------------------ in the brain's turn

    def put(self, row: Source) -> None:
        """Other facts about a source. One that is gone stays so. What no store would take is not
        kept here either.
        """
        if row.id in self.sources and self.sources[row.id] != row:
            self.brain.write(PUT_SOURCE, row)
            self._set(row)

    def revive(self, row: Source) -> Source:
        """One that has ended may be there again."""
        for each in self.subscribers(row.id):
            if each.note is not None:
                self._keep(each._replace(note=None))
        row = row._replace(status=Status.NEW.value)
        self.put(row)
        return row

    def subscribe(
        self, tenant: str, wanted: Sequence[Wanted], now: float, *, skip: bool = False
    ) -> list[Subscription]:
        """All of them, or `Duplicates`. `skip`: leave out those that are there already."""
        found: list[tuple[Wanted, Subscription]] = []
        fresh: list[Wanted] = []
        ids: dict[str, Wanted] = {}
        urls: dict[str, Wanted] = {}
        for each in wanted:
            there = self._there(tenant, each)
            twin = urls.get(each.url) or ids.get(each.id)
            if there is not None:
                found.append((each, there))
            elif twin is not None:
                found.append((each, _subscription(tenant, twin, 0, now)))
            else:
                fresh.append(each)
                ids[each.id] = urls[each.url] = each
        if found and not skip:
            raise Duplicates(found)
        return [self._add(tenant, each, now) for each in fresh]

    def change(self, name: Name, now: float, **changes: Any) -> Subscription:
        """KeyError: there is no such subscription."""
        before = self.subscriptions[name]
        paused = changes.get("paused", before.paused)
        if paused != before.paused:
            changes["paused_at"] = now if paused else None
        after = before._replace(**changes)
        if after != before:
            was = self._as_it_was(before.source)
            self._keep(after)
            self._look(was, now)
            if before.paused and not paused:
                self.fill(after, now, since=before.paused_at or 0.0)
        return after

    def repoint(self, name: Name, url: str, now: float) -> Subscription:
        """Another address for a subscription, as its tenant wants it; what it has stays, with its
        marks. KeyError: there is no such subscription. `Duplicates`: it has that one, too.
        """
        before = self.subscriptions[name]
        old = self.sources[before.source]
        if old.url == url:
            return before
        there = self._reads(before.tenant, url)
        if there is not None:
            raise Duplicates([(Wanted(before.id, url), there)])
        was = self._as_it_was(old.id)
        row = self._source_for(url, now)
        after = before._replace(source=row.id, url=url, note=None, led=1)
        self._join(after, now)
        if not self._of_source[old.id]:  # so what it has published is known when it comes again
            self.brain.write(ADOPT_ARTICLES, (old.id, row.id))
        self.brain.write(LEAD_TO_TWINS, (*name, row.id))
        self._look(was, now)
        self._left(before.tenant, now)
        return after

    def refresh_now(self, name: Name, now: float) -> State | None:
        """As `Schedule.want`. One that is paused has what is found, too."""
        subscription = self.subscriptions[name]
        if subscription.paused:
            self._asked.add(name)
        return self.schedule.want(self.sources[subscription.source], now)

    def unsubscribe(self, name: Name, now: float) -> Subscription:
        """KeyError: there is no such subscription. Its entries go with it."""
        gone = self.subscriptions[name]
        was = self._as_it_was(gone.source)
        self._leave(name)
        self._asked.discard(name)
        self.brain.write(DROP_SUBSCRIPTION, name)
        self.brain.write(DROP_ENTRIES_OF_FEED, name)
        self._look(was, now)
        self._left(gone.tenant, now)
        return gone

    def move(self, source: int, url: str, now: float) -> bool:
        """A source has another address for good; perhaps one that is fetched already. Whether it is
        still a source of its own, and what it publishes there has yet to be announced.
        """
        row = self.sources.get(source)
        there = self.source_at(url)
        if row is None or there is row:
            return False
        if there is not None:
            self._merge(row, there, now)
            return False
        self._rename(row, url, now)
        return True

    def lend_pace(self, host: str, now: float) -> None:
        """Somebody is led to a host that no source is at."""
        self._hosts.lend(host, now)

    def forget_guests(self, now: float) -> None:
        self._hosts.forget_guests(now)

    def fill(
        self, subscription: Subscription, now: float, *, since: float = 0.0, most: int = FILL_MOST
    ) -> None:
        """Let a subscription have what its source already knows, or the newest of it. Those of one
        source go one after the other, so that none of them holds up the brain.
        """
        args = {"tenant": subscription.tenant, "feed": subscription.id, "since": since,
                "most": most}  # fmt: skip
        unique = f"{FILL}:{since}:{most}:{subscription.name}"
        self._enqueue(FILL, args, unique, now, key=f"{FILL}:{subscription.source}")

    def tidy(self, now: float, *, after_s: float = 0.0) -> None:
        """See to it that what nobody can see any more is removed. One goes after the other."""
        self._enqueue(TIDY, {}, f"{TIDY}:{after_s}", now, at=now + after_s, key=TIDY)

    # ------------------------------------------------------------------ how

    def _there(self, tenant: str, wanted: Wanted) -> Subscription | None:
        same = self.subscriptions.get((tenant, wanted.id))
        if same is not None:
            return same
        return self._reads(tenant, wanted.url)

    def _ended(self, source: int, state: State, new: int, error: str, now: float) -> None:
        for name in [each.name for each in self.subscribers(source) if each.name in self._asked]:
            self._asked.discard(name)
            subscription = self.subscriptions[name]
            if state is State.COMPLETED and subscription.paused:
                self.fill(subscription, now, since=subscription.paused_at or 0.0)

    def _add(self, tenant: str, wanted: Wanted, now: float) -> Subscription:
        row = self._source_for(wanted.url, now)
        subscription = _subscription(tenant, wanted, row.id, now)
        self._join(subscription, now)
        return subscription

    def _source_for(self, url: str, now: float) -> Source:
        row = self.source_at(url)
        if row is None:
            self._last = max(self._last + 1, int(now * 1000))
            row = new_source(self._last, url, now)
            self.brain.write(PUT_SOURCE, row)
            self._set(row)
            self._hosts.count(row.host, 1, now)
        return row

    def _join(self, subscription: Subscription, now: float) -> None:
        """Somebody reads a source from now on."""
        row = self.sources[subscription.source]
        was = self._as_it_was(row.id)
        is_known = bool(self._of_source.get(row.id))
        self._keep(subscription)
        if is_known:
            self.fill(subscription, now)
        if row.has_ended and not subscription.paused:
            self.schedule.want(row, now)  # perhaps it is there again
        else:
            self._look(was, now)

    def _keep(self, subscription: Subscription) -> None:
        self.brain.write(PUT_SUBSCRIPTION, subscription)
        self._enter(subscription)

    def _as_it_was(self, source: int) -> Before:
        row = self.sources[source]
        return Before(source, self.is_wanted(row), self.interval_s(row))

    def _look(self, was: Before, now: float) -> None:
        """Subscriptions to a source have changed: it may be wanted, or not, or more often."""
        row = self.sources[was.source]
        if not self._of_source.get(row.id):
            self._forget(row, now)
        elif not self.is_wanted(row):
            self.schedule.drop(row.id, now)
        elif not was.wanted:
            self.schedule.begin(row, now)
        elif self.interval_s(row) != was.interval_s:
            self.schedule.replan(row, now)

    def _left(self, tenant: str, now: float) -> None:
        """A tenant has a feed less. If another one of its own had moved there, that goes on."""
        for row in self._moved_for(tenant):
            was = self._as_it_was(row.id)
            self.revive(row)
            self._look(was, now)

    def _forget(self, row: Source, now: float) -> None:
        self._drop(row)
        self.schedule.drop(row.id, now)
        self._hosts.count(row.host, -1, now)
        self.brain.write(DROP_SOURCE, (row.id,))
        self.tidy(now, after_s=TIDY_AFTER_S)

    def _rename(self, row: Source, url: str, now: float) -> None:
        host = host_of(url)
        if host != row.host:
            self._hosts.count(host, 1, now)
            self._hosts.count(row.host, -1, now)
        self.put(row._replace(url=url, host=host))
        self.brain.write(WITHDRAW_ARTICLES, (row.id,))

    def _merge(self, row: Source, there: Source, now: float) -> None:
        """Two sources are one. A tenant that has both keeps both, and is told."""
        here = self._of_source.get(row.id, {})
        tenants = {each.tenant for each in self._of_source.get(there.id, {}).values()}
        was = self._as_it_was(there.id)
        if there.has_ended:  # somebody was sent there, and could read it
            self.revive(there)
        moved: list[Subscription] = []
        for each in list(here.values()):
            if each.tenant in tenants:
                self._keep(each._replace(note=f"it has moved to {there.url}, which you have, too"))
            else:
                tenants.add(each.tenant)
                moved.append(each._replace(source=there.id, led=1))
                self._keep(moved[-1])
        if here:
            self.schedule.drop(row.id, now)
            self.put(row._replace(status=Status.MOVED.value))
        else:
            self.brain.write(ADOPT_ARTICLES, (row.id, there.id))
            self._forget(row, now)
        for each in moved:
            self.brain.write(LEAD_TO_TWINS, (*each.name, there.id))
            self.fill(each, now)
        self._look(was, now)

    def _enqueue(
        self, type: str, args: dict[str, Any], unique: str, now: float, *, at: float = 0.0,
        key: str | None = None,
    ) -> None:  # fmt: skip
        self.brain.batch.jobs.append(
            NewJob(
                type, msgspec.json.encode(args).decode(), created_at=now, lane=LANE,
                tenant=COUNTED_FOR, key=key, not_before=at,
                unique=Unique(unique, UniqueScope.QUEUED),
            )
        )  # fmt: skip


def _subscription(tenant: str, wanted: Wanted, source: int, now: float) -> Subscription:
    return Subscription(
        tenant, wanted.id, source, wanted.url, wanted.title, wanted.folder,
        interval_within_bounds_s(wanted.interval_s), int(wanted.adaptive), int(wanted.paused),
        now if wanted.paused else None, None, 0, now,
    )  # fmt: skip


def wanted_feed(id: str, url: str, **more: Any) -> Wanted:
    """ValueError: it has no proper address."""
    return Wanted(id, plain_url(url), **more)
