"""When the last backup of a store was made, and where it went: noted in the store itself, so that
whoever looks after it can be told that it was long ago.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from headway.errors import StoreError

NAME = "last_backup"
NOTE = (
    "insert into secrets (name, value) values ({0}, {0}) "
    "on conflict (name) do update set value = excluded.value"
)
LAST = "select value from secrets where name = '" + NAME + "'"
FIRST_EVENT = "select min(at) from events"


class Noted(msgspec.Struct, frozen=True):
    at: float
    file: str
    bytes: int


def note(store_url: str, file: Path, at: float) -> bool:
    """False: the store could not be written, or is too old to have a place for it."""
    text = msgspec.json.encode(Noted(at, str(file.resolve()), file.stat().st_size)).decode()
    with contextlib.suppress(StoreError):
        _ask(store_url, NOTE, (NAME, text))
        return True
    return False


def last(store_url: str) -> Noted | None:
    """None: there was none, as far as the store knows."""
    with contextlib.suppress(StoreError, msgspec.MsgspecError):
        rows = _ask(store_url, LAST, ())
        return msgspec.json.decode(rows[0][0], type=Noted) if rows else None
    return None


def in_use_since(store_url: str) -> float | None:
    """When the oldest thing happened that the trail still has."""
    with contextlib.suppress(StoreError):
        rows = _ask(store_url, FIRST_EVENT, ())
        return None if not rows or rows[0][0] is None else float(rows[0][0])
    return None


def _ask(store_url: str, query: str, values: tuple[Any, ...]) -> list[Any]:
    """Without bringing anything up to date."""
    if store_url.startswith("sqlite:///"):
        from headway.store.sqlite.connection import connect, translated  # noqa: PLC0415

        path = store_url.removeprefix("sqlite:///")
        with translated(path):
            db = connect(path)
            try:
                return db.execute(query.format("?"), values).fetchall()
            finally:
                db.close()
    from headway.store.postgres.address import parse  # noqa: PLC0415 - it is an extra
    from headway.store.postgres.connection import connect as session  # noqa: PLC0415
    from headway.store.postgres.connection import translated as told  # noqa: PLC0415

    address = parse(store_url)
    with told(address.name), session(address) as open_session:
        cursor = open_session.execute(query.format("%s").encode(), values)
        return cursor.fetchall() if cursor.description else []
