"""From what somebody types to a feed, with a few polite requests and an answer in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, TypeVar

import pytest

from headway.apps.feeds import previewing
from headway.apps.feeds.fetching_answers import Fetched, Kind
from headway.apps.feeds.parsing import (
    Candidate,
    EntitiesDeclared,
    FeedTooLarge,
    FeedUnreadable,
    NotAFeed,
    ParsedEntry,
    ParsedFeed,
    ParserDied,
    ParserOutOfMemory,
    ParserTooSlow,
)
from headway.apps.feeds.previewing import (
    AT_ONCE,
    AT_ONCE_PER_TENANT,
    MOST_CHECKED,
    MOST_GUESSED,
    Found,
    Previews,
    TooManyLooks,
    Unusable,
    address_of,
    kind_name,
)
from headway.apps.feeds.visiting import (
    FRESH_S,
    MOST_REMEMBERED,
    MOST_REMEMBERED_BYTES,
    Remembered,
)

T = TypeVar("T")
SITE = "https://blog.example/"
FEED = "https://blog.example/feed.xml"

Page = ParsedFeed | FeedUnreadable | Fetched | list[str]


def feed(title: str = "A blog", entries: int = 2) -> ParsedFeed:
    return ParsedFeed(
        format="rss20", title=title, entries=tuple(ParsedEntry(guid=str(n)) for n in range(entries))
    )


def failed(kind: Kind, **more: Any) -> Fetched:
    return Fetched(kind=kind, url=SITE, error=f"it is {kind.value}", **more)


class Web:
    """Feeds, pages that name some, and what fails."""

    def __init__(self, **pages: Page) -> None:
        self.pages: dict[str, Page] = dict(pages)
        self.asked: list[str] = []
        self.moved: dict[str, str] = {}
        self.silent: set[str] = set()

    async def look(self, url: str) -> Fetched:
        self.asked.append(url)
        if url in self.silent:
            await asyncio.Event().wait()
        page = self.pages.get(url, failed(Kind.NOT_FOUND, status=404))
        if isinstance(page, Fetched):
            return page
        moved_to = self.moved.get(url)
        return Fetched(kind=Kind.FETCHED, url=moved_to or url, body=url.encode(), moved_to=moved_to)

    async def parse(self, fetched: Fetched) -> ParsedFeed:
        page = self.pages[fetched.body.decode()]
        if isinstance(page, FeedUnreadable):
            raise page
        if isinstance(page, ParsedFeed):
            return page
        raise NotAFeed

    async def feeds_named_in(self, page: Fetched) -> tuple[Candidate, ...]:
        named = self.pages[page.body.decode()]
        assert isinstance(named, list)
        return tuple(Candidate(url, "As the page calls it") for url in named)


def run(work: Callable[[], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with asyncio.timeout(20):
            return await work()

    return asyncio.run(whole())


def discovered(web: Web, typed: str = SITE) -> list[Found]:
    return run(lambda: Previews(web).discover(typed))


def refused(work: Callable[[], Awaitable[Any]]) -> Unusable:
    with pytest.raises(Unusable) as error:
        run(work)
    assert str(error.value)
    return error.value


# ---------------------------------------------------------------------- one address


def test_a_feed_is_read() -> None:
    web = Web(**{FEED: feed()})
    there = run(lambda: Previews(web).look(FEED))
    assert (there.url, there.feed.title) == (FEED, "A blog")


def test_one_that_has_moved_for_good_is_subscribed_to_where_it_is() -> None:
    web = Web(**{SITE: feed()})
    web.moved[SITE] = FEED
    assert run(lambda: Previews(web).look(SITE)).url == FEED


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind not in (
    Kind.FETCHED, Kind.NOT_MODIFIED,
)])  # fmt: skip
def test_every_way_to_fail_has_a_name_and_a_reason(kind: Kind) -> None:
    web = Web(**{FEED: failed(kind)})
    error = refused(lambda: Previews(web).look(FEED))
    assert error.kind == kind_name(kind)
    assert str(error) == f"it is {kind.value}"
    assert "_" not in error.kind


def test_the_names_of_the_usual_ones() -> None:
    assert kind_name(Kind.REFUSED) == "refused-address"
    assert kind_name(Kind.NETWORK) == "unreachable"
    assert kind_name(Kind.DNS) == "unknown-host"
    assert len({kind_name(kind) for kind in Kind}) == len(Kind)


@pytest.mark.parametrize("error", [
    NotAFeed, EntitiesDeclared, FeedTooLarge, ParserTooSlow, ParserOutOfMemory, ParserDied,
])  # fmt: skip
def test_so_has_everything_that_cannot_be_read(error: type[FeedUnreadable]) -> None:
    web = Web(**{FEED: error()})
    said = refused(lambda: Previews(web).look(FEED))
    assert said.kind == error.kind
    assert str(said) == error.__doc__
    assert str(refused(lambda: Previews(Web(**{FEED: error("this")})).look(FEED))) == "this"


@pytest.mark.parametrize(("typed", "meant"), [
    ("example.com/blog", "https://example.com/blog"),
    ("  example.com ", "https://example.com"),
    ("example.com:8080/x", "https://example.com:8080/x"),
    ("http://example.com/#part", "http://example.com/"),
    ("feed://example.com/rss", "http://example.com/rss"),
    ("feed:https://example.com/rss", "https://example.com/rss"),
    ("HTTPS://EXAMPLE.com/A", "https://example.com/A"),
    ("[::1]/feed", "https://[::1]/feed"),
])  # fmt: skip
def test_what_people_type_is_an_address(typed: str, meant: str) -> None:
    assert address_of(typed) == meant


@pytest.mark.parametrize("typed", [
    "", " ", "https://", "ftp://example.com/feed", "javascript:alert(1)",
    "gopher://x.example/", "http://[::1/", "x" * 3_000, "http://exa mple.com:port/",
])  # fmt: skip
def test_or_it_is_none_and_nobody_is_asked(typed: str) -> None:
    web = Web()
    assert refused(lambda: Previews(web).look(typed)).kind == "bad-address"
    assert web.asked == []


@pytest.mark.parametrize("kind", [Kind.NETWORK, Kind.TLS])
def test_without_a_scheme_a_site_that_knows_no_tls_is_found_too(kind: Kind) -> None:
    web = Web(**{"https://old.example": failed(kind), "http://old.example": feed()})
    assert run(lambda: Previews(web).look("old.example")).url == "http://old.example"
    web.asked.clear()
    refused(lambda: Previews(web).look("https://old.example"))
    assert web.asked == ["https://old.example"]


def test_a_refusal_is_no_reason_to_try_without_tls() -> None:
    web = Web(**{"https://inside.example": failed(Kind.REFUSED)})
    assert refused(lambda: Previews(web).look("inside.example")).kind == "refused-address"
    assert web.asked == ["https://inside.example"]


def test_a_look_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "LOOK_S", 0.01)
    web = Web(**{FEED: feed()})
    web.silent.add(FEED)
    assert refused(lambda: Previews(web).look(FEED)).kind == "timed-out"


# ---------------------------------------------------------------------- a site


def test_the_address_itself_may_be_a_feed() -> None:
    web = Web(**{FEED: feed("Mine", 3)})
    (found,) = discovered(web, FEED)
    assert found == Found(FEED, "address", "Mine", "rss20", 3, True)
    assert web.asked == [FEED]


def test_else_its_page_names_some_and_the_first_are_checked() -> None:
    named = [f"https://blog.example/{n}.xml" for n in range(5)]
    web = Web(**{SITE: named, named[0]: NotAFeed(), **{url: feed(url) for url in named[1:]}})
    found = discovered(web)
    assert [each.url for each in found] == [*named[1:3], *named[3:], named[0]]
    assert [each.valid for each in found] == [True, True, None, None, False]
    assert found[0].title == named[1]
    assert found[2].title == "As the page calls it"
    assert found[-1].error
    assert web.asked == [SITE, *named[:MOST_CHECKED]]


def test_else_usual_places_are_tried_until_there_is_one() -> None:
    web = Web(**{SITE: [], "https://blog.example/atom.xml": feed(),
                 "https://blog.example/rss": feed()})  # fmt: skip
    (found,) = discovered(web)
    assert (found.url, found.by) == ("https://blog.example/atom.xml", "guess")
    assert web.asked == [
        SITE, "https://blog.example/feed", "https://blog.example/rss.xml",
        "https://blog.example/atom.xml",
    ]  # fmt: skip


def test_a_page_whose_feeds_are_all_broken_is_looked_at_further() -> None:
    web = Web(**{SITE: [FEED], FEED: NotAFeed(), "https://blog.example/feed": feed()})
    found = discovered(web)
    assert [(each.url, each.valid) for each in found] == [
        ("https://blog.example/feed", True), (FEED, False),
    ]  # fmt: skip


def test_a_site_without_any_is_told_so_after_a_few_requests() -> None:
    page = "https://blog.example/a/b/"
    web = Web(**{page: []})
    error = refused(lambda: Previews(web).discover(page))
    assert error.kind == "not-a-feed"
    assert "blog.example" in str(error)
    assert len(web.asked) == 1 + MOST_GUESSED


def test_pages_that_say_nothing_is_here_with_status_200_are_no_feeds() -> None:
    web = Web(**{SITE: [], "https://blog.example/feed": [], "https://blog.example/rss.xml": feed()})
    (found,) = discovered(web)
    assert found.url == "https://blog.example/rss.xml"


@pytest.mark.parametrize("kind", [Kind.PUSHBACK, Kind.NETWORK, Kind.TIMED_OUT, Kind.DNS])
def test_a_site_that_has_had_enough_is_not_asked_again(kind: Kind) -> None:
    web = Web(**{SITE: [], "https://blog.example/feed": failed(kind)})
    assert refused(lambda: Previews(web).discover(SITE)).kind == "not-a-feed"
    assert web.asked == [SITE, "https://blog.example/feed"]


def test_a_site_that_cannot_be_reached_says_why_and_nothing_is_guessed() -> None:
    web = Web(**{SITE: failed(Kind.PUSHBACK, retry_after_s=30.0)})
    error = refused(lambda: Previews(web).discover(SITE))
    assert error.kind == "asked-to-wait"
    assert error.fetched is not None
    assert error.fetched.retry_after_s == 30
    assert web.asked == [SITE]


def test_a_feed_that_is_broken_is_not_taken_for_a_page() -> None:
    web = Web(**{SITE: EntitiesDeclared()})
    assert refused(lambda: Previews(web).discover(SITE)).kind == "entities"


def test_what_was_found_when_the_time_is_over_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(previewing, "DISCOVERY_S", 0.02)
    named = ["https://blog.example/1.xml", "https://slow.example/2.xml"]
    web = Web(**{SITE: named, named[0]: feed()})
    web.silent.add(named[1])
    assert [each.valid for each in discovered(web)] == [True, None]
    web.silent = {SITE}
    assert refused(lambda: Previews(web).discover(SITE)).kind == "timed-out"


def test_the_best_is_one_that_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    named = ["https://blog.example/1.xml", "https://blog.example/2.xml"]
    web = Web(**{SITE: named, named[0]: NotAFeed(), named[1]: feed()})
    assert run(lambda: Previews(web).best(SITE)).url == named[1]
    monkeypatch.setattr(previewing, "MOST_CHECKED", 0)
    error = refused(lambda: Previews(web).best(SITE))  # the first is what its author prefers
    assert error.kind == "not-a-feed"


def test_addresses_that_a_page_names_twice_or_not_at_all() -> None:
    web = Web(**{SITE: [FEED, FEED + "#x", "https://" + "x" * 2_000, FEED], FEED: feed()})
    assert [each.url for each in discovered(web)] == [FEED]


# ---------------------------------------------------------------------- at once


def test_there_are_only_so_many_places() -> None:
    previews = Previews(Web())
    with ExitStack() as held:
        for _ in range(AT_ONCE_PER_TENANT):
            held.enter_context(previews.place("ann"))
        with pytest.raises(TooManyLooks, match="try again"), previews.place("ann"):
            pass
        for number in range(AT_ONCE - AT_ONCE_PER_TENANT):
            held.enter_context(previews.place(f"t{number // AT_ONCE_PER_TENANT}"))
        with pytest.raises(TooManyLooks), previews.place("bob"):
            pass
    with previews.place("bob"), previews.place("ann"):
        assert previews._under_way == {"bob": 1, "ann": 1}
    assert previews._under_way == {}


# ---------------------------------------------------------------------- twice


def fetched(size: int = 10, kind: Kind = Kind.FETCHED) -> Fetched:
    return Fetched(kind=kind, url=FEED, body=b"x" * size)


def test_what_was_just_fetched_is_remembered_for_a_minute() -> None:
    now = [100.0]
    memory = Remembered(lambda: now[0])
    memory.put(FEED, "feeds", first := fetched())
    assert memory.get(FEED, "feeds") is first
    assert memory.get(FEED, "pages") is None
    assert memory.get(FEED + "?", "feeds") is None
    now[0] += FRESH_S - 1
    assert memory.get(FEED, "feeds") is first
    now[0] += 2
    assert memory.get(FEED, "feeds") is None


def test_failures_are_not() -> None:
    memory = Remembered()
    memory.put(FEED, "feeds", fetched(kind=Kind.SERVER_ERROR))
    assert memory.get(FEED, "feeds") is None


def test_not_too_many_and_not_too_much_is_remembered() -> None:
    memory = Remembered()
    for number in range(MOST_REMEMBERED + 5):
        memory.put(str(number), "", fetched())
    assert [memory.get(str(number), "") is None for number in (4, 5)] == [True, False]
    memory = Remembered()
    quarter = MOST_REMEMBERED_BYTES // 4
    for number in range(5):
        memory.put(str(number), "", fetched(quarter))
    assert [memory.get(str(number), "") is None for number in range(5)] == [True, *[False] * 4]
    memory.put("again", "", fetched(quarter))
    memory.put("again", "", fetched(10))
    assert memory._bytes == 3 * quarter + 10
    memory.put("huge", "", fetched(quarter + 1))
    assert memory.get("huge", "") is None
