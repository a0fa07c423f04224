"""Whatever a site or its document says, however strange: the turn that ends its visit is taken, and
the next one is planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.apps.feeds.fetching_answers import Fetched, Kind
from headway.apps.feeds.parsing import Enclosure, FeedUnreadable, ParsedEntry, ParsedFeed
from tests.feeds.feeds_world import FeedsWorld
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

BLOG = "https://blog.example/feed"
WEEK_S = 7 * 86_400.0
Texts = st.SearchStrategy[str]

STORABLE = ["", "\0", "a\0b", "\ufffe", "\x85", "x" * 5_000, "'); drop", "%s", "\\u0000", "é" * 300]
storable: Texts = st.sampled_from(STORABLE) | st.text(max_size=20)
halves = st.characters(categories=["Cs"])  # of characters, which no store takes
anything: Texts = storable | st.text(st.characters(exclude_categories=()) | halves, max_size=20)
numbers = st.none() | st.floats() | st.sampled_from([0.0, -1.0, 1e-300, 1e18, 52 * WEEK_S])
dates = (
    st.none()
    | st.datetimes(timezones=st.just(UTC))
    | st.sampled_from([each.replace(tzinfo=UTC) for each in (datetime.min, datetime.max)])
)
addresses = st.sampled_from([
    "https://other.example/feed", "HTTPS://Other.Example:443/feed#there", "ftp://other.example/",
    "https://h/" + "x" * 3_000, "https://é.example/ü", "https:///", "//", "https://[::1]/",
])  # fmt: skip


def documents(texts: Texts) -> st.SearchStrategy[ParsedFeed | str]:
    """Of text: it cannot be read, and this is why."""
    said = st.none() | texts
    files = st.builds(Enclosure, url=texts, type=said, length=st.none() | st.integers())
    entries = st.builds(
        ParsedEntry, guid=said, link=said, title=said, author=said, summary=said, content=said,
        published=dates, updated=dates, enclosures=st.lists(files, max_size=2).map(tuple),
        categories=st.lists(texts, max_size=3).map(tuple),
    )  # fmt: skip
    return texts | st.builds(
        ParsedFeed, format=st.just("rss20"), title=said, site_link=said, description=said,
        language=said, ttl_minutes=st.none() | st.integers(-(2**63), 2**63 - 1),
        skip_hours=st.frozensets(st.integers(0, 23)), skip_days=st.frozensets(st.integers(0, 6)),
        entries=st.lists(entries, max_size=4).map(tuple),
    )  # fmt: skip


def answers(kinds: list[Kind], texts: Texts) -> st.SearchStrategy[Fetched]:
    said = st.none() | texts
    return st.builds(
        Fetched, kind=st.sampled_from(kinds), url=addresses, error=texts, body_hash=texts,
        status=st.none() | st.integers(100, 999), etag=said, modified=said, retry_after_s=numbers,
        fresh_until=numbers, moved_to=st.none() | addresses | texts,
    )  # fmt: skip


class Strange(FeedsWorld):
    """With a site that says what it is told to."""

    answer: Fetched
    document: ParsedFeed | str

    def _start(self) -> Any:
        engine = super()._start()
        self.feeds.refresher._fetch = self._fetch  # type: ignore[assignment]
        self.feeds.refresher._parse = self._parse
        return engine

    async def _fetch(self, *_: object, **__: object) -> Fetched:
        return self.answer

    async def _parse(self, _: Fetched) -> ParsedFeed:
        if isinstance(self.document, str):
            raise FeedUnreadable(self.document)
        return self.document

    def begin_anew(self) -> None:
        """After a restart, which must go well, too."""
        self.crash()
        self.restart()
        for name in list(self.feeds.register.subscriptions):
            self.turn(lambda now, name=name: self.feeds.register.unsubscribe(name, now))
        self.run_for("1m")

    def visited(self, answer: Fetched, document: ParsedFeed | str, **wishes: bool) -> str:
        """The status of a feed whose site says so, after a minute."""
        self.answer, self.document = answer, document
        self.begin_anew()
        name = self.subscribe(BLOG, "ann", "a", **wishes).name
        self.run_for("1m")
        register = self.feeds.register
        source = register.sources[register.subscriptions[name].source]
        if register.is_wanted(source):
            ((due_at,),) = self.rows(
                "select not_before from jobs where type = 'feeds.refresh' "
                "and state in ('pending', 'queued', 'running')"
            )
            assert due_at < self.now + WEEK_S + 3_600
        self.begin_anew()
        return source.status


@pytest.fixture
def world() -> Iterator[Strange]:
    with Strange() as world:
        assert isinstance(world, Strange)
        yield world


strange = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@strange
@given(answers(list(Kind), anything), documents(anything), st.booleans())
def test_the_schedule_goes_on(
    world: Strange, answer: Fetched, document: ParsedFeed | str, adaptive: bool
) -> None:
    assert world.visited(answer, document, adaptive=adaptive) in ("ok", "error", "gone")


@strange
@given(answers([Kind.FETCHED, Kind.NOT_MODIFIED], storable), documents(storable), st.booleans())
def test_what_can_be_stored_is(
    world: Strange, answer: Fetched, document: ParsedFeed | str, adaptive: bool
) -> None:
    is_read = answer.kind is Kind.NOT_MODIFIED or not isinstance(document, str)
    status = world.visited(answer, document, adaptive=adaptive)
    assert status == "ok" if is_read else status in ("ok", "error")
