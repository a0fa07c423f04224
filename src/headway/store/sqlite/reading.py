"""Reading: what the engine loads, and what people look at. Readers never block the writer."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apsw
import msgspec

from headway.errors import StoreError
from headway.store.filtering import Words
from headway.store.looking import Looker
from headway.store.records import Brain, Errand, News, OpenJob
from headway.store.sqlite.connection import connect, sql, translated

LOAD_OPEN = sql("load_open")
LOAD_NEW = sql("load_new")
LOAD_SOME = sql("load_some")
ERRANDS = sql("errands")
PAYLOAD = sql("payload")
LAST_EVENT = sql("last_event")


def _array(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()


class Reader(Looker):
    """One connection for each thread that reads."""

    WORDS = Words(
        many=_array,
        among="in (select value from json_each(?))",
        at_upstream=sql("where_at_upstream"),
        says="instr(lower(error), lower(?)) > 0",
        labelled=sql("where_labelled"),
    )

    def __init__(self, path: str, *, vfs: str | None) -> None:
        self.path = path
        self._vfs = vfs
        self._local = threading.local()
        self._all: weakref.WeakSet[apsw.Connection] = weakref.WeakSet()  # they end with threads
        self._watch: apsw.Connection | None = None  # the one whose `data_version` is compared
        self._watching = threading.Lock()
        self._lock = threading.Lock()
        self._closed = False

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with translated(self.path):
            return self._db().execute(query, tuple(values)).fetchall()

    def _db(self) -> apsw.Connection:
        db: apsw.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = self._connect()
        return db

    def _connect(self) -> apsw.Connection:
        db = connect(self.path, vfs=self._vfs, writes=False)
        with self._lock:
            if self._closed:
                db.close()
                raise StoreError(f"{self.path} is closed here; open the app again")
            self._all.add(db)
        return db

    def close(self) -> None:
        """The last connection to a file takes its WAL along, unless it was interrupted: then the
        file would need what lies beside it.
        """
        with self._lock:
            self._closed = True
            for db in list(self._all):
                try:
                    db.close()
                except apsw.ThreadingViolationError:
                    db.interrupt()  # it is being read from, and closes when its thread lets go
            self._all.clear()
        self._local = threading.local()

    # ------------------------------------------------------------------ for the engine

    def brain(self) -> Brain:
        row = self._one("select term, fence, seen_job from brain")
        assert row is not None  # the schema puts it there
        term, fence, seen_job = row
        return Brain(term, fence, str(seen_job or ""))

    def version(self) -> int:
        """Changes whenever another connection has committed something."""
        with translated(self.path), self._watching:
            if self._watch is None or self._closed:
                self._watch = self._connect()
            return int(self._watch.pragma("data_version"))

    def load_open(self, mark: str) -> Iterator[OpenJob]:
        """All jobs up to the mark that have not ended, in order. Reads as it is read."""
        make = OpenJob._make
        with translated(self.path):
            for row in self._db().execute(LOAD_OPEN, (int(mark or 0),)):
                yield make(row)

    def load_new(self, mark: str, limit: int) -> News:
        """Numbers grow in the order of commits here, so the mark is the largest one seen."""
        rows = [OpenJob._make(row) for row in self.rows(LOAD_NEW, (int(mark or 0), limit))]
        return News(rows, str(rows[-1].id) if rows else mark)

    def load_some(self, ids: Iterable[int]) -> list[OpenJob]:
        return [OpenJob._make(row) for row in self.rows(LOAD_SOME, (self._among(ids),))]

    def errands(self, ids: Iterable[int]) -> list[Errand]:
        return [Errand._make(row) for row in self.rows(ERRANDS, (self._among(ids),))]

    def payload(self, id: int) -> str | None:
        row = self._one_of(PAYLOAD, id)
        return None if row is None else str(row[0])

    def last_event(self) -> int:
        row = self._one(LAST_EVENT)
        assert row is not None  # the schema puts it there
        return int(row[0])
