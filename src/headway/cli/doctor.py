"""`headway doctor`: whether everything is as it should be, and what to do if not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from headway.cli import checks, upkeep_checks
from headway.cli.asking import Call, asks
from headway.cli.checks import Finding
from headway.cli.client import Client
from headway.cli.printing import LEVELS, plain
from headway.errors import HeadwayError

ASKED: tuple[Callable[[Client], Iterator[Finding]], ...] = (
    checks.of_server, checks.pauses, checks.unknown_types, checks.closed, checks.failures,
    checks.clock, checks.archive, upkeep_checks.keys, upkeep_checks.alerts, upkeep_checks.servers,
)  # fmt: skip


@asks
def doctor(call: Call) -> None:
    """Check the set-up, and say what is wrong and what to do. Fails (1) if something is wrong."""
    found = list(examine(call))
    data = [{"level": each.level, "about": each.about, "text": each.text} for each in found]
    wrong = any(each.level == "fail" for each in found)
    call.out.show({"ok": not wrong, "findings": data}, lambda _: _table(found))
    if wrong:
        sys.exit(1)


def examine(call: Call) -> Iterator[Finding]:
    where = call.where
    yield from checks.python()
    if where.server is None:
        below = [*checks.directory(where), *upkeep_checks.key_file(where), *checks.store(where)]
        yield from below
        if not any(each.level == "fail" for each in below):
            yield from upkeep_checks.backups(where)
            yield from upkeep_checks.clocks(where)
        yield from checks.server(where)
        if any(each.level == "fail" for each in below) or not _is_there(call):
            return  # what is broken cannot be asked
    try:
        client = call.client
        for check in ASKED:
            yield from check(client)
        yield from checks.tokens(client, _public(os.environ.get("HEADWAY_HOST")))
    except HeadwayError as error:
        yield checks.fail("server" if where.server or where.running() else "store", str(error))


def _is_there(call: Call) -> bool:
    where = call.where
    return where.server is not None or where.dsn is not None or where.file.exists()


def _public(host: str | None) -> bool:
    from headway.api.config import is_loopback  # noqa: PLC0415 - the server's code loads slowly

    return host is not None and not is_loopback(host)


def _table(found: list[Finding]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for each in found:
        mark = Text(each.level, style=LEVELS[each.level])
        table.add_row(mark, each.about, plain(each.text))
    return table
