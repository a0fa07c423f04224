"""The schema of an application: its migrations in order, of which each is done once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headway.errors import SchemaTooNew
from headway.store.tables import check_name

# The same words for every store, or those of each.
Migration = str | Mapping[str, str]

STORES = {"sqlite", "postgres"}
VERSION = "select version from app_schemas where app = ?"
SET_VERSION = (
    "insert into app_schemas (app, version) values (?, ?) "
    "on conflict (app) do update set version = excluded.version"
)


def texts_of(app: str, migrations: Sequence[Migration], store: str) -> list[str]:
    """All migrations in the words of one store; the first one leads to version 1."""
    check_name(app)
    texts = []
    for number, migration in enumerate(migrations, start=1):
        if isinstance(migration, str):
            texts.append(migration)
        elif set(migration) == STORES:
            texts.append(migration[store])
        else:
            raise ValueError(
                f"migration {number} of {app} is one text, or has one for each of "
                f"{' and '.join(sorted(STORES))}"
            )
    return texts


def missing(name: str, app: str, texts: Sequence[str], found: list[tuple[Any, ...]]) -> list[str]:
    """What is still to be done, after `VERSION` has found this in the store of that name."""
    version = int(found[0][0]) if found else 0
    if version > len(texts):
        raise SchemaTooNew(
            f"the tables of {app} in {name} have version {version}, and this Headway knows "
            f"versions up to {len(texts)}; upgrade Headway, or name another store"
        )
    return list(texts[version:])
