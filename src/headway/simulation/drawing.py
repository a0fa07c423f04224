"""Charts as SVG, without a script: lines, areas and bars over time. Words are HTML around them, so
that they are not stretched with the drawing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from headway.simulation.wording import duration, figure, nice_top

WIDTH, HEIGHT = 600.0, 160.0
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Line:
    """One series. `kind` is a colour: taken, limit, came, bad, wait, learned, pool."""

    label: str
    values: Values
    kind: str
    draw: str = "line"  # or area, bars, step


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    lines: tuple[Line, ...]
    span_s: float
    sentence: str
    bands: Values = field(default=())  # share of each span in which it was closed
    unit: str = ""

    @property
    def highest(self) -> float:
        return max((value for line in self.lines for value in line.values if value), default=0.0)


def drawn(chart: Chart, top: float, many: int) -> str:
    """A figure with its drawing, what its colours mean, and what is seen in it."""
    top = nice_top(top)
    shapes = [_bands(chart.bands, many), _grid()]
    shapes += [_shape(line, top, many) for line in chart.lines]
    length_s = many * chart.span_s
    label = escape(f"{chart.title}. {chart.sentence}")
    legend = "".join(
        f'<li><i class="{line.kind}"></i>{escape(line.label)}</li>' for line in chart.lines
    )
    if any(chart.bands):
        legend += '<li><i class="closed"></i>closed</li>'
    return (
        f'<figure><figcaption>{escape(chart.title)}</figcaption><ul class="legend">{legend}</ul>'
        f'<div class="plot"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" preserveAspectRatio="none" '
        f'role="img" aria-label="{label}">{"".join(shapes)}</svg>'
        f'<span class="top">{figure(top)}{escape(chart.unit)}</span>'
        f'<span class="from">0</span><span class="mid">{duration(length_s / 2)}</span>'
        f'<span class="to">{duration(length_s)}</span></div>'
        f"<p>{escape(chart.sentence)}</p></figure>"
    )


def _x(index: float, many: int) -> str:
    return f"{index / max(1, many) * WIDTH:.1f}"


def _y(value: float, top: float) -> str:
    return f"{HEIGHT - min(value, top) / top * (HEIGHT - 2) - 1:.1f}"


def _grid() -> str:
    return f'<path class="grid" d="M0 {HEIGHT / 2:g}H{WIDTH:g}M0 1H{WIDTH:g}"/>'


def _bands(bands: Values, many: int) -> str:
    """When it was closed, as a ground behind the lines: the darker, the longer."""
    found = [
        f'<rect class="band" x="{_x(index, many)}" y="0" width="{WIDTH / many:.2f}" '
        f'height="{HEIGHT:g}" opacity="{share:.2f}"/>'
        for index, share in enumerate(bands)
        if share
    ]
    return "".join(found)


def _shape(line: Line, top: float, many: int) -> str:
    if line.draw == "bars":
        return _bars(line, top, many)
    path, area, begun = "", "", None
    for index, value in enumerate(line.values):
        if value is None:
            area += _closed(begun, index, many)
            begun = None
            continue
        up = _y(value, top)
        if begun is None:
            piece = f"M{_x(index, many)} {up}"
            begun = index
        elif line.draw == "step":
            piece = f"H{_x(index, many)}V{up}"
        else:
            piece = f"L{_x(index + 0.5, many)} {up}"
        path += piece
        area += piece
    end = f"H{_x(len(line.values), many)}" if begun is not None and line.draw == "step" else ""
    area += _closed(begun, len(line.values), many)
    filled = f'<path class="fill {line.kind}" d="{area}"/>' if line.draw == "area" and area else ""
    return f'{filled}<path class="stroke {line.kind}" d="{path}{end}"/>' if path else ""


def _closed(begun: int | None, index: int, many: int) -> str:
    """Down to the ground and back, so that what is below a line can be filled."""
    if begun is None:
        return ""
    return f"L{_x(index - 0.5, many)} {HEIGHT:g}L{_x(begun, many)} {HEIGHT:g}Z"


def _bars(line: Line, top: float, many: int) -> str:
    width = WIDTH / max(1, many)
    path = "".join(
        f"M{_x(index, many)} {HEIGHT:g}V{_y(value, top)}h{width:.2f}V{HEIGHT:g}Z"
        for index, value in enumerate(line.values)
        if value
    )
    return f'<path class="fill bars {line.kind}" d="{path}"/>' if path else ""


def span_bar(low: float, middle: float, high: float, most: float) -> str:
    """From the median over the 95th to the 99th percentile, on a scale that rows share."""
    scale = 100.0 / most if most > 0 else 0.0
    start, mid, end = (min(100.0, value * scale) for value in (low, middle, high))
    return (
        '<svg class="spanbar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="track" d="M0 5H100"/><path class="thin" d="M{start:.2f} 5H{end:.2f}"/>'
        f'<path class="thick" d="M{start:.2f} 5H{max(mid, start + 0.6):.2f}"/></svg>'
    )
