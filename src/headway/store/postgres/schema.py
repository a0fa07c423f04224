"""Making the schema, and bringing it up to date. Safe in several processes."""

from __future__ import annotations

import re
from importlib.resources import files

from headway import errors
from headway.store.postgres.address import Address
from headway.store.postgres.connection import OLDEST, Connection, connect, translated

ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtext('headway'), 1)"
_MIGRATION = re.compile(r"(\d{4})_\w+\.sql")


def migrations() -> list[tuple[int, str]]:
    found = files("headway.store.postgres.migrations").iterdir()
    matches = [(match, each) for each in found if (match := _MIGRATION.fullmatch(each.name))]
    return sorted((int(match.group(1)), each.read_text("utf-8")) for match, each in matches)


def routines() -> list[str]:
    found = files("headway.store.postgres.routines").iterdir()
    return [each.read_text("utf-8") for each in found if each.name.endswith(".sql")]


def prepare(address: Address) -> None:
    """All in one transaction, and one process at a time."""
    with translated(address.name):
        db = connect(address)
        try:
            _check_server(db, address)
            known = migrations()
            if found_version(db, address) != known[-1][0]:
                _migrate(db, address, known)
        finally:
            db.close()


def _check_server(db: Connection, address: Address) -> None:
    version = db.info.server_version
    if version < OLDEST:
        raise errors.StoreError(
            f"{address.name} is PostgreSQL {version // 10_000}; Headway needs {OLDEST // 10_000} "
            "or newer"
        )
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise errors.StoreError(
            f"{address.name} has the encoding {encoding}; make a database with UTF8"
        )


def _migrate(db: Connection, address: Address, known: list[tuple[int, str]]) -> None:
    with db.transaction():
        db.execute(ONE_AT_A_TIME)
        version = found_version(db, address)
        if version == known[-1][0]:
            return
        db.execute(f'create schema if not exists "{address.schema}"'.encode())
        for number, text in known:
            if number > version:
                db.execute(text.encode())
        for text in routines():
            db.execute(text.encode())
        mark = f"headway schema version {known[-1][0]}"
        db.execute(f"comment on schema \"{address.schema}\" is '{mark}'".encode())


def found_version(db: Connection, address: Address) -> int:
    """It is in the comment of the schema. 0: there is none, or nothing is in it."""
    row = db.execute(
        "select obj_description(oid, 'pg_namespace'), "
        "exists (select from pg_class where relnamespace = n.oid) "
        "from pg_namespace as n where nspname = %s",
        (address.schema,),
    ).fetchone()
    mark, used = row or (None, False)
    version = re.fullmatch(r"headway schema version (\d+)", mark or "")
    if version is None:
        if used:
            raise errors.StoreCorrupt(
                f"the schema {address.schema!r} of {address.name} has tables of another program; "
                "name another one with ?schema=..."
            )
        return 0
    newest = migrations()[-1][0]
    if int(version[1]) > newest:
        raise errors.SchemaTooNew(
            f"{address.name} has schema version {version[1]}, and this Headway knows versions up "
            f"to {newest}; upgrade Headway, or name another schema"
        )
    return int(version[1])
