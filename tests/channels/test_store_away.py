"""The store is away in the middle of a batch and of online calls."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.batch_kit import CHAT, answers, chats, client_of, model_at, names, over, started
from tests.contract.kit import PATIENCE_S, Api
from tests.hands.kit import eventually
from tests.servers import NewServer

LINES, ONLINE = 80, 10


@contextmanager
def nobody_can_write(data: Path) -> Iterator[None]:
    """Somebody else holds the lock of the store."""
    store = sqlite3.connect(data / "headway.db", isolation_level=None, timeout=PATIENCE_S)
    with closing(store):
        store.execute("begin immediate")
        yield
        store.execute("rollback")


def test_nothing_is_lost_or_done_twice_and_all_is_billed(new_sqlite_server: NewServer) -> None:
    server = new_sqlite_server()
    with (
        LlmUpstream(latency_ms=20, jitter_ms=0) as upstream,
        Api(server.url) as api,
        client_of(server.url) as client,
        ThreadPoolExecutor(ONLINE) as clients,
    ):
        model = model_at(api, upstream, price={"input_per_1k": 1.0, "output_per_1k": 1.0})
        batch = started(client, chats(model, LINES))

        def done() -> int:
            counts = client.batches.retrieve(batch.id).request_counts
            return 0 if counts is None else counts.completed

        def ask(text: str) -> httpx2.Response:
            body = {"model": model, "messages": [{"role": "user", "content": text}]}
            return httpx2.post(server.url + CHAT, json=body, timeout=PATIENCE_S)

        eventually(lambda: done() > 10)
        with nobody_can_write(server.data):
            asked = [clients.submit(ask, f"online-{number}") for number in range(ONLINE)]
            assert wait(asked, timeout=0.3).done == set()  # none before its bill is stored
            before = done()  # what was stored at the last moment is counted by now
            assert wait(asked, timeout=0.3).done == set()
            assert done() == before < LINES
        assert [each.result(PATIENCE_S).status_code for each in asked] == [200] * ONLINE
        ended = over(client, batch)
        assert sorted(answers(client, ended)) == sorted(names(LINES))
        bills = api.get("/api/costs/bills", model=model, size=200)["items"]
        assert len(bills) == LINES + ONLINE
        assert len({each["id"] for each in bills}) == LINES + ONLINE
        assert len(upstream.calls()) == LINES + ONLINE
