"""Sources that become one while one of them is being read: PostgreSQL lets both write at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headway.store.postgres.connection import Connection, connect
from headway.store.postgres.store import PostgresStore
from headway.testing import World
from tests.feeds.feeds_world import FeedsWorld, Site, entry
from tests.hands.kit import eventually
from tests.stores import postgres_place

OLD = "http://blog.example/feed"
NEW = "https://blog.example/feed"
BY_A_RUN = (
    "insert into feed_articles (source, owner, identity, title, first_seen_at, changed_at, hash, "
    "enclosures, categories, announced) "
    "values (%s, '', 'guid:g1', 'Article 1', 0, 0, '', '[]', '[]', 0)"
)
WHO_WAITS = "select count(*) from pg_stat_activity where %s = any(pg_blocking_pids(pid))"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FeedsWorld]:
    monkeypatch.setattr(World, "_new_store", lambda _: postgres_place(tmp_path))
    with FeedsWorld() as world:
        yield world


def committed_when_awaited(db: Connection, store: PostgresStore) -> None:
    """As soon as a turn waits for what is written here."""
    here = (db.info.backend_pid,)
    with connect(store.address) as other:
        eventually(lambda: other.execute(WHO_WAITS, here).fetchone() == (1,))
    db.commit()


def test_a_turn_that_meets_a_run_with_the_same_article_is_taken(world: FeedsWorld) -> None:
    world.web.sites[OLD] = Site([entry(1)])
    world.web.sites[NEW] = Site([])
    world.subscribe(OLD)
    world.subscribe(NEW, "bob")
    world.run_for("10s")
    new, old = world.source(NEW).id, world.source(OLD).id
    store = world.app.store
    assert isinstance(store, PostgresStore)
    with connect(store.address) as db, ThreadPoolExecutor() as threads:
        db.autocommit = False
        db.execute(BY_A_RUN, (new,))
        committed = threads.submit(committed_when_awaited, db, store)
        world.turn(lambda now: world.feeds.register.move(old, NEW, now))
        committed.result()
    world.run_for("1h")
    assert world.open_jobs() == {NEW: 1}
    assert world.titles() == ["Article 1"]
