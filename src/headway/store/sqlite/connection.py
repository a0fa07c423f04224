"""Opening the file: settings, schema versions, and errors in our own words."""

from __future__ import annotations

import re
import time
from importlib.resources import files
from pathlib import Path

import apsw

from headway import errors

APPLICATION_ID = 0x48445759  # "HDWY": marks the file as ours
BUSY_MS = 30_000
WAL_PAGES = 4_000  # about 16 MB between checkpoints

_MIGRATION = re.compile(r"(\d{4})_\w+\.sql")


def sql(name: str) -> str:
    """The text of one query, from its own file."""
    return files("headway.store.sqlite.sql").joinpath(f"{name}.sql").read_text("utf-8")


def migrations() -> list[tuple[int, str]]:
    found = files("headway.store.sqlite.migrations").iterdir()
    matches = [(match, each) for each in found if (match := _MIGRATION.fullmatch(each.name))]
    return sorted((int(match.group(1)), each.read_text("utf-8")) for match, each in matches)


class translated:  # noqa: N801 - it is used like a function
    """`with translated(path):` SQLite's errors as ours, with the file and what to do."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, apsw.Error):
            raise _translation(self._path, error) from error


def _translation(path: str, error: apsw.Error) -> errors.StoreError:
    match error:
        case apsw.FullError():
            return errors.StoreFull(
                f"no space is left for {path}; free some, work then goes on by itself"
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return errors.StoreReadOnly(
                f"{path} cannot be written; give this process the right to write it "
                "and its directory"
            )
        case apsw.CorruptError() | apsw.NotADBError():
            return errors.StoreCorrupt(
                f"{path} is damaged, or is no SQLite file ({error}); restore it from a copy, "
                "or name another file"
            )
        case apsw.BusyError() | apsw.LockedError():
            return errors.StoreBusy(
                f"another process has kept {path} locked for {BUSY_MS // 1000} s; "
                "find it and let it end"
            )
        case apsw.CantOpenError():
            return errors.StoreUnavailable(
                f"{path} cannot be opened; check that its directory is there and may be written"
            )
        case apsw.IOError() | apsw.ProtocolError() | apsw.NoMemError():
            return errors.StoreUnavailable(f"{path} cannot be used now: {error}")
    return errors.StoreError(f"{path} cannot take this: {error}")


def connect(
    path: str,
    *,
    vfs: str | None = None,
    writes: bool = True,
    wal_pages: int = WAL_PAGES,
    may_be_new: bool = False,
) -> apsw.Connection:
    """A connection with our settings. The file must have been `prepared` before."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if may_be_new else 0)
    with translated(path):
        db = apsw.Connection(path, flags, vfs=vfs)
        db.set_busy_timeout(BUSY_MS)
        db.pragma("synchronous", "full")
        db.pragma("temp_store", "memory")
        if writes:
            db.pragma("wal_autocheckpoint", wal_pages)
            db.pragma("cache_size", -32_000)
        else:
            db.pragma("query_only", True)
        return db


def prepare(path: str, *, vfs: str | None = None) -> None:
    """Make the file if it is new, and bring its schema up to date. Safe in several processes."""
    if vfs is None and not Path(path).parent.is_dir():
        raise errors.StoreUnavailable(
            f"the directory of {path} is not there; make it, or name another file"
        )
    with translated(path):
        db = connect(path, vfs=vfs, may_be_new=True)
        try:
            _version(db, path)  # what is not ours stays as it is
            _use_wal(db)
            _migrate(db, path)
        finally:
            db.close()


def _use_wal(db: apsw.Connection) -> None:
    """SQLite asks no busy handler here, so that two new processes may get in each other's way."""
    for attempt in range(100):
        try:
            if db.pragma("journal_mode") != "wal":
                db.pragma("journal_mode", "wal")
            return
        except apsw.BusyError:
            if attempt == 99:
                raise
            time.sleep(0.02)


def _migrate(db: apsw.Connection, path: str) -> None:
    known = migrations()
    newest = known[-1][0]
    if _version(db, path) == newest:
        return
    db.execute("begin immediate")
    try:
        version = _version(db, path)  # another process may have been here first
        for number, text in known:
            if number > version:
                db.execute(text)
                db.pragma("user_version", number)
        db.pragma("application_id", APPLICATION_ID)
        db.execute("commit")
    except BaseException:
        if db.in_transaction:  # on a full disk, SQLite has rolled back by itself
            db.execute("rollback")
        raise


def _version(db: apsw.Connection, path: str) -> int:
    with db:  # at one moment, for another process may just be making the file
        version = int(db.pragma("user_version"))
        mark = int(db.pragma("application_id"))
        empty = not db.execute("select count(*) from sqlite_master").get
    if mark != APPLICATION_ID and not empty:
        raise errors.StoreCorrupt(
            f"{path} is the SQLite file of another program; name another file"
        )
    newest = migrations()[-1][0]
    if version > newest:
        raise errors.SchemaTooNew(
            f"{path} has schema version {version}, and this Headway knows versions up to "
            f"{newest}; upgrade Headway, or name another file"
        )
    return version
