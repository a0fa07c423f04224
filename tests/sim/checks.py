"""The checkers. Each compares what the core did with what the model says it may do, and raises
`Violation` with the name of the rule that was broken.
"""

from __future__ import annotations

from headway.core import Change, Core, Kind, Outcome, State, Ticket, Traffic
from headway.core.lines import SharedGate
from tests.sim.model import INF, LEGAL, Held, Model

EPSILON = 1e-6


class Violation(AssertionError):
    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


def check_change(model: Model, change: Change) -> None:
    """Transitions are legal, connected, and end when they end."""
    id, before = change.ticket.id, change.before
    known = model.states.get(id)
    if before is None:
        if known is not None:
            raise Violation("states", f"{change} but {id} was known as {known}")
    elif known is not before:
        raise Violation("states", f"{change} but {id} was {known}")
    if change.after not in LEGAL[before]:
        raise Violation("legal transitions", str(change))
    ended = known in (State.COMPLETED, State.FAILED, State.CANCELLED)
    if ended and (change.event is None or change.event.value != "retry_by_operator"):
        raise Violation("terminal states are final", str(change))


def check_grant(model: Model, held: Held, now: float) -> None:
    """A permit was handed out: was it allowed to be? (The model counts it already.)"""
    ticket = held.ticket
    for name in held.names:
        leftover = ticket.traffic == 2 and name[0] != "key"
        if len(model.inside[name]) > model.room(name, leftover=leftover):
            raise Violation("pools are never exceeded", f"{name} by {ticket} at {now}")
        if model.shut(name, now):
            raise Violation("nobody enters a closed gate", f"{name} by {ticket} at {now}")
        policy = model.policy(name)
        rest = now - model.released.get(name, -INF)
        if policy.cooldown_s and rest < policy.cooldown_s - EPSILON:
            raise Violation("cooldown", f"{name} by {ticket} after {rest}")
    if model.states.get(ticket.id) is not State.QUEUED:
        raise Violation("only queued tickets go", f"{ticket} was {model.states.get(ticket.id)}")
    if model.out_of_order(ticket):
        raise Violation("key order", f"{ticket} of {ticket.key} at {now}")
    check_pace(model, held.upstream, now)


def check_pace(model: Model, upstream: str | None, now: float) -> None:
    pace = None if upstream is None else model.policy(("upstream", upstream)).pace
    if pace is None or upstream is None:
        return
    grants = model.grants[upstream]
    if len(grants) > pace.burst and now - grants[-1 - pace.burst] < pace.interval_s - EPSILON:
        raise Violation("paces are never beaten", f"{upstream}: {grants[-1 - pace.burst :]}")


def check_leases(model: Model, core: Core) -> None:
    """What is running is the set of live leases, at every gate."""
    if core.leases.permits.keys() != model.held.keys():
        raise Violation("running = live leases", f"{core.leases.permits} != {model.held}")
    for gate in core.admission.atlas.all_gates():
        if gate.kind == "tenant":
            name = ("tenant", gate.label.removeprefix("tenant:"))
            if name not in model.inside:  # a tenant at a lane: the model has none of those
                continue
        else:
            name = (gate.kind, gate.name)
        inside = model.inside.get(name, set())
        if gate.leases.keys() != inside:
            raise Violation("running = live leases", f"{name}: {gate.leases} != {inside}")


def check_running(model: Model) -> None:
    running = {held.ticket.id for held in model.held.values()}
    claimed = {id for id, state in model.states.items() if state is State.RUNNING}
    if running != claimed:
        raise Violation("running = live leases", f"{running} hold permits, {claimed} say running")


def check_work_conserving(model: Model, core: Core, now: float) -> None:
    """No ticket waits while its gates are open and unreserved."""
    reserved: dict[tuple[str, str], Ticket] = {}
    for ticket, (_, gates) in core.admission.reservations.items():
        for gate in gates:
            reserved[gate.kind, gate.label.partition(":")[2]] = ticket
    for ticket in model.tickets.values():
        if model.states[ticket.id] is not State.QUEUED or model.out_of_order(ticket):
            continue
        for way in model.ways_of(ticket):
            for name in way:
                if _blocks(model, core, name, ticket, reserved, now):
                    break
            else:
                raise Violation("work conservation", f"{ticket} idles at {now} before {way}")


def check_reservations(model: Model, core: Core, now: float) -> None:
    """No place is kept for somebody who waits at a door that stays shut."""
    patience_s = core.admission.patience_s
    for ticket in core.admission.reservations:
        for name in model.ways_of(ticket)[0] if len(ticket.upstreams) < 2 else ():
            if name in model.paused or model.closed.get(name, -INF) > now + patience_s:
                raise Violation("kept places are used soon", f"{ticket} waits at {name}")


def _blocks(
    model: Model,
    core: Core,
    name: tuple[str, str],
    ticket: Ticket,
    reserved: dict[tuple[str, str], Ticket],
    now: float,
) -> bool:
    policy = model.policy(name)
    inside = len(model.inside.get(name, ()))
    if policy.cap is not None:
        leftover = ticket.traffic is Traffic.LEFTOVER and name[0] != "key"
        free = policy.cap - inside - (policy.reserve if leftover else 0)
        if free <= 0 or (free == 1 and reserved.get(name, ticket) is not ticket):
            return True
    if name in model.paused or model.closed.get(name, -INF) > now:
        return True
    if policy.plain:
        return False
    if policy.cooldown_s and now - model.released.get(name, -INF) < policy.cooldown_s:
        return True
    return name[0] == "upstream" and _paced(model, core, name[1], now)


def _paced(model: Model, core: Core, upstream: str, now: float) -> bool:
    """Spacing with jitter, and breakers, are asked of the gate itself, but not believed blindly:
    a gate may not stay closed longer than its rules can explain.
    """
    gate = core.gate("upstream", upstream)
    if gate.opens_at <= now:
        return False
    policy = model.policy(("upstream", upstream))
    longest = model.closed.get(("upstream", upstream), -INF)
    longest = max(longest, model.spaced_until.get(upstream, -INF))
    if policy.cooldown_s:
        released = model.released.get(("upstream", upstream), -INF)
        longest = max(longest, released + policy.cooldown_s)
    if policy.breaker is not None:
        longest = max(longest, now + policy.breaker.open_s)
    if gate.opens_at > longest + EPSILON:
        raise Violation("gates open in time", f"{upstream} until {gate.opens_at}, not {longest}")
    return True


def check_counts(model: Model, core: Core) -> None:
    """The numbers of waiters that limits and explanations rely on."""
    for gate in core.admission.atlas.gates.values():
        if not isinstance(gate, SharedGate) or gate.kind != "upstream":
            continue
        waiting = sum(line.waiting for line in gate.lines)
        truth = sum(
            1
            for ticket in model.tickets.values()
            if model.states[ticket.id] is State.QUEUED and gate.name in ticket.upstreams
        )
        if waiting != truth:
            raise Violation("waiters are counted", f"{gate.name}: {waiting} != {truth}")


def check_stale(core: Core, change: Change | None, changes: int) -> None:
    if change is not None or len(core.changes) != changes:
        raise Violation("stale fences change nothing", f"{change}")


def check_finish(change: Change | None, asked_to_cancel: bool, outcome: Outcome) -> None:
    """Cancel wins or loses once."""
    if change is None:
        raise Violation("live fences are heard", "a live permit could not be given back")
    if asked_to_cancel:
        expected = State.COMPLETED if outcome.kind is Kind.OK else State.CANCELLED
        if change.after is not expected:
            raise Violation("cancel wins or loses once", f"{change} after {outcome.kind}")
