"""The first visit: how much comes over the wire, and how soon there is something to see.

`python -m tests.browser.test_page_load` prints the figures.
"""

from __future__ import annotations

from statistics import median

import pytest

from tests.browser.kit import Chromium, Visits, settle, wait_ready
from tests.browser.measuring import NOTES, Received, counting, ready_ms
from tests.browser.worlds import SETTINGS, fill
from tests.servers import Server, server_on

MOST_BYTES = 150_000
MOST_MS = 300.0  # on a machine that has nothing else to do
# Beside the rest of the suite a page may have half a processor, or less.
LAX_MS = 5_000.0


def first_visit(visits: Visits, server: Server) -> tuple[float, Received]:
    page = visits.page_on(server, "", script=NOTES)
    received = counting(page, visits)
    page.goto("/")
    wait_ready(page, "overview")
    taken = ready_ms(page)
    settle(page, visits.witness_of(page))
    return taken, received


def test_the_first_visit_is_light_and_soon_there(visits: Visits, site: Server) -> None:
    taken, received = first_visit(visits, site)
    assert received.total < MOST_BYTES, received.told()
    assert received.total > 10_000, "hardly anything was counted"
    assert taken < LAX_MS


@pytest.mark.soak
def test_the_first_visit_takes_no_time_to_speak_of(chromium: Chromium, site: Server) -> None:
    assert median(times(chromium, site)) < MOST_MS


def times(chromium: Chromium, server: Server, many: int = 5) -> list[float]:
    taken = []
    for _ in range(many):
        with chromium.in_use():
            visits = Visits(chromium)
            taken.append(first_visit(visits, server)[0])
            visits.end()
    return taken


def main() -> None:
    with server_on("sqlite", **SETTINGS) as server:
        fill(server)
        chromium = Chromium()
        taken = times(chromium, server)
        with chromium.in_use():
            visits = Visits(chromium)
            received = first_visit(visits, server)[1]
            visits.end()
        chromium.close()
    print(received.told())
    print(f"{received.total:,d} bytes of at most {MOST_BYTES:,d}")
    each = ", ".join(f"{one:.0f}" for one in taken)
    print(f"first data after {median(taken):.0f} ms of at most {MOST_MS:.0f} (each: {each})")


if __name__ == "__main__":
    main()
