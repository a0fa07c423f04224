"""What happened: the live streams, the trail in pages, and who did what."""

from __future__ import annotations

import pytest

from tests.contract.kit import Api, listening, new_name, worker_of
from tests.hands.kit import eventually
from tests.servers import NewServer

STREAMS = ("/api/requests/events", "/api/events")


def newest(api: Api) -> int:
    number: int = api.get("/api/trail", limit=1)["newest"]
    return number


def test_requests_are_followed_in_the_words_of_the_request_queue(api: Api, kind: str) -> None:
    subscription = new_name()
    with listening(api, "/api/requests/events") as stream, Api(api.url) as other:
        id = other.request(kind, subscription_id=subscription)["id"]
        with worker_of(other, kind) as worker:
            worker.complete(worker.take_one())
        events = [stream.of(kind) for _ in range(3)]
    assert [event["data"]["status"] for event in events] == ["queued", "running", "done"]
    assert [event["data"]["previous"] for event in events] == [None, "queued", "running"]
    for event in events:
        data = event["data"]
        assert (data["id"], data["type"], data["lane"]) == (id, kind, "no_cookie")
        assert data["subscription_id"] == subscription
        assert data["event"] == event["event"]
        assert data["at"]
    numbers = [event["id"] for event in events]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("path", STREAMS)
def test_last_event_id_goes_on_without_a_gap_or_a_repeat(api: Api, kind: str, path: str) -> None:
    start = newest(api)
    ids = [api.enqueue(kind) for _ in range(6)]
    with listening(api, path, last=start) as stream:
        first = [stream.of(kind) for _ in range(3)]
    with listening(api, path, last=first[-1]["id"]) as stream:
        second = [stream.of(kind) for _ in range(3)]
    job = "id" if path == "/api/requests/events" else "job"
    assert [event["data"][job] for event in first + second] == ids


def test_a_stream_goes_on_after_a_restart(new_server: NewServer, kind: str) -> None:
    server = new_server()
    with Api(server.url) as api:
        with listening(api, "/api/events") as stream, Api(api.url) as other:
            first = other.enqueue(kind)
            seen = stream.event()
            assert seen["data"]["job"] == first
        second = api.enqueue(kind)
    server.kill()
    server.start()
    with Api(server.url) as api:
        third = api.enqueue(kind)
        with listening(api, "/api/events", last=seen["id"]) as stream:
            jobs = []
            while third not in jobs:
                jobs.append(stream.event()["data"]["job"])
    assert [job for job in jobs if job is not None] == [second, third]


def test_when_what_came_between_is_gone_it_starts_afresh(new_server: NewServer, kind: str) -> None:
    server = new_server()
    with Api(server.url) as api, Api(server.url) as other:
        id = api.enqueue(kind)
        api.post(f"/api/jobs/{id}/cancel")
        api.post("/api/tasks/cleanup", {"completed_days": 0, "failed_days": 0})
        assert api.get("/api/trail")["oldest"] > 1
        for path in STREAMS:
            for last in (10**12, 0):  # no place in what is kept
                with listening(api, path, last=last) as stream:
                    reset = stream.event()
                    assert reset["event"] == "reset"
                    assert reset["data"]["newest"] == reset["id"]
                    assert reset["data"]["snapshot"]["counts"]["queued"] == 0
                    id = other.enqueue(kind)
                    following = stream.event()
                    assert following["event"] != "reset"
                    assert following["id"] > reset["id"]
                other.post(f"/api/jobs/{id}/cancel")
                other.post("/api/tasks/cleanup", {"completed_days": 0, "failed_days": 0})


def test_the_first_connection_may_say_after(api: Api, kind: str) -> None:
    start = newest(api)
    id = api.enqueue(kind)
    with listening(api, "/api/events", after=start) as stream:
        assert stream.of(kind)["data"]["job"] == id


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("wrong", ["soon", "-1", "1.5", str(2**64)])
def test_a_last_event_id_that_is_no_number_is_refused(api: Api, path: str, wrong: str) -> None:
    problem = api.problem(422, "GET", path, headers={"Last-Event-ID": wrong})
    assert problem["errors"][0]["where"] == "header.Last-Event-ID"


def test_streams_are_not_stored_or_buffered_on_their_way(api: Api) -> None:
    with api.http.stream("GET", "/api/events") as answer:
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-length" not in answer.headers


def test_the_trail_in_pages_is_complete(api: Api, kind: str) -> None:
    start = newest(api)
    ids = [api.enqueue(kind) for _ in range(5)]
    seen, after = [], start
    while ids[-1] not in [event["job"] for event in seen]:
        # The engine writes what it has taken in; a moment later it is there.
        page = eventually(lambda: api.get("/api/trail", after=after, limit=2)["items"])  # noqa: B023
        assert len(page) <= 2
        seen += [event for event in page if event["type"] == kind]
        after = page[-1]["id"]
    assert [event["job"] for event in seen] == ids
    assert {event["after"] for event in seen} == {"queued"}
    for wrong in ({"limit": 0}, {"limit": 1001}, {"after": -1}, {"after": "x"}):
        api.problem(422, "GET", "/api/trail", params=wrong)


def test_the_audit_says_who_did_what_newest_first(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    lane = new_name("lane")
    api.post(f"/api/jobs/{id}/pin")
    api.post(f"/api/lanes/{lane}/pause")
    api.post(f"/api/jobs/{id}/cancel")
    found = api.get("/api/audit", limit=3)["items"]
    assert [event["job"] for event in found] == [id, None, id]
    assert found[1]["subject"] == f"lane:{lane}"
    assert {event["who"] for event in found} == {"loopback from 127.0.0.1"}
    older = api.get("/api/audit", limit=2, before=found[0]["id"])["items"]
    assert older == found[1:]
    api.problem(422, "GET", "/api/audit", params={"before": 0})
