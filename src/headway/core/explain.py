"""Why a ticket waits, since when, in which place, and when it should start.

Asking costs time in proportion to the tenants at one upstream, so this is for people who look at
a page, not for the path of a grant.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.core.gate import Closed, Gate
from headway.core.lifecycle import State
from headway.core.lines import Flow, Line
from headway.core.order import BOOSTED, Group
from headway.core.ticket import Ticket

if TYPE_CHECKING:
    from headway.core.core import Core

INF = float("inf")
EXACT = 5_000  # above so many tickets of one tenant its place is estimated from a sample
ENOUGH = 5  # grants before a tempo is believed


@dataclass(frozen=True, slots=True)
class Explanation:
    """`gate` holds the ticket back for `reason` since `since`. `position` 1 is next at its
    upstream (or lane); `starts_at` is an estimate, None when nothing is known.
    """

    state: State
    reason: str
    gate: str = ""
    detail: str = ""
    since: float | None = None
    opens_at: float | None = None
    position: int | None = None
    starts_at: float | None = None


def explain(core: Core, ticket: Ticket, now: float) -> Explanation:
    if ticket.state is State.PENDING:
        at = ticket.not_before
        return Explanation(ticket.state, "not_due", since=ticket.since, opens_at=at, starts_at=at)
    if ticket.state is State.QUEUED:
        return _explain_waiting(core, ticket, now)
    return Explanation(ticket.state, ticket.state.value, since=ticket.since)


def _explain_waiting(core: Core, ticket: Ticket, now: float) -> Explanation:
    key = None if ticket.key is None else core.admission.atlas.keys.get(ticket.key)
    if ticket.ordered and key is not None and ticket.place is None:
        first = min([*key.ready, *key.blocking])[1]
        detail = f"after {first.id} ({first.state.value})"
        return Explanation(ticket.state, "order", key.label, detail, ticket.since)
    answers = [
        _explain_in_line(core, ticket, line, now) for line in core.admission.atlas.route(ticket)
    ]
    return min(answers, key=lambda answer: INF if answer.starts_at is None else answer.starts_at)


def _explain_in_line(core: Core, ticket: Ticket, line: Line, now: float) -> Explanation:
    gate, closed = _what_holds(core, ticket, line, now)
    position, own = _place(ticket, line, now)
    opens_at = None if closed is None else closed.until
    paused = closed is not None and closed.reason == "paused"
    starts_at = None if paused else _estimate(line, ticket, position, own, opens_at, now)
    if gate is None or closed is None:
        home = line.upstream or line.track.home
        return Explanation(
            ticket.state, "behind", home.label, "", ticket.since, None, position, starts_at
        )
    by_door = closed.reason == "closed" and gate.door.closed_until > now
    since = gate.door.closed_since if by_door else ticket.since
    return Explanation(
        ticket.state,
        closed.reason,
        closed.gate or gate.label,
        closed.detail,
        since,
        opens_at,
        position,
        starts_at,
    )


def _what_holds(
    core: Core, ticket: Ticket, line: Line, now: float
) -> tuple[Gate | None, Closed | None]:
    """The gate that holds the ticket back the longest, as far as anybody can tell."""
    worst: tuple[Gate | None, Closed | None] = (None, None)
    weight = -1.0
    for gate in _gates(core, ticket, line):
        closed = gate.why_closed(now, ticket, leftover=line.leftover and gate.kind != "key")
        if closed is None:
            continue
        heavy = INF if closed.reason == "paused" else closed.until or 0.0
        if heavy > weight:
            worst, weight = (gate, closed), heavy
    return worst


def _gates(core: Core, ticket: Ticket, line: Line) -> Iterator[Gate]:
    yield from line.gates
    account = line.queue.shares.accounts.get(ticket.tenant)
    if account is not None:
        yield account
    if ticket.key is not None:
        key = core.admission.atlas.keys.get(ticket.key)
        if key is not None:
            yield key


# ---------------------------------------------------------------------- the place in line


def _place(ticket: Ticket, line: Line, now: float) -> tuple[int, int]:
    """(place at the upstream or lane, place among the tenant's own), both from 1."""
    group = line.queue.groups[ticket.tenant]
    own = 1 + _ahead_in(group, ticket.rank, ticket.seq)
    if ticket.rank < BOOSTED:
        return own, own
    shares = line.queue.shares
    hold_s = shares.hold_s or 1.0
    account = shares.accounts.get(ticket.tenant)
    weight = ticket.weight if account is None else account.weight
    my_turn = line.queue.tag(group, now) + (own - 1) * hold_s / weight
    before = 0.0
    for queue in shares.queues:
        if type(queue.owner) is not Line:
            continue
        for other in queue.groups.values():
            if other is group or other.tenant == ticket.tenant:
                continue
            theirs = shares.accounts.get(other.tenant)
            share = 1.0 if theirs is None else theirs.weight
            turns = (my_turn - queue.tag(other, now)) * share / hold_s
            before += min(other.waiting, max(0.0, turns + 0.5))
    return own + int(before), own


def _ahead_in(group: Group, rank: float, seq: int) -> int:
    """How many tickets of the group go before this rank."""
    heap = group.heap
    step = max(1, len(heap) // EXACT)
    ahead = sum(_count(entry, rank, seq) for entry in heap[::step] if entry[2].entry is entry)
    return ahead * step


def _count(entry: Any, rank: float, seq: int) -> int:
    item = entry[2]
    if type(item) is not Flow:
        return 1 if (entry[0], entry[1]) < (rank, seq) else 0
    if item.solo is not None:
        return 1 if item.head()[:2] < (rank, seq) else 0
    live = (inner for inner in item.heap if inner[2].entry is inner)
    return sum(1 for inner in live if (inner[0], inner[1]) < (rank, seq))


# ---------------------------------------------------------------------- the estimate


def _estimate(
    line: Line, ticket: Ticket, position: int, own: int, opens_at: float | None, now: float
) -> float | None:
    """When it should start. The next few grants follow from who holds the places now, later ones
    from the tempo so far: of the tenant's own grants if it had enough of them, else of all.
    """
    earliest = max(now, opens_at or now)
    shares = line.queue.shares
    home = line.upstream or line.track.home
    account = shares.accounts.get(ticket.tenant)
    mine = None if account is None else account.tempo
    if mine is not None and mine.grants >= ENOUGH and mine.waiting and own > 1:
        return max(earliest, now + own * mine.gap_s)
    if home.is_open(now) and account is not None:  # only its own pool or pace holds it back
        next_s = _next_releases_s(account, 1, now)
        if opens_at is not None or next_s is None:
            return opens_at
        return now + next_s
    soon = min(position, len(home.leases))
    soon_s = _next_releases_s(home, soon, now)
    if soon_s is None or (position > soon and shares.tempo.grants < ENOUGH):
        return opens_at
    return max(earliest, now + soon_s + (position - soon) * shares.tempo.gap_s)


def _next_releases_s(gate: Gate, count: int, now: float) -> float | None:
    """How long until so many of those who hold a place now have gone. Who has held it for longer
    than usual is expected to take as long again: holding times have long tails.
    """
    rate = 0.0
    for permit in gate.leases.values():
        if not permit.accounts:
            continue  # a place that comes free by the clock
        account = permit.accounts[-1]
        usual_s = account.hold_s or account.shares.hold_s
        if usual_s:
            rate += 1.0 / max(usual_s, now - permit.granted_at)
    return count / rate if rate else None
