"""What a modelled upstream answers, and what the core is told of it."""

from __future__ import annotations

from random import Random

import pytest

from headway.core.outcome import Kind, Scope
from headway.simulation.limiters import LimitModel
from headway.simulation.upstream import Answer, BanModel, Upstream, UpstreamModel
from tests.simulation.kit import per_minute, upstream


def of(model: UpstreamModel) -> Upstream:
    return Upstream(model, Random(1))


def call(one: Upstream, at: float, tenant: str = "ann") -> Answer:
    return one.call(at, tenant, None)


def test_what_is_too_much_is_refused_and_told_when_to_come_back() -> None:
    one = of(upstream(per_minute(1), retry_after=True))
    assert call(one, 0.0).what == "ok"
    no = call(one, 20.0)
    assert (no.what, no.took) == ("refused", False)
    assert no.outcome.kind is Kind.PUSHBACK
    assert (no.outcome.status, no.outcome.retry_after_s) == (429, 40.0)
    assert call(one, 60.0).what == "ok"


def test_who_is_not_told_anything_hears_no_retry_after() -> None:
    one = of(upstream(per_minute(1)))
    call(one, 0.0)
    assert call(one, 1.0).outcome.retry_after_s is None


def test_all_limits_must_admit_a_call() -> None:
    one = of(upstream(per_minute(10), LimitModel("concurrency", ((0.0, 1),)), hold_s=5.0))
    assert [call(one, 0.0).what for _ in range(2)] == ["ok", "refused"]
    one.ended("ann")
    assert call(one, 1.0).what == "ok"


def test_a_limit_of_each_tenant_is_its_own() -> None:
    one = of(upstream(LimitModel("concurrency", ((0.0, 1),), per_tenant=True)))
    assert call(one, 0.0, "ann").what == "ok"
    assert call(one, 0.0, "ben").what == "ok"
    no = call(one, 0.0, "ann")
    assert no.what == "refused"
    assert no.outcome.scope is Scope.TENANT
    one.ended("ann")
    assert call(one, 0.0, "ann").what == "ok"


def test_who_insists_is_banned_for_a_while() -> None:
    one = of(upstream(per_minute(1), ban=BanModel(3, 60.0, 600.0)))
    said = [call(one, float(at)).what for at in range(5)]
    assert said == ["ok", "refused", "refused", "banned", "banned"]
    assert call(one, 300.0).outcome.ban
    assert call(one, 700.0).what == "ok"


def test_an_outage_takes_nothing() -> None:
    one = of(upstream(outages=((10.0, 20.0),)))
    assert [call(one, at).what for at in (9.0, 10.0, 19.0, 20.0)] == [
        "ok", "away", "away", "ok",
    ]  # fmt: skip
    assert one.busy == 2, "only what was taken is inside"


def test_a_share_of_calls_fails() -> None:
    one = of(upstream(errors=0.25))
    failed = sum(call(one, float(at)).what == "failed" for at in range(2_000))
    assert failed == pytest.approx(500, abs=60)


def test_it_is_slower_above_its_knee() -> None:
    one = of(upstream(knee=2, slower_by=0.5))
    assert [call(one, 0.0).lasts_s for _ in range(4)] == [1.0, 1.0, 1.5, 2.0]


def test_headers_are_on_every_answer() -> None:
    one = of(upstream(per_minute(2), headers=True))
    rates = call(one, 0.0).outcome.rates
    assert rates is not None
    assert rates.requests is not None
    assert (rates.requests.limit, rates.requests.remaining) == (2, 1)


def test_what_it_bears_on_average_knows_of_outages_and_tenants() -> None:
    model = upstream(per_minute(60), outages=((0.0, 900.0),))
    assert model.per_minute(0.0, 3600.0, tenants=1, hold_s=1.0) == 45
    each = upstream(LimitModel("concurrency", ((0.0, 1),), per_tenant=True))
    assert each.per_minute(0.0, 60.0, tenants=3, hold_s=10.0) == 18
