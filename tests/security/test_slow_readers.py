"""Clients that follow the events and do not read them, or may not read them any more."""

from __future__ import annotations

import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from headway.api import stream
from tests.contract.kit import Api, listening, new_name
from tests.hands.kit import eventually
from tests.postgres import in_memory
from tests.security.kit import HOLDERS, Guarded, Wire, add_token
from tests.servers import Server

CLIENTS = 40
JOBS = 1_500
ROOM = 120_000_000  # bytes that all of them together may take


class Impatient(Server):
    """Says that it is there more often than others."""

    def _command(self) -> list[str]:
        program = """
from headway.api import stream
stream.ALIVE_S = 0.5
from headway.cli import main
main()
"""
        return [sys.executable, "-c", program, *super()._command()[3:]]


@pytest.fixture(scope="module")
def impatient() -> Iterator[Guarded]:
    directory = Path(tempfile.mkdtemp(prefix="headway-security-", dir=in_memory()))
    server = Impatient(directory, auth="required", slow_client_s=1)
    try:
        tokens = {name: add_token(server, name, *rights) for name, rights in HOLDERS.items()}
        server.start()
        yield Guarded(server, tokens)
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


def listeners(api: Api) -> int:
    found = re.search(r"^headway_sse_clients (\S+)$", api.http.get("/metrics").text, re.M)
    assert found is not None
    return int(float(found[1]))


def make_events(api: Api) -> str:
    """More of them than a system keeps for a client."""
    type = new_name()
    key = "subscription:" + "wordy-" * 300
    api.post("/api/work/put", {"jobs": [{"type": type, "key": key}] * JOBS}, 202)
    q = {"action": "cancel", "q": f"type:{type}", "dry_run": False}
    assert api.post("/api/jobs/bulk", q)["done"] == JOBS
    return type


def deaf(guarded: Guarded, path: str) -> Wire:
    """Asks for all there is, and reads nothing of it."""
    wire = Wire(guarded.url)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    token = guarded.tokens["operator"]
    wire.send(wire.head("GET", path, authorization=f"Bearer {token}", last_event_id="0") + b"\r\n")
    return wire


def test_whoever_does_not_read_is_dropped_and_costs_nothing(impatient: Guarded) -> None:
    with impatient.as_("operator") as api, ExitStack() as stack:
        type = make_events(api)
        process = psutil.Process(impatient.server.pid)
        before = process.memory_info().rss
        for number in range(CLIENTS):
            path = "/api/events" if number % 2 else "/api/requests/events"
            stack.enter_context(deaf(impatient, path))
        eventually(lambda: listeners(api) >= CLIENTS // 2)
        with listening(api, "/api/events", last=0) as own:  # one that reads hears all of it
            heard = 0
            while heard < JOBS:
                event = own.event()
                heard += event["data"]["type"] == type and event["event"] == "cancel"
        assert process.memory_info().rss - before < ROOM
        eventually(lambda: listeners(api) == 0)
        assert process.memory_info().rss - before < ROOM


def test_a_stream_whose_token_was_revoked_ends_by_itself(impatient: Guarded) -> None:
    """Also when nothing happens."""
    made = impatient.make(new_name())
    with Wire(impatient.url) as wire, impatient.as_("admin") as admin:
        said = {"authorization": f"Bearer {made['token']}"}
        wire.send(wire.head("GET", "/api/events", **said) + b"\r\n")
        assert wire.socket.recv(15) == b"HTTP/1.1 200 OK"
        admin.ok("DELETE", f"/api/tokens/{made['id']}", 204)
        eventually(lambda: listeners(admin) == 0)


def test_a_stream_is_kept_alive_while_others_are_busy(impatient: Guarded) -> None:
    """What happens to Bob is not told to Alice, but she hears that somebody is there."""
    with (
        impatient.as_("alice") as alice,
        impatient.as_("bob") as bob,
        listening(alice, "/api/events") as own,
    ):
        for _ in range(3):
            for _ in range(3):
                bob.enqueue("of-bob")
            assert set(own.block()) == {"id"}


def test_what_is_sent_at_once_is_bounded() -> None:
    texts = [b"x" * 10_000] * 1_000
    parcels = list(stream.parcels(texts))
    assert b"".join(parcels) == b"".join(texts)
    assert max(map(len, parcels)) <= stream.MAX_PARCEL
    assert [len(each) for each in stream.parcels([b"y" * 1_000_000, b"", b"z"])] == [1_000_000, 1]
    assert list(stream.parcels([b"", b""])) == []
