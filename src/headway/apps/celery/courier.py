"""The courier: takes jobs for the Celery fleet, and hands each to the worker that claims it.

Everything here happens in the brain's turn, but for what says otherwise. It asks for no more jobs
than the fleet has free places, so that nothing piles up in the broker. What nobody claims in time
goes back without a burnt attempt, and with it the message becomes worthless.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from headway.apps.celery.crews import Crew, Crews
from headway.apps.celery.fleet import Fleet
from headway.apps.celery.messages import Parcel, Word, parcel_of
from headway.apps.celery.starts import Starts, longest_wait_s
from headway.apps.celery.tables import CarriedType, Kind
from headway.core import Outcome, State
from headway.core.change import Change
from headway.core.ticket import Stop
from headway.engine.brain import Brain
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.demand import MAX_SIZE, Taker
from headway.engine.metering import LOST

logger = logging.getLogger("headway.celery")

COURIER = "celery"  # its name as a worker, until somebody claims
INF = float("inf")


class Refused(Exception):
    """There is nothing to begin under this fence: `stale`, `claimed` by somebody else, or `later`,
    when its upstream has closed meanwhile.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Asked(NamedTuple):
    """Whoever has got a message wants to begin. `name`: of the claim; `member`: of the worker, as
    it says that it is there.
    """

    id: int
    fence: int
    name: str
    worker: str
    member: str = ""
    slack_s: float = 0.0
    within_s: float = INF  # then Celery ends it, begun or not


class Claim(NamedTuple):
    """The answer to a claim."""

    work: RemoteWork
    lease_s: float
    start_at: float | None  # None: at any time


class Carried:
    """A job that was taken for the fleet and has not ended."""

    __slots__ = ("claim", "id", "since", "work")

    def __init__(self, id: int, work: RemoteWork | None, since: float) -> None:
        self.id = id
        self.work = work  # None: it was on its way, or ran, when the server was started
        self.since = since
        self.claim: str | None = None


class Courier:
    """`send` is told what to publish, and `tell` what to say, in the brain's turn; neither may
    block.
    """

    def __init__(
        self,
        claim_s: float,
        send: Callable[[Sequence[Parcel]], None],
        tell: Callable[[Word], None],
    ) -> None:
        self._claim_s = claim_s
        self._tell = tell
        self._send = send
        self._brain: Brain
        self.fleet = Fleet()
        self.types: dict[str, CarriedType] = {}
        self.carried: dict[str, dict[int, Carried]] = {}  # by queue, by fence
        self.trouble = "it has not been reached yet"  # of the broker; empty: it is there
        self.counts = {"claimed": 0, "refused": 0, "taken_back": 0, "unsent": 0, "late": 0}
        self._queue_of: dict[int, str] = {}  # by fence
        self._ending: set[int] = set()  # fences that end in this turn
        self._moved = False  # a job counts for another crew than before
        self._crews = Crews()
        self._names: dict[str, list[str]] = {}  # of types, by queue
        self._whys: dict[str, str] = {}  # what jobs of a queue are told
        self._starts = Starts()
        self._asked = False

    def meet(self, brain: Brain, types: Iterable[CarriedType]) -> None:
        """Before the engine takes in what is stored."""
        self._brain = brain
        brain.remote.carrier = self
        self.types = {each.name: each for each in types}
        self.carried, self._queue_of, self._ending, self._crews = {}, {}, set(), Crews()
        self._sort()
        brain.loaded.append(self._loaded)

    def _loaded(self, now: float) -> None:
        """What was held when the last server ended. Who has claimed it speaks up, and the rest goes
        back: a claim of it is refused, since it may be the second one.
        """
        permits = []
        for fence, held in self._brain.remote.held.items():
            known = self.types.get(held.permit.ticket.type)
            if known is not None:
                permits.append(held.permit)
                number: int = held.permit.ticket.id  # type: ignore[assignment]
                self._put(fence, known.queue, Carried(number, None, now))
        self._starts.restarted(self._brain.core.admission.atlas.gates.values(), permits, now)
        self._tell_rules(self.types.values(), now)
        self._refill(now)

    # ------------------------------------------------------------------ what others say

    def carry(self, types: Sequence[CarriedType], now: float) -> None:
        """From now on these go to Celery."""
        self.types |= {each.name: each for each in types}
        self._sort()
        self._tell_rules(types, now)
        self._refill(now)

    def _sort(self) -> None:
        """By queue, once: this is looked at with each job that ends."""
        by_queue: dict[str, list[str]] = {}
        for each in self.types.values():
            by_queue.setdefault(each.queue, []).append(each.name)
        self._names = by_queue
        self._whys.clear()
        self._form()

    def _form(self) -> None:
        self._crews.form(self.fleet.members.values(), self._names)

    def _tell_rules(self, types: Iterable[CarriedType], now: float) -> None:
        told = {each.name: each.rules for each in types if each.rules is not None}
        if told:
            self._brain.remote.hello(COURIER, told, now)

    def here(self, name: str, queues: Sequence[str], places: int, now: float) -> None:
        if self.fleet.here(name, queues, places, now):
            self._form()
        self._refill(now)

    def gone(self, name: str, now: float) -> None:
        self.fleet.gone(name)
        self._form()
        self._refill(now)

    def broker_is(self, trouble: str, now: float) -> None:
        self.trouble = trouble
        self._refill(now)

    # ------------------------------------------------------------------ claims

    def claim(self, asked: Asked, now: float) -> Claim:
        """The same claim may be said again: its answer was lost, or it took so long that the moment
        to begin has passed.
        """
        id, fence = asked.id, asked.fence
        carried = self._carried(fence)
        if carried is None or carried.id != id or carried.work is None:
            raise self._refused("stale")
        if carried.claim not in (None, asked.name):
            raise self._refused("claimed")
        held = self._brain.remote.held.get(fence)
        if held is None or held.permit.ticket.asked is not None:
            raise self._refused("stale")  # it was asked to stop, and has not begun
        permit = held.permit
        shut = any(gate.door.paused or gate.door.closed_until > now for gate in permit.gates)
        most_s = longest_wait_s(asked.within_s)
        start_at = None if shut else self._starts.next_at(permit, asked.slack_s, now, most_s)
        if shut or start_at == INF:
            self.counts["late"] += 1
            # Before that it could not have begun, so there is no hurry to send it again.
            self._return(id, fence, now, after_s=0.0 if shut else most_s)
            raise self._refused("later")
        beat = self._brain.remote.heartbeat(id, fence, now, worker=asked.worker)
        if beat.lease_s is None:
            raise self._refused("stale")
        if carried.claim is None:
            self.counts["claimed"] += 1
        carried.claim = asked.name
        self._moved |= self._crews.claimed(fence, asked.member)
        return Claim(carried.work, beat.lease_s, start_at)

    def _refused(self, why: str) -> Refused:
        self.counts["refused"] += 1
        return Refused(why)

    # ------------------------------------------------------------------ from the brain

    def ending(self, fence: int) -> None:
        if fence in self._queue_of:
            self._ending.add(fence)
            self._crews.leave(fence)

    def refill(self, now: float) -> None:
        """What follows on a place is granted in the turn that frees it: one commit for both."""
        if self._ending or self._moved:
            self._refill(now)

    def ended(self, fence: int) -> None:
        queue = self._queue_of.pop(fence, None)
        if queue is None:
            return
        self.carried[queue].pop(fence, None)
        self._starts.ended(fence)
        self._crews.leave(fence)
        refilled = fence in self._ending and self._brain.granting
        self._ending.discard(fence)
        if not refilled:
            self._again()

    def job_over(self, change: Change) -> None:
        """Whoever waits for a task hears from the worker that ran it. If none did to the end, the
        courier has to say it.
        """
        known = self.types.get(change.ticket.type)
        if known is None or known.kind is not Kind.TASK or change.after is State.COMPLETED:
            return
        carried = self._carried(change.fence) if change.before is State.RUNNING else None
        if carried is None or carried.claim is None or change.event in LOST:
            number: int = change.ticket.id  # type: ignore[assignment]
            word = Word(number, change.after.value, change.detail)
            self._brain.ask(lambda _: self._tell(word))  # in the next turn: it is committed then

    def stop_asked(self, fence: int) -> bool:
        carried = self._carried(fence)
        if carried is None or carried.work is None or carried.claim is not None:
            return False
        self._brain.ask(partial(self._stop, carried.id, fence))
        return True

    def _stop(self, id: int, fence: int, now: float) -> None:
        """Nobody has begun it, so it ends at once."""
        held = self._brain.remote.held.get(fence)
        if held is not None:
            cancelled = held.permit.ticket.asked is Stop.CANCEL
            outcome = Outcome.cancelled() if cancelled else Outcome.returned()
            self._brain.remote.complete(id, fence, outcome, None, now)

    def _deliver(self, crew: Crew, works: list[RemoteWork], _stops: list[RemoteStop]) -> None:
        """They are committed, and ours."""
        crew.taker = None
        now = self._brain.core.now
        parcels: list[Parcel] = []
        for work in works:
            carried = self.types[work.type]
            try:
                parcels.append(parcel_of(work, carried))
            except ValueError as error:
                failed = Outcome.failed(str(error), fatal=True)
                self._brain.finished(work.id, work.fence, failed, None)
                continue
            self._put(work.fence, carried.queue, Carried(work.id, work, now), crew)
        self._send(parcels)
        self._again()

    # ------------------------------------------------------------------ asking for jobs

    def _again(self) -> None:
        """Look what is free now, in the next turn, which comes at once."""
        if not self._asked:
            self._asked = True
            self._brain.ask(self._refill)

    def _refill(self, now: float) -> None:
        self._asked = self._moved = False
        self._crews.settle()
        for crew in self._crews:
            self._ask_for(crew, now)
        for queue, names in self._names.items():
            self._say_why(queue, names)

    def _ask_for(self, crew: Crew, now: float) -> None:
        if crew.is_dealt():
            return  # when that is there, it is looked at again
        free = 0 if self.trouble else min(max(crew.free, 0), MAX_SIZE)
        taker = crew.taker
        if taker is not None:
            if taker.left == free and taker.types == crew.types:
                return
            self._brain.remote.leave(taker, now)
            crew.taker = None
        if free:
            crew.taker = Taker(COURIER, crew.types, free, partial(self._deliver, crew))
            self._brain.remote.take(crew.taker, now)

    def _say_why(self, queue: str, names: Sequence[str]) -> None:
        why = self.why(queue)
        if self._whys.get(queue) == why:
            return
        self._whys[queue] = why
        reasons = self._brain.remote.gates.reasons
        for name in names:
            if why:
                reasons[name] = why
            else:
                reasons.pop(name, None)

    def why(self, queue: str) -> str:
        """Why nothing is taken for this queue. Empty: there is no reason."""
        if self.trouble:
            return f"the Celery broker cannot be reached: {self.trouble}"
        if not self.fleet.places(queue):
            return f"no Celery worker is there for queue {queue!r}"
        return ""

    # ------------------------------------------------------------------ as time passes

    def look(self, now: float) -> None:
        """Every second or so."""
        if self.fleet.forget(now):
            self._form()
        self._crews.next_turn()
        core = self._brain.core
        for queue in self.carried.values():
            for fence, carried in list(queue.items()):
                if carried.claim is not None:
                    continue
                if self._is_overdue(fence, carried, now):
                    self.counts["taken_back"] += 1
                    self._return(carried.id, fence, now)
                elif carried.work is not None:
                    core.renew((fence,), now)
        self._refill(now)

    def _is_overdue(self, fence: int, carried: Carried, now: float) -> bool:
        if carried.work is not None:
            return now - carried.since >= self._claim_s
        held = self._brain.remote.held.get(fence)
        silent = held is not None and not held.worker
        # Whoever has it says so each third of a lease.
        return silent and now - carried.since >= self._brain.core.lease_s / 2

    def unsent(self, parcels: Sequence[Parcel], now: float) -> None:
        """The broker did not take them, or nobody knows."""
        for parcel in parcels:
            if isinstance(parcel.work, Word):
                continue
            carried = self._carried(parcel.work.fence)
            if carried is not None and carried.claim is None:
                self.counts["unsent"] += 1
                self._return(parcel.work.id, parcel.work.fence, now)

    def _return(self, id: int, fence: int, now: float, after_s: float = 0.0) -> None:
        self._brain.remote.complete(id, fence, Outcome.returned(after_s=after_s), None, now)

    def _put(self, fence: int, queue: str, carried: Carried, crew: Crew | None = None) -> None:
        self.carried.setdefault(queue, {})[fence] = carried
        self._queue_of[fence] = queue
        self._crews.put(fence, queue, crew)

    def _carried(self, fence: int) -> Carried | None:
        queue = self._queue_of.get(fence)
        return None if queue is None else self.carried[queue].get(fence)
