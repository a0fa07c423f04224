"""A courier in a virtual world, and all that it has sent and said."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from headway import App
from headway.apps.celery.courier import INF, Asked, Claim, Courier
from headway.apps.celery.messages import Parcel, Word
from headway.apps.celery.tables import CarriedType, Kind
from headway.core import Outcome
from headway.engine.hands import RemoteWork
from headway.store.records import NewJob
from headway.testing import World

T = TypeVar("T")

CLAIM_S = 30.0
VISIT = {"visit": "celery"}


class Carrying:
    """`types`: of jobs, each with its queue."""

    def __init__(self, app: App, kind: Kind = Kind.RUN, types: Mapping[str, str] = VISIT) -> None:
        self.parcels: list[Parcel] = []
        self.words: list[Word] = []
        self.types = [CarriedType(name, queue, kind) for name, queue in types.items()]
        self.courier = self._courier()
        app.preparing.append(lambda brain: self.courier.meet(brain, self.types))
        self.world = World(app)
        self.app = app

    def _courier(self) -> Courier:
        made = Courier(CLAIM_S, self.parcels.extend, self.words.append)
        made.trouble = ""
        return made

    def ask(self, call: Callable[[float], T]) -> T:
        assert self.app.engine is not None
        answer = self.app.engine.ask(call)
        self.world.run_for(0.001)
        return answer.result(0)

    def here(self, places: int, name: str = "a", queues: Sequence[str] = ("celery",)) -> None:
        self.ask(lambda now: self.courier.here(name, queues, places, now))

    def put(self, count: int = 1, **more: str) -> list[int]:
        handles = self.app.enqueue_many(
            NewJob(more.get("type", "visit"), more.get("args", "{}"), created_at=self.world.now,
                   upstreams=more.get("upstreams"))
            for _ in range(count)
        )  # fmt: skip
        self.world.run_for(0.001)
        return [handle.id for handle in handles]

    def works(self) -> list[RemoteWork]:
        works = [each.work for each in self.parcels if isinstance(each.work, RemoteWork)]
        self.parcels.clear()
        return works

    def start_in_s(self, work: RemoteWork, slack_s: float = 0.0) -> float:
        at = self.claim(work, slack_s=slack_s).start_at
        assert at is not None
        return max(at - self.world.now, 0.0)

    def claim(
        self, work: RemoteWork, name: str = "mine", slack_s: float = 0.0, member: str = "",
        within_s: float = INF,
    ) -> Claim:  # fmt: skip
        asked = Asked(work.id, work.fence, name, "w", member, slack_s, within_s)
        return self.ask(lambda now: self.courier.claim(asked, now))

    def complete(self, work: RemoteWork, outcome: Outcome | None = None) -> None:
        brain = self.app.engine.brain  # type: ignore[union-attr]
        ended = outcome or Outcome.ok()
        self.ask(lambda now: brain.remote.complete(work.id, work.fence, ended, None, now))

    def pass_time(self, seconds: float) -> None:
        """As the publisher's thread does it: with a look each second."""
        for _ in range(int(seconds)):
            self.world.run_for(1.0)
            self.ask(self.courier.look)
