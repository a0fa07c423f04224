"""Upstreams and loads that have a name. Loads are shares of what the upstream bears, so that each
of them makes sense at each upstream; which upstreams are called is said by the policy.
"""

from __future__ import annotations

from headway.simulation.arrivals import Process
from headway.simulation.limiters import LimitModel
from headway.simulation.load import Load, TenantLoad
from headway.simulation.upstream import BanModel, Latency, UpstreamModel


def _rate(kind: str, limit: float, burst: float = 1.0) -> LimitModel:
    return LimitModel(kind, ((0.0, limit),), 60.0, burst)


def _at_once(limit: float, *, per_tenant: bool = False) -> LimitModel:
    return LimitModel("concurrency", ((0.0, limit),), per_tenant=per_tenant)


UPSTREAMS: dict[str, UpstreamModel] = {
    each.name: each
    for each in (
        UpstreamModel("window", (_rate("sliding-window", 60),), retry_after=True,
                      about="60 calls in any minute, and says when to come back"),
        UpstreamModel("fixed-window", (_rate("fixed-window", 60),), retry_after=True,
                      about="60 calls in each minute of the clock"),
        UpstreamModel("bucket", (_rate("token-bucket", 60, 20),),
                      about="60 calls a minute, 20 at once after a rest, and says nothing"),
        UpstreamModel("gcra", (_rate("gcra", 60, 5),), retry_after=True,
                      about="one call a second, five at once after a rest"),
        UpstreamModel("headers", (_rate("sliding-window", 120),), headers=True, retry_after=True,
                      about="120 calls a minute, and each answer says how many are left"),
        UpstreamModel("cap", (_at_once(4),), Latency(4.0, 0.6),
                      about="4 calls at once of about 4 s"),
        UpstreamModel("strict", (_rate("sliding-window", 30), _at_once(2)), Latency(2.0, 0.4),
                      ban=BanModel(5, 60.0, 900.0),
                      about="30 calls a minute and 2 at once; bans who insists for 15 minutes"),
        UpstreamModel("per-tenant", (_at_once(2, per_tenant=True), _at_once(24)),
                      Latency(20.0, 0.8), about="2 at once for each tenant, 24 for all"),
        UpstreamModel("changes",
                      (LimitModel("sliding-window", ((0.0, 120), (28_800.0, 40), (64_800.0, 90))),),
                      retry_after=True,
                      about="120 calls a minute, 40 from 08:00 on, 90 from 18:00 on"),
        UpstreamModel("slow", (), Latency(1.0, 0.4), knee=8, slower_by=0.25,
                      about="refuses nobody, but is slower above 8 calls at once"),
        UpstreamModel("shaky", (_rate("sliding-window", 60),), retry_after=True, errors=0.03,
                      outages=((21_600.0, 23_400.0),),
                      about="60 calls a minute, 3 % errors, and half an hour of nothing at 06:00"),
        UpstreamModel("open", (), about="bears everything"),
    )
}  # fmt: skip


def _five(process: Process, share: float) -> tuple[TenantLoad, ...]:
    """Five tenants of equal weight and different size; together they ask for this share."""
    sizes = (("ann", 0.40), ("ben", 0.25), ("cho", 0.15), ("dia", 0.12), ("eve", 0.08))
    return tuple(TenantLoad(name, process, share=share * part) for name, part in sizes)


LOADS: dict[str, Load] = {
    each.name: each
    for each in (
        Load("office", _five(Process("diurnal"), 0.6),
             about="five tenants with the day: 60 % of the limit, more than it at noon"),
        Load("steady", _five(Process("steady"), 0.8), about="80 % of the limit, evenly"),
        Load("random", _five(Process("poisson"), 0.8), about="80 % of the limit, by chance"),
        Load("overload", _five(Process("poisson"), 1.3), about="30 % more than the limit, all day"),
        Load("bursts", _five(Process("bursts", size=100), 0.6),
             about="60 % of the limit, a hundred at a time"),
        Load("backlog", _five(Process("all-at-once"), 0.5), about="half a day's work, at once"),
        Load("greedy", (
            TenantLoad("magpie", Process("all-at-once"), share=0.5),
            TenantLoad("wren", Process(), count=4, share=0.4),
        ), about="one tenant wants half a day's work at once; four others want a little all day"),
        Load("priorities", (
            TenantLoad("shop", Process("diurnal"), share=0.9,
                       priorities=((1, 0.1), (5, 0.6), (9, 0.3))),
        ), about="one tenant, urgent, usual and patient work"),
        Load("online", (
            TenantLoad("people", Process("diurnal"), online=1.0, share=0.4),
            TenantLoad("batch", Process("all-at-once"), leftover=True, share=0.5),
        ), about="people who never wait, and a batch on what they leave over"),
    )
}  # fmt: skip
