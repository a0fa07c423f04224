"""Jobs: asking for them, searching, looking, and the same to many at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.contract.kit import Api, asking, new_name, worker_of
from tests.hands.kit import eventually


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def test_a_job_is_answered_with_what_it_is_and_where(api: Api, kind: str) -> None:
    answer = api.send("POST", "/api/jobs", json={
        "type": kind, "args": {"n": 1}, "lane": "slow", "tenant": "acme", "key": "k", "priority": 2,
        "upstream": ["a.example", "b.example"], "labels": {"team": "x"}, "about": {"title": "Hi"},
        "weight": 2.5, "cost": 3, "tools": ["gpu"], "ordered": "pass", "traffic": "leftover",
        "within_s": 60, "keep_result_s": 10, "max_attempts": 9,
    })  # fmt: skip
    assert answer.status_code == 202
    job = answer.json()
    assert (job["type"], job["lane"], job["tenant"], job["key"]) == (kind, "slow", "acme", "k")
    assert job["upstreams"] == ["a.example", "b.example"]
    assert (job["priority"], job["max_attempts"]) == (2, 9)
    assert (job["labels"], job["about"]) == ({"team": "x"}, {"title": "Hi"})
    assert job["deadline"]
    assert (job["status"], job["joined"]) == ("queued", False)
    found = api.ok("GET", answer.headers["location"])
    assert found["id"] == job["id"]
    assert api.get(f"/api/jobs/{job['id']}/payload") == {"value": {"n": 1}}
    api.post(f"/api/jobs/{job['id']}/cancel")


@pytest.mark.parametrize("as_text", [True, False])
def test_a_job_for_later_is_pending_until_its_time(api: Api, kind: str, as_text: bool) -> None:
    later = in_an_hour()
    id = api.enqueue(kind, at=later.isoformat() if as_text else later.timestamp())
    job = api.job(id)
    assert job["status"] == "pending"
    assert job["next_attempt_at"] == later.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert api.waiting(id)["wait_reason"] == "not due yet"
    moved = api.post(f"/api/jobs/{id}/reschedule", {"at": "2001-01-01T00:00:00Z"})
    assert moved["status"] in ("pending", "queued")
    with worker_of(api, kind) as worker:
        assert worker.take_one()["id"] == id


def test_a_job_after_others_waits_for_them(api: Api, kind: str) -> None:
    first = api.enqueue(kind)
    second = api.enqueue(kind, after=[first])
    assert str(first) in api.waiting(second)["wait_reason"]
    with worker_of(api, kind) as worker:
        assert worker.run_all(2) == [first, second]


def test_a_job_after_one_that_never_was_is_cancelled_and_says_why(api: Api, kind: str) -> None:
    id = api.enqueue(kind, after=[10**12])
    eventually(lambda: api.job(id)["status"] == "cancelled")
    assert "is not there" in api.job(id)["last_error"]


def test_a_unique_key_lets_one_in(api: Api, kind: str) -> None:
    def said(on_conflict: str, n: int) -> dict[str, Any]:
        unique = {"key": "k", "on_conflict": on_conflict}
        return {"type": kind, "args": {"n": n}, "unique": unique}

    first = api.post("/api/jobs", said("reject", 1), 202)
    assert not first["joined"]
    path = f"/api/jobs/{first['id']}/payload"
    joined = api.post("/api/jobs", said("join", 2), 202)
    assert (joined["id"], joined["joined"]) == (first["id"], True)
    assert api.get(path)["value"] == {"n": 1}
    problem = api.problem(409, "POST", "/api/jobs", "duplicate", json=said("reject", 3))
    assert problem["job"] == first["id"]
    # The job that waits takes over what the new one says.
    assert api.post("/api/jobs", said("replace", 4), 202)["id"] == first["id"]
    assert api.get(path)["value"] == {"n": 4}


def test_pin_and_prioritise_decide_who_is_next(api: Api, kind: str) -> None:
    ids = [api.enqueue(kind, priority=5) for _ in range(4)]
    assert api.post(f"/api/jobs/{ids[3]}/pin")["pinned"]
    assert api.post(f"/api/jobs/{ids[2]}/prioritise", {"priority": 1})["priority"] == 1
    assert api.post(f"/api/jobs/{ids[0]}/prioritise", {"priority": 10})["priority"] == 10
    with worker_of(api, kind) as worker:
        assert worker.run_all(4) == [ids[3], ids[2], ids[1], ids[0]]


def test_a_job_can_be_awaited(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    assert api.get(f"/api/jobs/{id}", wait_s=0.05)["status"] == "queued"  # the time is over
    with worker_of(api, kind) as worker, ThreadPoolExecutor(1) as pool, Api(api.url) as other:
        awaited = pool.submit(other.get, f"/api/jobs/{id}", wait_s=15)
        worker.complete(worker.take_one())
        assert awaited.result(20)["status"] == "completed"
    for wrong in (-1, 61, "long", "nan"):
        api.problem(422, "GET", f"/api/jobs/{id}", params={"wait_s": wrong})


def test_explain_says_which_gate_and_why(api: Api, kind: str) -> None:
    lane = new_name("lane")
    api.post(f"/api/lanes/{lane}/pause")
    id = api.enqueue(kind, lane=lane)
    with asking(api, kind):

        def explained() -> Any:
            why = api.get(f"/api/jobs/{id}/explain")
            return why if why["gate"] == f"lane:{lane}" else None

        why = eventually(explained)
    assert (why["status"], why["reason"], why["position"]) == ("queued", "paused", 1)
    assert why["text"] == f"waits at lane:{lane}: paused"
    assert why["since"]
    assert why["now"] >= why["since"]
    api.post(f"/api/jobs/{id}/cancel")
    problem = api.problem(409, "GET", f"/api/jobs/{id}/explain", "ended")
    assert problem["state"] == "cancelled"


def test_an_unknown_type_waits_and_says_so(api: Api, kind: str) -> None:
    assert "no worker knows" in api.waiting(api.enqueue(kind))["wait_reason"]


def test_a_result_is_409_until_it_is_there(api: Api, kind: str) -> None:
    id, failing, empty = (api.enqueue(kind) for _ in range(3))
    path = f"/api/jobs/{id}/result"
    assert api.problem(409, "GET", path, "no-result")["state"] == "queued"
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=200, body="fine")
        worker.complete(worker.take_one(), status_code=410)
        worker.complete(worker.take_one(), status_code=200)
    assert api.get(path)["value"] == "fine"
    problem = api.problem(409, "GET", f"/api/jobs/{failing}/result", "no-result")
    assert problem["state"] == "failed"
    assert api.get(f"/api/jobs/{empty}/result") == {"value": None, "expires_at": None}


# ---------------------------------------------------------------------- searching


def test_qualifiers_and_filters_narrow_a_search(api: Api, kind: str) -> None:
    host = f"{new_name()}.example"
    batch = api.post("/api/batches", {"label": "b"}, 201)["id"]
    one = api.enqueue(kind, upstream=host, labels={"team": "a b"}, tenant="t1", key="k1")
    two = api.enqueue(kind, lane="other lane", batch=batch, tenant="t2", max_attempts=1)
    with worker_of(api, kind) as worker:
        works = {work["id"]: work for work in worker.take(2)}
        worker.complete(works[one], status_code=200)
        worker.complete(works[two], status_code=500, error="read timeout at page 3")

    def found(q: str = "", **filters: object) -> list[int]:
        page = api.get("/api/jobs", q=f"type:{kind} {q}", **filters)
        return [item["id"] for item in page["items"]]

    assert found() == [two, one]
    assert found("status:failed") == found("error:timeout") == found('"page 3"') == [two]
    assert found(f"upstream:{host}") == found('label:"team=a b"') == found("tenant:t1") == [one]
    assert found('lane:"other lane"') == found(f"batch:{batch}") == found(f"id:{two}") == [two]
    assert found("status:completed,failed created:>1h key:k1") == [one]
    assert found("finished:<2020-01-01") == []
    assert found(status="ended", lane="other lane", tenant="t2", batch=batch) == [two]
    assert found(key="k1", upstream=host) == [one]
    assert found(status="open") == []


@pytest.mark.parametrize(
    "q", ["colour:red", "status:lost", "id:x", "created:yesterday", "created:>x", "label:a"]
)
def test_a_search_that_cannot_be_read_is_refused(api: Api, q: str) -> None:
    api.problem(422, "GET", "/api/jobs", "bad-search", params={"q": q})
    body = {"action": "cancel", "q": q}
    api.problem(422, "POST", "/api/jobs/bulk", "bad-search", json=body)


def test_the_same_to_many_after_a_dry_run(api: Api, kind: str) -> None:
    ids = [api.enqueue(kind) for _ in range(5)]
    api.post(f"/api/jobs/{ids[0]}/cancel")
    said = {"action": "cancel", "q": f"type:{kind}"}
    dry = api.post("/api/jobs/bulk", said)
    assert (dry["dry_run"], dry["matched"], dry["possible"], dry["done"]) == (True, 5, 4, 0)
    assert len(dry["sample"]) == 4
    assert api.get("/api/jobs", type=kind, status="queued")["total"] == 4
    wrong = {**said, "dry_run": False, "expected": 4}
    api.problem(409, "POST", "/api/jobs/bulk", "changed", json=wrong)
    done = api.post("/api/jobs/bulk", {**said, "dry_run": False, "expected": 5})
    assert (done["done"], done["refused"]) == (4, 0)
    assert api.get("/api/jobs", type=kind, status="cancelled")["total"] == 5


@pytest.mark.parametrize(
    ("action", "after"),
    [
        ("pause", ("status", "paused")),
        ("pin", ("pinned", True)),
        ("prioritise", ("priority", 2)),
    ],
)
def test_bulk_actions(api: Api, kind: str, action: str, after: tuple[str, object]) -> None:
    ids = [api.enqueue(kind) for _ in range(2)]
    more = {"priority": 2} if action == "prioritise" else {}
    said = {"action": action, "q": f"type:{kind}", "dry_run": False, **more}
    assert api.post("/api/jobs/bulk", said)["done"] == 2
    name, value = after
    assert [api.job(id)[name] for id in ids] == [value] * 2


@pytest.mark.parametrize(
    ("action", "undo", "name"),
    [("pause", "resume", "status"), ("cancel", "retry", "status"), ("pin", "unpin", "pinned")],
)
def test_a_bulk_action_is_undone_for_exactly_those_it_has_touched(
    api: Api, kind: str, action: str, undo: str, name: str
) -> None:
    apart, *ids = [api.enqueue(kind) for _ in range(4)]
    if action != "pin":
        api.post(f"/api/jobs/{apart}/{action}")  # by somebody else, before
    before = {id: api.job(id)[name] for id in (apart, *ids)}
    which = {"q": f"type:{kind}"} if action != "pin" else {"ids": [*ids, ids[0], 10**15]}
    done = api.post("/api/jobs/bulk", {"action": action, **which, "dry_run": False})
    assert (done["touched"], done["touched_complete"]) == (sorted(ids, reverse=True), True)
    assert {api.job(id)[name] for id in ids} != {before[ids[0]]}
    dry = api.post("/api/jobs/bulk", {"action": undo, "ids": done["touched"]})
    assert (dry["matched"], dry["possible"], dry["touched"]) == (3, 3, [])
    undone = api.post(
        "/api/jobs/bulk", {"action": undo, "ids": done["touched"], "dry_run": False, "expected": 3}
    )
    assert (undone["done"], undone["touched"]) == (3, done["touched"])
    assert {id: api.job(id)[name] for id in (apart, *ids)} == before


def test_what_has_no_pin_cannot_lose_it(api: Api, kind: str) -> None:
    ids = [api.enqueue(kind) for _ in range(2)]
    api.post(f"/api/jobs/{ids[0]}/pin")
    said = {"action": "unpin", "q": f"type:{kind}", "dry_run": False}
    done = api.post("/api/jobs/bulk", said)
    assert (done["matched"], done["possible"], done["touched"]) == (2, 1, [ids[0]])
    assert api.post(f"/api/jobs/{ids[0]}/unpin")["pinned"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "cancel", "q": "status:open", "ids": [1]},
        {"action": "cancel", "ids": ["1"]},
        {"action": "cancel", "ids": [0]},
        {"action": "cancel", "ids": list(range(1, 10_002))},
        {"action": "cancel", "q": ""},
        {"action": "cancel", "q": "  "},
        {"action": "explode", "q": "status:open"},
        {"action": "prioritise", "q": "status:open"},
        {"action": "cancel", "q": "status:open", "priority": 1},
        {"action": "cancel"},
        {"q": "status:open"},
    ],
)
def test_a_bulk_action_that_makes_no_sense_is_refused(api: Api, wrong: object) -> None:
    api.problem(422, "POST", "/api/jobs/bulk", json=wrong)


# ---------------------------------------------------------------------- refusing


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"type": ""},
        {"type": "x" * 201},
        {"type": "x", "priority": "1"},
        {"type": "x", "priority": True},
        {"type": "x", "args": [1]},
        {"type": "x", "delay_s": -1},
        {"type": "x", "delay_s": 1, "at": 5},
        {"type": "x", "at": "tomorrow"},
        {"type": "x", "at": 1e300},
        {"type": "x", "deadline": 5},
        {"type": "x", "weight": 0},
        {"type": "x", "ordered": "pass"},
        {"type": "x", "ordered": "never", "key": "k"},
        {"type": "x", "upstream": ["a", "a"]},
        {"type": "x", "tools": ["a", "a"]},
        {"type": "x", "unique": {"while": "queued"}},
        {"type": "x", "after": [0]},
        {"type": "x", "batch": 2**53},
        {"type": "x", "colour": "red"},
        {"type": "a\0b"},
    ],
)
def test_what_is_no_job_is_refused(api: Api, wrong: dict[str, object]) -> None:
    before = api.get("/api/jobs")["total"]
    api.problem(422, "POST", "/api/jobs", json=wrong)
    assert api.get("/api/jobs")["total"] == before
