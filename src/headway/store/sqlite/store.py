"""The SQLite store: a writer, readers, a bell and a lock around one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import msgspec

from headway.errors import BadJob
from headway.store.batch import Batch
from headway.store.grouping import Request
from headway.store.installing import SET_VERSION, VERSION, Migration, missing, texts_of
from headway.store.keeping import Keeper
from headway.store.protocol import ANYBODY, Done
from headway.store.records import (
    Brain,
    Candidate,
    Leader,
    NewJob,
    Purged,
    Receipt,
    ServerRow,
)
from headway.store.sqlite.bell import Listener, Ringer
from headway.store.sqlite.committing import commit, encoded, statements, take_writes
from headway.store.sqlite.connection import WAL_PAGES, prepare
from headway.store.sqlite.inserting import is_one_statement
from headway.store.sqlite.lock import EngineLock
from headway.store.sqlite.purging import purge, purge_type
from headway.store.sqlite.reading import Reader
from headway.store.sqlite.writer import Writer
from headway.store.tables import Writes

NO_LOANS = (
    "conn= needs PostgreSQL: in a SQLite file a job is stored in a transaction of its own; "
    "leave it out, or open the app with postgresql://..."
)


class SqliteStore(Keeper, Reader):
    dialect = "sqlite"

    def __init__(self, path: str, *, vfs: str | None = None, wal_pages: int = WAL_PAGES) -> None:
        path = str(Path(path).resolve())  # one lock and one bell, whatever the file is called
        prepare(path, vfs=vfs)
        super().__init__(path, vfs=vfs)
        self._writer = Writer(path, vfs=vfs, wal_pages=wal_pages, ring=self._ring)
        self._ringer = Ringer(path)
        self._listener: Listener | None = None
        self._heard: Callable[[], None] | None = None
        self._engine: EngineLock | None = None

    def close(self) -> None:
        try:
            self._writer.close()
        finally:  # whatever the disk says, the next engine may enter
            self.leave()
            self._ringer.close()
            super().close()

    def _ring(self) -> None:
        if self._heard is not None:
            self._heard()
        else:
            self._ringer.ring()

    # ------------------------------------------------------------------ asking, in any process

    def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        receipts: list[Receipt] = self._writer.run(Request(jobs, atomic=is_one_statement(jobs)))
        return receipts

    def post(self, jobs: Sequence[NewJob], done: Done) -> None:
        self._writer.post(Request(jobs, done=done))

    def insert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        raise BadJob(NO_LOANS)

    async def ainsert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        raise BadJob(NO_LOANS)

    def command(
        self, verb: str, target: str, args: Any, now: float, who: str | None = None
    ) -> None:
        text = msgspec.json.encode(args).decode()

        def write(db: apsw.Connection) -> None:
            db.execute(
                "insert into commands (at, verb, target, args, who) values (?, ?, ?, ?, ?)",
                (now, verb, target, text, who),
            )

        self._writer.run(Request(None, write, rings=True))

    def _write(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        def write(db: apsw.Connection) -> list[tuple[Any, ...]]:
            return db.execute(query, tuple(values)).fetchall()

        rows: list[tuple[Any, ...]] = self._writer.run(Request(None, write))
        return rows

    # ------------------------------------------------------------------ tables of applications

    def install(self, app: str, migrations: Sequence[Migration]) -> None:
        texts = texts_of(app, migrations, "sqlite")
        if not missing(self.path, app, texts, self.rows(VERSION, (app,))):
            return

        def write(db: apsw.Connection) -> None:
            found: list[Any] = db.execute(VERSION, (app,)).fetchall()  # another may have been here
            for text in missing(self.path, app, texts, found):
                db.execute(text)
            db.execute(SET_VERSION, (app, len(texts)))

        self._writer.run(Request(None, write))

    def write(self, writes: Writes) -> None:
        texts = statements(writes)
        self._writer.run(Request(None, lambda db: take_writes(db, texts)))

    # ------------------------------------------------------------------ the one engine

    def enter(self, heard: Callable[[], None], candidate: Candidate = ANYBODY) -> Brain:
        self._engine = EngineLock(self.path)
        try:
            self._listener = Listener(self.path, heard)
            self._heard = heard

            def write(db: apsw.Connection) -> None:
                db.execute("update brain set term = term + 1")

            self._writer.run(Request(None, write))
            return self.brain()
        except BaseException:
            self.leave()
            raise

    def assure(self) -> None:
        pass  # the lock of the file is ours as long as the process lives

    def let_go(self) -> None:
        pass  # nobody else could lead before the process has ended

    def leader(self) -> Leader | None:
        return None  # the file is locked, and nobody else can reach that process

    def follow(self, heard: Callable[[], None]) -> Callable[[], None]:
        return lambda: None  # there is one server for each file, and it hears its own engine

    def announce(self, server: str, about: str) -> None:
        pass

    def servers(self) -> list[ServerRow]:
        return []

    def leave(self) -> None:
        self._heard = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._engine is not None:
            self._engine.release()
            self._engine = None

    def commit(self, batch: Batch) -> None:
        values, writes = encoded(batch), statements(batch.writes)
        write: Callable[[apsw.Connection], None] = lambda db: commit(  # noqa: E731
            db, batch, values, writes
        )
        self._writer.run(Request(None, write, atomic=not (batch.jobs or writes)))

    def send(self, batch: Batch) -> None:
        self.commit(batch)  # another thread would only wait for Python's global lock

    def settle(self) -> None:
        pass

    def purge(self, completed_before: float, failed_before: float, now: float) -> Purged:
        write: Callable[[apsw.Connection], Purged] = lambda db: purge(  # noqa: E731
            db, completed_before, failed_before, now
        )
        purged: Purged = self._writer.run(Request(None, write))
        return purged

    def purge_type(self, type: str, completed_before: float) -> Purged:
        write: Callable[[apsw.Connection], Purged] = lambda db: purge_type(  # noqa: E731
            db, type, completed_before
        )
        purged: Purged = self._writer.run(Request(None, write))
        return purged
