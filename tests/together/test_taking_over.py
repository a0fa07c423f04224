"""Another server leads within seconds, whatever has become of the one before, and clients of any
of them go on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.hands.kit import eventually
from tests.servers import Server
from tests.together.conftest import NewGroup
from tests.together.group import Group, ask, role_of

TAKE_OVER_S = 5.0
QUEUE = "/api/v0/fairqueue"


def acquire(url: str, host: str, ip: str) -> Any:
    status, answer = ask(
        url, "POST", f"{QUEUE}/acquire",
        {"hostname": host, "hostnameHash": host, "ipBucket": ip, "now": 0},
    )  # fmt: skip
    assert status == 200
    return answer


def poll(url: str, token: str) -> Any:
    status, answer = ask(url, "POST", f"{QUEUE}/acquire", {"queryToken": token, "now": 0})
    assert status == 200
    return answer


def release(url: str, host: str, ip: str, slot: str) -> None:
    answer = ask(
        url, "POST", f"{QUEUE}/release",
        {"hostname": host, "hostnameHash": host, "ipBucket": ip, "slotToken": slot,
         "hitUpstreamAtMs": 0, "now": 0},
    )  # fmt: skip
    assert answer == (200, {"result": "ok"})


def trail(url: str) -> list[dict[str, Any]]:
    status, answer = ask(url, "GET", "/api/trail?limit=1000")
    assert status == 200
    found: list[dict[str, Any]] = answer["items"]
    return found


@pytest.fixture
def group(new_group: NewGroup) -> Group:
    return new_group(2)


def time_to_lead(url: str, since: float) -> float:
    eventually(lambda: role_of(url) == "running", 20.0)
    return time.monotonic() - since


@contextmanager
def connected(url: str, what: bytes, length: int, body: bytes) -> Iterator[socket.socket]:
    """A client that has sent this, and waits."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port)) as line:
        line.sendall(b"%b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%b"
                     % (what, length, body))  # fmt: skip
        ask(url, "GET", "/healthz")  # it was heard before this
        yield line


def slow_client(url: str) -> AbstractContextManager[socket.socket]:
    """It has begun to send a request, and does not end it."""
    return connected(url, b"POST /api/jobs", 9, b"{")


def test_a_killed_leader_is_replaced_at_once_where_it_can_be_seen(group: Group) -> None:
    [follower] = group.followers()
    began = time.monotonic()
    group.the_leader().kill()
    assert time_to_lead(follower.url, began) < TAKE_OVER_S / 2


def test_a_killed_leader_elsewhere_is_replaced_within_five_seconds(group: Group) -> None:
    """Nobody can know that it is gone before its lease is."""
    [follower] = group.followers()
    status, job = ask(follower.url, "POST", "/api/jobs", {"type": "nobody-knows", "args": {}})
    assert status == 202
    group.as_if_elsewhere()
    began = time.monotonic()
    group.the_leader().kill()
    # It is asked meanwhile: what can be read is, and what only a leader knows waits for one.
    assert ask(follower.url, "GET", f"/api/jobs/{job['id']}")[0] == 200
    assert ask(follower.url, "GET", "/api/upstreams")[0] == 200
    assert time_to_lead(follower.url, began) < TAKE_OVER_S
    assert [event["event"] for event in trail(follower.url)][-1] == "took_over"


def test_a_stopped_leader_is_replaced_within_five_seconds_and_follows_when_it_goes_on(
    group: Group,
) -> None:
    leader, [follower] = group.the_leader(), group.followers()
    held = acquire(leader.url, "h", "1.1.1.1")
    began = time.monotonic()
    os.kill(leader.pid, signal.SIGSTOP)
    assert ask(follower.url, "GET", "/api/upstreams")[0] == 200
    assert time_to_lead(follower.url, began) < TAKE_OVER_S
    os.kill(leader.pid, signal.SIGCONT)
    eventually(lambda: role_of(leader.url) == "elsewhere", 20.0)
    # What the old leader has granted holds, and is given back through whoever is asked.
    release(leader.url, "h", "1.1.1.1", held["slotToken"])
    printed = leader.printed()
    assert "begins again, and follows it" in printed
    assert "StaleBrain" not in printed, "that is no fault of anybody"
    assert "Traceback" not in printed


def test_a_leader_that_is_told_to_stop_lets_another_lead_at_once(group: Group) -> None:
    """Whoever keeps a connection to it busy meanwhile."""
    leader, [follower] = group.the_leader(), group.followers()
    with slow_client(leader.url):
        began = time.monotonic()
        os.kill(leader.pid, signal.SIGTERM)
        assert time_to_lead(follower.url, began) < TAKE_OVER_S / 2
    assert leader.stop() == 0
    assert "took_over" not in [event["event"] for event in trail(follower.url)]


def test_a_follower_stops_at_once_though_its_clients_wait(group: Group) -> None:
    """They are sent to another server."""
    [follower] = group.followers()
    body = json.dumps({"worker": "w", "types": ["x"], "size": 1, "wait_ms": 25_000}).encode()
    with connected(follower.url, b"POST /api/work/take", len(body), body) as line:
        began = time.monotonic()
        assert follower.stop() == 0
        assert time.monotonic() - began < TAKE_OVER_S
        answer = line.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1" in answer
    assert b"this server stops; ask another one" in answer


def test_polls_for_a_slot_go_on_over_a_change_of_the_leader(
    new_group: NewGroup, tmp_path: Path
) -> None:
    """The session and the slot of the other client are in the store."""
    (tmp_path / "config.json").write_text('{"fairQueue": {"pollWindowMs": 1500}}')
    group = new_group(3, leader_lease_s=1, fairqueue=tmp_path / "config.json")
    leader, (first, second) = group.the_leader(), group.followers()
    for ip in range(5):  # as many as a host has
        held = acquire(first.url, "h", f"10.0.0.{ip}")
        assert held["result"] == "granted"
    waits = acquire(second.url, "h", "10.0.1.1")
    assert waits["result"] == "pending"
    answers: list[Any] = []
    polling = threading.Thread(target=lambda: answers.append(poll(second.url, waits["queryToken"])))
    polling.start()
    group.as_if_elsewhere()
    leader.kill()
    release(first.url, "h", "10.0.0.4", held["slotToken"])  # it waits for a leader, too
    polling.join(30)
    while answers[-1]["result"] == "pending":  # no error reaches a client
        answers.append(poll(second.url, waits["queryToken"]))
    assert answers[-1]["result"] == "granted"
    assert answers[-1]["queryToken"] == waits["queryToken"]


def test_an_order_whose_answer_is_lost_is_not_given_twice(new_group: NewGroup) -> None:
    """Nobody knows whether the leader did it, and that is what the client hears."""
    group = new_group(2, leader_lease_s=1)
    leader, [follower] = group.the_leader(), group.followers()
    ask(follower.url, "GET", "/api/upstreams")  # there is a connection between them
    os.kill(leader.pid, signal.SIGSTOP)
    answers: list[tuple[int, Any]] = []
    asking = threading.Thread(target=lambda: answers.append(
        ask(follower.url, "POST", "/api/tokens", {"name": "t", "scopes": ["read"]})
    ))  # fmt: skip
    asking.start()
    asking.join(30)
    os.kill(leader.pid, signal.SIGCONT)
    status, answer = answers[0]
    assert (status, answer["type"]) == (503, "outcome-unknown")
    assert "look what is there" in answer["detail"]


def test_an_upgrade_one_after_the_other_refuses_nobody(new_group: NewGroup) -> None:
    """Each server is stopped and started again, while clients ask the others, also for what only a
    leader knows; and some client is always slow. Who reads from one that stops just then is sent to
    another one, as a balancer does it.
    """
    group = new_group(2)
    stop = threading.Event()
    answers: list[tuple[str, int]] = []

    def other_than(server: Server) -> Server:
        return next(each for each in group.servers if each is not server)

    def ask_again_and_again() -> None:
        while not stop.is_set():
            for each in list(group.servers):
                with suppress(OSError):  # this one is away, as a balancer would notice
                    for method, path, body in REQUESTS:
                        status = ask(each.url, method, path, body)[0]
                        if method == "GET" and status == 503:  # it came as this one stopped
                            status = ask(other_than(each).url, method, path, body)[0]
                        answers.append((path, status))
                    held = acquire(each.url, "h", "1.1.1.1")
                    release(each.url, "h", "1.1.1.1", held.get("slotToken", ""))

    asking = threading.Thread(target=ask_again_and_again)
    asking.start()
    try:
        for each, other in (group.servers, group.servers[::-1]):
            eventually(lambda each=each: role_of(each.url) == "running", 20.0)
            with slow_client(each.url):
                os.kill(each.pid, signal.SIGTERM)
                eventually(lambda other=other: role_of(other.url) == "running", 20.0)
            each.restart()
            eventually(lambda each=each: role_of(each.url) == "elsewhere", 20.0)
    finally:
        stop.set()
        asking.join(30)
    assert {status for _, status in answers} <= {200, 202}, set(answers)
    assert len(answers) > 20


REQUESTS = (
    ("POST", "/api/jobs", {"type": "nobody-knows", "args": {}}),
    ("GET", "/api/queue/stats", None),
    ("GET", "/api/upstreams", None),
)
