"""Rate-limit headers teach, whoever hears them: of good answers, of errors, under slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway import App, BadStatus, Pushback, Retry, check_status, job
from headway.core.outcome import Kind
from headway.core.rate_headers import Quota, RateHeaders, parse_rate_headers
from headway.outcomes import headers_of, outcome_of_block, outcome_of_status, rate_headers, rates_in
from headway.remote.protocol import rate_words
from headway.remote.slot_protocol import outcome_words
from headway.testing import World
from tests.engine.test_learned import look
from tests.engine.test_pushback import ClientError
from tests.stores import second_store_in_the_soak

# What is shown here is decided before the store is asked; the second kind is for `make soak`.
pytestmark = second_store_in_the_soak

HOST = "api.example.com"
HEADERS = {
    "X-RateLimit-Limit-Requests": "100",
    "X-RateLimit-Remaining-Requests": "60",
    "X-RateLimit-Reset-Requests": "30s",
    "Set-Cookie": "canary-word",
}


def raising(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


class UrllibError(Exception):
    """Its headers are its own."""

    def __init__(self) -> None:
        super().__init__("429")
        self.status = 429
        self.headers = HEADERS


@pytest.mark.parametrize(
    "answer",
    [
        lambda: job.heard(HEADERS),
        lambda: (job.heard(HEADERS), job.heard({"Server": "nginx"})),
        lambda: check_status(429, HEADERS),
        lambda: Pushback(headers=HEADERS),
        raising(Pushback(headers=HEADERS)),
        raising(BadStatus(500, headers=HEADERS)),
        raising(ClientError(429, HEADERS)),
        raising(UrllibError()),
    ],
)
def test_headers_of_an_answer_teach(app: App, answer: Callable[[], Any]) -> None:
    app.upstream(HOST, learn=True)

    @app.job(upstream=HOST, retries=0)
    def call() -> Any:
        found = answer()
        return found if isinstance(found, Pushback) else None

    with World(app) as world:
        call.enqueue()
        world.run_for(0.1)
        seen = look(app)
        assert (seen["source"], seen["limit_rpm"]) == ("headers", 100)
        assert seen["believed"]["rpm"] == 100


def test_headers_that_were_heard_teach_however_the_job_ends(app: App) -> None:
    app.upstream(HOST, learn=True)

    @app.job(upstream=HOST, retries=0)
    def call() -> None:
        job.heard(HEADERS)
        raise Retry("the page made no sense")

    with World(app) as world:
        call.enqueue()
        world.run_for(0.1)
        assert look(app)["source"] == "headers"


@pytest.mark.parametrize("raises", [False, True])
def test_a_slot_teaches_by_what_is_reported_or_raised(app: App, raises: bool) -> None:
    app.upstream(HOST, learn=True)

    async def hold() -> None:
        async with app.slot(HOST) as slot:
            if raises:
                check_status(429, HEADERS)
            slot.report(200, headers=HEADERS)

    with World(app) as world:
        if raises:
            with pytest.raises(BadStatus):
                world.run(hold())
        else:
            world.run(hold())
        assert look(app)["source"] == "headers"
        assert len(look(app)["history"]) == int(raises)


def test_a_pushback_waits_as_its_headers_say(app: App) -> None:
    started = []

    @app.job(upstream=HOST, retries=0)
    def call() -> None:
        started.append(app.now())
        if len(started) == 1:
            raise Pushback(headers={"retry-after": "Thu, 01 Jan 2026 00:00:40 GMT"})

    with World(app) as world:
        call.enqueue()
        world.run_for("10m")
        assert started[1] - started[0] == 40


# ---------------------------------------------------------------------- values


def test_only_what_speaks_about_rates_is_kept() -> None:
    kept = rate_headers({**HEADERS, "Authorization": "canary-word", "Retry-After": "x" * 1_000})
    assert set(kept) == {
        "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests", "retry-after",
    }  # fmt: skip
    assert max(map(len, kept.values())) <= 300
    assert "canary" not in str(vars(BadStatus(429, headers=HEADERS)))
    assert len(rate_headers({f"ratelimit-{number}": "1" for number in range(1_000)})) == 40
    assert rates_in({"Server": "nginx"}) is rates_in({}) is rates_in(None) is None


def test_headers_of_a_strange_exception_do_no_harm() -> None:
    class Strange(Exception):
        @property
        def response(self) -> None:
            raise RuntimeError("there is none")

    assert headers_of(Strange()) == headers_of(ValueError()) == {}
    assert outcome_of_block(Strange()).kind is Kind.FAILED


def test_a_status_with_its_headers_is_one_outcome() -> None:
    outcome = outcome_of_status(429, headers={"Retry-After": "30"})
    assert (outcome.kind, outcome.retry_after_s) == (Kind.PUSHBACK, 30.0)
    assert outcome_of_status(429, 5.0, {"Retry-After": "30"}).retry_after_s == 5.0
    assert outcome_of_status(429, headers={"Retry-After": "3000"}).ban
    outcome = outcome_of_status(200, headers=HEADERS)
    assert (outcome.kind, outcome.retry_after_s) == (Kind.OK, None)
    assert outcome.rates is not None
    assert outcome_of_status(500, headers={"Retry-After": "30"}).retry_after_s is None


@pytest.mark.parametrize(
    "rates",
    [
        RateHeaders(Quota(600, 12, 30.5)),
        RateHeaders(Quota(5_000, 0, 1_800, 3_600)),
        RateHeaders(tokens=Quota(90_000, 1, 0.25)),
        RateHeaders(Quota(0.5, 0.25, 2, 86_400), Quota(1e12, 0, 60), 7.5),
        RateHeaders(retry_after_s=0.0),
    ],
)
def test_workers_and_slots_tell_a_server_all_of_it(rates: RateHeaders) -> None:
    assert parse_rate_headers(rate_words(rates), 0.0) == rates
    outcome = outcome_of_status(200, headers=rate_words(rates))
    assert parse_rate_headers(outcome_words(outcome)["headers"], 0.0) == rates
