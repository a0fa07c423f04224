"""Tasks of a Celery application wait their turn in Headway, and nothing else changes for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from celery import Celery, chain, chord, group
from celery.exceptions import TaskRevokedError

from headway.celery import GivenUp
from headway.celery.sending import _times
from headway.errors import BadJob, StoreUnavailable
from tests.celery import shop as shop_module
from tests.celery.conftest import Place
from tests.celery.kit import look, until

WITHIN_S = 30


@pytest.fixture(autouse=True)
def open_upstream(place: Place) -> Iterator[None]:
    """What one test has closed is open for the next."""
    yield
    httpx2.post(f"{place.server.url}/api/upstreams/shop.example/open", timeout=30)


def jobs_of(place: Place, result: Any) -> list[dict[str, Any]]:
    query = {"q": f'label:"celery_id={result.id}"'}
    found: list[dict[str, Any]] = httpx2.get(
        f"{place.server.url}/api/jobs", params=query, timeout=30
    ).json()["items"]
    return found


def test_a_task_gives_its_result_as_before(place: Place) -> None:
    result = place.task("add").delay(2, 3)
    assert result.get(timeout=WITHIN_S) == 5
    [job] = until(lambda: [j for j in jobs_of(place, result) if j["status"] == "completed"])
    assert (job["type"], job["upstream"]) == ("shop.add", "shop.example")


def test_a_body_may_call_others_and_see_its_request_and_its_job(place: Place) -> None:
    assert place.task("twice").delay(4).get(timeout=WITHIN_S) == [8, True, "shop.example"]


def test_a_base_class_of_their_own_keeps_its_call(place: Place) -> None:
    assert place.task("counting").delay(1).get(timeout=WITHIN_S) == 101


def test_a_task_of_another_queue_is_carried_there(place: Place) -> None:
    result = place.task("elsewhere").delay()
    assert result.get(timeout=WITHIN_S) == "from another queue"
    assert jobs_of(place, result)[0]["type"] == "shop.elsewhere@elsewhere"


def test_chains_groups_and_chords_wait_their_turn_too(place: Place) -> None:
    add = place.task("add")
    assert chain(add.s(1, 2), add.s(3)).delay().get(timeout=WITHIN_S) == 6
    assert group(add.s(n, n) for n in range(3)).delay().get(timeout=WITHIN_S) == [0, 2, 4]
    total = chord([add.s(1, 1), add.s(2, 2)])(place.shop.signature("shop.total"))
    assert total.get(timeout=WITHIN_S) == 6


def test_a_pushback_runs_the_task_again_and_the_caller_does_not_notice(
    place: Place, tmp_path: Path
) -> None:
    result = place.task("pushed").delay(str(tmp_path / "pushed"))
    assert result.get(timeout=WITHIN_S) == "after all"
    [job] = jobs_of(place, result)
    assert (job["pushbacks"], job["failed_attempts"]) == (1, 0)


def test_a_429_under_autoretry_burns_no_retry(place: Place, tmp_path: Path) -> None:
    result = place.task("auto").delay(str(tmp_path / "auto"))
    assert result.get(timeout=WITHIN_S) == 0
    [job] = jobs_of(place, result)
    assert job["pushbacks"] == 1


def test_a_retry_of_their_own_is_a_new_job(place: Place) -> None:
    result = place.task("again").delay(2)
    assert result.get(timeout=WITHIN_S) == 2
    assert len(jobs_of(place, result)) == 3


def test_a_task_that_replaces_itself_is_replaced(place: Place) -> None:
    result = place.task("replaced").delay(4)
    assert result.get(timeout=WITHIN_S) == 5
    assert {job["type"] for job in jobs_of(place, result)} == {"shop.replaced", "shop.add"}


def test_a_task_that_rejects_its_message_for_another_worker_runs_again(
    place: Place, tmp_path: Path
) -> None:
    result = place.task("rejected").delay(str(tmp_path / "rejected"))
    assert result.get(timeout=WITHIN_S) == "after all"
    assert len(jobs_of(place, result)) == 1


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York"])
def test_a_time_without_a_zone_is_utc_as_it_is_for_celery(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert _times({"eta": "2030-01-01T00:00:00"}) == {"at": 1_893_456_000.0}
        assert _times({"expires": "2030-01-01T01:00:00+01:00"}) == {"deadline": 1_893_456_000.0}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_failure_is_theirs(place: Place) -> None:
    result = place.task("fail").delay()
    with pytest.raises(ValueError, match="on purpose"):
        result.get(timeout=WITHIN_S)
    [job] = until(lambda: [j for j in jobs_of(place, result) if j["status"] == "failed"])
    assert "on purpose" in job["last_error"]


def test_a_countdown_is_kept_by_headway_and_not_by_a_worker(place: Place) -> None:
    result = place.task("add").apply_async((1, 1), countdown=600)
    [job] = jobs_of(place, result)
    assert job["status"] == "pending"
    result.revoke()
    until(lambda: jobs_of(place, result)[0]["status"] == "cancelled")
    with pytest.raises(TaskRevokedError):
        result.get(timeout=WITHIN_S)


def test_a_task_that_nobody_could_start_in_time_tells_its_caller(place: Place) -> None:
    httpx2.post(
        f"{place.server.url}/api/upstreams/shop.example/close",
        json={"until": time.time() + 600, "why": "a test"},
        timeout=30,
    ).raise_for_status()
    result = place.task("add").apply_async((1, 1), expires=0.5)
    until(lambda: jobs_of(place, result)[0]["status"] == "failed")
    with pytest.raises((GivenUp, TaskRevokedError)):
        result.get(timeout=WITHIN_S)


def test_a_task_that_runs_is_stopped_when_its_job_is_cancelled(place: Place) -> None:
    result = place.task("endless").delay()
    [job] = until(lambda: [j for j in jobs_of(place, result) if j["status"] == "running"])
    until(lambda: httpx2.get(f"{place.server.url}/api/jobs/{job['id']}", timeout=30)
          .json()["progress"])  # fmt: skip
    httpx2.post(f"{place.server.url}/api/jobs/{job['id']}/cancel", timeout=30).raise_for_status()
    with pytest.raises(TaskRevokedError):
        result.get(timeout=WITHIN_S)
    until(lambda: jobs_of(place, result)[0]["status"] == "cancelled")


def test_a_message_that_comes_twice_runs_once(place: Place, tmp_path: Path) -> None:
    """As after a broker that has lost its memory of what was taken."""
    file = tmp_path / "notes"
    result = place.task("note").delay(str(file), "hello")
    result.get(timeout=WITHIN_S)
    [job] = until(lambda: [j for j in jobs_of(place, result) if j["status"] == "completed"])
    refused = look(place.server)["counts"]["refused"]
    plain = Celery("plain", broker=place.redis.url)
    header = {"id": job["id"], "fence": job["fence"] or 1}
    plain.send_task("shop.note", (str(file), "hello"), headers={"headway": header})
    plain.close()
    until(lambda: look(place.server)["counts"]["refused"] > refused)
    assert len(file.read_text().splitlines()) == 1


def test_without_a_server_nothing_is_sent_and_the_caller_hears_it(place: Place) -> None:
    lonely = shop_module.make(place.redis.url, "http://127.0.0.1:9")
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        lonely.tasks["shop.add"].delay(1, 2)
    lonely.close()


def test_with_a_fallback_tasks_go_around_a_server_that_is_away(place: Place) -> None:
    lonely = shop_module.make(place.redis.url, "http://127.0.0.1:9", fallback="send")
    assert lonely.tasks["shop.add"].delay(20, 3).get(timeout=WITHIN_S) == 23
    lonely.close()


def test_only_the_tasks_that_are_named_wait(place: Place) -> None:
    app = shop_module.make(place.redis.url, place.server.url, tasks=["shop.twice"])
    free, bound = app.tasks["shop.add"].delay(1, 2), app.tasks["shop.twice"].delay(1)
    assert (free.get(timeout=WITHIN_S), bound.get(timeout=WITHIN_S)[0]) == (3, 2)
    assert jobs_of(place, free) == []
    assert len(jobs_of(place, bound)) == 1
    app.close()


def test_the_choices_are_functions_of_the_arguments_by_name(place: Place) -> None:
    app = shop_module.make(
        place.redis.url, place.server.url, tasks=["shop.add"],
        upstream=lambda x: f"x{x}.example", key=lambda y, **_: f"key-{y}", tenant="acme",
        priority=lambda x, y: x + y,
    )  # fmt: skip
    result = app.tasks["shop.add"].delay(1, y=2)
    assert result.get(timeout=WITHIN_S) == 3
    [job] = jobs_of(place, result)
    assert (job["upstreams"], job["key"], job["tenant"], job["priority"]) == (
        ["x1.example"], "key-2", "acme", 3,
    )  # fmt: skip
    app.close()


def test_a_choice_that_does_not_fit_is_said_before_anything_is_sent(place: Place) -> None:
    app = shop_module.make(
        place.redis.url, place.server.url, tasks=["shop.add"], upstream=lambda url: url
    )
    with pytest.raises(BadJob, match="asks for url"):
        app.tasks["shop.add"].delay(1, 2)
    app.close()
