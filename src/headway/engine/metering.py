"""From changes to meters: what is counted of each transition."""

from __future__ import annotations

from headway.core.change import Change
from headway.core.lifecycle import TERMINAL, Event, State
from headway.core.permit import Permit
from headway.engine.meters import Meters

PUSHED_BACK = frozenset({Event.PUSHBACK, Event.PUSHED_BACK_TOO_LONG})
LOST = frozenset({Event.LOST, Event.LOST_TOO_OFTEN})
# The attempt was no success, whether it is tried again or not.
FAILED = LOST | {
    Event.RETRY, Event.FATAL, Event.EXHAUSTED, Event.DEADLINE, Event.PUSHED_BACK_TOO_LONG,
}  # fmt: skip


def count(meters: Meters, change: Change) -> None:
    event, ticket, permit = change.event, change.ticket, change.permit
    if event is Event.GRANT:
        held = ticket.permit
        if held is not None:
            meters.granted(ticket.lane, held.waited_s, _upstream(held))
        else:  # it has ended in the same turn
            meters.lined_up(ticket.lane, -1)
    elif permit is not None and event is not None:
        meters.ended(ticket.type, event, change.at - permit.granted_at)
        _count_end(meters, ticket.lane, _upstream(permit), event)
    elif event is None:
        meters.submitted()
    elif change.after in TERMINAL:
        meters.ended(ticket.type, event, None)
        if change.after is State.FAILED:
            meters.places.lane(ticket.lane).failed += 1
    if event is not Event.GRANT and State.QUEUED in (change.before, change.after):
        joined = (change.after is State.QUEUED) - (change.before is State.QUEUED)
        meters.lined_up(ticket.lane, joined)


def _count_end(meters: Meters, lane: str, upstream: str, event: Event) -> None:
    place = meters.places.at(lane, upstream)
    if event is Event.OK:
        place.completed()
        return
    if event in PUSHED_BACK:
        meters.pushed_back(upstream)
        place.pushed_back()
    elif event in LOST:
        meters.lost_lease()
    if event in FAILED:
        place.failed()


def _upstream(permit: Permit) -> str:
    return "" if permit.upstream is None else permit.upstream.name
