"""The queue as a whole, in the words of the request queue: its numbers, pauses and capacities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.contract.kit import Api, new_name, worker_of
from tests.hands.kit import eventually
from tests.servers import NewServer


def test_the_numbers_are_those_of_the_queue(new_server: NewServer, kind: str) -> None:
    with Api(new_server().url) as api:
        empty = api.get("/api/queue/stats")
        assert empty == {
            "paused": {"all": False, "requires_cookie": False, "no_cookie": False},
            "counts": dict.fromkeys(
                ("total", "queued", "running", "paused", "done", "failed", "canceled"), 0
            ),
            "counts_by_channel": {"queued_cookie": 0, "queued_nocookie": 0},
            "capacity": {
                "requires_cookie": 1, "no_cookie": 2, "running_cookie": 0, "running_nocookie": 0,
                "available_cookie": 1, "available_nocookie": 2,
            },
            "lanes": {},
        }  # fmt: skip
        ids = [api.request(kind, requires_cookie=n < 3)["id"] for n in range(7)]
        paused, canceled = api.request(kind)["id"], api.request(kind)["id"]
        api.post(f"/api/requests/{paused}/pause")
        api.post(f"/api/requests/{canceled}/cancel")
        later = api.enqueue(kind, delay_s=3600, lane="no_cookie")
        elsewhere = api.enqueue(kind, lane="others")
        api.post(f"/api/jobs/{elsewhere}/pause")
        with worker_of(api, kind) as worker:
            works = worker.take(10)
            assert {work["id"] for work in works} == {ids[0], ids[3], ids[4]}
            worker.complete(works[-1])
            worker.complete(worker.take_one(), status_code=404)
            # At most a second old.
            seen = eventually(lambda: (s := api.get("/api/queue/stats"))["counts"]["failed"] and s)
            assert seen["counts"] == {
                "total": 11, "queued": 4, "running": 2, "paused": 2, "done": 1, "failed": 1,
                "canceled": 1,
            }  # fmt: skip
            assert seen["counts_by_channel"] == {"queued_cookie": 2, "queued_nocookie": 2}
            assert seen["capacity"] == {
                "requires_cookie": 1, "no_cookie": 2, "running_cookie": 1, "running_nocookie": 1,
                "available_cookie": 0, "available_nocookie": 1,
            }  # fmt: skip
            assert seen["lanes"] == {
                "requires_cookie": {"queued": 2, "running": 1},
                "no_cookie": {
                    "queued": 1, "pending": 1, "running": 1, "paused": 1, "completed": 1,
                    "failed": 1, "cancelled": 1,
                },
                "others": {"paused": 1},
            }  # fmt: skip
        assert api.job(later)["status"] == "pending"


def flag(api: Api, name: str) -> bool:
    paused: bool = api.get("/api/queue/stats")["paused"][name]
    return paused


@pytest.mark.parametrize("scope", ["all", "requires_cookie", "no_cookie", "cookie", "nocookie", ""])
def test_a_pause_holds_for_its_scope_and_for_nothing_else(api: Api, kind: str, scope: str) -> None:
    """Without a scope it is everything. Some clients leave out a part of the name."""
    flags = {"": "all", "cookie": "requires_cookie", "nocookie": "no_cookie"}
    flagged = flags.get(scope, scope)
    said = {"scope": scope} if scope else {}
    with_cookie = api.request(kind, requires_cookie=True)["id"]
    without = api.request(kind)["id"]
    try:
        answer = api.post("/api/queue/pause", **said)
        assert answer == {"scope": scope or "all", "paused": True}
        assert flag(api, flagged)
        with worker_of(api, kind) as worker:
            free = {"requires_cookie": [without], "no_cookie": [with_cookie]}.get(flagged, [])
            assert [work["id"] for work in worker.take(10, wait_ms=150)] == free
    finally:
        answer = api.post("/api/queue/resume", **said)
    assert answer == {"scope": scope or "all", "paused": False}
    assert not flag(api, flagged)
    held = [id for id in (with_cookie, without) if id not in free]
    with worker_of(api, kind) as worker:
        assert {work["id"] for work in worker.take(10)} == set(held)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("lane", lambda name: {"lane": name}),
        ("upstream", lambda name: {"upstream": name}),
        ("tool", lambda name: {"tools": [name]}),
    ],
)
def test_lanes_upstreams_and_tools_can_be_paused_too(
    api: Api, kind: str, what: str, said: Callable[[str], dict[str, Any]]
) -> None:
    name = new_name(what)
    held = api.enqueue(kind, **said(name))
    free = api.enqueue(kind)
    api.post("/api/queue/pause", scope=f"{what}:{name}")
    with worker_of(api, kind) as worker:
        assert [work["id"] for work in worker.take(10)] == [free]
        assert worker.finds_nothing()
        assert api.get(f"/api/{what}s/{name}")["paused"]
        api.post("/api/queue/resume", scope=f"{what}:{name}")
        assert worker.take_one()["id"] == held


def test_a_paused_type_waits(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    api.post("/api/queue/pause", scope=f"type:{kind}")
    with worker_of(api, kind) as worker:
        assert worker.finds_nothing()
        api.post("/api/queue/resume", scope=f"type:{kind}")
        assert worker.take_one()["id"] == id


def test_a_request_that_was_pinned_does_not_pass_a_pause(api: Api, kind: str) -> None:
    lane = new_name("lane")
    id = api.enqueue(kind, lane=lane)
    api.post("/api/queue/pause", scope=f"lane:{lane}")
    api.post(f"/api/requests/{id}/prioritize")
    with worker_of(api, kind) as worker:
        assert worker.finds_nothing()


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize("scope", ["cookies", "lane:", "key:x", ":", "", "lane"])
def test_an_unknown_scope_is_refused(api: Api, verb: str, scope: str) -> None:
    path = f"/api/queue/{verb}"
    problem = api.problem(422, "POST", path, "bad-scope", params={"scope": scope})
    assert "requires_cookie" in problem["detail"]


def test_capacity_holds_at_once_and_after_a_restart(new_server: NewServer, kind: str) -> None:
    server = new_server()
    with Api(server.url) as api, worker_of(api, kind) as worker:
        for _ in range(6):
            api.request(kind, requires_cookie=False)
            api.request(kind, requires_cookie=True)
        works = worker.take(20)
        assert sorted(work["lane"] for work in works) == [
            "no_cookie", "no_cookie", "requires_cookie"
        ]  # fmt: skip
        stats = api.post("/api/queue/capacity", requires_cookie=2, no_cookie=3)
        capacity = stats["capacity"]
        assert (capacity["requires_cookie"], capacity["no_cookie"]) == (2, 3)
        assert sorted(work["lane"] for work in worker.take(20)) == ["no_cookie", "requires_cookie"]
        api.post("/api/queue/capacity", {"no_cookie": 4})  # the other one stays
        assert [work["lane"] for work in worker.take(20)] == ["no_cookie"]
        capacity = api.get("/api/queue/stats")["capacity"]
        assert capacity == {
            "requires_cookie": 2, "no_cookie": 4, "running_cookie": 2, "running_nocookie": 4,
            "available_cookie": 0, "available_nocookie": 0,
        }  # fmt: skip
        for work in list(worker.held.values()):
            worker.complete(work)
    server.restart()
    with Api(server.url) as api:
        capacity = api.get("/api/queue/stats")["capacity"]
        assert (capacity["requires_cookie"], capacity["no_cookie"]) == (2, 4)
        lane = api.get("/api/lanes/no_cookie")
        assert lane["settings"]["overridden"]
        assert lane["settings"]["from"]["limit"] == "operator"


def test_the_environment_says_how_many_unless_an_operator_did(
    new_sqlite_server: NewServer,
) -> None:
    server = new_sqlite_server()
    server.stop()
    server.environment |= {
        "QUEUE_COOKIE_LANE_CONCURRENCY": "3", "QUEUE_NOCOOKIE_LANE_CONCURRENCY": "7"
    }  # fmt: skip
    server.start()
    with Api(server.url) as api:
        capacity = api.get("/api/queue/stats")["capacity"]
        assert (capacity["requires_cookie"], capacity["no_cookie"]) == (3, 7)
        api.post("/api/queue/capacity", requires_cookie=1)
        server.restart()
        capacity = api.get("/api/queue/stats")["capacity"]
        assert (capacity["requires_cookie"], capacity["no_cookie"]) == (1, 7)


def test_a_lane_of_no_capacity_lets_nothing_start(api: Api, kind: str) -> None:
    id = api.request(kind)["id"]
    api.post("/api/queue/capacity", {"no_cookie": 0})
    try:
        with worker_of(api, kind) as worker:
            assert worker.finds_nothing()
            api.post("/api/queue/capacity", {"no_cookie": 1})
            assert worker.take_one()["id"] == id
    finally:
        api.ok("DELETE", "/api/lanes/no_cookie/settings")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"params": {"requires_cookie": -1}},
        {"params": {"no_cookie": "two"}},
        {"json": {"no_cookie": 100_001}},
        {"json": {"no_cookie": "2"}},
        {"json": {}},
    ],
)
def test_what_is_no_capacity_is_refused(api: Api, said: dict[str, Any]) -> None:
    before = api.get("/api/queue/stats")["capacity"]
    api.problem(422, "POST", "/api/queue/capacity", "wrong-input", **said)
    assert api.get("/api/queue/stats")["capacity"] == before


def test_a_pause_outlives_a_restart(new_server: NewServer, kind: str) -> None:
    server = new_server()
    with Api(server.url) as api:
        id = api.request(kind)["id"]
        api.post("/api/queue/pause", scope="no_cookie")
        server.kill()
        server.start()
        eventually(lambda: answers(api))
        assert flag(api, "no_cookie")
        with worker_of(api, kind) as worker:
            assert worker.finds_nothing()
            api.post("/api/queue/resume", scope="no_cookie")
            assert worker.take_one()["id"] == id


def answers(api: Api) -> bool:
    """The first call after a restart may meet a connection that was kept and is dead."""
    try:
        return api.send("GET", "/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def test_the_page_of_the_request_queue_leads_to_the_live_page(api: Api) -> None:
    answer = api.send("GET", "/static/queue_admin.html", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "/")
    page = api.send("GET", "/static/queue_admin.html", follow_redirects=True)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
