"""A SQLite store into a backup and out of it: the pages of one moment, whatever is written at the
same time, with SQLite's own backup.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any

import apsw

from headway.errors import SchemaTooNew, StoreCorrupt, StoreFull
from headway.store.backup import numbers
from headway.store.backup.file import (
    CHUNK,
    COPY,
    BackupFailed,
    Manifest,
    Reader,
    Tell,
    Writer,
    draft_beside,
    sync,
    take_name,
)
from headway.store.sealed import Sealed, keys_of
from headway.store.sqlite.connection import (
    APPLICATION_ID,
    connect,
    migrations,
    prepare,
    translated,
)
from headway.store.sqlite.lock import EngineLock

MEMBER = "headway.db"
PAGES = 4_000  # that are copied before somebody is told
SHADOWS = ("_data", "_idx", "_content", "_docsize", "_config")  # tables of an index for search


def copy_out(
    path: Path, beside: Path, writer: Writer, sealed: Iterable[Sealed], tell: Tell
) -> Mapping[str, Any]:
    """Into the writer. Needs as much room `beside` the backup as the store has."""
    copy = draft_beside(beside, COPY)
    try:
        made_at = time()
        try:
            _copy_pages(path, copy, tell)
        except StoreFull:
            raise BackupFailed(
                f"there is no room beside {beside} for a copy of {path}, which has "
                f"{path.stat().st_size / (1 << 20):.0f} MiB; make room, or name another place; "
                "nothing is left of it"
            ) from None
        with _opened(copy) as db:
            said = _look_at(db, str(path), sealed)
        writer.add(MEMBER, _pieces(copy))
        return {"store": "sqlite", "name": str(path), "made_at": made_at, **said}
    finally:
        _remove(_parts(copy))


def _copy_pages(path: Path, copy: Path, tell: Tell) -> None:
    """From one read transaction, which sees one moment and holds up nobody who writes."""
    with translated(str(path)):
        source = connect(str(path), writes=False)
        try:
            if int(source.pragma("application_id")) != APPLICATION_ID:
                raise StoreCorrupt(f"{path} is the SQLite file of another program")
            source.execute("begin")
            source.execute("select count(*) from sqlite_master").get  # noqa: B018 - it begins here
            with translated(str(copy)):
                _step_by_step(source, copy, tell)
        finally:
            source.close()


def _step_by_step(source: apsw.Connection, copy: Path, tell: Tell) -> None:
    target = apsw.Connection(str(copy))
    try:
        target.pragma("synchronous", "off")  # whoever keeps the copy syncs it
        with target.backup("main", source, "main") as backup:
            while not backup.done:
                backup.step(PAGES)
                tell(backup.page_count - backup.remaining, backup.page_count)
        target.pragma("journal_mode", "delete")  # one file, and nothing beside it
    finally:
        target.close()


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    with translated(str(path)):
        db = apsw.Connection(str(path))
        try:
            yield db
        finally:
            db.close()


def _look_at(db: apsw.Connection, name: str, sealed: Iterable[Sealed]) -> dict[str, Any]:
    """What is in it, once it is known to be whole."""
    wrong = [str(row[0]) for row in db.execute("pragma integrity_check(5)")]
    if wrong != ["ok"]:
        raise StoreCorrupt(f"{name} is damaged: {'; '.join(wrong)}; no backup of it was made")
    tables = _tables(db)
    apps: dict[str, int] = {}
    if "app_schemas" in tables:
        found = db.execute("select app, version from app_schemas").fetchall()
        apps = {str(name): int(str(version)) for name, version in found}
    return {
        "schema": int(db.pragma("user_version")),
        "apps": apps,
        "rows": {each: db.execute(f'select count(*) from "{each}"').get for each in tables},
        "keys": keys_of(sealed, tables, lambda query: db.execute(query).fetchall()),
    }


def _tables(db: apsw.Connection) -> list[str]:
    """Without those that SQLite keeps for itself."""
    virtual = [str(row[0]) for row in db.execute(
        "select name from sqlite_master where type = 'table' and sql like 'create virtual%'"
    )]  # fmt: skip
    hidden = {name + shadow for name in virtual for shadow in SHADOWS}
    names = [str(row[0]) for row in db.execute(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' "
        "order by name"
    )]  # fmt: skip
    return [name for name in names if name not in hidden and name not in virtual]


def _pieces(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while piece := file.read(CHUNK):
            yield piece


# ---------------------------------------------------------------------- back


def check_whole(reader: Reader, directory: Path, tell: Tell) -> None:
    """The file that is in it opens, is whole, and has the rows that were counted."""
    copy = directory / MEMBER
    try:
        _unpack(reader, copy, tell)
    except OSError as error:
        raise BackupFailed(f"{copy} cannot be written, so nothing was checked: {error.strerror}; "
                           "let TMPDIR name a place with room") from error  # fmt: skip
    _compare(copy, reader.manifest)


def _unpack(reader: Reader, copy: Path, tell: Tell) -> None:
    done, total = 0, reader.manifest.members[MEMBER].bytes
    handle = os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as out:
        for piece in reader.pieces(MEMBER):
            out.write(piece)
            done += len(piece)
            tell(done, total)


def _compare(copy: Path, manifest: Manifest) -> None:
    with _opened(copy) as db:
        rows = _look_at(db, str(copy), ())["rows"]
    wrong = [name for name, many in manifest.rows.items() if rows.get(name) != many]
    if wrong:
        raise BackupFailed(f"{', '.join(wrong)} in the backup have not the rows that were counted; "
                           "use another backup")  # fmt: skip


def copy_in(
    reader: Reader, file: Path, apps: Mapping[str, Sequence[Any]], tell: Tell
) -> None:  # fmt: skip
    """Into a place where there is no store yet, and no engine."""
    check_version(reader.manifest, migrations()[-1][0])
    _check_empty(file)
    lock = EngineLock(str(file.resolve()))  # an engine may go on with a file that was removed
    copy = file.with_name(f".{file.name}.restoring")
    beside = _parts(copy)
    try:
        _remove(beside)  # of one that was killed: the lock is ours
        _unpack(reader, copy, tell)
        _compare(copy, reader.manifest)
        _bring_up_to_date(copy, apps)
        with _opened(copy) as db:
            _renumber(db, reader.manifest)
            db.pragma("journal_mode", "delete")
        _check_empty(file)  # once more: it has taken a while
        _put_in_place(copy, file)
    except FileExistsError:
        raise BackupFailed(f"somebody else has made a store in {file.parent} meanwhile") from None
    except OSError as error:
        raise BackupFailed(
            f"{file} cannot be written: {error.strerror}; nothing was restored"
        ) from error
    finally:
        _remove(beside)
        lock.release()
        with contextlib.suppress(OSError):
            if not file.exists():
                Path(f"{file}-engine").unlink(missing_ok=True)


def _parts(file: Path) -> list[Path]:
    """A SQLite file, and what SQLite keeps beside it."""
    return [file.with_name(file.name + end) for end in ("", "-wal", "-shm", "-journal")]


def _remove(files: Iterable[Path]) -> None:
    for each in files:
        with contextlib.suppress(OSError):
            each.unlink(missing_ok=True)


def _check_empty(file: Path) -> None:
    """A WAL that was left behind is no less of a store: SQLite would put what is in it over what
    was restored.
    """
    there = [each.name for each in _parts(file) if os.path.lexists(each)]
    if there:
        raise BackupFailed(
            f"something of a store is in {file.parent} already ({', '.join(there)}); move "
            f"{file.name} together with its -wal and -shm away, or name an empty directory"
        )


def check_version(manifest: Manifest, newest: int) -> None:
    if manifest.schema > newest:
        raise SchemaTooNew(f"the backup has schema version {manifest.schema}, made by Headway "
                           f"{manifest.headway}, and this Headway knows versions up to {newest}; "
                           "upgrade Headway")  # fmt: skip


def _bring_up_to_date(copy: Path, apps: Mapping[str, Sequence[Any]]) -> None:
    from headway.store.sqlite import SqliteStore  # noqa: PLC0415 - which knows how to install

    prepare(str(copy))
    store = SqliteStore(str(copy))
    try:
        for name, known in apps.items():
            store.install(name, known)
    finally:
        store.close()


def _renumber(db: apsw.Connection, manifest: Manifest) -> None:
    with db:
        db.execute(numbers.STALE)
        db.execute(
            "update brain set purged_job = ? + max(purged_job, "
            "coalesce((select max(id) from jobs), 0)), purged_event = ? + max(purged_event, "
            "coalesce((select max(id) from events), 0))",
            (numbers.JOBS, numbers.EVENTS),
        )
        db.execute("update purged_events set up_to = (select purged_event from brain)")
        db.execute(
            "insert into events (id, at, event, fence, detail, who) "
            "select purged_event + 1, ?, ?, 0, ?, ? from brain",
            (time(), numbers.EVENT, numbers.said_of(manifest.made_at), numbers.WHO),
        )


def _put_in_place(copy: Path, file: Path) -> None:
    sync(copy)
    take_name(copy, file)
    sync(file.parent)
