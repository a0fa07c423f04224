"""The desk for slots: sessions wait here, hold, and end. All of it runs in the brain's turn.

An acquire is a ticket whose holder is outside. A session is more than its ticket: it outlives the
requests of its client, and a restart. Its ticket stands in line while the client is there, or has
been a moment ago; who has been away for longer keeps its place in time, and is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from headway.core import Outcome, Permit
from headway.core.change import Change
from headway.core.kinds import UPSTREAM
from headway.core.lifecycle import TERMINAL, Event
from headway.engine.slots.holding import Holding
from headway.engine.slots.hosts import Hosts
from headway.engine.slots.session import (
    FAIRQUEUE,
    OWN,
    Answer,
    Phase,
    Session,
    Waiter,
    Wish,
)
from headway.store.records import SlotRow

if TYPE_CHECKING:
    from headway.engine.brain import Brain

INF = float("inf")
MAX_SESSIONS = 10_000
MANY = 32  # places in line that are worked out in one turn


class SlotDesk(Holding):
    def __init__(self, brain: Brain, hosts: Hosts) -> None:
        super().__init__(brain, hosts)
        self.max_sessions = MAX_SESSIONS
        self._fresh: list[Session] = []  # of this turn
        self._calendar: list[tuple[float, int, Session]] = []

    # ------------------------------------------------------------------ asking

    def open(self, wish: Wish, waiter: Waiter, until: float, now: float) -> Session | None:
        """Somebody asks for a slot. The waiter hears when it is granted, when it will not be, or at
        `until` that it is not yet.
        """
        if wish.kind != OWN and len(self.sessions) >= self.max_sessions:
            self.tell(waiter, Answer("overloaded"))
            return None
        if wish.kind == FAIRQUEUE:
            self.hosts.use(wish.upstreams[0], now)
        session = Session(self._next_number(), wish, now)
        if wish.throttles:
            shut = self._shut(session, now)
            if shut is not None:
                self.counted[wish.kind].throttled += 1
                self.tell(waiter, shut)
                return None
        session.waiter, session.until = waiter, until
        self.sessions[session.number] = session
        self.enter_host(session, now)
        try:
            self.line_up(session, now)
        except Exception:
            self.leave_host(session, now)
            del self.sessions[session.number]
            raise
        self.counted[wish.kind].created += 1
        self._fresh.append(session)
        return session

    def _next_number(self) -> int:
        """From the sequence of fences, which no restart sets back: no number is used twice."""
        self.core.admission.fence += 1
        return self.core.admission.fence

    def poll(self, session: Session | None, waiter: Waiter, until: float, now: float) -> None:
        """A client is back, to wait on or to hear what it has missed."""
        if session is None or session.phase in (Phase.RECLAIMED, Phase.ENDED):
            self.tell(waiter, Answer("unknown"))
            return
        before, session.waiter = session.waiter, None
        if before is not None:  # asked twice: the answer goes to the last who asked
            self.tell(before, Answer("pending", session))
        session.seen_at = now
        if session.phase is Phase.GRANTED:
            self._claim(session, waiter, until, now)
            return
        if now >= session.deadline:
            self.tell(waiter, Answer("timeout", session))
            self._time_out(session, now)
            return
        shut = self._shut(session, now) if session.wish.throttles else None
        if shut is not None:
            self.tell(waiter, shut)
            self._throttle(session, now)
            return
        session.waiter, session.until = waiter, until
        if not session.lined_up:
            self.line_up(session, now)
        self._arm(session)

    def _claim(self, session: Session, waiter: Waiter, until: float, now: float) -> None:
        """The client hears of a grant that came while it was away, or hears of it once more."""
        permit = session.permit
        assert permit is not None
        over = permit.expires_at <= now
        if over and not session.claimed:  # it waits again from this turn on, and is here
            session.waiter, session.until = waiter, until
            self.core.heartbeat(session, permit.fence, now)
            return
        if over or permit.fence not in self.core.leases.permits:  # or given back in this turn
            self.tell(waiter, Answer("unknown"))
            return
        if not session.claimed:
            session.claimed = True
            permit.unused = False
            self.core.heartbeat(session, permit.fence, now)
            session.lease_end = permit.expires_at
            self.write(session)
        elif now > session.granted_at + session.wish.terms.keep_s and session.wish.throttles:
            self.tell(waiter, Answer("unknown"))
            return
        if self.tell(waiter, Answer("granted", session, permit)):
            session.heard = waiter

    def hang_up(self, session: Session, waiter: Waiter, now: float) -> None:
        """The request is gone; its client may come back."""
        if session.waiter is waiter:
            session.waiter = None
            session.seen_at = now
            self._arm(session)
        elif session.heard is waiter and session.permit is not None and session.claimed:
            self._unclaim(session, session.permit, now)  # nobody was there to hear of it
            self.write(session)

    def leave(self, session: Session, now: float) -> str:
        """The client wants no slot any more; one that it was granted is free again."""
        if session.phase is Phase.WAITING:
            self.tell_waiter(session, Answer("cancelled", session))
            self._drop(session, now)
            return "cancelled"
        if session.phase is Phase.GRANTED:
            return "cancelled" if self.give_back(session, RETURNED, now) else "gone"
        return "gone"

    # ------------------------------------------------------------------ what the core decides

    def changed(self, change: Change) -> None:
        session: Any = change.ticket.id
        if session.ticket is not change.ticket:
            return  # it stands in line no more, or with another ticket
        if change.event is Event.GRANT:
            permit = change.ticket.permit
            if permit is not None:
                self._granted(session, permit, change.at)
        elif change.after in TERMINAL:
            self._over(session, change)

    def _granted(self, session: Session, permit: Permit, now: float) -> None:
        session.phase = Phase.GRANTED
        session.permit = permit
        session.fence = permit.fence
        session.granted_at = now
        session.upstream = None if permit.upstream is None else permit.upstream.name
        waiter, session.waiter = session.waiter, None
        session.claimed = waiter is not None and self.tell(
            waiter, Answer("granted", session, permit)
        )
        session.heard = waiter
        if not session.claimed:
            self._unclaim(session, permit, now)
        session.lease_end = permit.expires_at
        rule = session.wish.terms.weighting
        if rule is not None and session.host is not None:
            weight = session.host.weight(session.wish.tenant, rule, now)
            self.core.gates.weigh(permit, weight, now)
        self.leave_host(session, now)
        if session.wish.kind == OWN:
            self.own[permit.fence] = None
        self.counted[session.wish.kind].granted += 1
        self.brain.meters.slot_granted(
            now - session.created_at, session.wish.lane, session.upstream or ""
        )
        self.write(session)

    def _unclaim(self, session: Session, permit: Permit, now: float) -> None:
        """Kept for a moment for a client that is not there."""
        session.claimed = False
        permit.unused = True
        permit.expires_at = min(permit.expires_at, now + session.wish.terms.claim_s)
        session.lease_end = permit.expires_at
        self.core.leases.renewed(permit)

    def _over(self, session: Session, change: Change) -> None:
        """Its ticket has ended: it was given back, or the lease is over."""
        session.ticket = None
        if session.phase is not Phase.GRANTED:
            self.tell_waiter(session, Answer("timeout", session))
            self._drop(session, change.at)
            return
        self.own.pop(change.fence, None)
        if change.event is not Event.LOST_TOO_OFTEN:
            self.counted[session.wish.kind].released += 1
            self.end(session)
        elif session.claimed:
            self.reclaim(session, change.at)
        elif session.late == "released":  # it was not taken, and is not wanted
            self.tell_waiter(session, Answer("cancelled", session))
            self.end(session)
        else:
            self._wait_again(session, change.at)

    def _wait_again(self, session: Session, now: float) -> None:
        """Nobody took what was granted. Whoever comes back stands where it stood."""
        session.phase = Phase.WAITING
        session.permit, session.fence = None, 0
        self.enter_host(session, now)
        if session.waiter is not None:
            self.line_up(session, now)
        self.write(session)
        self._arm(session)

    def settle(self) -> None:
        """At the end of a turn: who has just come and must wait is stored and looked after."""
        now = self.core.now
        self.write_totals()
        if self._fresh:
            for session in self._fresh:
                if session.phase is Phase.WAITING and session.number in self.sessions:
                    if session.wish.kind != OWN:
                        self.write(session)
                    self._arm(session)
            self._fresh.clear()
        if self.hosts.waiting and self.core.admission.touched:
            for gate in list(self.core.admission.touched):
                if gate.opens_at > now and gate.kind == UPSTREAM:
                    self._send_away(gate.name, now)

    # ------------------------------------------------------------------ time

    def on_time(self, now: float) -> None:
        """Saying where somebody stands takes time in proportion to who else does, so one turn does
        it for so many only; the next comes at once.
        """
        calendar, self.explained = self._calendar, 0
        while calendar and calendar[0][0] <= now and self.explained < MANY:
            at, _, session = heappop(calendar)
            if at == session.armed_at:
                session.armed_at = INF
                self._look(session, now)

    def next_at(self) -> float:
        calendar = self._calendar
        while calendar and calendar[0][0] != calendar[0][2].armed_at:
            heappop(calendar)
        return calendar[0][0] if calendar else INF

    def _arm(self, session: Session) -> None:
        """Have the clock look when something is due. An entry that is early is put right then."""
        at = session.look_at()
        if at < session.armed_at:
            session.armed_at = at
            heappush(self._calendar, (at, session.number, session))

    def _look(self, session: Session, now: float) -> None:
        if session.phase is not Phase.WAITING:
            return
        if now >= session.deadline:
            self._time_out(session, now)
            return
        if session.waiter is not None:
            if now >= session.until:
                self.tell_waiter(session, Answer("pending", session, None, self.place(session)))
                session.seen_at = now
        elif now >= session.seen_at + session.wish.terms.idle_s:
            self._time_out(session, now)
            return
        elif session.lined_up and now >= session.seen_at + session.wish.terms.claim_s:
            self.step_out(session, now)
            self.leave_lobby(session, now)
        self._arm(session)

    def _time_out(self, session: Session, now: float) -> None:
        self.counted[session.wish.kind].timed_out += 1
        self.tell_waiter(session, Answer("timeout", session))
        self._drop(session, now)

    # ------------------------------------------------------------------ closed hosts

    def _shut(self, session: Session, now: float) -> Answer | None:
        """Why it makes no sense to wait: the breaker is open, or the host is closed for longer than
        this client would wait.
        """
        name = session.wish.upstreams[0]
        gate = self.core.admission.atlas.gates.get((UPSTREAM, name))
        if gate is None or (not gate.limits and gate.opens_at <= now):
            return None
        until, status, why = 0.0, 503, ""
        if session.deadline < gate.door.closed_until < INF:
            until, why = gate.door.closed_until, gate.door.closed_why
            status = 429 if why.startswith("429") else 503
        breaker = self.core.gates.breaker_of(name)
        if breaker is not None and breaker.state == "open" and breaker.opens_at > now:
            until = max(until, breaker.opens_at)
            status, why = breaker.status or status, why or "too many bad answers"
        return Answer("throttled", session, None, None, until, status, why) if until else None

    def _send_away(self, name: str, now: float) -> None:
        host = self.hosts.waiting.get(name)
        for session in () if host is None else list(host.waiting):
            shut = self._shut(session, now) if session.waiter is not None else None
            if shut is not None:
                self.tell_waiter(session, shut)
                self._throttle(session, now)

    def _throttle(self, session: Session, now: float) -> None:
        self.counted[session.wish.kind].throttled += 1
        self._drop(session, now)

    # ------------------------------------------------------------------ ending

    def _drop(self, session: Session, now: float) -> None:
        """It waits no more."""
        self.step_out(session, now)
        self.leave_host(session, now)
        self.end(session)

    def reset(self, kind: str, now: float) -> int:
        """Forget all that wait and were asked for in this way. Slots that are held stay."""
        waiting = [session for session in self.sessions.values()
                   if session.phase is Phase.WAITING and session.wish.kind == kind]  # fmt: skip
        for session in waiting:
            self.tell_waiter(session, Answer("timeout", session))
            self._drop(session, now)
        return len(waiting)

    def send_home(self, now: float) -> None:
        """The requests that wait are answered; their sessions wait on."""
        for session in self.sessions.values():
            if session.waiter is not None and session.wish.kind != OWN:
                self.tell_waiter(session, Answer("pending", session))
                session.seen_at = now
                self._arm(session)

    def sweep(self, now: float) -> None:
        self.hosts.sweep(now)
        self.forget(now)

    def load(
        self, rows: Iterable[SlotRow], totals: Iterable[tuple[str, int, int, float]], now: float
    ) -> None:
        """What the last engine knew of."""
        for session in self.take_back(rows, totals, now):
            self.enter_host(session, now)
            self._arm(session)
        for session in self.sessions.values():
            if session.wish.kind == FAIRQUEUE:
                self.hosts.use(session.wish.upstreams[0], now)


RETURNED = Outcome.returned()
