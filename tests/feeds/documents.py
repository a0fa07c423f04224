"""Feeds to read, written short."""

from __future__ import annotations

from collections.abc import Iterable

from headway.apps.feeds.parsing import ParsedEntry, ParsedFeed
from headway.apps.feeds.parsing.reading import read

URL = "https://example.com/blog/feed.xml"


def rss(items: str = "", channel: str = "", declaration: str = "") -> str:
    return (
        f"{declaration}<rss version='2.0' xmlns:content='http://purl.org/rss/1.0/modules/content/' "
        "xmlns:atom='http://www.w3.org/2005/Atom' xmlns:media='http://search.yahoo.com/mrss/' "
        "xmlns:dc='http://purl.org/dc/elements/1.1/'>"
        f"<channel><title>A site</title>{channel}{items}</channel></rss>"
    )


def item(inside: str) -> str:
    return f"<item>{inside}</item>"


def atom(entries: str = "", feed: str = "", attributes: str = "") -> str:
    return (
        f"<feed xmlns='http://www.w3.org/2005/Atom' {attributes}>"
        f"<title>A site</title>{feed}{entries}</feed>"
    )


def described(html: str, more: str = "") -> str:
    """An item whose description is the HTML."""
    return item(f"<guid>1</guid>{more}<description><![CDATA[{html}]]></description>")


def parsed(document: str | bytes, content_type: str = "", url: str = URL) -> ParsedFeed:
    if isinstance(document, str):
        document = document.encode()
    return read(document, url=url, content_type=content_type)


def only(entries: Iterable[ParsedEntry]) -> ParsedEntry:
    (entry,) = entries
    return entry


def entry_of(document: str | bytes, content_type: str = "") -> ParsedEntry:
    return only(parsed(document, content_type).entries)


def summary_of(html: str, more: str = "") -> str | None:
    """What is shown of an item with this HTML in its description."""
    return entry_of(rss(described(html, more))).summary
