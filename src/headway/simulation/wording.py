"""Numbers as people read them."""

from __future__ import annotations

import math


def duration(seconds: float | None) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `5 h 3 min`, `2 d 4 h`."""
    if seconds is None:
        return "-"
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    for unit, size, below, name in ((60, 1, 3600, "min s"), (3600, 60, 86_400, "h min")):
        if seconds < below:
            return _two(seconds, unit, size, name)
    return _two(seconds, 86_400, 3600, "d h")


def _two(seconds: float, unit: int, size: int, names: str) -> str:
    large, small = names.split()
    whole_units, rest = divmod(math.floor(seconds / size + 0.5) * size, unit)
    return f"{int(whole_units)} {large}" + (f" {int(rest // size)} {small}" if rest else "")


def percent(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{share * 100:.1f} %" if 0 < share < 0.1 else f"{share * 100:.0f} %"


def whole(value: float) -> str:
    """`12,340`."""
    return f"{value:,.0f}"


def rate(per_minute: float | None) -> str:
    if per_minute is None:
        return "-"
    return f"{per_minute:.0f} / min" if per_minute >= 10 else f"{per_minute:.1f} / min"


def figure(value: float) -> str:
    """`0.04`, `2.5`, `120`, `44,900`."""
    return whole(value) if value >= 100 else f"{value:.3g}"


def nice_top(highest: float) -> float:
    """The next round number: where a scale ends."""
    if not highest > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(
        (each * power for each in (1, 1.5, 2, 3, 5, 7.5, 10) if each * power >= highest), highest
    )
