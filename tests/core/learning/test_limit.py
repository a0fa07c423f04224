"""The learner as a limit at a gate of the real core."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from headway.core import Core, GatePolicy, Outcome, Permit, Policies, Ticket, Traffic
from headway.core.learning import Learning, LearnRule
from headway.core.learning.learner import Said
from headway.core.learning.limit import answer_of
from headway.core.memory import dump, load
from headway.core.outcome import Kind, Scope
from headway.core.rate_headers import parse_rate_headers


def core_with(rule: LearnRule | None = None) -> Core:
    policies = Policies()
    policies.declare("upstream", "api", GatePolicy(learn=rule or LearnRule()))
    return Core(policies, rng=Random(1))


def learning(core: Core) -> Learning:
    return next(
        limit for limit in core.gate("upstream", "api").limits if isinstance(limit, Learning)
    )


def submit(core: Core, count: int, now: float = 0.0, *, start: int = 0) -> None:
    for number in range(start, start + count):
        core.submit(Ticket(number, upstreams=("api",), traffic=Traffic.LEFTOVER), now)


def finish(core: Core, permit: Permit, outcome: Outcome, now: float) -> None:
    assert core.finish(permit.ticket.id, permit.fence, outcome, now) is not None


def run(core: Core, start: float, seconds: float) -> int:
    """Grant and finish until then, waking only when the core asks for it."""
    now, done = start, 0
    while now < start + seconds:
        for permit in core.admit(now):
            finish(core, permit, Outcome.ok(status=200), now)
            done += 1
        wake_at = core.next_wakeup()
        if wake_at is None or wake_at >= start + seconds:
            break
        now = max(wake_at, now)
    return done


def test_a_cold_start_lets_one_call_go_not_a_hundred() -> None:
    core = core_with()
    submit(core, 100)
    assert len(core.admit(0.0)) == 1
    assert core.explain(50, 0.0).reason == "learning"


def test_queued_work_goes_at_the_believed_rate() -> None:
    core = core_with(LearnRule(pin_rpm=60))
    submit(core, 200)
    assert 59 <= run(core, 0.0, 60.0) <= 62


def test_the_core_sleeps_when_nobody_waits() -> None:
    core = core_with()
    submit(core, 1)
    run(core, 0.0, 10.0)
    core.admit(30.0)
    assert core.next_wakeup() in (None, float("inf"))


def test_online_calls_are_counted_and_never_held_back() -> None:
    core = core_with(LearnRule(pin_rpm=60))
    submit(core, 50)
    (first,) = core.admit(0.0)
    finish(core, first, Outcome.ok(), 0.0)
    for number in range(10):
        ticket = Ticket(f"online{number}", upstreams=("api",), traffic=Traffic.ONLINE)
        permit = core.call(ticket, 0.1)
        assert isinstance(permit, Permit)
        finish(core, permit, Outcome.ok(), 0.1)
    assert learning(core).learner.requests.ring.minute == 11
    assert core.admit(5.0) == [], "they used the rate of the next seconds"
    assert len(core.admit(16.0)) == 1


def test_new_settings_keep_what_was_learned() -> None:
    core = core_with(LearnRule(hint_rpm=300))
    submit(core, 10)
    run(core, 0.0, 5.0)
    core.gates.declare("upstream", "api", GatePolicy(cap=5, learn=LearnRule(hint_rpm=300)), 6.0)
    assert learning(core).beliefs.rpm == 300.0
    core.gates.declare("upstream", "api", GatePolicy(learn=LearnRule(max_rpm=60)), 7.0)
    assert learning(core).beliefs.rpm == 300.0
    core.gates.declare("upstream", "api", GatePolicy(learn=LearnRule(pin_rpm=90)), 8.0)
    assert learning(core).beliefs.rpm == 90.0
    assert [change.cause for change in learning(core).take_changes()] == ["settings"]


DAY_S = 86_400.0


def refused(core: Core, now: float) -> None:
    """One call that the upstream refuses."""
    submit(core, 1, now, start=1_000)
    (permit,) = core.admit(now)
    finish(core, permit, Outcome.pushback(status=429), now)
    core.cancel(permit.ticket.id, now)


def test_a_restart_forgets_nothing_and_a_gate_that_learned_is_not_swept() -> None:
    core = core_with(LearnRule(hint_rpm=300))
    refused(core, 0.0)
    gate = core.gate("upstream", "api")
    assert not learning(core).idle(29 * DAY_S)
    assert learning(core).idle(31 * DAY_S), "a month after the last call it may have changed anyway"
    state = dump(core, gate)
    assert state is not None
    again = core_with()
    load(again, ("upstream", "api", ""), state, 100.0)
    assert learning(again).beliefs.rpm == learning(core).beliefs.rpm
    assert not again.gate("upstream", "api").idle(29 * DAY_S)
    assert again.gate("upstream", "api").idle(32 * DAY_S), "restarts do not keep it for ever"


@pytest.mark.parametrize("rule", [LearnRule(), LearnRule(hint_rpm=300), LearnRule(pin_rpm=60)])
def test_a_flood_of_names_that_teach_nothing_does_not_stay(rule: LearnRule) -> None:
    core = core_with(rule)
    submit(core, 1)
    run(core, 0.0, 5.0)
    gate = core.gate("upstream", "api")
    assert not gate.idle(1800.0)
    assert gate.idle(4000.0)
    assert core_with(rule).gate("upstream", "api").idle(0.0), "nobody ever came"


def test_online_and_queued_calls_are_told_apart() -> None:
    core = core_with(LearnRule(pin_rpm=600))
    submit(core, 1)
    (queued,) = core.admit(0.0)
    permit = core.call(Ticket("on", upstreams=("api",), traffic=Traffic.ONLINE), 0.0)
    assert isinstance(permit, Permit)
    limit = learning(core)
    assert limit.in_flight == (1, 1)
    assert limit.per_minute(1.0) == (1.0, 1.0)
    finish(core, queued, Outcome.ok(), 1.0)
    assert limit.in_flight == (1, 0)
    assert limit.per_minute(1.0) == (1.0, 1.0)
    assert limit.per_minute(70.0) == (0.0, 0.0)


def test_the_phase_says_what_it_does() -> None:
    core = core_with()
    limit = learning(core)
    assert limit.phase(0.0) == "start"
    refused(core, 0.0)
    assert limit.phase(0.5) == "holding"
    submit(core, 1, 60.0)
    (test,) = core.admit(60.0)
    assert limit.phase(60.0) == "testing"
    finish(core, test, Outcome.ok(), 61.0)
    assert limit.phase(61.0) == "cruise"


def test_only_gates_that_stay_may_learn() -> None:
    with pytest.raises(ValueError, match="cannot learn"):
        GatePolicy(tenant=GatePolicy(learn=LearnRule()))
    with pytest.raises(ValueError, match="cannot learn"):
        Policies().declare("key", "*", GatePolicy(learn=LearnRule()))


def test_a_gate_that_never_saw_a_call_can_be_swept() -> None:
    core = core_with()
    assert core.gate("upstream", "api").idle(10.0)


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.ok(status=200), Said.WELL),
        (Outcome.pushback(status=429), Said.REFUSED),
        (Outcome.pushback(status=403, ban=True), Said.BANNED),
        (Outcome.pushback(status=401, ban=True), Said.NOTHING),
        (Outcome.pushback(status=429, scope=Scope.TENANT), Said.NOTHING),
        (Outcome.pushback(status=503), Said.FAULT),
        (Outcome.failed(status=500, upstream_fault=True), Said.FAULT),
        (Outcome.failed(status=404), Said.WELL),
        (Outcome.failed("a fault of our own"), Said.NOTHING),
        (Outcome.lost(), Said.NOTHING),
        (Outcome.cancelled(), Said.NOTHING),
        (Outcome(Kind.RETURNED), Said.NOTHING),
    ],
)
def test_what_each_outcome_says(outcome: Outcome, said: Said) -> None:
    assert answer_of(outcome, 1.0).said is said


def test_a_call_that_was_given_back_unsent_never_counted() -> None:
    core = core_with()
    submit(core, 1)
    (permit,) = core.admit(0.0)
    finish(core, permit, Outcome.returned(), 0.5)
    assert learning(core).learner.requests.ring.minute == 0
    assert learning(core).learner.in_flight == 0


def test_reset_forgets_and_says_so() -> None:
    core = core_with(LearnRule())
    submit(core, 1)
    (permit,) = core.admit(0.0)
    finish(core, permit, Outcome.pushback(status=429, retry_after_s=600.0), 0.5)
    assert learning(core).opens_at > 500.0
    learning(core).reset(1.0)
    assert learning(core).opens_at <= 2.0
    assert learning(core).dump() is None


def test_what_outsiders_report_is_heard() -> None:
    core = core_with(LearnRule(hint_rpm=600))
    core.gate("upstream", "api")
    core.gates.report("api", Outcome.pushback(status=429, retry_after_s=30.0), 10.0)
    submit(core, 1, 11.0)
    assert core.admit(11.0) == []
    assert len(core.admit(45.0)) == 1


# ---------------------------------------------------------------------- while calls are under way


def test_new_settings_do_not_end_a_wait_that_was_told() -> None:
    core = core_with()
    submit(core, 2)
    (permit,) = core.admit(0.0)
    finish(core, permit, Outcome.pushback(status=429, retry_after_s=60.0), 0.5)
    for at, rule in ((1.0, LearnRule(pin_rpm=600)), (2.0, LearnRule(max_rpm=600))):
        core.gates.declare("upstream", "api", GatePolicy(learn=rule), at)
        assert learning(core).opens_at >= 60.5
    assert core.admit(59.0) == []
    assert len(core.admit(62.0)) == 1
    core.gates.declare("upstream", "api", GatePolicy(learn=LearnRule(hint_rpm=600)), 62.5)
    assert core.admit(63.0) == [], "the call that tests is still out"


@pytest.mark.parametrize(("rule", "calls"), [(LearnRule(max_rpm=0.01), 50), (LearnRule(), 11_000)])
def test_online_calls_of_one_moment_hold_queued_work_back_for_a_bounded_time(
    rule: LearnRule, calls: int
) -> None:
    core = core_with(rule)
    for number in range(calls):
        ticket = Ticket(f"online-{number}", upstreams=("api",), traffic=Traffic.ONLINE)
        permit = core.call(ticket, 0.0)
        assert isinstance(permit, Permit)
        finish(core, permit, Outcome.ok(status=200), 0.0)
    assert learning(core).opens_at < 6_000
    submit(core, 1, 0.0)
    assert len(core.admit(1_000_000.0)) == 1


RULES = [
    LearnRule(), LearnRule(pin_rpm=600), LearnRule(max_rpm=30), LearnRule(hint_concurrency=3),
    LearnRule(pin_tpm=1_000), None,
]  # fmt: skip
ABSURD = [
    {}, {"retry-after": "-1"}, {"retry-after": "1e308"}, {"retry-after": "9" * 18},
    {"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "5"},
    {"x-ratelimit-limit-requests": "5", "x-ratelimit-remaining-requests": "9" * 18},
    {"x-ratelimit-limit-tokens": "0.0001", "x-ratelimit-reset-tokens": "9" * 12},
    {"x-ratelimit-limit-requests": "1" * 15, "x-ratelimit-reset-requests": "0"},
]  # fmt: skip
ANSWERS = [
    Outcome.ok(status=200), Outcome.pushback(status=429), Outcome.pushback(status=503),
    Outcome.pushback(status=403, ban=True), Outcome.pushback(status=429, retry_after_s=1e300),
    Outcome.failed("no", upstream_fault=True), Outcome.cancelled(), Outcome.returned(),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_set_said_and_reset_meanwhile_no_call_is_counted_twice_or_for_ever(
    seed: int,
) -> None:
    random, core, now = Random(seed), core_with(), 1.7e9
    out: list[Permit] = []
    for number in range(300):
        what = random.random()
        ticket = Ticket(number, upstreams=("api",), cost=random.choice([0.0, 1.0, 1e9]),
                        traffic=random.choice([Traffic.ONLINE, Traffic.NORMAL]))  # fmt: skip
        if what < 0.4 and ticket.traffic is Traffic.ONLINE:
            permit = core.call(ticket, now)
            out += [permit] if isinstance(permit, Permit) else []
        elif what < 0.4:
            core.submit(ticket, now)
        elif what < 0.75 and out:
            rates = parse_rate_headers(random.choice(ABSURD), now)
            outcome = replace(random.choice(ANSWERS), rates=rates)
            finish(core, out.pop(random.randrange(len(out))), outcome, now)
        elif what < 0.85:
            policy = GatePolicy(learn=random.choice(RULES))
            core.gates.declare("upstream", "api", policy, now)
        elif what < 0.9:
            for limit in core.gate("upstream", "api").limits:
                assert isinstance(limit, Learning)
                limit.reset(now)
        else:
            now += random.choice([0.01, 1.0, 61.0, 3_600.0, 1e8])
        out += core.admit(now)
        gate = core.gate("upstream", "api")
        out = [permit for permit in out if permit.fence in gate.leases]  # some are lost
        for limit in gate.limits:
            assert isinstance(limit, Learning)
            assert 0 <= limit.learner.in_flight == sum(limit.in_flight) <= len(out)
            assert limit.cap >= 1
            assert limit.in_flight.queued or not limit.learner.hold.test_out
            assert len(json.dumps(limit.dump())) < 2_000
