"""What went wrong, as one of a few kinds.

Judged by the types of exceptions, the status of answers and what `watching` has seen. Never by the
text of a message: a page that says "unavailable" is not a video that is gone.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from yt_dlp.networking.exceptions import (  # type: ignore[import-untyped]
    HTTPError,
    RequestError,
    TransportError,
)
from yt_dlp.utils import (  # type: ignore[import-untyped]
    ContentTooShortError,
    DownloadCancelled,
    DownloadError,
    ExtractorError,
    GeoRestrictedError,
    UnavailableVideoError,
    UnsupportedError,
    UserNotLive,
)

from .guard import Refused
from .protocol import FailureKind
from .values import one_line
from .watching import MEDIA, Exchange, Watch

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
MAX_CHAIN = 20


class Verdict(DownloadCancelled):  # type: ignore[misc]
    """What this program itself has found. yt-dlp lets this kind of exception through."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: str | None = None  # the header as it came
    at: str | None = None
    host: str | None = None


def classify(error: BaseException, watch: Watch) -> Failure:
    if watch.pushback is not None:
        return by_exchange(watch.pushback)
    chain = list(_causes(error))
    return _by_types(chain, watch) or _rest(chain, watch)


def _by_types(chain: list[BaseException], watch: Watch) -> Failure | None:
    judged = (judge(each, watch) for judge in (_own, _by_site, _by_network) for each in chain)
    return next(filter(None, judged), None)


def _own(error: BaseException, watch: Watch) -> Failure | None:
    if isinstance(error, Verdict):
        return Failure(kind=error.kind, message=_said(error.message))
    if isinstance(error, Refused):
        return Failure(kind=FailureKind.REFUSED, message=_said(str(error)), at=_place(watch))
    if isinstance(error, OSError) and error.errno in NO_SPACE:
        return Failure(kind=FailureKind.DISK, message="there is no space left on the disk")
    return None


def _by_site(error: BaseException, watch: Watch) -> Failure | None:
    kinds = (
        (GeoRestrictedError, FailureKind.GEO),
        (UserNotLive, FailureKind.LIVE),
        (UnsupportedError, FailureKind.UNSUPPORTED),
    )
    for type_, kind in kinds:
        if isinstance(error, type_):
            return Failure(kind=kind, message=_said(_message(error)), at=_place(watch))
    return None


def _by_network(error: BaseException, watch: Watch) -> Failure | None:
    if isinstance(error, HTTPError):
        last = watch.last
        host = last.host if last is not None and last.error is error else "the site"
        return by_exchange(Exchange(_place(watch) or "page", host, error.status))
    if isinstance(error, (TransportError, ContentTooShortError)):
        return Failure(
            kind=FailureKind.NETWORK, message=_said(_message(error)), at=_place(watch)
        )  # fmt: skip
    return None


def by_exchange(seen: Exchange) -> Failure:
    """What an answer means that is no success."""
    assert seen.status is not None
    return Failure(
        kind=_kind_of(seen.status),
        message=f"{seen.host} answered {seen.status} for the {_thing(seen.at)}",
        status=seen.status,
        retry_after=seen.retry_after,
        at=MEDIA if seen.at == MEDIA else "page",
        host=seen.host,
    )


def _thing(at: str) -> str:
    return {"media": "media file", "thumbnail": "thumbnail"}.get(at, "page")


def _kind_of(status: int) -> FailureKind:
    if status in (412, 429, 503):
        return FailureKind.PUSHBACK
    if status in (401, 403):
        return FailureKind.CREDENTIAL
    if status in (404, 410):
        return FailureKind.GONE
    if status == 408:
        return FailureKind.NETWORK
    if status == 451:
        return FailureKind.GEO
    return FailureKind.SERVER if status >= 500 else FailureKind.REFUSED_BY_SITE


def _rest(chain: list[BaseException], watch: Watch) -> Failure:
    """Nothing in the exceptions says why; the last request may."""
    at, last = _place(watch), watch.last
    inner = chain[-1]
    found = next((each for each in chain if isinstance(each, ExtractorError)), None)
    if found is not None and not found.expected:
        return Failure(kind=FailureKind.EXTRACTOR, message=_said(_message(found)), at=at)
    if found is not None or isinstance(inner, DownloadError):
        if last is not None and last.error is not None:
            seen = _by_types(list(_causes(last.error)), watch)
            if seen is not None:
                return seen
        if found is not None:
            return Failure(kind=FailureKind.REFUSED_BY_SITE, message=_said(_message(found)), at=at)
        if at == MEDIA:  # given up without an exception: the body did not come as it should
            return Failure(kind=FailureKind.NETWORK, message=_said(_message(inner)), at=at)
    if _in_extractor(inner.__traceback__):
        kind, where = FailureKind.EXTRACTOR, "yt-dlp's code for this site broke"
    elif isinstance(inner, RequestError):
        kind, where = FailureKind.UNSUPPORTED, "yt-dlp cannot make this request"
    else:
        kind, where = FailureKind.BROKEN, "this should not happen"
    return Failure(kind=kind, message=_said(f"{where}: {_typed(inner)}"), at=at)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and what is said to have caused it. What merely happened before is no cause:
    an extractor that failed in one way and then tried another has failed for the second reason.
    """
    queue: list[Any] = [error]
    seen: set[int] = set()
    while queue and len(seen) < MAX_CHAIN:
        each = queue.pop(0)
        if not isinstance(each, BaseException) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, DownloadError) and each.exc_info:
            queue.append(each.exc_info[1])
        if isinstance(each, UnavailableVideoError):  # made of an OSError, which it does not name
            queue.append(each.__context__)
        queue += [getattr(each, "cause", None), getattr(each, "reason", None), each.__cause__]


def _in_extractor(traceback: TracebackType | None) -> bool:
    while traceback is not None:
        if str(traceback.tb_frame.f_globals.get("__name__", "")).startswith("yt_dlp.extractor."):
            return True
        traceback = traceback.tb_next
    return False


def _place(watch: Watch) -> str | None:
    if watch.last is None:
        return None
    return MEDIA if watch.at == MEDIA else "page"


def _message(error: BaseException) -> str:
    """As yt-dlp words it, without its advice to users of the command line."""
    text = getattr(error, "orig_msg", None) or str(error) or type(error).__name__
    return str(text).removeprefix("ERROR: ")


def _typed(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _said(text: str) -> str:
    return one_line(text) or "no reason was given"
