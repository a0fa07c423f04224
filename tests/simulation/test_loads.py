"""When work comes, and who brings it."""

from __future__ import annotations

from random import Random

import pytest

from headway.core.ticket import Traffic
from headway.simulation.arrivals import DAY_S, HOUR_S, KINDS, Process
from headway.simulation.load import Load, TenantLoad, arrivals


def times(process: Process, lasts_s: float = DAY_S, seed: int = 1) -> list[float]:
    return list(process.times(lasts_s, Random(seed)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_is_in_order_and_within_its_time(kind: str) -> None:
    found = times(Process(kind, per_hour=100, size=10, at_s=600.0), HOUR_S)
    assert found == sorted(found)
    assert found[0] >= 600.0
    assert found[-1] < HOUR_S


@pytest.mark.parametrize("kind", ["poisson", "diurnal", "steady", "bursts"])
def test_over_a_day_as_much_comes_as_was_said(kind: str) -> None:
    found = times(Process(kind, per_hour=400, size=20))
    assert len(found) == pytest.approx(9_600, rel=0.03)


def test_a_burst_comes_at_once() -> None:
    assert times(Process("bursts", per_hour=60, size=30), HOUR_S) == [0.0] * 30 + [1800.0] * 30


def test_most_of_a_day_comes_around_its_peak() -> None:
    found = times(Process("diurnal", per_hour=400, peak_s=14 * HOUR_S, swing=1.0))
    day = sum(8 * HOUR_S <= at < 20 * HOUR_S for at in found)
    assert day / len(found) > 0.75
    assert sum(at < 4 * HOUR_S for at in found) / len(found) < 0.06


def test_the_same_seed_brings_the_same() -> None:
    load = Load("", (TenantLoad("ann", keys=3, priorities=((1, 0.5), (5, 0.5)), online=0.3),))
    one, same, other = (list(arrivals(load, seed)) for seed in (7, 7, 8))
    assert one == same
    assert one != other


def test_another_tenant_changes_nothing_for_the_first() -> None:
    ann = TenantLoad("ann")
    alone = [each.at for each in arrivals(Load("", (ann,), HOUR_S), 1)]
    both = Load("", (ann, TenantLoad("ben")), HOUR_S)
    assert [each.at for each in arrivals(both, 1) if each.tenant == "ann"] == alone


def test_shares_priorities_keys_and_online_calls_are_as_said() -> None:
    many = TenantLoad(
        "ann", Process("steady", per_hour=4_000), online=0.25, keys=4,
        priorities=((1, 0.2), (5, 0.8)), upstreams=("a", "b"),
    )  # fmt: skip
    found = list(arrivals(Load("", (many,), HOUR_S), 1))
    online = [each for each in found if each.traffic is Traffic.ONLINE]
    assert len(online) == pytest.approx(1_000, rel=0.1)
    assert sum(each.priority == 1 for each in found) == pytest.approx(800, rel=0.1)
    assert {each.key for each in found} == {f"ann/{number}" for number in range(4)}
    assert {each.upstreams for each in found} == {("a",), ("b",)}


def test_several_tenants_of_one_kind_share_what_they_ask_for() -> None:
    load = Load("", (TenantLoad("c", Process("steady"), count=4, share=0.5),), HOUR_S)
    found = list(arrivals(load.at_rate(per_minute=40), 1))
    assert {each.tenant for each in found} == {"c-1", "c-2", "c-3", "c-4"}
    assert len(found) == 1_200
