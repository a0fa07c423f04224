"""Lists of subscriptions, as OPML: read from what other readers wrote, written so that they, and
we, read the same again.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import urlsplit

from headway.apps.feeds.parsing.charsets import decode
from headway.apps.feeds.parsing.errors import EntitiesDeclared, NotAFeed
from headway.apps.feeds.parsing.prolog import root_of
from headway.apps.feeds.parsing.text import MAX_NAME, one_line, web_link, without_controls
from headway.errors import HeadwayError

MAX_BYTES = 5 * 1024 * 1024
MAX_OUTLINES = 10_000
MAX_FOLDERS_DEEP = 10

# `&` as it stands in many addresses in lists that no XML library has written.
_BARE_AND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[0-9A-Fa-f]+);)")
_FEED_SCHEME = re.compile(r"feed:(?://)?(?=https?:)|feed(?=://)", re.IGNORECASE)


class BadOpml(HeadwayError, ValueError):
    """The list cannot be imported; nothing was."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One feed of a list. `folders` lead from the outermost to the one it is in."""

    url: str
    title: str
    site_link: str | None = None
    folders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionList:
    """What is in a list, in its order. A feed that is named again counts where it was first."""

    subscriptions: tuple[Subscription, ...]
    title: str | None = None
    duplicates: int = 0
    skipped: tuple[str, ...] = ()  # addresses that are none, as far as they can be shown


def read_opml(document: bytes, content_type: str = "") -> SubscriptionList:
    """All feeds in it, or `BadOpml` if it is none."""
    if len(document) > MAX_BYTES:
        raise BadOpml(f"The list has {len(document):,} bytes; {MAX_BYTES:,} are allowed. Split it.")
    text = without_controls(decode(document, content_type).text)
    try:
        root = root_of(text)
    except EntitiesDeclared:
        raise BadOpml("The list declares entities. Remove its document type.") from None
    except NotAFeed:
        raise BadOpml(
            "This is no OPML: there is no element in it. Export the list again."
        ) from None
    if root.name != "opml":
        raise BadOpml(f"This is no OPML: it begins with <{root.name}>. Choose an OPML file.")
    text = text[root.start :]
    try:
        return _collected(text)
    except ET.ParseError as error:
        repaired = _BARE_AND.sub("&amp;", text)
        if repaired == text:
            raise _broken(error) from None
    try:
        return _collected(repaired)
    except ET.ParseError as error:
        raise _broken(error) from None


def write_opml(
    subscriptions: Iterable[Subscription], title: str = "Subscriptions", at: datetime | None = None
) -> bytes:
    """OPML 2.0, with a nested outline for each folder."""
    root = ET.Element("opml", version="2.0")
    head = ET.SubElement(root, "head")
    ET.SubElement(head, "title").text = _name(title) or "Subscriptions"
    if at is not None:
        ET.SubElement(head, "dateCreated").text = format_datetime(at)
    places: dict[tuple[str, ...], ET.Element] = {(): ET.SubElement(root, "body")}
    for one in subscriptions:
        name = _name(one.title) or one.url
        attributes = {"type": "rss", "text": name, "title": name, "xmlUrl": one.url}
        if one.site_link:
            attributes["htmlUrl"] = one.site_link
        ET.SubElement(_place(places, one.folders), "outline", attributes)
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _place(places: dict[tuple[str, ...], ET.Element], folders: tuple[str, ...]) -> ET.Element:
    path = tuple(name for folder in folders if (name := _name(folder)))[:MAX_FOLDERS_DEEP]
    for depth in range(1, len(path) + 1):
        if path[:depth] not in places:
            name = path[depth - 1]
            above = places[path[: depth - 1]]
            places[path[:depth]] = ET.SubElement(above, "outline", text=name, title=name)
    return places[path]


def _name(text: str | None) -> str | None:
    return one_line(text, MAX_NAME)


def _broken(error: ET.ParseError) -> BadOpml:
    line, column = error.position
    return BadOpml(f"The list is broken in line {line}, column {column}: {error.msg}. Correct it.")


def _collected(text: str) -> SubscriptionList:
    collector = _Collector()
    # The collector is told of each element as it comes, so no tree is ever built.
    parser = ET.XMLParser(target=collector, encoding="utf-8")
    parser.feed(text.encode())
    parser.close()
    return collector.all()


class _Collector:
    """Hears of each element, and remembers the feeds and in which folders they are."""

    def __init__(self) -> None:
        self._path: list[str | None] = []  # the name of each open outline; None for a feed
        self._found: dict[str, Subscription] = {}
        self._skipped: list[str] = []
        self._outlines = 0
        self._duplicates = 0
        self._title: list[str] = []
        self._in_title = False
        self._in_head = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = _local(tag)
        if tag == "outline":
            self._outline({_local(name): value for name, value in attributes.items()})
        self._in_head = tag == "head" or (self._in_head and tag != "body")
        self._in_title = tag == "title" and self._in_head

    def end(self, tag: str) -> None:
        if _local(tag) == "outline":
            self._path.pop()
        self._in_title = False

    def data(self, text: str) -> None:
        if self._in_title:
            self._title.append(text)  # it comes in pieces

    def close(self) -> None:
        """Nothing is left to do."""

    def all(self) -> SubscriptionList:
        return SubscriptionList(
            tuple(self._found.values()),
            _name("".join(self._title)),
            self._duplicates,
            tuple(self._skipped),
        )

    def _outline(self, attributes: dict[str, str]) -> None:
        self._outlines += 1
        if self._outlines > MAX_OUTLINES:
            raise BadOpml(f"The list has over {MAX_OUTLINES:,} outlines. Split it.")
        name = _name(attributes.get("title")) or _name(attributes.get("text"))
        address = attributes.get("xmlurl", "").strip()
        if not address:
            self._path.append(name)
            return
        self._path.append(None)
        url = web_link(_FEED_SCHEME.sub(_scheme_of, address, count=1), "")
        if url is None:
            self._skipped.append(one_line(address, 200) or "?")
        elif url in self._found:
            self._duplicates += 1
        else:
            folders = tuple(folder for folder in self._path if folder)[:MAX_FOLDERS_DEEP]
            site = web_link(attributes.get("htmlurl"), "")
            title = name or urlsplit(url).hostname or url
            self._found[url] = Subscription(url, title, site, folders)


def _scheme_of(prefix: re.Match[str]) -> str:
    """`feed:` stands for http, or before the real scheme."""
    return "http" if prefix.group().lower() == "feed" else ""


def _local(name: str) -> str:
    return name.rpartition("}")[2].lower()
