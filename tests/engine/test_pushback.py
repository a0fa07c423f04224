"""Pushback: it closes what pushed back, for everybody, and burns no attempt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway import App, BadStatus, Job, Pushback, RetryPolicy, check_status, job
from headway.testing import World
from tests.engine.kit import Diary, gaps, states, trail

HOST = "api.example.com"


class Response:
    def __init__(self, status_code: int, headers: dict[str, str] | None = None) -> None:
        self.status_code = status_code
        self.headers = headers or {}


class ClientError(Exception):
    """Shaped like the exceptions of HTTP clients."""

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status} for some address")
        self.response = Response(status, headers)


def once(app: App, diary: Diary, answer: Callable[[], object]) -> Job[[], object]:
    """A job whose first call gets this answer, and all others a success."""

    @app.job(retries=0, upstream=HOST)
    def work() -> object:
        diary.note(job.attempt)
        return answer() if len(diary.rows) == 1 else "done"

    return work


def raising(error: BaseException) -> Callable[[], object]:
    def answer() -> object:
        raise error

    return answer


@pytest.mark.parametrize(
    "answer",
    [
        raising(Pushback("slow down", retry_after="40s")),
        lambda: Pushback("slow down", retry_after="40s"),
        raising(ClientError(429, {"Retry-After": "40"})),
        raising(ClientError(503, {"Retry-After": "40"})),
        raising(ClientError(429, {"Retry-After": "Thu, 01 Jan 2026 00:00:40 GMT"})),
        raising(BadStatus(429, 40.0)),
        lambda: check_status(429, {"retry-after": "40"}),
    ],
)
def test_pushback_waits_as_told_and_burns_no_attempt(
    app: App, diary: Diary, answer: Callable[[], object]
) -> None:
    work = once(app, diary, answer)
    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1h")
        assert handle.result() == "done"
        assert trail(handle) == ["submit", "grant", "pushback", "grant", "ok"]
    assert diary.rows == [(0.0, 1), (40.0, 1)]


def test_one_pushback_closes_the_upstream_for_every_job(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work(name: str) -> object:
        diary.note(name)
        return Pushback(retry_after="10m") if len(diary.rows) == 1 else None

    @app.job(upstream=HOST)
    def other_work() -> None:
        diary.note("other type")

    @app.job(upstream="elsewhere.org")
    def unrelated() -> None:
        diary.note("elsewhere")

    with World(app) as world:
        diary.begin(world)
        app.upstream(HOST)
        first = work.enqueue("first")
        world.run_for(1)
        rest = [work.enqueue("second"), other_work.enqueue()]
        unrelated.enqueue()
        world.run_for(1)
        why = rest[0].explain()
        assert (why.reason, why.gate) == ("closed", f"upstream:{HOST}")
        assert "429" in why.detail
        assert why.opens_at == pytest.approx(world.now + 598)
        world.run_for("1h")
        assert states([first, *rest]) == ["completed"] * 3
    assert diary.rows[:2] == [(0.0, "first"), (1.0, "elsewhere")]
    assert all(at >= 600.0 for at in diary.times[2:])


def test_a_closure_holds_over_a_restart(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work() -> object:
        diary.note()
        return Pushback(retry_after="10m") if len(diary.rows) == 1 else None

    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for("1m")
        for _ in range(3):
            world.restart()
            work.enqueue()
            world.run_for("1m")
        world.run_for("1h")
    assert diary.times == [0.0, 600.0, 600.0, 600.0, 600.0]


def test_pushback_without_a_time_holds_a_little_longer_each_time(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work() -> object:
        diary.note()
        return Pushback() if len(diary.rows) < 6 else None

    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for("1h")
    assert gaps(diary.times) == [2.0, 4.0, 8.0, 16.0, 32.0]


@pytest.mark.parametrize(
    "answer",
    [
        raising(ClientError(412)),
        raising(ClientError(429, {"Retry-After": "400"})),
        raising(Pushback("risk control", ban=True, retry_after="5s")),
    ],
)
def test_a_ban_closes_for_minutes(app: App, diary: Diary, answer: Callable[[], object]) -> None:
    work = once(app, diary, answer)
    with World(app) as world:
        diary.begin(world)
        work.enqueue()
        world.run_for("1h")
    assert diary.times == [0.0, 600.0]


def test_a_tenant_may_be_pushed_back_alone(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST, tenant=lambda who: who)
    def work(who: str) -> object:
        diary.note(who)
        loud = who == "loud" and len(diary.rows) == 1
        return Pushback(retry_after="10m", tenant_only=True) if loud else None

    with World(app) as world:
        diary.begin(world)
        work.enqueue("loud")
        world.run_for(1)
        work.enqueue("quiet")
        world.run_for("1h")
    assert diary.rows == [(0.0, "loud"), (1.0, "quiet"), (600.0, "loud")]


def test_pushback_without_an_upstream_only_delays_the_job(app: App, diary: Diary) -> None:
    @app.job(type="work")
    def work(name: str) -> object:
        diary.note(name)
        return Pushback(retry_after="1m") if len(diary.rows) == 1 else None

    with World(app) as world:
        diary.begin(world)
        work.enqueue("pushed")
        world.run_for(1)
        work.enqueue("free")
        world.run_for("1h")
    assert diary.rows == [(0.0, "pushed"), (1.0, "free"), (60.0, "pushed")]


@pytest.mark.parametrize(
    ("status", "last"),
    [(404, "fatal"), (410, "fatal"), (401, "fatal"), (500, "exhausted"), (504, "exhausted")],
)
def test_what_is_no_pushback_is_none(app: App, status: int, last: str) -> None:
    @app.job(type="check", upstream=HOST)
    def work() -> None:
        raise ClientError(status, {"Retry-After": "3600"})

    with World(app) as world:
        handle = work.enqueue()
        world.run_for("10m")
        assert trail(handle)[-1] == last
        assert f"{status} for some address" in str(handle.row().error)


# --- nothing loops for ever


def test_a_job_that_is_pushed_back_a_hundred_times_fails(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work() -> None:
        diary.note(job.attempt)
        raise Pushback("never", retry_after="1s")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1d")
        assert handle.state == "failed"
        assert trail(handle)[-1] == "pushed_back_too_long"
    assert diary.names == [1] * 100


def test_a_job_that_is_pushed_back_for_a_day_fails(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work() -> None:
        diary.note()
        raise Pushback("come back", retry_after="1h")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        for _ in range(30):  # the count goes on over restarts
            world.run_for("1h")
            world.restart()
        assert handle.state == "failed"
        assert trail(handle)[-1] == "pushed_back_too_long"
    assert diary.times[-1] == 86_400.0


def test_the_limits_of_patience_can_be_set(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST, policy=RetryPolicy(max_pushbacks=3))
    def work() -> None:
        diary.note()
        raise Pushback("no", retry_after="1s")

    with World(app) as world:
        diary.begin(world)
        handle = work.enqueue()
        world.run_for("1h")
        assert handle.state == "failed"
    assert len(diary.times) == 3


def test_a_deadline_ends_the_waiting_for_a_closed_upstream(app: App, diary: Diary) -> None:
    @app.job(upstream=HOST)
    def work() -> None:
        diary.note()
        raise Pushback(retry_after="1h")

    with World(app) as world:
        diary.begin(world)
        handle = work.options(within="10m").enqueue()
        world.run_for("2h")
        assert trail(handle) == ["submit", "grant", "pushback", "deadline"]
    assert diary.times == [0.0]
