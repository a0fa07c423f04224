"""How `headway simulate` shows a report in a terminal: figures, sentences, and plots of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headway.cli.printing import plain, rows, table
from headway.simulation import sentences
from headway.simulation.comparing import verdict
from headway.simulation.presets import LOADS, UPSTREAMS
from headway.simulation.report import GateRow, Report
from headway.simulation.wording import duration, figure, nice_top, percent, rate, whole

BLOCKS = " ▁▂▃▄▅▆▇█"
TALL = 5  # lines of the plot of the throughput
LEAST = 56  # columns that a run needs beside another one
WIDEST = 100
MOST_TENANTS = 12
MOST_GATES = 4

Column = Callable[[Report], str]

FIGURES: tuple[tuple[str, Column], ...] = (
    ("came", lambda run: whole(run.came)),
    ("completed", lambda run: whole(run.completed)),
    ("failed", lambda run: whole(run.failed)),
    ("not done", lambda run: whole(run.left)),
    ("all done after", lambda run: duration(run.finished_after_s)),
    ("calls", lambda run: whole(run.calls)),
    ("refused (429)", lambda run: whole(run.refused)),
    ("while banned", lambda run: whole(run.banned)),
    ("errors (5xx)", lambda run: whole(run.unwell)),
    ("online calls", lambda run: whole(run.online)),
    ("  that failed", lambda run: whole(run.online_failed)),
    ("turned away", lambda run: whole(run.turned_away)),
    ("true limit", lambda run: rate(run.limit_per_minute)),
    ("use of it while work waits", lambda run: percent(run.use)),
    ("wait, half", lambda run: duration(run.waits.p50_s)),
    ("wait, 95 %", lambda run: duration(run.waits.p95_s)),
    ("wait, 99 %", lambda run: duration(run.waits.p99_s)),
    ("longest wait", lambda run: duration(run.waits.longest_s)),
    ("fairness (1 is best)", lambda run: "-" if run.fairness is None else f"{run.fairness:.3f}"),
    ("simulated in", lambda run: duration(run.took_s)),
)
ALWAYS = frozenset({"came", "completed", "calls", "refused (429)", "simulated in"})


def whole_report(reports: list[Report], title: str, notes: list[str], width: int) -> RenderableType:
    """Figures of all runs in one table, what differs in words, then each run in plots."""
    parts: list[RenderableType] = [Text(plain(title), style="bold"), Text()]
    parts.append(_figures(reports))
    lines = [line for other in reports[1:] for line in verdict(reports[0], other)]
    lines += [f"{run.name}: {sentences.ended(run)}" for run in reports if run.stopped]
    points = Table.grid(padding=(0, 1))
    for line in lines:
        points.add_row("•", Text(plain(line)))
    for note in notes:
        points.add_row("", Text(plain(note), style="bright_black"))
    parts.append(points)
    parts.append(Text())
    parts.append(_side_by_side(reports, min(width, WIDEST * len(reports))))
    return Group(*parts)


def _figures(reports: list[Report]) -> RenderableType:
    names = [plain(run.name) for run in reports]
    made = table("", *names, right=names, cut=names)
    found = []
    for label, column in FIGURES:
        values = [column(run) for run in reports]
        if label in ALWAYS or any(value not in ("0", "-", "0 s") for value in values):
            found.append((Text(label, style="bright_black"), *values))
    return rows(made, found, "")


def _side_by_side(reports: list[Report], width: int) -> RenderableType:
    """Next to each other where there is room, on the same scales: they are to be compared."""
    top = nice_top(max(max((*run.series.taken, *_known(run)), default=0.0) for run in reports))
    longest = max(max(run.series.waiting, default=0.0) for run in reports)
    beside = len(reports) > 1 and width >= (LEAST + 3) * len(reports)
    each = (width - 3 * (len(reports) - 1)) // len(reports) if beside else min(width, WIDEST)
    many = max(len(run.series.taken) for run in reports)
    shown = [_run(run, Scale(each - 1, many, top, longest)) for run in reports]
    if not beside:
        return Group(*shown)
    grid = Table.grid(padding=(0, 3, 0, 0))
    for _ in reports:
        grid.add_column(width=each, no_wrap=True, overflow="ellipsis")
    grid.add_row(*shown)
    return grid


def _known(run: Report) -> list[float]:
    return [each for each in run.series.limit if each is not None]


class Scale(NamedTuple):
    """What all runs are drawn on: columns, spans of time, and the tops of two scales."""

    width: int
    many: int
    top: float
    longest: float


def _run(run: Report, scale: Scale) -> RenderableType:
    series, width = run.series, scale.width
    parts: list[RenderableType] = [Text(plain(run.name), style="bold cyan")]
    parts.append(_heading("calls taken a minute, and the limit ─"))
    parts += plot(series.taken, series.limit, scale)
    parts.append(_axis(series.span_s, scale))
    parts.append(_said(sentences.throughput(run), width))
    if run.refused or run.banned or run.unwell:
        refused = [one + two for one, two in zip(series.refused, series.failed, strict=True)]
        parts += _strip("refusals and errors", refused, scale, "red")
        parts.append(_said(sentences.refusals(run), width))
    parts += _strip("in line", series.waiting, scale, "yellow", scale.longest)
    parts.append(_said(sentences.line(run), width))
    for gate in run.gates[:MOST_GATES]:
        parts += _gate(gate, scale)
    parts += [_said(sentences.waits(run), width), _tenants(run, width)]
    if len(run.priorities) > 1:
        parts.append(_priorities(run, width))
    if len(run.tenants) > 1:
        parts.append(_said(sentences.fairness(run), width))
    if run.recorded is not None:
        parts.append(_said(sentences.recorded(run), width))
    return Group(*parts, Text())


def _gate(gate: GateRow, scale: Scale) -> list[RenderableType]:
    label = f"{gate.kind} {gate.name}".strip()
    if gate.learns:
        known = [0.0 if each is None else each for each in gate.believed]
        return [*_strip(f"{label}: learned limit", known, scale, "magenta"),
                _said(sentences.learned(gate), scale.width)]  # fmt: skip
    return [*_strip(f"{label}: in use", gate.inside, scale, "blue", gate.cap),
            _said(sentences.occupancy(gate), scale.width)]  # fmt: skip


def _heading(text: str) -> Text:
    return Text(plain(text), style="bright_black", no_wrap=True, overflow="ellipsis")


def _said(text: str, width: int) -> RenderableType:
    """A sentence, wrapped to its column."""
    grid = Table.grid()
    grid.add_column(width=width, overflow="fold")
    grid.add_row(Text(plain(text), no_wrap=False))
    return grid


# ---------------------------------------------------------------------- plots


def resampled(values: Sequence[float], width: int, many: int, none: float = 0.0) -> list[float]:
    """As many as there are columns; the highest of those that share one, for peaks matter. A run
    that ended before the others has nothing to show after that.
    """
    values = [*values, *([none] * (many - len(values)))]
    if not many:
        return [none] * width
    return [
        max(values[column * many // width : max(column * many // width + 1,
                                                (column + 1) * many // width)])
        for column in range(width)
    ]  # fmt: skip


def plot(values: Sequence[float], limit: Sequence[float | None], scale: Scale) -> list[Text]:
    """Columns of blocks, with the limit drawn where it is."""
    top = scale.top
    label = len(whole(top)) + 1
    columns = resampled(values, scale.width - label, scale.many)
    known = [-1.0 if each is None else each for each in limit]
    bounds = resampled(known, scale.width - label, scale.many, -1.0)
    lines: list[Text] = []
    for line in range(TALL - 1, -1, -1):
        text = Text(no_wrap=True)
        mark = whole(top) if line == TALL - 1 else "0" if line == 0 else ""
        text.append(mark.rjust(label - 1) + " ", style="bright_black")
        for value, bound in zip(columns, bounds, strict=True):
            filled = value / top * TALL - line
            at = min(TALL - 0.01, bound / top * TALL)
            if bound >= 0 and line <= at < line + 1 and filled < 1:
                text.append("─" if filled <= at - line else _block(filled), style="green")
            else:
                text.append(_block(filled), style="cyan")
        lines.append(text)
    return lines


def _block(filled: float) -> str:
    if filled <= 0:
        return " "
    return BLOCKS[max(1, min(8, round(filled * 8)))]


def _strip(
    label: str, values: Sequence[float], scale: Scale, style: str, top: float | None = None
) -> list[RenderableType]:
    """One line of blocks, and what its height means."""
    highest = max(values, default=0.0)
    full = top or highest or 1.0
    columns = resampled(values, scale.width, scale.many)
    blocks = "".join(_block(min(1.0, each / full)) for each in columns)
    return [
        _heading(f"{label} (highest {figure(highest)})"),
        Text(blocks, style=style, no_wrap=True),
    ]


def _axis(span_s: float, scale: Scale) -> Text:
    start, end = "0", duration(scale.many * span_s)
    middle = duration(scale.many * span_s / 2)
    room = scale.width - len(start) - len(end)
    return Text(start + middle.center(room) + end, style="bright_black", no_wrap=True)


# ---------------------------------------------------------------------- tables


def _tenants(run: Report, width: int) -> RenderableType:
    numbers = ("jobs", "half", "95 %", "99 %", "longest", "got of due")
    made = table("tenant", *numbers, right=numbers, cut=("tenant",))
    made.width = min(width, 84)
    shown = sorted(run.tenants, key=lambda row: -row.waits.longest_s)[:MOST_TENANTS]
    found = [
        (row.name or "-", whole(row.waits.many), short(row.waits.p50_s), short(row.waits.p95_s),
         short(row.waits.p99_s), short(row.waits.longest_s), percent(row.share))
        for row in sorted(shown, key=lambda row: row.name)
    ]  # fmt: skip
    more = len(run.tenants) - len(shown)
    if not more:
        return rows(made, found, "")
    return Group(rows(made, found, ""), _heading(f"… and {more} who waited less"))


def _priorities(run: Report, width: int) -> RenderableType:
    numbers = ("jobs", "half", "95 %", "99 %", "longest")
    made = table("priority", *numbers, right=numbers)
    made.width = min(width, 84)
    found = [
        (str(row.priority), whole(row.waits.many), short(row.waits.p50_s), short(row.waits.p95_s),
         short(row.waits.p99_s), short(row.waits.longest_s))
        for row in run.priorities
    ]  # fmt: skip
    return rows(made, found, "")


def short(seconds: float) -> str:
    """`0.4s`, `12s`, `3m20`, `5h03`, `2d04`: for a narrow column."""
    if seconds < 60:
        return f"{seconds:.1f}s" if 0 < seconds < 10 else f"{seconds:.0f}s"
    for unit, below, sign in ((60.0, 3600.0, "m"), (3600.0, 86_400.0, "h")):
        if seconds < below:
            large, rest = divmod(seconds, unit)
            return f"{large:.0f}{sign}{int(rest / unit * 60):02d}"
    return f"{seconds // 86_400:.0f}d{int(seconds % 86_400 / 3600):02d}"


def known_models() -> RenderableType:
    """What can be named instead of a file."""
    shown = table("upstream", "what it does", cut=("what it does",))
    loads = table("load", "what comes", cut=("what comes",))
    return Group(
        rows(shown, ((name, each.about) for name, each in UPSTREAMS.items()), ""),
        Text(),
        rows(loads, ((name, each.about) for name, each in LOADS.items()), ""),
    )
