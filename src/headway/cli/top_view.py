"""How `headway top` looks: everything on one screen, whatever its size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from headway.cli.layouts import gate_state, progress_words, upstream_words
from headway.cli.printing import STYLES, cell, number, plain, table
from headway.cli.times import ago

BAR = 16  # columns
HEAD = 2  # lines above the rows of a table
SMALL = 14  # lines; below this only what runs is shown
NARROW = 60  # columns; below this only names and numbers


@dataclass(slots=True)
class Picture:
    """What was seen last, and whether it is still so."""

    name: str = ""
    stats: dict[str, Any] = field(default_factory=dict)
    lanes: list[dict[str, Any]] = field(default_factory=list)
    upstreams: list[dict[str, Any]] = field(default_factory=list)
    running: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    seen: bool = False
    served: bool = True  # by a server; else it is only what is stored
    trouble: str = ""  # why nothing new is seen


def view(picture: Picture, width: int, height: int) -> RenderableType:
    parts: list[RenderableType] = [_headline(picture), _counts(picture)]
    if not picture.seen:
        return Group(*parts)
    left = height - len(parts)
    if height >= SMALL:
        for title, rows, share in (
            ("lanes", _lanes(picture, width), 5),
            ("upstreams", _upstreams(picture, width), 3),
            ("failed", _failed(picture, width), 5),
        ):
            most = max(1, height // share - HEAD)
            made = _section(title, rows, most, width)
            if made is not None:
                parts.append(made)
                left -= min(len(rows), most) + HEAD
    runs = _section("running", _running(picture, width), max(1, left - HEAD - 1), width)
    parts.append(runs or Text("nothing runs", style="bright_black"))
    if height >= SMALL:
        parts.append(Text("q leaves", style="bright_black"))
    return Group(*parts)


def _headline(picture: Picture) -> Text:
    line = Text("headway ", style="bold", no_wrap=True, overflow="ellipsis")
    line.append(plain(picture.name), style="")
    if picture.trouble:
        line.append(f"  reconnecting… ({plain(picture.trouble)})", style="bold red")
    elif not picture.seen:
        line.append("  connecting…", style="yellow")
    elif not picture.served:
        line.append("  no server runs here: this is what is stored", style="yellow")
    elif picture.stats["paused"]["all"]:
        line.append("  paused", style="bold yellow")
    return line


def _counts(picture: Picture) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    totals: dict[str, int] = {}
    for counts in picture.stats.get("lanes", {}).values():
        for name, many in counts.items():
            totals[name] = totals.get(name, 0) + many
    for name, style in STYLES.items():
        if totals.get(name) or name in ("running", "queued"):
            line.append(f"{totals.get(name, 0)} {name}  ", style=style)
    return line


def _section(
    title: str, rows: list[tuple[RenderableType, ...]], most: int, width: int
) -> Table | None:
    """A table of at most so many rows; the title says how many there are."""
    if not rows:
        return None
    more = f" ({len(rows)})" if len(rows) > most else ""
    heads = HEADS[title] if width >= NARROW else HEADS[title][: len(rows[0])]
    made = table(f"{title}{more}", *heads[1:], cut=CUT, right=NUMBERS)
    made.columns[0].justify = "left"
    for row in rows[:most]:
        made.add_row(*(each if isinstance(each, ProgressBar) else cell(each) for each in row))
    return made


CUT = ("lanes", "upstreams", "type", "at", "state", "why", "")
NUMBERS = ("running", "limit", "queued", "waiting")
HEADS = {
    "lanes": ("lanes", "running", "limit", "queued", "state"),
    "upstreams": ("upstreams", "running", "limit", "waiting", "state"),
    "running": ("running", "type", "at", "for", "progress", ""),
    "failed": ("failed", "type", "when", "why"),
}


def _lanes(picture: Picture, width: int) -> list[tuple[RenderableType, ...]]:
    busy = sorted(picture.lanes, key=lambda gate: (-gate["running"], -(gate["waiting"] or 0)))
    return [_gate(gate, width) for gate in busy]


def _upstreams(picture: Picture, width: int) -> list[tuple[RenderableType, ...]]:
    """Those that say something come first."""
    busy = sorted(
        picture.upstreams,
        key=lambda gate: (not gate["closed_until"], -(gate["waiting"] or 0), -gate["running"]),
    )
    return [_gate(gate, width) for gate in busy]


def _gate(gate: dict[str, Any], width: int) -> tuple[RenderableType, ...]:
    row = (plain(gate["name"]), str(gate["running"]), number(gate["limit"]),
           number(gate["waiting"]), gate_state(gate))  # fmt: skip
    return row if width >= NARROW else row[:3]


def _running(picture: Picture, width: int) -> list[tuple[RenderableType, ...]]:
    return [_job(job, width) for job in picture.running]


def _job(job: dict[str, Any], width: int) -> tuple[RenderableType, ...]:
    lasts = ago(job["started_at"]).removesuffix(" ago")
    row: tuple[RenderableType, ...] = (str(job["id"]), plain(job["type"]))
    if width < NARROW:
        return row
    progress = job["progress"]
    bar: RenderableType = ""
    if progress is not None and progress["percent"] is not None:
        bar = ProgressBar(total=100.0, completed=progress["percent"], width=BAR)
    return (*row, plain(upstream_words(job)), lasts, bar, plain(progress_words(job)))


def _failed(picture: Picture, width: int) -> list[tuple[RenderableType, ...]]:
    rows: list[tuple[RenderableType, ...]] = []
    for job in picture.failed:
        row = (str(job["id"]), plain(job["type"]), ago(job["finished_at"]),
               plain(job["last_error"] or ""))  # fmt: skip
        rows.append(row if width >= NARROW else row[:2])
    return rows
