"""The brain: one turn after the other, each with its own commit.

A turn takes everything that has come in, lets the core decide, commits all of it in one
transaction, and only then acts: hands start, callers hear. The brain has no thread and no clock
of its own; `engine.Engine` drives it in a thread, `headway.testing` on a virtual clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from random import Random
from typing import Any, TypeVar

from headway.core import Core, Outcome, Permit, State
from headway.core.change import Change
from headway.core.lifecycle import TERMINAL
from headway.core.ticket import Stop, Ticket
from headway.engine.clock import Clock
from headway.engine.controls import Controls
from headway.engine.departures import Call, fail
from headway.engine.hands import Hands
from headway.engine.hands.remote import RemoteHands
from headway.engine.intake import obey_commands, take_in
from headway.engine.ledger import Extra, Ledger
from headway.engine.metering import count
from headway.engine.online import OnlineCall, OnlineDesk
from headway.engine.registry import Registry
from headway.engine.retention import Retention
from headway.engine.routes import Routes
from headway.engine.schedules import Schedules
from headway.engine.settings import Settings
from headway.engine.slots import SlotDesk, Waiter
from headway.engine.slots.hosts import Hosts, SlotPolicies
from headway.engine.tickets import Tickets
from headway.engine.trail import Trail
from headway.engine.waits import Waits
from headway.store import Store
from headway.store.records import Candidate

T = TypeVar("T")
INF = float("inf")
NET_S = 5.0  # how often the store is asked whether a bell was missed
SECOND_LOOK_S = 0.1  # after the start; for bells that rang before anybody listened
SWEEP_S = 60.0
FEW = 64  # ends of jobs that one turn always takes

Finished = tuple[int, int, Outcome, str | None]  # job, fence, outcome, result


class Brain(Trail):
    def __init__(
        self,
        store: Store,
        registry: Registry,
        settings: Settings,
        clock: Clock,
        hands: Hands,
        *,
        wake: Callable[[], None],
        rng: Random | None = None,
        lease_s: float = 90.0,
        net_s: float = NET_S,
    ) -> None:
        super().__init__()
        self.store = store
        self.registry = registry
        self.settings = settings
        self.clock = clock
        self.hands = hands
        self.wake = wake
        self._net_s = net_s
        self.policies = SlotPolicies()
        self.policies.hosts = hosts = Hosts(self)
        retry = registry.policies()
        self.core = Core(self.policies, rng=rng or Random(), retry=retry, lease_s=lease_s)
        self.remote = RemoteHands(self, self.policies, retry)
        self.extras: dict[int, Extra] = {}
        self.tickets = Tickets(registry)
        self.ledger = Ledger(self.core, self.extras)
        self.schedules = Schedules()
        self.retention = Retention()  # that of whoever drives it; operators set it here
        self.waits = Waits()
        self.term = self.version = 0
        self.candidate = Candidate()  # as which it becomes the engine of the store
        self.mark = ""  # what was seen of the jobs in the store
        self.controls = Controls(self)
        self.broken: list[tuple[int, int, str]] = []  # waits for a job that cannot complete
        self.news = True  # there may be something new in the store
        self.orders = False  # commands, too
        self.granting = True
        self.fresh: set[int] = set()  # submitted in this turn, and stored as they stand
        self.open_by_tenant: dict[str, int] = {}  # jobs that have not ended; nobody has 0
        self.slots = SlotDesk(self, hosts)
        self.online = OnlineDesk(self)
        self.routes = Routes(self)
        # Who hears that the store is ours, before anything is loaded; and that all that is open is
        # here.
        self.entered: list[Callable[[float], None]] = []
        self.loaded: list[Callable[[float], None]] = []
        self.look_again = False  # somebody lined up after the permits of this turn were given
        self._finished: deque[Finished] = deque()
        self._calls: deque[Call] = deque()
        self._notes: deque[tuple[str, int, int, tuple[Any, ...]]] = deque()
        self._with_end: dict[int, list[Callable[[float], None]]] = {}  # by fence
        self._net_at = self._renew_at = self._sweep_at = INF

    # ------------------------------------------------------------------ from any thread

    def finished(self, job: int, fence: int, outcome: Outcome, result: str | None) -> None:
        """A hand has ended an attempt."""
        self._finished.append((job, fence, outcome, result))
        self.wake()

    def note(self, kind: str, job: int, fence: int, values: tuple[Any, ...]) -> None:
        """Progress, a checkpoint, a log line or a process, from a running job."""
        self._notes.append((kind, job, fence, values))
        self.wake()

    def ask(self, call: Callable[[float], T]) -> Future[T]:
        """Let the brain do something. The future is done when its effects are committed."""
        future: Future[T] = Future()
        self.ask_for(future, call)
        return future

    def ask_for(self, waiter: Waiter, call: Callable[[float], Any], *, later: bool = False) -> None:
        """The same with somebody else's future. `later`: the call sees to it that it is answered,
        in this turn or in another.
        """
        self._calls.append((call, waiter, later))
        self.wake()

    def heard(self) -> None:
        """The store's bell."""
        self.news = True
        self.wake()

    def forget_watcher(self, job: int, tell: Callable[[], None]) -> None:
        watchers = self.ended.get(job, [])
        if tell in watchers:
            watchers.remove(tell)
        if not watchers:
            self.ended.pop(job, None)

    # ------------------------------------------------------------------ a turn

    def turn(self) -> float:
        """Do everything there is to do. Returns when to come back if nobody calls."""
        self.meters.turned()
        self.insist(self.store.assure)
        at = self.clock.now()
        if at >= self._renew_at:  # first: the last turn may have waited long for the store
            self._renew_at = at + self.core.lease_s / 3
            self.core.renew((*self.hand_held, *self.slots.own, *self.online.own), at)
        now = self.core.advance(at)
        self._on_time(now)
        self.slots.on_time(now)
        # Half of what runs, so that the hands have the one half while the other is committed.
        ends = min(len(self._finished), max(FEW, len(self.hand_held) // 2))
        self._take_notes()  # all that was said before those ends
        self._hear_finished(ends, now)
        if self._calls:
            self.arrive()  # they ask the store, and should see what was decided
            self._hear_calls(now)
        if self.news:
            self.news = False
            take_in(self, now)
            obey_commands(self, now)
        self.look_again = self.routes.go_on(now)
        if self.granting:
            self.remote.refill(now)
            self.remote.gates.open_up(now)
            self.outbox.permits += self.core.admit(now)
            if self.remote.gates.deals:
                self.remote.dealt(self.outbox.permits)
        else:
            self.remote.send_home()
        self.outbox.stops += self._settle(now)
        self._depart()
        if not self._finished or self._expected():
            self.arrive()  # else there is something to think about meanwhile
        if self._finished or self._calls or self.news or self.look_again or self.absences:
            return now
        renews = self.hand_held or self.slots.own or self.online.own
        renew_at = self._renew_at if renews else INF
        return min(
            self.core.next_wakeup(), self.slots.next_at(), self._net_at, renew_at, self._sweep_at
        )

    def _expected(self) -> bool:
        """Somebody waits for what is on its way."""
        return self._leaving is not None and bool(self._leaving.acks or self._leaving.ended)

    def start_clocks(self, now: float) -> None:
        self._net_at = now + min(self._net_s, SECOND_LOOK_S)
        self._renew_at = now + self.core.lease_s / 3
        self._sweep_at = now + SWEEP_S

    def _on_time(self, now: float) -> None:
        while self.absences:
            self.record(now, "store_back", detail=self.absences.pop(0))
        if now >= self._net_at:
            self._net_at = now + self._net_s
            version = self.insist(self.store.version)
            if version != self.version:
                self.version = version
                self.news = True
        if now >= self._sweep_at:
            self.sweep(now)

    def sweep(self, now: float) -> None:
        """Forget what nobody would miss."""
        self._sweep_at = now + SWEEP_S
        self.remote.gates.sweep(now)
        self.core.sweep(now)
        self.slots.sweep(now)
        self.ledger.forget_gates(self.batch, self.policies.hosts.remembers)

    def _hear_finished(self, ends: int, now: float) -> None:
        core = self.core
        for _ in range(ends):
            job, fence, outcome, result = self._finished.popleft()
            self.hand_held.pop(fence, None)
            calls = self._with_end.pop(fence, None) if self._with_end else None
            if calls is not None and core.holds(job, fence, now):
                outcome = self._do_with_end(calls, outcome, now)
            change = core.finish(job, fence, outcome, now)
            if change is not None and result is not None and change.after is State.COMPLETED:
                self.keep_result(change.ticket, result, now)

    def _do_with_end(
        self, calls: list[Callable[[float], None]], outcome: Outcome, now: float
    ) -> Outcome:
        try:
            for call in calls:
                call(now)
        except Exception as error:
            return Outcome.failed(f"what was to be done at its end failed: {error!r}", fatal=True)
        return outcome

    def keep_result(self, ticket: Ticket, result: str, now: float) -> None:
        number: Any = ticket.id
        extra = self.extras.get(number)
        keep_s = None if extra is None else extra.keep_result_s
        if keep_s is None:
            known = self.registry.types.get(ticket.type)
            if known is None:
                keep_s = self.remote.keep_result_s(ticket.type)
            else:
                keep_s = known.keep_result_s
        self.batch.results.append((number, result, now + keep_s))

    def _hear_calls(self, now: float) -> None:
        while self._calls:
            call, waiter, later = self._calls.popleft()
            if waiter.cancelled() if later else not waiter.set_running_or_notify_cancel():
                continue
            try:
                answer = call(now)
                if not later:
                    self.outbox.acks.append((waiter, answer))
            except Exception as error:
                fail(waiter, error, running=not later)

    def _take_notes(self) -> None:
        """Notes count while the lease does. Progress of one job in one turn is one row."""
        latest: dict[int, tuple[Any, ...]] = {}
        while self._notes:
            kind, job, fence, values = self._notes.popleft()
            permit = self.core.leases.permits.get(fence)
            over = permit is None or permit.ticket.id != job
            if over and kind != "logs" and not (kind == "processes" and values[0] is None):
                continue
            if kind == "progress":
                latest[job] = (job, *values)
            elif kind == "with_end":
                self._with_end.setdefault(fence, []).append(*values)
            else:
                getattr(self.batch, kind).append((job, *values))
        self.batch.progress.extend(latest.values())

    # ------------------------------------------------------------------ what follows from changes

    def _settle(self, now: float) -> list[tuple[int, Stop]]:
        """Write down every change, and let happen what follows from it, until nothing does."""
        core, batch, enter = self.core, self.batch, self.ledger.enter
        changes, fresh, hand_held = core.changes, self.fresh, self.hand_held
        open_jobs, held = self.open_by_tenant, self.remote.held
        meters = self.meters
        stops: list[tuple[int, Stop]] = []
        done = 0
        while done < len(changes) or core.stops:
            while done < len(changes):
                change = changes[done]
                if self.records:
                    self.write_records(done)
                done += 1
                number = change.ticket.id
                before = change.before
                if type(number) is not int:
                    if before is not None and type(number) is not OnlineCall:
                        self.slots.changed(change)
                    continue
                count(meters, change)
                enter(change, batch, before is None and number in fresh)
                if before is None or before in TERMINAL:
                    tenant = change.ticket.tenant
                    open_jobs[tenant] = open_jobs.get(tenant, 0) + 1
                if change.after in TERMINAL:
                    self._job_ended(change, now)
                if before is State.RUNNING:
                    if change.fence in hand_held:
                        stops.append((change.fence, Stop.CANCEL))  # its lease is over, not its work
                    elif held:
                        self.remote.ended(change.fence)
            for order in core.stops:
                stops.append((order.permit.fence, order.why))
                self._stop_asked(order.permit, order.why, now)
            core.stops.clear()
        self.slots.settle()
        self.record_learned()
        self.write_records(len(changes))
        core.changes.clear()
        self.fresh.clear()
        return stops

    def _stop_asked(self, permit: Permit, why: Stop, now: float) -> None:
        ticket = permit.ticket
        if type(ticket.id) is int:
            self.record(now, f"{why.value}_requested", job=ticket.id, fence=permit.fence)
            self.ledger.touch(ticket)

    def _job_ended(self, change: Change, now: float) -> None:
        number: Any = change.ticket.id
        tenant = change.ticket.tenant
        left = self.open_by_tenant.pop(tenant, 1) - 1
        if left:
            self.open_by_tenant[tenant] = left
        if self.ended:
            self.outbox.ended.append(number)
        if self.at_hand:
            self.at_hand.take(number)
        if self.waits.any:
            self._end_waits(number, change.after, now)
        extra = self.extras.pop(number, None) if self.extras else None
        known = self.registry.types.get(change.ticket.type)
        if known is not None and known.ended is not None:
            known.ended(None if extra is None else extra.batch, change, now)
        if self.remote.carrier is not None:
            self.remote.carrier.job_over(change)
        if extra is not None and extra.schedule is not None:
            self.schedules.next_after(extra.schedule, number, change.after, self.batch, now)

    def _end_waits(self, number: int, state: State, now: float) -> None:
        if number in self.waits:
            self.waits.forget(number)
            self.batch.released.append(number)
        if state is State.COMPLETED:
            for free in self.waits.completed(number):
                self.release(free, now)
            return
        for waiting in self.waits.broken(number):
            self.batch.released.append(waiting)
            if waiting in self.core.tickets:
                self.core.cancel(
                    waiting, now, f"job {number}, which it was to follow, {state.value}"
                )

    def release(self, number: int, now: float) -> None:
        """A job waits for no other job any more."""
        self.look_again = True
        self.batch.released.append(number)
        extra = self.extras.get(number)
        due_at = now
        if extra is not None and extra.not_before is not None:
            due_at, extra.not_before = extra.not_before, None
        ticket = self.core.tickets.get(number)
        if ticket is not None and ticket.state in (State.PENDING, State.PAUSED):
            self.core.reschedule(number, max(due_at, 0.0), now)
            self.ledger.touch(ticket)
