"""The disk of a store, which can be full. How is a matter of the store: a line in DISKS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import psycopg

from headway import App
from headway.errors import StoreFull
from headway.store.postgres.address import parse


class Disk(Protocol):
    def fill(self) -> None: ...
    def clear(self) -> None: ...

    @property
    def refused(self) -> int:
        """How many writes."""


class SqliteDisk:
    """Full as seen from the writer."""

    def __init__(self, app: App) -> None:
        self.refused = 0
        self._is_full = False
        writer = app.store._writer  # type: ignore[attr-defined]
        for name in ("_commit", "_run_alone"):
            setattr(writer, name, self._if_there_is_room(getattr(writer, name)))

    def fill(self) -> None:
        self._is_full = True

    def clear(self) -> None:
        self._is_full = False

    def _if_there_is_room(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*args: Any) -> Any:
            if self._is_full:
                self.refused += 1
                raise StoreFull("no space is left; free some, work then goes on by itself")
            return write(*args)

        return checked


# A sequence counts what was refused: it keeps its value when a transaction is taken back.
FULL = """
create table disk as select false as is_full;
create sequence refusals minvalue 0 start 0;
select nextval('refusals');
create function look_for_room() returns trigger language plpgsql as $$ begin
    if (select is_full from disk) then
        perform nextval('refusals');
        raise exception 'could not extend file' using errcode = 'disk_full';
    end if;
    return null;
end $$;
create trigger room before insert or update on jobs execute function look_for_room();
create trigger room before update on brain execute function look_for_room();
"""


class PostgresDisk:
    """Full as seen from the server: every statement that writes fails in it."""

    def __init__(self, app: App) -> None:
        app.store  # noqa: B018 - it makes the tables
        self._address = parse(app.url)
        self._run(FULL)

    def _run(self, query: str) -> Any:
        options = f"-c search_path={self._address.schema}"
        with psycopg.connect(self._address.conninfo, options=options, autocommit=True) as db:
            cursor = db.execute(query.encode())
            return cursor.fetchone() if cursor.description else None

    def fill(self) -> None:
        self._run("update disk set is_full = true")

    def clear(self) -> None:
        self._run("update disk set is_full = false")

    @property
    def refused(self) -> int:
        return int(self._run("select last_value from refusals")[0])


# By the scheme of the address.
DISKS: dict[str, Callable[[App], Disk]] = {"sqlite": SqliteDisk, "postgresql": PostgresDisk}


def disk_of(app: App) -> Disk:
    return DISKS[app.url.partition(":")[0]](app)
