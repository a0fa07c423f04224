"""Tables of applications that an older Headway has made: from every version, with rows in them, to
the one of now; and a newer one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headway.apps.stored import migrations
from headway.errors import SchemaTooNew
from headway.store import Store, open_store
from headway.store.installing import texts_of
from tests.store.backup_kit import back_up, bring_back
from tests.stores import Place

KNOWN = migrations()
# Every version of every application but the newest, by its name and number.
OLD = [(app, number) for app, texts in KNOWN.items() for number in range(1, len(texts))]
VALUES = {"text": "text of {}", "real": 2.5, "double precision": 2.5, "boolean": True}
NUMBERS = ("bigint", "integer", "smallint", "int")


def new_tables(store: Store, app: str, version: int) -> list[str]:
    """Install that version of an application, as its Headway did; the tables that it made."""
    before = set(tables_of(store))
    store.install(app, list(KNOWN[app][:version]))
    return sorted(set(tables_of(store)) - before)


def tables_of(store: Store) -> list[str]:
    if store.dialect == "sqlite":
        # An index for search is no table with rows of ours.
        query = (
            "select name from sqlite_master where type = 'table' and sql not like '%virtual%' "
            "and name not like 'feed_search%' and name not like 'sqlite_%'"
        )
    else:
        query = (
            "select cast(relname as text) from pg_class join pg_namespace as n "
            "on n.oid = relnamespace where relkind = 'r' and nspname = current_schema() "
            "and relname not like 'feed_search%'"
        )
    return [str(name) for (name,) in store.rows(query)]


def columns_of(store: Store, table: str) -> list[tuple[str, str]]:
    if store.dialect == "sqlite":
        query = "select name, lower(type) from pragma_table_info(?)"
    else:
        query = (
            "select cast(attname as text), format_type(atttypid, atttypmod) from pg_attribute "
            "where attrelid = cast(? as regclass) and attnum > 0 and not attisdropped"
        )
    return [(str(name), str(kind)) for name, kind in store.rows(query, (table,))]


def put_row(store: Store, table: str, number: int) -> dict[str, Any]:
    """A value in every column."""
    columns = columns_of(store, table)
    row = {}
    for name, kind in columns:
        value = VALUES.get(kind, number if kind in NUMBERS else None)
        assert value is not None, f"what goes into {table}.{name}, a {kind}?"
        row[name] = value.format(number) if isinstance(value, str) else value
    names = ", ".join(f'"{name}"' for name in row)
    marks = ", ".join("?" for _ in row)
    query = f'insert into "{table}" ({names}) values ({marks}) returning 1'
    store._write(query, list(row.values()))  # type: ignore[attr-defined]
    return row


def rows_of(store: Store, table: str, names: Sequence[str]) -> list[dict[str, Any]]:
    query = ", ".join(f'"{name}"' for name in names)
    found = store.rows(f'select {query} from "{table}"')
    rows = [dict(zip(names, row, strict=True)) for row in found]
    return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))


def filled(store: Store, app: str, version: int) -> dict[str, list[dict[str, Any]]]:
    """Two rows in each of its tables."""
    return {
        table: [put_row(store, table, number) for number in (1, 2)]
        for table in new_tables(store, app, version)
    }


def check_rows(store: Store, before: dict[str, list[dict[str, Any]]]) -> None:
    assert before
    for table, rows in before.items():
        assert rows_of(store, table, list(rows[0])) == sorted(
            rows, key=lambda row: str(sorted(row.items(), key=str))
        )


@pytest.fixture(params=OLD, ids=lambda each: f"{each[0]}-{each[1]}")
def old(request: pytest.FixtureRequest) -> tuple[str, int]:
    found: tuple[str, int] = request.param
    return found


def version_of(store: Store, app: str) -> int:
    [(version,)] = store.rows("select version from app_schemas where app = ?", (app,))
    return int(version)


def test_tables_of_every_earlier_version_are_brought_up_to_date(
    url: str, old: tuple[str, int]
) -> None:
    app, version = old
    store = open_store(url)
    before = filled(store, app, version)
    store.install(app, KNOWN[app])
    assert version_of(store, app) == len(KNOWN[app])
    check_rows(store, before)
    store.close()

    fresh_columns = {table: columns_of_new(url, table) for table in before}
    assert all(fresh_columns.values())


def columns_of_new(url: str, table: str) -> list[tuple[str, str]]:
    store = open_store(url)
    try:
        return columns_of(store, table)
    finally:
        store.close()


def test_an_upgraded_schema_is_that_of_a_new_store(
    url: str, new_url: Place, tmp_path: Path, old: tuple[str, int]
) -> None:
    app, version = old
    (tmp_path / "fresh").mkdir()
    upgraded, fresh = open_store(url), open_store(new_url(tmp_path / "fresh"))
    filled(upgraded, app, version)
    upgraded.install(app, KNOWN[app])
    fresh.install(app, KNOWN[app])
    tables = tables_of(fresh)
    assert sorted(tables_of(upgraded)) == sorted(tables)
    for table in tables:
        assert columns_of(upgraded, table) == columns_of(fresh, table)
    upgraded.close()
    fresh.close()


def test_a_backup_of_an_earlier_version_is_restored_as_one_of_now(
    url: str, new_url: Place, tmp_path: Path, old: tuple[str, int]
) -> None:
    app, version = old
    store = open_store(url)
    before = filled(store, app, version)
    store.close()
    assert back_up(url, tmp_path / "one.headway").apps == {app: version}
    (tmp_path / "new").mkdir()
    there = new_url(tmp_path / "new")
    bring_back(tmp_path / "one.headway", there)
    store = open_store(there)
    assert version_of(store, app) == len(KNOWN[app])
    check_rows(store, before)
    store.close()


@pytest.mark.parametrize("app", KNOWN)
def test_a_newer_version_is_refused_and_left_alone(url: str, app: str) -> None:
    store = open_store(url)
    more = [*texts_of(app, KNOWN[app], store.dialect), "create table from_the_future (a bigint)"]
    store.install(app, more)
    with pytest.raises(SchemaTooNew, match="upgrade Headway"):
        store.install(app, KNOWN[app])
    assert version_of(store, app) == len(more)
    store.close()


def test_there_are_earlier_versions_to_try() -> None:
    assert {app for app, _ in OLD} >= {"channels", "feeds", "media"}
