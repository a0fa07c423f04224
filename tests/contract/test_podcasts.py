"""Files of the archive over HTTP, and the podcast that is made of them: for whoever has the secret
address, and for nobody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import feedparser
import httpx2
import pytest
import yt_dlp

from tests.contract.kit import JSON, problem_in
from tests.contract.media_kit import Archivist, Desk, media_desk
from tests.hands.kit import eventually
from tests.security.kit import send

CONTENT = bytes(range(256)) * 40
PICTURE = b"\xff\xd8\xff\xe0 a picture"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with media_desk(log_level="debug") as made:
        keeper = made.keeper()  # whoever looks first has the library made
        made.run()
        look = keeper.post("/api/archive/reconcile", {}, 202)["id"]
        eventually(lambda: keeper.get(f"/api/jobs/{look}")["status"] == "completed")
        made.pause()
        yield made


def archived(desk: Desk, who: Archivist, count: int = 3, **more: Any) -> tuple[int, list[int]]:
    """A subscription, and its items: the last is the newest."""
    id = who.add(paused=True, title="What we keep")["id"]
    said = []
    for number in range(count):
        stem = f"tenants/{who.tenant}/{id}/Nr {number} ☃ & <more>"
        files = {
            "video": desk.put_file(f"{stem}.mp4", CONTENT),
            "thumbnail": desk.put_file(f"{stem}.jpg", PICTURE),
            "info": desk.put_file(f"{stem}.info.json", b'{"id": 1}'),
            "nfo": desk.put_file(f"{stem}.nfo", b"<movie/>"),
        }
        said.append({
            "state": "done", "files": files, "size_bytes": len(CONTENT), "duration_s": 61.4,
            "title": f"Nr {number} & <b>\x0b", "uploader": "Somebody", "done_at": 1e9,
            "published_at": 1.7e9 + 86_400 * number, **more,
        })  # fmt: skip
    return id, desk.put_items(who, id, *said)


def podcast_of(who: Archivist, id: int, **asked: Any) -> str:
    url: str = who.post(f"/api/subscriptions/{id}/podcast", asked or None)["url"]
    return url


def anybody(url: str, **headers: str) -> httpx2.Response:
    """Without a login."""
    return httpx2.get(url, headers=headers)


def secret_of(url: str) -> str:
    return urlsplit(url).path.split("/")[2]


# ---------------------------------------------------------------------- files


def test_a_file_is_handed_out_whole_and_in_parts(desk: Desk) -> None:
    who = desk.archivist()
    _, (item, *_) = archived(desk, who, 1)
    path = f"/api/archive/items/{item}/file"
    whole = who.send("GET", path)
    assert (whole.status_code, whole.content) == (200, CONTENT)
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["content-disposition"] == (
        "inline; filename*=utf-8''Nr%200%20%E2%98%83%20%26%20%3Cmore%3E.mp4"
    )
    part = who.send("GET", path, headers={"Range": "bytes=256-511"})
    assert (part.status_code, part.content) == (206, bytes(range(256)))
    assert part.headers["content-range"] == f"bytes 256-511/{len(CONTENT)}"
    tail = who.send("GET", path, headers={"Range": "bytes=-3"})
    assert tail.content == CONTENT[-3:]
    beyond = who.send("GET", path, headers={"Range": "bytes=99999999-"})
    assert beyond.status_code == 416
    assert beyond.headers["content-range"] == f"bytes */{len(CONTENT)}"
    problem_in(beyond, "no-such-part")
    assert who.send("GET", path, headers={"Range": "bytes=-0"}).status_code == 416
    assert who.send("GET", path, headers={"Range": "bytes=-99999999"}).content == CONTENT
    changed = who.send("GET", path, headers={"Range": "bytes=0-1", "If-Range": '"older"'})
    assert (changed.status_code, changed.content) == (200, CONTENT)
    head = who.http.head(path)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(CONTENT)))


@pytest.mark.parametrize("range", [
    "bytes=5-2", "bytes=", "bytes=-", "lines=1-2", "bytes=a-b", "bytes=0-1,3-4", "bytes 0-1",
    "bytes=" + "9" * 400 + "-", "bytes=0-0," * 2_000,
])  # fmt: skip
def test_a_range_that_makes_no_sense_is_not_noticed(desk: Desk, range: str) -> None:
    who = desk.archivist("ranger")
    known = who.get("/api/archive/items")["items"]
    item = known[0]["id"] if known else archived(desk, who, 1)[1][0]
    answer = who.send("GET", f"/api/archive/items/{item}/file", headers={"Range": range})
    assert (answer.status_code, answer.content) == (200, CONTENT)


@pytest.mark.parametrize(("kind", "type", "how"), [
    ("thumbnail", "image/jpeg", "inline"), ("info", "application/json", "attachment"),
    ("nfo", "application/xml", "attachment"),
])  # fmt: skip
def test_its_other_files_too(desk: Desk, kind: str, type: str, how: str) -> None:
    who = desk.archivist()
    _, (item, *_) = archived(desk, who, 1)
    answer = who.http.get(f"/api/archive/items/{item}/file", params={"kind": kind})
    assert answer.headers["content-type"] == type
    assert answer.headers["content-disposition"].startswith(how)
    who.problem(422, "GET", f"/api/archive/items/{item}/file", params={"kind": "video/../x"})


def test_files_are_for_their_tenant_only(desk: Desk) -> None:
    who, other = desk.archivist(), desk.archivist()
    _, (item, *_) = archived(desk, who, 1)
    path = f"/api/archive/items/{item}/file"
    other.problem(404, "GET", path, "unknown-item")
    other.problem(404, "GET", "/api/archive/items/987654321/file", "unknown-item")
    desk.archivist(who.tenant, "submit").problem(403, "GET", path, "scope")
    assert anybody(desk.server.url + path).status_code == 401
    assert desk.keeper().send("GET", path).status_code == 200


@pytest.mark.parametrize("path", [
    "../headway.db", "/etc/passwd", ".headway-archive", ".headway/lock", "a/../../headway.db",
    "link.mp4", "linked/secret.mp4", "directory.mp4", "pipe.mp4", "not there.mp4", "", "a\0b.mp4",
    "..", ".",
])  # fmt: skip
def test_nothing_outside_of_the_library_is_handed_out(desk: Desk, path: str) -> None:
    """Not even if the store says so."""
    who, library = desk.archivist(), desk.server.data / "archive"
    outside = desk.server.data / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret.mp4").write_bytes(b"secret")
    if not (library / "pipe.mp4").exists():
        os.mkfifo(library / "pipe.mp4")
        (library / "link.mp4").symlink_to(outside / "secret.mp4")
        (library / "linked").symlink_to(outside)
        (library / "directory.mp4").mkdir()
    id = who.add(paused=True)["id"]
    (item,) = desk.put_items(who, id, {"state": "done", "files": {"video": path}, "size_bytes": 6})
    who.problem(404, "GET", f"/api/archive/items/{item}/file", "no-file")
    url = podcast_of(who, id).replace("feed.xml", f"{item}.mp4")
    assert anybody(url).status_code == 404


# ---------------------------------------------------------------------- the podcast


def test_a_podcast_can_be_read_and_heard_without_a_login(desk: Desk) -> None:
    who = desk.archivist()
    id, items = archived(desk, who)
    desk.put_items(who, id, {"state": "missing", "files": {"video": "x.mp4"}}, {"state": "found"})
    url = podcast_of(who, id)
    assert url.startswith(f"{desk.server.url}/podcasts/")
    assert len(secret_of(url)) >= 43
    answer = anybody(url)
    assert answer.headers["content-type"].startswith("application/rss+xml")
    feed = feedparser.parse(answer.content)
    assert not feed.bozo, feed.bozo_exception
    assert feed.version == "rss20"
    assert feed.feed.title == "What we keep"
    assert [each.title for each in feed.entries] == [f"Nr {number} & <b>" for number in (2, 1, 0)]
    newest = feed.entries[0]
    assert newest.id == f"headway:{id}:key-{items[2]}"
    assert newest.published == "Thu, 16 Nov 2023 22:13:20 GMT"
    assert (newest.itunes_duration, newest.author) == ("61", "Somebody")
    (enclosure,) = newest.enclosures
    assert (enclosure.type, enclosure.length) == ("video/mp4", str(len(CONTENT)))
    assert enclosure.href == url.replace("feed.xml", f"{items[2]}.mp4")
    heard = anybody(enclosure.href)
    assert (heard.status_code, heard.content) == (200, CONTENT)
    assert anybody(enclosure.href, Range="bytes=1-2").content == CONTENT[1:3]
    assert httpx2.head(enclosure.href).status_code == 200
    assert httpx2.head(url).headers["etag"] == answer.headers["etag"]
    assert anybody(newest.image.href).content == PICTURE


def test_a_podcast_that_has_not_changed_is_not_sent_again(desk: Desk) -> None:
    who = desk.archivist()
    id, _ = archived(desk, who, 1)
    url = podcast_of(who, id)
    first = anybody(url)
    for headers in (
        {"If-None-Match": first.headers["etag"]},
        {"If-None-Match": f'"other", W/{first.headers["etag"]}'},
        {"If-Modified-Since": first.headers["last-modified"]},
    ):
        again = anybody(url, **headers)
        assert (again.status_code, again.content) == (304, b"")
    stale: list[dict[str, str]] = [
        {"If-None-Match": '"other"', "If-Modified-Since": first.headers["last-modified"]},
        {"If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT"}, {"If-Modified-Since": "nonsense"},
    ]  # fmt: skip
    for headers in stale:
        assert anybody(url, **headers).status_code == 200
    desk.put_items(who, id, {"state": "done", "files": {"video": "a.mp4"}, "size_bytes": 1})
    assert anybody(url, **{"If-None-Match": first.headers["etag"]}).status_code == 200


def test_it_has_the_newest_three_hundred(desk: Desk) -> None:
    who = desk.archivist()
    id = who.add(paused=True)["id"]
    desk.put_items(who, id, *(
        {"state": "done", "files": {"video": f"{number}.m4a"}, "published_at": 1e9 + number,
         "title": str(number)} for number in range(310)))  # fmt: skip
    feed = feedparser.parse(anybody(podcast_of(who, id)).content)
    assert [each.title for each in feed.entries] == [str(each) for each in range(309, 9, -1)]


def test_an_empty_podcast_is_one_too(desk: Desk) -> None:
    who = desk.archivist()
    feed = feedparser.parse(anybody(podcast_of(who, who.add(paused=True)["id"])).content)
    assert (feed.bozo, feed.entries) == (False, [])


def test_yt_dlp_reads_it_as_a_playlist(desk: Desk) -> None:
    who = desk.archivist()
    id, items = archived(desk, who)
    url = podcast_of(who, id)
    with yt_dlp.YoutubeDL({"quiet": True, "extract_flat": True, "no_warnings": True}) as ydl:
        found: JSON = ydl.extract_info(url, download=False)
    assert found["title"] == "What we keep"
    assert [each["url"].partition("#")[0] for each in found["entries"]] == [
        url.replace("feed.xml", f"{item}.mp4") for item in reversed(items)
    ]


# ---------------------------------------------------------------------- its address


def test_the_address_stays_until_it_is_changed_or_taken_back(desk: Desk) -> None:
    who = desk.archivist()
    id, (item,) = archived(desk, who, 1)
    first = podcast_of(who, id)
    assert podcast_of(who, id) == first == podcast_of(who, id, rotate=False)
    second = podcast_of(who, id, rotate=True)
    assert second != first
    for url in (first, first.replace("feed.xml", f"{item}.mp4")):
        assert anybody(url).status_code == 404
    assert anybody(second).status_code == 200
    who.ok("DELETE", f"/api/subscriptions/{id}/podcast", 204)
    assert anybody(second).status_code == 404
    who.ok("DELETE", f"/api/subscriptions/{id}/podcast", 204)
    assert podcast_of(who, id) not in (first, second)
    who.ok("DELETE", f"/api/subscriptions/{id}")
    assert anybody(second).status_code == 404


def test_only_its_tenant_makes_an_address(desk: Desk) -> None:
    who, other = desk.archivist(), desk.archivist()
    id, _ = archived(desk, who, 1)
    path = f"/api/subscriptions/{id}/podcast"
    other.problem(404, "POST", path, "unknown-subscription")
    other.problem(404, "DELETE", path, "unknown-subscription")
    desk.archivist(who.tenant, "read").problem(403, "POST", path, "scope")
    who.problem(422, "POST", path, json={"rotate": "yes"})


def test_whoever_guesses_finds_nothing_and_hears_nothing(desk: Desk) -> None:
    who, other = desk.archivist(), desk.archivist()
    id, (item,) = archived(desk, who, 1)
    secret = secret_of(podcast_of(who, id))
    theirs = secret_of(podcast_of(other, archived(desk, other, 1)[0]))
    root = f"{desk.server.url}/podcasts"
    wrong = [
        f"{root}/{secret[:-1]}/feed.xml", f"{root}/{secret}x/feed.xml", f"{root}/None/feed.xml",
        f"{root}/%C3%A9/feed.xml", f"{root}/{theirs}/{item}.mp4", f"{root}/{secret}/{item}.mkv",
        f"{root}/{secret}/{item}", f"{root}/{secret}/{item}.nfo", f"{root}/{secret}/1.mp4",
        f"{root}/{secret}/²{item}.mp4", f"{root}/{secret}/{'9' * 40}.mp4", f"{root}/{secret}/x.xml",
    ]  # fmt: skip
    for url in wrong:
        answer = anybody(url)
        assert answer.status_code == 404, url
        assert secret not in str(problem_in(answer, "no-podcast")), url
    for url in (f"{root}/", f"{root}/{secret}", f"{root}//feed.xml", f"{root}/{secret}/a/b"):
        assert anybody(url).status_code == 404
    assert httpx2.post(f"{root}/{secret}/feed.xml").status_code == 405


def test_the_secret_is_written_nowhere(desk: Desk) -> None:
    who = desk.archivist()
    id, (item,) = archived(desk, who, 1)
    url = podcast_of(who, id)
    secret = secret_of(url)
    anybody(url)
    anybody(url.replace("feed.xml", f"{item}.mp4"))
    anybody(url.replace("feed.xml", "nothing.xml"))
    anybody(f"{url}?again={secret}")
    old = secret
    secret = secret_of(podcast_of(who, id, rotate=True))
    anybody(url)  # with the one before
    anybody(f"{desk.server.url}/podcasts/mistyped-and-nearly-right/feed.xml")
    keeper = desk.keeper()
    for path in ("/api/audit", "/api/trail", "/metrics", "/api/settings", "/api/archive",
                 f"/api/subscriptions/{id}", "/api/subscriptions"):  # fmt: skip
        text = keeper.send("GET", path).text
        assert secret not in text, path
        assert old not in text, path
    printed = desk.server.printed()
    assert secret not in printed
    assert old not in printed
    assert "mistyped" not in printed
    assert "/podcasts/[redacted]/feed.xml" in printed
    found = [each for each in keeper.get("/api/audit")["items"]
             if each["subject"] == f"subscription:{id}" and "podcast" in each["event"]]  # fmt: skip
    assert [each["event"] for each in found] == ["podcast_rotated", "podcast_asked"]
    assert all(each["who"] == f"jwt:{who.tenant} from 127.0.0.1" for each in found)


def test_a_podcast_outlives_a_restart(desk: Desk) -> None:
    who = desk.archivist()
    id, _ = archived(desk, who, 1)
    url = podcast_of(who, id)
    desk.server.restart()
    assert anybody(url).status_code == 200


def test_an_open_server_still_refuses_what_a_proxy_or_another_page_sends() -> None:
    """The address is a key to the podcast, and to nothing else."""
    with media_desk(auth="auto") as desk:
        where = "/podcasts/some/feed.xml"
        assert send(desk.server.url, "GET", where).status == 404
        assert send(desk.server.url, "GET", where, x_forwarded_for="1.2.3.4").status == 403
        assert send(desk.server.url, "GET", where, host="evil.example").status == 421
        assert send(desk.server.url, "GET", where, origin="https://evil.example").status == 403
