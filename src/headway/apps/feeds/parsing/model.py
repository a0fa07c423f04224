"""What a document says, as plain data that can travel between processes."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Enclosure(Struct, frozen=True):
    """A file that belongs to an entry: an episode, a video."""

    url: str
    type: str | None = None
    length: int | None = None


class ParsedEntry(Struct, frozen=True, kw_only=True):
    """One entry. Texts are plain, but for `summary` and `content`: those are HTML that is safe to
    show. Links are absolute, and begin with http.
    """

    guid: str | None = None
    link: str | None = None
    title: str | None = None
    author: str | None = None
    published: datetime | None = None
    updated: datetime | None = None
    summary: str | None = None
    content: str | None = None
    enclosures: tuple[Enclosure, ...] = ()
    categories: tuple[str, ...] = ()

    @property
    def dated(self) -> datetime | None:
        """When it appeared, as far as it says. RSS 1.0 and old Atom know only `updated`."""
        return self.published or self.updated


class ParsedFeed(Struct, frozen=True, kw_only=True):
    """One feed, with its entries in the order of the document."""

    format: str
    title: str | None = None
    site_link: str | None = None
    description: str | None = None
    language: str | None = None
    ttl_minutes: int | None = None
    skip_hours: frozenset[int] = frozenset()  # 0 to 23, UTC
    skip_days: frozenset[int] = frozenset()  # Monday is 0
    entries: tuple[ParsedEntry, ...] = ()
    problems: tuple[str, ...] = ()  # what was wrong with the document, and was put up with


class Candidate(Struct, frozen=True):
    """A feed that a page names."""

    url: str
    title: str | None = None
    type: str | None = None
