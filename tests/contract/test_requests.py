"""Requests, in the words of the request queue."""

from __future__ import annotations

import pytest

from tests.contract.kit import Api, asking, new_name, worker_of
from tests.hands.kit import eventually

ITEM = {
    "id", "type", "subscription_id", "url", "requires_cookie", "ua_profile", "status", "priority",
    "attempts", "max_attempts", "last_error", "created_at", "started_at", "finished_at", "lane",
    "wait_reason", "wait_since", "position", "eta",
}  # fmt: skip


def test_an_enqueued_request_is_answered_with_the_item_and_where_it_is(api: Api, kind: str) -> None:
    subscription = new_name()
    answer = api.send("POST", "/api/requests/enqueue", json={
        "type": kind, "subscription_id": subscription, "url": "https://video.example/list",
        "requires_cookie": False, "ua_profile": "mobile", "priority": 2, "max_attempts": 4,
        "payload": {"page": 3},
    })  # fmt: skip
    assert answer.status_code == 202
    item = answer.json()
    assert set(item) == {*ITEM, "joined"}
    assert item["joined"] is False
    assert (item["type"], item["subscription_id"], item["url"]) == (
        kind, subscription, "https://video.example/list"
    )  # fmt: skip
    assert (item["requires_cookie"], item["ua_profile"], item["lane"]) == (
        False, "mobile", "no_cookie"
    )  # fmt: skip
    assert (item["status"], item["priority"], item["attempts"], item["max_attempts"]) == (
        "queued", 2, 0, 4
    )  # fmt: skip
    found = api.ok("GET", answer.headers["location"])
    assert set(found) == ITEM
    assert found["id"] == item["id"]
    assert found == api.get(f"/api/requests/{item['id']}")


def test_the_handler_gets_what_was_said_and_the_payload(api: Api, kind: str) -> None:
    api.request(kind, subscription_id=17, url="https://a.example/x", payload={"page": 3})
    with worker_of(api, kind) as worker:
        work = worker.take_one()
    assert work["args"] == {
        "page": 3, "subscription_id": 17, "requires_cookie": False, "url": "https://a.example/x",
        "ua_profile": None,
    }  # fmt: skip
    assert work["upstream"] == "a.example"


@pytest.mark.parametrize("type", ["expected_total", "parse", "list_fetch", "another"])
def test_a_cookie_decides_the_lane(api: Api, type: str) -> None:
    url = f"https://{new_name()}.example/"
    with_cookie = api.request(type, url=url, requires_cookie=True, ua_profile="mobile")
    assert (with_cookie["lane"], with_cookie["requires_cookie"]) == ("requires_cookie", True)
    assert with_cookie["ua_profile"] is None  # it counts only without a cookie
    without = api.request(type, url=f"{url}2", requires_cookie=False, ua_profile="alt")
    assert (without["lane"], without["ua_profile"]) == ("no_cookie", "alt")


def test_downloads_always_need_a_cookie(api: Api) -> None:
    item = api.request("download", url=f"https://{new_name()}.example/", requires_cookie=False)
    assert (item["requires_cookie"], item["lane"]) == (True, "requires_cookie")


def test_a_duplicate_joins_the_active_request(api: Api, kind: str) -> None:
    said = {"subscription_id": new_name(), "url": "https://a.example/1"}
    first = api.request(kind, **said)
    second = api.request(kind, **said)
    assert (second["id"], second["joined"]) == (first["id"], True)
    others = [
        api.request(new_name("kind"), **said),
        api.request(kind, **{**said, "subscription_id": new_name()}),
        api.request(kind, **{**said, "url": "https://a.example/2"}),
    ]
    assert not any(other["joined"] for other in others)
    with worker_of(api, kind) as worker:
        taken = [work["id"] for work in worker.take(10)]
        assert first["id"] in taken
        assert api.request(kind, **said)["joined"]  # while it runs, too
    assert api.get(f"/api/requests/{first['id']}")["status"] == "canceled"
    assert not api.request(kind, **said)["joined"]  # it is not active any more


def test_a_request_without_subscription_and_url_joins_nothing(api: Api, kind: str) -> None:
    assert api.request(kind)["id"] != api.request(kind)["id"]


def test_joining_raises_the_priority_and_never_lowers_it(api: Api, kind: str) -> None:
    said = {"url": f"https://{new_name()}.example/"}
    first = api.request(kind, priority=1, **said)
    other = api.request(kind, priority=3)
    raised = api.request(kind, priority=7, **said)
    assert (raised["id"], raised["joined"]) == (first["id"], True)
    eventually(lambda: api.get(f"/api/requests/{first['id']}")["priority"] == 7)
    api.request(kind, priority=-4, **said)
    assert api.get(f"/api/requests/{first['id']}")["priority"] == 7
    with worker_of(api, kind) as worker:
        assert worker.run_all(2) == [first["id"], other["id"]]


def test_higher_priorities_go_first_then_the_oldest(api: Api, kind: str) -> None:
    ids = [api.request(kind, priority=priority)["id"] for priority in (0, -3, 5, 0, 5)]
    with worker_of(api, kind) as worker:
        assert worker.run_all(5) == [ids[2], ids[4], ids[0], ids[3], ids[1]]


def test_prioritize_pins_to_the_front_or_sets_a_number(api: Api, kind: str) -> None:
    first, second, third, fourth = (api.request(kind)["id"] for _ in range(4))
    urgent = api.request(kind, priority=1_000)["id"]
    answer = api.post(f"/api/requests/{fourth}/prioritize", {"priority": 9})
    assert answer["priority"] == 9
    api.post(f"/api/requests/{second}/prioritize")
    api.post(f"/api/requests/{third}/prioritize", {})  # says no number: to the front
    with worker_of(api, kind) as worker:
        order = worker.run_all(5)
    assert set(order[:2]) == {second, third}
    assert order[2:] == [urgent, fourth, first]


def test_a_paused_request_waits_until_it_is_resumed(api: Api, kind: str) -> None:
    id = api.request(kind)["id"]
    assert api.post(f"/api/requests/{id}/pause")["status"] == "paused"
    with worker_of(api, kind) as worker:
        assert worker.finds_nothing()
        assert api.post(f"/api/requests/{id}/resume")["status"] == "queued"
        assert worker.take_one()["id"] == id


def test_a_waiting_request_is_canceled_at_once(api: Api, kind: str) -> None:
    id = api.request(kind)["id"]
    item = api.post(f"/api/requests/{id}/cancel")
    assert item["status"] == "canceled"
    assert item["finished_at"]
    with worker_of(api, kind) as worker:
        assert worker.finds_nothing()


def test_requests_of_one_subscription_run_strictly_one_after_the_other(api: Api, kind: str) -> None:
    subscription = new_name()
    ids = [api.request(kind, subscription_id=subscription, url=f"https://{n}.example/")["id"]
           for n in range(3)]  # fmt: skip
    with worker_of(api, kind) as worker:
        for id in ids:
            (work,) = worker.take(10)
            assert work["id"] == id
            assert worker.finds_nothing()
            worker.complete(work)


def test_what_waits_says_why_since_when_how_far_in_front_and_until_when(
    api: Api, kind: str
) -> None:
    host = f"{new_name()}.example"
    until = api.post(f"/api/upstreams/{host}/close", {"for_s": 90, "why": "on holiday"})
    ids = [api.request(kind, url=f"https://{host}/{n}")["id"] for n in range(3)]
    with asking(api, kind):

        def waiting() -> list[dict[str, object]]:
            items = [api.get(f"/api/requests/{id}") for id in ids]
            return items if all("upstream" in (i["wait_reason"] or "") for i in items) else []

        items = eventually(waiting)
    assert {item["wait_reason"] for item in items} == {
        f"waits at upstream:{host}: closed (on holiday)"
    }
    assert [item["position"] for item in items] == [1, 2, 3]
    assert {item["wait_since"] for item in items} == {until["closed_since"]}
    assert items[0]["eta"] == until["closed_until"]
    assert all(item["eta"] >= until["closed_until"] for item in items)
    api.post(f"/api/upstreams/{host}/open")
    with worker_of(api, kind) as worker:
        assert worker.run_all(3) == ids
    done = api.get(f"/api/requests/{ids[0]}")
    assert [done[name] for name in ("wait_reason", "wait_since", "position", "eta")] == [None] * 4


def test_filters_combine(api: Api, kind: str) -> None:
    one, other = new_name(), new_name()
    wanted = api.request(kind, subscription_id=one, url="https://x.example/1")["id"]
    api.request(kind, subscription_id=other, url="https://x.example/1")
    api.request(kind, subscription_id=one, url="https://x.example/2", requires_cookie=True)
    canceled = api.request(kind, subscription_id=one, url="https://x.example/3")["id"]
    api.post(f"/api/requests/{canceled}/cancel")
    api.request(new_name("kind"), subscription_id=one)

    def found(**filters: str) -> set[int]:
        page = api.get("/api/requests", **filters)
        assert page["count"] == len(page["items"]) == page["total"]
        return {item["id"] for item in page["items"]}

    said = {"type": kind, "subscription_id": one, "lane": "no_cookie", "status": "queued"}
    assert found(**said) == {wanted}
    assert len(found(type=kind)) == 4
    assert found(type=kind, subscription_id=one, status="canceled") == {canceled}
    assert len(found(type=kind, lane="requires_cookie")) == 1
    assert len(found(type=kind, lane="cookie")) == 1  # as some of its clients say
    assert found(type=kind, status="running") == set()
    assert len(found(type=kind, status="")) == 4  # an empty filter is none


def test_numbers_of_subscriptions_come_back_as_numbers(api: Api, kind: str) -> None:
    assert api.request(kind, subscription_id=41)["subscription_id"] == 41
    (item,) = api.get("/api/requests", type=kind, subscription_id=41)["items"]
    assert item["subscription_id"] == 41


def test_pages_are_newest_first_and_do_not_overlap(api: Api, kind: str) -> None:
    ids = [api.request(kind)["id"] for _ in range(5)]
    pages = [api.get("/api/requests", type=kind, page=page, size=2) for page in (1, 2, 3, 4)]
    assert [[item["id"] for item in page["items"]] for page in pages] == [
        ids[:2:-1], ids[2:0:-1], ids[:1], []
    ]  # fmt: skip
    assert [page["count"] for page in pages] == [2, 2, 1, 0]
    assert {(page["total"], page["size"]) for page in pages} == {(5, 2)}
    assert [page["page"] for page in pages] == [1, 2, 3, 4]


def test_a_page_has_at_most_200_items(api: Api) -> None:
    for path in ("/api/requests", "/api/tasks", "/api/jobs", "/api/batches"):
        assert api.get(path, size=200)["size"] == 200
        for wrong in ({"size": 201}, {"size": 0}, {"page": 0}, {"size": "many"}):
            problem = api.problem(422, "GET", path, params=wrong)
            (name,) = wrong
            assert problem["errors"][0]["where"] == f"query.{name}"


def test_an_unknown_status_is_refused_with_those_that_are_known(api: Api) -> None:
    problem = api.problem(422, "GET", "/api/requests", params={"status": "completed"})
    assert "queued, running, paused, done, failed, canceled" in problem["detail"]


def test_the_views_use_the_words_of_the_request_queue(api: Api, kind: str) -> None:
    ids = [api.request(kind)["id"] for _ in range(3)]
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        running = api.get(f"/api/requests/{ids[0]}")
        assert (running["status"], running["attempts"]) == ("running", 1)
        assert running["started_at"]
        worker.complete(work)
        worker.complete(worker.take_one(), status_code=404, error="no such video")
    api.post(f"/api/requests/{ids[2]}/cancel")
    items = [api.get(f"/api/requests/{id}") for id in ids]
    assert [item["status"] for item in items] == ["done", "failed", "canceled"]
    assert [item["last_error"] for item in items] == [
        None, "no such video", "it was cancelled"
    ]  # fmt: skip
    assert all(item["finished_at"] for item in items)


@pytest.mark.parametrize(
    "wrong",
    [
        {"requires_cookie": False},
        {"type": "parse"},
        {"type": "", "requires_cookie": False},
        {"type": "parse", "requires_cookie": "perhaps"},
        {"type": "parse", "requires_cookie": False, "ua_profile": "tablet"},
        {"type": "parse", "requires_cookie": False, "priority": "high"},
        {"type": "parse", "requires_cookie": False, "max_attempts": 0},
        {"type": "parse", "requires_cookie": False, "payload": [1]},
        {"type": "par\0se", "requires_cookie": False},
        [],
    ],
)
def test_what_is_not_a_request_is_refused_and_changes_nothing(api: Api, wrong: object) -> None:
    before = api.get("/api/requests")["total"]
    problem = api.problem(422, "POST", "/api/requests/enqueue", "wrong-input", json=wrong)
    assert problem["errors"]
    assert problem["errors"][0]["where"].startswith("body")
    assert api.get("/api/requests")["total"] == before


def test_what_it_does_not_know_is_left_alone(api: Api, kind: str) -> None:
    assert api.request(kind, mood="good")["type"] == kind
