"""A new subscription to a source that others read already has its articles, too; so has one that
was paused what it has missed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from headway.apps.feeds.parsing.sanitising import html_as_text
from headway.apps.feeds.refreshing import entry_row
from headway.apps.feeds.register import FILL_MOST, Register
from headway.apps.feeds.rules import RulesOf, judge, readable
from headway.apps.feeds.storing import Arrival
from headway.apps.feeds.tables import ADD_ENTRY
from headway.core import RetryPolicy
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.store import Store

# It reads and writes the store, and can be done again at any time.
RULES = RetryPolicy(timeout_s=600, retries=20, delay_s=1, growth=2, max_lost=1_000)

SELECT = (
    "select id, coalesce(published_at, updated_at, first_seen_at), first_seen_at, title, author, "
    "link, categories, coalesce(content, summary, '') from feed_articles where source = ? "
    "and owner = '' and announced = 1 and first_seen_at >= ? order by id desc limit ?"
)


class Filler:
    def __init__(self, store: Store, register: Register, rules: RulesOf) -> None:
        self._store = store
        self._register = register
        self._rules = rules
        self.brain: Brain  # from the moment that an engine is about to start

    def fill(self, tenant: str, feed: str, since: float = 0.0, most: int = FILL_MOST) -> int:
        """The job."""
        subscription = self._register.subscriptions.get((tenant, feed))
        if subscription is None:
            return 0
        now = self.brain.clock.now()
        rules = self._rules.get(tenant, ())
        rows: list[tuple[Any, ...]] = []
        found = self._store.rows(SELECT, (subscription.source, since, most))
        for id, dated, seen_at, title, author, link, categories, html in reversed(found):
            text = readable(
                title=title, author=author, link=link,
                categories=msgspec.json.decode(categories), text=html_as_text(html),
            )  # fmt: skip
            verdict = judge(rules, feed, subscription.folder, text)
            if not verdict.dropped:
                arrival = Arrival(id, min(dated, seen_at), seen_at, text)
                rows.append(entry_row(subscription, arrival, verdict, now))
        job.with_end(partial(self._end, (tenant, feed), subscription.source, rows))
        return len(rows)

    def _end(
        self, name: tuple[str, str], source: int, rows: list[tuple[Any, ...]], now: float
    ) -> None:
        subscription = self._register.subscriptions.get(name)
        if rows and subscription is not None and subscription.source == source:
            self.brain.write(ADD_ENTRY, *rows)
