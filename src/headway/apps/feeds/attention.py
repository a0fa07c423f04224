"""What needs attention at the feeds: those that fail again and again, and those that have ended.
From memory, and from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic

from headway.api.attention import NAMED, Attention, Level, listed, several
from headway.apps.feeds.catalog import Catalog
from headway.apps.feeds.model import Source, Status

AGAIN = 3  # failures in a row; fewer are the weather
FRESH_S = 15.0  # for all sources, of which there may be very many


class FeedAttention:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._until = 0.0
        self._known: list[Attention] = []

    def attention(self, tenant: str | None) -> list[Attention]:
        if tenant is not None:
            return list(_about(self._sources_of(tenant)))
        if monotonic() >= self._until:
            self._known = list(_about(list(self._catalog.sources.values())))
            self._until = monotonic() + FRESH_S
        return self._known

    def _sources_of(self, tenant: str) -> Iterator[Source]:
        """What it reads, and has not set aside."""
        for each in self._catalog.of_tenant(tenant):
            source = None if each.paused else self._catalog.sources.get(each.source)
            if source is not None:
                yield source


def _about(sources: Iterable[Source]) -> Iterator[Attention]:
    failing: list[Source] = []
    gone: list[Source] = []
    for each in sources:
        if each.status == Status.ERROR and each.failures >= AGAIN:
            failing.append(each)
        elif each.status == Status.GONE:
            gone.append(each)
    if failing:
        failing.sort(key=lambda each: -each.failures)
        yield _item(
            "feeds_failing", Level.WARN, failing,
            f"{several(len(failing), 'feed')} could not be read for {AGAIN} times and more",
        )  # fmt: skip
    if gone:
        yield _item("feeds_gone", Level.INFO, gone, f"{several(len(gone), 'feed')} ended for good")


def _item(kind: str, level: Level, rows: list[Source], text: str) -> Attention:
    hosts = list(dict.fromkeys(each.host for each in rows))
    values = {"count": len(rows), "sites": len(hosts), "names": hosts[:NAMED],
              "error": (rows[0].error or "") if kind == "feeds_failing" else ""}  # fmt: skip
    return Attention(kind, level, ("feeds", ""), f"{text}: {listed(hosts)}", values)
