"""A PostgreSQL store into a backup and out of it: every table of our schema as one transaction sees
them, in the text that COPY writes, which any later PostgreSQL reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from headway.errors import StoreCorrupt
from headway.store.backup import numbers
from headway.store.backup.file import CHUNK, BackupFailed, Manifest, Reader, Tell, Writer
from headway.store.backup.sqlite import check_version
from headway.store.installing import Migration, texts_of
from headway.store.postgres.address import Address, parse
from headway.store.postgres.connection import Connection, connect, translated
from headway.store.postgres.connection import sql as text_of
from headway.store.postgres.schema import ONE_AT_A_TIME, found_version, migrations, routines
from headway.store.sealed import Sealed, keys_of

# What lives and ends with processes of before: who serves, and who was answered what.
FLEETING = frozenset({"servers", "producers"})
PLACE = "tables/{}.copy"
COLUMNS = text_of("backup_columns")
SEQUENCES = text_of("backup_sequences")
EXTRAS = text_of("backup_extras")
SEQUENCES_THERE = "select sequencename from pg_sequences where schemaname = current_schema()"
SNAPSHOT = "begin isolation level repeatable read, read only"


def copy_out(
    url: str, writer: Writer, sealed: Iterable[Sealed], tell: Tell
) -> Mapping[str, Any]:  # fmt: skip
    address = parse(url)
    with translated(address.name):
        db = connect(address)
        try:
            db.execute(SNAPSHOT)
            return _copy_tables(db, address, writer, sealed, tell)
        finally:
            if db.info.transaction_status != TransactionStatus.UNKNOWN:
                db.close()


def _copy_tables(
    db: Connection, address: Address, writer: Writer, sealed: Iterable[Sealed], tell: Tell
) -> dict[str, Any]:
    made_at = time()
    schema = found_version(db, address)
    if schema == 0:
        raise StoreCorrupt(f"there is no store in {address.name}; check the address and ?schema=")
    tables = _tables_of(db, address.schema)
    estimate = _estimate(db, address.schema)
    rows: dict[str, int] = {}
    for name, about in tables.items():
        place = PLACE.format(name)
        counter = _Rows(sum(rows.values()), estimate, tell)
        writer.add(place, counter.pieces(db, name, about["columns"]))
        rows[name] = counter.rows
        writer.counted(place, counter.rows)
    apps: dict[str, int] = {}
    if "app_schemas" in tables:
        apps = dict(db.execute("select app, version from app_schemas").fetchall())
    sequences = db.execute(SEQUENCES, (address.schema,)).fetchall()
    return {
        "store": "postgres", "name": address.name, "made_at": made_at, "schema": schema,
        "apps": apps, "rows": rows, "tables": tables,
        "keys": keys_of(sealed, list(tables), lambda query: db.execute(query.encode()).fetchall()),
        "sequences": {name: (int(last), bool(called)) for name, last, called, _, _ in sequences},
        "sequence_words": {name: (words, of or "") for name, _, _, words, of in sequences if words},
    }  # fmt: skip


def _tables_of(db: Connection, schema: str) -> dict[str, dict[str, Any]]:
    """The columns of each, and the words that would make it again."""
    found: dict[str, dict[str, Any]] = {}
    for table, column, words, computed in db.execute(COLUMNS, (schema,)):
        about = found.setdefault(table, {"columns": [], "words": [], "after": [], "last": []})
        about["words"].append(words)
        if not computed:
            about["columns"].append(column)
    for table, words, needs_others in db.execute(EXTRAS, {"schema": schema}):
        found[table]["last" if needs_others else "after"].append(words)
    return {name: about for name, about in found.items() if name not in FLEETING}


def _estimate(db: Connection, schema: str) -> int:
    row = db.execute(
        "select coalesce(sum(greatest(reltuples, 0)), 0)::bigint from pg_class as c "
        "join pg_namespace as n on n.oid = relnamespace where nspname = %s and relkind = 'r'",
        (schema,),
    ).fetchone()
    return int(row[0]) if row else 0


class _Rows:
    """The rows of a table on their way out, counted."""

    def __init__(self, before: int, estimate: int, tell: Tell) -> None:
        self.rows = 0
        self._before = before
        self._estimate = estimate
        self._tell = tell

    def pieces(self, db: Connection, table: str, columns: Sequence[str]) -> Iterator[bytes]:
        names = sql.SQL(", ").join(sql.Identifier(each) for each in columns)
        query = sql.SQL("copy {} ({}) to stdout").format(sql.Identifier(table), names)
        piece = bytearray()
        with db.cursor().copy(query) as copy:
            for block in copy:
                piece += block
                if len(piece) >= CHUNK:
                    yield self._counted(piece)
                    piece = bytearray()
        yield self._counted(piece)

    def _counted(self, piece: bytearray) -> bytes:
        self.rows += piece.count(b"\n")
        done = self._before + self.rows
        self._tell(done, max(done, self._estimate))
        return bytes(piece)


# ---------------------------------------------------------------------- back


def copy_in(
    reader: Reader, url: str, apps: Mapping[str, Sequence[Migration]], tell: Tell
) -> None:  # fmt: skip
    """Into a schema that is not there, or has nothing in it: all of it in one transaction."""
    manifest, address = reader.manifest, parse(url)
    check_version(manifest, migrations()[-1][0])
    with translated(address.name):
        db = connect(address)
        try:
            db.execute("set synchronous_commit to on")
            with db.transaction():
                db.execute(ONE_AT_A_TIME)
                _check_empty(db, address)
                unknown = _make_tables(db, address, manifest, apps)
                _load(db, reader, tell)
                _bring_up_to_date(db, address, manifest, apps)
                _renumber(db, manifest)
                for table in unknown:
                    _run(db, manifest.tables[table].get("last", ()))
            db.execute("analyze")
        finally:
            db.close()


def _check_empty(db: Connection, address: Address) -> None:
    row = db.execute(
        "select count(*) from pg_class as c join pg_namespace as n on n.oid = relnamespace "
        "where nspname = %s", (address.schema,),
    ).fetchone()  # fmt: skip
    if row is not None and row[0]:
        raise BackupFailed(f"there is something in the schema {address.schema} of {address.name} "
                           "already; name another database, or another schema with ?schema=…, or "
                           "drop that one")  # fmt: skip


def _make_tables(
    db: Connection, address: Address, manifest: Manifest, apps: Mapping[str, Sequence[Migration]]
) -> list[str]:
    """As they were when the backup was made: by the migrations of that time, and what nobody here
    knows by the words that the backup has for it. The names of the latter.
    """
    db.execute(f'create schema if not exists "{address.schema}"'.encode())
    for number, text in migrations():
        if number <= manifest.schema:
            db.execute(text.encode())
    for name, version in manifest.apps.items():
        for text in texts_of(name, apps.get(name, ()), "postgres")[:version]:
            db.execute(text.encode())
    there = set(_tables_of(db, address.schema)) | FLEETING
    for table in there - FLEETING:
        db.execute(sql.SQL("truncate {}").format(sql.Identifier(table)))
    unknown = [table for table in manifest.tables if table not in there]
    _make_unknown(db, manifest, unknown)
    return unknown


def _make_unknown(db: Connection, manifest: Manifest, unknown: Sequence[str]) -> None:
    """Sequences first, since columns take their numbers from them; then each is bound to its
    column, and goes with it.
    """
    there = {name for name, *_ in db.execute(SEQUENCES_THERE)}
    missing = [words for name, words in manifest.sequence_words.items() if name not in there]
    _run(db, [make for make, _ in missing])
    for table in unknown:
        about = manifest.tables[table]
        name = sql.Identifier(table).as_string(db)
        _run(db, [f"create table {name} ({', '.join(about['words'])})", *about["after"]])
    _run(db, [bind for _, bind in missing if bind])


def _run(db: Connection, texts: Iterable[str]) -> None:
    for each in texts:
        db.execute(each.encode())


def _load(db: Connection, reader: Reader, tell: Tell) -> None:
    manifest = reader.manifest
    done = 0
    for table, about in manifest.tables.items():
        rows = _load_table(db, reader, table, about["columns"], done, tell)
        if rows != manifest.rows[table]:
            raise BackupFailed(f"{table} has {rows} rows, and not the {manifest.rows[table]} that "
                               "were counted; nothing was restored")  # fmt: skip
        done += rows
    for name, (last, called) in manifest.sequences.items():
        quoted = sql.Literal(sql.Identifier(name).as_string(db))
        db.execute(
            sql.SQL("select setval(to_regclass({}), {}, {}) where to_regclass({}) is not null")
            .format(quoted, last, called, quoted)
        )  # fmt: skip


def _load_table(
    db: Connection, reader: Reader, table: str, columns: Sequence[str], before: int, tell: Tell
) -> int:
    names = sql.SQL(", ").join(sql.Identifier(each) for each in columns)
    query = sql.SQL("copy {} ({}) from stdin").format(sql.Identifier(table), names)
    damage: BackupFailed | None = None
    cursor, done = db.cursor(), before
    try:
        with cursor.copy(query) as copy:
            try:
                for piece in reader.pieces(PLACE.format(table)):
                    copy.write(piece)
                    done += piece.count(b"\n")
                    tell(done, reader.manifest.total)
            except BackupFailed as error:
                damage = error
                raise
    except psycopg.Error:
        if damage is not None:  # of which the server only knows that we broke off
            raise damage from None
        raise
    return cursor.rowcount


def _bring_up_to_date(
    db: Connection, address: Address, manifest: Manifest, apps: Mapping[str, Sequence[Migration]]
) -> None:
    newest = migrations()[-1][0]
    for number, text in migrations():
        if number > manifest.schema:
            db.execute(text.encode())
    for text in routines():
        db.execute(text.encode())
    mark = f"headway schema version {newest}"
    db.execute(f"comment on schema \"{address.schema}\" is '{mark}'".encode())
    for name, version in manifest.apps.items():
        texts = texts_of(name, apps.get(name, ()), "postgres")
        for text in texts[version:]:
            db.execute(text.encode())
        if texts:
            db.execute("update app_schemas set version = %s where app = %s", (len(texts), name))


def _renumber(db: Connection, manifest: Manifest) -> None:
    db.execute(numbers.STALE.encode())
    db.execute("update leader set term = (select term from brain), holder = '', "
               "lease_end = '-infinity'")  # fmt: skip
    db.execute(
        "select setval(pg_get_serial_sequence('jobs', 'id'), %s + greatest("
        "(select coalesce(max(id), 1) from jobs), "
        "nextval(pg_get_serial_sequence('jobs', 'id'))))",
        (numbers.JOBS,),
    )
    db.execute("update brain set last_event = last_event + %s + 1, turn = 0", (numbers.EVENTS,))
    db.execute("update purged_events set up_to = (select last_event - 1 from brain)")
    db.execute(
        "insert into events (id, at, event, fence, detail, who) "
        "select last_event, %s, %s, 0, %s, %s from brain",
        (time(), numbers.EVENT, numbers.said_of(manifest.made_at), numbers.WHO),
    )
