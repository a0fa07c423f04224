"""What is printed. Pure: figures in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.peers.bars import Verdict
from bench.peers.figures import Cell
from bench.peers.products import PRODUCTS, WORKLOADS

LOADED = "*"  # marks a figure from a machine that others used


def number(value: float | None) -> str:
    if value is None:
        return "-"
    if value and abs(value) < 100:
        return f"{value:.2f}"
    return f"{value:,.0f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The first column to the left, all others to the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return [
        "  "
        + "  ".join(
            text.rjust(width) if place else text.ljust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]


def workload_table(
    workload: str,
    cells: Mapping[str, Cell],
    ratios: Mapping[str, float],
    errors: Mapping[str, str],
) -> list[str]:
    """The best first; then those that could not be measured, and why."""
    latency = workload == "w3"
    head = ["product", "store", "acknowledged", "p50" if latency else "median", "min", "max"]
    head += ["p99"] if latency else []
    head += ["overlaps"] if workload.startswith("w4") else []
    head += ["headway / it", "jobs", "runs"]
    ranked = sorted(cells, key=lambda name: cells[name].median, reverse=not latency)
    rows = [_row(workload, name, cells[name], ratios.get(name)) for name in ranked]
    failed = [f"  {name}: {error}" for name, error in errors.items()]
    note = ["  (a latency: below 1 is better)"] if latency else []
    return [WORKLOADS[workload], *table(head, rows), *note, *failed]


def _row(workload: str, name: str, cell: Cell, ratio: float | None) -> list[str]:
    product = PRODUCTS[name]
    row = [name, product.store, product.acknowledged]
    row += [number(cell.median) + LOADED * cell.loaded, number(cell.low), number(cell.high)]
    if workload == "w3":
        row.append(number(cell.p99))
    if workload.startswith("w4"):
        row.append(f"{cell.overlaps}")
    return [*row, number(ratio), f"{cell.jobs:,}", f"{cell.runs}"]


def verdict_table(verdicts: Iterable[Verdict]) -> list[str]:
    words = {True: "met", False: "MISSED", None: "not measured"}
    rows = [
        [
            f"{each.product}: {each.bar}",
            number(each.asked),
            number(each.measured),
            words[each.met],
            each.remark,
        ]
        for each in verdicts
    ]
    return table(["bar", "asked", "measured", "", "remark"], rows)
