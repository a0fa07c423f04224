"""What came of asking a site for a feed, as one value, and what the headers of its answer say.

No I/O here: `fetching` asks, this says what the answer is. Errors name the host and nothing else
of an address, since there may be a token in the rest.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus

import httpx2

from headway import __version__
from headway.core.classify import Meaning, classify_status
from headway.errors import BadSettings
from headway.net.outbound import BodyTooLong, Refused

LONGEST_FRESH_S = 7 * 86_400.0  # a longer life is a mistake, or is meant for pictures
MAX_VALIDATOR = 1_024  # characters; a longer one is not worth sending again and again
MAX_DATE = 100  # characters; the longest HTTP date has 33


class Kind(StrEnum):
    FETCHED = "fetched"  # a body that may be a feed; whether it is one, the parser says
    NOT_MODIFIED = "not_modified"
    GONE = "gone"  # 410, and nothing temporary on the way to it: it ends here
    PUSHBACK = "pushback"  # come back later; `retry_after_s` says when, if the site did
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    REJECTED = "rejected"  # any other 4xx
    SERVER_ERROR = "server_error"
    BAD_REDIRECT = "bad_redirect"  # a loop, too many, or one that leads nowhere
    BAD_ANSWER = "bad_answer"  # broken off, no proper HTTP, or nothing in it
    TOO_LONG = "too_long"
    REFUSED = "refused"  # by our own guard; the site was not asked
    TIMED_OUT = "timed_out"
    DNS = "dns"
    TLS = "tls"
    NETWORK = "network"


GOOD = frozenset({Kind.FETCHED, Kind.NOT_MODIFIED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """How it went. Addresses and bodies are not shown when it is printed.

    `url` is where the answer came from, without a fragment. Store it beside `etag` and `modified`:
    they are good for this address only. `moved_to` is set when every redirect was permanent; move
    a feed only after its body has been parsed, since some lead to the front page.
    """

    kind: Kind
    url: str = field(repr=False)
    status: int | None = None
    error: str = ""  # for people; empty if it went well
    body: bytes = field(default=b"", repr=False)  # decompressed, its charset untouched
    body_hash: str = ""
    content_type: str = ""
    etag: str | None = None  # as it was sent, weak or strong
    modified: str | None = None
    retry_after_s: float | None = None
    fresh_until: float | None = None  # until then, asking again gives the same
    moved_to: str | None = field(default=None, repr=False)
    hops: int = 0
    downgraded: bool = False  # a redirect led from https to http

    @property
    def went_well(self) -> bool:
        return self.kind in GOOD


# ---------------------------------------------------------------------- by status

_KINDS = {
    401: Kind.UNAUTHORIZED,
    403: Kind.FORBIDDEN,
    404: Kind.NOT_FOUND,
    410: Kind.GONE,
}
_ADVICE = {
    Kind.GONE: "the feed has ended",
    Kind.PUSHBACK: "it is asked again later",
    Kind.UNAUTHORIZED: "it wants a password, which is not supported here",
    Kind.FORBIDDEN: "it does not let us in",
    Kind.NOT_FOUND: "check the address",
    Kind.REJECTED: "check the address",
    Kind.SERVER_ERROR: "it is tried again",
    Kind.BAD_ANSWER: "that is no feed",
}


def kind_of_status(status: int) -> Kind:
    """For all that is neither a redirect nor a body."""
    if classify_status(status).meaning in (Meaning.PUSHBACK, Meaning.BAN):
        return Kind.PUSHBACK
    if status in _KINDS:
        return _KINDS[status]
    return {4: Kind.REJECTED, 5: Kind.SERVER_ERROR}.get(status // 100, Kind.BAD_ANSWER)


def said_by_status(kind: Kind, status: int, host: str) -> str:
    try:
        name = f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        name = str(status)
    return f"{host} answered {name}; {_ADVICE[kind]}"


# ---------------------------------------------------------------------- by exception


class NameUnknown(OSError):
    """A name that leads nowhere; told apart from a site that does not answer."""


class NoTurn(TimeoutError):
    """Others are before us where a redirect leads to, or that host wants to be left alone."""


class BadRedirect(Exception):
    """Where an answer leads on to cannot be followed. Says why."""


class BadAnswer(Exception):
    """An answer that is of no use. Says why."""


FAILURES = (
    Refused, BodyTooLong, BadRedirect, BadAnswer, httpx2.HTTPError, httpx2.InvalidURL, OSError,
)  # fmt: skip


def of_failure(error: Exception, host: str) -> tuple[Kind, str]:
    """What it is by its type, and a sentence for people. Of what the other side has sent, nothing
    is quoted.
    """
    causes = _causes(error)
    match error:
        case Refused():
            return Kind.REFUSED, str(error)
        case BodyTooLong():
            return Kind.TOO_LONG, f"{host}: {error}"
        case BadRedirect():
            return Kind.BAD_REDIRECT, f"{host} {error}"
        case BadAnswer():
            return Kind.BAD_ANSWER, f"{host} {error}"
        case NoTurn():
            return Kind.TIMED_OUT, f"{host} is asked by others, or not now; it is tried again"
        case TimeoutError() | httpx2.TimeoutException():
            return Kind.TIMED_OUT, f"{host} has not answered in time"
        case httpx2.DecodingError():
            return Kind.BAD_ANSWER, f"{host} sent something that cannot be decompressed"
        case httpx2.ProtocolError():
            if any(isinstance(cause, httpx2.InvalidURL) for cause in causes):
                return Kind.BAD_REDIRECT, f"{host} leads to something that is no address"
            return Kind.BAD_ANSWER, f"{host} broke off its answer, or it is no proper HTTP"
        case httpx2.InvalidURL():
            return Kind.REFUSED, "this is no address; write it as https://host/path"
    if any(isinstance(cause, NameUnknown) for cause in causes):
        return Kind.DNS, f"the name {host} cannot be looked up; check it"
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            why = getattr(cause, "verify_message", "") or "the handshake failed"
            return Kind.TLS, f"no safe connection to {host}: {why}"
    return Kind.NETWORK, f"{host} cannot be reached, or the connection to it was lost"


def _causes(error: BaseException | None) -> list[BaseException]:
    """All that led to it, the error itself first. Also what was hidden by `from None`."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


# ---------------------------------------------------------------------- headers

_LISTS = frozenset({"cache-control", "content-encoding"})
_DIGITS = re.compile(r"[0-9]{1,18}")
_SENDABLE = re.compile(r"[\x21-\x7e\x80-\xff]([\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")


def raw_headers(response: httpx2.Response) -> dict[str, str]:
    """Byte for byte: latin-1 gives every byte back as it came. Of a name that comes twice it is
    the first, unless it is a list.
    """
    found: dict[str, str] = {}
    for raw_name, raw_value in response.headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name in found and name in _LISTS:
            found[name] += f", {value}"
        else:
            found.setdefault(name, value)
    return found


def validator(value: str | None) -> str | None:
    """A header that can be sent back just as it came, or nothing."""
    if value is None or len(value) > MAX_VALIDATOR or _SENDABLE.fullmatch(value) is None:
        return None
    return value


def fresh_until(headers: Mapping[str, str], now: float) -> float | None:
    """Until when the answer is what the site would say again, by Cache-Control or Expires."""
    directives = {
        name.strip().lower(): value.strip().strip('"')
        for name, _, value in (
            part.partition("=") for part in headers.get("cache-control", "").split(",")
        )
    }
    if not directives.keys().isdisjoint({"no-store", "no-cache"}):
        return None
    if "max-age" in directives:
        left_s = _left_by_age(directives["max-age"], headers.get("age", ""))
    else:
        left_s = _left_by_expires(headers, now)
    if left_s is None or left_s <= 0:
        return None
    return now + min(left_s, LONGEST_FRESH_S)


def _left_by_age(life: str, age: str) -> float | None:
    life_s = _whole(life)
    return None if life_s is None else life_s - (_whole(age) or 0)


def _left_by_expires(headers: Mapping[str, str], now: float) -> float | None:
    expires_at = _moment(headers.get("expires", ""))
    if expires_at is None:
        return None
    # By the site's own clock, which may be wrong.
    sent_at = _moment(headers.get("date", ""))
    return expires_at - (now if sent_at is None else sent_at)


def _whole(text: str) -> int | None:
    text = text.strip()
    return int(text) if _DIGITS.fullmatch(text) else None


def _moment(text: str) -> float | None:
    if not text or len(text) > MAX_DATE:
        return None
    try:
        moment = parsedate_to_datetime(text)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


# ---------------------------------------------------------------------- who asks

_HOME = re.compile(r"https?://[^\s()<>;\"\\\x00-\x1f\x7f-\uffff]+")
_CONTACT = re.compile(r"[^\s()<>;\"\\\x00-\x1f\x7f-\uffff]+")


@dataclass(frozen=True, slots=True)
class Introduction:
    """Who we say we are: a page about this reader, and somebody to write to. Both are optional."""

    home: str = ""
    contact: str = ""

    def __post_init__(self) -> None:
        if self.home and _HOME.fullmatch(self.home) is None:
            raise BadSettings(
                "the page in the User-Agent must be an address such as https://reader.example/bot"
            )
        if self.contact and _CONTACT.fullmatch(self.contact) is None:
            raise BadSettings(
                "the contact in the User-Agent must be one word in plain ASCII, "
                "such as feeds@reader.example"
            )

    def user_agent(self, subscribers: int = 0) -> str:
        parts = [f"+{self.home}"] if self.home else []
        parts += [self.contact] if self.contact else []
        if subscribers > 0:
            parts.append(f"{subscribers} subscriber{'' if subscribers == 1 else 's'}")
        product = "Headway/" + ".".join(__version__.split(".")[:2])
        return f"{product} ({'; '.join(parts)})" if parts else product
