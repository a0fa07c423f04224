"""The embedded store: one SQLite file, in WAL mode with synchronous=FULL."""

from headway.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
