"""What must survive: jobs, leases, events, gates, schedules, results.

`protocol.Store` says what a store can do. Nothing above this package knows which one it is.
"""

from __future__ import annotations

from headway.errors import StoreError
from headway.store.protocol import Store
from headway.store.sqlite import SqliteStore


def open_store(url: str) -> Store:
    """`sqlite:///relative.db`, `sqlite:////absolute/path.db`, `postgresql://host/database`."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator and rest.startswith("/") and len(rest) > 1:
        return SqliteStore(rest[1:])
    if scheme in ("postgresql", "postgres") and separator:
        return _postgres(url)
    shown = url if "@" not in url else f"{scheme}://…"  # it may have a password in it
    raise StoreError(
        f"{shown!r} names no store; write sqlite:///file.db (relative), sqlite:////dir/file.db "
        "or postgresql://user@host/database"
    )


def _postgres(url: str) -> Store:
    try:
        from headway.store.postgres import PostgresStore  # noqa: PLC0415 - it is an extra
    except ImportError as error:
        raise StoreError(
            f"PostgreSQL needs psycopg, which is not here ({error}); "
            "pip install 'headway[postgres]'"
        ) from error
    return PostgresStore(url)


__all__ = ["Store", "open_store"]
