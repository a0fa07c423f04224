"""Articles of tenants: lists, marks, and what a refresh or a client that posts may not change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from headway.apps.feeds.articles import (
    Article,
    Order,
    Place,
    Wanted,
    counted,
    drop_read,
    listed,
    mark_read,
    mark_some,
    one,
    stats,
)
from headway.apps.feeds.marking import Marks
from headway.apps.feeds.posting import Posted, Poster, Posting
from headway.apps.feeds.rules import Condition, Rule
from headway.apps.feeds.tables import ADD_ARTICLE, ADD_ENTRY
from headway.store.tables import Write
from tests.feeds.feeds_world import FeedsWorld, Site, dated, entry
from tests.stores import second_store_in_the_soak

BLOG = "https://blog.example/feed"
NEWS = "https://news.example/feed"
DAY = 86_400.0

pytestmark = pytest.mark.usefixtures("worlds")


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[BLOG] = Site([entry(1), entry(2), entry(3)])
        yield world


def have(
    world: FeedsWorld, tenant: str = "ann", order: Order = "newest", **wanted: Any
) -> list[Article]:
    return listed(world.app.store, tenant, Wanted(**wanted), order, size=1_000)


def ids(world: FeedsWorld, tenant: str = "ann", **wanted: Any) -> list[int]:
    return [each.id for each in have(world, tenant, **wanted)]


def titles(found: Sequence[Article]) -> list[str | None]:
    return [each.title for each in found]


def post(world: FeedsWorld, feed: str, *postings: Posting, tenant: str = "ann") -> Posted:
    feeds = world.feeds
    poster = Poster(
        feeds.store, feeds.register.subscriptions[tenant, feed], feeds.rules.get(tenant, ()),
        feeds.settings.keep_days,
    )  # fmt: skip
    return poster.post(postings, world.now)


def posted(number: int, *, is_read: bool = False, is_starred: bool = False, **more: Any) -> Posting:
    return Posting(entry(number, **more), is_read, is_starred)


# ---------------------------------------------------------------------- lists


@second_store_in_the_soak
def test_the_newest_comes_first_and_undated_ones_keep_their_place(world: FeedsWorld) -> None:
    start = world.now
    world.web.sites[BLOG].entries = [
        entry(1), entry(2, published=dated(start - DAY)), entry(3, published=dated(start + DAY)),
        entry(4, published=dated(-1e9)),
    ]  # fmt: skip
    world.subscribe(BLOG)
    world.run_for("10s")
    before = have(world)
    assert titles(before)[2:] == ["Article 2", "Article 4"]
    assert all(each.at <= world.now for each in before)  # also what says that it is from tomorrow
    assert before[-1].published_at == -1e9
    world.web.sites[BLOG].entries[0] = entry(1, content="<p>Other</p>")  # which has no date
    world.run_for("1d")
    assert [(each.id, each.at) for each in have(world)] == [(each.id, each.at) for each in before]
    world.web.sites[BLOG].entries.append(entry(5))
    world.run_for("1h")
    assert titles(have(world))[0] == "Article 5"


@second_store_in_the_soak
@pytest.mark.parametrize("order", ["newest", "oldest", "arrived"])
def test_pages_and_cursors_lead_through_the_same_list(world: FeedsWorld, order: Order) -> None:
    start = world.now
    world.web.sites[BLOG].entries = [  # many of the same moment, and some without
        entry(number, published=dated(start - number // 7 * 3_600) if number % 3 else None)
        for number in range(50)
    ]
    world.subscribe(BLOG)
    world.run_for("10s")
    store = world.app.store
    whole = have(world, order=order)
    assert len(whole) == 50
    paged = [listed(store, "ann", Wanted(), order, size=7, offset=7 * page) for page in range(8)]
    assert [each for page in paged for each in page] == whole
    after: Place | None = None
    followed: list[Article] = []
    while page := listed(store, "ann", Wanted(), order, size=7, after=after):
        followed += page
        after = Place(page[-1].at, page[-1].id)
    assert followed == whole


def test_filters_combine(world: FeedsWorld) -> None:
    world.web.sites[NEWS] = Site([entry(number) for number in range(4, 8)])
    world.subscribe(BLOG, id="blog", folder="Tech/Blogs")
    world.subscribe(NEWS, id="news", folder="Techno")
    world.run_for("1m")
    store = world.app.store
    assert len(ids(world)) == 7
    assert len(ids(world, feed="blog")) == 3
    assert len(ids(world, folder="Tech")) == 3
    assert len(ids(world, folder="Tech/Blogs")) == 3
    assert len(ids(world, folder="Techno")) == 4
    assert ids(world, folder="Tec") == ids(world, feed="nobody's") == []
    first, second, *rest = sorted(ids(world, feed="blog"))
    mark_some(store, "ann", [first], Marks(is_read=True), world.now)
    mark_some(store, "ann", [first, second], Marks(is_starred=True), world.now)
    assert sorted(ids(world, unread=False)) == [first]
    assert len(ids(world, unread=True)) == 6
    assert ids(world, starred=True, unread=True) == [second]
    assert sorted(ids(world, starred=False, feed="blog")) == rest
    assert ids(world, search="article 1", starred=False) == rest
    everything = sorted(ids(world))
    assert sorted(ids(world, since_id=everything[4])) == everything[5:]
    assert sorted(ids(world, before_id=everything[4])) == everything[:5]
    assert counted(store, "ann", Wanted(since_id=everything[1], before_id=everything[3])) == 2
    assert ids(world, before_at=world.now - 1e6) == []


def test_nobody_sees_the_articles_of_others(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "ann", "blog")
    world.subscribe(BLOG, "bob", "blog")
    world.run_for("10s")
    store = world.app.store
    anns, bobs = ids(world, "ann"), ids(world, "bob")
    assert len(anns) == len(bobs) == 3
    assert not {*anns} & {*bobs}
    assert one(store, "ann", bobs[0]) is None
    assert mark_some(store, "ann", bobs, Marks(is_read=True), world.now) == (0, 0, 3)
    assert mark_read(store, "ann", Wanted(), world.now) == 3
    assert counted(store, "bob", Wanted(unread=True)) == 3
    assert drop_read(store, world.now + 1, "bob") == 0
    assert drop_read(store, world.now + 1, "ann") == 3
    assert ids(world, "bob") == bobs
    assert stats(store, "ann", 0.0) == {}


# ---------------------------------------------------------------------- marks


@second_store_in_the_soak
def test_a_mark_that_is_there_already_changes_nothing(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    store = world.app.store
    number = ids(world)[0]
    came_at = have(world)[0].changed_at
    assert mark_some(store, "ann", [number, number, 999], Marks(is_read=False), world.now) == (
        0,
        1,
        1,
    )
    assert have(world)[0].changed_at == came_at
    world.run_for("1h")
    at = world.now
    assert mark_some(store, "ann", [number], Marks(True, None), at) == (1, 0, 0)
    marked = have(world)[0]
    assert (marked.is_read, marked.is_starred, marked.changed_at) == (1, 0, at)
    world.run_for("1h")
    assert mark_some(store, "ann", [number], Marks(True, None), world.now) == (0, 1, 0)
    assert have(world)[0].changed_at == at


def test_what_came_after_the_reader_looked_stays_unread(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    looked_at, newest = world.now, max(ids(world))
    # It says that it is old, but it comes now.
    world.web.sites[BLOG].entries.append(entry(9, published=dated(looked_at - 30 * DAY)))
    world.run_for("1h")
    store = world.app.store
    assert mark_read(store, "ann", Wanted(before_at=looked_at), world.now) == 3
    assert titles(have(world, unread=True)) == ["Article 9"]
    mark_some(store, "ann", ids(world), Marks(is_read=False), world.now)
    assert mark_read(store, "ann", Wanted(before_id=newest), world.now) == 3
    assert titles(have(world, unread=True)) == ["Article 9"]
    assert mark_read(store, "ann", Wanted(), world.now) == 1
    assert mark_read(store, "ann", Wanted(), world.now) == 0


@second_store_in_the_soak
def test_lesson_21_saving_articles_again_never_touches_their_marks(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    store = world.app.store
    first, second, _ = ids(world)
    mark_some(store, "ann", [first], Marks(is_read=True), world.now)
    mark_some(store, "ann", [second], Marks(is_starred=True), world.now)
    before = [each._replace(beginning=None) for each in have(world)]
    site = world.web.sites[BLOG]
    for hour in range(6):  # the text changes, the links do, the order does; the guids do not
        site.entries = [
            entry(
                number,
                content=f"<p>Edition {hour}</p>",
                link=f"https://blog.example/{hour}/{number}",
            )
            for number in (3, 1, 2)
        ]
        world.run_for("1h")
        world.force(BLOG)
        world.run_for("10s")
        post(world, BLOG, posted(1), posted(2, is_read=True), posted(3, content="<p>Posted</p>"))
    after = have(world)
    assert [each.beginning for each in after] == ["<p>Edition 5</p>"] * 3
    assert [each._replace(beginning=None, link=None) for each in after] == [
        each._replace(link=None) for each in before
    ]
    assert world.rows("select count(*) from feed_articles") == [(3,)]


def test_counting_by_feed(world: FeedsWorld) -> None:
    world.web.sites[NEWS] = Site([entry(4), entry(5, published=dated(world.now - 3 * DAY))])
    world.subscribe(BLOG, id="blog")
    world.subscribe(NEWS, id="news")
    world.run_for("1m")
    store = world.app.store
    mark_some(store, "ann", ids(world, feed="blog")[:2], Marks(True, True), world.now)
    midnight = world.now // DAY * DAY
    assert {feed: tuple(each) for feed, each in stats(store, "ann", midnight).items()} == {
        "blog": (3, 1, 2, 3), "news": (2, 2, 0, 1),
    }  # fmt: skip


# ---------------------------------------------------------------------- posting


def test_what_is_posted_is_the_tenants_own(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "ann", "blog")
    world.subscribe(BLOG, "bob", "blog")
    world.run_for("10s")
    assert post(world, "blog", posted(7, is_starred=True), posted(8)) == (2, 0, 0, 0)
    assert titles(have(world))[:2] == ["Article 8", "Article 7"]
    assert titles(have(world, starred=True)) == ["Article 7"]
    assert len(ids(world, "bob")) == 3
    assert counted(world.app.store, "bob", Wanted(search="7")) == 0
    world.subscribe(BLOG, "cat", "blog")
    world.run_for("10s")
    assert len(ids(world, "cat")) == 3


@second_store_in_the_soak
def test_whoever_has_no_tenant_shares_nothing_by_posting(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "", "blog")
    world.subscribe(BLOG, "bob", "blog")
    world.run_for("10s")
    assert post(world, "blog", posted(7), posted(1, title="Changed"), tenant="").saved == 1
    world.subscribe(BLOG, "cat", "blog")
    world.run_for("1h")
    assert len(ids(world, "")) == 4
    assert len(ids(world, "bob")) == len(ids(world, "cat")) == 3
    assert "Changed" not in titles(have(world, "bob"))


@second_store_in_the_soak
def test_posting_again_changes_the_text_and_never_the_marks(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    post(world, BLOG, posted(7))
    number = ids(world)[0]
    mark_some(world.app.store, "ann", [number], Marks(True, True), world.now)
    before = one(world.app.store, "ann", number)
    assert before is not None
    world.run_for("1h")
    assert post(world, BLOG, posted(7)) == (0, 0, 1, 0)
    assert post(world, BLOG, posted(7, content="<p>Other</p>")) == (0, 1, 0, 0)
    assert one(world.app.store, "ann", number) == before._replace(
        content="<p>Other</p>", beginning="<p>Other</p>"
    )
    assert ids(world, search="other") == [number]


@second_store_in_the_soak
def test_what_the_site_says_goes_before_what_is_posted(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "ann", "blog")
    world.subscribe(BLOG, "bob", "blog")
    world.run_for("10s")
    forged = posted(1, title="Forged", content="<p>Forged</p>", is_read=True)
    assert post(world, "blog", forged) == (0, 0, 1, 0)
    assert (
        titles(have(world, search="1")) == titles(have(world, "bob", search="1")) == ["Article 1"]
    )
    assert ids(world, unread=False) == []


@second_store_in_the_soak
def test_the_same_identity_twice_is_one_article(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    linked = {"guid": None, "link": "https://blog.example/x?utm_source=a"}
    again = {"guid": None, "link": "http://blog.example/x"}
    assert post(world, BLOG, posted(7, **linked), posted(8, **again)) == (1, 0, 1, 0)
    assert post(world, BLOG, posted(7, **again)).saved == 0


def test_when_the_site_publishes_what_was_posted_the_marks_stay(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "ann", "blog")
    world.subscribe(BLOG, "bob", "blog")
    world.run_for("10s")
    post(world, "blog", posted(7), posted(8))
    seventh = ids(world, search="7")[0]
    mark_some(world.app.store, "ann", [seventh], Marks(True, True), world.now)
    world.web.sites[BLOG].entries += [entry(7, title="By the site")]
    world.run_for("1h")
    published = one(world.app.store, "ann", seventh)
    assert published is not None
    assert (published.title, published.is_read, published.is_starred) == ("By the site", 1, 1)
    assert len(ids(world)) == 5
    assert titles(have(world, "bob", unread=True))[0] == "By the site"
    assert post(world, "blog", posted(7)) == (0, 0, 1, 0)
    assert len(ids(world)) == 5


@second_store_in_the_soak
def test_rules_hold_for_what_is_posted(world: FeedsWorld) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    rules: Any = world.feeds.rules
    rules["ann"] = (
        Rule("no ads", ("drop",), (Condition("advert"),)),
        Rule("read", ("read", "star"), (Condition("weekly"),)),
    )
    advert, weekly = posted(7, title="An advert"), posted(8, title="Weekly")
    assert post(world, BLOG, advert, weekly) == (1, 0, 0, 1)
    assert post(world, BLOG, advert, weekly) == (0, 0, 1, 1)
    assert titles(have(world, unread=False, starred=True)) == ["Weekly"]


@second_store_in_the_soak
def test_what_was_deleted_does_not_come_back_by_being_posted_or_refreshed(
    world: FeedsWorld,
) -> None:
    world.subscribe(BLOG)
    world.run_for("10s")
    post(world, BLOG, posted(7))
    store = world.app.store
    mark_read(store, "ann", Wanted(), world.now)
    assert drop_read(store, world.now + 1, "ann") == 4
    world.web.sites[BLOG].entries[0] = entry(1, content="<p>Other</p>")
    world.run_for("2h")
    assert post(world, BLOG, posted(1), posted(7)) == (0, 0, 2, 0)
    assert ids(world) == []
    world.web.sites[BLOG].entries.append(entry(4))
    world.run_for("2h")
    assert titles(have(world)) == ["Article 4"]


@second_store_in_the_soak
def test_whoever_subscribes_anew_may_post_anew(world: FeedsWorld) -> None:
    world.subscribe(BLOG, "bob")
    feed = world.subscribe(BLOG)
    world.run_for("10s")
    post(world, BLOG, posted(7))
    world.turn(lambda now: world.feeds.register.unsubscribe(feed.name, now))
    world.run_for("1h")
    world.subscribe(BLOG)
    world.run_for("1h")
    assert len(ids(world)) == 3
    assert post(world, BLOG, posted(7), posted(1)) == (1, 0, 1, 0)
    assert len(ids(world)) == 4


def test_a_feed_that_is_paused_has_what_its_client_posts(world: FeedsWorld) -> None:
    """Also what the site has told others meanwhile."""
    world.subscribe(BLOG, "bob", "blog")
    feed = world.subscribe(BLOG, "ann", "blog")
    world.run_for("10s")
    world.turn(lambda now: world.feeds.register.change(feed.name, now, paused=1))
    world.web.sites[BLOG].entries.append(entry(4, title="By the site"))
    world.run_for("1h")
    assert len(ids(world)) == 3
    assert post(world, "blog", posted(4), posted(5)) == (2, 0, 0, 0)
    assert titles(have(world))[:2] == ["Article 5", "By the site"]
    assert post(world, "blog", posted(4), posted(5)) == (0, 0, 2, 0)


@second_store_in_the_soak
def test_posting_while_the_site_is_read_gives_one_article(world: FeedsWorld) -> None:
    """Its own, the site's, and an end that finds both."""
    world.subscribe(BLOG)
    world.run_for("10s")
    post(world, BLOG, posted(7))
    world.web.sites[BLOG].entries.append(entry(7))
    refresher = world.feeds.refresher
    keep = refresher._keep

    def keep_and_post(*args: Any) -> Any:
        visit = keep(*args)
        assert post(world, BLOG, posted(7)) == (0, 0, 1, 0)
        return visit

    refresher._keep = keep_and_post  # type: ignore[method-assign]
    world.run_for("1h")
    assert len(ids(world)) == 4
    assert len(ids(world, search="7")) == 1


# ---------------------------------------------------------------------- many, and strange ones


@second_store_in_the_soak
def test_strange_articles_are_kept_as_they_are(world: FeedsWorld) -> None:
    world.web.sites[BLOG].entries = [
        entry(1, title="x" * 1_000, content="y" * 400_000),
        entry(2, title=None, link=None, content=None),
        entry(3, title="\ufeff\u202e", content="<p>\U0001f600</p>", published=dated(-6.2e10)),
    ]  # fmt: skip
    world.subscribe(BLOG)
    world.run_for("10s")
    found = have(world)
    assert len(found) == 3
    assert found[-1].published_at == -6.2e10
    assert {each.beginning and len(each.beginning) for each in found} == {4_000, None, 8}
    bare = next(each for each in found if each.title is None)
    assert (bare.link, bare.content, bare.author) == (None, None, None)


def fill(world: FeedsWorld, many: int, tenant: str, feed: str, source: int) -> None:
    """As many articles as this, written without a site."""
    store = world.app.store
    known = [*(None,) * 4, 0.0, 0.0, 1.0, 1.0, "-", "[]", "[]", 1]
    for start in range(0, many, 10_000):
        names = [str(number) for number in range(start, min(many, start + 10_000))]
        store.write([(ADD_ARTICLE, [(source, "", name, name, *known) for name in names])])
        found = store.rows(
            "select id, identity from feed_articles where source = ? "
            "and id > (select coalesce(max(article), 0) from feed_entries)",
            (source,),
        )
        rows = [(tenant, feed, id, float(name), 1.0, 1, 0, 1.0) for id, name in found]
        store.write([(ADD_ENTRY, rows)])


def test_ten_thousand_articles_of_one_feed(world: FeedsWorld) -> None:
    world.subscribe(BLOG, id="blog")
    world.run_for("10s")
    fill(world, 10_000, "ann", "blog", 5)
    store = world.app.store
    assert counted(store, "ann", Wanted()) == 10_003
    assert [each.at for each in listed(store, "ann", Wanted(), "oldest", size=3, offset=9_990)] == [
        9_990.0, 9_991.0, 9_992.0,
    ]  # fmt: skip
    assert mark_read(store, "ann", Wanted(feed="blog"), world.now) == 3
    mark_some(store, "ann", ids(world), Marks(is_read=False), world.now)
    assert mark_read(store, "ann", Wanted(feed="blog"), world.now) == 1_000
    assert drop_read(store, world.now + 1, "ann") == 10_003


# PostgreSQL does so by itself from time to time; SQLite never does.
ANALYZE = Write(sqlite="select ?1", postgres="analyze feed_entries -- $1")
PLANS = {
    "newest": (Wanted(), "feed_entries_by_time"),
    "feed": (Wanted(feed="blog"), "feed_entries_of_feed"),
    "unread": (Wanted(unread=True), "feed_entries_unread"),
    "starred": (Wanted(starred=True), "feed_entries_starred"),
}


@pytest.mark.parametrize("name", PLANS)
def test_lists_are_read_from_an_index(
    world: FeedsWorld, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not sorted, whatever is in them."""
    wanted, index = PLANS[name]
    fill(world, 2_000, "ann", "other", 4)
    fill(world, 500, "ann", "blog", 5)
    store = world.app.store
    newest = ids(world)
    mark_some(store, "ann", newest[:20], Marks(is_read=False, is_starred=True), world.now)
    store.write([(ANALYZE, [()])])
    asked: list[tuple[str, Any]] = []
    rows = type(store).rows

    def listen(self: Any, query: str, values: Sequence[Any] = ()) -> Any:
        asked.append((query, values))
        return rows(self, query, values)

    monkeypatch.setattr(type(store), "rows", listen)
    listed(store, "ann", wanted, "newest", size=5)
    query, values = asked[0]
    explain = "explain query plan" if store.dialect == "sqlite" else "explain"
    said = "\n".join(str(row[-1]) for row in store.rows(f"{explain} {query}", values))
    assert index in said, said
    inner = said.splitlines()[:3] if store.dialect == "sqlite" else []
    assert not any("TEMP B-TREE" in line for line in inner), said
