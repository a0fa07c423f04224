"""Looking at the store from below: versions, damage, and how long a commit takes.

Only for `migrate` and `doctor`, which must work where nothing else does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from headway.cli.where import Where
from headway.store import open_store

if TYPE_CHECKING:
    import apsw

    from headway.store.postgres.connection import Connection

COMMITS = 5


def found_version(where: Where) -> int:
    """Of the schema that is there; 0: nothing yet."""
    if where.dsn is not None:
        return _version_in_postgres(where.dsn)
    if not where.file.exists() or where.file.stat().st_size == 0:
        return 0
    with _file(where.file, writes=False) as db:
        return int(db.pragma("user_version"))


def newest_version(where: Where) -> int:
    """What this Headway brings it to."""
    if where.dsn is not None:
        from headway.store.postgres.schema import migrations  # noqa: PLC0415 - it is an extra
    else:
        from headway.store.sqlite.connection import migrations  # noqa: PLC0415
    return migrations()[-1][0]


def damage(where: Where) -> str:
    """What SQLite finds wrong in its file, in its own words; empty: nothing."""
    with _file(where.file, writes=False) as db:
        said = [str(row[0]) for row in db.execute("pragma quick_check(5)")]
    return "" if said == ["ok"] else "; ".join(said)


def commit_s(where: Where) -> float:
    """How long a commit takes until it is on disk: the best of a few. Nothing is changed."""
    if where.dsn is not None:
        with _session(where.dsn) as (db, _):
            return min(_timed_in_postgres(db) for _ in range(COMMITS))
    with _file(where.file, writes=True) as file:
        version = int(file.pragma("user_version"))
        return min(_timed_in_file(file, version) for _ in range(COMMITS))


def database_clock(dsn: str) -> float:
    with _session(dsn) as (db, _):
        row = db.execute("select extract(epoch from clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(row[0])


def _timed_in_file(db: apsw.Connection, version: int) -> float:
    began = perf_counter()
    db.execute("begin immediate")
    db.pragma("user_version", version)  # the same as before, and yet a page to be written
    db.execute("commit")
    return perf_counter() - began


def _timed_in_postgres(db: Connection) -> float:
    began = perf_counter()
    with db.transaction():
        db.execute("create temporary table headway_doctor () on commit drop")
    return perf_counter() - began


def _version_in_postgres(dsn: str) -> int:
    with _session(dsn) as (db, schema):
        row = db.execute(
            "select obj_description(oid, 'pg_namespace') from pg_namespace where nspname = %s",
            (schema,),
        ).fetchone()
    mark = re.fullmatch(r"headway schema version (\d+)", (row and row[0]) or "")
    return int(mark[1]) if mark else 0


@contextmanager
def _file(path: Path, *, writes: bool) -> Iterator[apsw.Connection]:
    from headway.store.sqlite.connection import connect, translated  # noqa: PLC0415

    with translated(str(path)):
        db = connect(str(path), writes=writes)
        try:
            yield db
        finally:
            db.close()


@contextmanager
def _session(dsn: str) -> Iterator[tuple[Connection, str]]:
    """A session with the database, and the name of our schema."""
    if not dsn.startswith(("postgresql://", "postgres://")):
        open_store(dsn).close()  # which says what is wrong with it
    try:
        from headway.store.postgres.address import parse  # noqa: PLC0415 - it is an extra
        from headway.store.postgres.connection import connect, translated  # noqa: PLC0415
    except ImportError:
        open_store(dsn).close()  # which says what is missing
        raise
    address = parse(dsn)
    with translated(address.name):
        db = connect(address)
        try:
            yield db, address.schema
        finally:
            db.close()
