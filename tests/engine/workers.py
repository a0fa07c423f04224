"""Workers elsewhere, as tests play them: they ask, hold, report and fall silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from headway import App, JobHandle
from headway.core import Outcome, State
from headway.engine.brain import Brain
from headway.engine.hands import RemoteStop, RemoteWork
from headway.engine.hands.remote import Beat, RemoteHands, Taker
from headway.store.records import NewJob

T = TypeVar("T")
PATIENCE_S = 10.0  # where the engine is a real one; on virtual time the answer is there at once


def brain_of(app: App) -> Brain:
    assert app.engine is not None
    return app.engine.brain


def asking(app: App, call: Callable[[RemoteHands, float], T]) -> T:
    """What the server does for a request: one call in the brain's turn."""
    assert app.engine is not None
    brain = app.engine.brain
    return app.engine.ask(lambda now: call(brain.remote, now)).result(PATIENCE_S)


def put(app: App, type: str = "resize", args: str = "{}", **options: Any) -> JobHandle[Any]:
    """A job of a type that this app cannot run itself."""
    return app.enqueue(NewJob(type, args, created_at=app.now(), **options))


class Worker:
    """One that runs elsewhere. `works` and `stops` are what it was told, in order."""

    def __init__(self, app: App, name: str = "w1") -> None:
        self.app = app
        self.name = name
        self.works: list[RemoteWork] = []
        self.stops: list[RemoteStop] = []
        self.answers = 0

    def take(self, types: Iterable[str] = ("resize",), size: int = 1) -> Taker:
        taker = Taker(self.name, types, size, self.hear)
        asking(self.app, lambda remote, now: remote.take(taker, now))
        return taker

    def hear(self, works: list[RemoteWork], stops: list[RemoteStop]) -> None:
        self.answers += 1
        self.works += works
        self.stops += stops

    def taken(self, types: Iterable[str] = ("resize",), size: int = 1) -> list[RemoteWork]:
        """What it gets at once; it does not wait for more."""
        before = len(self.works)
        self.leave(self.take(types, size))
        return self.works[before:]

    def leave(self, taker: Taker) -> bool:
        return asking(self.app, lambda remote, now: remote.leave(taker, now))

    def beat(self, work: RemoteWork, **notes: Any) -> Beat:
        return asking(
            self.app,
            lambda remote, now: remote.heartbeat(
                work.id, work.fence, now, worker=self.name, **notes
            ),
        )

    def complete(
        self, work: RemoteWork, outcome: Outcome | None = None, result: str | None = None
    ) -> State | None:
        done = outcome or Outcome.ok()
        return asking(
            self.app,
            lambda remote, now: remote.complete(work.id, work.fence, done, result, now),
        )
