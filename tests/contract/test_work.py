"""Work for workers in any language: take, heartbeat, complete."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contract.kit import Api, Worker, new_name, worker_of
from tests.hands.kit import eventually
from tests.servers import NewServer


def test_a_job_goes_to_a_worker_and_its_result_comes_back(api: Api, kind: str) -> None:
    id = api.enqueue(kind, args={"url": "x", "n": [1, 2]}, key=new_name("key"), tenant="acme")
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        assert work["id"] == id
        assert (work["type"], work["args"], work["attempt"]) == (kind, {"url": "x", "n": [1, 2]}, 1)
        assert (work["tenant"], work["lane"], work["checkpoint"]) == ("acme", "default", None)
        assert work["fence"] > 0
        assert work["lease_s"] > 0
        assert work["timeout_s"] > 0
        answer = worker.complete(work, status_code=200, body={"total": 12})
    assert answer == {"id": id, "fence": work["fence"], "accepted": True, "state": "completed"}
    result = api.get(f"/api/jobs/{id}/result")
    assert result["value"] == {"total": 12}
    assert result["expires_at"]


def test_queues_is_another_word_for_types(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    (work,) = api.post("/api/work/take", {"queues": [kind], "wait_ms": 5_000})["jobs"]
    assert work["id"] == id
    api.post(f"/api/work/{id}/complete", {"fence": work["fence"], "status_code": 204})
    assert api.job(id)["status"] == "completed"


def test_a_take_waits_for_a_job_and_answers_at_once_when_one_comes(api: Api, kind: str) -> None:
    lane = new_name("lane")
    api.post(f"/api/lanes/{lane}/pause")
    id = api.enqueue(kind, lane=lane)
    with ThreadPoolExecutor(1) as pool, Api(api.url) as other:
        worker = Worker(other, kind)
        taken = pool.submit(worker.take, 1, 60_000)  # far longer than the test may last
        # It waits for the lane: somebody is there for it.
        eventually(lambda: f"lane:{lane}" in api.waiting(id)["wait_reason"])
        api.post(f"/api/lanes/{lane}/resume")
        (work,) = taken.result(20)
        assert work["id"] == id
        worker.complete(work)


def test_nothing_comes_when_there_is_nothing(api: Api, kind: str) -> None:
    answer = Worker(api, kind).ask(5, wait_ms=0)
    assert (answer["jobs"], answer["stops"]) == ([], [])


def test_batches_are_taken_and_completed_in_one_call(api: Api, kind: str) -> None:
    jobs = [{"type": kind, "args": {"n": n}} for n in range(20)]
    put = api.post("/api/work/put", {"jobs": jobs}, 202)["jobs"]
    ids = [each["id"] for each in put]
    assert len(set(ids)) == 20
    assert not any(each["joined"] for each in put)
    worker = Worker(api, kind)
    works = worker.take(20)
    assert [work["id"] for work in works] == ids
    reports = [{"id": w["id"], "fence": w["fence"], "status_code": 200, "body": w["args"]["n"]}
               for w in works]  # fmt: skip
    answer = api.post("/api/work/complete", {"worker": worker.name, "jobs": reports})
    assert [each["state"] for each in answer["jobs"]] == ["completed"] * 20
    assert api.get(f"/api/jobs/{ids[7]}/result")["value"] == 7
    # The answer was lost, so it is sent again: what was accepted is accepted again.
    again = api.post("/api/work/complete", {"worker": worker.name, "jobs": reports})
    assert again == answer


def test_a_put_is_all_or_none(api: Api, kind: str) -> None:
    api.enqueue(kind, unique={"key": "one"})
    jobs = [{"type": kind}, {"type": kind, "unique": {"key": "one", "on_conflict": "reject"}}]
    problem = api.problem(409, "POST", "/api/work/put", "duplicate", json={"jobs": jobs})
    assert problem["job"]
    wrong = [{"type": kind}, {"type": kind, "delay_s": 1, "at": 5}]
    api.problem(422, "POST", "/api/work/put", "bad-job", json={"jobs": wrong})
    api.problem(422, "POST", "/api/work/put", json={"jobs": [{"type": kind}, {}]})
    api.problem(422, "POST", "/api/work/put", json={"jobs": []})
    assert api.get("/api/jobs", type=kind)["total"] == 1


@pytest.mark.parametrize(
    ("said", "state", "burnt"),
    [
        ({"status_code": 201}, "completed", 0),
        ({"status_code": 429, "retry_after_s": 30}, "pending", 0),
        ({"status_code": 503}, "pending", 0),
        ({"status_code": 500}, "pending", 1),
        ({"status_code": 404, "error": "gone"}, "failed", None),
        ({"outcome": {"kind": "ok"}}, "completed", 0),
        ({"outcome": {"kind": "failed", "error": "x"}}, "pending", 1),
        ({"outcome": {"kind": "failed", "error": "x", "fatal": True}}, "failed", None),
        ({"outcome": {"kind": "pushback", "status": 429}}, "pending", 0),
        ({"outcome": {"kind": "cancelled"}}, "cancelled", 0),
        ({"outcome": {"kind": "returned"}}, "queued", 0),
    ],
)
def test_what_an_answer_means(
    api: Api, kind: str, said: dict[str, object], state: str, burnt: int | None
) -> None:
    id = api.enqueue(kind, upstream=new_name("host"), max_attempts=3)
    with worker_of(api, kind) as worker:
        answer = worker.complete(worker.take_one(), **said)
    assert answer["accepted"]
    job = api.job(id)
    # What waits at its closed upstream may be shown as waiting there.
    assert job["status"] in {state, "queued" if state == "pending" and not burnt else state}
    if burnt is not None:
        assert job["failed_attempts"] == burnt


def test_pushback_closes_the_upstream_for_everybody(api: Api, kind: str) -> None:
    host = new_name("host")
    first, second = api.enqueue(kind, upstream=host), api.enqueue(kind, upstream=host)
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=429, retry_after_s=60)
        assert worker.finds_nothing()
        assert api.get(f"/api/upstreams/{host}")["closed_until"]
        assert host in api.waiting(second)["wait_reason"]
        assert api.job(first)["pushbacks"] == 1
        api.post(f"/api/upstreams/{host}/open")
        assert worker.take_one()["id"] in (first, second)


def test_a_stale_fence_changes_nothing(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        stale = {"fence": work["fence"] + 1}
        path = f"/api/work/{id}"
        api.problem(409, "POST", f"{path}/heartbeat", "stale-fence", json=stale)
        api.problem(409, "POST", f"{path}/complete", "stale-fence",
                    json={**stale, "status_code": 200})  # fmt: skip
        (beat,) = api.post("/api/work/heartbeat", {"jobs": [{"id": id, **stale}]})["jobs"]
        assert (beat["lease_s"], beat["stop"]) == (None, "lost")
        report = {"id": id, **stale, "status_code": 200}
        (answer,) = api.post("/api/work/complete", {"jobs": [report]})["jobs"]
        assert (answer["accepted"], answer["state"]) == (False, "running")
        assert api.job(id)["status"] == "running"
        assert worker.complete(work)["state"] == "completed"
    unknown = {"id": 10**12, "fence": 1, "status_code": 200}
    (answer,) = api.post("/api/work/complete", {"jobs": [unknown]})["jobs"]
    assert (answer["accepted"], answer["state"]) == (False, None)


def test_a_heartbeat_keeps_progress_checkpoint_and_log(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        beat = worker.beat(
            work, progress={"done": 1, "total": None}, checkpoint={"page": 4},
            logs=[{"at": 1_800_000_000, "level": "warning", "line": "slow"}],
        )  # fmt: skip
        assert beat["lease_s"] > 0
        assert beat["stop"] is None
        assert api.get(f"/api/jobs/{id}/checkpoint") == {"value": {"page": 4}}
        (line,) = api.get(f"/api/jobs/{id}/logs")["items"]
        assert line == {"at": "2027-01-15T08:00:00.000000Z", "level": "warning", "line": "slow"}
        worker.complete(work, outcome={"kind": "returned"})
        assert worker.take_one()["checkpoint"] == {"page": 4}


def test_a_cancel_reaches_the_worker_that_runs_the_job(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    with worker_of(api, kind) as worker, ThreadPoolExecutor(1) as pool, Api(api.url) as other:
        work = worker.take_one()
        ear = Worker(other, kind)
        ear.name = worker.name
        heard = pool.submit(ear.ask, 0, 60_000)  # size 0: only orders to stop
        answer = api.post(f"/api/requests/{id}/cancel")
        assert answer["status"] == "running"  # until it is really stopped
        assert api.job(id)["stop_requested"] == "cancel"
        (stop,) = heard.result(20)["stops"]
        assert stop == {"id": id, "fence": work["fence"], "why": "cancel"}
        assert worker.beat(work)["stop"] == "cancel"
        worker.complete(work, outcome={"kind": "cancelled"})
    assert api.get(f"/api/requests/{id}")["status"] == "canceled"


def test_a_paused_running_job_goes_back_without_a_burnt_attempt(api: Api, kind: str) -> None:
    id = api.enqueue(kind)
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        api.post(f"/api/jobs/{id}/pause")
        assert worker.beat(work)["stop"] == "pause"
        worker.complete(work, outcome={"kind": "returned"})
        job = api.job(id)
        assert (job["status"], job["failed_attempts"]) == ("paused", 0)


def test_hello_says_the_rules_of_types_and_which_server_it_is(api: Api, kind: str) -> None:
    lane = new_name("lane")
    rules = {"name": kind, "timeout_s": 77, "retries": 4, "keep_result_s": 60}
    settings = [{"kind": "lane", "name": lane, "value": {"limit": 3}}]
    answer = api.post("/api/work/hello", {"worker": "w", "types": [rules], "settings": settings})
    assert 0 < answer["heartbeat_s"] < answer["lease_s"]
    assert answer["server"] == Worker(api, kind).ask(1, 0)["server"]
    job = api.job(api.enqueue(kind))
    assert (job["timeout_seconds"], job["max_attempts"]) == (77, 5)
    assert api.get(f"/api/lanes/{lane}")["limit"] == 3


@pytest.mark.parametrize(
    "wrong",
    [
        {"types": [{"name": ""}]},
        {"types": [{"name": "x", "retries": -1}]},
        {"settings": [{"kind": "lane", "name": "x", "value": {"limits": 1}}]},
        {"settings": [{"kind": "moon", "name": "x", "value": {}}]},
        {"schedules": [{"name": "x", "type": "y", "rule": "{}"}]},
        {"schedules": [{"name": "x", "type": "y", "rule": "no json"}]},
    ],
)
def test_a_hello_that_makes_no_sense_is_refused(api: Api, wrong: object) -> None:
    api.problem(422, "POST", "/api/work/hello", json=wrong)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/api/work/take", {"size": 1}),
        ("/api/work/take", {"types": ["x"], "size": 1001}),
        ("/api/work/take", {"types": ["x"], "wait_ms": 60_001}),
        ("/api/work/take", {"types": ["x"], "size": -1}),
        ("/api/work/heartbeat", {"jobs": [{"id": 1}]}),
        ("/api/work/heartbeat", {"jobs": [{"id": 0, "fence": 1}]}),
        ("/api/work/complete", {"jobs": [{"id": 1, "fence": 1}]}),
        ("/api/work/complete", {"jobs": [{"id": 1, "fence": 1, "status_code": 99}]}),
        ("/api/work/1/complete", {"fence": 1}),
        ("/api/work/1/complete", {"fence": 1, "status_code": 200, "outcome": {"kind": "ok"}}),
        ("/api/work/1/complete", {"fence": 1, "outcome": {"kind": "great"}}),
        ("/api/work/none/complete", {"fence": 1, "status_code": 200}),
        ("/api/work/0/heartbeat", {"fence": 1}),
        ("/api/work/99999999999999999999/heartbeat", {"fence": 1}),
    ],
)
def test_what_makes_no_sense_is_refused(api: Api, path: str, wrong: object) -> None:
    api.problem(422, "POST", path, "wrong-input", json=wrong)


def test_a_worker_may_report_after_the_server_was_restarted(
    new_server: NewServer, kind: str
) -> None:
    server = new_server()
    with Api(server.url) as api:
        id = api.enqueue(kind)
        worker = Worker(api, kind)
        first = worker.ask(1)
        (work,) = first["jobs"]
    server.kill()
    server.start()
    with Api(server.url) as api:
        worker = Worker(api, kind)
        worker.held[id] = work
        assert worker.ask(0, 0)["server"] != first["server"]
        assert worker.beat(work)["lease_s"] > 0
        assert worker.complete(work)["state"] == "completed"
