"""Which entry is which: the same one is found again after any change of its text.

Its guid, if it has one; else its link, else what it encloses; else a hash of its text. An identity
holds within one feed: guids such as "1" are everywhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from headway.apps.feeds.parsing.model import ParsedEntry

MAX_IDENTITY = 300  # characters, so that a database can index it

# Parameters that say where a reader came from. They change, and the article does not.
_TRACKING = re.compile(r"(?:utm_\w+|fbclid|gclid|mc_cid|mc_eid|yclid|igshid|_hsenc|_hsmi)(?:=|$)")
_ESCAPE = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def identity_of(
    *,
    guid: str | None = None,
    link: str | None = None,
    title: str | None = None,
    content: str | None = None,
) -> str:
    """The identity of an entry within its feed, at most `MAX_IDENTITY` characters long."""
    if guid and (trimmed := guid.strip()):
        return _bounded("guid", trimmed)
    if link and (normal := normal_link(link)):
        return _bounded("link", normal)
    text = "\0".join(" ".join((part or "").split()) for part in (title, content))
    return f"hash:{_digest(text)}"


def identity_of_entry(entry: ParsedEntry) -> str:
    """An entry with only a file is told by the file: its address changes less than its text."""
    file = entry.enclosures[0].url if entry.enclosures else None
    return identity_of(
        guid=entry.guid,
        link=entry.link or file,
        title=entry.title,
        content=entry.content or entry.summary,
    )


def distinct(entries: Iterable[ParsedEntry]) -> dict[str, ParsedEntry]:
    """The entries of one document by identity, in its order. Of two with the same, the first."""
    found: dict[str, ParsedEntry] = {}
    for entry in entries:
        found.setdefault(identity_of_entry(entry), entry)
    return found


def normal_link(link: str) -> str:
    """The link without what may change while it leads to the same place.

    Sites move from http to https, so the scheme is left out. The fragment stays: a page of news
    may have one entry for each of its headings.
    """
    link = link.strip()
    try:
        parts = urlsplit(link)
        port = parts.port
    except ValueError:
        return link
    if not parts.hostname:
        return link
    host = parts.hostname.rstrip(".")
    if ":" in host:
        host = f"[{host}]"
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    path = _ESCAPE.sub(lambda escape: escape.group().upper(), parts.path or "/")
    query = "&".join(one for one in parts.query.split("&") if one and not _TRACKING.match(one))
    return "".join(
        (
            "//",
            host,
            path,
            f"?{query}" if query else "",
            f"#{parts.fragment}" if parts.fragment else "",
        )
    )


def _bounded(kind: str, value: str) -> str:
    identity = f"{kind}:{value}"
    # Another mark, so that no guid can pass itself off as the hash of another.
    return identity if len(identity) <= MAX_IDENTITY else f"{kind}#{_digest(value)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
