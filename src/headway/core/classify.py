"""What an answer means, decided by its status or the type of its exception.

Never by searching text: a page that said "unavailable" once condemned a video for good. Nothing
here acts on a meaning: closing upstreams and retrying are done elsewhere. Each table is data; what
a job's own exceptions mean is said with `meanings=`. A refusal (401, 403) is fatal: whoever can go
on with another credential, as the archive can, has rules of its own for that.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from types import MappingProxyType

from headway.core.outcome import Outcome, Scope

LONG_RETRY_AFTER_S = 300.0
MAX_RETRY_AFTER_S = 7 * 86_400.0  # a longer wait is a mistake, or a refusal in disguise
_MAX_HEADER = 100  # characters; the longest HTTP date has 33
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Meaning(StrEnum):
    """What an answer means for the job: the values of `meanings=` in `@app.job`."""

    OK = "ok"
    PUSHBACK = "pushback"  # come back later; burns no attempt
    BAN = "ban"  # pushback that closes the upstream for minutes
    RETRY = "retry"  # failed, but may work next time
    FATAL = "fatal"  # will not work however often it is tried


@dataclass(frozen=True, slots=True)
class Answer:
    """A meaning, and whether the upstream is to blame."""

    meaning: Meaning
    status: int | None = None
    retry_after_s: float | None = None
    counts_for_breaker: bool = False


STATUS_MEANINGS: Mapping[int, Meaning] = MappingProxyType(  # 503: see _UNAVAILABLE
    {
        429: Meaning.PUSHBACK,
        412: Meaning.BAN,
        500: Meaning.RETRY,
        502: Meaning.RETRY,
        504: Meaning.RETRY,
        401: Meaning.FATAL,
        403: Meaning.FATAL,
        400: Meaning.FATAL,
        404: Meaning.FATAL,
        410: Meaning.FATAL,
    }
)

# For a status without a row, by its first digit; anything stranger may be better next time.
_HUNDRED_MEANINGS = {2: Meaning.OK, 3: Meaning.OK, 4: Meaning.FATAL, 5: Meaning.RETRY}

EXCEPTION_MEANINGS: Mapping[type[BaseException], Meaning] = MappingProxyType(
    {
        TimeoutError: Meaning.RETRY,
        ConnectionError: Meaning.RETRY,
        MemoryError: Meaning.FATAL,
    }
)

# Network errors for which Python has no class of its own, and the full disk.
ERRNO_MEANINGS: Mapping[int, Meaning] = MappingProxyType(
    {
        errno.ENETDOWN: Meaning.RETRY,
        errno.ENETUNREACH: Meaning.RETRY,
        errno.ENETRESET: Meaning.RETRY,
        errno.EHOSTDOWN: Meaning.RETRY,
        errno.EHOSTUNREACH: Meaning.RETRY,
        errno.EADDRNOTAVAIL: Meaning.RETRY,
        errno.ENOSPC: Meaning.FATAL,
        errno.EDQUOT: Meaning.FATAL,
    }
)

_ANSWERS = {
    Meaning.OK: Answer(Meaning.OK),
    Meaning.PUSHBACK: Answer(Meaning.PUSHBACK),
    Meaning.BAN: Answer(Meaning.BAN),
    Meaning.RETRY: Answer(Meaning.RETRY, counts_for_breaker=True),
    Meaning.FATAL: Answer(Meaning.FATAL),
}

# Any 503, however long its Retry-After: the upstream is unwell rather than strict.
_UNAVAILABLE = Answer(Meaning.PUSHBACK, counts_for_breaker=True)

# Most likely a fault in our own code, which must not close an upstream that is well.
_UNKNOWN_EXCEPTION = Answer(Meaning.RETRY)


def classify_status(status: int, *, retry_after_s: float | None = None) -> Answer:
    """What an HTTP status means."""
    if status == 503:
        return _filled(_UNAVAILABLE, status, retry_after_s)
    usual = _HUNDRED_MEANINGS.get(status // 100, Meaning.RETRY)
    return _answer(STATUS_MEANINGS.get(status, usual), status, retry_after_s)


def classify_exception(
    exc: BaseException, *, types: Mapping[type[BaseException], Meaning] | None = None
) -> Answer:
    """What an exception means: by the app's own `types`, else by the status it carries, else by
    its type. An exception that nobody knows may be retried and blames no upstream.
    """
    retry_after_s = _number(_attribute(exc, "retry_after_s"))
    status = _carried_status(exc)
    meaning = _by_type(exc, types or {})
    if meaning is None and status is not None:
        answer = classify_status(status, retry_after_s=retry_after_s)
        # Something went wrong after a good answer came, so the status does not explain it.
        if answer.meaning is not Meaning.OK:
            return answer
    meaning = meaning or _by_type(exc, EXCEPTION_MEANINGS) or _by_errno(exc)
    if meaning is None:
        return _filled(_UNKNOWN_EXCEPTION, status, retry_after_s)
    return _answer(meaning, status, retry_after_s)


def parse_retry_after(value: str, now: float) -> float | None:
    """Seconds to wait by a Retry-After header: a number, or a date in any form HTTP allows.

    None when it names no time that can be waited for; at most seven days.
    """
    text = value.strip()
    if len(text) > _MAX_HEADER:
        return None
    if _SECONDS.fullmatch(text):
        return _waitable(float(text))
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)  # the asctime form names no zone; HTTP means UTC
    return _waitable(moment.timestamp() - now)


def _answer(meaning: Meaning, status: int | None, retry_after_s: float | None) -> Answer:
    wait_s = _waitable(retry_after_s)
    if meaning is Meaning.PUSHBACK and wait_s is not None and wait_s >= LONG_RETRY_AFTER_S:
        meaning = Meaning.BAN
    return _filled(_ANSWERS[meaning], status, wait_s)


def _filled(row: Answer, status: int | None, retry_after_s: float | None) -> Answer:
    return replace(row, status=status, retry_after_s=_waitable(retry_after_s))


def _waitable(seconds: float | None) -> float | None:
    # Written so that NaN is refused too.
    if seconds is None or not seconds >= 0:
        return None
    return min(float(seconds), MAX_RETRY_AFTER_S)


def _by_type(exc: BaseException, table: Mapping[type[BaseException], Meaning]) -> Meaning | None:
    """The row of the nearest class: a subclass may have one of its own."""
    return next((table[cls] for cls in type(exc).__mro__ if cls in table), None)


def _by_errno(exc: BaseException) -> Meaning | None:
    if not isinstance(exc, OSError) or not isinstance(exc.errno, int):
        return None
    # Failed name look-ups carry the resolver's own codes, which are negative on Linux.
    if exc.errno < 0:
        return Meaning.RETRY
    return ERRNO_MEANINGS.get(exc.errno)


def _carried_status(exc: BaseException) -> int | None:
    """The HTTP status under one of the names that HTTP clients give it."""
    response = _attribute(exc, "response")
    for holder, name in ((exc, "status"), (exc, "status_code"), (response, "status_code")):
        status = _attribute(holder, name)
        # Other protocols number their errors too, with smaller numbers.
        if isinstance(status, int) and 100 <= status <= 999:
            return int(status)
    return None


def _attribute(holder: object, name: str) -> object:
    try:
        return getattr(holder, name, None)
    except Exception:  # a property of a foreign class; an error must not hide the first one
        return None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def outcome_of(answer: Answer, *, error: str = "", scope: Scope = Scope.UPSTREAM) -> Outcome:
    """The outcome of an attempt that ended with this answer, for `Core.finish`."""
    fault = answer.counts_for_breaker
    match answer.meaning:
        case Meaning.OK:
            return Outcome.ok(status=answer.status)
        case Meaning.PUSHBACK | Meaning.BAN:
            return Outcome.pushback(
                status=answer.status or 0,
                retry_after_s=answer.retry_after_s,
                ban=answer.meaning is Meaning.BAN,
                scope=scope,
                upstream_fault=fault,
                error=error,
            )
        case Meaning.FATAL:
            return Outcome.failed(error, fatal=True, status=answer.status)
        case Meaning.RETRY:
            return Outcome.failed(error, status=answer.status, upstream_fault=fault)
