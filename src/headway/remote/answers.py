"""What a server's answer means here: its data, or the very error that a store here would raise."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import httpx2
import msgspec

from headway import errors
from headway.core import IllegalTransition, Refused, State
from headway.core.change import UnknownTicket
from headway.core.lifecycle import Event
from headway.remote.address import TOKEN

T = TypeVar("T")

EVENTS = {
    "cancel": Event.CANCEL,
    "pause": Event.PAUSE,
    "resume": Event.RESUME,
    "retry": Event.RETRY_BY_OPERATOR,
}
PASSING = (429, 502, 503, 504)  # worth another try, later
MAX_SHOWN = 300  # characters of an answer that nobody understands

HOW = f"give one as token=… or in the environment as {TOKEN}"
UNSURE = (
    "perhaps it was done: look before you ask again, or give jobs a unique key (`unique=`), with "
    "which asking again does no harm"
)


class NoResult(errors.HeadwayError):
    """The job has not completed, so it has returned nothing."""


class QueueFull(errors.StoreUnavailable, Refused):
    """As many wait as may wait; nothing was stored. Try again later, or raise the limit."""


class Problem(msgspec.Struct):
    """Problem details (RFC 9457), as far as they are looked at."""

    type: str = ""
    detail: str = ""
    state: str | None = None
    job: int | None = None


@overload
def data_of(response: httpx2.Response, url: str, type: type[T]) -> T: ...
@overload
def data_of(response: httpx2.Response, url: str) -> Any: ...
def data_of(response: httpx2.Response, url: str, type: Any = Any) -> Any:
    """What a good answer says."""
    if response.status_code == 204:
        return None
    try:
        return msgspec.json.decode(response.content, type=type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise errors.StoreError(
            f"{url} answers what no Headway server of this version does ({error}); check the "
            "address, and that both are of the same version"
        ) from None


def problem_of(response: httpx2.Response) -> Problem:
    try:
        return msgspec.json.decode(response.content, type=Problem)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return Problem(detail=response.text[:MAX_SHOWN])


def error_of(response: httpx2.Response, url: str, verb: str = "", *, writes: bool) -> Exception:
    """What to raise. `writes`: it would have changed something, so that it matters whether it has.
    `verb`: what a job was asked to do.
    """
    problem, status = problem_of(response), response.status_code
    said = problem.detail or f"HTTP {status}"
    found = _by_kind(problem, said, verb)
    if found is not None:
        return found
    if status == 401:
        return errors.NotAllowed(f"{url} lets nobody in without a valid token ({said}); {HOW}")
    if status in (403, 421):
        return errors.NotAllowed(f"{url} does not allow this: {said}")
    if status == 413:
        return errors.PayloadTooLarge(said)
    if status in (429, 503):
        return errors.StoreUnavailable(f"{url} cannot do this now: {said}")
    if status >= 500 and writes:
        return errors.OutcomeUnknown(f"{url} answered {status} ({said}), and {UNSURE}")
    if status in (502, 504):
        return errors.StoreUnavailable(f"{url} cannot be reached: {said}")
    if status in (400, 422):
        return errors.BadJob(said)
    return errors.StoreError(f"{url} answered {status}: {said}; check the address")


def _by_kind(problem: Problem, said: str, verb: str) -> Exception | None:
    match problem.type:
        case "unknown-job":
            return errors.UnknownJob(said)
        case "wrong-state" if problem.state in set(State):
            return IllegalTransition(State(problem.state), EVENTS.get(verb, Event.POSTPONE))
        case "ended":
            return UnknownTicket(said)
        case "duplicate" if problem.job is not None:
            return errors.DuplicateJob(said, problem.job)
        case "duplicate" | "unknown-schedule":
            return errors.BadJob(said)
        case "outcome-unknown":
            return errors.OutcomeUnknown(said)
        case "no-result":
            return NoResult(said)
        case "unknown-batch":
            return errors.UnknownJob(said)
        case "expired":
            return errors.ResultExpired(said)
        case "queue-full":
            return QueueFull(said)
        case "unknown-slot":
            return errors.UnknownSlot(said)
        case "stale-fence":
            return errors.SlotLost(said)
        case "claim-stale" | "claim-claimed" | "claim-later":
            return errors.ClaimRefused(said)
        case "no-broker":
            return errors.BadSettings(said)
        case "timeout":
            return TimeoutError(said)
    return None
