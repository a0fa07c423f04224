"""Plain texts and links out of a document: nothing invisible, nothing endless."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urljoin, urlsplit

MAX_TITLE = 1_000
MAX_NAME = 300
MAX_DESCRIPTION = 5_000
MAX_LINK = 4_096

# What XML does not allow, what PostgreSQL does not store, and what UTF-8 cannot say.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


def without_controls(text: str) -> str:
    return _FORBIDDEN.sub("", text)


def one_line(text: object, limit: int) -> str | None:
    """The text with single spaces, cut at the limit; None if there is nothing to see."""
    if not isinstance(text, str):
        return None
    # Some slack for spaces; what is far behind the limit is not even looked at.
    line = " ".join(without_controls(text[: 4 * limit]).split())
    return line[:limit].rstrip() or None


def web_link(value: object, base: str) -> str | None:
    """The address that it leads to from there; None unless it is one of the web."""
    if not isinstance(value, str) or len(value) > MAX_LINK:
        return None
    value = without_controls(value).strip().replace("\n", "").replace("\t", "").replace("\r", "")
    if not value:
        return None
    try:
        link = urljoin(base, value.replace(" ", "%20"))
        parts = urlsplit(link)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises if it is no number
    except ValueError:  # such as half a bracket in the host
        return None
    return link if is_web and len(link) <= MAX_LINK else None


def identifier(value: object) -> str | None:
    """A guid as it is, but for spaces around it. One that is absurdly long is kept as its hash."""
    if not isinstance(value, str):
        return None
    value = without_controls(value).strip()
    if len(value) > MAX_LINK:
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
    return value or None
