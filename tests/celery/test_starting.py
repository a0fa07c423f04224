"""A body begins when it was told to, or asks again."""

from __future__ import annotations

import json

import httpx2
import pytest

from headway.celery import claiming, starting
from headway.celery.claiming import LEAST_SLACK_S, MOST_SLACK_S, Claim, Claims
from headway.celery.starting import wait_for_start
from headway.errors import ClaimRefused, OutcomeUnknown, StoreUnavailable
from headway.outcomes import Snooze
from headway.remote.client import Client

JOB = {"id": 7, "fence": 9, "type": "t", "args": {}, "attempt": 1, "timeout_s": 60, "lease_s": 90}


class Clock:
    """Of the worker and of the server. `way_s` passes on each way; `naps_too_long_s` is by how much
    the next sleeps last longer than asked for.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        self.way_s = 0.001
        self.naps_too_long_s: list[float] = []
        for module in (claiming, starting):
            monkeypatch.setattr(module, "lease_clock", lambda: self.now)
        monkeypatch.setattr(starting.time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds + (self.naps_too_long_s.pop(0) if self.naps_too_long_s else 0.0)


class Answers:
    """A server that says when to begin, and notes what it was asked and when."""

    def __init__(self, clock: Clock, start_in_s: list[float | None], took_s: float = 0.0) -> None:
        self._clock = clock
        self._start_in_s = start_in_s
        self._took_s = took_s
        self.asked: list[dict[str, object]] = []
        self.refuses = False
        self.lost_s: list[
            float
        ] = []  # how long nobody has heard the next answers, until they broke
        self.told_at: list[float] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self._clock.now += self._clock.way_s + self._took_s
        [asked] = json.loads(request.content)["claims"]
        self.asked.append(asked)
        if self.refuses:
            return self._answer({"start_in_s": None, "job": None, "why": "not yours"})
        if self.lost_s:
            self._clock.now += self.lost_s.pop(0)
            raise httpx2.ReadError("it broke")
        start_in_s = self._start_in_s.pop(0)
        self.told_at.append(self._clock.now + (start_in_s or 0.0))
        self._clock.now += self._clock.way_s
        return self._answer({"start_in_s": start_in_s, "job": JOB, "why": ""})

    def _answer(self, claimed: dict[str, object]) -> httpx2.Response:
        answer = {"server": "s", "took_s": self._took_s, "claims": [claimed]}
        return httpx2.Response(200, json=answer)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def claims_at(answers: Answers) -> Claims:
    client = Client("http://server.example", transport=httpx2.MockTransport(answers))
    return Claims(client, "w")


def begun(claims: Claims, clock: Clock) -> float:
    claim = claims.make(7, 9)
    wait_for_start(claims, claim)
    return clock.now


def test_it_begins_no_earlier_than_told_and_within_its_promise(clock: Clock) -> None:
    answers = Answers(clock, [0.5])
    at = begun(claims_at(answers), clock)
    [told_at] = answers.told_at
    assert told_at <= at <= told_at + float(str(answers.asked[0]["slack_s"]))


def test_what_the_server_takes_to_answer_is_no_part_of_the_way(clock: Clock) -> None:
    answers = Answers(clock, [0.5], took_s=0.4)
    at = begun(claims_at(answers), clock)
    assert len(answers.asked) == 1
    assert answers.told_at[0] <= at <= answers.told_at[0] + LEAST_SLACK_S


def test_whoever_overslept_asks_again_and_promises_less(clock: Clock) -> None:
    clock.naps_too_long_s = [0.05]
    answers = Answers(clock, [0.2, 0.3])
    at = begun(claims_at(answers), clock)
    first, second = (float(str(each["slack_s"])) for each in answers.asked)
    assert second > first
    assert answers.asked[0]["claim"] == answers.asked[1]["claim"]
    assert answers.told_at[1] <= at <= answers.told_at[1] + second


def test_a_way_that_takes_long_is_learned(clock: Clock) -> None:
    clock.way_s = 0.02
    answers = Answers(clock, [0.1] * 30)
    claims = claims_at(answers)
    for _ in range(5):
        begun(claims, clock)
    asked = len(answers.asked)
    begun(claims, clock)
    assert len(answers.asked) == asked + 1, "once is enough now"
    assert all(float(str(each["slack_s"])) <= MOST_SLACK_S for each in answers.asked)


def test_where_nothing_is_paced_nobody_waits(clock: Clock) -> None:
    clock.way_s = 5.0
    answers = Answers(clock, [None])
    begun(claims_at(answers), clock)
    assert clock.now == 1_010.0


def test_whoever_is_always_late_gives_the_job_back(clock: Clock) -> None:
    clock.naps_too_long_s = [5.0] * 100
    with pytest.raises(Snooze):
        begun(claims_at(Answers(clock, [0.1] * 100)), clock)


def test_a_job_that_is_not_ours_any_more_does_not_begin(clock: Clock) -> None:
    answers = Answers(clock, [0.1, 0.1])
    claims = claims_at(answers)
    claim = claims.make(7, 9)
    answers.refuses = True
    clock.now += 10
    with pytest.raises(Snooze):
        wait_for_start(claims, claim)
    with pytest.raises(ClaimRefused, match="not yours"):
        claims.make(7, 9)


def test_a_claim_whose_answer_was_lost_is_asked_again_under_its_name(clock: Clock) -> None:
    """And its time is measured from the try that was answered."""
    answers = Answers(clock, [0.5])
    answers.lost_s = [7.0]
    claims = claims_at(answers)
    claim = claims.make(7, 9)
    first, second = answers.asked
    assert first == second
    assert claim.asked_at == pytest.approx(clock.now - 2 * clock.way_s)
    wait_for_start(claims, claim)
    assert answers.told_at[0] <= clock.now <= answers.told_at[0] + LEAST_SLACK_S


def test_the_server_hears_how_long_celery_lets_it_wait(clock: Clock) -> None:
    """Whoever has waited and asks again has less."""
    clock.naps_too_long_s = [0.05]
    answers = Answers(clock, [0.2, 0.3])
    claims = claims_at(answers)
    claim = claims.make(7, 9, within_s=5.0)
    wait_for_start(claims, claim)
    first, second = (float(str(each["within_s"])) for each in answers.asked)
    assert first == 5.0
    assert 4.0 < second < 4.8


def test_a_claim_is_asked_again_once(clock: Clock) -> None:
    answers = Answers(clock, [0.5])
    answers.lost_s = [1.0] * 5
    with pytest.raises(OutcomeUnknown):
        claims_at(answers).make(7, 9)
    assert len(answers.asked) == 2


def test_a_server_that_is_away_is_an_error_and_not_a_claim(clock: Clock) -> None:
    def nobody(_: httpx2.Request) -> httpx2.Response:
        clock.now += 1
        raise httpx2.ConnectError("refused")

    claims = Claims(Client("http://server.example", transport=httpx2.MockTransport(nobody)), "w")
    claims.warm_up()
    with pytest.raises(StoreUnavailable):
        claims.make(7, 9)
    assert Claim("mine", 7, 9).start is None
