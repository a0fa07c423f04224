"""What holders say: that they go on, what the upstream answered, that they are done.

Each word carries the fence of its grant. One that comes too late changes nothing for the next
holder; that it came is counted.
"""

from __future__ import annotations

from headway.core import Outcome
from headway.core.outcome import Kind
from headway.engine.slots.session import Phase, Session
from headway.engine.slots.standing import Standing


class Holding(Standing):
    def release(self, session: Session, fence: int, outcome: Outcome, now: float) -> bool:
        """A holder gives its slot back. False: the lease was over, and somebody else may have it;
        that the holder went on is counted.
        """
        if session.phase is Phase.RECLAIMED:
            self.outlived(session, now)
            self.forget_late(session)
            return False
        if session.phase is not Phase.GRANTED or session.fence != fence:
            return False
        if session.permit is not None:
            session.permit.unused = False  # whoever gives it back has heard of it
        return self.give_back(session, outcome, now)

    def give_back(self, session: Session, outcome: Outcome, now: float) -> bool:
        """False: its lease ends in this very turn."""
        if self.core.finish(session, session.fence, outcome, now) is None:
            session.late = "released"
            return False
        self._count(session, outcome.kind)
        return True

    def _count(self, session: Session, kind: Kind) -> None:
        place = self.brain.meters.places.at(session.wish.lane, session.upstream or "")
        if kind is Kind.OK:
            place.completed()
        elif kind is Kind.PUSHBACK:
            place.pushed_back()
        elif kind is Kind.FAILED:
            place.failed()

    def renew(
        self, session: Session, fence: int, lease_s: float | None, now: float
    ) -> float | None:
        """Prolong a lease. When it ends; None: it is over, and whoever asks went on too long."""
        permit = session.permit
        if session.phase is Phase.RECLAIMED and session.fence == fence:
            self.outlived(session, now)
        if session.phase is not Phase.GRANTED or permit is None or permit.fence != fence:
            return None
        session.seen_at = now
        longer = lease_s is not None and lease_s != permit.lease_s
        if lease_s is not None:
            permit.lease_s = lease_s
        ends_at = self.core.heartbeat(session, fence, now)
        if ends_at is None:
            session.late = session.late or "renewed"
            return None
        session.lease_end = ends_at
        if longer or not session.claimed:
            session.claimed = True
            permit.unused = False
            session.lend(permit.lease_s)
            self.write(session)
        return ends_at

    def report(self, session: Session, fence: int, outcome: Outcome, now: float) -> bool:
        """What the upstream answered to somebody who goes on holding. False: it does not hold."""
        permit = session.permit
        if session.phase is not Phase.GRANTED or permit is None or permit.fence != fence:
            return False
        if permit.fence not in self.core.leases.permits or permit.expires_at <= now:
            return False
        gates = self.core.gates
        if permit.upstream is not None:
            gates.report(permit.upstream.name, outcome, now)
            if outcome.kind is Kind.PUSHBACK:
                gates.push_back(permit, outcome, now)
                self._count(session, outcome.kind)
            elif outcome.kind is Kind.OK:
                gates.answered(permit)
        return True
