"""A freed slot finds whoever waits for it; nobody has to ask again. How soon exactly is printed by
`python -m bench.slot_latency`: this machine may be busy with other tests.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import uvloop

from bench.slot_latency import measure
from bench.slots_http import hosts_named
from tests.live.slot_clients import config_file
from tests.servers import NewServer

POLLED_MS = 250.0  # what it takes on average if each of them asks every 500 ms


def test_a_freed_slot_reaches_one_of_200_that_wait_without_being_asked_for(
    new_sqlite_server: NewServer, tmp_path: Path
) -> None:
    config = config_file(tmp_path, maxSlotPerHost=2, pollWindowMs=7_500)
    server = new_sqlite_server(fairqueue=config)

    found = uvloop.run(measure(server.url, hosts_named(1)[0], waiters=200, releases=100, slots=2))

    assert len(found.since_sent_ms) == 100
    assert found.polled == 0, "somebody had to ask again"
    assert median(found.since_sent_ms) < POLLED_MS / 2
