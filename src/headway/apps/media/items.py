"""Items: reading them, and what a list says about them as rows. Blocking, from any thread."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from headway.apps.media.model import MAX_TITLE, Item, State, Subscription
from headway.apps.media.tables import ITEMS
from headway.engine.ledger import clean
from headway.store import Store

COLUMNS = ", ".join(ITEMS.columns)
AT_ONCE = 500  # keys in one query


def item(store: Store, id: int) -> Item | None:
    rows = store.rows(f"select {COLUMNS} from media_items where id = ?", (id,))
    return Item(*rows[0]) if rows else None


def item_of_url(store: Store, tenant: str, subscription: int, url: str) -> Item | None:
    rows = store.rows(
        f"select {COLUMNS} from media_items where tenant = ? and subscription = ? "
        "and substr(url, 1, 200) = substr(?, 1, 200) and url = ? order by id limit 1",
        (tenant, subscription, url, url),
    )
    return Item(*rows[0]) if rows else None


def known(store: Store, row: Subscription, keys: Iterable[str]) -> dict[str, Item]:
    """Those of these keys that the subscription has."""
    found: dict[str, Item] = {}
    for some in chunks(list(dict.fromkeys(keys)), AT_ONCE):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            f"select {COLUMNS} from media_items where tenant = ? and subscription = ? "
            f"and key in ({marks})",
            (row.tenant, row.id, *some),
        )
        found.update({each[3]: Item(*each) for each in rows})
    return found


def in_states(
    store: Store, subscription: int, states: Sequence[State], *, most: int = AT_ONCE, after: int = 0
) -> list[Item]:
    """Newest first, as the list has them."""
    marks = ", ".join("?" * len(states))
    rows = store.rows(
        f"select {COLUMNS} from media_items where subscription = ? and state in ({marks}) "
        "and id > ? order by id limit ?",
        (subscription, *(each.value for each in states), after, most),
    )
    return [Item(*each) for each in rows]


def unfinished(store: Store, ids: Sequence[int]) -> list[int]:
    """Those of these that may still be downloaded, or gone on with."""
    over = (State.DONE.value, State.SKIPPED.value)
    found: list[int] = []
    for some in chunks(ids, AT_ONCE):
        marks = ", ".join("?" * len(some))
        rows = store.rows(
            f"select id from media_items where id in ({marks}) and state not in (?, ?)",
            (*some, *over),
        )
        found += [id for (id,) in rows]
    return found


def counts(store: Store, subscription: int) -> dict[str, int]:
    """How many are in each state."""
    rows = store.rows(
        "select state, count(*) from media_items where subscription = ? group by state",
        (subscription,),
    )
    return {state: int(number) for state, number in rows}


def new_item(id: int, tenant: str, subscription: int, entry: dict[str, Any], now: float) -> Item:
    """As a list has it."""
    facts = facts_of(entry)
    return Item(
        id, tenant, subscription, entry["key"], entry["url"], facts["title"], facts["uploader"],
        facts["published_at"], facts["duration_s"], facts["views"], entry.get("position"),
        State.FOUND.value, reason=None, failure=None, failures=0, files=None, size_bytes=None,
        found_at=now, listed_at=now, done_at=None, gone_at=None, changed_at=now,
    )  # fmt: skip


def facts_of(entry: dict[str, Any]) -> dict[str, Any]:
    """What is worth keeping, in a shape that every store takes."""
    return {
        "title": _text(entry.get("title")),
        "uploader": _text(entry.get("uploader")),
        "published_at": _number(entry.get("published_at")),
        "duration_s": _number(entry.get("duration_s")),
        "views": _whole(entry.get("views")),
    }


def _text(value: Any) -> str | None:
    return clean(value)[:MAX_TITLE] or None if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and abs(value) < 1e12 else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def chunks(listed: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(listed), size):
        yield listed[start : start + size]
