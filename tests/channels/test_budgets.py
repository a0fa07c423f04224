"""Budgets on a clock of their own: days and months in a moment."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from headway import App
from headway.apps.channels.channel import NANO, Channel, Price
from headway.apps.channels.directory import API
from headway.apps.channels.money.budgets import Budget, in_words, span_of
from headway.apps.channels.money.costs import money, nano_of
from headway.apps.channels.queue.calls import new_call
from headway.sdk.handle import JobHandle
from headway.testing.world import VirtualEngine
from tests.channels.batch_world import CHAT, MODEL, ChannelsWorld

CALL = 2_000_000  # what a call costs, in billionths: a token in and one out, each 0.001
PRICE = Price(input_per_1k=1.0, output_per_1k=1.0)
NIGHT = datetime(2026, 11, 16, 23, 0, tzinfo=UTC).timestamp()


class Spending(ChannelsWorld):
    """A channel whose calls cost something."""

    def _start(self) -> VirtualEngine:
        engine = super()._start()
        engine.ask(self.channels.budgets.begin)
        return engine

    def ask(self, tenant: str, text: str = "hello") -> JobHandle[object]:
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}]}
        job = new_call(CHAT, body, tenant=tenant, now=self.now, priority=5, deadline=None,
                       callback=None, host=None, metadata={})  # fmt: skip
        return self.app.enqueue(job)

    def allow(self, tenant: str, calls: int, period: str = "month", currency: str = "USD") -> None:
        """A budget for so many calls."""
        budgets = self.channels.budgets
        budget = Budget(tenant, period, currency, calls * CALL, self.now)
        self._engine.ask(lambda now: budgets.put(budget, now)).result(0)

    def forbid_nothing(self, tenant: str) -> None:
        budgets = self.channels.budgets
        self._engine.ask(lambda now: budgets.remove(tenant, None, None, now)).result(0)

    def second_channel(self) -> None:
        channel = Channel("c2", MODEL, "http://127.0.0.1:1/v1", rpm=6e7)
        directory = self.channels.directory
        self._engine.ask(lambda now: directory.put(channel, None, API, now)).result(0)

    def spent(self, tenant: str) -> list[str]:
        return [each["spent"] for each in self.channels.budgets.view(tenant, self.now)]


@pytest.fixture
def world() -> Iterator[Spending]:
    with Spending(App(), at=NIGHT) as made:
        made.channel(at_once=1, price=PRICE)
        yield made


def states(handles: list[JobHandle[object]]) -> list[str | None]:
    return [each.state for each in handles]


# ---------------------------------------------------------------------- money and periods


@pytest.mark.parametrize(
    ("nano", "text"), [(0, "0.00"), (50 * NANO, "50.00"), (125_000, "0.000125"), (1, "0.000000001")]
)
def test_amounts_are_exact(nano: int, text: str) -> None:
    assert money(nano) == text
    assert nano_of(text) == nano


@pytest.mark.parametrize("wrong", ["0.0000000001", -1, 1e12])
def test_an_amount_that_cannot_be_kept_is_refused(wrong: str | float) -> None:
    with pytest.raises(ValueError, match="an amount is 0 or more"):
        nano_of(wrong)


def test_periods_begin_and_end_in_utc() -> None:
    def times(period: str, now: datetime) -> list[str]:
        ends = span_of(period, now.timestamp())
        return [datetime.fromtimestamp(each, UTC).isoformat() for each in ends]

    assert times("day", datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC)) == [
        "2026-02-28T00:00:00+00:00", "2026-03-01T00:00:00+00:00"]  # fmt: skip
    assert times("month", datetime(2026, 12, 31, 23, tzinfo=UTC)) == [
        "2026-12-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00"]  # fmt: skip
    assert span_of("total", NIGHT)[0] == 0


def test_a_budget_in_words() -> None:
    said = {period: in_words(Budget("t", period, "USD", 50 * NANO, 0.0), NIGHT)
            for period in ("day", "month", "total")}  # fmt: skip
    assert said == {
        "day": "50.00 USD for 16 November 2026",
        "month": "50.00 USD for November 2026",
        "total": "50.00 USD in total",
    }


# ---------------------------------------------------------------------- held and let go


def test_a_tenant_whose_budget_is_used_up_waits_and_is_told_why(world: Spending) -> None:
    world.allow("acme", 3)
    handles = [world.ask("acme") for _ in range(5)]
    other = world.ask("zeta")
    world.run_for(60)
    assert states(handles) == ["completed"] * 3 + ["queued"] * 2
    assert other.state == "completed"
    why = "the budget of 0.006 USD for November 2026 is used up"
    assert handles[3].explain().detail == why
    assert world.channels.budgets.why_not("acme") == why
    assert world.channels.budgets.why_not("zeta") is None
    assert world.spent("acme") == ["0.006"]


def test_it_is_passed_by_no_more_than_what_is_under_way(world: Spending) -> None:
    world.channel(at_once=4, price=PRICE)
    world.allow("acme", 3)
    handles = [world.ask("acme") for _ in range(20)]
    world.run_for(600)
    done = states(handles).count("completed")
    assert 3 <= done <= 3 + 4 - 1
    assert world.count("llm_bills") == done


def test_when_the_period_is_over_it_goes_on_by_itself(world: Spending) -> None:
    world.allow("acme", 1, "day")
    handles = [world.ask("acme") for _ in range(2)]
    world.run_for("30m")
    assert states(handles) == ["completed", "queued"]
    world.run_for("1h")
    assert states(handles) == ["completed", "completed"]
    assert world.spent("acme") == ["0.002"]  # of the new day
    third = world.ask("acme")
    world.run_for(60)
    assert third.explain().detail == "the budget of 0.002 USD for 17 November 2026 is used up"


def test_a_raised_budget_and_one_that_is_removed_hold_at_once(world: Spending) -> None:
    world.allow("acme", 1)
    handles = [world.ask("acme") for _ in range(4)]
    world.run_for(60)
    assert states(handles).count("completed") == 1
    world.allow("acme", 2)
    world.run_for(60)
    assert states(handles).count("completed") == 2
    world.forbid_nothing("acme")
    world.run_for(60)
    assert states(handles).count("completed") == 4


def test_the_longest_of_several_budgets_holds(world: Spending) -> None:
    world.allow("acme", 1, "day")
    world.allow("acme", 1, "month")
    handle = [world.ask("acme") for _ in range(2)][1]
    world.run_for(60)
    assert "for November 2026" in handle.explain().detail
    world.allow("acme", 5, "month")
    world.run_for(0)
    assert "for 16 November 2026" in handle.explain().detail


def test_other_currencies_are_other_money(world: Spending) -> None:
    world.allow("acme", 1, currency="EUR")
    handles = [world.ask("acme") for _ in range(3)]
    world.run_for(60)
    assert states(handles) == ["completed"] * 3
    assert world.spent("acme") == ["0.00"]


def test_a_total_never_begins_anew(world: Spending) -> None:
    world.allow("acme", 0, "total")
    handle = world.ask("acme")
    world.run_for("1d")
    assert handle.explain().detail == "the budget of 0.00 USD in total is used up"
    (seen,) = world.channels.budgets.view("acme", world.now)
    assert (seen["begins_at"], seen["begins_anew_at"]) == (None, None)


def test_it_counts_what_was_spent_before_it_was_set(world: Spending) -> None:
    first = world.ask("acme")
    world.run_for(60)
    assert first.state == "completed"
    world.allow("acme", 1)
    second = world.ask("acme")
    world.run_for(60)
    assert second.state == "queued"


def test_a_channel_that_comes_later_is_closed_to_it_too(world: Spending) -> None:
    world.allow("acme", 0)
    handle = world.ask("acme")
    world.second_channel()
    other = world.ask("zeta")
    world.run_for(60)
    assert states([handle, other]) == ["queued", "completed"]
    assert len(world.provider.calls) == 1


@pytest.mark.parametrize("tenant", ["acme", ""])
def test_after_a_restart_nothing_has_changed(world: Spending, tenant: str) -> None:
    """The tenant without a name is one, too, and is not taken for all of them."""
    world.allow(tenant, 1)
    handles = [world.ask(tenant) for _ in range(3)]
    world.run_for(60)
    world.crash()
    world.restart()
    assert [each.event for each in world.app.store.events(0, 10_000)].count("budget_used_up") == 1
    other = world.ask("zeta")
    world.run_for("1h")
    assert states(handles).count("completed") == 1
    assert other.state == "completed"
    assert world.spent(tenant) == [money(CALL)]
    world.forbid_nothing(tenant)
    world.run_for(60)
    assert states(handles) == ["completed"] * 3


def test_a_gate_that_was_opened_by_hand_is_closed_by_the_next_bill(world: Spending) -> None:
    world.allow("acme", 1)
    handles = [world.ask("acme") for _ in range(5)]
    world.run_for(60)
    assert states(handles).count("completed") == 1
    gates = world._engine.brain.core.gates
    world._engine.ask(lambda now: gates.open("upstream", "c1", now, tenant="acme")).result(0)
    world.run_for(600)
    assert states(handles).count("completed") == 2
    waits = next(each for each in handles if each.state == "queued")
    assert waits.explain().detail == "the budget of 0.002 USD for November 2026 is used up"
    events = [each.event for each in world.app.store.events(0, 10_000)]
    assert events.count("budget_used_up") == 1
