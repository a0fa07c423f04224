"""Taking subscriptions and files away. What runs is stopped first, and files go last: whatever is
cut off in between leaves more than it should, never less. Blocking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any

import msgspec

from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.search import OPEN
from headway.api.site import Site
from headway.api.turns import in_own_name
from headway.apps.media.items import COLUMNS, chunks
from headway.apps.media.jobs import TYPES, key_of
from headway.apps.media.library.errors import LibraryError
from headway.apps.media.library.publishing import remove
from headway.apps.media.model import Item, Subscription
from headway.apps.media.routes.reach import TheMedia, own
from headway.core import IllegalTransition
from headway.core.change import UnknownTicket
from headway.errors import UnknownJob
from headway.net.urls import host_of
from headway.store import Store
from headway.store.records import Query

AT_ONCE = 200  # jobs that are cancelled in one turn
STOP_S = 15.0  # for programs that have to end
SOME = 500  # items in one question


def delete_subscription(
    site: Site, media: TheMedia, principal: Principal, row: Subscription, *, with_files: bool
) -> dict[str, Any]:
    if with_files and _has_files(site.store, row):
        with checked():
            media.library.open()  # it is there
    cancelled = cancel_open(site, principal, row)
    _wait_for_ends(site, row)
    known = list(_items_of(site.store, row))
    files = _files(site.store, row.tenant, known) if with_files else []

    def drop(now: float) -> None:
        own(media, row.id, principal)  # nobody else was faster
        media.register.remove(row.id, now)
        site.engine.brain.record(
            now, "subscription_remove", subject=f"subscription:{row.id}", detail=host_of(row.url)
        )

    in_own_name(site, principal, drop)
    cancelled += cancel_open(site, principal, row)  # what has come meanwhile
    deleted = delete_files(media, files)
    _drop_work(media, known)
    return {"subscription_deleted": True, "items_deleted": len(known),
            "jobs_cancelled": cancelled, "files_deleted": deleted}  # fmt: skip


# ---------------------------------------------------------------------- jobs


def cancel_open(site: Site, principal: Principal, row: Subscription) -> int:
    """All that is open for a subscription. How many were."""
    count = 0
    for type in TYPES:
        query = Query(states=OPEN, type=type, tenant=row.tenant, key=key_of(row.id), limit=AT_ONCE)
        below: int | None = None
        while jobs := site.store.jobs(replace(query, below=below)):
            below = jobs[-1].id
            ids = [job.id for job in jobs]
            count += site.wait(site.engine.ask(partial(cancel, site, principal, ids)))
    return count


def cancel(site: Site, principal: Principal, ids: Sequence[int], now: float) -> int:
    """In the brain's turn. How many it could be done to."""
    controls, count = site.engine.brain.controls, 0
    for id in ids:
        with suppress(IllegalTransition, UnknownTicket, UnknownJob):  # it has ended meanwhile
            controls.steer("cancel", id, (), now, principal.who)
            count += 1
    return count


def _wait_for_ends(site: Site, row: Subscription) -> None:
    """Programs that run are told to end, which takes a moment."""
    until = monotonic() + STOP_S
    query = Query(states=OPEN, tenant=row.tenant, key=key_of(row.id), limit=AT_ONCE)
    for job in site.store.jobs(query):
        if job.type in TYPES:
            with suppress(TimeoutError, UnknownJob):
                site.app.handle(job.id).wait(max(0.0, until - monotonic()))


# ---------------------------------------------------------------------- files


@contextmanager
def checked() -> Iterator[None]:
    """Problem: the library cannot be used."""
    try:
        yield
    except LibraryError as error:
        raise Problem(409, f"{error} Nothing was deleted.", kind="no-library") from error


def delete_files(media: TheMedia, files: Iterable[Sequence[str]]) -> int:
    """Those of each item. How many there were."""
    with checked():
        return sum(remove(media.library.root, each) for each in files)


def files_of(store: Store, item: Item) -> list[str]:
    """That are of this item alone."""
    return next(iter(_files(store, item.tenant, [item])), [])


def _has_files(store: Store, row: Subscription) -> bool:
    return bool(
        store.rows(
            "select 1 from media_items where subscription = ? and files is not null limit 1",
            (row.id,),
        )
    )


def _items_of(store: Store, row: Subscription) -> Iterator[Item]:
    after = 0
    while rows := store.rows(
        f"select {COLUMNS} from media_items where subscription = ? and id > ? order by id limit ?",
        (row.id, after, SOME),
    ):
        after = rows[-1][0]
        yield from (Item(*each) for each in rows)


def _files(store: Store, tenant: str, known: Sequence[Item]) -> list[list[str]]:
    """Without those that items of other subscriptions have, too: one video may be in two lists."""
    there = [each for each in known if each.files is not None]
    found: list[list[str]] = []
    for some in chunks(there, SOME):
        shared = _shared(store, tenant, some)
        for each in some:
            own_files = [path for path in _paths(each.files) if path not in shared]
            if own_files:
                found.append(own_files)
    return found


def _shared(store: Store, tenant: str, known: Sequence[Item]) -> set[str]:
    marks = ", ".join("?" * len(known))
    rows = store.rows(
        f"select id, files from media_items where tenant = ? and key in ({marks}) "
        "and files is not null",
        (tenant, *(each.key for each in known)),
    )
    ids = {each.id for each in known}
    return {path for id, files in rows if id not in ids for path in _paths(files)}


def _paths(files: str | None) -> list[str]:
    return [] if files is None else list(msgspec.json.decode(files).values())


def _drop_work(media: TheMedia, known: Iterable[Item]) -> None:
    """What was begun. A library that is away keeps it until it is tidied up."""
    with suppress(LibraryError, OSError):
        begun = set(media.library.leftovers())
        for each in known:
            if str(each.id) in begun:
                media.library.drop_work(each.id)
