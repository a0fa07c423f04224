"""What the feeds count for Prometheus."""

from __future__ import annotations

from collections import Counter

from headway.api.metrics import Counts
from headway.apps.feeds.model import Status
from headway.apps.feeds.register import Register
from headway.core import State


class Counting:
    def __init__(self, register: Register) -> None:
        self._register = register
        self._refreshes: Counter[tuple[str, ...]] = Counter()
        self._articles = 0
        register.schedule.heard.append(self._heard)

    def _heard(self, source: int, state: State, new: int, error: str, now: float) -> None:
        self._refreshes[(state.value,)] += 1
        self._articles += new

    def counts(self) -> list[Counts]:
        """Sources as they are; the rest since the start."""
        statuses = Counter(row.status for row in list(self._register.sources.values()))
        sources: dict[tuple[str, ...], float] = {
            (each.value,): statuses[each.value] for each in Status
        }
        return [
            Counts("feed_sources", "Addresses that feeds are fetched from, by how the last visit "
                   "went.", ("status",), sources, now=True),
            Counts("feed_refreshes", "Refreshes that have ended, by how they did.", ("outcome",),
                   self._refreshes.copy()),
            Counts("feed_articles", "Articles that were new.", (), {(): self._articles}),
        ]  # fmt: skip
