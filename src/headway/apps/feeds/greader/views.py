"""What is answered, for the document."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

TEXT: dict[str, Any] = {
    "description": "Plain text.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


class Said(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class UserInfo(Said):
    user_id: str
    user_name: str
    user_profile_id: str
    user_email: str


class ReaderCategory(Said):
    id: str
    label: str


class ReaderSubscription(Said):
    id: str = Field(description="Its stream.")
    title: str
    categories: list[ReaderCategory] = Field(description="One at most.")
    url: str
    html_url: str
    icon_url: str


class ReaderSubscriptions(Said):
    subscriptions: list[ReaderSubscription]


class ReaderTag(Said):
    id: str
    type: str | None = None


class ReaderTags(Said):
    tags: list[ReaderTag]


class UnreadCount(Said):
    id: str
    count: int
    newest_item_timestamp_usec: str


class UnreadCounts(Said):
    max: int = Field(description="All that is unread.")
    unreadcounts: list[UnreadCount]


class ItemRef(Said):
    id: str = Field(description="In decimal.")
    direct_stream_ids: list[str]
    timestamp_usec: str = Field(description="When it appeared here.")


class ItemRefs(Said):
    item_refs: list[ItemRef]
    continuation: str | None = Field(None, description="Missing: there are no more.")


class ReaderLink(Said):
    href: str
    type: str | None = None
    length: int | None = None


class ReaderText(Said):
    direction: str
    content: str = Field(description="HTML that is safe to show.")


class ReaderOrigin(Said):
    stream_id: str
    title: str
    html_url: str


class ReaderItem(Said):
    id: str = Field(description="In hex, with its prefix.")
    crawl_time_msec: str
    timestamp_usec: str
    published: int
    updated: int
    title: str
    author: str
    canonical: list[ReaderLink]
    alternate: list[ReaderLink]
    summary: ReaderText
    categories: list[str] = Field(description="Its marks, its label, and what its author says.")
    enclosure: list[ReaderLink]
    origin: ReaderOrigin


class ReaderItems(Said):
    direction: str
    id: str
    title: str
    updated: int
    items: list[ReaderItem]
    continuation: str | None = Field(None, description="Missing: there are no more.")


class QuickAdded(Said):
    num_results: int
    query: str
    stream_id: str
    stream_name: str
    error: str | None = None


class Preferences(Said):
    prefs: list[str]


class StreamPreferences(Said):
    streamprefs: dict[str, list[str]]
