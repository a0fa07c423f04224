"""How the courier is put together, and what a server has of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from fastapi import APIRouter

from headway.api.attention import Attention, Level
from headway.api.config import Config
from headway.api.metrics import Counts
from headway.api.site import Site
from headway.apps.celery import routes
from headway.apps.celery.courier import Asked, Claim, Courier, Refused
from headway.apps.celery.messages import Parcel, Word, last_word
from headway.apps.celery.publishing import Publisher, connection_to
from headway.apps.celery.tables import APP, MIGRATIONS, CarriedType, save, stored
from headway.engine.brain import Brain
from headway.errors import EngineStopped
from headway.sdk.app import App

MAX_TYPES = 5_000


class Celery:
    """Without a broker it does nothing but say so."""

    name = APP
    routers: Sequence[APIRouter] = (routes.router,)

    def prepare(self, app: App, config: Config, settings_file: str | None) -> None:
        self._app = app
        self.site: Site
        self.configured = bool(config.celery_broker)
        self._publisher: Publisher | None = None
        self.courier = Courier(config.celery_claim_s, self._send, self._tell)
        self._away_since: float | None = None
        if not self.configured:
            return
        connection_to(config.celery_broker)  # what is wrong with it is said at the start
        self._broker = config.celery_broker
        app.store.install(APP, MIGRATIONS)
        app.preparing.append(self._meet)

    def _meet(self, brain: Brain) -> None:
        """Only a server that lets jobs start sends them anywhere."""
        if brain.granting:
            self.courier.meet(brain, stored(self._app.store))
            if self._publisher is None:
                self._publisher = Publisher(self._broker, self)
                self._publisher.start()

    def serve(self, site: Site) -> None:
        self.site = site

    # ------------------------------------------------------------------ what routes ask

    async def view(self) -> dict[str, Any]:
        if not self.configured:
            return {"configured": False, "trouble": "", "sent": 0, "counts": {}, "workers": [],
                    "queues": []}  # fmt: skip
        return await asyncio.wrap_future(self.site.engine.ask(self._view))

    def _view(self, now: float) -> dict[str, Any]:
        courier = self.courier
        fleet = courier.fleet
        queues = sorted({each.queue for each in courier.types.values()})
        return {
            "configured": True,
            "trouble": courier.trouble,
            "sent": 0 if self._publisher is None else self._publisher.sent,
            "counts": dict(courier.counts),
            "workers": [
                {"name": each.name, "queues": list(each.queues), "places": each.places,
                 "silent_s": max(now - each.heard_at, 0.0)}
                for each in fleet.members.values()
            ],
            "queues": [
                {"name": queue,
                 "types": sorted(n for n, each in courier.types.items() if each.queue == queue),
                 "places": fleet.places(queue),
                 "outstanding": len(courier.carried.get(queue, ())),
                 "unclaimed": sum(each.claim is None and each.work is not None
                                  for each in courier.carried.get(queue, {}).values()),
                 "why": courier.why(queue)}
                for queue in queues
            ],
        }  # fmt: skip

    async def carry(self, types: Sequence[CarriedType]) -> int:
        """Stored first: what is answered outlives a restart. ValueError: there are too many."""
        courier = self.courier
        new = [each for each in types if courier.types.get(each.name) != each]
        if len({*courier.types, *(each.name for each in new)}) > MAX_TYPES:
            raise ValueError(f"Celery carries at most {MAX_TYPES} types of jobs")
        if new:
            await asyncio.to_thread(save, self._app.store, new)
            await asyncio.wrap_future(self.site.engine.ask(lambda now: courier.carry(new, now)))
        return len(courier.types)

    async def here(self, worker: str, queues: Sequence[str], places: int) -> None:
        courier = self.courier

        def say(now: float) -> None:
            if places:
                courier.here(worker, queues, places, now)
            else:
                courier.gone(worker, now)

        await asyncio.wrap_future(self.site.engine.ask(say))

    async def claim(self, claims: Sequence[Asked]) -> list[Claim | Refused]:
        """The answer does not wait for the commit of its turn: what is claimed was committed when
        it was sent, and the worker wants to begin.
        """
        answer = Future[list[Claim | Refused]]()

        def claim_all(now: float) -> None:
            answer.set_result([self._claimed(each, now) for each in claims])

        self.site.engine.brain.ask_for(answer, claim_all, later=True)
        return await asyncio.wrap_future(answer)

    def _claimed(self, asked: Asked, now: float) -> Claim | Refused:
        try:
            return self.courier.claim(asked, now)
        except Refused as refused:
            return refused

    # ------------------------------------------------------------------ from the publisher's thread

    def unsent(self, parcels: Sequence[Parcel]) -> None:
        if parcels:
            self._ask(lambda now: self.courier.unsent(parcels, now))

    def broker_is(self, trouble: str) -> None:
        self._away_since = (self._away_since or self._app.now()) if trouble else None
        self._ask(lambda now: self.courier.broker_is(trouble, now))

    def worded(self, word: Word) -> Parcel | None:
        args = self._app.store.payload(word.id)
        try:
            return None if args is None else last_word(word, args)
        except ValueError:
            return None  # it was no task of Celery after all

    def look(self) -> None:
        courier, publisher = self.courier, self._publisher
        if publisher is not None and publisher.trouble not in (None, courier.trouble):
            self.broker_is(publisher.trouble or "")  # the engine did not run when it was said
        if courier.fleet.members or any(courier.carried.values()):
            self._ask(courier.look)

    def _ask(self, call: Callable[[float], None]) -> None:
        engine = self._app.engine
        if engine is not None:
            try:
                engine.ask(call)
            except EngineStopped:
                return  # what is on its way is looked at after the next start

    def _send(self, parcels: Sequence[Parcel]) -> None:
        if self._publisher is not None:
            self._publisher.send(parcels)

    def _tell(self, word: Word) -> None:
        if self._publisher is not None:
            self._publisher.tell(word)

    # ------------------------------------------------------------------ for the server

    def counts(self) -> Iterable[Counts]:
        if not self.configured:
            return
        courier = self.courier
        sent = 0 if self._publisher is None else self._publisher.sent
        messages: dict[tuple[str, ...], float] = {
            ("sent",): sent,
            **{(what,): count for what, count in courier.counts.items()},
        }
        yield Counts("celery_messages", "Messages to Celery workers, by what became of them.",
                     ("what",), messages)  # fmt: skip
        yield Counts("celery_outstanding", "Jobs that were sent to Celery and have not ended.",
                     ("queue",), {(q,): len(held) for q, held in list(courier.carried.items())},
                     now=True)  # fmt: skip
        members = list(courier.fleet.members.values())
        yield Counts("celery_workers", "Celery workers that are there.", (),
                     {(): len(members)}, now=True)  # fmt: skip
        yield Counts("celery_broker_up", "Whether the Celery broker can be reached.", (),
                     {(): float(not courier.trouble)}, now=True)  # fmt: skip

    def attention(self, tenant: str | None, now: float) -> Iterable[Attention]:
        if not self.configured or tenant is not None:
            return
        courier = self.courier
        if courier.trouble:
            if self._away_since is not None:
                yield Attention(
                    "celery_broker_away", Level.BAD, ("celery", ""),
                    f"The Celery broker cannot be reached ({courier.trouble}); jobs for Celery "
                    "wait.", {"why": courier.trouble}, since=self._away_since,
                )  # fmt: skip
            return
        for queue in sorted({each.queue for each in list(courier.types.values())}):
            if not courier.fleet.places(queue):
                yield Attention(
                    "celery_no_worker", Level.INFO, ("celery", queue),
                    f"No Celery worker is there for queue {queue}; its jobs wait.",
                    {"queue": queue},
                )  # fmt: skip

    async def start(self) -> None:
        """It has begun with the engine."""

    def stop_waiting(self) -> None:
        """Nobody waits for long."""

    async def stop(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            await asyncio.to_thread(publisher.stop)
