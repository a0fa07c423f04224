"""How far something is, for whoever watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Column

from headway.cli.printing import new_console, plain

Tell = Callable[[str, float, float | None], None]  # in words, how much, of how much


@contextmanager
def progress_bar() -> Iterator[Tell | None]:
    """A bar on stderr for whoever watches; nothing otherwise."""
    console = new_console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    text = TextColumn(
        "{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        markup=False,
    )  # fmt: skip
    with Progress(
        BarColumn(bar_width=16), text, console=console, transient=True, expand=True
    ) as bar:
        task = bar.add_task("", total=None)

        def tell(said: str, done: float, total: float | None) -> None:
            bar.update(task, description=plain(said), completed=done, total=total)

        yield tell
