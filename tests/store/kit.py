"""Jobs, and rows of a batch, in which a test names only what it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headway.store import Store
from headway.store.batch import Batch
from headway.store.records import (
    Brain,
    Event,
    NewJob,
    OnConflict,
    Query,
    Unique,
    UniqueScope,
)

T0 = 1_700_000_000.0  # when everything in these tests begins
WAIT_S = 30.0  # for an event that comes at once, unless something is broken

Row = tuple[Any, ...]
Opener = Callable[[], Store]


def job(args: str = "{}", *, type: str = "send", created_at: float = T0, **fields: Any) -> NewJob:
    return NewJob(type, args, created_at=created_at, **fields)


def unique(
    key: str,
    on_conflict: OnConflict = OnConflict.JOIN,
    scope: UniqueScope = UniqueScope.QUEUED_RUNNING,
) -> Unique:
    return Unique(key, scope, on_conflict)


def put(store: Store, *jobs: NewJob) -> list[int]:
    """Insert them, and give their numbers."""
    return [receipt.id for receipt in store.insert(jobs or (job(),))]


def put_one(store: Store, **fields: Any) -> int:
    return put(store, job(**fields))[0]


def all_jobs(store: Store) -> list[int]:
    return sorted(each.id for each in store.jobs(Query(limit=1_000_000)))


def mark_of(store: Store) -> str:
    """The mark of an engine that has seen every job that is there."""
    return store.load_new("", 1_000_000)[1]


def moved(
    id: int,
    state: str = "running",
    *,
    since: float = T0,
    not_before: float = 0.0,
    priority: int = 5,
    pin: int | None = None,
    fence: int = 1,
    upstream: str | None = None,
    granted_at: float | None = None,
    lease_end: float | None = None,
    waited_s: float | None = None,
    tries: str | None = None,
    asked: str | None = None,
    error: str | None = None,
) -> Row:
    standing = (id, state, since, not_before, priority, pin, fence, upstream)
    return (*standing, granted_at, lease_end, waited_s, tries, asked, error)


def granted(id: int, *, at: float = T0, fence: int = 1, upstream: str | None = None) -> Row:
    return (id, at, fence, upstream, at + 60, 0.5)


def ended(
    id: int,
    state: str = "completed",
    at: float = T0,
    tries: str | None = None,
    error: str | None = None,
) -> Row:
    return (id, state, at, tries, error)


def event(
    job: int | None = None,
    name: str = "grant",
    *,
    at: float = T0,
    before: str | None = None,
    after: str | None = None,
    fence: int = 0,
    detail: str = "",
    subject: str | None = None,
    who: str | None = None,
) -> Row:
    return (at, job, name, before, after, fence, detail, subject, who)


def rows_of(events: list[Event]) -> list[Row]:
    """Events without their numbers, as they were handed in."""
    return [tuple(each)[1:] for each in events]


class Engine:
    """The engine of a store, as far as a store can tell."""

    def __init__(self, store: Store, heard: Callable[[], None] = lambda: None) -> None:
        self.store = store
        self.brain: Brain = store.enter(heard)

    def commit(self, **lists: Any) -> None:
        self.store.commit(Batch(self.brain.term, **lists))
