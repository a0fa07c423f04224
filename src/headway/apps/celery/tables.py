"""Which types of jobs Celery carries, and where to. It outlives a restart of the server."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

import msgspec

from headway.core import RetryPolicy
from headway.store import Store
from headway.store.tables import Table

APP = "celery"

MIGRATIONS = (
    """
    create table celery_types (
        name text not null primary key,
        queue text not null,
        kind text not null,
        rules text not null
    );
    """,
)

TYPES = Table(
    "celery_types",
    {"name": "text", "queue": "text", "kind": "text", "rules": "text"},
    ("name",),
)
PUT = TYPES.put()
STORED = "select name, queue, kind, rules from celery_types"


class Kind(StrEnum):
    RUN = "run"  # a job of Headway; the message names nothing but id and fence
    TASK = "task"  # a task of somebody's Celery application; its own message is sent on


class CarriedType(NamedTuple):
    name: str
    queue: str
    kind: Kind
    rules: RetryPolicy | None = None  # None: those that workers tell, or the usual ones


def save(store: Store, types: Iterable[CarriedType]) -> None:
    rows = [
        (each.name, each.queue, each.kind.value, msgspec.json.encode(each.rules).decode())
        for each in types
    ]
    store.write([(PUT, rows)])


def stored(store: Store) -> list[CarriedType]:
    return [
        CarriedType(name, queue, Kind(kind), msgspec.json.decode(rules, type=RetryPolicy | None))
        for name, queue, kind, rules in store.rows(STORED)
    ]
