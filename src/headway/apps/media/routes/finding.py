"""Looking for items, counting them, and which jobs are open for them. Blocking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from headway.api.search import OPEN
from headway.apps.media.items import COLUMNS, chunks
from headway.apps.media.jobs import COUNT, DOWNLOAD, ITEM, LIST, key_of, subscription_of
from headway.apps.media.model import Item, State, Subscription
from headway.engine.tickets import spec_of
from headway.store import Store
from headway.store.records import Query

AT_ONCE = 200  # subscriptions in one query
MOST_JOBS = 5_000  # of a subscription that are looked at to find those of its items


class Tally(NamedTuple):
    """What a subscription has."""

    states: dict[str, int]
    listed: int = 0  # that its list has now
    gone: int = 0  # that its list has no more
    bytes: int = 0  # of what is on disk


def tallies(store: Store, subscriptions: Sequence[int]) -> dict[int, Tally]:
    found = {id: Tally({}) for id in subscriptions}
    for some in chunks(list(subscriptions), AT_ONCE):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            "select subscription, state, count(*), "
            "sum(case when gone_at is null then 1 else 0 end), "
            "sum(case when state = 'done' then coalesce(size_bytes, 0) else 0 end) "
            f"from media_items where subscription in ({marks}) group by subscription, state",
            tuple(some),
        )
        for id, state, count, listed, size in rows:
            before = found[id]
            found[id] = Tally(
                {**before.states, state: int(count)}, before.listed + int(listed),
                before.gone + int(count) - int(listed), before.bytes + int(size),
            )  # fmt: skip
    return found


class Busy(NamedTuple):
    """The open jobs of a subscription that there is one of."""

    listing: int | None = None
    counting: int | None = None


def busy_ones(store: Store, rows: Sequence[Subscription]) -> dict[int, Busy]:
    """Of jobs that are really theirs: anybody may give a job of his own any key."""
    found: dict[tuple[str, int, str], int] = {}
    for type in (LIST, COUNT):
        query = Query(states=OPEN, type=type, limit=MOST_JOBS)
        if len(rows) == 1:
            query = replace(query, tenant=rows[0].tenant, key=key_of(rows[0].id), limit=1)
        for job in store.jobs(query):
            found[type, subscription_of(job.key), job.tenant] = job.id
    return {
        row.id: Busy(*(found.get((type, row.id, row.tenant)) for type in (LIST, COUNT)))
        for row in rows
    }


# ---------------------------------------------------------------------- items


class Wanted(NamedTuple):
    """Which items. None: any."""

    tenant: str | None = None
    subscription: int | None = None
    state: str | None = None
    text: str = ""  # in the title, the name of the uploader, or the address

    def where(self) -> tuple[str, list[Any]]:
        parts, values = ["1 = 1"], []
        said = {"tenant": self.tenant, "subscription": self.subscription, "state": self.state}
        for column, value in said.items():
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)
        if self.text:
            like = " or ".join(
                f"lower(coalesce({column}, '')) like ? escape '!'"
                for column in ("title", "uploader", "url")
            )
            parts.append(f"({like})")
            values.extend([_pattern(self.text)] * 3)
        return " and ".join(parts), values


def _pattern(text: str) -> str:
    for sign in "!%_":
        text = text.replace(sign, f"!{sign}")
    return f"%{text.lower()}%"


def items_page(store: Store, wanted: Wanted, page: int, size: int) -> tuple[list[Item], int]:
    """Newest first: of one subscription as its list has them, of several as they were found."""
    where, values = wanted.where()
    order = "found_at desc, id desc" if wanted.subscription is None else _AS_LISTED
    rows = store.rows(
        f"select {COLUMNS} from media_items where {where} order by {order} limit ? offset ?",
        (*values, size, (page - 1) * size),
    )
    total = store.rows(f"select count(*) from media_items where {where}", tuple(values))
    return [Item(*row) for row in rows], int(total[0][0])


_AS_LISTED = "case when place is null then 1 else 0 end, place, id desc"


def open_downloads(store: Store, found: Iterable[Item]) -> dict[int, int]:
    """The open jobs of items that are in line, by the numbers of the items."""
    queued = [each for each in found if each.state == State.QUEUED]
    jobs: dict[int, int] = {}
    for tenant, subscription in {(each.tenant, each.subscription) for each in queued}:
        by_item, by_url = _open_in(store, tenant, subscription)
        for each in queued:
            if (each.tenant, each.subscription) == (tenant, subscription):
                job = by_item.get(str(each.id)) or by_url.get(each.url)
                if job is not None:
                    jobs[each.id] = job
    return jobs


def _open_in(store: Store, tenant: str, subscription: int) -> tuple[dict[str, int], dict[str, int]]:
    """By the item that they are for; those that somebody has asked for by an address, by that."""
    key = key_of(subscription) if subscription else None
    query = Query(states=OPEN, type=DOWNLOAD, tenant=tenant, key=key, limit=MOST_JOBS)
    by_item: dict[str, int] = {}
    by_url: dict[str, int] = {}
    for job in store.jobs(query):
        spec = spec_of(job.spec)
        if ITEM in spec.labels:
            by_item[spec.labels[ITEM]] = job.id
        elif job.key == key:
            by_url[spec.about.get("url", "")] = job.id
    return by_item, by_url


def open_download(store: Store, item: Item) -> int | None:
    """However many others are in line before it."""
    if item.state != State.QUEUED:
        return None
    key = key_of(item.subscription) if item.subscription else None
    query = Query(
        states=OPEN, type=DOWNLOAD, tenant=item.tenant, key=key, labels=((ITEM, str(item.id)),),
        limit=1,
    )  # fmt: skip
    jobs = store.jobs(query)
    return jobs[0].id if jobs else open_downloads(store, [item]).get(item.id)
