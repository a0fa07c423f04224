"""What the commands share to answer: plain JSON for programs, tables for people."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

WIDE = 1_000  # columns where nobody looks: what a program reads is not cut off
STYLES = {
    "running": "cyan", "completed": "green", "failed": "red", "paused": "yellow",
    "cancelled": "bright_black", "pending": "bright_black", "queued": "blue",
}  # fmt: skip
LEVELS = {"ok": "green", "warn": "yellow", "fail": "bold red"}

# What moves a terminal's cursor, changes its colours, or turns text around.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(value: Any) -> str:
    """Text from elsewhere, on one line, that can do nothing to a terminal."""
    return _CONTROL.sub(lambda found: " " if found[0] in "\n\t\r" else "\N{REPLACEMENT CHARACTER}",
                        str(value)).strip()  # fmt: skip


def state(name: str) -> Text:
    return Text(name, style=STYLES.get(name, ""))


def word(text: Any, style: str) -> Text:
    return Text(plain(text), style=style)


def new_console(*, stderr: bool = False) -> Console:
    """Nothing in data is taken for markup. A pipe has no width to fit into."""
    stream = sys.stderr if stderr else sys.stdout
    seen = stream.isatty() or "COLUMNS" in os.environ
    return Console(
        file=stream, markup=False, emoji=False, highlight=False, width=None if seen else WIDE
    )


class Output:
    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.console = new_console()
        self._aside = new_console(stderr=True)

    def show(self, data: Any, render: Callable[[Any], RenderableType]) -> None:
        """The answer of a command."""
        if self.as_json:
            self.line(data, indent=2)
        else:
            self.console.print(render(data))

    def say(self, text: str | Text) -> None:
        """For people only."""
        if not self.as_json:
            self.console.print(plain(text) if isinstance(text, str) else text, soft_wrap=True)

    def line(self, data: Any, indent: int | None = None) -> None:
        print(json.dumps(data, ensure_ascii=False, indent=indent), flush=True)

    def aside(self, text: str) -> None:
        """Not the answer, but worth knowing: it goes to stderr."""
        self._aside.print(plain(text), soft_wrap=True)


# ---------------------------------------------------------------------- shapes


def table(*columns: str, right: Sequence[str] = (), cut: Sequence[str] = ()) -> Table:
    """`cut` names the columns that are cut where there is too little room, the widest first."""
    made = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold",
        collapse_padding=True,
    )  # fmt: skip
    for column in columns:
        # Rich takes room from columns that may wrap. Their cells do not: they are cut.
        made.add_column(
            Text(column, no_wrap=True, overflow="ellipsis"),
            justify="right" if column in right else "left",
            no_wrap=column not in cut,
            overflow="ellipsis",
        )
    return made


def cell(value: Any) -> Text:
    text = value if isinstance(value, Text) else Text(plain(value))
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def rows(into: Table, found: Iterable[Sequence[Any]], nothing: str) -> RenderableType:
    """The table, or a sentence when it would be empty."""
    for row in found:
        into.add_row(*(cell(each) for each in row))
    return into if into.row_count else Text(nothing, style="bright_black")


def facts(pairs: Iterable[tuple[str, Any]]) -> Table:
    """Names and values under each other; what is empty is left out."""
    made = Table.grid(padding=(0, 2))
    made.add_column(style="bright_black", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "" and value != [] and value != {}:
            made.add_row(name, value if isinstance(value, Text) else plain(value))
    return made


def count(many: int, noun: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{many} {noun if many == 1 else noun + 's'}"


def number(value: float | None, none: str = "-") -> str:
    """`3`, `2.5`; a limit that is not there is a dash."""
    return none if value is None else f"{value:g}"
