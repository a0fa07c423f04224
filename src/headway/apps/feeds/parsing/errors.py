"""Why a document could not be read as a feed. `kind` is a short name to store and to match on."""

from __future__ import annotations

from headway.errors import HeadwayError


class FeedUnreadable(HeadwayError):
    """The document cannot be read as a feed."""

    kind = "unreadable"


class NotAFeed(FeedUnreadable):
    """This is no feed. Give the address of an RSS, Atom or JSON feed."""

    kind = "not-a-feed"


class EntitiesDeclared(FeedUnreadable):
    """The document declares entities, which can blow up or read files."""

    kind = "entities"


class FeedTooLarge(FeedUnreadable):
    """The feed is larger than allowed."""

    kind = "too-large"


class ParserTooSlow(FeedUnreadable):
    """Reading the feed took longer than allowed, and was stopped."""

    kind = "too-slow"


class ParserOutOfMemory(FeedUnreadable):
    """Reading the feed took more memory than allowed, and was stopped."""

    kind = "out-of-memory"


class ParserDied(FeedUnreadable):
    """The process that read the feed ended unexpectedly."""

    kind = "died"


_OF_KIND: dict[str, type[FeedUnreadable]] = {
    error.kind: error
    for error in (
        NotAFeed, EntitiesDeclared, FeedTooLarge, ParserTooSlow, ParserOutOfMemory, ParserDied,
    )
}  # fmt: skip


def of_kind(kind: str, message: str) -> FeedUnreadable:
    """The error that a worker has described."""
    return _OF_KIND.get(kind, FeedUnreadable)(message)
