"""What somebody who wants a slot says to a server, and when: `/api/slots`.

Nothing here asks or waits. Each of the generators gives what is to be asked next, or for how many
seconds to wait before, and is sent the answer; so the same rules hold in a thread and on a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

import msgspec

from headway.core import Kind, Outcome, Refused
from headway.core.change import UnknownTicket
from headway.core.classify import Meaning, classify_status
from headway.errors import (
    HeadwayError,
    OutcomeUnknown,
    SlotLost,
    StoreUnavailable,
    UnknownSlot,
)
from headway.lease_clock import lease_clock
from headway.remote.client import Ask, Backoff
from headway.remote.desk import lease_end
from headway.remote.looking import path
from headway.remote.protocol import LARGEST_STATUS, rate_words

POLL_S = 20.0  # how long the server may think about one question
ANSWER_S = 10.0  # for the way there and back
LEAVE_S = 3.0  # for the last word of somebody who has no time
SOON_S = 0.2  # the least time between two questions that are answered at once
AWAY_S = 60.0  # for so long a server may be away, if nobody has said how long to wait
GIVE_BACK_S = 5.0  # for so long one tries to give a slot back
MAX_ERROR = 1_000  # characters
# What outcomes without a status of their own are told as.
UNWELL, PUSHED_BACK, BANNED = 504, 429, 412
OK = Meaning.OK


class Answer(msgspec.Struct):
    """Granted, or not yet and why."""

    status: str
    id: int
    fence: int = 0
    upstream: str | None = None
    lease_s: float = 0.0
    waited_s: float = 0.0
    position: int | None = None
    eta: str | None = None
    wait_reason: str | None = None
    wait_gate: str | None = None
    wait_detail: str | None = None
    opens_at: str | None = None


class Renewed(msgspec.Struct):
    lease_s: float


class Released(msgspec.Struct):
    accepted: bool


class Ended(msgspec.Struct):
    ended: bool


Step = tuple[Ask, type[Any]] | float
Heard = Callable[[Answer | HeadwayError], None]  # what there is to tell about the waiting


class Lease:
    """A slot that is held, and until when by our own clock."""

    def __init__(self, answer: Answer, counted_from: float) -> None:
        self.id = answer.id
        self.fence = answer.fence
        self.upstream = answer.upstream
        self.prolong(answer.lease_s, counted_from)

    def prolong(self, lease_s: float, counted_from: float) -> None:
        self.lease_s = lease_s
        self.ends_at = lease_end(lease_s, counted_from)

    @property
    def renew_at(self) -> float:
        """When a third of it is over, less what is given up at its end."""
        return self.ends_at - 0.6 * self.lease_s

    def renewal(self) -> Ask:
        answer_s = min(ANSWER_S, max(1.0, self.lease_s / 4))
        return Ask("POST", path("slots", self.id, "renew"), {"fence": self.fence},
                   answer_s=answer_s)  # fmt: skip


class Waiting:
    """Asks for a slot, and asks on until it is granted or time is over."""

    def __init__(
        self,
        wish: Mapping[str, Any],
        timeout_s: float | None,
        poll_s: float = POLL_S,
        heard: Heard = lambda _: None,
    ) -> None:
        self.id: int | None = None  # by which the server knows us
        self.over = False  # nobody wants it any more
        self._wish = wish
        self._place = place(wish)
        self._timeout_s = timeout_s
        self._until = None if timeout_s is None else lease_clock() + timeout_s
        self._poll_s = poll_s
        self._heard = heard
        self._asked_first_at = 0.0
        self._away_since: float | None = None
        self._backoff = Backoff(longest_s=1.0)

    def steps(self) -> Generator[Step, Any, Lease | None]:
        """None: it is over, by somebody's will."""
        while not self.over:
            asked_at = lease_clock()
            ask, wait_s = self._question(asked_at)
            try:
                answer: Answer = yield ask, Answer
            except Refused:
                raise
            except (StoreUnavailable, UnknownSlot) as error:
                yield self._failed(error, asked_at)
                continue
            except TimeoutError:  # so says the server
                self.id = None
                raise self._too_late() from None
            except UnknownTicket:
                self.id = None
                raise SlotLost(f"somebody has ended the wait for a slot at {self._place}") from None
            self._away_since = None
            self._backoff.reset()
            self.id = answer.id
            if answer.status == "granted":
                return Lease(answer, self._granted_at(answer, asked_at))
            self._heard(answer)
            now = lease_clock()
            if self._until is not None and now >= self._until:
                raise self._too_late()
            # A server that is about to stop answers at once, and must not be asked without end.
            if wait_s and now - asked_at < wait_s / 2:
                yield min(SOON_S, self._left_s(now))
        return None

    def _question(self, now: float) -> tuple[Ask, float]:
        """The first is answered at once, so that there is a number to leave the line with."""
        if self.id is None:
            self._asked_first_at = now
            body = {**self._wish, "wait_ms": 0}
            if self._timeout_s:
                body["timeout_s"] = round(self._left_s(now), 3)
            return Ask("POST", path("slots"), body, answer_s=self._answer_s(now)), 0.0
        wait_s = min(self._poll_s, self._left_s(now))
        answer_s = wait_s + self._answer_s(now + wait_s)
        body = {"wait_ms": int(wait_s * 1_000)}
        return Ask("POST", path("slots", self.id, "poll"), body, answer_s=answer_s), wait_s

    def _answer_s(self, now: float) -> float:
        """A server that does not answer must not cost much more time than there is."""
        if self._until is None:
            return ANSWER_S
        return min(ANSWER_S, max(self._until - now, LEAVE_S))

    def _left_s(self, now: float) -> float:
        return self._poll_s if self._until is None else max(self._until - now, 0.0)

    def _granted_at(self, answer: Answer, asked_at: float) -> float:
        """Not later than it was granted there, by our clock: a lease must not end there before it
        ends here. The waiting there has begun after we had asked for it.
        """
        since = self._asked_first_at + answer.waited_s
        return min(max(asked_at, since), lease_clock())

    def _failed(self, error: StoreUnavailable | UnknownSlot, asked_at: float) -> float:
        """How long to wait before asking again."""
        now = lease_clock()
        pause_s = self._backoff.next_s()
        if isinstance(error, UnknownSlot):
            self.id = None  # we are forgotten: back to the end of the line
            return pause_s
        if self._away_since is None:
            self._away_since = asked_at
        self._heard(error)
        if self._until is None:
            if now - self._away_since > AWAY_S:
                raise error
        elif now + pause_s >= self._until:
            raise self._too_late(f"; {trouble(error)}") from error
        return pause_s

    def _too_late(self, why: str = "") -> TimeoutError:
        return TimeoutError(f"no slot at {self._place} within {self._timeout_s:g} s{why}")


def place(wish: Mapping[str, Any]) -> str:
    """Where a slot is wanted, for people."""
    names = wish.get("upstreams") or ()
    if names:
        return " or ".join(names)
    return f"key {wish['key']}" if wish.get("key") else f"lane {wish.get('lane', 'default')}"


def trouble(error: Exception) -> str:
    """What an error says where asking again does no harm."""
    if isinstance(error, OutcomeUnknown):
        return "the connection to the server was lost"
    return str(error) or "the server did not answer"


def leaving(id: int) -> Generator[Step, Any, None]:
    """Whoever cannot be told forgets us by itself."""
    try:
        yield Ask("DELETE", path("slots", id), answer_s=LEAVE_S), Ended
    except HeadwayError:
        return


def giving_back(
    lease: Lease, outcome: Outcome, patience_s: float = GIVE_BACK_S
) -> Generator[Step, Any, bool | HeadwayError]:
    """False: the lease was over when it was given back. An error: it could not be given back, and
    goes back by itself when its lease is over.
    """
    body = {"fence": lease.fence, **outcome_words(outcome)}
    backoff = Backoff(longest_s=1.0)
    until = lease_clock() + patience_s
    perhaps_heard = False
    while True:
        ask = Ask("POST", path("slots", lease.id, "release"), body, answer_s=GIVE_BACK_S)
        try:
            released: Released = yield ask, Released
        except (UnknownSlot, SlotLost):
            return perhaps_heard
        except StoreUnavailable as error:
            perhaps_heard = perhaps_heard or isinstance(error, OutcomeUnknown)
            pause_s = backoff.next_s()
            if lease_clock() + pause_s >= until:
                return error
            yield pause_s
        except HeadwayError as error:
            return error
        else:
            return released.accepted or perhaps_heard


def outcome_words(outcome: Outcome) -> dict[str, Any]:
    """An outcome as the API is told it. It knows the meaning of a status, and nothing else."""
    words: dict[str, Any] = {}
    status = _told_status(outcome)
    if status is not None and 100 <= status <= LARGEST_STATUS:
        words["status"] = status
    if outcome.retry_after_s is not None and outcome.kind is Kind.PUSHBACK:
        words["retry_after_s"] = outcome.retry_after_s
    if outcome.rates is not None:
        words["headers"] = rate_words(outcome.rates)
    if outcome.error or (outcome.kind is not Kind.OK and not words):
        words["error"] = sendable(outcome.error or outcome.kind.value, MAX_ERROR)
    return words


def sendable(text: str, limit: int) -> str:
    """Without what cannot be sent or is not taken: half characters, the zero character."""
    return text[:limit].replace("\0", "").encode("utf-8", "replace").decode()


def _told_status(outcome: Outcome) -> int | None:
    status = outcome.status
    match outcome.kind:
        case Kind.OK:
            return status
        case Kind.PUSHBACK if outcome.ban:
            return BANNED
        case Kind.PUSHBACK:
            meant = None if status is None else classify_status(status).meaning
            return status if meant in (Meaning.PUSHBACK, Meaning.BAN) else PUSHED_BACK
        case Kind.FAILED if status is not None and classify_status(status).meaning is not OK:
            return status
        case Kind.FAILED if outcome.upstream_fault:
            return UNWELL
    return None
