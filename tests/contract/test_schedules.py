"""Schedules and batches."""

from __future__ import annotations

import pytest

from tests.contract.kit import Api, new_name, worker_of
from tests.hands.kit import eventually


def test_a_schedule_makes_jobs_until_it_is_removed(api: Api, kind: str) -> None:
    name = new_name("schedule")
    said = {"name": name, "every": "1h", "job": {"type": kind, "args": {"n": 1}, "lane": "nightly",
            "priority": 7, "key": "k", "upstream": "a.example"}}  # fmt: skip
    answer = api.send("POST", "/api/schedules", json=said)
    assert answer.status_code == 201
    made = answer.json()
    assert made == api.ok("GET", answer.headers["location"])
    assert (made["type"], made["args"], made["lane"]) == (kind, {"n": 1}, "nightly")
    assert (made["priority"], made["key"], made["upstreams"]) == (7, "k", ["a.example"])
    assert (made["paused"], made["source"]) == (False, "operator")
    assert made["next_due_at"]
    assert name in [each["name"] for each in api.get("/api/schedules")["items"]]
    (next_one,) = api.get("/api/jobs", schedule=name)["items"]
    assert (next_one["type"], next_one["status"]) == (kind, "pending")

    assert api.post(f"/api/schedules/{name}/pause")["paused"]
    assert not api.post(f"/api/schedules/{name}/resume")["paused"]
    gone = api.send("DELETE", f"/api/schedules/{name}")
    assert (gone.status_code, gone.content) == (204, b"")
    eventually(lambda: not api.get("/api/jobs", schedule=name, status="open")["items"])
    for method, path in (
        ("GET", f"/api/schedules/{name}"),
        ("DELETE", f"/api/schedules/{name}"),
        ("POST", f"/api/schedules/{name}/pause"),
        ("POST", f"/api/schedules/{name}/resume"),
    ):
        api.problem(404, method, path, "unknown-schedule")


def test_what_is_due_runs(api: Api, kind: str) -> None:
    name = new_name("schedule")
    api.post("/api/schedules", {"name": name, "every": "1s", "job": {"type": kind}}, 201)
    with worker_of(api, kind) as worker:
        first = worker.take_one()
        worker.complete(first)
        second = worker.take_one()
        worker.complete(second)
    assert first["id"] != second["id"]
    assert api.job(second["id"])["schedule"] == name
    api.send("DELETE", f"/api/schedules/{name}")


def test_the_same_name_takes_the_new_settings(api: Api, kind: str) -> None:
    name = new_name("schedule")
    said = {"name": name, "cron": "0 3 * * *", "zone": "Europe/Berlin", "job": {"type": kind}}
    first = api.post("/api/schedules", said, 201)
    second = api.post("/api/schedules", {**said, "job": {"type": kind, "priority": 1}}, 201)
    assert (second["priority"], second["next_due_at"]) == (1, first["next_due_at"])
    assert second["rule"] == first["rule"]
    api.send("DELETE", f"/api/schedules/{name}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"job": {"type": "x"}},
        {"job": {"type": "x"}, "every": "1h", "cron": "* * * * *"},
        {"job": {"type": "x"}, "every": "often"},
        {"job": {"type": "x"}, "every": "0s"},
        {"job": {"type": "x"}, "cron": "* * *"},
        {"job": {"type": "x"}, "cron": "0 3 * * *", "zone": "Mars/Base"},
        {"job": {"type": "x", "delay_s": 5}, "every": "1h"},
        {"job": {"type": "x", "batch": 1}, "every": "1h"},
        {"job": {"type": "x", "unique": {"key": "k"}}, "every": "1h"},
        {"job": {"type": "x", "after": [1]}, "every": "1h"},
        {"job": {"type": "x", "deadline": "2100-01-01T00:00:00Z"}, "every": "1h"},
        {"job": {}, "every": "1h"},
        {"every": "1h"},
    ],
)
def test_what_is_no_schedule_is_refused(api: Api, wrong: dict[str, object]) -> None:
    name = new_name("schedule")
    api.problem(422, "POST", "/api/schedules", json={"name": name, **wrong})
    api.problem(404, "GET", f"/api/schedules/{name}", "unknown-schedule")


def test_a_batch_counts_its_jobs(api: Api, kind: str) -> None:
    answer = api.send("POST", "/api/batches", json={"label": "all videos"})
    assert answer.status_code == 201
    batch = answer.json()
    assert (batch["label"], batch["counts"], batch["total"]) == ("all videos", {}, 0)
    for _ in range(3):
        api.enqueue(kind, batch=batch["id"], max_attempts=1)
    seen = api.ok("GET", answer.headers["location"])
    assert (seen["counts"], seen["total"], seen["done"]) == ({"queued": 3}, 3, False)
    with worker_of(api, kind) as worker:
        for status in (200, 200, 500):
            worker.complete(worker.take_one(), status_code=status)
    seen = api.get(f"/api/batches/{batch['id']}")
    assert (seen["counts"], seen["done"]) == ({"completed": 2, "failed": 1}, True)
    newest = api.get("/api/batches", size=1)
    assert newest["items"] == [seen]
    assert newest["count"] == 1
    assert newest["total"] >= 1


def test_a_batch_needs_no_label(api: Api) -> None:
    assert api.post("/api/batches", status=201)["label"] == ""
    api.problem(422, "POST", "/api/batches", json={"label": 5})
    for id in ("0", "none", "99999999999999999999", "-1"):
        api.problem(404, "GET", f"/api/batches/{id}", "unknown-batch")
