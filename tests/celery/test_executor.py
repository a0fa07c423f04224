"""Jobs of Headway run on Celery workers, and are the same jobs."""

from __future__ import annotations

import time
from pathlib import Path

import httpx2
import pytest

from headway import App
from headway.errors import BadJob, EngineStopped, JobFailed
from headway.sdk.handle import JobHandle
from headway.store.records import NewJob
from tests.celery.conftest import Place
from tests.celery.kit import fleet_server, look, places, redis_in, until, worker_of

WITHIN_S = 30.0
SECRET = "open-sesame-28"


def put(app: App, type: str, args: str = "{}") -> JobHandle[object]:
    return app.enqueue(NewJob(type, args, created_at=time.time()))


def test_a_result_progress_and_a_log_come_back(place: Place) -> None:
    handle = put(place.app, "double", '{"number": 21}')
    assert handle.result(timeout=WITHIN_S) == 42
    assert [text for _, _, text in handle.logs()] == ["doubling"]
    progress = handle.progress()
    assert progress is not None
    assert progress.note == "half of it"


def test_a_failure_is_judged_as_everywhere(place: Place) -> None:
    handle = put(place.app, "fail")
    with pytest.raises(JobFailed, match="on purpose"):
        handle.result(timeout=WITHIN_S)


def test_a_pushback_burns_no_attempt_and_a_checkpoint_is_there_again(place: Place) -> None:
    handle = put(place.app, "pushed")
    assert handle.result(timeout=WITHIN_S) == "after all"
    row = handle.row()
    assert row.tries is not None
    assert row.tries.startswith("[0,0,1")


def test_a_job_that_runs_is_stopped_when_it_is_cancelled(place: Place) -> None:
    handle = put(place.app, "endless")
    until(lambda: handle.progress() is not None)
    handle.cancel()
    until(lambda: handle.state == "cancelled")


def test_an_app_for_celery_needs_a_server_and_runs_nothing_itself() -> None:
    with pytest.raises(BadJob, match="needs a server"):
        App("sqlite:///jobs.db", executor="celery")
    with pytest.raises(BadJob, match="not 'cellery'"):
        App("http://127.0.0.1:1", executor="cellery")
    with pytest.raises(EngineStopped, match="run on Celery workers"):
        App("http://127.0.0.1:1", executor="celery").start()


def test_jobs_wait_and_say_why_while_nobody_can_carry_or_run_them(tmp_path: Path) -> None:
    with redis_in(tmp_path, password=SECRET) as redis, fleet_server(redis) as server:
        app = App(server.url, executor="celery")
        environment = {"BROKER": redis.url, "SERVER": server.url, "UPSTREAM": "1"}
        log = tmp_path / "fleet.log"
        with worker_of(
            "tests.celery.fleet:celery", environment, log, queues="headway", places=2
        ) as worker:
            until(lambda: places(server) == 2)
            assert put(app, "double", '{"number": 1}').result(timeout=WITHIN_S) == 2
            assert worker.stop() == 0
        until(lambda: not look(server)["workers"], "it did not say goodbye")
        waiting = put(app, "double", '{"number": 2}')
        until(lambda: "no Celery worker is there for queue 'headway'" in waiting.explain().detail)

        redis.kill()
        until(lambda: look(server)["trouble"])
        until(lambda: "the Celery broker cannot be reached" in waiting.explain().detail)
        seen = httpx2.get(f"{server.url}/api/attention", timeout=30).json()["items"]
        assert "celery_broker_away" in [each["kind"] for each in seen]
        assert SECRET not in f"{server.printed()} {look(server)} {seen}"

        redis.start()
        until(lambda: not look(server)["trouble"])
        server.restart()
        until(lambda: "no Celery worker" in waiting.explain().detail, "it has forgotten the type")
        with worker_of("tests.celery.fleet:celery", environment, log, queues="headway"):
            assert waiting.result(timeout=WITHIN_S) == 4
        app.close()
