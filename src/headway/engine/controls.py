"""What operators and programs ask the engine to do. Everything here runs in the brain's turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from headway.core import IllegalTransition, State, Ticket
from headway.core.change import UnknownTicket
from headway.core.explain import Explanation
from headway.core.kinds import UPSTREAM
from headway.core.lifecycle import TERMINAL, Event
from headway.engine.intake import announce, remember, take_in
from headway.engine.retention import KIND as RETENTION
from headway.engine.retention import NAME as JOBS
from headway.engine.settings import policy_of
from headway.engine.tickets import FAR
from headway.errors import UnknownJob
from headway.store.records import Schedule

if TYPE_CHECKING:
    from headway.engine.brain import Brain


class Controls:
    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._core = brain.core

    # ------------------------------------------------------------------ who asks

    @contextmanager
    def acting(self, who: str | None) -> Iterator[None]:
        """What is written into the trail meanwhile was done by this one."""
        self._brain.who = who
        try:
            yield
        finally:
            self._brain.who = None

    def steer(self, verb: str, id: int, args: Sequence[Any], now: float, who: str | None) -> State:
        """Do to a job what somebody asks for; if they have a name, it is in the trail."""
        with self.acting(who):
            written = self._brain.written
            state: State = getattr(self, verb)(id, *args, now)
            if who is not None and self._brain.written == written:
                self._brain.record(now, "asked", job=id, detail=verb)
        return state

    # ------------------------------------------------------------------ jobs

    def cancel(self, id: int, now: float) -> State:
        return self._core.cancel(self._open(id, Event.CANCEL).id, now)

    def pause(self, id: int, now: float) -> State:
        return self._core.pause(self._open(id, Event.PAUSE).id, now)

    def resume(self, id: int, now: float) -> State:
        ticket = self._open(id, Event.RESUME)
        asked = ticket.asked
        state = self._core.resume(id, now)
        if asked is not None:
            self._brain.ledger.touch(ticket)
            self._brain.record(now, "resume", job=id)
        return state

    def prioritise(self, id: int, priority: int, now: float) -> State:
        if type(priority) is not int:
            raise ValueError(f"a priority is a whole number, not {priority!r}")
        ticket = self._open(id, Event.POSTPONE)
        self._core.prioritise(id, priority, now)
        return self._noted(ticket, "prioritise", str(priority), now)

    def pin(self, id: int, now: float) -> State:
        ticket = self._open(id, Event.POSTPONE)
        self._core.pin(id, now)
        return self._noted(ticket, "pin", "", now)

    def unpin(self, id: int, now: float) -> State:
        ticket = self._open(id, Event.POSTPONE)
        if not self._core.unpin(id, now):
            return ticket.state
        return self._noted(ticket, "unpin", "", now)

    def reschedule(self, id: int, not_before: float, now: float) -> State:
        if isinstance(not_before, bool) or not 0 <= not_before < FAR:
            raise ValueError(f"a time is a number of seconds since 1970, not {not_before!r}")
        ticket = self._open(id, Event.POSTPONE)
        self._due(ticket, not_before, now)
        return self._noted(ticket, "reschedule", "", now)

    def _due(self, ticket: Ticket, not_before: float, now: float) -> None:
        """Another time; a job that waits for others has it when they are done."""
        number: Any = ticket.id
        if number in self._brain.waits:
            self._brain.extras[number].not_before = not_before
        else:
            self._core.reschedule(number, not_before, now)

    def replace(self, id: int, not_before: float, priority: int, now: float) -> None:
        """The payload is another one already; the rest follows, unless the job has started."""
        ticket = self._core.tickets.get(id)
        if ticket is None or ticket.state is State.RUNNING:
            return
        self._core.prioritise(id, priority, now)
        self._due(ticket, not_before, now)
        self._noted(ticket, "replace", "", now)

    def retry(self, id: int, now: float) -> State:
        """A new round of attempts for a job that has ended."""
        brain = self._brain
        if id in self._core.tickets:
            raise IllegalTransition(self._core.tickets[id].state, Event.RETRY_BY_OPERATOR)
        rows = brain.insist(lambda: brain.store.load_some([id]))
        if not rows:
            raise UnknownJob(f"there is no job {id}; it never existed, or its record was purged")
        row = rows[0]
        if row.schedule is not None:
            row = row._replace(schedule=None)  # the schedule has planned its next one already
        ticket = brain.tickets.make(row)
        ticket.state = State(row.state)
        remember(brain, row._replace(unique_scope=None))
        self._core.retry(ticket, now)
        announce(brain, ticket, now)
        return ticket.state

    def explain(self, id: int, now: float) -> Explanation:
        ticket = self._open(id, None)
        if id in self._brain.waits:
            others = ", ".join(str(each) for each in self._brain.waits.blockers(id))
            return Explanation(ticket.state, "after", detail=f"jobs {others}", since=ticket.since)
        return self._core.explain(id, now)

    def look_at_jobs(
        self, ids: Sequence[int], now: float
    ) -> dict[int, tuple[Explanation | None, float | None]]:
        """Why each of them waits, or when its lease was last prolonged if it runs."""
        found: dict[int, tuple[Explanation | None, float | None]] = {}
        for id in ids:
            ticket = self._core.tickets.get(id)
            if ticket is None:
                continue
            permit = ticket.permit
            if permit is None:
                found[id] = (self.explain(id, now), None)
            else:
                found[id] = (None, max(permit.granted_at, permit.expires_at - permit.lease_s))
        return found

    def _open(self, id: int, event: Event | None) -> Ticket:
        ticket = self._core.tickets.get(id)
        if ticket is not None:
            return ticket
        brain = self._brain
        state = self._ended_now(id) or brain.insist(lambda: brain.store.states([id])).get(id)
        if state is None:
            raise UnknownJob(f"there is no job {id}; it never existed, or its record was purged")
        if State(state) not in TERMINAL:
            ticket = self._new(id)
            if ticket is not None:
                return ticket
        if event is not None and State(state) in TERMINAL:
            raise IllegalTransition(State(state), event)
        raise UnknownTicket(f"job {id} is {state}")

    def _ended_now(self, id: int) -> str | None:
        """How a job has ended in this very turn, of which the store does not know yet."""
        for change in reversed(self._core.changes):
            if change.ticket.id == id and change.after in TERMINAL:
                return change.after.value
        return None

    def _new(self, id: int) -> Ticket | None:
        """A job that is stored, but was not looked at yet."""
        tickets = self._core.tickets
        while id not in tickets and take_in(self._brain, self._core.now):
            pass
        return tickets.get(id)

    def _noted(self, ticket: Ticket, what: str, detail: str, now: float) -> State:
        self._brain.ledger.touch(ticket)
        self._brain.record(now, what, job=ticket.id, detail=detail)  # type: ignore[arg-type]
        return ticket.state

    # ------------------------------------------------------------------ gates and settings

    def gate(self, what: dict[str, Any], now: float) -> None:
        """{"do": pause|resume|close|open, "kind", "name", "tenant"?, "until"?, "why"?}"""
        gates = self._core.gates
        kind, name, tenant = what["kind"], what["name"], what.get("tenant")
        match what["do"]:
            case "pause":
                gates.pause(kind, name, now, tenant=tenant)
            case "resume":
                gates.resume(kind, name, now, tenant=tenant)
            case "close":
                until, why = float(what["until"]), str(what.get("why", "closed by an operator"))
                gates.close(kind, name, now, until=until, why=why, tenant=tenant)
            case "open":
                gates.open(kind, name, now, tenant=tenant)
            case unknown:
                raise ValueError(f"a gate can pause, resume, close or open, not {unknown!r}")
        self._brain.record(
            now, f"gate_{what['do']}", subject=f"{kind}:{name}", detail=str(what.get("why", ""))
        )

    def set(self, kind: str, name: str, value: dict[str, Any] | None, now: float) -> None:
        """An operator's setting for a gate, or for how long jobs are kept; None resets it to what
        code, file and environment say.
        """
        if (kind, name) == (RETENTION, JOBS):
            self._brain.retention.put(value)
        else:
            self._set_gate(kind, name, value, now)
        text = None if value is None else msgspec.json.encode(value).decode()
        self._brain.batch.settings.append((kind, name, text, now))
        self._brain.record(now, "set", subject=f"{kind}:{name}", detail=text or "reset")

    def _set_gate(self, kind: str, name: str, value: dict[str, Any] | None, now: float) -> None:
        brain = self._brain
        before = brain.settings.said_by_operator(kind, name)
        policy = brain.settings.put(kind, name, value)
        if kind == UPSTREAM:
            try:
                brain.policies.hosts.check()
            except ValueError:
                brain.settings.put(kind, name, before)
                raise
        if policy is None:
            self._core.gates.withdraw(kind, name, now)
        else:
            self._core.gates.declare(kind, name, policy, now)

    def declare(self, kind: str, name: str, value: dict[str, Any], now: float) -> None:
        """What the code of a worker elsewhere declares; it says so again after a restart."""
        brain = self._brain
        before = brain.settings.behind(kind, name)
        brain.settings.declare("code", kind, name, value)
        after = brain.settings.behind(kind, name)
        if after is not None and after != before:
            self._core.gates.declare(kind, name, policy_of(kind, after["value"], name), now)
            text = msgspec.json.encode(value).decode()
            brain.record(now, "declare", subject=f"{kind}:{name}", detail=text)

    def undeclare(self, kind: str, name: str, now: float) -> None:
        """The code declares it no longer."""
        policy = self._brain.settings.undeclare("code", kind, name)
        if policy is None:
            self._core.gates.withdraw(kind, name, now)
        else:
            self._core.gates.declare(kind, name, policy, now)
        self._brain.record(now, "undeclare", subject=f"{kind}:{name}")

    # ------------------------------------------------------------------ schedules

    def schedule(self, row: Schedule, now: float) -> None:
        brain = self._brain
        open_job = self._occurrence(row.name)
        ticket = None if open_job is None else self._core.tickets.get(open_job)
        running = ticket is not None and ticket.state is State.RUNNING
        before = brain.schedules.rows.get(row.name)
        replaced = brain.schedules.put(row, brain.batch, now, running=running)
        self._drop(replaced, now)
        if brain.schedules.rows[row.name] is not before:
            brain.record(now, "schedule", subject=f"schedule:{row.name}", detail=row.rule)

    def unschedule(self, name: str, now: float) -> None:
        brain = self._brain
        if name not in brain.schedules.rows:
            raise ValueError(f"there is no schedule {name!r}")
        self._occurrence(name)
        self._drop(brain.schedules.remove(name, brain.batch), now)
        brain.record(now, "unschedule", subject=f"schedule:{name}")

    def pause_schedule(self, name: str, paused: bool, now: float) -> None:
        brain = self._brain
        if name not in brain.schedules.rows:
            raise ValueError(f"there is no schedule {name!r}")
        self._occurrence(name)
        self._drop(brain.schedules.pause(name, paused, brain.batch, now), now)
        what = "pause_schedule" if paused else "resume_schedule"
        brain.record(now, what, subject=f"schedule:{name}")

    def _occurrence(self, name: str) -> int | None:
        """The open occurrence; after a restart it may be one that was not looked at yet."""
        job = self._brain.schedules.jobs.get(name)
        if job is not None and job not in self._core.tickets:
            self._new(job)
        return self._brain.schedules.jobs.get(name)

    def _drop(self, job: int | None, now: float) -> None:
        """Cancel an occurrence that is not wanted any more; one that runs may end."""
        ticket = None if job is None else self._core.tickets.get(job)
        if ticket is None or ticket.state is State.RUNNING:
            return
        extra = self._brain.extras.get(ticket.id)  # type: ignore[call-overload]
        if extra is not None:
            self._brain.schedules.jobs.pop(extra.schedule, None)
            extra.schedule = None  # so that nothing follows from its end
        self._core.cancel(ticket.id, now, "its schedule has changed")
