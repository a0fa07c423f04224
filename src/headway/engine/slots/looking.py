"""What can be seen of slots: sessions as plain data, and how many there are. Taken in the brain's
turn, so that nothing moves meanwhile; no secret is in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headway.core.explain import Explanation
from headway.engine.slots.session import FAIRQUEUE, LEASE, OWN, Phase, Session

if TYPE_CHECKING:
    from headway.engine.slots.desk import SlotDesk

KINDS = (OWN, LEASE, FAIRQUEUE)
SEEN = (Phase.WAITING, Phase.GRANTED, Phase.RECLAIMED)


def sessions_in(desk: SlotDesk, state: str | None) -> list[Session]:
    """Those that may be in this state, or all, in the order in which they came. Only a copy: which
    of them are wanted is looked up elsewhere, so that the brain can go on.
    """
    found: list[Session] = []
    if state != Phase.RECLAIMED:
        found += desk.sessions.values()
    if state in (None, Phase.RECLAIMED):
        found += desk.reclaimed.values()
    return found


def is_there(session: Session, state: str | None, upstream: str | None) -> bool:
    """Whether it is (still) in this state, and wants or holds this upstream."""
    if session.phase not in SEEN or state not in (None, session.phase):
        return False
    wanted = session.wish.upstreams if session.upstream is None else (session.upstream,)
    return upstream is None or upstream in wanted


def is_absent(session: Session) -> bool:
    """It would be granted nothing now: its client has been away for too long."""
    return session.phase is Phase.WAITING and session.waiter is None and not session.lined_up


def picture(desk: SlotDesk, session: Session, now: float) -> dict[str, Any]:
    """One session as it is now; times as numbers, None for what is not (yet)."""
    wish = session.wish
    waiting = session.phase is Phase.WAITING
    held_until = session.ended_at if session.phase is Phase.RECLAIMED else now
    waited_until = now if waiting else session.granted_at
    return {
        "id": session.number,
        "kind": wish.kind,
        "state": session.phase.value,
        "upstream": session.upstream,
        "upstreams": list(wish.upstreams),
        "tenant": wish.tenant,
        "holder": wish.holder,
        "lane": wish.lane,
        "key": wish.key,
        "tools": list(wish.tools),
        "priority": wish.priority,
        "weight": wish.weight,
        "fence": session.fence or None,
        "since": session.created_at,
        "granted_at": None if waiting else session.granted_at,
        "held_s": None if waiting else max(0.0, held_until - session.granted_at),
        "waited_s": max(0.0, waited_until - session.created_at),
        "lease_ends_at": None if waiting else _lease_end(session),
        "attached": session.waiter is not None,
        "in_line": waiting and session.ticket is not None,
        "claimed": not waiting and session.claimed,
        **_why(desk, session, now),
    }


def _lease_end(session: Session) -> float:
    return session.lease_end if session.permit is None else session.permit.expires_at


def _why(desk: SlotDesk, session: Session, now: float) -> dict[str, Any]:
    if session.phase is not Phase.WAITING:
        return wait_of(None, None)
    if session.ticket is not None:
        return wait_of(desk.core.explain(session, now), None)
    return wait_of(None, "absent" if session.waiter is None else "lobby")


def wait_of(why: Explanation | None, reason: str | None) -> dict[str, Any]:
    """Why somebody waits; a reason that the core does not know of stands for itself."""
    if why is None:
        detail = "" if reason is None else REASONS[reason]
        return {"wait_reason": reason, "wait_gate": "", "wait_detail": detail, "position": None,
                "eta": None, "opens_at": None}  # fmt: skip
    return {"wait_reason": why.reason, "wait_gate": why.gate, "wait_detail": why.detail,
            "position": why.position, "eta": why.starts_at, "opens_at": why.opens_at}  # fmt: skip


REASONS = {
    "absent": "its client has been away for too long to be waited for",
    "lobby": "as many as may stand in line already",
    "asked_again": "another request waits for it now",
    "stopping": "the server is about to stop",
}


# ---------------------------------------------------------------------- how many


def tally(desk: SlotDesk) -> dict[str, dict[str, int]]:
    """Sessions that wait, are absent, or hold, by their kind."""
    found: dict[str, dict[str, int]] = {
        kind: {"waiting": 0, "absent": 0, "granted": 0} for kind in KINDS
    }
    for session in desk.sessions.values():
        state = "absent" if is_absent(session) else session.phase.value
        found[session.wish.kind][state] += 1
    return found


def counts(desk: SlotDesk) -> dict[str, int]:
    """What has happened since this process started."""
    seen = desk.counts
    return {
        "created": seen.created,
        "granted": seen.granted,
        "throttled": seen.throttled,
        "timeout": seen.timed_out,
        "released": seen.released,
        "reclaimed": seen.reclaimed,
        "outlived": seen.outlived,
    }


def overshoot(desk: SlotDesk) -> list[tuple[str, int, int, float]]:
    """(upstream, reclaimed, outlived, seconds) since ever, the worst first."""
    rows = [
        (name, each.reclaimed, each.outlived, each.outlived_s)
        for name, each in desk.overshoot.items()
    ]
    rows.sort(key=lambda row: (-row[2], -row[1], row[0]))
    return rows
