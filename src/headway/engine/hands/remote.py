"""Workers outside of this process. They ask for jobs, say that they are alive, and report.

Everything here runs in the brain's turn (`brain.ask(lambda now: brain.remote.take(taker, now))`).
What a worker is told rests on what is committed, and what it reports counts while its lease does:
each word of it carries the fence.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headway.core import Outcome, Permit, RetryPolicy, State
from headway.core.change import Change
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY
from headway.core.ticket import Stop
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.demand import Deliver, Taker, check_names
from headway.engine.hands.notes import Line, Notes, Progress
from headway.engine.hands.worker_gates import WorkerGates, WorkerPolicies
from headway.engine.registry import KEEP_RESULT_S
from headway.store.records import Errand

if TYPE_CHECKING:
    from headway.engine.brain import Brain

__all__ = ["Beat", "Deliver", "RemoteHands", "RemoteStop", "RemoteWork", "Taker"]

logger = logging.getLogger("headway")

OVERTIME_S = 30.0  # for a worker to stop what has taken too long; then its lease may end
MAX_RULES = 10_000  # types whose rules workers have told


class Beat(NamedTuple):
    """The answer to a heartbeat."""

    lease_s: float | None  # how long the lease lasts from now on; None: it is over
    stop: str | None  # cancel, pause or timeout: stop it and say so; lost: nobody waits for it


class Held:
    """A job that a worker holds."""

    __slots__ = ("lines", "permit", "worker")

    def __init__(self, permit: Permit, worker: str) -> None:
        self.permit = permit
        self.worker = worker  # empty: after a restart, until it speaks
        self.lines = 0  # of its log, in this attempt


class Carrier(Protocol):
    """Takes jobs on behalf of workers that do not ask for themselves, and passes them on. All this
    is called in the brain's turn.
    """

    def ending(self, fence: int) -> None:
        """It ends in this turn."""

    def refill(self, now: float) -> None:
        """Permits are about to be given."""

    def job_over(self, change: Change) -> None:
        """A job of any type is in a terminal state."""

    def ended(self, fence: int) -> None:
        """Nobody holds it any more."""

    def stop_asked(self, fence: int) -> bool:
        """True: it has not been passed on yet, and the carrier sees to it."""


class RemoteHands:
    def __init__(
        self, brain: Brain, policies: WorkerPolicies, retry_policies: dict[str, RetryPolicy]
    ) -> None:
        self._brain = brain
        self._core = brain.core
        self._retry_policies = retry_policies  # those of the core
        self.gates = policies.gates = WorkerGates(brain.core)
        self._demand = self.gates.demand
        self.held: dict[int, Held] = {}  # by fence
        self._waiting: dict[str, dict[Taker, None]] = {}  # takers, by the name of their worker
        self.unheard: dict[str, dict[int, None]] = {}  # orders to stop: worker, fences
        self.carrier: Carrier | None = None
        self._told: dict[str, float] = {}  # types whose rules workers have told: keep_result_s

    # ------------------------------------------------------------------ workers ask

    def hello(
        self,
        worker: str,
        types: Mapping[str, RetryPolicy | None],
        now: float,
        *,
        keep_result_s: Mapping[str, float] | None = None,
    ) -> None:
        """A worker tells what it can run, and by which rules. The last word on a type counts; what
        this process runs itself goes by its own rules. None: the default.
        """
        check_names(worker, list(types))
        keep = keep_result_s or {}
        for name, seconds in keep.items():
            if isinstance(seconds, bool) or not 0 < seconds < 1e10:
                raise ValueError(f"the results of {name!r} are kept for a number of seconds above "
                                 f"0, not {seconds!r}")  # fmt: skip
        foreign = [name for name in types if name not in self._brain.registry.types]
        self._make_room(len([name for name in foreign if name not in self._told]), now)
        for name in foreign:
            self._told[name] = keep.get(name, KEEP_RESULT_S)
            self._retry_policies[name] = types[name] or _usual(name)
        self.gates.named(foreign, now)

    def _make_room(self, more: int, now: float) -> None:
        """The rules of types that no worker knows any more go first."""
        if len(self._told) + more <= MAX_RULES:
            return
        for name in [name for name in self._told if self.gates.known_until(name) <= now]:
            del self._told[name], self._retry_policies[name]
            if name in DEFAULT_POLICIES:
                self._retry_policies[name] = DEFAULT_POLICIES[name]
        if len(self._told) + more > MAX_RULES:
            raise ValueError(f"workers know more than {MAX_RULES} types of jobs; that is too many")

    def take(self, taker: Taker, now: float) -> None:
        """Wait for work. The taker hears once: of jobs, of orders to stop, or of the end."""
        self._demand.join(taker)
        self._waiting.setdefault(taker.worker, {})[taker] = None
        self.gates.named(taker.types, now)

    def leave(self, taker: Taker, now: float) -> bool:
        """Wait no longer. False: it is not in line any more, and what it was dealt is on its way
        to it, or was delivered already; what nobody wants of that must be given back.
        """
        if not self._demand.leave(taker):
            return False
        self._forget(taker)
        self.gates.named(taker.types, now)
        return True

    def give_back(self, works: Sequence[RemoteWork], now: float) -> None:
        """Works that nobody has begun: no attempt is burnt."""
        for work in works:
            self._finish(work.id, work.fence, Outcome.returned(), now)

    def _forget(self, taker: Taker) -> None:
        waiting = self._waiting.get(taker.worker, {})
        waiting.pop(taker, None)
        if not waiting:
            self._waiting.pop(taker.worker, None)

    # ------------------------------------------------------------------ workers report

    def heartbeat(
        self,
        id: int,
        fence: int,
        now: float,
        *,
        worker: str = "",
        progress: Progress | None = None,
        checkpoint: str | None = None,
        logs: Sequence[Line] = (),
    ) -> Beat:
        """The worker is alive, and says how far it is. ValueError: nothing of it was kept, and the
        lease was not prolonged.
        """
        limit = self._brain.hands.payload_limit
        notes = Notes.checked(progress, checkpoint, logs, limit)
        held = self._held(id, fence)
        if held is None:
            return Beat(None, "lost")
        permit = held.permit
        policy = self._policy(permit.ticket.type)
        over_s = now - permit.granted_at - policy.timeout_s
        if over_s < OVERTIME_S:
            ends_at = self._core.heartbeat(id, fence, now)
        else:  # it was told, and does not listen
            ends_at = permit.expires_at if permit.expires_at > now else None
        if ends_at is None:
            return Beat(None, "lost")
        self._heard(held)
        held.worker = worker or held.worker
        self.gates.named((permit.ticket.type,), now)
        self._keep(id, held, notes, now)
        return Beat(ends_at - now, _why(permit, timed_out=over_s >= 0))

    def complete(
        self, id: int, fence: int, outcome: Outcome, result: str | None, now: float
    ) -> State | None:
        """An attempt has ended. The new state of the job; None: the fence is stale, and nothing
        has changed.
        """
        limit = self._brain.hands.payload_limit
        if result is not None and len(result) > limit:
            outcome = Outcome.failed(
                f"the result has {len(result)} characters, and {limit} are allowed; store it "
                "elsewhere", fatal=True)  # fmt: skip
            result = None
        held = self._held(id, fence)
        if held is None:
            return None
        self.gates.named((held.permit.ticket.type,), now)
        return self._finish(id, fence, outcome, now, result)

    def _finish(
        self, id: int, fence: int, outcome: Outcome, now: float, result: str | None = None
    ) -> State | None:
        if self._held(id, fence) is None:
            return None
        change = self._core.finish(id, fence, outcome, now)
        if change is None:
            return None
        if self.carrier is not None:
            self.carrier.ending(fence)
        if result is not None and change.after is State.COMPLETED:
            self._brain.keep_result(change.ticket, result, now)
        return change.after

    def _held(self, id: int, fence: int) -> Held | None:
        """Only what workers hold: a fence of our own hands is none of theirs."""
        held = self.held.get(fence)
        return held if held is not None and held.permit.ticket.id == id else None

    def _keep(self, id: int, held: Held, notes: Notes, now: float) -> None:
        batch = self._brain.batch
        if notes.progress is not None:
            batch.progress.append((id, *notes.progress, now))
        if notes.checkpoint is not None:
            batch.checkpoints.append((id, notes.checkpoint, now))
        batch.logs.extend((id, *line) for line in notes.lines(held.lines))
        held.lines += len(notes.logs)

    def _policy(self, type: str) -> RetryPolicy:
        return self._retry_policies.get(type, DEFAULT_POLICY)

    def keep_result_s(self, type: str) -> float:
        return self._told.get(type, KEEP_RESULT_S)

    # ------------------------------------------------------------------ from the brain

    def restore(self, permit: Permit) -> None:
        """A worker has held this since before the restart."""
        self.held[permit.fence] = Held(permit, "")

    def refill(self, now: float) -> None:
        """So that whoever takes the place of what has just ended is committed together with it."""
        if self.carrier is not None:
            self.carrier.refill(now)

    def dealt(self, permits: list[Permit]) -> None:
        """What the core has granted in this turn. Who was dealt anything is not in line any more,
        though it hears only when that is committed.
        """
        deals = self.gates.deals
        for permit in permits:
            taker = deals.get(permit.fence)
            if taker is not None and self._demand.leave(taker):
                self._forget(taker)
                self.gates.named(taker.types, permit.granted_at)

    def ended(self, fence: int) -> None:
        """Whoever held it, holds it no more."""
        held = self.held.pop(fence, None)
        if held is not None:
            self._heard(held)
            if self.carrier is not None:
                self.carrier.ended(fence)

    def stop_asked(self, fence: int) -> None:
        held = self.held.get(fence)
        if self.carrier is not None and self.carrier.stop_asked(fence):
            return
        if held is not None and held.worker:
            self.unheard.setdefault(held.worker, {})[fence] = None

    def _heard(self, held: Held) -> None:
        fences = self.unheard.get(held.worker)
        if fences is not None:
            fences.pop(held.permit.fence, None)
            if not fences:
                del self.unheard[held.worker]

    def send_home(self) -> None:
        """Nothing is granted any more: whoever waits hears so."""
        takers = dict.fromkeys((*self.gates.deals.values(), *self._demand.takers))
        self.gates.deals.clear()
        for taker in takers:
            self._demand.leave(taker)
            self._tell(taker, [], [])
        self._waiting.clear()

    # ------------------------------------------------------------------ delivering

    def deliver(self, granted: Sequence[tuple[Permit, Errand | None]], now: float) -> None:
        """What is committed goes out: jobs to those who were dealt them, and orders to stop to any
        request of the worker that waits.
        """
        letters: dict[Taker, list[RemoteWork]] = {}
        for permit, errand in granted:
            taker = self.gates.deals.pop(permit.fence, None)
            if taker is not None:
                works = letters.setdefault(taker, [])
                if errand is not None and self._core.leases.permits.get(permit.fence) is permit:
                    works.append(self._hand_over(permit, errand, taker, now))
            elif errand is not None:  # nobody is there for it
                self._return(permit.ticket.id, permit.fence)  # type: ignore[arg-type]
        stops = self._stops(letters)
        for taker, works in letters.items():
            self._tell(taker, works, stops.get(taker, []))

    def _hand_over(self, permit: Permit, errand: Errand, taker: Taker, now: float) -> RemoteWork:
        """Its time begins when the worker hears, however long the store has taken."""
        self._core.renew((permit.fence,), now)
        self.held[permit.fence] = Held(permit, taker.worker)
        return RemoteWork.permitted(permit, self._policy(permit.ticket.type), errand, now)

    def _stops(self, letters: dict[Taker, list[RemoteWork]]) -> dict[Taker, list[RemoteStop]]:
        """Orders that their workers can be told now; takers that were waiting get a letter."""
        told: dict[Taker, list[RemoteStop]] = {}
        if not self.unheard:
            return told
        writing = {taker.worker: taker for taker in letters}
        for worker in list(self.unheard):
            taker = writing.get(worker) or next(iter(self._waiting.get(worker, ())), None)
            if taker is None:
                continue
            permits = [self.held[fence].permit for fence in self.unheard.pop(worker)]
            stops = [RemoteStop(int(permit.ticket.id), permit.fence, why)  # type: ignore[call-overload]
                     for permit in permits if (why := _why(permit)) is not None]  # fmt: skip
            if stops:
                told[taker] = stops
                if taker not in letters:
                    letters[taker] = []
                    self._demand.leave(taker)
                    self._forget(taker)
        return told

    def _tell(self, taker: Taker, works: list[RemoteWork], stops: list[RemoteStop]) -> None:
        try:
            taker.deliver(works, stops)
        except Exception:  # nobody listens; that must not harm the others
            logger.exception("a worker's request ended before its work could be delivered")
            for work in works:
                self._return(work.id, work.fence)

    def _return(self, id: int, fence: int) -> None:
        self._brain.finished(id, fence, Outcome.returned(), None)


def _usual(type: str) -> RetryPolicy:
    return DEFAULT_POLICIES.get(type, DEFAULT_POLICY)


def _why(permit: Permit, *, timed_out: bool = False) -> str | None:
    """What to stop for; the strongest reason counts, as for our own hands."""
    asked = permit.ticket.asked
    if asked is Stop.CANCEL:
        return asked.value
    if timed_out:
        return "timeout"
    return None if asked is None else asked.value
