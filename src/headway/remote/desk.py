"""What a worker holds: the jobs that run here, and those that have ended and are not reported yet.

Everything here happens in the loop that talks to the server. What comes from the hands, from their
loop or any thread, waits in the mailbox until this loop has time, in the order in which it came.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from headway.core import Outcome
from headway.core.ticket import Stop
from headway.engine.hands import Hands, RemoteWork, Work
from headway.engine.registry import JobType
from headway.lease_clock import lease_clock

logger = logging.getLogger("headway.worker")

MARGIN = 0.1  # of a lease, which is given up so that a job is stopped before others may have it
MAX_MARGIN_S = 5.0
STOPS = {"cancel": Stop.CANCEL, "pause": Stop.PAUSE}

Notes = dict[str, Any]


def lease_end(lease_s: float, asked_at: float) -> float:
    return asked_at + lease_s - min(MAX_MARGIN_S, MARGIN * lease_s)


class Held:
    """A job that this worker holds. `outcome` is there when it has ended."""

    __slots__ = ("checkpoint", "ends_at", "fence", "id", "is_async", "lease_s", "logs", "lost",
                 "noted_at", "outcome", "progress", "result", "saying", "state")  # fmt: skip

    def __init__(self, work: RemoteWork, is_async: bool, asked_at: float) -> None:
        self.id = work.id
        self.fence = work.fence
        self.is_async = is_async
        self.lost = False  # it is not ours any more, though it may not have stopped yet
        self.outcome: Outcome | None = None
        self.result: str | None = None
        self.progress: tuple[Any, ...] | None = None
        self.checkpoint: str | None = None
        self.logs: list[tuple[float, str, str]] = []
        self.noted_at: float | None = None  # since when there is something to say
        self.saying = False  # a heartbeat with notes is on its way
        self.state: str | None = None  # of the job, as the server says after the report
        self.prolong(work.lease_s, asked_at)

    def prolong(self, lease_s: float, asked_at: float) -> None:
        """Counted from before the server was asked, so it has not ended there before it ends here,
        however long the answer took.
        """
        self.lease_s = lease_s
        self.ends_at = lease_end(lease_s, asked_at)

    @property
    def beat_at(self) -> float:
        """When a third of the lease is over."""
        return self.ends_at - 0.6 * self.lease_s

    @property
    def ended(self) -> bool:
        return self.outcome is not None

    # ------------------------------------------------------------------ what it says

    def note(self, kind: str, values: tuple[Any, ...]) -> bool:
        """False: that is of no interest elsewhere."""
        match kind:
            case "progress":
                self.progress = values
            case "checkpoints":
                self.checkpoint = values[0]
            case "logs":
                self.logs.append((values[0], values[1], values[2]))
            case _:
                return False
        if self.noted_at is None:
            self.noted_at = lease_clock()
        return True

    def take_notes(self) -> Notes:
        notes: Notes = {}
        if self.progress is not None:
            done, total, note, _ = self.progress
            notes["progress"] = {"done": done, "total": total, "note": note}
        if self.checkpoint is not None:
            notes["checkpoint"] = msgspec.Raw(self.checkpoint.encode())
        if self.logs:
            notes["logs"] = [{"at": at, "level": level, "line": line}
                             for at, level, line in self.logs]  # fmt: skip
        self.saying = bool(notes)
        self.drop_notes()
        return notes

    def put_back(self, notes: Notes) -> None:
        """They were not heard. What was said since then is newer."""
        if self.progress is None and "progress" in notes:
            said = notes["progress"]
            self.progress = (said["done"], said["total"], said["note"], 0.0)
        if self.checkpoint is None and "checkpoint" in notes:
            self.checkpoint = bytes(notes["checkpoint"]).decode()
        if "logs" in notes:
            self.logs[:0] = [(each["at"], each["level"], each["line"]) for each in notes["logs"]]
        if notes and self.noted_at is None:
            self.noted_at = lease_clock()

    def drop_notes(self) -> None:
        self.progress = self.checkpoint = self.noted_at = None
        self.logs = []


class Desk:
    """`hands` do the work. The three callbacks are told that there is something to do."""

    def __init__(self, loop: asyncio.AbstractEventLoop, hands: Hands) -> None:
        self._loop = loop
        self._hands = hands
        self.held: dict[int, Held] = {}  # by fence
        self.running: dict[bool, dict[int, Held]] = {True: {}, False: {}}  # async or not
        self.ended: dict[int, Held] = {}  # not reported yet, in the order of their ends
        self._letters: deque[tuple[Any, ...]] = deque()
        self._knocked = False
        self.room: Callable[[], None] = lambda: None  # a place is free
        self.pulse: Callable[[], None] = lambda: None  # something is to be said
        self.report: Callable[[], None] = lambda: None  # something has ended
        self.empty: Callable[[], None] = lambda: None  # nothing is held any more
        self.gone: Callable[[Held], None] = lambda _: None  # one is held no more

    # ------------------------------------------------------------------ from the hands

    def note(self, kind: str, job: int, fence: int, values: tuple[Any, ...]) -> None:
        if kind == "with_end":
            raise RuntimeError("job.with_end works where the engine runs; this is a worker")
        self._drop_in(("note", fence, kind, values))

    def finished(self, job: int, fence: int, outcome: Outcome, result: str | None) -> None:
        self._drop_in(("finished", fence, outcome, result))

    def admit(self, work: RemoteWork, job_type: JobType, asked_at: float) -> None:
        """To begin one, from any thread. What is said of it afterwards is read afterwards."""
        self._drop_in(("admit", work.fence, work, job_type, asked_at))

    def known(self, fence: int, state: str | None) -> None:
        """The server has heard how it ended, in another way than from here."""
        self._drop_in(("known", fence, state))

    def _drop_in(self, letter: tuple[Any, ...]) -> None:
        self._letters.append(letter)
        if not self._knocked:
            self._knocked = True
            with suppress(RuntimeError):  # the worker is gone, and so is its loop
                self._loop.call_soon_threadsafe(self.read_letters)

    def read_letters(self) -> None:
        self._knocked = False  # first: whoever comes from here on knocks again
        while self._letters:
            what, fence, *rest = self._letters.popleft()
            if what == "admit":
                work, job_type, asked_at = rest
                self.begin([(work, job_type)], asked_at)
                continue
            held = self.held.get(fence)
            if held is None or held.ended:
                continue
            if what == "finished":
                self._end(held, *rest)
            elif what == "known":
                [held.state] = rest
                del self.running[held.is_async][fence]
                self.settled(held)
            elif not held.lost and held.note(*rest):
                self.pulse()

    def _end(self, held: Held, outcome: Outcome, result: str | None) -> None:
        del self.running[held.is_async][held.fence]
        if held.lost:
            self._forget(held)
        else:
            held.outcome, held.result = outcome, result
            self.ended[held.fence] = held
            if held.noted_at is not None:
                self.pulse()
            self.report()
        self.room()

    # ------------------------------------------------------------------ from the server

    def begin(self, taken: list[tuple[RemoteWork, JobType]], asked_at: float) -> None:
        works = []
        for work, job_type in taken:
            held = Held(work, job_type.is_async, asked_at)
            self.held[held.fence] = self.running[held.is_async][held.fence] = held
            works.append(Work.sent(work, job_type))
        self._hands.start(works)
        self.pulse()

    def turn_away(self, work: RemoteWork, asked_at: float) -> None:
        """It came when it could not be begun any more."""
        held = Held(work, False, asked_at)
        held.outcome = Outcome.returned()
        self.held[held.fence] = self.ended[held.fence] = held
        self.report()

    def stop(self, fence: int, why: str) -> None:
        """An order from the server. The end of its time is noticed by the hands themselves."""
        held = self.held.get(fence)
        if held is None or held.ended:
            return
        if why == "lost":
            self.lose(held, "the server has given it up")
        elif why in STOPS:
            self._hands.stop(fence, STOPS[why])

    def lose(self, held: Held, why: str) -> None:
        """The lease is over: it is stopped here, and nobody hears how it ended. Of one that had
        ended before, the server may have heard already; it says so when it is told again.
        """
        if held.lost:
            return
        held.lost = True
        held.drop_notes()
        if not held.ended:
            logger.warning("job %s is stopped: %s", held.id, why)
            self._hands.stop(held.fence, Stop.CANCEL)

    def lose_overdue(self, now: float) -> None:
        for held in self.held.values():
            if held.ends_at <= now and not held.lost and not held.ended:
                self.lose(held, "its lease is over, and the server could not be asked for more")

    def settled(self, held: Held) -> None:
        """The server knows how it ended, or will not hear of it."""
        self.ended.pop(held.fence, None)
        self._forget(held)
        self.room()

    def _forget(self, held: Held) -> None:
        self.held.pop(held.fence, None)
        self.gone(held)
        if not self.held:
            self.empty()

    # ------------------------------------------------------------------ the end

    def give_all_back(self) -> None:
        """What has not ended goes back without a burnt attempt, as far as it is still ours."""
        self.read_letters()
        for running in self.running.values():
            for held in list(running.values()):
                self._end(held, Outcome.returned(), None)

    def count_running(self) -> int:
        return sum(len(running) for running in self.running.values())
