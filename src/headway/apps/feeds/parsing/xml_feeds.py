"""RSS 0.9x, 1.0, 2.0 and Atom, as feedparser reads them. What it gives is not trusted: each value
may be missing, of another type, or anything at all.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urljoin

import feedparser  # type: ignore[import-untyped]

from headway.apps.feeds.parsing import text as texts
from headway.apps.feeds.parsing.dates import moment
from headway.apps.feeds.parsing.errors import NotAFeed
from headway.apps.feeds.parsing.limits import MAX_CATEGORIES, MAX_ENCLOSURES, MAX_ENTRIES, bounded
from headway.apps.feeds.parsing.model import Enclosure, ParsedEntry, ParsedFeed
from headway.apps.feeds.parsing.prolog import feed_root_of
from headway.apps.feeds.parsing.sanitising import clean_html, html_as_text, text_as_html
from headway.apps.feeds.parsing.text import one_line, web_link

_HTML = frozenset({"text/html", "application/xhtml+xml", "html", "xhtml"})
_TEXT = frozenset({"text/plain", "text", "text/markdown"})
_MAIL = re.compile(r"[<(]?[^\s<>()]+@[^\s<>()]+[>)]?")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OTHER_ROOTS = {
    "html": "This is a web page, not a feed. Give the address of its feed.",
    "opml": "This is a list of feeds (OPML), not a feed. Import it instead.",
}


def read_xml(text: str, url: str) -> ParsedFeed:
    root = feed_root_of(text)
    if complaint := _OTHER_ROOTS.get(root.name):
        raise NotAFeed(complaint)
    text = text[root.start :]
    found = feedparser.parse(
        # A stream: feedparser would take some other things for addresses or names of files.
        io.BytesIO(b'<?xml version="1.0" encoding="utf-8"?>' + text.encode()),
        # No address either: it would make a guid such as "7" part of one, and change it with that.
        response_headers={"content-type": "application/xml; charset=utf-8"},
        sanitize_html=False,
        resolve_relative_uris=False,
    )
    if not found.get("version") and not found["entries"]:
        raise NotAFeed(f"This is no feed: it begins with <{root.name}>. Check the address.")
    return _feed(found, text, url)


def _feed(found: Any, text: str, url: str) -> ParsedFeed:
    feed, entries = found["feed"], found["entries"]
    links = _links(feed)
    site = _first(web_link(_raw(feed, "link"), url), *_with_rel(links, "alternate", url))
    is_atom = str(found.get("version")).startswith("atom")
    author = _author(feed) if is_atom else None  # in RSS it is the editor of the whole site
    problems = []
    if found.get("bozo"):
        problems.append(_bozo(found.get("bozo_exception")))
    if len(entries) > MAX_ENTRIES:
        problems.append(f"it has {len(entries)} entries; only the first {MAX_ENTRIES} are read")
    read = (_entry(entry, site or url, url, author) for entry in entries[:MAX_ENTRIES])
    kept, complaint = bounded(entry for entry in read if entry is not None)
    if complaint:
        problems.append(complaint)
    return ParsedFeed(
        format=found.get("version") or "unknown",
        title=_plain(feed, "title", texts.MAX_TITLE),
        site_link=site,
        description=_plain(feed, "subtitle", texts.MAX_DESCRIPTION),
        language=one_line(_raw(feed, "language"), 50),
        ttl_minutes=_number(_raw(feed, "ttl"), 1, 525_600),
        skip_hours=frozenset(_skip_hours(text)),
        skip_days=frozenset(_skip_days(text)),
        entries=kept,
        problems=tuple(problems),
    )


def _entry(entry: Any, site: str, url: str, author: str | None) -> ParsedEntry | None:
    links = _links(entry)
    link = _link(entry, links, url)
    summary = _raw(entry, "summary_detail")  # without it, the summary is a copy of the content
    parsed = ParsedEntry(
        guid=texts.identifier(_raw(entry, "id")),
        link=link,
        title=_plain(entry, "title", texts.MAX_TITLE),
        author=_author(entry) or author,
        published=_moment(entry, "published") or _moment(entry, "created"),
        updated=_moment(entry, "updated"),
        summary=_shown([summary], link or site, url),
        content=_shown(_raw(entry, "content"), link or site, url),
        enclosures=_enclosures(entry, links, url),
        categories=_categories(entry),
    )
    return parsed if parsed != _NOTHING else None


_NOTHING = ParsedEntry()


def _raw(context: Any, key: str) -> Any:
    """The value itself: feedparser's own `get` answers with others when it is missing."""
    return dict.get(context, key)


def _links(context: Any) -> list[Any]:
    links = _raw(context, "links")
    return links[:200] if isinstance(links, list) else []


def _with_rel(links: list[Any], rel: str, url: str) -> Iterator[str]:
    for link in links:
        if _raw(link, "rel") == rel and (address := web_link(_raw(link, "href"), url)):
            yield address


def _first(*links: str | None) -> str | None:
    return next((link for link in links if link), None)


def _link(entry: Any, links: list[Any], url: str) -> str | None:
    link = _raw(entry, "link")
    named = list(_with_rel(links, "alternate", url))
    if not named and isinstance(link, str) and link == _raw(entry, "id"):
        # Only the guid, which is a link unless it says otherwise; many forget to say so.
        return web_link(link, "")
    return _first(web_link(link, url), *named)


def _plain(context: Any, key: str, limit: int) -> str | None:
    value = _raw(context, key)
    if not isinstance(value, str):
        return None
    detail = _raw(context, f"{key}_detail")
    if detail is not None and _raw(detail, "type") in _HTML:
        value = html_as_text(value[: 10 * limit])
    return one_line(value, limit)


def _author(context: Any) -> str | None:
    said, detail = _raw(context, "author"), _raw(context, "author_detail")
    name = None
    if isinstance(detail, dict):
        name = _raw(detail, "name")
        if isinstance(said, str) and _is_cut(said, _raw(detail, "email")):
            name = _MAIL.sub("", said).strip(" ()")
    return one_line(name or said, texts.MAX_NAME)


def _is_cut(said: str, email: Any) -> bool:
    """feedparser takes `ann@blog.example` for ann@blog.exam, and the rest for a part of the name:
    it knows no domains at the top with more than four letters.
    """
    return isinstance(email, str) and re.search(rf"{re.escape(email)}[\w.-]", said) is not None


def _moment(entry: Any, key: str) -> datetime | None:
    return moment(_raw(entry, key), _raw(entry, f"{key}_parsed"))


def _shown(details: Any, page: str, url: str) -> str | None:
    """The first of them that can be shown, HTML before text."""
    usable = [detail for detail in (details or [])[:20] if isinstance(detail, dict)]
    usable.sort(key=lambda detail: _raw(detail, "type") not in _HTML)
    for detail in usable:
        value, type = _raw(detail, "value"), _raw(detail, "type")
        if not isinstance(value, str):
            continue
        own_base = _raw(detail, "base")
        base = urljoin(url, own_base) if own_base else page
        if type in _HTML:
            shown = clean_html(value, base)
        else:
            shown = text_as_html(value) if type in _TEXT else None
        if shown:
            return shown
    return None


def _enclosures(entry: Any, links: list[Any], url: str) -> tuple[Enclosure, ...]:
    media = _raw(entry, "media_content")
    named = [link for link in links if _raw(link, "rel") == "enclosure"]
    named += media[:200] if isinstance(media, list) else []
    found: dict[str, Enclosure] = {}
    for one in named:
        address = web_link(_raw(one, "href") or _raw(one, "url"), url)
        if address and address not in found and len(found) < MAX_ENCLOSURES:
            found[address] = Enclosure(
                address,
                one_line(_raw(one, "type"), 100),
                _number(_raw(one, "length") or _raw(one, "filesize"), 1, 2**53),
            )
    return tuple(found.values())


def _categories(entry: Any) -> tuple[str, ...]:
    tags = _raw(entry, "tags") or []
    names = (one_line(_raw(tag, "label") or _raw(tag, "term"), texts.MAX_NAME) for tag in tags)
    return tuple(dict.fromkeys(name for name in names if name))[:MAX_CATEGORIES]


def _number(value: Any, least: int, most: int) -> int | None:
    if not isinstance(value, str) or not value.strip().isascii() or not value.strip().isdigit():
        return None
    value = value.strip()
    return number if len(value) < 20 and least <= (number := int(value)) <= most else None


def _between(text: str, name: str) -> str:
    """What stands in the element; feedparser keeps only the last of several in it."""
    start = text.find(f"<{name}>")
    end = text.find(f"</{name}>", start, start + 5_000)
    return text[start:end] if start != -1 and end != -1 else ""


def _skip_hours(text: str) -> Iterator[int]:
    for piece in _between(text, "skipHours").split("<hour>")[1:]:
        hour = _number(piece.partition("<")[0], 0, 24)
        if hour is not None:
            yield hour % 24  # some count from 1 to 24


def _skip_days(text: str) -> Iterator[int]:
    for piece in _between(text, "skipDays").split("<day>")[1:]:
        name = piece.partition("<")[0].strip().lower()
        if name in _DAYS:
            yield _DAYS.index(name)


def _bozo(error: object) -> str:
    said = getattr(error, "getMessage", None)
    message = said() if callable(said) else str(error)
    return f"it is not well-formed: {one_line(str(message), 200)}"
