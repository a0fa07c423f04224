"""The parts together, at simple upstreams in virtual time."""

from __future__ import annotations

from headway.core.learning.learner import Said
from headway.core.learning.rule import LearnRule
from headway.core.rate_headers import Quota, RateHeaders
from tests.core.learning.kit import INF, Driver, per_minute


def test_it_finds_a_limit_and_stays_just_below_it() -> None:
    driver = Driver()
    driver.run(300.0, 600.0)
    borne, refused = driver.run(600.0, 600.0)
    assert borne > 0.93 * 6000
    assert refused < 0.005 * 6000


def test_it_falls_quickly_on_a_lowered_limit_and_finds_a_raised_one() -> None:
    driver = Driver()
    driver.run(600.0, 600.0)
    driver.run(120.0, 300.0)
    borne, refused = driver.run(120.0, 300.0)
    assert borne > 0.85 * 600
    assert refused < 10
    driver.run(600.0, 900.0)
    borne, _ = driver.run(120.0, 900.0)
    assert borne > 0.85 * 1800


def test_a_hint_is_where_it_starts() -> None:
    cold, hinted = Driver(), Driver(LearnRule(hint_rpm=600))
    assert hinted.run(20.0, 600.0)[0] > 2 * cold.run(20.0, 600.0)[0]


def test_a_pinned_rate_is_believed_whatever_comes_back() -> None:
    driver = Driver(LearnRule(pin_rpm=120))
    driver.run(60.0, 60.0)
    assert driver.learner.beliefs().rpm == 120.0
    driver.wait(120.0)
    borne, _ = driver.run(120.0)
    assert 235 <= borne <= 245


def test_bounds_hold() -> None:
    driver = Driver(LearnRule(max_rpm=60))
    driver.run(60.0)
    assert driver.run(120.0)[0] <= 125


def test_a_threshold_leaves_its_share_of_the_limit() -> None:
    driver = Driver(LearnRule(hint_rpm=600, remaining_threshold=0.7))
    driver.run(120.0)
    assert driver.run(300.0, 600.0)[0] <= 0.3 * 3000 * 1.05


def test_nothing_ticks_when_nobody_waits() -> None:
    driver = Driver()
    driver.answer(driver.send())
    looks = 0
    while driver.learner.changes_at < INF:
        driver.now = driver.learner.changes_at
        driver.learner.look(driver.now)
        looks += 1
        assert looks < 5, "it opens once and then waits for somebody to come"


def test_a_refusal_closes_it_and_one_call_tests() -> None:
    driver = Driver(LearnRule(hint_rpm=600))
    driver.run(30.0)
    driver.refuse()
    assert not driver.open()
    waited_s = driver.until_open()
    assert waited_s >= 1.0
    test = driver.send()
    assert driver.learner.opens_at == INF, "one at a time"
    driver.wait(0.5)
    driver.answer(test)
    driver.until_open(5.0)


def test_retry_after_is_obeyed() -> None:
    driver = Driver(LearnRule(hint_rpm=600))
    driver.run(30.0)
    driver.refuse(after_s=17.0)
    assert driver.until_open() >= 17.0 - 1e-6


def test_an_online_call_that_gets_through_reopens_it() -> None:
    driver = Driver(LearnRule(hint_rpm=600))
    driver.run(30.0)
    for _ in range(20):
        driver.answer(driver.send(online=True))
        driver.wait(0.2)
    driver.refuse(online=True)
    assert driver.learner.hold.testing
    driver.wait(2.0)
    call = driver.send(online=True)
    driver.wait(0.3)
    driver.answer(call)
    assert not driver.learner.hold.testing


def test_a_ban_is_waited_out_and_remembered() -> None:
    driver = Driver(LearnRule(hint_rpm=600))
    driver.run(30.0)
    driver.answer(driver.send(), Said.BANNED, after_s=300.0)
    assert driver.until_open() >= 300.0 - 1e-6
    driver.answer(driver.send())
    assert driver.learner.requests.ceiling.wary_s > 0


def test_headers_are_followed_at_once_and_their_limit_is_remembered() -> None:
    driver = Driver()
    driver.answer(driver.send(), rates=per_minute(6000, 5990, 59.0))
    driver.wait(0.1)
    assert driver.learner.requests.rate > 90.0
    assert driver.learner.beliefs().rpm == 6000.0
    driver.wait(200.0)
    assert driver.learner.beliefs().rpm == 6000.0, "also when they are silent"


def test_tokens_are_a_unit_of_their_own() -> None:
    driver = Driver()
    assert driver.learner.tokens is None
    rates = RateHeaders(Quota(600, 599, 59.0), Quota(60_000, 59_000, 59.0))
    driver.answer(driver.send(cost=1000.0), rates=rates)
    assert driver.learner.tokens is not None
    assert driver.learner.beliefs().tpm == 60_000.0
    sent = 0
    end = driver.now + 30.0
    while driver.now < end:
        driver.until_open()
        driver.answer(driver.send(cost=1000.0))
        driver.wait(0.01)
        sent += 1
    assert sent <= 35, "a thousand tokens a second, though ten requests a second were allowed"


def test_a_refusal_that_says_tokens_blames_tokens() -> None:
    driver = Driver(LearnRule(hint_rpm=600))
    driver.run(60.0)
    rates = RateHeaders(Quota(600, 300, 59.0), Quota(60_000, 0, 20.0), 20.0)
    driver.answer(driver.send(cost=500.0), Said.REFUSED, after_s=20.0, rates=rates)
    assert driver.learner.beliefs().rpm == 600.0
    assert driver.learner.beliefs().tpm == 60_000.0


def test_a_concurrency_limit_is_found_without_touching_the_rate() -> None:
    driver = Driver(LearnRule(hint_rpm=6000))
    calls = []
    for _ in range(10):
        driver.until_open()
        calls.append(driver.send())
    driver.wait(1.0)
    for call in calls:
        driver.answer(call)
    driver.wait(1.0)
    held = []
    while len(held) < 12:
        driver.until_open()
        held.append(driver.send())
        driver.wait(0.3)
    driver.wait(15.0)
    driver.answer(held.pop(), Said.REFUSED)
    assert driver.learner.beliefs().concurrency == 11.0
    assert driver.learner.beliefs().rpm == 6000.0


def test_each_change_of_a_belief_is_recorded_with_its_cause() -> None:
    driver = Driver()
    driver.run(120.0, 300.0)
    changes = driver.learner.diary.take()
    assert changes
    assert changes[0].what == "rpm"
    assert changes[0].before is None
    assert "refusal" in changes[0].cause
    assert driver.learner.diary.take() == []


def test_reset_forgets() -> None:
    driver = Driver()
    driver.run(200.0, 300.0)
    driver.learner.reset(driver.now)
    assert driver.learner.beliefs().rpm is None
    assert driver.learner.dump() is None
    assert driver.learner.diary.take()[-1].cause == "reset"


def test_what_was_learned_survives_as_plain_data() -> None:
    driver = Driver()
    driver.run(300.0, 600.0)
    state = driver.learner.dump()
    assert state is not None
    after = Driver(now=driver.now)
    after.learner.load(state)
    before = driver.learner.beliefs().rpm
    assert before is not None
    assert after.learner.beliefs().rpm is not None
    assert abs((after.learner.beliefs().rpm or 0.0) - before) < 1.0
    assert after.run(60.0, 600.0)[0] > 450, "no new start"
