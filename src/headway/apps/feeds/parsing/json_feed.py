"""JSON Feed 1.0 and 1.1. Whatever is of the wrong type counts as missing."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from headway.apps.feeds.parsing import text as texts
from headway.apps.feeds.parsing.dates import moment
from headway.apps.feeds.parsing.errors import NotAFeed
from headway.apps.feeds.parsing.limits import MAX_CATEGORIES, MAX_ENCLOSURES, MAX_ENTRIES, bounded
from headway.apps.feeds.parsing.model import Enclosure, ParsedEntry, ParsedFeed
from headway.apps.feeds.parsing.sanitising import clean_html, text_as_html
from headway.apps.feeds.parsing.text import identifier, one_line, web_link

_VERSION = re.compile(r"https?://(?:www\.)?jsonfeed\.org/version/(\d)(?:\.(\d))?/?")


def read_json(text: str, url: str) -> ParsedFeed:
    try:
        feed = json.loads(text)
    except RecursionError:
        raise NotAFeed("This is no feed: its JSON is nested too deeply.") from None
    except ValueError as error:
        said = str(error) if isinstance(error, json.JSONDecodeError) else "a number is too long"
        raise NotAFeed(f"This is no feed: its JSON is broken ({said}).") from None
    version = _VERSION.fullmatch(str(feed.get("version"))) if isinstance(feed, dict) else None
    if version is None:
        raise NotAFeed("This is JSON, but no JSON Feed: it names no version of jsonfeed.org.")
    return _feed(feed, f"json{version[1]}{version[2] or 0}", url)


def _feed(feed: dict[str, Any], format: str, url: str) -> ParsedFeed:
    items = _dicts(feed, "items")
    site = web_link(feed.get("home_page_url"), url)
    author = _author(feed)
    problems = []
    if len(items) > MAX_ENTRIES:
        problems.append(f"it has {len(items)} entries; only the first {MAX_ENTRIES} are read")
    read = (_entry(item, author, site or url, url) for item in items[:MAX_ENTRIES])
    kept, complaint = bounded(entry for entry in read if entry != _NOTHING)
    if complaint:
        problems.append(complaint)
    return ParsedFeed(
        format=format,
        title=one_line(feed.get("title"), texts.MAX_TITLE),
        site_link=site,
        description=one_line(feed.get("description"), texts.MAX_DESCRIPTION),
        language=one_line(feed.get("language"), 50),
        entries=kept,
        problems=tuple(problems),
    )


_NOTHING = ParsedEntry()


def _entry(item: dict[str, Any], author: str | None, site: str, url: str) -> ParsedEntry:
    link = web_link(item.get("url"), url) or web_link(item.get("external_url"), url)
    markup, text, summary = (item.get(key) for key in ("content_html", "content_text", "summary"))
    content = clean_html(markup, link or site) if isinstance(markup, str) else None
    if content is None and isinstance(text, str):
        content = text_as_html(text)
    fields = ParsedEntry(
        guid=_guid(item.get("id")),
        link=link,
        title=one_line(item.get("title"), texts.MAX_TITLE),
        author=_author(item),
        published=moment(item.get("date_published")),
        updated=moment(item.get("date_modified")),
        summary=text_as_html(summary) if isinstance(summary, str) else None,
        content=content,
        enclosures=_enclosures(item, url),
        categories=_categories(item),
    )
    if fields == _NOTHING or fields.author:
        return fields
    return msgspec.structs.replace(fields, author=author)


def _guid(id: object) -> str | None:
    """An id should be a string; numbers are common, and asked to be taken as strings."""
    if isinstance(id, int | float) and not isinstance(id, bool):
        id = str(id)
    return identifier(id)


def _author(context: dict[str, Any]) -> str | None:
    """Several authors in 1.1, one in 1.0."""
    named = _dicts(context, "authors")
    if isinstance(context.get("author"), dict):
        named.append(context["author"])
    names = [name for one in named[:10] if (name := one_line(one.get("name"), texts.MAX_NAME))]
    return one_line(", ".join(dict.fromkeys(names)), texts.MAX_NAME)


def _enclosures(item: dict[str, Any], url: str) -> tuple[Enclosure, ...]:
    found: dict[str, Enclosure] = {}
    for one in _dicts(item, "attachments")[:MAX_ENCLOSURES]:
        size = one.get("size_in_bytes")
        length = int(size) if isinstance(size, int | float) and 0 < size < 2**53 else None
        if address := web_link(one.get("url"), url):
            kind = one_line(one.get("mime_type"), 100)
            found.setdefault(address, Enclosure(address, kind, length))
    return tuple(found.values())


def _categories(item: dict[str, Any]) -> tuple[str, ...]:
    tags = item.get("tags")
    named = (one_line(tag, texts.MAX_NAME) for tag in tags) if isinstance(tags, list) else ()
    return tuple(dict.fromkeys(name for name in named if name))[:MAX_CATEGORIES]


def _dicts(context: dict[str, Any], key: str) -> list[dict[str, Any]]:
    values = context.get(key)
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
