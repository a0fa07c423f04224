"""A policy for tenants that is for some of them only: those whose names start with a word."""

from __future__ import annotations

import pytest

from headway.core import Core, GatePolicy, Refused
from headway.core.policy import OPEN
from headway.engine.settings import policy_of
from tests.core.kit import ask, core_with, end, going, start

IP = GatePolicy(cap=1, only="ip:")


def host(tenant: GatePolicy | None, cap: int = 10) -> Core:
    return core_with(upstream={"x.com": GatePolicy(cap=cap, tenant=tenant)})


@pytest.mark.parametrize(
    ("tenant", "holds"),
    [("ip:1", True), ("ip:", True), ("ip", False), ("", False), ("IP:1", False), ("x ip:", False)],
)
def test_it_is_for_those_whose_name_starts_so(tenant: str, holds: bool) -> None:
    policy = GatePolicy(tenant=IP)
    assert policy.for_tenant(tenant) is (IP if holds else OPEN)


def test_without_a_word_it_is_for_all_and_without_a_policy_for_nobody() -> None:
    everybody = GatePolicy(cap=1)
    assert GatePolicy(tenant=everybody).for_tenant("") is everybody
    assert GatePolicy(tenant=everybody).for_tenant("ip:1") is everybody
    assert GatePolicy().for_tenant("ip:1") is OPEN


def test_one_place_for_each_ip_and_any_number_for_others() -> None:
    core = host(IP)
    for n in range(3):
        ask(core, ("ip", n), tenant="ip:1")
        ask(core, ("app", n), tenant="app")
        ask(core, ("nobody", n))
    assert sorted(going(core)) == [
        ("app", 0), ("app", 1), ("app", 2), ("ip", 0), ("nobody", 0), ("nobody", 1), ("nobody", 2)
    ]  # fmt: skip


def test_a_rest_after_each_release_is_for_them_alone() -> None:
    core = host(GatePolicy(cap=1, cooldown_s=30.0, only="ip:"))
    for tenant in ("ip:1", "app"):
        end(core, start(core, tenant, tenant=tenant), 1.0)
        ask(core, (tenant, "again"), 1.0, tenant=tenant)
    assert going(core, 1.0) == [("app", "again")]
    assert going(core, 30.9) == []
    assert going(core, 31.0) == [("ip:1", "again")]


def test_another_word_holds_at_once_for_all_who_are_there() -> None:
    core = host(IP)
    for n in range(2):
        ask(core, ("ip", n), tenant="ip:1")
        ask(core, ("app", n), tenant="app")
    assert sorted(going(core)) == [("app", 0), ("app", 1), ("ip", 0)]
    others = GatePolicy(cap=10, tenant=GatePolicy(cap=1, only="app"))
    core.gates.declare("upstream", "x.com", others, 1.0)
    ask(core, ("app", 2), 1.0, tenant="app")
    assert going(core, 1.0) == [("ip", 1)]


def test_waiters_are_limited_for_them_alone() -> None:
    core = host(GatePolicy(cap=1, max_waiters=1, only="ip:"), cap=1)
    start(core, "holder")
    ask(core, "first", tenant="ip:1")
    with pytest.raises(Refused):
        ask(core, "second", tenant="ip:1")
    for n in range(3):
        ask(core, n, tenant="app")


def test_it_is_set_like_all_other_settings() -> None:
    policy = policy_of("upstream", {"limit": 5, "tenant": {"limit": 1, "only": "ip:"}})
    assert policy == GatePolicy(cap=5, tenant=IP)
    assert policy != policy_of("upstream", {"limit": 5, "tenant": {"limit": 1}})
