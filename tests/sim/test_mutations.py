"""Checkers that notice nothing prove nothing: break the core on purpose and see them notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway.core import Core, Kind, lifetimes
from headway.core.admission import Admission
from headway.core.gate import Gate, Holds
from headway.core.leases import Leases
from headway.core.limits.cooldown import Cooldown
from headway.core.limits.hold import MinHold
from headway.core.limits.pace import Pace
from headway.core.lines import KeyGate
from headway.core.retry import judge
from headway.core.standing import Standing
from headway.core.ticket import Stop
from tests.sim.checks import Violation
from tests.sim.world import World

Break = Callable[[pytest.MonkeyPatch], None]


def one_place_too_many(patch: pytest.MonkeyPatch) -> None:
    refresh = Gate.refresh

    def generous(self: Gate) -> None:
        refresh(self)
        self.room += 1
        self.spare += 1

    patch.setattr(Gate, "refresh", generous)


def pace_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pace, "taken", lambda *_: None)


def cooldown_is_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Cooldown, "given", lambda *_: None)


def minimum_hold_is_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MinHold, "keeps_until", lambda _self, now, *_: now)


def closing_does_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "close", lambda *_: None)


def pausing_does_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gate, "pause", lambda *_: None)


def releases_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    wake = Standing.gate_changed

    def sleepy(self: Standing, gate: Gate, now: float) -> None:
        if gate.holds is not Holds.TRACKS:
            wake(self, gate, now)

    patch.setattr(Standing, "gate_changed", sleepy)


def the_clock_is_never_set(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Standing, "arm", lambda *_: None)


def a_place_is_never_given_back(patch: pytest.MonkeyPatch) -> None:
    give = Admission.give

    def leaky(self: Admission, permit: Any, outcome: Any, now: float) -> None:
        give(self, permit, outcome, now)
        if permit.upstream is not None and outcome.kind is Kind.FAILED:
            permit.upstream.leases[permit.fence] = permit

    patch.setattr(Admission, "give", leaky)


def fences_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    finish = Core.finish

    def trusting(self: Core, id: Any, fence: int, outcome: Any, now: float) -> Any:
        ticket = self.tickets.get(id)
        if ticket is not None and ticket.permit is not None:
            fence = ticket.permit.fence
        return finish(self, id, fence, outcome, now)

    patch.setattr(Core, "finish", trusting)


def leases_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Leases, "expired", lambda *_: [])


def the_key_forgets_its_order(patch: pytest.MonkeyPatch) -> None:
    def any_order(self: Standing, key: KeyGate, now: float) -> None:
        key.ready = sorted(key.ready, reverse=True)
        original(self, key, now)

    original = Standing.next_in_order
    patch.setattr(Standing, "next_in_order", any_order)


def cancelling_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    def forgetful(ticket: Any, outcome: Any, policy: Any, now: float) -> Any:
        if ticket.asked is Stop.CANCEL:
            ticket.asked = None
        return judge(ticket, outcome, policy, now)

    patch.setattr(lifetimes, "judge", forgetful)


def leftover_work_takes_the_reserve(patch: pytest.MonkeyPatch) -> None:
    refresh = Gate.refresh

    def greedy(self: Gate) -> None:
        refresh(self)
        self.spare = self.room

    patch.setattr(Gate, "refresh", greedy)


MUTATIONS: dict[Break, set[str]] = {
    one_place_too_many: {"pools are never exceeded"},
    pace_is_not_charged: {"paces are never beaten", "gates open in time"},
    cooldown_is_skipped: {"cooldown"},
    minimum_hold_is_skipped: {"running = live leases", "pools are never exceeded"},
    closing_does_nothing: {"nobody enters a closed gate"},
    pausing_does_nothing: {"nobody enters a closed gate"},
    releases_wake_nobody: {"work conservation"},
    the_clock_is_never_set: {"work conservation", "somebody sets the clock"},
    a_place_is_never_given_back: {"running = live leases"},
    fences_are_not_looked_at: {"stale fences change nothing"},
    leases_never_end: {"nobody starves", "somebody sets the clock"},
    the_key_forgets_its_order: {"key order"},
    cancelling_is_forgotten: {"cancel wins or loses once"},
    leftover_work_takes_the_reserve: {"pools are never exceeded"},
}


def run_worlds() -> None:
    for seed in range(40):
        World(seed).run(400)


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
def test_the_checkers_notice(mutate: Break, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    with pytest.raises(Violation) as noticed:
        run_worlds()
    assert noticed.value.rule in MUTATIONS[mutate]
