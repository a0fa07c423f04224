"""Small scenarios, and what is asked of them."""

from __future__ import annotations

from typing import Any

from headway.engine.settings import Settings
from headway.simulation import Report, Scenario, simulate
from headway.simulation.arrivals import Process
from headway.simulation.limiters import LimitModel
from headway.simulation.load import Load, TenantLoad
from headway.simulation.scenario import Models, scenario
from headway.simulation.upstream import Latency, UpstreamModel

HOUR_S = 3600.0
SITE = "site.example"


def settings(**policies: dict[str, Any]) -> Settings:
    """`settings(**{"upstream:site.example": {"limit": 1}})`."""
    found = Settings()
    for name, value in policies.items():
        kind, _, of = name.partition(":")
        found.declare("file", kind, of, value)
    return found


def site(**value: Any) -> Settings:
    """One upstream with these settings."""
    return settings(**{f"upstream:{SITE}": value})


def tenant(name: str = "ann", **more: Any) -> TenantLoad:
    more.setdefault("upstreams", (SITE,))
    return TenantLoad(name, **more)


def backlog(size: int, **more: Any) -> Process:
    return Process("all-at-once", size=size, **more)


def upstream(*limits: LimitModel, hold_s: float = 1.0, **more: Any) -> UpstreamModel:
    return UpstreamModel("", limits, Latency(hold_s, 0.0), **more)


def per_minute(limit: float, kind: str = "sliding-window", **more: Any) -> LimitModel:
    return LimitModel(kind, ((0.0, limit),), **more)


def made(
    policy: Settings, model: UpstreamModel, *tenants: TenantLoad, lasts_s: float = HOUR_S,
    **more: Any,
) -> Scenario:  # fmt: skip
    return scenario("it", policy, Models({"*": model}), Load("", tenants, lasts_s), **more)


def run(policy: Settings, model: UpstreamModel, *tenants: TenantLoad, **more: Any) -> Report:
    return simulate(made(policy, model, *tenants, **more))
