"""What is remembered of sessions: in memory, and in the store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from headway.core.explain import Explanation
from headway.engine.slots.counts import Counts, Overshoot, total
from headway.engine.slots.session import (
    FAIRQUEUE,
    LEASE,
    OWN,
    Answer,
    Phase,
    Session,
    Waiter,
    Wish,
    number_and_rest,
)
from headway.store.records import SlotRow

if TYPE_CHECKING:
    from headway.engine.brain import Brain

LATE_S = 3600.0  # so long a holder that has outlived its lease is recognised
MAX_LATE = 100_000

_encode = msgspec.json.encode
_wish = msgspec.json.Decoder(Wish).decode


class Keeping:
    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.core = brain.core
        self.sessions: dict[int, Session] = {}  # that wait or hold
        self.explained = 0  # in this turn
        self.own: dict[int, None] = {}  # fences that are held in this process
        self.reclaimed: dict[int, Session] = {}  # in the order of their ends
        self.counted = {kind: Counts() for kind in (OWN, LEASE, FAIRQUEUE)}
        self.overshoot: dict[str, Overshoot] = {}  # by upstream
        self._shifted: dict[str, Overshoot] = {}  # in this turn

    @property
    def counts(self) -> Counts:
        """Of all kinds together."""
        return total(self.counted.values())

    # ------------------------------------------------------------------ finding

    def by_token(self, token: str) -> Session | None:
        """The session that a client names, if it knows its secret."""
        number, secret = number_and_rest(token)
        session = self.sessions.get(number)
        return session if session is not None and session.knows(secret) else None

    def by_slot_token(self, token: str) -> tuple[Session | None, int]:
        """Whose slot it is, also when its lease is over; and the fence."""
        number, rest = number_and_rest(token)
        fence, secret = number_and_rest(rest)
        session = self.sessions.get(number) or self.reclaimed.get(number)
        known = session is not None and fence == session.fence and session.knows(secret)
        return (session if known else None), fence

    def place(self, session: Session) -> Explanation | None:
        """Why it waits, for clients that want to know."""
        if session.wish.kind != LEASE or session.ticket is None:
            return None
        self.explained += 1
        return self.core.explain(session, self.core.now)

    # ------------------------------------------------------------------ telling

    def waiters(self) -> list[Waiter]:
        """All who wait for an answer; they get it from somebody else."""
        found: list[Waiter] = []
        for session in self.sessions.values():
            if session.waiter is not None:
                found.append(session.waiter)
                session.waiter = None
        return found

    def tell_waiter(self, session: Session, answer: Answer) -> None:
        waiter, session.waiter = session.waiter, None
        if waiter is not None:
            self.tell(waiter, answer)

    def tell(self, waiter: Waiter, answer: Answer) -> bool:
        """When all that is known now is committed. False: nobody is there any more."""
        if not waiter.set_running_or_notify_cancel():
            return False
        self.brain.outbox.acks.append((waiter, answer))
        return True

    # ------------------------------------------------------------------ storing

    def write(self, session: Session) -> None:
        wish = session.wish
        session.stored = True
        self.brain.batch.slots.append((
            session.number,
            session.phase,
            session.fence,
            session.upstream,
            None if wish.kind == OWN else _encode(wish).decode(),
            session.created_at,
            session.granted_at,
            session.lease_end,
            1 if session.claimed and not session.overdue else 0,
        ))  # fmt: skip

    def end(self, session: Session) -> None:
        session.phase = Phase.ENDED
        session.permit = None
        self.sessions.pop(session.number, None)
        if session.stored:
            self.brain.batch.slots_gone.append(session.number)

    # ------------------------------------------------------------------ leases that are over

    def reclaim(self, session: Session, now: float) -> None:
        """Its place is somebody else's. Whether its holder has gone shows later, or never."""
        session.phase = Phase.RECLAIMED
        session.ended_at = now
        self.counted[session.wish.kind].reclaimed += 1
        self._at(session).reclaimed += 1
        del self.sessions[session.number]
        if session.wish.kind == OWN:
            self.end(session)
        else:
            self.reclaimed[session.number] = session
            self.write(session)
        self._say(session, "slot_reclaimed", f"held for {now - session.granted_at:.1f} s", now)
        if session.late:
            self.outlived(session, now)
        if session.late == "released":
            self.forget_late(session)

    def outlived(self, session: Session, now: float) -> None:
        """A holder is heard of after its lease: until now there was one more than allowed."""
        if session.overdue:
            return
        session.overdue = True
        over_s = max(0.0, now - session.lease_end)
        self.counted[session.wish.kind].outlived += 1
        overshoot = self._at(session)
        overshoot.outlived += 1
        overshoot.outlived_s += over_s
        self.write(session)
        self._say(session, "slot_outlived", f"by {over_s:.1f} s", now)

    def _at(self, session: Session) -> Overshoot:
        """The counts of its upstream, which are stored with this turn."""
        name = session.upstream or ""
        overshoot = self.overshoot.setdefault(name, Overshoot())
        self._shifted[name] = overshoot
        return overshoot

    def write_totals(self) -> None:
        for name, each in self._shifted.items():
            row = (name, each.reclaimed, each.outlived, each.outlived_s)
            self.brain.batch.slot_totals.append(row)
        self._shifted.clear()

    def _say(self, session: Session, event: str, detail: str, now: float) -> None:
        wish = session.wish
        subject = f"upstream:{session.upstream}" if session.upstream else f"lane:{wish.lane}"
        whose = f"{session!r} of {wish.tenant or 'no tenant'}"
        self.brain.record(now, event, subject=subject, detail=f"{whose} {detail}")

    def forget_late(self, session: Session) -> None:
        if self.reclaimed.pop(session.number, None) is not None:
            self.end(session)

    def forget(self, now: float) -> None:
        """Holders that were never heard of again."""
        late = self.reclaimed
        while late:
            session = next(iter(late.values()))
            if len(late) <= MAX_LATE and session.ended_at > now - LATE_S:
                break
            self.forget_late(session)

    # ------------------------------------------------------------------ after a restart

    def take_back(
        self, rows: Iterable[SlotRow], totals: Iterable[tuple[str, int, int, float]], now: float
    ) -> list[Session]:
        """What the last engine knew. Slots of its own process went with it; whoever waits elsewhere
        is expected to ask again, and returned here.
        """
        for name, reclaimed, outlived, outlived_s in totals:
            self.overshoot[name] = Overshoot(reclaimed, outlived, outlived_s)
        waiting: list[Session] = []
        for row in rows:
            if row.wish is None:
                self.brain.batch.slots_gone.append(row.number)
                continue
            session = _session(row, now)
            if session.phase is Phase.RECLAIMED:
                self.reclaimed[row.number] = session
                continue
            self.sessions[row.number] = session
            if session.phase is Phase.WAITING:
                waiting.append(session)
            else:
                self._hold_on(session, row, now)
        return waiting

    def _hold_on(self, session: Session, row: SlotRow, now: float) -> None:
        """Who renews had nobody to renew with, and gets a whole lease to find this engine."""
        wish = session.wish
        session.ticket = ticket = wish.ticket(session)
        ticket.seq = session.seq
        lasting = wish.kind == LEASE and session.claimed
        session.permit = self.core.restore(
            ticket, now, fence=row.fence, upstream=row.upstream,
            granted_at=min(row.granted_at, now),
            expires_at=now + wish.terms.lease_s if lasting else row.lease_end,
        )  # fmt: skip
        session.permit.unused = not session.claimed
        session.lease_end = session.permit.expires_at


def _session(row: SlotRow, now: float) -> Session:
    session = Session(row.number, _wish(row.wish or "{}"), row.created_at)
    session.phase = Phase(row.phase)
    session.seen_at = now
    session.seq = row.number
    session.upstream = row.upstream
    session.fence = row.fence
    session.granted_at, session.lease_end = row.granted_at, row.lease_end
    session.ended_at = row.lease_end
    session.claimed = bool(row.claimed)
    session.overdue = session.phase is Phase.RECLAIMED and not row.claimed
    session.stored = True
    return session
