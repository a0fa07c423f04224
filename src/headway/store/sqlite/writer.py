"""The one writer of this process."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import apsw

from headway.errors import StoreBusy, StoreError
from headway.store.grouping import GroupCommit, Request
from headway.store.sqlite.committing import TURN
from headway.store.sqlite.connection import WAL_PAGES, connect, translated
from headway.store.sqlite.inserting import insert


class Writer(GroupCommit):
    SAME_FOR_ALL = (StoreBusy,)

    def __init__(
        self,
        path: str,
        *,
        vfs: str | None,
        ring: Callable[[], None],
        wal_pages: int = WAL_PAGES,
    ) -> None:
        super().__init__(path, ring=ring)
        self.path = path
        self._vfs = vfs
        self._wal_pages = wal_pages
        self._db: apsw.Connection | None = None

    def _run_alone(self, request: Request) -> bool:
        db = self._db
        if db is None:
            return False
        with translated(self.path):
            if request.jobs is not None:
                request.value = insert(db, request.jobs)
            else:
                assert request.write is not None
                request.value = request.write(db)
        return True

    def _commit(self, requests: list[Request]) -> None:
        with translated(self.path):
            if self._db is None:
                new = connect(self.path, vfs=self._vfs, wal_pages=self._wal_pages)
                new.execute(TURN)
                self._db = new
            db = self._db
            before = db.total_changes()
            db.execute("begin immediate")
            try:
                self._write(db, requests)
                db.execute("commit")
            except BaseException as error:
                if db.in_transaction:
                    self._roll_back(db)
                elif not isinstance(error, Exception) and db.total_changes() != before:
                    self._committed(requests)  # Ctrl-C came just after the commit
                raise
        self._committed(requests)

    def _roll_back(self, db: apsw.Connection) -> None:
        try:
            db.execute("rollback")
        except apsw.Error:
            with contextlib.suppress(StoreError):
                self._drop()  # a new connection starts with no transaction

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with translated(self.path):
                db.close()

    def _write(self, db: apsw.Connection, requests: list[Request]) -> None:
        jobs = [job for request in requests if request.jobs for job in request.jobs]
        receipts = iter(insert(db, jobs) if jobs else ())
        for request in requests:
            if request.jobs is not None:
                request.value = [next(receipts) for _ in request.jobs]
            elif request.write is not None:
                request.value = request.write(db)
