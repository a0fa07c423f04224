"""The lessons of docs/lessons.md about learned capacity: 32 to 37."""

from __future__ import annotations

from random import Random

from headway.core import Core, GatePolicy, Outcome, Permit, Policies, Ticket, Traffic
from headway.core.learning import Learning, LearnRule
from headway.core.learning.history import History, Source
from headway.core.learning.learner import Said
from tests.core.learning.kit import Driver


def core_with(rule: LearnRule) -> tuple[Core, Learning]:
    policies = Policies()
    policies.declare("upstream", "api", GatePolicy(learn=rule))
    core = Core(policies, rng=Random(1))
    (limit,) = core.gate("upstream", "api").limits
    assert isinstance(limit, Learning)
    return core, limit


def test_lesson_32_calls_in_flight_are_not_added_to_calls_per_minute() -> None:
    """Load was concurrent requests plus requests per minute."""
    core, limit = core_with(LearnRule(hint_rpm=600))
    for number in range(50):
        permit = core.call(Ticket(number, upstreams=("api",), traffic=Traffic.ONLINE), 1.0)
        assert isinstance(permit, Permit)
    limit.learner.history.refused(0.0, 100.0, 500.0)
    capacity = limit.capacity(1.0)
    assert capacity.load_rpm == 50, "each once, though all of them are still in flight"
    assert capacity.remaining == 0.5
    assert limit.beliefs.concurrency is None


def test_lesson_33_the_newest_refusals_rule_the_estimate() -> None:
    """The average ran newest first: a limit that fell from 400 to 100 was estimated at 392."""
    history = History()
    for number in range(10):
        history.refused(float(number), 400.0, 500.0)
    for number in range(10):
        history.refused(10.0 + number, 100.0, 500.0)
    assert 100.0 <= history.fitted_rpm() < 110.0


def test_lesson_34_a_raised_limit_is_found_again() -> None:
    """No refusal, no new data, no probing."""
    driver = Driver()
    driver.run(300.0, 200.0)
    before = driver.learner.beliefs().rpm
    assert before is not None
    assert 170 < before < 230
    driver.run(900.0, 800.0)
    after = driver.learner.beliefs().rpm
    assert after is not None
    assert after > 600


def test_lesson_35_an_estimate_of_nothing_opens_nothing() -> None:
    """An estimate that rounded to 0 opened the gate fully."""
    history = History()
    history.refused(0.0, 0.0, 500.0)
    capacity = history.capacity(30.0, None)
    assert (capacity.source, capacity.remaining) == (Source.HISTORY, 0.0)
    assert history.capacity(30.0, 0.0).remaining == 0.0
    driver = Driver()
    for _ in range(12):
        driver.until_open(4000.0)
        driver.answer(driver.send(), Said.REFUSED)
    assert driver.learner.requests.rate > 0
    assert not driver.open()


def test_lesson_35_a_cold_start_sends_one_call_not_a_hundred() -> None:
    core, _ = core_with(LearnRule())
    for number in range(100):
        core.submit(Ticket(number, upstreams=("api",)), 0.0)
    assert len(core.admit(0.0)) == 1
    assert len(core.admit(0.5)) == 0
    assert len(core.admit(1.1)) == 1


def test_lesson_36_queued_and_long_calls_are_counted() -> None:
    """It never saw its own effect, and long requests vanished from the count."""
    core, limit = core_with(LearnRule(pin_rpm=600, pin_concurrency=3))
    for number in range(10):
        core.submit(Ticket(number, upstreams=("api",), lease_s=10_000.0), 0.0)
    now, permits = 0.0, []
    for _ in range(20):
        permits += core.admit(now)
        now += 1.0
    assert len(permits) == 3
    assert limit.learner.requests.ring.minute == 3
    assert core.admit(3000.0) == [], "after fifty minutes they are still in flight"
    first = permits[0]
    assert core.finish(first.ticket.id, first.fence, Outcome.ok(), 3001.0) is not None
    assert len(core.admit(3001.0)) == 1


def test_lesson_37_who_was_refused_is_silent_and_each_time_longer() -> None:
    """429 hot loops: retry at once against an upstream that had just said no."""
    driver = Driver(LearnRule(hint_rpm=600))
    driver.run(30.0)
    silences = []
    for _ in range(6):
        driver.until_open(4000.0)
        driver.answer(driver.send(), Said.REFUSED)
        start = driver.now
        driver.until_open(4000.0)
        silences.append(driver.now - start)
    assert silences[0] >= 1.0
    assert silences[-1] >= 60.0
    assert sum(silences) > 120.0
    assert silences[3] > silences[0]
