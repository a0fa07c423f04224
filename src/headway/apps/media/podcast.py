"""What was archived, as a podcast: RSS 2.0 with the tags that players read, and the secrets by
which people reach it. Whoever has the address needs no other key, so it is never written anywhere.
"""

from __future__ import annotations

import hmac
import re
import secrets
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from email.utils import formatdate
from typing import NamedTuple

import msgspec

from headway.apps.media import items
from headway.apps.media.library.kinds import suffix_of
from headway.apps.media.model import Item, State, Subscription
from headway.apps.media.register import Register
from headway.apps.media.serving import content_type
from headway.engine.brain import Brain
from headway.net.redaction import SECRETS
from headway.store import Store

PATH = "/podcasts"
MOST = 300  # episodes, the newest
SECRET_BYTES = 32
COVERS = frozenset({".jpg", ".jpeg", ".png"})  # of images, what players show
ITUNES = "http://www.itunes.com/dtds/podcast-1.0.dtd"
ATOM = "http://www.w3.org/2005/Atom"
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

ET.register_namespace("itunes", ITUNES)
ET.register_namespace("atom", ATOM)


class Episode(NamedTuple):
    item: Item
    video: str  # paths, relative to the library
    thumbnail: str | None


class Podcasts:
    def __init__(self, store: Store, register: Register) -> None:
        self._store = store
        self._register = register

    def meet(self, brain: Brain) -> None:
        brain.loaded.append(self._loaded)

    def _loaded(self, now: float) -> None:
        for row in self._register.subscriptions.values():
            if row.podcast:
                SECRETS.add(row.podcast)

    def at(self, secret: str) -> Subscription | None:
        """None: there is none. It takes as long to find out, however much of it is right."""
        given = secret.encode("utf-8", "replace")
        found = None
        for row in list(self._register.subscriptions.values()):
            if row.podcast and hmac.compare_digest(row.podcast.encode(), given):
                found = row
        return found

    def open(self, id: int, now: float, *, rotate: bool = False) -> str:
        """In the brain's turn: the secret of a subscription, which is made if there is none.
        KeyError: there is no such subscription.
        """
        there = self._register.subscriptions[id].podcast
        if there and not rotate:
            return there
        secret = secrets.token_urlsafe(SECRET_BYTES)
        SECRETS.add(secret)
        self._register.change(id, now, podcast=secret)
        return secret

    def close(self, id: int, now: float) -> bool:
        """In the brain's turn. False: there was none."""
        there = self._register.subscriptions[id].podcast is not None
        self._register.change(id, now, podcast=None)
        return there

    def episodes(self, row: Subscription) -> list[Episode]:
        """What is on disk, the newest first. Blocking."""
        rows = self._store.rows(
            f"select {items.COLUMNS} from media_items where subscription = ? and state = ? "
            "and files is not null "
            "order by coalesce(published_at, done_at, found_at) desc, id desc limit ?",
            (row.id, State.DONE.value, MOST),
        )
        return [each for each in map(_episode, rows) if each is not None]


def _episode(row: Sequence[object]) -> Episode | None:
    item = Item(*row)  # type: ignore[arg-type]
    files = msgspec.json.decode(item.files or "{}")
    if "video" not in files:
        return None
    return Episode(item, files["video"], files.get("thumbnail"))


# ---------------------------------------------------------------------- the document


def feed(row: Subscription, secret: str, base: str, episodes: Iterable[Episode]) -> bytes:
    """`base`: where this server is reached, without a slash at its end."""
    listed = list(episodes)
    root = ET.Element("rss", {"version": "2.0"})
    channel = ET.SubElement(root, "channel")
    own = f"{base}{PATH}/{secret}/feed.xml"
    _add(channel, "title", row.name)
    _add(channel, "link", row.url)
    _add(channel, "description", f"What was archived of {row.url}")
    _add(channel, "generator", "Headway")
    _add(channel, f"{{{ITUNES}}}author", row.name)
    _add(channel, f"{{{ITUNES}}}explicit", "false")
    _add(channel, f"{{{ITUNES}}}block", "Yes")  # no directory of podcasts may list it
    ET.SubElement(channel, f"{{{ATOM}}}link",
                  {"href": own, "rel": "self", "type": "application/rss+xml"})  # fmt: skip
    if listed:
        _add(channel, "lastBuildDate", _date(changed_at(row, listed)))
    for each in listed:
        _add_episode(channel, each, f"{base}{PATH}/{secret}")
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def changed_at(row: Subscription, episodes: Iterable[Episode]) -> float:
    return max((each.item.changed_at for each in episodes), default=row.created_at)


def _add_episode(channel: ET.Element, episode: Episode, place: str) -> None:
    item = episode.item
    entry = ET.SubElement(channel, "item")
    _add(entry, "title", item.title or item.key)
    _add(entry, "link", item.url)
    _add(entry, "description", item.title or item.key)
    guid = _add(entry, "guid", f"headway:{item.subscription}:{item.key}")
    guid.set("isPermaLink", "false")
    _add(entry, "pubDate", _date(item.published_at or item.done_at or item.found_at))
    suffix = suffix_of(episode.video)
    enclosure = {"url": f"{place}/{item.id}{suffix}", "length": str(item.size_bytes or 0),
                 "type": content_type(episode.video)}  # fmt: skip
    ET.SubElement(entry, "enclosure", enclosure)
    if item.uploader:
        _add(entry, f"{{{ITUNES}}}author", item.uploader)
    if item.duration_s:
        _add(entry, f"{{{ITUNES}}}duration", str(round(item.duration_s)))
    if episode.thumbnail and suffix_of(episode.thumbnail) in COVERS:
        image = f"{place}/{item.id}{suffix_of(episode.thumbnail)}"
        ET.SubElement(entry, f"{{{ITUNES}}}image", {"href": image})


def _add(parent: ET.Element, name: str, text: str) -> ET.Element:
    made = ET.SubElement(parent, name)
    made.text = _NOT_XML.sub("", text)
    return made


def _date(at: float) -> str:
    """As in mail. A list may have named any time."""
    return formatdate(min(max(at, 0.0), 253_402_300_000.0), usegmt=True)
