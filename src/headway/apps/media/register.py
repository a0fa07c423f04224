"""The subscriptions: adding, changing, removing, and what is to be done for each, in the brain's
turn. What is here is also in the store: every change is written with the commit of its turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from headway.api.views import COOKIE_LANE, NO_COOKIE_LANE
from headway.apps.media.jobs import (
    ACCOUNT,
    BY_CLOCK,
    DOWNLOAD,
    LANE,
    LIST,
    REFRESH,
    START,
    internal,
    key_of,
    new_request,
    subscription_of,
)
from headway.apps.media.model import Subscription, new_subscription
from headway.apps.media.presets import account_site, preset_for, preset_of_site, site_of
from headway.apps.media.tables import (
    APP,
    DROP_ITEMS,
    DROP_SUBSCRIPTION,
    FACTS,
    PUT_FACT,
    PUT_SUBSCRIPTION,
    SUBSCRIPTIONS,
)
from headway.core import Ticket
from headway.core.kinds import KEY
from headway.core.recurrence import Every
from headway.engine.brain import Brain
from headway.engine.rules import rule_text
from headway.engine.schedules import ScheduleOptions
from headway.store import Store
from headway.store.records import NewJob, Schedule

LAST_SUBSCRIPTION, LAST_ITEM = "last_subscription", "last_item"
MOST_SITES = 10_000  # that keep a pace though nobody subscribes to anything there


class Duplicate(Exception):
    """The tenant has a subscription to this address already."""

    def __init__(self, there: Subscription) -> None:
        super().__init__(f"you have this already, as subscription {there.id}")
        self.there = there


class Register:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.brain: Brain  # from the moment that an engine is about to start
        self.subscriptions: dict[int, Subscription] = {}
        self._last = {LAST_SUBSCRIPTION: 0, LAST_ITEM: 0}
        self._sites: dict[str, None] = {}  # that have their pace

    def meet(self, brain: Brain) -> None:
        """An engine is about to start."""
        self.brain = brain
        self._sites.clear()
        brain.entered.append(self._begin)
        brain.loaded.append(self._loaded)

    def _begin(self, now: float) -> None:
        """Nobody else changes the store any more."""
        self.load()
        for row in self.subscriptions.values():
            self._keep_pace(row.site, now)

    def load(self) -> None:
        columns = ", ".join(SUBSCRIPTIONS.columns)
        rows = self._store.rows(f"select {columns} from media_subscriptions")
        self.subscriptions = {row[0]: Subscription(*row) for row in rows}
        for name, value in self._store.rows(f"select name, value from {FACTS.name}"):
            if name in self._last:
                self._last[name] = int(value)

    def _loaded(self, now: float) -> None:
        for row in self.subscriptions.values():
            if row.paused:
                self.brain.core.gates.pause(KEY, key_of(row.id), now)

    # ------------------------------------------------------------------ looking

    def get(self, id: int, tenant: str | None) -> Subscription | None:
        """None: there is none, or it is somebody else's. `tenant` None: whoever's."""
        row = self.subscriptions.get(id)
        return row if row is not None and tenant in (None, row.tenant) else None

    def of_tenant(self, tenant: str) -> list[Subscription]:
        return [row for row in self.subscriptions.values() if row.tenant == tenant]

    # ------------------------------------------------------------------ in the brain's turn

    def add(self, tenant: str, url: str, now: float, **settings: Any) -> Subscription:
        """`Duplicate`: it is there already."""
        for there in self.of_tenant(tenant):
            if there.url == url:
                raise Duplicate(there)
        id = self._next(LAST_SUBSCRIPTION)
        row = new_subscription(id, tenant, url, site_of(url), preset_for(url).name, now)
        row = row._replace(**settings)
        self.put(row)
        self._keep_pace(row.site, now)
        self._plan(row, now)
        if row.paused:
            self.brain.core.gates.pause(KEY, key_of(row.id), now)
        return row

    def change(self, id: int, now: float, **changes: Any) -> Subscription:
        """KeyError: there is no such subscription."""
        before = self.subscriptions[id]
        after = before._replace(**changes)
        self.put(after)
        if (after.interval_s, after.paused) != (before.interval_s, before.paused):
            self._plan(after, now)
        if after.paused != before.paused:
            gates = self.brain.core.gates
            (gates.pause if after.paused else gates.resume)(KEY, key_of(id), now)
        return after

    def remove(self, id: int, now: float) -> Subscription:
        """KeyError: there is no such subscription. Its jobs must be cancelled by whoever asks."""
        gone = self.subscriptions.pop(id)
        self.brain.write(DROP_SUBSCRIPTION, (id,))
        self.brain.write(DROP_ITEMS, (id,))
        self._unplan(id, now)
        if gone.paused:
            self.brain.core.gates.resume(KEY, key_of(id), now)
        return gone

    def put(self, row: Subscription) -> None:
        """What no store would take is not kept here either."""
        if self.subscriptions.get(row.id) != row:
            self.brain.write(PUT_SUBSCRIPTION, row)
            self.subscriptions[row.id] = row

    def item_numbers(self, count: int) -> range:
        """New ones."""
        last = self._next(LAST_ITEM, count)
        return range(last - count + 1, last + 1)

    def enqueue(self, jobs: Iterable[NewJob]) -> None:
        """With the commit of this turn."""
        self.brain.batch.jobs.extend(jobs)

    def list_again(
        self, row: Subscription, now: float, *, priority: int = BY_CLOCK, **more: Any
    ) -> None:
        """One more look at a list, or at the next part of it."""
        cookie = bool(row.with_cookie)
        job = new_request(
            LIST, row.url, now, subscription=row, cookie=cookie, priority=priority, **more
        )
        self.enqueue([job])

    def refresh(self, id: int, now: float) -> bool:
        """A look by the clock. False: nobody wants it any more."""
        row = self.subscriptions.get(id)
        if row is None or row.paused:
            return False
        if row.download:
            row = row._replace(wanted=1)
            self.put(row)
        self.list_again(row, now)
        return True

    def start_found(self, row: Subscription, now: float) -> None:
        """Let all that was found, and is not here yet, be downloaded."""
        self.enqueue([internal(START, row, now)])

    # ------------------------------------------------------------------ the engine's side

    def fill_in(self, ticket: Ticket) -> None:
        """`JobType.filled_in`: the site, the account, and one of the two lanes, whatever was said
        by who has put the job.
        """
        row = self.subscriptions.get(subscription_of(ticket.key))
        if row is not None:
            ticket.upstreams = (row.site,)
        if ticket.type == DOWNLOAD:
            ticket.lane = COOKIE_LANE
        elif ticket.lane != COOKIE_LANE:
            ticket.lane = NO_COOKIE_LANE
        if ticket.upstreams:
            site = ticket.upstreams[0]
            self._keep_pace(site, self.brain.clock.now())
            if ticket.lane == COOKIE_LANE:
                ticket.tools = (*ticket.tools, f"{ACCOUNT}{account_site(site)}")

    # ------------------------------------------------------------------ how

    def _next(self, name: str, count: int = 1) -> int:
        """Numbers are never used again, also if what had them is gone."""
        self._last[name] += count
        self.brain.write(PUT_FACT, (name, str(self._last[name])))
        return self._last[name]

    def _keep_pace(self, site: str, now: float) -> None:
        if site not in self._sites:
            while len(self._sites) >= MOST_SITES:
                oldest = next(iter(self._sites))
                del self._sites[oldest]
                self.brain.policies.hosts.take_back(oldest, now, by=APP)
            self._sites[site] = None
            self.brain.policies.hosts.give(site, preset_of_site(site).pace, now, by=APP)

    def _plan(self, row: Subscription, now: float) -> None:
        if not row.interval_s or row.paused:
            self._unplan(row.id, now)
            return
        jitter_s = row.interval_s / 20
        rule = Every(
            row.interval_s, anchor_at=now, jitter_s=jitter_s, growth=2.0,
            max_s=max(row.interval_s, 86_400.0), seed=plan_name(row.id),
        )  # fmt: skip
        options = ScheduleOptions(lane=LANE, tenant=row.tenant, key=f"{REFRESH}:{row.id}")
        self.brain.controls.schedule(
            Schedule(
                plan_name(row.id), REFRESH, msgspec.json.encode({"subscription": row.id}).decode(),
                rule_text(rule), msgspec.json.encode(options).decode(), paused=0, strikes=0,
                last_due_at=now + jitter_s,  # whoever subscribes has the first look at once
                next_due_at=None, missed=0, created_at=now, source="code",
            ),
            now,
        )  # fmt: skip

    def _unplan(self, id: int, now: float) -> None:
        if plan_name(id) in self.brain.schedules.rows:
            self.brain.controls.unschedule(plan_name(id), now)


def plan_name(subscription: int) -> str:
    return f"archive:{subscription}"
