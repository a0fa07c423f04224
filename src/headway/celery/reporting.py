"""The thread that has waited for the end of a job reports it.

Every other worker does that in a loop, which costs two changes of threads and a request of its own
for each job. Here a thread of Celery stands and waits anyway. Only when that fails, or when the job
has said something that must be heard first, it is left to the loop, which tries until it is heard.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from headway.celery.together import Together
from headway.core import Outcome
from headway.engine.hands import Hands
from headway.remote.client import Ask, Client
from headway.remote.completing import ANSWER_S, MAX_BYTES, MAX_JOBS, ending_body
from headway.remote.desk import Desk, Held
from headway.remote.protocol import Ending as Told
from headway.remote.protocol import Endings


class Ending:
    """How a job has ended, and what the server made of it. `lost`: it was not ours any more."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._known = threading.Event()
        self.said: tuple[Outcome, str | None] | None = None  # None: the loop reports it
        self.state: str | None = None
        self.lost = False

    def end(self, said: tuple[Outcome, str | None] | None) -> None:
        """It is over here. What is said shall be reported by whoever waits."""
        self.said = said
        self._ended.set()

    def set(self, held: Held | None) -> None:
        self.settle(None if held is None else held.state, lost=held is None or held.lost)

    def settle(self, state: str | None, *, lost: bool) -> None:
        """The server knows, or will not hear of it. The first word counts."""
        if not self._known.is_set():
            self.state, self.lost = state, lost
        self._known.set()
        self._ended.set()

    def wait(self) -> None:
        self._ended.wait()

    def is_known(self, within_s: float = 0.0) -> bool:
        return self._known.wait(within_s)


class Reports:
    """Of one process; they may be made from any thread."""

    def __init__(self, client: Client, worker: str) -> None:
        self._client = client
        self._worker = worker
        self._together = Together(self._send, MAX_JOBS)

    def make(self, id: int, fence: int, outcome: Outcome, result: str | None) -> Told:
        """HeadwayError: perhaps it was heard, and may be said again."""
        return self._together.ask(ending_body(id, fence, outcome, result))

    def _send(self, jobs: list[dict[str, Any]]) -> list[Told]:
        body = {"worker": self._worker, "jobs": jobs}
        ask = Ask("POST", "/api/work/complete", body, repeats=False, answer_s=ANSWER_S)
        answer = self._client.call(ask, Endings, patience_s=0.0)
        return answer.jobs


class StationDesk(Desk):
    """`endings`: those who wait, by fence. Whoever has said something on the way is left to the
    loop.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, hands: Hands, endings: dict[int, Ending]
    ) -> None:
        super().__init__(loop, hands)
        self._endings = endings
        self._talked: set[int] = set()

    def note(self, kind: str, job: int, fence: int, values: tuple[Any, ...]) -> None:
        if fence in self._endings:
            self._talked.add(fence)
        super().note(kind, job, fence, values)

    def finished(self, job: int, fence: int, outcome: Outcome, result: str | None) -> None:
        ending = self._endings.get(fence)
        if ending is None or fence in self._talked or len(result or "") > MAX_BYTES // 10:
            self.report_here(job, fence, outcome, result)
            if ending is not None:
                ending.end(None)
        else:
            ending.end((outcome, result))

    def report_here(self, job: int, fence: int, outcome: Outcome, result: str | None) -> None:
        """In the loop, which tries until it is heard."""
        super().finished(job, fence, outcome, result)

    def _forget(self, held: Held) -> None:
        self._talked.discard(held.fence)
        super()._forget(held)
