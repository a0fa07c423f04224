"""Five thousand events a minute: the page answers at once, and does not grow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import PageOn
from tests.browser.flood import Flood
from tests.browser.kit import go, wait_ready, wait_until
from tests.browser.measuring import NOTES, Scales
from tests.servers import Server, server_on

PER_MINUTE = 5_000
SCREENS = ("overview", "upstreams", "requests")
MIB = 1 << 20


@dataclass(frozen=True)
class Bounds:
    lasts_s: float
    stays_s: float  # on each screen
    task_ms: int  # of the longest task after load
    heap: int  # by which the last third may be above the one before it
    nodes: float


# Beside the rest of the suite a task may wait for a processor while it is measured.
COMPACT = Bounds(lasts_s=10, stays_s=1.5, task_ms=400, heap=3 * MIB, nodes=1.25)
SOAK = Bounds(lasts_s=600, stays_s=5, task_ms=100, heap=1 * MIB, nodes=1.05)


@pytest.fixture
def busy() -> Iterator[Server]:
    """A server of its own: others would look at its jobs."""
    with server_on("sqlite") as server:
        yield server


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "bounds", [pytest.param(COMPACT, id="compact"), pytest.param(SOAK, id="10-minutes",
                                                                marks=pytest.mark.soak)]
)  # fmt: skip
def test_a_flood_of_events_neither_holds_up_the_page_nor_fills_it(
    busy: Server,
    page_on: PageOn,
    bounds: Bounds,  # the page is closed before the server is
) -> None:
    page = page_on(busy, "#/overview", script=NOTES)
    wait_ready(page, "overview")
    scales = Scales(page)
    with Flood(busy.url, PER_MINUTE) as flood:
        begun = time.monotonic()
        for screen in SCREENS:  # each of them has been seen once
            visit(page, screen, bounds.stays_s / 2)
        loaded = page.evaluate("() => performance.now()")
        while time.monotonic() - begun < bounds.lasts_s:
            for screen in SCREENS:
                visit(page, screen, bounds.stays_s)
            scales.weigh()
        per_minute = flood.events() / (time.monotonic() - begun) * 60
    tasks: list[dict[str, Any]] = page.evaluate("() => notes.longTasks")
    late = [task for task in tasks if task["at"] > loaded and task["ms"] > bounds.task_ms]
    told(per_minute, tasks, loaded, scales)
    assert per_minute > 0.8 * PER_MINUTE, "the flood was none"
    assert late == []
    before, after = scales.thirds("heap")
    assert after < before + bounds.heap, scales.weights
    before, after = scales.thirds("nodes")
    assert after < before * bounds.nodes + 50, scales.weights
    before, after = scales.thirds("listeners")
    assert after < before * bounds.nodes + 50, scales.weights


def visit(page: Page, screen: str, stays_s: float) -> None:
    go(page, screen)
    until = page.evaluate("() => performance.now()") + stays_s * 1000
    wait_until(page, "(until) => performance.now() > until", until)


def told(per_minute: float, tasks: list[dict[str, Any]], loaded: float, scales: Scales) -> None:
    """For whoever runs it with -s."""
    longest = max((task["ms"] for task in tasks if task["at"] > loaded), default=0)
    print(f"{per_minute:.0f} events a minute; longest task after load {longest} ms")
    for weight in scales.weights[:: max(1, len(scales.weights) // 10)]:
        mib = weight.heap / MIB
        print(f"  {mib:6.1f} MiB {weight.nodes:6d} nodes {weight.listeners:5d} listeners")
