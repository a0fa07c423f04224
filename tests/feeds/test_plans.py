"""How SQLite finds what is asked for often: in an index, and not in every row of a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from headway import App
from headway.apps.feeds.articles import Wanted, listed, stats
from headway.apps.feeds.greader.labels import UNREAD
from headway.apps.feeds.tables import APP, MIGRATIONS
from headway.apps.feeds.views import numbers_of
from headway.store import Store
from tests.stores import sqlite_place


class Explaining:
    """A store that remembers how it would answer."""

    dialect = "sqlite"

    def __init__(self, store: Store) -> None:
        self._store = store
        self.plan: list[str] = []

    def rows(self, query: str, values: Any = ()) -> list[tuple[Any, ...]]:
        self.plan += [row[3] for row in self._store.rows(f"explain query plan {query}", values)]
        return []

    def reads(self) -> list[str]:
        """Each way to entries, without what comes after it."""
        return [each for each in self.plan if each.startswith(("SEARCH", "SCAN feed_entries"))]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Explaining]:
    app = App(sqlite_place(tmp_path))
    app.store.install(APP, MIGRATIONS)
    yield Explaining(app.store)
    app.close()


def test_what_is_unread_is_counted_in_its_index(store: Explaining) -> None:
    numbers_of(cast("Store", store), "ann")
    store.rows(UNREAD, ("ann",))
    counts = [each for each in store.reads() if "PRIMARY KEY" not in each]
    assert len(counts) == 3
    assert all("COVERING INDEX" in each for each in counts)


def test_statistics_read_no_more_than_they_count(store: Explaining) -> None:
    stats(cast("Store", store), "ann", 0.0)
    total, unread, starred, today = store.reads()
    assert "COVERING INDEX" in total
    assert "COVERING INDEX feed_entries_unread" in unread
    assert "INDEX feed_entries_starred (tenant=? AND at>?)" in starred
    assert "INDEX feed_entries_by_time (tenant=? AND at>?)" in today


def test_a_list_is_read_in_its_order(store: Explaining) -> None:
    for wanted in (Wanted(), Wanted(unread=True), Wanted(starred=True), Wanted(feed="f")):
        store.plan.clear()
        listed(cast("Store", store), "ann", wanted, "newest", size=50)
        inner = store.plan[: store.plan.index("SCAN e")] if "SCAN e" in store.plan else store.plan
        assert not any("TEMP B-TREE" in each for each in inner), (wanted, store.plan)


def test_an_article_leads_to_the_entry_of_one_tenant(store: Explaining) -> None:
    store.rows("select at from feed_entries where article = ? and tenant = ?", (1, "ann"))
    assert "feed_entries_of_article (article=? AND tenant=?)" in store.plan[0]
