"""What is sent and shown of articles."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    WithJsonSchema,
)

from headway.api.bodies import MAX_ID, NO_NUL, WHOLE, Body, Name, Text
from headway.apps.feeds.articles import Article, Place
from headway.apps.feeds.parsing import Enclosure, ParsedEntry
from headway.apps.feeds.parsing.limits import MAX_CATEGORIES, MAX_ENCLOSURES
from headway.apps.feeds.parsing.sanitising import clean_html, html_as_text
from headway.apps.feeds.parsing.text import (
    MAX_NAME,
    MAX_TITLE,
    identifier,
    one_line,
    web_link,
)
from headway.apps.feeds.storing import EARLIEST

MAX_POSTED = 1_000  # articles in one request
MAX_MARKED = 1_000
MAX_HTML = 1_000_000  # characters of one text that is sent
EXCERPT = 300  # characters
LATEST = 253_402_300_800.0  # the year 10000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _time_of(value: Any) -> datetime:
    """ValueError: it is no time."""
    if not isinstance(value, str):
        raise ValueError("write a time as text in ISO 8601, such as 2026-01-31T12:00:00Z")
    try:
        found = datetime.fromisoformat(value.strip().upper())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("write a time in ISO 8601, such as 2026-01-31T12:00:00Z") from None


def _moment_of(value: Any) -> datetime:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _time_of(value)
    if not EARLIEST <= value < LATEST:
        raise ValueError("this is no time; write seconds since 1970, or ISO 8601")
    return _EPOCH + timedelta(seconds=value)


Time = Annotated[datetime, BeforeValidator(_time_of)]
When = Annotated[
    datetime,
    BeforeValidator(_moment_of),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": EARLIEST, "exclusiveMaximum": LATEST},
                {"type": "string", "format": "date-time"},
            ]
        }
    ),
]
ArticleNumber = Annotated[int, Field(ge=1, le=MAX_ID), WHOLE]
Html = Annotated[str, StringConstraints(max_length=MAX_HTML)]
Link = Annotated[str, StringConstraints(max_length=20_000)]


def _number_or_time(value: Any) -> str:
    return "number" if isinstance(value, int | float) else "time"


Seen = Annotated[
    Annotated[ArticleNumber, Tag("number")] | Annotated[Time, Tag("time")],
    Discriminator(_number_or_time),
]


# ---------------------------------------------------------------------- what is sent


class MarksBody(Body):
    """What changes. Null and what is left out stay."""

    is_read: bool | None = Field(None, description="Whether it is read.")
    is_starred: bool | None = Field(None, description="Whether it is starred.")


class BulkMarksBody(MarksBody):
    """The same marks for many articles."""

    ids: Annotated[list[ArticleNumber], Field(min_length=1, max_length=MAX_MARKED)] = Field(
        description="The articles. Those that are not there are counted, and change nothing."
    )


class MarkReadBody(Body):
    """What has been read: one feed, one folder, or all."""

    feed: Name | None = Field(None, description="The articles of this feed.")
    folder: Text | None = Field(
        None, description="The articles of this folder, and of those inside; empty: of none."
    )
    all: bool = Field(False, description="All articles.")
    before: Seen | None = Field(
        None,
        description="The number of the newest article that the reader has seen, or the moment at "
        "which he looked, in ISO 8601: what came after it stays unread. Null: all of them.",
    )


class EnclosureBody(BaseModel):
    """A file that belongs to an article."""

    model_config = ConfigDict(extra="ignore", strict=True)

    url: Link = Field(description="Where it is.")
    type: Text | None = Field(None, description="Its media type, such as video/mp4.")
    length: Annotated[int, Field(ge=0, le=MAX_ID), WHOLE] | None = Field(
        None, description="In bytes."
    )


class ArticleBody(BaseModel):
    """An article that the client has parsed itself. What is not known here is left alone."""

    model_config = ConfigDict(extra="ignore", strict=True)

    feed_id: Name = Field(description="The feed that it is from.")
    guid: Html | None = Field(None, description="What the feed calls it; the best identity.")
    url: Link | None = Field(None, description="Its page; without a guid, its identity.")
    link: Link | None = Field(None, description="The same under another name.")
    title: Html | None = Field(None, description="Plain text, in one line.")
    author: Html | None = Field(None, description="Plain text, in one line.")
    summary: Html | None = Field(None, description="HTML, which is cleaned.")
    content: Html | None = Field(None, description="HTML, which is cleaned.")
    published_at: When | None = Field(
        None, description="ISO 8601, or seconds since 1970; null: when it is first sent."
    )
    updated_at: When | None = Field(None, description="Likewise.")
    enclosures: Annotated[list[EnclosureBody], Field(max_length=MAX_ENCLOSURES)] | None = Field(
        None, description="Files that belong to it."
    )
    categories: Annotated[list[Text], Field(max_length=MAX_CATEGORIES)] | None = Field(
        None, description="What it is about."
    )
    is_read: bool | None = Field(None, description="For a new one; one that is there keeps it.")
    is_starred: bool | None = Field(None, description="Likewise.")


def _many(value: Any) -> str:
    return "many" if isinstance(value, list) else "one"


Posts = Annotated[list[ArticleBody], Field(min_length=1, max_length=MAX_POSTED), Tag("many")]
OneOrMany = Annotated[Annotated[ArticleBody, Tag("one")] | Posts, Discriminator(_many)]


class ArchiveBody(Body):
    """What to archive."""

    url: Annotated[str, StringConstraints(max_length=5_000, pattern=NO_NUL)] | None = Field(
        None,
        description="The link of the article or of one of its enclosures; null: its first video, "
        "or else its link.",
    )


def entry_of(body: ArticleBody, feed_url: str) -> ParsedEntry:
    """As the refresh would have it. ValueError: it cannot be told from others."""
    said = body.url or body.link
    link = web_link(said, feed_url) if said else None
    if said and link is None:
        raise ValueError("its url is no address of the web; write it as https://host/path")
    base = link or feed_url
    files: dict[str, Enclosure] = {}
    for each in body.enclosures or ():
        address = web_link(each.url, base)
        if address is None:
            raise ValueError("the url of an enclosure is no address of the web")
        files.setdefault(address, Enclosure(address, one_line(each.type, 100), each.length))
    names = (one_line(each, MAX_NAME) for each in body.categories or ())
    entry = ParsedEntry(
        guid=identifier(body.guid),
        link=link,
        title=one_line(body.title, MAX_TITLE),
        author=one_line(body.author, MAX_NAME),
        published=body.published_at,
        updated=body.updated_at,
        summary=clean_html(body.summary, base) if body.summary else None,
        content=clean_html(body.content, base) if body.content else None,
        enclosures=tuple(files.values()),
        categories=tuple(dict.fromkeys(name for name in names if name)),
    )
    if not (entry.guid or entry.link or entry.title or entry.content or entry.summary or files):
        raise ValueError("it has neither a guid nor a url, title, text or file; send one of them")
    return entry


# ---------------------------------------------------------------------- what is shown


class EnclosureModel(BaseModel):
    url: str
    type: str | None
    length: int | None = Field(description="In bytes, as the feed says.")


class ArticleModel(BaseModel):
    """An article, and what its reader has done with it."""

    id: int = Field(description="Grows in the order in which articles come.")
    feed_id: str
    title: str | None
    link: str | None
    url: str | None = Field(description="The same as `link`.")
    author: str | None
    summary: str | None = Field(description=f"Its beginning as plain text, {EXCERPT} characters.")
    content: str | None = Field(
        description="All of it, as HTML that is safe to show. In lists only with `content=true`."
    )
    at: str = Field(description="What it is sorted by: when it appeared; this never changes.")
    published_at: str | None = Field(description="As the feed says.")
    updated_at: str | None = Field(description="As the feed says.")
    first_seen_at: str = Field(description="When it came here.")
    is_read: bool
    is_starred: bool
    changed_at: str = Field(description="When one of these two marks has last changed.")
    enclosures: list[EnclosureModel]
    categories: list[str]


class ArticlePage(BaseModel):
    items: list[ArticleModel]
    count: int
    total: int
    page: int
    size: int
    next: str | None = Field(description="The `cursor` of the next page; null: this is the last.")


class MarkedModel(BaseModel):
    changed: int
    unchanged: int = Field(description="They had these marks already.")
    not_found: int


class ChangedModel(BaseModel):
    changed: int


class DeletedModel(BaseModel):
    deleted: int


class PostedModel(BaseModel):
    saved: int = Field(description="They are new in their feed.")
    updated: int = Field(description="Their text has changed; their marks have not.")
    unchanged: int
    dropped: int = Field(description="A rule of the tenant does not want them.")


class FeedStats(BaseModel):
    feed_id: str
    total: int
    unread: int
    starred: int
    today: int


class ArticleStats(BaseModel):
    total: int
    unread: int
    starred: int
    today: int = Field(description="That have appeared since midnight UTC.")
    by_feed: list[FeedStats]


def article_view(article: Article) -> dict[str, Any]:
    return {
        "id": article.id,
        "feed_id": article.feed,
        "title": article.title,
        "link": article.link,
        "url": article.link,
        "author": article.author,
        "summary": excerpt(article.beginning),
        "content": article.content,
        "at": when(article.at),
        "published_at": when(article.published_at),
        "updated_at": when(article.updated_at),
        "first_seen_at": when(article.seen_at),
        "is_read": bool(article.is_read),
        "is_starred": bool(article.is_starred),
        "changed_at": when(article.changed_at),
        "enclosures": msgspec.json.decode(article.enclosures),
        "categories": msgspec.json.decode(article.categories),
    }


def excerpt(html: str | None) -> str | None:
    if html is None:
        return None
    text = " ".join(html_as_text(html).split())
    return text if len(text) <= EXCERPT else f"{text[: EXCERPT - 1].rstrip()}…"


def when(at: float | None) -> str | None:
    """A time as ISO 8601 in UTC, also one before 1970."""
    if at is None:
        return None
    found = _EPOCH + timedelta(seconds=at)
    return found.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def cursor_of(article: Article) -> str:
    return f"{article.at!r}_{article.id}"


def place_of(cursor: str) -> Place:
    """ValueError: it is no cursor."""
    at, _, id = cursor.partition("_")
    place = Place(float(at), int(id))
    if not -1e12 < place.at < 1e12 or not 0 <= place.id <= MAX_ID:
        raise ValueError("this is no cursor")
    return place


def before_of(text: str) -> tuple[int | None, float | None]:
    """(the number of an article, the time). ValueError: it is neither."""
    if text.isascii() and text.isdigit():
        number = int(text) if len(text) < 17 else 0
        if not 1 <= number <= MAX_ID:
            raise ValueError("this is no number of an article")
        return number, None
    return None, _time_of(text).timestamp()
