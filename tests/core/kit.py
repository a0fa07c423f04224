"""A core with a few declared gates, and the four things that tests do with it all the time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from random import Random
from typing import Any

from headway.core import Change, Core, GatePolicy, Outcome, Permit, Policies, Ticket

INF = float("inf")
X = ("x.com",)  # the upstream of tests that need just one
Y = ("y.com",)

Gates = Mapping[str, GatePolicy]


def policies_of(**kinds: Gates) -> Policies:
    """`policies_of(upstream={"x.com": GatePolicy(cap=1)})`."""
    policies = Policies()
    for kind, gates in kinds.items():
        for name, policy in gates.items():
            policies.declare(kind, name, policy)
    return policies


def core_with(
    *,
    everything: GatePolicy | None = None,
    type: Gates | None = None,
    lane: Gates | None = None,
    tool: Gates | None = None,
    upstream: Gates | None = None,
    key: Gates | None = None,
    seed: int = 0,
    **options: Any,
) -> Core:
    """A core in which only these gates limit anything. `options` go to `Core`."""
    policies = policies_of(
        everything={} if everything is None else {"": everything},
        type=type or {},
        lane=lane or {},
        tool=tool or {},
        upstream=upstream or {},
        key=key or {},
    )
    return Core(policies, rng=Random(seed), **options)


def ask(core: Core, id: Hashable, now: float = 0.0, **fields: Any) -> Ticket:
    """Submit a ticket. Without a word about upstreams it goes to x.com."""
    fields.setdefault("upstreams", X)
    ticket = Ticket(id, **fields)
    core.submit(ticket, now)
    return ticket


def going(core: Core, now: float = 0.0) -> list[Hashable]:
    """Who is let in at this moment, in order."""
    return [permit.ticket.id for permit in core.admit(now)]


def start(core: Core, id: Hashable, now: float = 0.0, **fields: Any) -> Ticket:
    """Submit a ticket that must go at once."""
    ticket = ask(core, id, now, **fields)
    assert id in going(core, now), f"{id!r} had to wait"
    return ticket


def permit_of(ticket: Ticket) -> Permit:
    assert ticket.permit is not None, f"{ticket} holds no permit"
    return ticket.permit


def end(core: Core, ticket: Ticket, now: float, outcome: Outcome | None = None) -> Change:
    """The attempt ends, well unless said otherwise."""
    change = core.finish(ticket.id, permit_of(ticket).fence, outcome or Outcome.ok(), now)
    assert change is not None
    return change


def tug_of_war(
    core: Core, start_at: float, rounds: int, upstreams: tuple[str, ...]
) -> float | None:
    """Lane and tool have one place each. One crowd needs only the lane, another only the tool, and
    they give back in turns, so that never both are free at once. When does the ticket "both", which
    needs both of them, go?
    """
    holders = {
        "lane": start(core, ("lane", start_at), start_at, lane="narrow", upstreams=()),
        "tool": start(
            core, ("tool", start_at), start_at, lane="wide", tools=("ffmpeg",), upstreams=()
        ),
    }
    if "both" not in core.tickets:
        ask(core, "both", start_at, lane="narrow", tools=("ffmpeg",), upstreams=upstreams)
    for n in range(1, rounds):
        now = start_at + n
        ask(core, ("lane", now), now, lane="narrow", upstreams=())
        ask(core, ("tool", now), now, lane="wide", tools=("ffmpeg",), upstreams=())
        holder = holders.pop(("lane", "tool")[n % 2], None)
        if holder is not None:
            end(core, holder, now)
        for permit in core.admit(now):
            if permit.ticket.id == "both":
                return now
            holders[permit.ticket.id[0]] = permit.ticket  # type: ignore[index]
    return None
