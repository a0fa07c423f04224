"""Looking at addresses before anybody subscribes, and subscribing to a site."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from time import monotonic

import pytest

from tests.contract.feeds_kit import (
    SECRET,
    Desk,
    LoopbackSite,
    Page,
    answers,
    document,
    feeds_desk,
    held,
    loopback_site,
    signed,
)
from tests.contract.kit import Api
from tests.hands.kit import eventually
from tests.servers import server_on

VALIDATE, PARSE = "/api/backend/rss/validate", "/api/backend/rss/parse"
DISCOVER, SUBSCRIBE = "/api/backend/rss/discover", "/api/backend/rss/subscribe"
# Whatever the port of the site is, nobody waits a second for it.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with feeds_desk(file=QUICK) as desk:
        yield desk


def page_with(desk: Desk, *links: str, host: str = "") -> Page:
    """A page that names these feeds."""
    named = "".join(
        f'<link rel="alternate" type="application/rss+xml" title="T" href="{link}">'
        for link in links
    )
    page = desk.site.page(path="/", host=host)
    page.says = answers(f"<html><head>{named}</head></html>".encode(), Content_Type="text/html")
    return page


def host_of(page: Page) -> str:
    return page.url.rpartition("/")[0]


# ---------------------------------------------------------------------- one address


def test_a_feed_is_valid(desk: Desk) -> None:
    page = desk.site.page("one", "two")
    assert desk.reader().post(VALIDATE, {"url": page.url, "more": 1}) == {
        "valid": True, "url": page.url, "title": "A site", "format": "rss20", "article_count": 2,
        "error": None, "kind": None,
    }  # fmt: skip


@pytest.mark.parametrize(("body", "status", "kind"), [
    (b"<html>hello</html>", 200, "not-a-feed"), (b"\x00\x01\x02", 200, "not-a-feed"),
    (b"", 200, "bad-answer"), (b"", 404, "not-found"), (b"", 410, "gone"),
    (b"", 401, "unauthorized"), (b"", 403, "forbidden"), (b"", 418, "rejected"),
    (b"", 500, "server-error"),
    (b'<!DOCTYPE r [<!ENTITY a "b">]><rss><channel/></rss>', 200, "entities"),
])  # fmt: skip
def test_or_it_says_why_not(desk: Desk, body: bytes, status: int, kind: str) -> None:
    page = desk.site.page()
    page.says = answers(body, status)
    reader = desk.reader()
    said = reader.post(VALIDATE, {"url": page.url})
    assert (said["valid"], said["kind"], said["article_count"]) == (False, kind, 0)
    assert said["error"]
    assert said["url"] == page.url
    problem = reader.problem(422, "POST", PARSE, kind, json={"url": page.url})
    assert problem["detail"] == said["error"]


def test_a_site_that_wants_us_to_wait_is_quoted(desk: Desk) -> None:
    page = desk.site.page()
    page.says = answers(b"", 429, Retry_After="120")
    problem = desk.reader().problem(422, "POST", PARSE, "asked-to-wait", json={"url": page.url})
    assert problem["retry_after_s"] == 120


@pytest.mark.parametrize("url", ["nowhere.invalid", "https://nowhere.invalid/feed"])
def test_a_host_that_nobody_knows(desk: Desk, url: str) -> None:
    said = desk.reader().post(VALIDATE, {"url": url})
    assert (said["valid"], said["kind"]) == (False, "unknown-host")


def test_a_port_where_nobody_listens(desk: Desk) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        desk.reader().problem(422, "POST", DISCOVER, "unreachable", json={"url": url})


@pytest.mark.parametrize("url", ["", "ftp://x/", "http://", "javascript:alert(1)", 5, None])
def test_what_is_no_address_at_all(desk: Desk, url: object) -> None:
    answer = desk.reader().send("POST", PARSE, json={"url": url})
    assert answer.status_code == 422
    assert answer.json()["type"] in ("bad-address", "wrong-input")


def test_a_feed_is_shown_with_what_is_safe_and_nothing_is_kept(desk: Desk) -> None:
    reader, page = desk.reader(), desk.site.page()
    text = "<item><guid>g1</guid><title>One</title><link>/1</link><category>c</category>" \
        "<enclosure url='https://x.example/1.mp3' type='audio/mpeg' length='5'/>" \
        "<pubDate>Mon, 05 Jan 2026 10:00:00 GMT</pubDate><description><![CDATA[<p onclick='x()'>" \
        "Hello<script>alert(1)</script></p>]]></description></item>"  # fmt: skip
    page.says = answers(document("a", "b", "c", channel=text + "<ttl>90</ttl>"))
    found = reader.post(PARSE, {"url": page.url}, limit=2)
    assert (found["title"], found["article_count"], found["ttl_minutes"]) == ("A site", 4, 90)
    assert len(found["articles"]) == 2
    (first,) = (each for each in found["articles"] if each["guid"] == "g1")
    assert first["summary"] == "<p>Hello</p>"
    assert first["link"] == f"{host_of(page)}/1"
    assert first["published_at"] == "2026-01-05T10:00:00.000000Z"
    assert first["enclosures"][0]["length"] == 5
    assert reader.feeds() == []


def test_looking_twice_and_subscribing_asks_the_site_once(desk: Desk) -> None:
    reader, page = desk.reader(), desk.site.page("one")
    reader.post(VALIDATE, {"url": page.url})
    reader.post(PARSE, {"url": page.url})
    (found,) = reader.post(DISCOVER, {"url": page.url})["candidates"]
    assert (found["url"], found["found_by"], found["checked"]) == (page.url, "address", True)
    id = reader.post(SUBSCRIBE, {"url": page.url}, 201)["id"]
    assert reader.settled(id)["status"] == "ok"
    assert len(page.visits) == 1
    page.publish("one", "two")
    reader.force(id)  # which asks the site, and no memory
    eventually(lambda: reader.feed(id)["article_count"] == 2)
    assert len(page.visits) == 2


# ---------------------------------------------------------------------- a site


def test_the_feeds_that_a_page_names(desk: Desk) -> None:
    feed = desk.site.page("one", path="/real.xml")
    page = page_with(desk, "/broken.xml", "/real.xml", host=host_of(feed))
    found = desk.reader().post(DISCOVER, {"url": page.url})["candidates"]
    assert [(each["url"], each["valid"]) for each in found] == [
        (feed.url, True), (f"{host_of(feed)}/broken.xml", False),
    ]  # fmt: skip
    assert (found[0]["title"], found[0]["article_count"]) == ("A site", 1)
    assert "404" in found[1]["error"]


def test_a_site_that_names_none_is_looked_at_in_usual_places(desk: Desk) -> None:
    feed = desk.site.page("one", path="/atom.xml")
    page = page_with(desk, host=host_of(feed))
    (found,) = desk.reader().post(DISCOVER, {"url": page.url})["candidates"]
    assert (found["url"], found["found_by"]) == (feed.url, "guess")


def test_a_site_without_feeds(desk: Desk) -> None:
    reader, page = desk.reader(), page_with(desk)
    problem = reader.problem(422, "POST", DISCOVER, "not-a-feed", json={"url": page.url})
    assert "no feed was found" in problem["detail"]
    reader.problem(422, "POST", SUBSCRIBE, "not-a-feed", json={"url": page.url})
    assert reader.feeds() == []
    assert len(page.visits) == 1


def test_subscribing_to_a_site_takes_its_best_feed(desk: Desk) -> None:
    reader = desk.reader()
    feed = desk.site.page("one", path="/real.xml")
    page = page_with(desk, "/broken.xml", "/real.xml", host=host_of(feed))
    said = {"url": page.url, "folder": "News", "refresh_interval": 60, "id": "mine"}
    sent = reader.send("POST", SUBSCRIBE, json=said)
    made = sent.json()
    assert sent.status_code == 201
    assert sent.headers["location"] == "/api/backend/feeds/mine"
    assert (made["id"], made["url"], made["folder"]) == ("mine", feed.url, "News")
    assert made["refresh_interval"] == 60
    problem = reader.problem(409, "POST", SUBSCRIBE, "duplicate", json={"url": page.url})
    assert problem["duplicates"][0]["existing_id"] == "mine"
    assert len(reader.feeds()) == 1


def test_one_that_has_moved_for_good_is_subscribed_to_where_it_is(desk: Desk) -> None:
    reader, feed = desk.reader(), desk.site.page("one", path="/new.xml")
    old = desk.site.page(path="/old.xml", host=host_of(feed))
    old.says = answers(b"", 301, Location="/new.xml")
    made = reader.post(SUBSCRIBE, {"url": old.url}, 201)
    assert made["url"] == feed.url
    reader.settled(made["id"])
    assert len(feed.visits) == 1


# ---------------------------------------------------------------------- limits


def test_only_so_many_looks_of_one_tenant_at_once(desk: Desk) -> None:
    reader, pages = desk.reader(), [desk.site.page("x") for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        with ExitStack() as hold:
            waits = [hold.enter_context(held(page)) for page in pages]
            looks = [
                pool.submit(desk.reader(reader.tenant).post, VALIDATE, {"url": page.url})
                for page in pages
            ]
            assert all(each.wait(20) for each in waits)
            answer = reader.send("POST", PARSE, json={"url": desk.site.page("x").url})
            assert answer.status_code == 429
            assert answer.headers["retry-after"] == "2"
            assert answer.json()["type"] == "too-many-looks"
            assert desk.reader().post(VALIDATE, {"url": desk.site.page("x").url})["valid"]
        assert all(look.result(20)["valid"] for look in looks)
    assert reader.post(VALIDATE, {"url": desk.site.page("x").url})["valid"]


def test_a_server_that_stops_leaves_nobody_waiting_and_no_connection_open() -> None:
    with feeds_desk(file=QUICK, drain_s=20) as desk:
        reader, kept = desk.reader(), desk.site.page("x")
        id = reader.add(kept)["id"]
        reader.settled(id)
        slow, job = desk.site.page("x"), desk.site.page("x")
        with held(slow) as looked, held(job) as fetched, ThreadPoolExecutor(1) as pool:
            look = pool.submit(reader.send, "POST", VALIDATE, json={"url": slow.url})
            other = desk.reader()
            other.add(job, id="job")
            assert looked.wait(20)
            assert fetched.wait(20)
            began = monotonic()
            assert desk.server.stop() == 0
            assert monotonic() < began + 10  # what a site leaves open is not waited for
            assert look.result(20).status_code == 503
        said = desk.server.printed()
        assert "Traceback" not in said
        assert "Unclosed" not in said
        assert "ResourceWarning" not in said
        desk.server.start()
        feed = desk.reader(other.tenant).settled("job")
        assert (feed["status"], feed["failures"], feed["error"]) == ("ok", 0, None)


# ---------------------------------------------------------------------- where nobody may look


@contextmanager
def counting() -> Iterator[tuple[int, list[int]]]:
    """A port of loopback, and how often somebody came."""
    came: list[int] = []
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            came.append(1)
            connection.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield int(listening.getsockname()[1]), came
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


@pytest.fixture(scope="module")
def closed() -> Iterator[tuple[Api, LoopbackSite]]:
    """A server that may call one place of loopback, and no other."""
    with loopback_site() as site:
        allowed = f"127.0.0.1:{site.port}"
        told = {"auth": "required", "jwt_secret": SECRET, "outbound_allow": allowed, "file": QUICK}
        with server_on("sqlite", **told) as server, Api(server.url, signed("ann")) as api:
            yield api, site


FORBIDDEN = [
    "http://127.0.0.1:{port}/", "127.0.0.1:{port}", "http://127.1:{port}/",
    "http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://017700000001:{port}/",
    "http://0.0.0.0:{port}/", "http://0:{port}/", "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/", "http://[64:ff9b::7f00:1]:{port}/",
    "http://localhost:{port}/", "http://user:pass@127.0.0.1:{port}/",
    "http://10.0.0.1/", "http://192.168.1.1/", "http://172.16.0.1/", "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://[fd00::1]/",
    "http://224.0.0.1/", "http://255.255.255.255/",
]  # fmt: skip


@pytest.mark.parametrize("url", FORBIDDEN)
def test_what_is_not_public_is_refused_and_nobody_is_asked(
    closed: tuple[Api, LoopbackSite], url: str
) -> None:
    api, site = closed
    with counting() as (port, came):
        address = url.format(port=port)
        said = api.post(VALIDATE, {"url": address})
        assert (said["valid"], said["kind"]) == (False, "refused-address")
        for path in (PARSE, DISCOVER, SUBSCRIBE):
            api.problem(422, "POST", path, "refused-address", json={"url": address})
        leading = site.page(path=f"/{port}", host=f"http://127.0.0.1:{site.port}")
        leading.says = answers(b"", 302, Location="http://" + address.removeprefix("http://"))
        said = api.post(VALIDATE, {"url": leading.url})
        assert (said["valid"], said["kind"]) == (False, "refused-address")
        assert len(leading.visits) == 1
        assert came == []
    assert api.get("/api/backend/feeds")["feeds"] == []


def test_nor_is_what_a_page_names(closed: tuple[Api, LoopbackSite]) -> None:
    api, site = closed
    with counting() as (port, came):
        page = site.page(path="/named", host=f"http://127.0.0.1:{site.port}")
        named = f'<link rel="alternate" type="application/rss+xml" href="//127.0.0.1:{port}/x">'
        page.says = answers(named.encode(), Content_Type="text/html")
        api.problem(422, "POST", DISCOVER, "not-a-feed", json={"url": page.url})
        api.problem(422, "POST", SUBSCRIBE, "not-a-feed", json={"url": page.url})
        assert came == []
