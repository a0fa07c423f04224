"""`/api/celery`: what workers of Celery and their producers say. Somebody reads the broker by hand
here, and does what a worker would.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
import redis as redis_client

from tests.celery.kit import Redis, fleet_server, redis_in
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    with redis_in(tmp_path_factory.mktemp("redis")) as redis:
        yield redis


@pytest.fixture(scope="module")
def carried(broker: Redis) -> Iterator[Api]:
    with fleet_server(broker) as server, Api(server.url) as client:
        yield client


class Reader:
    """A worker of Celery, so to speak."""

    def __init__(self, api: Api, broker: Redis) -> None:
        self.name, self.queue, self.type = new_name("w"), new_name("q"), new_name("visit")
        self._api = api
        self._redis = redis_client.Redis.from_url(broker.url)
        api.post("/api/celery/types", {"types": [{"name": self.type, "queue": self.queue}]})
        self.here(1)

    def here(self, places: int) -> JSON:
        body = {"worker": self.name, "queues": [self.queue], "places": places}
        return self._api.post("/api/celery/here", body)

    def message(self) -> tuple[int, int]:
        """Id and fence."""
        _, text = self._redis.blpop([self.queue], timeout=20)
        body = json.loads(base64.b64decode(json.loads(text)["body"]))
        id, fence = body[0]
        return id, fence

    def close(self) -> None:
        self.here(0)
        self._redis.close()


@pytest.fixture
def reader(carried: Api, broker: Redis) -> Iterator[Reader]:
    made = Reader(carried, broker)
    yield made
    made.close()


def claimed(api: Api, claim: JSON, worker: str = "") -> JSON:
    """What one claim alone is answered."""
    [found] = api.post("/api/celery/claims", {"worker": worker, "claims": [claim]})["claims"]
    return dict(found)


def test_a_server_without_a_broker_says_so(api: Api) -> None:
    assert api.get("/api/celery")["configured"] is False
    named = {"types": [{"name": new_name(), "queue": "celery"}]}
    api.problem(409, "POST", "/api/celery/types", "no-broker", json=named)
    api.problem(409, "POST", "/api/celery/here", "no-broker", json={"worker": "w"})
    assert claimed(api, {"id": 1, "fence": 1, "claim": "c"})["refused"] == "stale"


def test_a_worker_is_seen_and_says_goodbye(carried: Api, reader: Reader) -> None:
    seen = carried.get("/api/celery")
    assert seen["configured"]
    assert reader.name in [each["name"] for each in seen["workers"]]
    [queue] = [each for each in seen["queues"] if each["name"] == reader.queue]
    assert (queue["types"], queue["places"], queue["outstanding"]) == ([reader.type], 1, 0)
    reader.here(0)
    assert reader.name not in [each["name"] for each in carried.get("/api/celery")["workers"]]


def test_a_job_is_claimed_once_and_then_like_any_other(carried: Api, reader: Reader) -> None:
    id = carried.enqueue(reader.type, args={"a": 1})
    told = reader.message()
    assert told[0] == id
    mine = {"id": id, "fence": told[1], "claim": "mine"}
    claim = claimed(carried, mine, worker=reader.name)
    assert (claim["start_in_s"], claim["refused"]) == (None, None)
    assert (claim["job"]["args"], claim["job"]["attempt"]) == ({"a": 1}, 1)
    other = {**mine, "claim": "another"}
    assert claimed(carried, other, worker=reader.name)["refused"] == "claimed"
    report = {"fence": told[1], "status_code": 200, "body": 2}
    assert carried.post(f"/api/work/{id}/complete", report)["accepted"]
    assert claimed(carried, mine, worker=reader.name)["refused"] == "stale"


def test_several_jobs_are_claimed_at_once_and_each_is_judged_by_itself(
    carried: Api, reader: Reader
) -> None:
    id = carried.enqueue(reader.type, args={"a": 1})
    _, fence = reader.message()
    mine = {"id": id, "fence": fence, "claim": "mine"}
    body = {"worker": reader.name, "claims": [mine, {**mine, "claim": "another"}, mine]}
    told = carried.post("/api/celery/claims", body)
    assert told["took_s"] > 0
    granted, refused, again = told["claims"]
    assert (granted["job"]["args"], granted["start_in_s"], granted["why"]) == ({"a": 1}, None, "")
    assert refused["job"] is None
    assert "claimed by somebody else" in refused["why"]
    assert again["job"]["fence"] == fence
    assert carried.post("/api/celery/claims", {"claims": []})["claims"] == []
    carried.post(f"/api/work/{id}/complete", {"fence": fence, "status_code": 200})


def test_a_paced_job_is_told_when_to_begin(carried: Api, reader: Reader) -> None:
    site = new_name("site")
    carried.ok("PUT", f"/api/upstreams/{site}/settings", json={"every": "2s"})
    id = carried.enqueue(reader.type, upstream=site)
    _, fence = reader.message()
    other = carried.enqueue(reader.type, upstream=site)
    told = claimed(carried, {"id": id, "fence": fence, "claim": "mine", "slack_s": 0.1})
    assert told["start_in_s"] <= 2
    reader.here(2)
    _, next_fence = reader.message()
    after = claimed(carried, {"id": other, "fence": next_fence, "claim": "mine"})
    assert after["start_in_s"] > told["start_in_s"] - 2
    carried.post(f"/api/work/{id}/complete", {"fence": fence, "status_code": 200})


def test_a_job_waits_and_says_that_no_worker_is_there(carried: Api, reader: Reader) -> None:
    reader.here(0)
    id = carried.enqueue(reader.type)
    wanted = f"no Celery worker is there for queue '{reader.queue}'"
    assert eventually(lambda: wanted in str(carried.waiting(id)))


def test_wrong_input_is_refused(carried: Api) -> None:
    for path, body in (
        ("types", {"types": [{"name": "x"}]}),
        ("types", {"types": [{"name": "x", "queue": "q", "kind": "other"}]}),
        ("here", {"worker": "w", "places": -1}),
        ("here", {"places": 1}),
        ("claims", {"claims": [{"id": 1, "fence": 1}]}),
        ("claims", {"claims": [{"id": 1, "fence": 1, "claim": "c", "slack_s": 2}]}),
        ("claims", {"claims": [{"id": 1, "fence": 1, "claim": "c", "within_s": -1}]}),
    ):
        carried.problem(422, "POST", f"/api/celery/{path}", json=body)


def test_the_broker_and_the_fleet_are_in_the_metrics(carried: Api, reader: Reader) -> None:
    assert reader.here(1)["again_s"] == 10.0
    page = carried.http.get("/metrics").text
    assert "headway_celery_broker_up 1.0" in page
    assert "headway_celery_workers " in page
    assert 'headway_celery_messages_total{what="claimed"}' in page
