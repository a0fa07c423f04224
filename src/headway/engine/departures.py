"""What follows from decisions: they are committed, and only then acted on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from headway.core import Core, Outcome, Permit
from headway.core.ticket import Stop
from headway.engine.at_hand import AtHand
from headway.engine.clock import Clock
from headway.engine.hands import Hands, Work
from headway.engine.hands.remote import RemoteHands
from headway.engine.ledger import Ledger
from headway.engine.meters import Meters
from headway.engine.patience import Patient
from headway.engine.registry import Registry
from headway.engine.slots import SlotDesk, Waiter
from headway.errors import EngineLost, StoreBusy, StoreConflict, StoreUnavailable
from headway.store import Store
from headway.store.batch import Batch
from headway.store.records import Errand

Away = list[tuple[Permit, Errand | None]]
Call = tuple[Callable[[float], Any], Waiter, bool]  # what to do, who waits, answered later

CONFLICTS = 10  # with others who write into the tables of applications, in one turn


class Outbox:
    """What is to be done once the decisions behind it are committed."""

    __slots__ = ("acks", "ended", "permits", "stops", "then")

    def __init__(self) -> None:
        self.permits: list[Permit] = []
        self.stops: list[tuple[int, Stop]] = []
        self.acks: list[tuple[Waiter, Any]] = []
        self.then: list[Callable[[], object]] = []
        self.ended: list[int] = []


class Departures(Patient):
    """The half of the brain that talks to the store and the hands. Sees nothing of why."""

    store: Store
    core: Core
    registry: Registry
    clock: Clock
    hands: Hands
    remote: RemoteHands
    ledger: Ledger
    mark: str
    term: int
    news: bool
    slots: SlotDesk
    _calls: deque[Call]

    def __init__(self) -> None:
        super().__init__()
        self.batch = Batch(term=0)
        self.outbox = Outbox()
        self.at_hand = AtHand()
        self.meters = Meters()
        self._sent_at = 0.0
        self.under_way: Batch | None = None  # sent, and perhaps not committed yet
        self._leaving: Outbox | None = None  # what waits for that
        self.hand_held: dict[int, Work] = {}  # what our own hands hold, by fence
        self.ended: dict[int, list[Callable[[], None]]] = {}  # who waits for the end of a job
        self.committed: Callable[[], None] = _nothing  # whoever follows the trail hears of more

    def finished(self, job: int, fence: int, outcome: Outcome, result: str | None) -> None:
        raise AssertionError("the brain itself hears it")

    def _depart(self) -> None:
        """Send what was decided on its way. It is acted on when it has arrived."""
        self.ledger.close(self.batch)
        batch = self.batch
        self.arrive()
        if not batch.empty():
            batch.term = self.term
            batch.fence = self.core.admission.fence
            batch.mark = self.mark
            self._sent_at = perf_counter()
            self.insist(lambda: self.store.send(batch))
            self.news = self.news or bool(batch.jobs)
            self.batch = Batch(term=self.term)
            self.under_way = batch
        self._leaving, self.outbox = self.outbox, Outbox()

    def once_committed(self, call: Callable[[], object]) -> None:
        """Do this when the decisions of this turn are committed. It may neither block nor fail."""
        self.outbox.then.append(call)

    def arrive(self) -> None:
        """What was sent is committed, so act on it."""
        batch, self.under_way = self.under_way, None
        if batch is not None:
            self._see_through(batch)
            self.meters.committed(perf_counter() - self._sent_at)
            self.committed()
        outbox = self._leaving
        if outbox is not None:
            if outbox.permits or outbox.acks:  # whoever has taken over meanwhile knows better
                self.insist(self.store.assure)
            self._act(outbox)
            self._leaving = None  # until now whoever waits for it must be told if it cannot be done

    def _see_through(self, batch: Batch) -> None:
        try:
            self.store.settle()
        except StoreBusy as error:
            self.wait_for(lambda: self._commit(batch), error)
        except (StoreUnavailable, StoreConflict):
            self.insist(lambda: self._commit(batch))

    def _commit(self, batch: Batch) -> None:
        """An application may write the same row elsewhere at this very moment. The store says so,
        and sees it when it is asked again.
        """
        for _ in range(CONFLICTS):
            with suppress(StoreConflict):
                return self.store.commit(batch)
        return self.store.commit(batch)

    def abandon(self, error: Exception) -> None:
        """There will be no other turn: whoever waits for one hears so, and whoever waits for what
        was sent hears that it may have been done.
        """
        waiting = self.slots.waiters()
        while self._calls:
            with suppress(IndexError):  # another thread may be here too
                waiting.append(self._calls.popleft()[1])
        for waiter in waiting:
            fail(waiter, error, running=False)
        lost = EngineLost(f"{error}; perhaps it was done before: look what is there before you ask "
                          "again")  # fmt: skip
        for outbox, why in ((self._leaving, lost), (self.outbox, error)):
            if outbox is not None:
                acks, outbox.acks = outbox.acks, []
                for waiter, _ in acks:
                    waiter.set_exception(why)
        self.remote.send_home()

    def _act(self, outbox: Outbox) -> None:
        away: Away = []
        if outbox.permits:
            self._hand_out(outbox.permits, away)
        for fence, why in outbox.stops:
            if fence in self.hand_held:
                self.hands.stop(fence, why)
            else:
                self.remote.stop_asked(fence)
        if away or self.remote.unheard:
            self.remote.deliver(away, self.clock.now())
        for call in outbox.then:
            call()
        acks, outbox.acks = outbox.acks, []
        for waiter, value in acks:
            waiter.set_result(value)
        for number in outbox.ended:
            for tell in self.ended.pop(number, ()):
                tell()

    def _hand_out(self, permits: list[Permit], away: Away) -> None:
        """To the hands of this process. What goes to workers elsewhere is added to `away`; with
        None if there is nothing to be done.
        """
        jobs: dict[int, Permit] = {}
        for permit in permits:
            number: Any = permit.ticket.id
            if type(number) is int:
                jobs[number] = permit
        if not jobs:
            return
        works: list[Work] = []
        errands: list[Errand] = []
        others: list[int] = []
        for number in jobs:
            args = self.at_hand.take(number)
            if args is None:
                others.append(number)
            else:
                errands.append(Errand(number, args, None))
        if others:
            errands += self.insist(lambda: self.store.errands(others))
        for errand in errands:
            permit = jobs.pop(errand.id)
            known = self.registry.types.get(permit.ticket.type)
            if known is None:
                away.append((permit, errand))
                continue
            work = Work.permitted(permit, known, errand)
            self.hand_held[permit.fence] = work
            works.append(work)
        if works:
            self.hands.start(works)
        for number, permit in jobs.items():
            lost = Outcome.failed("its payload is not in the store any more", fatal=True)
            self.finished(number, permit.fence, lost, None)
            away.append((permit, None))


def fail(waiter: Waiter, error: Exception, *, running: bool) -> None:
    if running or waiter.set_running_or_notify_cancel():
        waiter.set_exception(error)


def _nothing() -> None:
    pass
