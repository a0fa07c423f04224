"""Tasks, in the words of the task API."""

from __future__ import annotations

import pytest

from tests.contract.kit import JSON, Api, Worker, new_name, worker_of
from tests.servers import NewServer


def test_a_task_shows_everything(api: Api, kind: str) -> None:
    id = api.enqueue(kind, priority=3, max_attempts=2, labels={"team": "a"})
    task = api.get(f"/api/tasks/{id}")
    assert (task["id"], task["type"], task["status"]) == (id, kind, "queued")
    assert (task["priority"], task["max_attempts"], task["labels"]) == (3, 2, {"team": "a"})
    assert (task["attempts"], task["progress"], task["heartbeat_at"]) == ([], None, None)
    assert task["timeout_seconds"] > 0
    assert task["created_at"]


@pytest.mark.parametrize(
    ("type", "timeout_s", "attempts"),
    [("download", 1800, 4), ("scan", 300, 3), ("associate", 120, 3), ("check", 60, 2)],
)
def test_the_types_of_the_task_api_have_their_timeouts_and_retries(
    api: Api, type: str, timeout_s: float, attempts: int
) -> None:
    task = api.get(f"/api/tasks/{api.enqueue(type, lane=new_name())}")
    assert (task["timeout_seconds"], task["max_attempts"]) == (timeout_s, attempts)
    api.post(f"/api/tasks/{task['id']}/cancel")


def test_a_running_task_shows_its_progress_and_heartbeat(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        worker.beat(work, progress={"done": 3, "total": 8, "note": "page 3"})
        task = api.get(f"/api/tasks/{id}")
        progress = task["progress"]
        assert (progress["done"], progress["total"], progress["note"], progress["percent"]) == (
            3, 8, "page 3", 37.5
        )  # fmt: skip
        assert task["heartbeat_at"] >= task["started_at"]
        (attempt,) = task["attempts"]
        assert (attempt["number"], attempt["fence"]) == (1, work["fence"])
        assert (attempt["outcome"], attempt["ended_at"], attempt["error"]) == (None, None, None)


def test_attempts_say_how_each_ended_and_when_the_next_comes(api: Api, kind: str) -> None:
    id = api.enqueue(kind, max_attempts=3)
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=500, error="oh no")
        task = api.get(f"/api/tasks/{id}")
        assert (task["status"], task["failed_attempts"]) == ("pending", 1)
        assert task["last_error"] == "oh no"
        assert task["next_attempt_at"] > task["attempts"][0]["ended_at"]
        api.post(f"/api/jobs/{id}/reschedule", {"at": 1})  # at once
        worker.complete(worker.take_one())
    task = api.get(f"/api/tasks/{id}")
    assert task["status"] == "completed"
    first, second = task["attempts"]
    assert [first["number"], second["number"]] == [1, 2]
    assert first["error"] == "oh no"
    assert first["outcome"] != second["outcome"]
    assert second["error"] is None
    assert all(each["duration_s"] >= 0 for each in (first, second))
    assert first["fence"] < second["fence"]


def test_lists_filter_by_status_and_type(api: Api, kind: str) -> None:
    ids = [api.enqueue(kind) for _ in range(4)]
    api.post(f"/api/tasks/{ids[0]}/cancel")
    api.post(f"/api/tasks/{ids[1]}/pause")
    api.enqueue(new_name("kind"))

    def found(**filters: object) -> list[int]:
        page = api.get("/api/tasks", type=kind, **filters)
        assert page["count"] == len(page["items"])
        return [item["id"] for item in page["items"]]

    assert found() == ids[::-1]
    assert found(status="cancelled") == [ids[0]]
    assert found(status="paused,cancelled") == [ids[1], ids[0]]
    assert found(status="queued", page=2, size=1) == [ids[2]]
    assert found(status="completed") == []
    api.problem(422, "GET", "/api/tasks", "bad-search", params={"status": "finished"})


def test_pause_resume_cancel_and_retry(api: Api, kind: str) -> None:
    id = api.enqueue(kind)

    def after(verb: str) -> JSON:
        task = api.post(f"/api/tasks/{id}/{verb}")
        assert task == api.get(f"/api/tasks/{id}") | {
            name: task[name] for name in ("wait_reason", "wait_since", "position", "eta")
        }
        return task

    assert after("pause")["status"] == "paused"
    assert after("resume")["status"] in ("pending", "queued")
    assert after("cancel")["status"] == "cancelled"
    assert after("retry")["status"] in ("pending", "queued")
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        assert work["id"] == id
        worker.complete(work, status_code=404, error="gone")
    assert api.get(f"/api/tasks/{id}")["status"] == "failed"
    assert after("retry")["finished_at"] is None


@pytest.mark.parametrize(
    ("state", "impossible"),
    [
        ("queued", ["resume", "retry"]),
        ("paused", ["pause", "retry"]),
        ("running", ["resume", "retry"]),
        ("completed", ["pause", "resume", "cancel", "retry"]),
        ("failed", ["pause", "resume", "cancel"]),
        ("cancelled", ["pause", "resume", "cancel"]),
    ],
)
def test_an_impossible_transition_is_409_with_the_state(
    api: Api, kind: str, state: str, impossible: list[str]
) -> None:
    id = api.enqueue(kind)
    with worker_of(api, kind) as worker:
        bring_to(api, worker, id, state)
        assert api.get(f"/api/tasks/{id}")["status"] == state
        for noun in ("tasks", "jobs", "requests"):
            for verb in impossible:
                if (noun, verb) != ("requests", "retry"):  # there is no such route
                    path = f"/api/{noun}/{id}/{verb}"
                    problem = api.problem(409, "POST", path, "wrong-state")
                    assert problem["state"] == state
        assert api.get(f"/api/tasks/{id}")["status"] == state


def bring_to(api: Api, worker: Worker, id: int, state: str) -> None:
    if state in ("running", "completed", "failed"):
        work = worker.take_one()
        if state != "running":
            worker.complete(work, status_code=200 if state == "completed" else 404)
    elif state != "queued":
        api.post(f"/api/tasks/{id}/{'pause' if state == 'paused' else 'cancel'}")


def test_ended_jobs_cannot_be_pinned_or_moved(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    api.post(f"/api/jobs/{id}/cancel")
    for path, body in (
        (f"/api/jobs/{id}/pin", None),
        (f"/api/jobs/{id}/prioritise", {"priority": 1}),
        (f"/api/jobs/{id}/reschedule", {"at": 1}),
        (f"/api/requests/{id}/prioritize", None),
        (f"/api/requests/{id}/prioritize", {"priority": 3}),
    ):
        said = {} if body is None else {"json": body}
        assert api.problem(409, "POST", path, **said)["state"] == "cancelled"


def test_the_trail_of_a_task_is_complete_and_in_order(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    api.post(f"/api/tasks/{id}/pause")
    api.post(f"/api/tasks/{id}/resume")
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one())
    events = api.get(f"/api/tasks/{id}/events")["items"]
    assert [event["id"] for event in events] == sorted(event["id"] for event in events)
    assert {event["job"] for event in events} == {id}
    changes = [(e["before"], e["after"]) for e in events if e["before"] != e["after"]]
    assert changes[0][0] is None
    assert [after for _, after in changes if after][-2:] == ["running", "completed"]
    states = [after for _, after in changes]
    assert [before for before, _ in changes[1:]] == states[:-1]  # without a gap
    asked = [event for event in events if event["who"]]
    assert len(asked) == 2
    assert all(event["who"].startswith("loopback") for event in asked)
    assert events == api.get(f"/api/jobs/{id}/events")["items"]


def test_the_tasks_of_a_subscription(api: Api, kind: str) -> None:
    subscription = new_name()
    ids = [api.request(kind, subscription_id=subscription, url=f"https://{n}.example")["id"]
           for n in range(3)]  # fmt: skip
    api.request(kind, subscription_id=new_name())
    page = api.get(f"/api/subscriptions/{subscription}/tasks", size=2)
    assert [item["id"] for item in page["items"]] == ids[:0:-1]
    assert (page["total"], page["count"], page["page"], page["size"]) == (3, 2, 1, 2)
    assert {item["status"] for item in page["items"]} == {"queued"}
    assert api.get(f"/api/subscriptions/{new_name()}/tasks")["items"] == []


def test_stats_say_how_each_type_fared(api: Api, kind: str) -> None:
    ids = [api.enqueue(kind, max_attempts=1) for _ in range(5)]
    with worker_of(api, kind) as worker:
        for status in (200, 200, 200, 500):
            worker.complete(worker.take_one(), status_code=status)
    api.post(f"/api/tasks/{ids[4]}/cancel")
    for params in ({}, {"hours": 1}):
        found = api.get("/api/tasks/stats", **params)["items"]
        (stats,) = (each for each in found if each["type"] == kind)
        numbers = [stats[name] for name in ("count", "completed", "failed", "cancelled")]
        assert numbers == [5, 3, 1, 1]
        assert stats["success_rate"] == 0.75
        assert 0 <= stats["mean_run_s"] <= stats["p95_run_s"] < 60
        assert 0 <= stats["mean_wait_s"] < 60
    for wrong in (0, -1, "day", "inf"):
        api.problem(422, "GET", "/api/tasks/stats", params={"hours": wrong})


def test_cleanup_removes_what_is_older_than_so_many_days(new_server: NewServer, kind: str) -> None:
    with Api(new_server().url) as api:
        done, failed, open_one = (api.enqueue(kind) for _ in range(3))
        with worker_of(api, kind) as worker:
            worker.complete(worker.take_one(), status_code=200, body=[1])
            worker.complete(worker.take_one(), status_code=404)
        assert api.post("/api/tasks/cleanup")["jobs"] == 0  # nothing is older than a week
        assert api.post("/api/tasks/cleanup", {"failed_days": 1})["jobs"] == 0
        assert api.post("/api/tasks/cleanup", {"completed_days": 0})["jobs"] == 1
        api.problem(404, "GET", f"/api/tasks/{done}", "unknown-job")
        assert api.get(f"/api/tasks/{failed}")["status"] == "failed"
        assert api.post("/api/tasks/cleanup", {"failed_days": 0})["jobs"] == 1
        api.problem(404, "GET", f"/api/tasks/{failed}", "unknown-job")
        assert api.get(f"/api/tasks/{open_one}")["status"] == "queued"
        for wrong in ({"completed_days": -1}, {"completed_days": "all"}, {"days": 1}):
            api.problem(422, "POST", "/api/tasks/cleanup", json=wrong)


def test_resources_of_the_machine(api: Api) -> None:
    seen = api.get("/api/system/resources")
    assert seen["cpu_count"] >= 1
    assert 0 <= seen["memory"]["percent"] <= 100
    assert 0 < seen["memory"]["process_rss_bytes"] < seen["memory"]["total_bytes"]
    assert 0 <= seen["disk"]["free_bytes"] <= seen["disk"]["total_bytes"]
    assert seen["processes"] == []
