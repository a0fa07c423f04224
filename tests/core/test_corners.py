"""Corners of the core that mutants have found nobody looking at."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from headway.core import BreakerRule, GatePolicy, Outcome, Scope, State, Ticket
from headway.core.classify import classify_exception
from headway.core.learning.ceiling import MOST_QUIET_ONLINE_S, MOST_QUIET_S, Ceiling, Sight
from headway.core.learning.learner import Said
from headway.core.learning.limit import answer_of
from headway.core.learning.online import Online
from headway.core.limits import Breaker, QuietRule
from headway.core.limits.hold import MinHold
from headway.core.policy import PushbackRule
from headway.core.rate_headers import parse_rate_headers
from headway.core.recurrence import Every
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY, RetryPolicy
from tests.core.kit import X, ask, core_with, end, going, permit_of, start

HOUR_S, DAY_S = 3600.0, 86_400.0


# ---------------------------------------------------------------------- if nothing is said


def test_known_types_are_as_patient_as_their_document_says() -> None:
    known = {
        "download": RetryPolicy(timeout_s=1800, retries=3, delay_s=60, growth=2),
        "scan": RetryPolicy(timeout_s=300, retries=2, delay_s=30),
        "associate": RetryPolicy(timeout_s=120, retries=2, delay_s=10),
        "check": RetryPolicy(timeout_s=60, retries=1, delay_s=5),
    }
    assert known == DEFAULT_POLICIES
    assert RetryPolicy(
        timeout_s=300, retries=3, delay_s=30, growth=1, max_delay_s=300, max_lost=3,
        max_pushbacks=100, max_pushed_back_s=DAY_S,
    ) == DEFAULT_POLICY  # fmt: skip


def test_a_breaker_and_a_pushback_are_as_their_document_says() -> None:
    assert BreakerRule() == BreakerRule(
        window_s=60, share=0.2, at_least=8, burst_share=0.6, burst_at_least=4, in_a_row=4,
        open_s=60,
    )  # fmt: skip
    assert PushbackRule() == PushbackRule(hold_s=2, growth=2, max_hold_s=300, ban_s=600)


def test_a_core_is_as_patient_as_its_document_says() -> None:
    core = core_with()
    assert (core.lease_s, core.admission.patience_s) == (90.0, 30.0)


# ---------------------------------------------------------------------- quiet hours


@pytest.mark.parametrize("days", [0, 1, 20_000])
@pytest.mark.parametrize("ahead_h", [0, 2, -5])
def test_quiet_hours_begin_at_their_local_time(days: int, ahead_h: int) -> None:
    rule = QuietRule(((23 * HOUR_S, 6 * HOUR_S), (12 * HOUR_S, 13 * HOUR_S)),
                     lambda _now: ahead_h * HOUR_S)  # fmt: skip
    midnight = days * DAY_S - ahead_h * HOUR_S

    assert rule.starts_at(midnight + 9 * HOUR_S) == midnight + 12 * HOUR_S
    assert rule.starts_at(midnight + 12 * HOUR_S) == midnight + 23 * HOUR_S
    assert rule.starts_at(midnight + 23 * HOUR_S) == midnight + 36 * HOUR_S
    assert rule.ends_at(midnight + 23.5 * HOUR_S) == midnight + 30 * HOUR_S
    assert rule.ends_at(midnight + 1 * HOUR_S) == midnight + 6 * HOUR_S
    assert rule.ends_at(midnight + 6 * HOUR_S) < midnight


# ---------------------------------------------------------------------- the minimum hold


def test_new_settings_do_not_forget_when_the_last_place_came_free() -> None:
    before, after = MinHold(4.0, 1.0), MinHold(4.0, 1.0)
    before.last_free_at = 17.0
    after.adopt(before)

    assert after.last_free_at == 17.0
    assert not after.idle(17.5)
    assert after.idle(18.0)
    after.forget()
    assert after.idle(0.0)


def test_places_come_free_one_after_the_other_also_over_new_settings() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2, min_hold_s=4.0)})
    first, second = start(core, 1), start(core, 2)
    end(core, first, 1.0)
    core.gates.declare("upstream", "x.com", GatePolicy(cap=2, min_hold_s=4.0, reserve=1), 1.5)
    end(core, second, 2.0)
    for number in (3, 4):
        ask(core, number, 2.0)
    went = [now for now in (at / 4 for at in range(8, 60)) for _ in going(core, now)]

    assert len(went) == 2
    assert all(later > earlier for earlier, later in pairwise(went)), "not at once"


# ---------------------------------------------------------------------- after a restart


def test_numbers_go_on_after_the_highest_that_was_replayed() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0)})
    for id, seq in (("late", 9), ("early", 4)):
        ticket = Ticket(id, upstreams=X)
        ticket.seq = seq
        core.replay(ticket, State.QUEUED, 1.0, since=0.0)
    fresh = ask(core, "new", 2.0)

    assert fresh.seq > 9
    core.gates.declare("upstream", "x.com", GatePolicy(cap=9), 3.0)
    assert going(core, 3.0) == ["early", "late", "new"]


def test_a_pin_that_was_replayed_is_below_the_next_one() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0)})
    old = Ticket("old", upstreams=X)
    core.replay_pin(old, 7)
    core.replay(old, State.QUEUED, 0.0, since=0.0)
    ask(core, "young", 1.0)

    assert core.pin("young", 1.0) == 8
    core.gates.declare("upstream", "x.com", GatePolicy(cap=9), 2.0)
    assert going(core, 2.0) == ["young", "old"]


# ---------------------------------------------------------------------- what headers say


def test_of_two_kinds_of_tokens_the_one_that_is_nearer_to_its_end_counts() -> None:
    def said(given: str, left: str, other: str, rest: str) -> float:
        found = parse_rate_headers({
            "anthropic-ratelimit-input-tokens-limit": given,
            "anthropic-ratelimit-input-tokens-remaining": left,
            "anthropic-ratelimit-output-tokens-limit": other,
            "anthropic-ratelimit-output-tokens-remaining": rest,
        }, 0.0)  # fmt: skip
        assert found is not None
        assert found.tokens is not None
        return found.tokens.limit

    assert said("1000", "900", "100000", "20000") == 100_000
    assert said("100000", "20000", "1000", "900") == 100_000
    assert said("1000", "100", "100000", "90000") == 1_000


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("1m30s", 90.0), ("250ms", 0.25), ("500us", 5e-4), ("7ns", 7e-9), ("1d", DAY_S),
     ("2h", 7200.0), ("1µs", 1e-6), ("1800000010", 10.0), ("1970-01-01T00:00:00Z", 0.0)],
)  # fmt: skip
def test_a_reset_is_read_in_its_unit(text: str, seconds: float) -> None:
    headers = {"x-ratelimit-limit-requests": "60", "x-ratelimit-reset-requests": text}
    found = parse_rate_headers(headers, 1_800_000_000.0)

    assert found is not None
    assert found.requests is not None
    assert found.requests.reset_s == pytest.approx(seconds, rel=1e-9)


# ---------------------------------------------------------------------- gates from outside


def test_what_holds_for_a_gate_is_looked_at_again_and_one_that_is_not_there_is_not_made() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    start(core, 1)
    ask(core, 2)
    core.policies.declare("upstream", "x.com", GatePolicy(cap=2))
    assert not going(core, 1.0)
    core.gates.look_again("upstream", "x.com", 1.0)
    assert going(core, 1.0) == [2]
    core.gates.look_again("upstream", "nowhere.com", 1.0)
    assert ("upstream", "nowhere.com") not in core.admission.atlas.gates


def test_a_permit_that_is_not_yet_renewed_expires_when_its_lease_does() -> None:
    core = core_with(lease_s=10.0)
    ticket = start(core, 1, 5.0)

    assert permit_of(ticket).expires_at == 15.0
    assert core.heartbeat(1, permit_of(ticket).fence, 9.0) == 19.0
    assert core.finish(1, permit_of(ticket).fence, Outcome.ok(), 19.5) is None


def test_an_open_breaker_is_forgotten_an_hour_after_it_could_be_tried() -> None:
    breaker = Breaker(BreakerRule())
    assert breaker.idle(0.0)
    breaker.tripped, breaker.opens_at = True, 100.0

    assert breaker.idle(100.0 + HOUR_S) is True
    assert breaker.idle(99.0 + HOUR_S) is False


def test_a_probe_waits_longer_the_more_of_the_traffic_is_online() -> None:
    def quiet_s(online_per_s: float) -> float:
        ceiling = Ceiling()
        ceiling.begin_at(10.0)
        ceiling.confirmed = 9
        return ceiling.quiet_s(Sight(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, online_per_s, 0.0))

    assert quiet_s(0.0) == MOST_QUIET_S
    assert quiet_s(1.5) == (MOST_QUIET_S + MOST_QUIET_ONLINE_S) / 2
    assert quiet_s(3.0) == quiet_s(30.0) == MOST_QUIET_ONLINE_S


def test_a_permit_says_how_long_its_ticket_has_waited() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)})
    first = start(core, 1, 10.0)
    assert permit_of(first).waited_s == 0.0
    second = ask(core, 2, 12.0)
    end(core, first, 20.0)
    assert going(core, 20.0) == [2]
    assert permit_of(second).waited_s == 8.0


def test_a_key_that_nobody_holds_or_waits_for_is_forgotten() -> None:
    core = core_with()
    first = start(core, 1, key="k")
    second = ask(core, 2, key="k")
    assert not going(core)
    end(core, first, 1.0)
    assert going(core, 1.0) == [2]
    assert list(core.admission.atlas.keys) == ["k"]
    end(core, second, 2.0)
    assert not core.admission.atlas.keys


# ---------------------------------------------------------------------- bounds


class Answered(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


@pytest.mark.parametrize(("status", "known"), [
    (99, False), (100, True), (999, True), (1000, False), (0, False), (-429, False),
])  # fmt: skip
def test_a_status_of_http_has_three_digits(status: int, known: bool) -> None:
    assert (classify_exception(Answered(status)).status == status) is known


@pytest.mark.parametrize("field", ["priority"])
@pytest.mark.parametrize("number", [1e9, -1e9, float("nan")])
def test_a_ticket_has_plain_numbers(field: str, number: float) -> None:
    core = core_with()
    with pytest.raises(ValueError, match="plain numbers"):
        ask(core, 1, **{field: number})
    ask(core, 2, priority=999_999_999)
    ask(core, 3, priority=-999_999_999)


def test_more_slots_are_kept_for_online_calls_the_more_of_them_there_are() -> None:
    def kept(calls: int, cap: float) -> int:
        online = Online()
        for number in range(calls):
            online.sent(number * 10.0 / calls)
        return online.slots(10.0, cap, 1.0)

    assert kept(10, 1.5) == 0
    assert [kept(calls, 20.0) for calls in (1, 20, 60, 150)] == sorted(
        kept(calls, 20.0) for calls in (1, 20, 60, 150)
    )
    assert kept(20, 100.0) < kept(150, 100.0)
    assert kept(150, 20.0) == 6, "three tenths at most"


@pytest.mark.parametrize(("outcome", "said"), [
    (Outcome.pushback(status=499), Said.REFUSED), (Outcome.pushback(status=500), Said.FAULT),
    (Outcome.pushback(status=401), Said.NOTHING), (Outcome.pushback(ban=True), Said.BANNED),
    (Outcome.pushback(scope=Scope.TENANT), Said.NOTHING), (Outcome.ok(), Said.WELL),
    (Outcome.failed("no", upstream_fault=True), Said.FAULT), (Outcome.lost(), Said.NOTHING),
    (replace(Outcome.failed("no"), status=499), Said.WELL),
    (replace(Outcome.failed("no"), status=500), Said.NOTHING),
])  # fmt: skip
def test_what_an_outcome_says_to_the_learner(outcome: Outcome, said: Said) -> None:
    assert answer_of(outcome, 0.1).said is said


def test_a_ticket_that_was_led_elsewhere_goes_there() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=0)})
    ticket = ask(core, 1)
    assert not going(core)
    core.reroute(1, ("y.com",), 1.0)

    assert ticket.upstreams == ("y.com",)
    assert going(core, 1.0) == [1]
    assert permit_of(ticket).upstream is core.gate("upstream", "y.com")


@pytest.mark.parametrize("interval_s", [0.0, -1.0, 0.0004])
def test_an_interval_is_a_millisecond_at_least(interval_s: float) -> None:
    with pytest.raises(ValueError, match=r"from 0\.001 to"):
        Every(interval_s)
    with pytest.raises(ValueError, match="from 5 to"):
        Every(4.0, min_s=5.0)
    assert Every(0.001).interval_s == 0.001
    assert Every(0.001, min_s=0.0).interval_s == 0.001


def test_a_new_weight_counts_from_then_on() -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=2)})
    heavy, light = start(core, 1, tenant="a"), start(core, 2, tenant="b")
    core.gates.weigh(permit_of(heavy), 4.0, 0.0)
    for id, tenant in ((3, "b"), (4, "a"), (5, "b"), (6, "a")):
        ask(core, id, 1.0, tenant=tenant)
    end(core, heavy, 10.0)
    end(core, light, 10.0)

    assert going(core, 10.0)[0] == 4, "the same time weighs a quarter for the one"
