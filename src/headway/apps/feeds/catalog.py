"""All sources and who subscribes to them, in memory, as the store has them. Read from any thread;
only `register` changes it.
"""

from __future__ import annotations

from headway.apps.feeds.model import DEFAULT_INTERVAL_S, Source, Status, Subscription
from headway.apps.feeds.pacing import interval_within_bounds_s
from headway.apps.feeds.tables import SOURCES, SUBSCRIPTIONS
from headway.store import Store

Name = tuple[str, str]  # the tenant, and what it calls the feed


class Catalog:
    def __init__(self, store: Store) -> None:
        self._store = store
        self.sources: dict[int, Source] = {}
        self.subscriptions: dict[Name, Subscription] = {}
        self._by_url: dict[str, int] = {}
        self._of_source: dict[int, dict[Name, Subscription]] = {}
        self._of_tenant: dict[str, dict[Name, Subscription]] = {}
        self._moved: set[int] = set()  # sources with that status
        self._last = 0  # number of a source

    # ------------------------------------------------------------------ looking

    def subscribers(self, source: int) -> list[Subscription]:
        return list(self._of_source.get(source, {}).values())

    def of_tenant(self, tenant: str) -> list[Subscription]:
        return list(self._of_tenant.get(tenant, {}).values())

    def source_at(self, url: str) -> Source | None:
        return self.sources.get(self._by_url.get(url, 0))

    def is_wanted(self, row: Source) -> bool:
        """Whether anybody wants it refreshed from time to time."""
        subscribers = self._of_source.get(row.id, {}).values()
        return not row.has_ended and any(not each.paused for each in subscribers)

    def payer(self, source: int) -> str:
        """The tenant that its requests are counted for."""
        subscribers = self._of_source.get(source, {}).values()
        first = min(subscribers, key=lambda each: (each.paused, each.created_at), default=None)
        return "" if first is None else first.tenant

    def interval_s(self, row: Source) -> float:
        """The shortest that anybody wants; those who let it adapt follow the source."""
        wanted = [
            (row.adapted_s or each.interval_s) if each.adaptive else each.interval_s
            for each in self._of_source.get(row.id, {}).values()
            if not each.paused
        ]
        return interval_within_bounds_s(min(wanted, default=DEFAULT_INTERVAL_S))

    def _reads(self, tenant: str, url: str) -> Subscription | None:
        """What a tenant calls this address."""
        source = self._by_url.get(url, 0)
        for each in self._of_source.get(source, {}).values():
            if each.tenant == tenant:
                return each
        return None

    def _moved_for(self, tenant: str) -> list[Source]:
        """Sources of this tenant that have moved to another one, which it had, too."""
        return [
            self.sources[source]
            for source in self._moved
            if any(each.tenant == tenant for each in self._of_source.get(source, {}).values())
        ]

    # ------------------------------------------------------------------ as it is stored

    def load(self) -> None:
        columns = ", ".join(SOURCES.columns)
        rows = self._store.rows(f"select {columns} from feed_sources order by id")
        self.sources = {row[0]: Source._make(row) for row in rows}
        self._by_url = {row.url: row.id for row in self.sources.values()}
        self._moved = {row.id for row in self.sources.values() if row.status == Status.MOVED}
        # One that is gone may have left articles, which are nobody else's.
        ((left,),) = self._store.rows("select coalesce(max(source), 0) from feed_articles")
        self._last = max(left, *self.sources) if self.sources else left
        columns = ", ".join(SUBSCRIPTIONS.columns)
        found = self._store.rows(
            f"select {columns} from feed_subscriptions order by tenant, created_at, id"
        )
        self.subscriptions, self._of_source, self._of_tenant = {}, {}, {}
        for each in map(Subscription._make, found):
            self._enter(each)

    def _set(self, row: Source) -> None:
        before = self.sources.get(row.id)
        if before is not None and before.url != row.url:
            del self._by_url[before.url]
        self.sources[row.id] = row
        self._by_url[row.url] = row.id
        if row.status == Status.MOVED:
            self._moved.add(row.id)
        else:
            self._moved.discard(row.id)

    def _drop(self, row: Source) -> None:
        del self.sources[row.id]
        del self._by_url[row.url]
        self._of_source.pop(row.id, None)
        self._moved.discard(row.id)

    def _enter(self, subscription: Subscription) -> None:
        name = subscription.name
        before = self.subscriptions.get(name)
        if before is not None and before.source != subscription.source:
            del self._of_source[before.source][name]
        self.subscriptions[name] = subscription
        self._of_source.setdefault(subscription.source, {})[name] = subscription
        self._of_tenant.setdefault(subscription.tenant, {})[name] = subscription

    def _leave(self, name: Name) -> None:
        gone = self.subscriptions.pop(name)
        del self._of_source[gone.source][name]
        mine = self._of_tenant[gone.tenant]
        del mine[name]
        if not mine:
            del self._of_tenant[gone.tenant]
