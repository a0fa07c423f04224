"""What a failure of the program means for its job, for the site, and for the account. By its kind
and its status, never by its words.
"""

from __future__ import annotations

from headway.apps.media.accounts.pool import Heard, Word
from headway.apps.media.fetcher.protocol import FailureKind as Kind
from headway.apps.media.model import error_text
from headway.apps.media.running import Failure
from headway.core import Outcome

BAN = 412  # risk control
LIVE_AGAIN_S = 3_600.0  # until somebody looks whether a live stream has become a video
SOON_S = 1.0
LONGEST_WAIT_S = 7 * 86_400.0

# What may be better the next time. A site that says no without a status may mean it or not.
PASSING = frozenset({Kind.SERVER, Kind.NETWORK, Kind.REFUSED_BY_SITE, Kind.EXTRACTOR, Kind.BROKEN})

ADVICE = {
    Kind.CREDENTIAL: "the site asks who we are: add an account for it, or renew its cookies",
    Kind.EXTRACTOR: "yt-dlp does not understand the site any more: update yt-dlp",
    Kind.FORMAT: "nothing of this quality is there: choose another quality, or install ffmpeg",
    Kind.GEO: "the site does not show it where this server is",
}


def outcome_of(failure: Failure, *, another_account: bool = False) -> Outcome:
    """`another_account`: there is one that has not been tried."""
    error = error_text(in_words(failure))
    status = failure.status
    match failure.kind:
        case Kind.PUSHBACK:
            return Outcome.pushback(
                status=status or 429, retry_after_s=_wait_s(failure), ban=status == BAN,
                upstream_fault=status == 503, error=error,
            )  # fmt: skip
        case Kind.CREDENTIAL if another_account:
            return Outcome.failed(error, status=status, retry_after_s=SOON_S)
        case Kind.LIVE:
            return Outcome.returned(after_s=LIVE_AGAIN_S)
        case kind if kind in PASSING:
            unwell = kind in (Kind.SERVER, Kind.NETWORK)
            return Outcome.failed(error, status=status, upstream_fault=unwell)
    return Outcome.failed(error, fatal=True, status=status)


def heard_of(failure: Failure | None) -> Heard:
    """What an account is told. None: it went well."""
    if failure is None:
        return Heard(Word.OK)
    if failure.kind is Kind.PUSHBACK and failure.status != 503:
        return Heard(Word.PUSHBACK, failure.status, _wait_s(failure))
    if failure.kind is Kind.CREDENTIAL:
        return Heard(Word.REFUSED, failure.status)
    return Heard(Word.TROUBLE, failure.status)


def in_words(failure: Failure) -> str:
    advice = ADVICE.get(failure.kind)
    said = failure.message or failure.kind.value
    return f"{said} ({advice})" if advice else said


def _wait_s(failure: Failure) -> float | None:
    """How long the site wants to be left alone, if that is a time that can be waited for."""
    wait_s = failure.retry_after_s
    return None if wait_s is None or not wait_s >= 0 else min(wait_s, LONGEST_WAIT_S)
