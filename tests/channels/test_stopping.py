"""A server that is told to stop while calls wait in line and streams are open."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler

import httpx2
import pytest

from tests.contract.gateway_kit import (
    CHAT,
    PRICE,
    RawClient,
    chat,
    chunk,
    error_in,
    provider,
    streams,
)
from tests.contract.kit import PATIENCE_S, Api
from tests.hands.kit import eventually
from tests.servers import NewServer

DRAIN_S = 1.0  # the least that streams have to end


def test_who_waits_is_refused_at_once_and_what_was_passed_on_is_billed(
    new_sqlite_server: NewServer,
) -> None:
    free = threading.Event()

    def hold_back(number: int) -> None:
        if number:
            free.wait(PATIENCE_S)

    def silent(_: BaseHTTPRequestHandler) -> None:
        free.wait(PATIENCE_S)

    begin = streams(chunk("some words of it"), chunk("never"), before_each=hold_back)

    def talk(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):  # nobody is there any more
            begin(handler)

    server = new_sqlite_server(drain_s=0)
    with (
        provider(talk) as talks,
        provider(silent) as thinks,
        Api(server.url) as api,
        ThreadPoolExecutor(3) as clients,
    ):
        for code, url in (("talks", talks.url), ("thinks", thinks.url), ("shut", talks.url)):
            told = {"code": code, "model": code, "base_url": url, "price": PRICE}
            api.post("/api/channels", told, 201)
        api.post("/api/upstreams/shut/close", {"for_s": 600, "why": "maintenance"})
        stream = RawClient(server.url, chat("talks", stream=True))
        stream.read_until(b"some words of it")

        def ask(model: str) -> tuple[httpx2.Response, float]:
            headers = {"X-Headway-Wait": "5m"}
            answer = httpx2.post(
                server.url + CHAT, json=chat(model), headers=headers, timeout=PATIENCE_S
            )
            return answer, time.monotonic()

        def look(id: int) -> tuple[httpx2.Response, float]:
            path = f"{server.url}/api/channels/calls/{id}?wait_s=60"
            return httpx2.get(path, timeout=PATIENCE_S), time.monotonic()

        queued = api.post("/api/channels/calls", {"endpoint": CHAT, "body": chat("shut")}, 202)
        waits, thought = clients.submit(ask, "shut"), clients.submit(ask, "thinks")
        looks = clients.submit(look, queued["id"])
        eventually(lambda: api.get("/api/slots", upstream="shut")["items"] and thinks.bodies)
        server.stop()
        stopped_at = time.monotonic()
        try:
            refused, at = waits.result(PATIENCE_S)
            assert error_in(refused, 503)["code"] == "unavailable"
            assert refused.headers["retry-after"] == "1"
            assert at < stopped_at - DRAIN_S / 2  # long before the stream was cut off
            seen, at = looks.result(PATIENCE_S)
            assert seen.json()["status"] == "queued"
            assert at < stopped_at - DRAIN_S / 2
            assert error_in(thought.result(PATIENCE_S)[0], 503)["code"] == "unavailable"
            with pytest.raises((AssertionError, OSError)):
                stream.read_until(b"never")
        finally:
            free.set()
            stream.hang_up()
        assert "Traceback" not in server.printed()
    with closing(sqlite3.connect(server.data / "headway.db")) as store:
        bills = store.execute("select model, output_tokens > 0, estimated from llm_bills")
        assert bills.fetchall() == [("talks", 1, 1)]
