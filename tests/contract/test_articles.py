"""Articles over HTTP: lists, search, marks, posting, and the way to the archive."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.feeds_kit import Desk, Page, Reader, answers, feeds_desk
from tests.contract.kit import JSON, Worker
from tests.feeds.documents import item, rss
from tests.hands.kit import eventually

ARTICLES = "/api/backend/articles"


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with feeds_desk(request.param) as made:
        yield made


@pytest.fixture
def ann(desk: Desk) -> Reader:
    return desk.reader()


def subscribed(desk: Desk, reader: Reader, *titles: str, **more: Any) -> str:
    """A feed with these articles, all of which are there."""
    return read(reader, desk.site.page(*titles), len(titles), **more)


def read(reader: Reader, page: Page, many: int, **more: Any) -> str:
    id: str = reader.add(page, **more)["id"]
    eventually(lambda: reader.get(ARTICLES, feed=id)["total"] == many)
    return id


def listed(reader: Reader, **wanted: Any) -> list[JSON]:
    found: list[JSON] = reader.get(ARTICLES, **wanted)["items"]
    return found


def titles(reader: Reader, **wanted: Any) -> list[str]:
    return sorted(each["title"] for each in listed(reader, **wanted))


def mark(reader: Reader, id: int, **marks: bool) -> JSON:
    return reader.ok("PATCH", f"{ARTICLES}/{id}", json=marks)


# ---------------------------------------------------------------------- reading


def test_an_article_has_all_that_its_feed_says(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("x")
    page.says = answers(rss(item(
        "<guid>1</guid><title>A &lt;b&gt;bold&lt;/b&gt; title</title>"
        "<link>https://blog.example/1</link><author>me@blog.example (Mia)</author>"
        "<pubDate>Mon, 05 Jan 2026 10:00:00 +0100</pubDate><category>News</category>"
        "<description>&lt;p onclick='x()'&gt;Hello&lt;script&gt;x&lt;/script&gt; you&lt;/p&gt;"
        "</description><enclosure url='https://blog.example/1.mp4' type='video/mp4' length='9'/>"
    )).encode())  # fmt: skip
    feed = read(ann, page, 1)
    (shown,) = listed(ann, feed=feed)
    assert shown["feed_id"] == feed
    assert shown["link"] == shown["url"] == "https://blog.example/1"
    assert shown["published_at"] == shown["at"] == "2026-01-05T09:00:00.000000Z"
    assert shown["enclosures"] == [
        {"url": "https://blog.example/1.mp4", "type": "video/mp4", "length": 9}
    ]
    assert (shown["summary"], shown["content"]) == ("Hello you", None)
    assert (shown["is_read"], shown["is_starred"], shown["categories"]) == (False, False, ["News"])
    whole = ann.get(f"{ARTICLES}/{shown['id']}")
    assert whole == {**shown, "content": "<p>Hello you</p>"}
    assert listed(ann, feed=feed, content=True) == [whole]


def test_lists_are_paged_and_filtered(desk: Desk, ann: Reader) -> None:
    blog = subscribed(desk, ann, "One", "Two", "Three", folder="Tech/Blogs")
    news = subscribed(desk, ann, "Four", "Zwölf", folder="World")
    first = ann.get(ARTICLES, size=2)
    assert (first["count"], first["total"], first["page"], first["size"]) == (2, 5, 1, 2)
    second = ann.get(ARTICLES, size=2, page=2)
    assert ann.get(ARTICLES, size=2, cursor=first["next"])["items"] == second["items"]
    last = ann.get(ARTICLES, size=2, cursor=second["next"])
    assert (last["count"], last["next"]) == (1, None)
    numbers = [each["id"] for page in (first, second, last) for each in page["items"]]
    assert len({*numbers}) == 5
    assert [each["id"] for each in listed(ann, order="oldest")] == numbers[::-1]
    assert titles(ann, folder="Tech") == titles(ann, folder=" Tech/") == ["One", "Three", "Two"]
    assert titles(ann, folder="") == []
    assert titles(ann, q="zwolf") == titles(ann, q='"all about ZWÖLF" -one') == ["Zwölf"]
    assert titles(ann, q="abou* -t*", feed=blog) == ["One"]
    number = min(numbers)
    mark(ann, number, is_read=True)
    assert len(listed(ann, unread=True)) == 4
    assert [each["id"] for each in listed(ann, unread=False)] == [number]
    assert [each["id"] for each in listed(ann, since_id=number, order="arrived")] == sorted(
        numbers
    )[1:]
    assert [each["id"] for each in listed(ann, before=str(number))] == [number]
    assert ann.get(ARTICLES, before="2020-01-01T00:00:00Z")["total"] == 0
    assert ann.get(ARTICLES, feed="nobody's")["total"] == 0
    stats = ann.get(f"{ARTICLES}/stats")
    by_feed = {each["feed_id"]: each["unread"] for each in stats.pop("by_feed")}
    assert stats == {"total": 5, "unread": 4, "starred": 0, "today": 5}
    assert by_feed == {blog: 2, news: 2}


@pytest.mark.parametrize("wrong", [
    {"before": "yesterday"}, {"before": "0"}, {"before": "9" * 30}, {"cursor": "x"},
    {"cursor": "nan_1"}, {"cursor": "1.0_-3"}, {"order": "random"}, {"size": 0}, {"size": 201},
    {"unread": "perhaps"}, {"since_id": -1}, {"q": "x" * 1_001},
])  # fmt: skip
def test_a_question_that_cannot_be_read_is_refused(ann: Reader, wrong: JSON) -> None:
    ann.problem(422, "GET", ARTICLES, "wrong-input", params=wrong)


@pytest.mark.parametrize(
    "search", ['"', "a AND (", "NEAR(", "*", "-", "''", "a:*", "\\", "%", "<->"]
)
def test_no_search_is_refused(ann: Reader, search: str) -> None:
    assert ann.get(ARTICLES, q=search)["total"] == 0


# ---------------------------------------------------------------------- marking


def test_marks_of_one_and_of_many(desk: Desk, ann: Reader) -> None:
    subscribed(desk, ann, "One", "Two", "Three")
    one, two, three = (each["id"] for each in listed(ann))
    before = ann.get(f"{ARTICLES}/{one}")["changed_at"]
    marked = mark(ann, one, is_starred=True)
    assert (marked["is_read"], marked["is_starred"]) == (False, True)
    assert marked["changed_at"] > before
    assert mark(ann, one, is_starred=True) == marked
    said = {"ids": [one, two, two, 10**15], "is_read": True}
    assert ann.ok("PATCH", ARTICLES, json=said) == {"changed": 2, "unchanged": 0, "not_found": 1}
    assert ann.ok("PATCH", ARTICLES, json=said) == {"changed": 0, "unchanged": 2, "not_found": 1}
    assert [each["id"] for each in listed(ann, unread=True)] == [three]
    many = {"ids": list(range(1, 1_002)), "is_read": True}
    for wrong in ({}, {"is_read": "yes"}, {"read": True}, {"is_read": None}):
        ann.problem(422, "PATCH", f"{ARTICLES}/{one}", json=wrong)
        ann.problem(422, "PATCH", ARTICLES, json={"ids": [one], **wrong})
    for wrong_ids in (many, {**many, "ids": []}, {**many, "ids": ["1"]}):
        ann.problem(422, "PATCH", ARTICLES, json=wrong_ids)


def test_what_came_after_the_reader_looked_stays_unread(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("One", "Two")
    feed = read(ann, page, 2, folder="News")
    looked = listed(ann)[0]
    page.publish("One", "Two", "Three")
    ann.force(feed)
    eventually(lambda: ann.get(ARTICLES)["total"] == 3)
    path = f"{ARTICLES}/mark-read"
    assert ann.post(path, {"feed": feed, "before": looked["id"]}) == {"changed": 2}
    assert titles(ann, unread=True) == ["Three"]
    ann.ok("PATCH", ARTICLES, json={"ids": [each["id"] for each in listed(ann)], "is_read": False})
    assert ann.post(path, {"folder": "News", "before": looked["first_seen_at"]}) == {"changed": 2}
    assert ann.post(path, {"folder": "Elsewhere"}) == {"changed": 0}
    assert ann.post(path, {"all": True}) == {"changed": 1}
    ann.problem(404, "POST", path, "unknown-feed", json={"feed": "nobody's"})
    for wrong in ({}, {"all": True, "feed": feed}, {"all": True, "before": "noon"}, {"all": 1}):
        ann.problem(422, "POST", path, json=wrong)
    problem = ann.problem(422, "POST", path, json={"all": True, "before": "noon"})
    assert [each["where"] for each in problem["errors"]] == ["body.before.time"]


def test_only_what_is_read_and_not_starred_can_be_deleted(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("Unread", "Starred", "Read")
    feed = read(ann, page, 3)
    for each in listed(ann):
        mark(ann, each["id"], is_read=each["title"] != "Unread",
             is_starred=each["title"] == "Starred")  # fmt: skip
    assert ann.ok("DELETE", f"{ARTICLES}/old") == {"deleted": 0}  # none is a month old
    assert ann.ok("DELETE", f"{ARTICLES}/old", params={"days": 0}) == {"deleted": 1}
    page.publish("Unread", "Starred", "Read", "New")
    ann.force(feed)
    eventually(lambda: "New" in titles(ann))
    assert titles(ann) == ["New", "Starred", "Unread"]
    ann.problem(422, "DELETE", f"{ARTICLES}/old", params={"days": -1})


# ---------------------------------------------------------------------- whose they are


def test_nobody_reaches_the_articles_of_others(desk: Desk, ann: Reader) -> None:
    bob = desk.reader()
    page = desk.site.page("One", "Two")
    feed = read(ann, page, 2)
    read(bob, page, 2)
    mine = [each["id"] for each in listed(ann)]
    for path in (f"{ARTICLES}/{mine[0]}", f"{ARTICLES}/987654321"):
        assert bob.problem(404, "GET", path)["type"] == "unknown-article"
        bob.problem(404, "PATCH", path, "unknown-article", json={"is_read": True})
        bob.problem(404, "POST", f"{path}/archive", "unknown-article", json={})
    said = {"ids": mine, "is_read": True, "is_starred": True}
    assert bob.ok("PATCH", ARTICLES, json=said)["not_found"] == 2
    bob.problem(404, "POST", f"{ARTICLES}/mark-read", "unknown-feed", json={"feed": feed})
    bob.problem(404, "POST", ARTICLES, "unknown-feed", json={"feed_id": feed, "title": "x"})
    bob.post(f"{ARTICLES}/mark-read", {"all": True})
    assert bob.ok("DELETE", f"{ARTICLES}/old", params={"days": 0}) == {"deleted": 2}
    assert [(each["id"], each["is_read"], each["is_starred"]) for each in listed(ann)] == [
        (id, False, False) for id in mine
    ]
    assert bob.get(f"{ARTICLES}/stats")["by_feed"] == []
    assert bob.get(ARTICLES, feed=feed)["total"] == 0


# ---------------------------------------------------------------------- posting


def test_clients_add_what_they_have_parsed(desk: Desk, ann: Reader) -> None:
    feed = subscribed(desk, ann, "One")
    sent: JSON = {
        "feed_id": feed, "url": "https://blog.example/old", "title": " An \n old  one ",
        "author": "Mia", "summary": "<p>short</p>", "categories": ["a", "a", " "],
        "content": "<p onload='x()'>long<script>alert(1)</script> <a href='/more'>more</a></p>",
        "published_at": "1955-11-05T06:15:00-08:00", "thumbnail": {"what": "nobody knows"},
        "enclosures": [{"url": "/1.mp3", "type": "audio/mpeg", "title": "x"}],
        "is_starred": True,
    }  # fmt: skip
    assert ann.post(ARTICLES, sent) == {"saved": 1, "updated": 0, "unchanged": 0, "dropped": 0}
    found = ann.get(f"{ARTICLES}/{listed(ann, starred=True)[0]['id']}")
    assert found["published_at"] == found["at"] == "1955-11-05T14:15:00.000000Z"
    assert (found["title"], found["author"], found["summary"]) == ("An old one", "Mia", "short")
    assert "alert" not in found["content"]
    assert "onload" not in found["content"]
    assert 'href="https://blog.example/more"' in found["content"]
    assert found["enclosures"][0]["url"] == "https://blog.example/1.mp3"
    assert found["categories"] == ["a"]
    mark(ann, found["id"], is_read=True)
    again = [sent, {**sent, "url": None, "link": "http://blog.example/old#", "title": "New title"}]
    assert ann.post(ARTICLES, again[:1])["unchanged"] == 1
    assert ann.post(ARTICLES, {**sent, "title": "New title", "is_starred": False})["updated"] == 1
    after = ann.get(f"{ARTICLES}/{found['id']}")
    assert (after["title"], after["is_read"], after["is_starred"]) == ("New title", True, True)
    assert ann.get(ARTICLES)["total"] == 2


def test_what_the_site_publishes_later_takes_the_place_of_what_was_posted(
    desk: Desk, ann: Reader
) -> None:
    bob = desk.reader()
    page = desk.site.page("One")
    feed = read(ann, page, 1)
    read(bob, page, 1)
    ann.post(ARTICLES, [{"feed_id": feed, "guid": "Two", "title": "Posted"},
                        {"feed_id": feed, "guid": "One", "title": "Forged"}])  # fmt: skip
    (mine,) = listed(ann, q="posted")
    mark(ann, mine["id"], is_read=True, is_starred=True)
    assert titles(bob) == ["One"]
    page.publish("One", "Two")
    ann.force(feed)
    eventually(lambda: titles(bob) == ["One", "Two"])
    assert titles(ann) == ["One", "Two"]
    published = ann.get(f"{ARTICLES}/{mine['id']}")
    assert (published["title"], published["is_read"], published["is_starred"]) == (
        "Two",
        True,
        True,
    )


def test_strange_articles_are_taken_or_refused_as_a_whole(desk: Desk, ann: Reader) -> None:
    feed = subscribed(desk, ann, "One")

    def post(*articles: JSON) -> JSON:
        return ann.post(ARTICLES, [{"feed_id": feed, **each} for each in articles])

    nothing = dict.fromkeys(
        ["guid", "url", "author", "summary", "content", "published_at", "enclosures", "is_read"]
    )
    assert post({"title": "x" * 900_000}, {**nothing, "title": "bare"})["saved"] == 2
    assert len(listed(ann, q="x*")[0]["title"]) == 1_000
    assert post({"title": "z", "published_at": -62_135_596_800})["saved"] == 1
    assert post({"title": "null \x00", "content": "\x00"})["saved"] == 1
    assert ann.get(ARTICLES, q="z")["items"][0]["published_at"] == "0001-01-01T00:00:00.000000Z"
    total = ann.get(ARTICLES)["total"]
    good = {"feed_id": feed, "guid": "good"}
    for wrong in (
        {}, {"url": "javascript:alert(1)"}, {"url": "ftp://x/y"}, {"title": 5},
        {"title": "x", "published_at": "soon"}, {"title": "x", "published_at": 1e300},
        {"title": "x", "published_at": True}, {"content": "x" * 1_000_001},
        {"title": "x", "enclosures": [{"url": "data:text/plain,x"}]},
        {"title": "x", "enclosures": [{}]}, {"title": "x", "is_read": "no"},
    ):  # fmt: skip
        problem = ann.problem(422, "POST", ARTICLES, json=[good, {"feed_id": feed, **wrong}])
        assert "1" in problem["detail"]  # which one it is
    half = json.dumps({**good, "title": "half \ud83d"}).encode()
    ann.problem(422, "POST", ARTICLES, content=half)
    ann.problem(422, "POST", ARTICLES, json=[])
    ann.problem(422, "POST", ARTICLES, json=[good] * 1_001)
    ann.problem(422, "POST", ARTICLES, json={"title": "of no feed"})
    ann.problem(404, "POST", ARTICLES, json=[good, {"feed_id": "nobody's", "title": "x"}])
    assert ann.get(ARTICLES)["total"] == total


# ---------------------------------------------------------------------- the archive


def test_videos_and_links_are_sent_to_the_archive_if_there_is_one(desk: Desk, ann: Reader) -> None:
    feed = subscribed(desk, ann, "One")
    files = [{"url": "https://v.example/a.mp3", "type": "audio/mpeg"},
             {"url": "https://v.example/v.mp4", "type": "video/mp4"}]  # fmt: skip
    ann.post(ARTICLES, [
        {"feed_id": feed, "url": "https://v.example/watch", "title": "Film", "enclosures": files},
        {"feed_id": feed, "title": "Bare"},
    ])  # fmt: skip
    film, bare = listed(ann, q="film")[0]["id"], listed(ann, q="bare")[0]["id"]
    path = f"{ARTICLES}/{film}/archive"
    assert "no archive" in ann.problem(409, "POST", path, "no-archive")["detail"]
    admin = desk.admin()
    worker = Worker(admin, "download")
    worker.ask(wait_ms=1)  # now somebody is there
    sent = ann.post(path, {}, 202)
    assert (sent["type"], sent["url"]) == ("download", "https://v.example/v.mp4")
    assert ann.post(path, None, 202) | {"joined": False} == sent
    linked = ann.post(path, {"url": "https://v.example/watch"}, 202)
    assert linked["id"] != sent["id"]
    assert admin.job(sent["id"])["tenant"] == ann.tenant
    assert ann.get(f"/api/requests/{sent['id']}")["url"] == "https://v.example/v.mp4"
    desk.reader().problem(404, "GET", f"/api/requests/{sent['id']}")
    for url in ("https://v.example/other", "http://127.0.0.1/", "javascript:x", "", "one"):
        ann.problem(422, "POST", path, "bad-link", json={"url": url})
    ann.problem(422, "POST", f"{ARTICLES}/{bare}/archive", "bad-link", json={})
    for expected in (sent, linked):
        work = worker.take_one()
        assert (work["id"], work["args"]["url"]) == (expected["id"], expected["url"])
        worker.complete(work)
