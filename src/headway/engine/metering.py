"""From changes to meters: what is counted of each transition."""

from __future__ import annotations

from headway.core.change import Change
from headway.core.lifecycle import TERMINAL, Event
from headway.engine.meters import Meters

PUSHED_BACK = frozenset({Event.PUSHBACK, Event.PUSHED_BACK_TOO_LONG})
LOST = frozenset({Event.LOST, Event.LOST_TOO_OFTEN})


def count(meters: Meters, change: Change) -> None:
    event, ticket, permit = change.event, change.ticket, change.permit
    if event is Event.GRANT:
        held = ticket.permit
        if held is not None:
            meters.granted(ticket.lane, held.waited_s)
    elif permit is not None and event is not None:
        meters.ended(ticket.type, event, change.at - permit.granted_at)
        if event in PUSHED_BACK:
            meters.pushed_back("" if permit.upstream is None else permit.upstream.name)
        elif event in LOST:
            meters.lost_lease()
    elif event is None:
        meters.submitted()
    elif change.after in TERMINAL:
        meters.ended(ticket.type, event, None)
