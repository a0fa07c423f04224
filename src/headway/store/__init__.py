"""What must survive: jobs, leases, events, gates, schedules, results.

`protocol.Store` says what a store can do. Nothing above this package knows which one it is.
"""

from __future__ import annotations

from headway.errors import StoreError
from headway.store.protocol import Store
from headway.store.sqlite import SqliteStore


def open_store(url: str) -> Store:
    """`sqlite:///relative.db`, `sqlite:////absolute/path.db`."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator and rest.startswith("/") and len(rest) > 1:
        return SqliteStore(rest[1:])
    raise StoreError(
        f"{url!r} names no store; write sqlite:///file.db (relative) or sqlite:////dir/file.db"
    )


__all__ = ["Store", "open_store"]
