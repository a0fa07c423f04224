"""What a call really took is known when it is answered, and counts from then on."""

from __future__ import annotations

from headway.core import GatePolicy, Outcome
from headway.core.learning import Learning, LearnRule
from headway.core.learning.learner import Answer, Said
from tests.core.kit import ask, core_with, end, going

RULE = LearnRule(pin_tpm=6_000.0)  # 100 a second
EXPECTED, REALLY = 1_000.0, 100.0


def served(really: float | None, seconds: int) -> int:
    """How many calls of this expected cost go in so many seconds."""
    core = core_with(upstream={"x.com": GatePolicy(learn=RULE)}, lease_s=1e6)
    for number in range(2_000):
        ask(core, number, 0.0, cost=EXPECTED)
    outcome = Outcome(Outcome.ok().kind, cost=really)
    gone = 0
    for tenth in range(10 * seconds):
        now = tenth / 10
        for number in going(core, now):
            gone += 1
            end(core, core.tickets[number], now, outcome)
    return gone


def test_calls_that_took_less_let_others_go_sooner() -> None:
    assert served(None, 120) <= 14
    assert served(REALLY, 120) >= 60


def test_calls_that_took_more_keep_others_back() -> None:
    assert served(3 * EXPECTED, 300) <= served(None, 300) / 2


def test_what_was_counted_is_what_they_took() -> None:
    limit = Learning(LearnRule(pin_tpm=6_000_000.0))
    learner = limit.learner
    call = learner.sent(0.0, online=False, cost=EXPECTED)
    assert learner.tokens is not None
    assert learner.tokens.ring.minute == EXPECTED
    learner.answered(1.0, call, Answer(Said.WELL, cost=REALLY))
    assert learner.tokens.ring.minute == REALLY
