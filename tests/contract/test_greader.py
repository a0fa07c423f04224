"""Reader apps sync over the API of Google Reader, in both directions, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx2
import pytest

from headway.apps.feeds.greader.ids import FIRST, entry_of, long_id, short_id
from tests.contract.feeds_kit import Desk, Reader, answers, feeds_desk, signed
from tests.contract.greader_client import (
    ITEM,
    LABEL,
    READ,
    READING_LIST,
    STARRED,
    Account,
    ReaderClient,
    Refused,
)
from tests.contract.kit import JSON, new_name
from tests.hands.kit import eventually
from tests.servers import STORES

ARTICLES = "/api/backend/articles"
numbers = count()


@pytest.fixture(scope="module", params=STORES)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with feeds_desk(request.param) as desk:
        yield desk


@pytest.fixture
def reader(desk: Desk) -> Reader:
    """Somebody with a tenant of their own, at the page."""
    return desk.reader()


@pytest.fixture
def app(desk: Desk, reader: Reader) -> Iterator[ReaderClient]:
    """The same one, with an app."""
    with ReaderClient(f"{desk.server.url}/api/greader") as client:
        client.log_in("anybody", signed(reader.tenant))
        yield client


def subscribe(desk: Desk, reader: Reader, articles: int = 3, **more: Any) -> str:
    """To a feed with so many articles, all of which are there."""
    titles = [f"{number:04}" for number in range(articles)]
    id: str = reader.add(desk.site.page(*titles), **more)["id"]
    eventually(lambda: total(reader, feed=id) == articles)
    return id


def total(reader: Reader, **filters: Any) -> int:
    found: int = reader.get(ARTICLES, size=1, **filters)["total"]
    return found


def post(reader: Reader, feed: str, *titles: str) -> None:
    """Articles that come now."""
    reader.post(ARTICLES, [{"feed_id": feed, "guid": each, "title": each} for each in titles])


def articles(reader: Reader, **filters: Any) -> dict[str, JSON]:
    """By title."""
    found: dict[str, JSON] = {}
    page = reader.get(ARTICLES, size=200, **filters)
    found.update((each["title"], each) for each in page["items"])
    while page["next"]:
        page = reader.get(ARTICLES, size=200, cursor=page["next"], **filters)
        found.update((each["title"], each) for each in page["items"])
    return found


# ---------------------------------------------------------------------- syncing


def test_a_few_hundred_articles_are_synced_both_ways(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    feed = subscribe(desk, reader, 320, folder="Tech/Blogs", title="A blog")
    other = subscribe(desk, reader, 5)
    account = Account(app, page=100)
    account.sync()
    assert len(account.items) == 325
    assert account.unread == set(account.items)
    assert account.starred == set()
    assert account.labels == {"Tech/Blogs"}
    assert account.feeds[f"feed/{feed}"]["title"] == "A blog"
    assert account.feeds[f"feed/{other}"]["title"] == "A site"
    by_title = {item["title"]: id for id, item in account.items.items() if feed in str(item)}

    for title in ("0001", "0002", "0003"):
        account.mark(by_title[title], READ, True)
    account.mark(by_title["0003"], STARRED, True)
    account.sync()
    seen = articles(reader, feed=feed)
    assert [seen[title]["is_read"] for title in ("0001", "0003", "0004")] == [True, True, False]
    assert [seen[title]["is_starred"] for title in ("0001", "0003")] == [False, True]

    reader.ok("PATCH", f"{ARTICLES}/{seen['0001']['id']}", json={"is_read": False})
    reader.ok("PATCH", f"{ARTICLES}/{seen['0009']['id']}", json={"is_starred": True})
    post(reader, feed, "brand new")
    account.sync()
    assert by_title["0001"] in account.unread
    assert by_title["0002"] not in account.unread
    assert account.titles(account.starred) == ["0003", "0009"]
    assert "brand new" in account.titles(account.unread)
    assert len(account.items) == 326
    assert account.fetched == 326  # each of them once


def test_nothing_is_lost_when_articles_come_between_two_pages(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    feed = subscribe(desk, reader, 90)

    def another() -> None:
        post(reader, feed, f"late {next(numbers)}")

    account = Account(app, page=10, after_page=another)
    account.sync()
    assert set(account.titles()) >= {f"{number:04}" for number in range(90)}
    assert len(account.unread) >= 90
    account.after_page = lambda: None
    account.sync()
    assert account.titles() == sorted(articles(reader))
    assert account.unread == set(account.items)


@pytest.mark.parametrize("order", ["n", "o"])
def test_pages_are_the_whole_in_order_without_a_repetition(
    desk: Desk, reader: Reader, app: ReaderClient, order: str
) -> None:
    subscribe(desk, reader, 25)
    whole = app.ids(READING_LIST, r=order)
    assert whole == sorted(whole, key=int, reverse=order == "n")
    assert len(set(whole)) == 25
    assert app.ids(READING_LIST, 10, r=order) == whole
    assert [len(page) for page in app.id_pages(READING_LIST, 5, r=order)] == [5] * 5
    paged = []
    asked: JSON = {"n": 10, "r": order}
    while True:
        page = app.stream(READING_LIST, **asked)
        paged += [str(int(each["id"].removeprefix(ITEM), 16)) for each in page["items"]]
        if "continuation" not in page:
            break
        asked["c"] = page["continuation"]
    assert paged == whole


def test_only_what_came_since_is_asked_for(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    subscribe(desk, reader, 3)
    (first, *_), *_ = list(app.id_pages(READING_LIST))
    now = int(first["timestampUsec"]) / 1e6
    assert len(app.ids(READING_LIST, ot=int(now))) == 3
    assert len(app.ids(READING_LIST, ot=now - 3600.5)) == 3
    assert app.ids(READING_LIST, ot=int(now) + 60) == []
    assert len(app.ids(READING_LIST, nt=int(now))) == 3
    assert app.ids(READING_LIST, nt=int(now) - 60) == []


# ---------------------------------------------------------------------- items and streams


def test_an_item_has_all_that_apps_read(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    feed = subscribe(desk, reader, 0, folder="Tech", title="My title")
    said = {
        "feed_id": feed, "guid": "g", "title": "A <b> & c", "link": "https://blog.example/1",
        "author": "Ann", "content": "<p>All <i>of</i> it</p>", "summary": "Less",
        "published_at": 1_700_000_000, "categories": ["Rust"],
        "enclosures": [{"url": "https://blog.example/1.mp3", "type": "audio/mpeg", "length": 5}],
    }  # fmt: skip
    reader.post(ARTICLES, said)
    (item,) = app.items(app.ids(READING_LIST))
    (ref,) = next(app.id_pages(READING_LIST))
    assert item["id"] == f"{ITEM}{int(ref['id']):016x}"
    assert ref["directStreamIds"] == [f"feed/{feed}"]
    assert item["timestampUsec"] == ref["timestampUsec"]
    assert item["timestampUsec"].startswith(item["crawlTimeMsec"])
    assert item["published"] == 1_700_000_000
    assert item["title"] == "A <b> & c"
    assert item["author"] == "Ann"
    assert item["canonical"] == [{"href": "https://blog.example/1"}]
    assert item["alternate"][0]["href"] == "https://blog.example/1"
    assert item["summary"]["content"] == "<p>All <i>of</i> it</p>"
    assert item["categories"] == [READING_LIST, f"{LABEL}Tech", "Rust"]
    assert item["enclosure"] == [
        {"href": "https://blog.example/1.mp3", "type": "audio/mpeg", "length": 5}
    ]
    assert item["origin"]["streamId"] == f"feed/{feed}"
    assert item["origin"]["title"] == "My title"
    app.edit_tag([item["id"]], add=READ)
    app.edit_tag([item["id"]], add=STARRED)
    (item,) = app.stream(f"feed/{feed}")["items"]
    assert item["categories"] == [READING_LIST, READ, STARRED, f"{LABEL}Tech", "Rust"]


def test_streams_are_feeds_labels_and_marks(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    one = subscribe(desk, reader, 3, folder="A/B")
    two = subscribe(desk, reader, 2, folder="A")
    url = reader.feed(two)["url"]
    ids = {name: app.ids(name) for name in (f"feed/{one}", f"feed/{two}", f"{LABEL}A/B")}
    assert [len(each) for each in ids.values()] == [3, 2, 3]
    assert app.ids(f"feed/{url}") == ids[f"feed/{two}"]
    assert app.ids(f"{LABEL}A") == ids[f"feed/{two}"]
    assert app.ids(f"{LABEL}nobody") == []
    assert app.ids("user/1234/state/com.google/reading-list") == app.ids(READING_LIST)
    assert app.ids("user/-/state/com.google/broadcast") == []
    assert app.stream(f"feed/{one}", n=1)["title"] == "A site"
    with pytest.raises(Refused, match="404: there is no stream"):
        app.stream("nonsense")
    read = ids[f"feed/{one}"][0]
    app.edit_tag([read], add=READ)
    assert app.ids(READ) == [read]
    assert len(app.ids(READING_LIST, xt=READ)) == 4
    assert app.ids(READING_LIST, it=READ) == [read]
    assert len(app.ids("user/-/state/com.google/kept-unread")) == 4
    assert len(app.stream(n=3)["items"]) == 3
    assert [each["id"] for each in app.stream(f"feed/{one}", xt=READ)["items"]] == [
        f"{ITEM}{int(each):016x}" for each in ids[f"feed/{one}"][1:]
    ]
    counts = app.unread_counts()
    assert counts == {
        READING_LIST: 4, f"feed/{one}": 2, f"feed/{two}": 2, f"{LABEL}A/B": 2, f"{LABEL}A": 2,
    }  # fmt: skip


def test_an_id_is_known_in_each_of_its_forms(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    subscribe(desk, reader, 20)
    for decimal in app.ids(READING_LIST):
        number = int(decimal)
        forms = [decimal, f"{ITEM}{number:016x}", f"{number:016x}", f"{number:x}",
                 f"{ITEM}{number:x}", f"{number:016X}"]  # fmt: skip
        assert [each["id"] for each in app.items(forms)] == [f"{ITEM}{number:016x}"]
    assert app.items(["5", "-355401917359550817", f"{ITEM}fb115bd6d34a8e9f"]) == []
    with pytest.raises(Refused, match="400: 'nonsense' is no id"):
        app.items(["nonsense"])


@pytest.mark.parametrize("entry", [1, 9, 10, 16, 255, 999_999, 2**40])
def test_no_form_of_an_id_is_taken_for_another(entry: int) -> None:
    number = FIRST + entry
    for form in (short_id(entry), long_id(entry), f"{number:x}", f"{number:X}", f"{number:016x}"):
        assert entry_of(form) == entry


def test_a_thousand_items_are_asked_for_and_marked_at_once(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    feed = subscribe(desk, reader, 0)
    for start in range(0, 1_000, 100):
        post(reader, feed, *(f"many {number}" for number in range(start, start + 100)))
    ids = app.ids(READING_LIST, 10_000)
    assert len(ids) == 1_000
    assert len(app.items(ids)) == 1_000
    app.edit_tag([f"{ITEM}{int(each):016x}" for each in ids], add=READ)
    assert app.unread_counts() == {READING_LIST: 0}
    assert total(reader, unread=True) == 0


# ---------------------------------------------------------------------- changing


def test_marks_are_set_and_taken_away(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    feed = subscribe(desk, reader, 3)
    ids = app.ids(f"feed/{feed}")
    app.post("edit-tag", i=ids, a=[READ, STARRED])
    assert (total(reader, unread=True), total(reader, starred=True)) == (0, 3)
    app.post("edit-tag", i=ids[:1], r=[READ, STARRED])
    assert (total(reader, unread=True), total(reader, starred=True)) == (1, 2)
    app.edit_tag(ids[1:2], add="user/-/state/com.google/kept-unread")
    assert total(reader, unread=True) == 2
    app.edit_tag(ids, add="user/-/state/com.google/broadcast")
    with pytest.raises(Refused, match="400: an article has no labels"):
        app.post("edit-tag", i=ids, a=[READ, f"{LABEL}x"])
    assert total(reader, unread=True) == 2


def test_all_of_a_stream_is_read_up_to_a_time(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    one = subscribe(desk, reader, 3, folder="A")
    two = subscribe(desk, reader, 2)
    newest = next(app.id_pages(f"feed/{one}"))[0]["timestampUsec"]
    post(reader, one, "later")
    app.mark_all_as_read(f"{LABEL}A", ts=newest)
    assert articles(reader, feed=one, unread=True).keys() == {"later"}
    app.mark_all_as_read(f"feed/{two}")
    assert app.unread_counts() == {READING_LIST: 1, f"feed/{one}": 1, f"{LABEL}A": 1}
    app.mark_all_as_read(READING_LIST)
    assert total(reader, unread=True) == 0


def test_a_time_is_understood_in_any_unit(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    """Some apps send whole seconds, others milli-, micro- or nanoseconds."""
    one, two = subscribe(desk, reader, 2), subscribe(desk, reader, 1)
    ids = app.ids(READING_LIST)
    newest = int(next(app.id_pages(READING_LIST))[0]["timestampUsec"])
    for said in (newest // 10**6, newest // 10**3, newest, newest * 10**3):
        app.mark_all_as_read(f"feed/{one}", ts=said - 60 * 10 ** (len(str(said)) - 10))
        assert total(reader, unread=True) == 3
        app.post("mark-all-as-read", s=[f"feed/{one}", f"feed/{two}"], ts=said)
        assert total(reader, unread=True) == 0
        app.edit_tag(ids, remove=READ)
        assert app.ids(READING_LIST, ot=said) == app.ids(READING_LIST, nt=said) == ids


def test_what_is_unread_has_more_than_one_name(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    subscribe(desk, reader, 2)
    read, unread = app.ids(READING_LIST)
    app.edit_tag([read], add=READ)
    for name in ("unread", "kept-unread"):
        state = f"user/-/state/com.google/{name}"
        assert app.ids(state) == app.ids(READING_LIST, it=state) == [unread]
        assert app.ids(READING_LIST, xt=state) == [read]


def test_feeds_are_added_changed_and_removed(desk: Desk, reader: Reader, app: ReaderClient) -> None:
    page = desk.site.page("one", "two")
    app.subscribe(page.url, title="Täglich & mehr", label="News/好")
    (feed,) = app.subscriptions()
    assert feed["title"] == "Täglich & mehr"
    assert feed["categories"] == [{"id": f"{LABEL}News/好", "label": "News/好"}]
    assert feed["url"] == page.url
    eventually(lambda: app.unread_counts().get(feed["id"]) == 2)
    app.subscribe(page.url)  # again: nothing happens
    app.edit(feed["id"], title="Other", into="B")
    (shown,) = reader.feeds()
    assert (shown["title"], shown["folder"]) == ("Other", "B")
    app.edit(feed["id"], out_of="News/好")  # where it is not
    assert reader.feeds()[0]["folder"] == "B"
    app.edit(f"feed/{page.url}", out_of="B")
    assert app.subscriptions()[0]["categories"] == []
    app.unsubscribe(feed["id"])
    assert app.subscriptions() == reader.feeds() == []
    assert app.ids(READING_LIST) == []
    for action in ("edit", "unsubscribe", "subscribe"):
        with pytest.raises(Refused, match="404: you have no feed"):
            app.post("subscription/edit", ac=action, s="feed/never-was")
    with pytest.raises(Refused, match="400: ac is"):
        app.post("subscription/edit", ac="eat", s=feed["id"])


def test_what_cannot_all_be_done_is_not_begun(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    feed = subscribe(desk, reader, 1)
    with pytest.raises(Refused, match="404"):
        app.post("subscription/edit", ac="unsubscribe", s=[f"feed/{feed}", "feed/never-was"])
    with pytest.raises(Refused, match="400"):
        app.post("subscription/edit", ac="subscribe", t="New",
                 s=[f"feed/{feed}", "feed/http://10.0.0.1/internal"])  # fmt: skip
    (kept,) = app.subscriptions()
    assert (kept["id"], kept["title"]) == (f"feed/{feed}", "A site")


def test_a_page_that_names_a_feed_is_enough(desk: Desk, app: ReaderClient) -> None:
    feed, page = desk.site.page("one"), desk.site.page(path="/")
    html = f'<html><link rel="alternate" type="application/rss+xml" href="{feed.url}"></html>'
    page.says = answers(html.encode(), Content_Type="text/html")
    added = app.quick_add(page.url)
    assert added["numResults"] == 1
    assert [each["id"] for each in app.subscriptions()] == [added["streamId"]]
    assert app.quick_add(feed.url)["streamId"] == added["streamId"]
    other = desk.site.page("two", path="/feed?a=1&b=2")
    said = app.send_form("subscription/quickadd", f"quickadd={other.url}", quickadd=other.url)
    assert said.json()["query"] == other.url  # what is in the address alone would end at the &
    nothing = app.quick_add(desk.site.host())
    assert nothing["numResults"] == 0
    assert "404" in nothing["error"]


def test_labels_are_renamed_and_removed_and_rules_follow(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    one = subscribe(desk, reader, 0, folder="News")
    two = subscribe(desk, reader, 0, folder="News/World")
    rule = reader.post("/api/backend/rules",
                       {"name": "x", "actions": ["read"], "folders": ["News"]}, 201)  # fmt: skip
    app.rename_label("News", "Press & more")
    assert app.labels() == {"Press & more", "Press & more/World"}
    assert reader.get(f"/api/backend/rules/{rule['id']}")["folders"] == ["Press & more"]
    app.drop_label("Press & more")
    assert (reader.feed(one)["folder"], reader.feed(two)["folder"]) == ("", "Press & more/World")
    with pytest.raises(Refused, match="404: no feed of yours has the label 'News'"):
        app.rename_label("News", "x")


def test_a_folder_is_removed_after_its_feeds_were_taken_out(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    """As NetNewsWire does it: by then there is no such label any more."""
    feed = subscribe(desk, reader, 0, folder="👩‍💻 Dev")
    (label,) = app.labels()
    app.edit(f"feed/{feed}", out_of=label)
    app.drop_label(label)
    assert app.labels() == set()
    app.edit(f"feed/{feed}", into=label)
    assert reader.feed(feed)["folder"] == label == "👩‍💻 Dev"


def test_a_list_of_feeds_goes_in_and_comes_out(desk: Desk, app: ReaderClient) -> None:
    urls = [desk.site.page("one").url for _ in range(3)]
    outlines = "".join(f'<outline text="n" xmlUrl="{url}"/>' for url in urls)
    document = f"<opml><body><outline text='Folder'>{outlines}</outline></body></opml>"
    assert app.import_opml(document.encode()) == "OK: 3"
    eventually(lambda: len(app.subscriptions()) == 3)
    assert app.labels() == {"Folder"}
    assert all(url in app.opml() for url in urls)
    with pytest.raises(Refused, match="400: This is no OPML"):
        app.import_opml(b"<html/>")


# ---------------------------------------------------------------------- who is asking


def test_a_tenant_syncs_its_own_and_nothing_else(
    desk: Desk, reader: Reader, app: ReaderClient
) -> None:
    feed = subscribe(desk, reader, 3, folder="Mine")
    ids = app.ids(READING_LIST)
    with ReaderClient(f"{desk.server.url}/api/greader") as other:
        other.log_in("", signed(new_name("tenant")))
        assert other.subscriptions() == []
        assert other.labels() == set()
        assert (
            other.ids(READING_LIST) == other.ids(f"feed/{feed}") == other.ids(f"{LABEL}Mine") == []
        )
        assert other.items(ids) == []
        other.edit_tag(ids, add=READ)
        other.mark_all_as_read(READING_LIST)
        other.mark_all_as_read(f"feed/{feed}")
        with pytest.raises(Refused, match="404"):
            other.unsubscribe(f"feed/{feed}")
        with pytest.raises(Refused, match="404"):
            other.rename_label("Mine", "Theirs")
        assert other.user()["userId"] != app.user()["userId"] == reader.tenant
    assert app.unread_counts()[READING_LIST] == 3


def test_a_token_is_the_password_and_never_in_the_log(desk: Desk) -> None:
    made = desk.admin().post(
        "/api/tokens", {"name": new_name(), "scopes": ["read", "submit"], "tenant": "ann"}, 201
    )
    with ReaderClient(f"{desk.server.url}/api/greader") as app:
        app.log_in("ann@example.org", made["token"])
        assert app.user()["userName"] == "ann"
        query = {"Email": "x", "Passwd": made["token"]}
        text = app.send("GET", "/accounts/ClientLogin", params=query).text
        assert text.splitlines()[2] == f"Auth={made['token']}"
        wrong = made["token"][:-3] + "abc"
        for password in ("", "guessed", wrong):
            with pytest.raises(Refused) as refused:
                app.log_in("ann", password)
            assert (refused.value.status, refused.value.text) == (401, "Error=BadAuthentication\n")
    secret = made["token"][-20:]  # its parts may have an underscore, too
    assert secret not in desk.server.printed()


def test_reading_needs_read_and_changing_submit(desk: Desk, reader: Reader) -> None:
    feed = subscribe(desk, reader, 1)
    server = f"{desk.server.url}/api/greader"
    with ReaderClient(server) as app:
        app.log_in("", signed(reader.tenant, "read"))
        (id,) = app.ids(READING_LIST)
        for change in (
            lambda: app.edit_tag([id], add=READ),
            lambda: app.mark_all_as_read(READING_LIST),
            lambda: app.unsubscribe(f"feed/{feed}"),
            lambda: app.quick_add("https://blog.example/"),
        ):
            with pytest.raises(Refused, match="403: this needs a token with the scope 'submit'"):
                change()
        with pytest.raises(Refused, match="401"):
            app.log_in("", signed(reader.tenant, "submit"))
    url = f"{server}/reader/api/0/user-info"
    bearer = {"Authorization": f"Bearer {signed(reader.tenant)}"}
    assert httpx2.get(url, headers=bearer, verify=False).json()["userId"] == reader.tenant
    for header in ("", "GoogleLogin", "GoogleLogin auth=", "GoogleLogin auth=x", "GoogleLogin x=y"):
        answer = httpx2.get(url, headers={"Authorization": header} if header else {}, verify=False)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(("path", "params", "why"), [
    ("stream/items/ids", {"n": "many"}, "n is a number"),
    ("stream/items/ids", {"s": "nonsense"}, "is no stream"),
    ("stream/items/ids", {"xt": "user/-/label/"}, "is no stream"),
    ("stream/items/ids", {"c": "?"}, "leave it out"),
    ("stream/items/ids", {"c": "abc"}, "leave it out"),
    ("stream/items/ids", {"c": "-1", "r": "o"}, "leave it out"),
    ("stream/items/ids", {"s": "feed/\x00"}, "NUL"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_in_plain_text(
    app: ReaderClient, path: str, params: JSON, why: str
) -> None:
    with pytest.raises(Refused, match=why) as refused:
        app.get(path, **params)
    assert refused.value.status == 400
