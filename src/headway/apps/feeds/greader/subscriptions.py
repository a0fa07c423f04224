"""What a tenant subscribes to, in a reader's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from headway.api.problems import Problem
from headway.apps.feeds.greader.asking import Asked
from headway.apps.feeds.greader.errors import bad
from headway.apps.feeds.greader.ids import FEED, LABEL, Kind, Stream
from headway.apps.feeds.greader.labels import folder_of
from headway.apps.feeds.greader.streams import Reading
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.parsing.text import MAX_NAME, one_line
from headway.apps.feeds.register import Register, Wanted
from headway.apps.feeds.routes.feeds import usable_url
from headway.net.addresses import Allowed
from headway.net.outbound import Refused
from headway.net.urls import host_of

MOST_AT_ONCE = 200  # feeds that one request changes, in one turn of the brain
SUBSCRIBE, EDIT, UNSUBSCRIBE = "subscribe", "edit", "unsubscribe"


class Edit(NamedTuple):
    """What is to become of one feed."""

    stream: Stream
    title: str = ""  # empty: as it is
    into: str = ""  # a folder; empty: none was named
    out_of: frozenset[str] = frozenset()


# ---------------------------------------------------------------------- looking


def subscription_list(reading: Reading) -> dict[str, Any]:
    return {"subscriptions": [_view(reading, each) for each in reading.subscriptions()]}


def _view(reading: Reading, subscription: Subscription) -> dict[str, Any]:
    folder = subscription.folder
    return {
        "id": FEED + subscription.id,
        "title": reading.title(subscription),
        "categories": [{"id": LABEL + folder, "label": folder}] if folder else [],
        "url": subscription.url,
        "htmlUrl": reading.site_link(subscription),
        "iconUrl": "",
    }


# ---------------------------------------------------------------------- asking


def edits_asked(asked: Asked) -> list[Edit]:
    """All of them make sense, or none is done."""
    streams = asked.streams("s")
    titles = asked.all("t", "title")
    if not streams or any(each.kind is not Kind.FEED for each in streams):
        raise bad("s is a feed, such as feed/ID or feed/https://host/path")
    if len(streams) > MOST_AT_ONCE:
        raise bad(f"name at most {MOST_AT_ONCE} feeds at once")
    added = [each.name for each in asked.streams("a") if each.kind is Kind.LABEL]
    removed = frozenset(each.name for each in asked.streams("r") if each.kind is Kind.LABEL)
    into = folder_of(added[0]) if added else ""
    titles += [""] * (len(streams) - len(titles))
    return [
        Edit(stream, _title(title), into, removed)
        for stream, title in zip(streams, titles, strict=False)
    ]


def _title(text: str) -> str:
    return one_line(text, MAX_NAME) or ""


# ---------------------------------------------------------------------- in the brain's turn


class Shelf:
    """The subscriptions of one tenant, to be changed."""

    def __init__(self, register: Register, reading: Reading, allowed: Allowed, most: int) -> None:
        self._register = register
        self._reading = reading
        self._allowed = allowed
        self._most = most

    def edit(self, action: str, edits: Sequence[Edit], now: float) -> None:
        """All that can go wrong is looked at first."""
        found = [(each, self._reading.subscription(each.stream.name)) for each in edits]
        fresh: dict[str, Wanted] = {}
        for each, there in found:
            if there is None:
                wanted = self._wanted(each)
                if action != SUBSCRIBE:
                    raise _unknown(each.stream)
                fresh.setdefault(wanted.url, wanted)
        self._check_room(len(fresh))
        for each, there in found:
            if there is None or there.name not in self._register.subscriptions:
                continue  # it is new, or was named twice
            if action == UNSUBSCRIBE:
                self._register.unsubscribe(there.name, now)
                self._record("feed_remove", there, now)
            else:
                self._change(there, each, now)
        self._add(list(fresh.values()), now)

    def at(self, url: str, now: float) -> Subscription:
        """The subscription to this address, which is new if there was none."""
        there = self._reading.subscription_at(url)
        if there is not None:
            return there
        self._check_room(1)
        return self._add([new_feed(url)], now)[0]

    def _add(self, wanted: Sequence[Wanted], now: float) -> list[Subscription]:
        made = self._register.subscribe(self._reading.tenant, wanted, now, skip=True)
        for each in made:
            self._record("feed_add", each, now)
        return made

    def _check_room(self, more: int) -> None:
        if more and len(self._reading.subscriptions()) + more > self._most:
            raise bad(f"you may have {self._most} feeds, and would have more; remove some")

    def _wanted(self, edit: Edit) -> Wanted:
        if "://" not in edit.stream.name:
            raise _unknown(edit.stream)
        try:
            url = usable_url(edit.stream.name, self._allowed)
        except (ValueError, Refused) as error:
            raise bad(str(error)) from None
        return new_feed(url, title=edit.title or None, folder=edit.into)

    def _change(self, there: Subscription, edit: Edit, now: float) -> None:
        changes: dict[str, Any] = {}
        if edit.title:
            changes["title"] = edit.title
        if edit.into:
            changes["folder"] = edit.into
        elif there.folder in edit.out_of:
            changes["folder"] = ""
        self._register.change(there.name, now, **changes)
        self._record("feed_change", there, now)

    def _record(self, event: str, feed: Subscription, now: float) -> None:
        brain = self._register.brain
        brain.record(now, event, subject=f"feed:{feed.id}", detail=host_of(feed.url))


def _unknown(stream: Stream) -> Problem:
    return Problem(404, f"you have no feed {stream.name[:100]!r}", kind="unknown-feed")


def new_feed(url: str, *, title: str | None = None, folder: str = "") -> Wanted:
    return Wanted(str(uuid4()), url, title=title, folder=folder)
