"""A site is asked politely, followed where it may lead, and believed only within limits."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from headway.apps.feeds.fetching import PAGES, Fetched, Fetcher, FetchLimits, Introduction, Kind
from headway.errors import BadSettings
from headway.net.outbound import Allowed
from tests.feeds.kit_site import (
    FEED,
    NOW,
    TRUSTS_NOBODY,
    Visited,
    fetch,
    header,
    moved,
    raw,
    run,
    stays_silent,
    visited,
    with_validators,
)
from tests.net.kit import Answer, Names, certificate_for, never_ends, says, site

SMALL = FetchLimits(body_bytes=100_000)
SECRET = "Canary7f3kQz91"


# --- what comes back


def test_a_feed_comes_as_bytes_with_all_that_was_said_of_it() -> None:
    came = fetch(
        says(
            FEED,
            Content_Type="application/rss+xml; charset=iso-8859-1",
            ETag='W/"a b\xe9"'.encode().decode("latin-1"),
            Last_Modified="Mon, 21 Sep 2026 12:00:00 GMT",
            Cache_Control="public, max-age=600",
        )
    )
    assert (came.kind, came.status, came.error) == (Kind.FETCHED, 200, "")
    assert came.went_well
    assert came.body == FEED  # not as text: the charset is for the parser to find
    assert came.content_type == "application/rss+xml; charset=iso-8859-1"
    assert came.modified == "Mon, 21 Sep 2026 12:00:00 GMT"
    assert came.fresh_until == NOW + 600
    assert (came.hops, came.moved_to) == (0, None)


def test_the_same_body_has_the_same_hash_and_another_has_another() -> None:
    one, again, other = fetch(says(FEED)), fetch(says(FEED)), fetch(says(FEED + b" "))
    assert one.body_hash == again.body_hash != other.body_hash
    assert len(one.body_hash) == 32


@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda body: zlib.compress(body)[2:-4]),  # bare, as some servers send it
        ("UTF-8", bytes),  # a charset in the wrong place
    ],
)
def test_what_is_compressed_comes_as_it_was(coding: str, compress: Any) -> None:
    came = fetch(says(compress(FEED), Content_Encoding=coding))
    assert (came.kind, came.body) == (Kind.FETCHED, FEED)


@pytest.mark.parametrize("coding", ["compress", "x-gzip", "gzip, compress"])
def test_a_compression_that_nobody_asked_for_is_no_feed(coding: str) -> None:
    assert fetch(says(b"????", Content_Encoding=coding)).kind is Kind.BAD_ANSWER


def test_who_asks_says_who_it_is_and_brings_nothing_else() -> None:
    async def ask() -> list[str]:
        introduction = Introduction("https://reader.example/bot", "feeds@reader.example")
        pages = {"/feed": says(FEED, Set_Cookie="sid=1; Path=/")}
        async with visited(pages, introduction=introduction) as here:
            await here.fetch("/feed#newest", subscribers=12)
            await here.fetch("/feed", accept=PAGES)
            return here.site.heads

    first, second = run(ask)
    assert header(first, "user-agent") == (
        "Headway/0.1 (+https://reader.example/bot; feeds@reader.example; 12 subscribers)"
    )
    assert first.startswith("GET /feed HTTP/1.1")
    assert "application/atom+xml" in (header(first, "accept") or "")
    assert "gzip" in (header(first, "accept-encoding") or "")
    assert (header(second, "accept") or "").startswith("text/html")
    for name in ("cookie", "authorization", "referer", "if-none-match", "if-modified-since"):
        assert header(first, name) is None
        assert header(second, name) is None


def test_an_introduction_has_only_the_parts_that_are_known() -> None:
    assert Introduction().user_agent() == "Headway/0.1"
    assert Introduction().user_agent(1) == "Headway/0.1 (1 subscriber)"
    assert Introduction(contact="a@b.example").user_agent() == "Headway/0.1 (a@b.example)"


@pytest.mark.parametrize(
    ("home", "contact"),
    [("reader.example", ""), ("https://a/\r\nX: y", ""), ("", "a@b\r\nX: y"), ("", "Ann (me)"),
     ("https://b\u00fccher.example/", "")],
)  # fmt: skip
def test_an_introduction_that_would_break_the_header_is_refused(home: str, contact: str) -> None:
    with pytest.raises(BadSettings):
        Introduction(home, contact)


# --- asking only for what is new


@pytest.mark.parametrize("etag", ['"strong"', 'W/"weak"', "unquoted", None])
@pytest.mark.parametrize("modified", ["Mon, 21 Sep 2026 12:00:00 GMT", "yesterday, or so", None])
def test_what_a_site_said_is_sent_back_as_it_was(etag: str | None, modified: str | None) -> None:
    async def ask() -> tuple[Fetched, Fetched]:
        async with visited({"/feed": with_validators(etag, modified)}) as here:
            first = await here.fetch("/feed", etag="stale")
            return first, await here.fetch("/feed", etag=first.etag, modified=first.modified)

    first, second = run(ask)
    assert (first.kind, first.etag, first.modified) == (Kind.FETCHED, etag, modified)
    if etag or modified:
        assert (second.kind, second.body, second.went_well) == (Kind.NOT_MODIFIED, b"", True)
        assert (second.etag, second.modified) == (etag, modified)
    else:
        assert second.kind is Kind.BAD_ANSWER  # 304, though we named nothing


def test_an_etag_of_any_bytes_survives() -> None:
    etag = '"\xe9\x80\xff"'

    async def ask() -> str | None:
        page = raw(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nETag: " + etag.encode("latin-1"),
            b"\r\n\r\n" + FEED,
        )
        async with visited({"/feed": page}) as here:
            came = await here.fetch("/feed")
            await here.fetch("/feed", etag=came.etag)
            return header(here.site.heads[1], "if-none-match")

    assert run(ask) == etag


def test_not_modified_may_bring_new_validators_and_a_new_life() -> None:
    page = raw(
        b'HTTP/1.1 304 Not Modified\r\nETag: "b"\r\nCache-Control: max-age=60\r\n'
        b"Connection: close\r\n\r\n"
    )
    came = fetch(page, etag='"a"', modified="then")
    assert (came.kind, came.etag, came.modified) == (Kind.NOT_MODIFIED, '"b"', "then")
    assert came.fresh_until == NOW + 60


@pytest.mark.parametrize("etag", ['"a"\r\nX-Evil: 1', '"\u2603"', '"\x00"', "x" * 2_000, ""])
def test_a_validator_that_cannot_be_sent_is_left_out(etag: str) -> None:
    async def ask() -> tuple[Fetched, str]:
        async with visited({"/feed": says(FEED)}) as here:
            return await here.fetch("/feed", etag=etag, modified="then"), here.site.heads[0]

    came, head = run(ask)
    assert came.kind is Kind.FETCHED
    assert header(head, "if-none-match") is None
    assert header(head, "x-evil") is None
    assert header(head, "if-modified-since") == "then"


def test_validators_go_to_the_address_they_came_from_and_to_no_other() -> None:
    async def ask() -> tuple[Visited, Fetched, Fetched, Fetched]:
        pages = {"/old": moved(302, "/new"), "/new": with_validators('"n"', None)}
        async with visited(pages) as here:
            first = await here.fetch("/old")
            again = await here.fetch("/old", etag=first.etag, validators_of=first.url)
            # What we know is of /old, and says nothing about /new.
            unknown = await here.fetch("/old", etag='"n"')
            return here, first, again, unknown

    here, first, again, unknown = run(ask)
    assert [first.kind, again.kind, unknown.kind] == [
        Kind.FETCHED, Kind.NOT_MODIFIED, Kind.FETCHED,
    ]  # fmt: skip
    sent = [
        (path, header(head, "if-none-match"))
        for path, head in zip(here.site.paths, here.site.heads, strict=True)
    ]
    assert sent[2:] == [("/old", None), ("/new", '"n"'), ("/old", '"n"'), ("/new", None)]


# --- how long it is fresh


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Cache_Control": "max-age=600"}, 600),
        ({"Cache_Control": 'private, MAX-AGE="600"', "Age": "500"}, 100),
        ({"Cache_Control": "max-age=600", "Age": "600"}, None),
        ({"Cache_Control": "max-age=600, no-cache"}, None),
        ({"Cache_Control": "no-store"}, None),
        ({"Cache_Control": "max-age=soon"}, None),
        ({"Cache_Control": "max-age=0", "Expires": formatdate(NOW + 600, usegmt=True)}, None),
        ({"Cache_Control": "max-age=99999999999"}, 7 * 86_400),
        ({"Expires": formatdate(NOW + 600, usegmt=True)}, 600),
        # Its clock is a day ahead of ours.
        ({"Date": formatdate(NOW + 86_400, usegmt=True),
          "Expires": formatdate(NOW + 87_000, usegmt=True)}, 600),
        ({"Expires": formatdate(NOW - 600, usegmt=True)}, None),
        ({"Expires": "0"}, None),
        ({"Expires": "-1"}, None),
        ({"Expires": "x" * 10_000}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_how_long_an_answer_is_fresh(headers: dict[str, str], seconds: float | None) -> None:
    came = fetch(says(FEED, **headers))
    assert came.fresh_until == (None if seconds is None else NOW + seconds)


# --- answers that are no feed


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Kind.UNAUTHORIZED), (403, Kind.FORBIDDEN), (404, Kind.NOT_FOUND),
        (410, Kind.GONE), (400, Kind.REJECTED), (418, Kind.REJECTED), (451, Kind.REJECTED),
        (429, Kind.PUSHBACK), (503, Kind.PUSHBACK), (500, Kind.SERVER_ERROR),
        (502, Kind.SERVER_ERROR), (504, Kind.SERVER_ERROR), (599, Kind.SERVER_ERROR),
        (204, Kind.BAD_ANSWER), (206, Kind.BAD_ANSWER), (300, Kind.BAD_ANSWER),
        (799, Kind.BAD_ANSWER),
    ],
)  # fmt: skip
def test_an_error_is_an_error_whatever_its_page_says(status: int, kind: Kind) -> None:
    page = b"" if status == 204 else FEED
    came = fetch(says(page, f"{status} Whatever"))
    assert (came.kind, came.status, came.body, came.went_well) == (kind, status, b"", False)
    assert came.error.startswith(f"127.0.0.1 answered {status}")
    assert (came.fresh_until, came.etag, came.moved_to) == (None, None, None)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "seconds"),
    [("120", 120.0), (formatdate(NOW + 90, usegmt=True), 90.0), ("99999999", 7 * 86_400.0),
     (formatdate(NOW - 90, usegmt=True), None), ("soon", None), ("", None)],
)  # fmt: skip
def test_when_a_site_wants_to_be_asked_again(status: int, said: str, seconds: float | None) -> None:
    came = fetch(says(b"", f"{status} Busy", Retry_After=said))
    assert came.retry_after_s == seconds


def test_an_empty_answer_is_no_feed_without_articles() -> None:
    for page in (says(b""), says(gzip.compress(b""), Content_Encoding="gzip")):
        assert fetch(page).kind is Kind.BAD_ANSWER


OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "page",
    [
        raw(b""),
        raw(b"\x00\x01\x02 no HTTP at all\r\n\r\n"),
        raw(b"HTTP/1.1 200 OK\r\nETag"),
        raw(OK + b"Content-Length: 1000\r\n\r\n" + FEED),
        raw(OK + b"Content-Length: a lot\r\n\r\n" + FEED),
        raw(OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello"),
        raw(CHUNKED + b"5\r\nhello\r\n"),  # never ended
        raw(CHUNKED + b"zz\r\nhello\r\n0\r\n\r\n"),
        raw(CHUNKED + b"5\r\nhello, and more than five\r\n0\r\n\r\n"),
        says(b"no gzip", Content_Encoding="gzip"),
        says(gzip.compress(FEED)[:5] + b"x" * 40, Content_Encoding="gzip"),
        says(FEED, Content_Encoding=", ".join(["gzip"] * 9)),
        raw(OK + b"X-Long: " + b"x" * 300_000),
    ],
    ids=["nothing", "no-http", "half-a-head", "too-short", "no-length", "two-lengths",
         "unfinished", "no-size", "wrong-size", "no-gzip", "broken-gzip", "nine-times-gzip",
         "long-head"],
)  # fmt: skip
def test_what_is_broken_is_told_and_nothing_of_it_is_kept(page: Answer) -> None:
    came = fetch(page)
    assert came.kind in (Kind.BAD_ANSWER, Kind.NETWORK)
    assert came.body == b""
    assert came.error.startswith("127.0.0.1 ")


@pytest.mark.parametrize(
    "page",
    [
        raw(CHUNKED, *[b"%x;odd=1\r\n%c\r\n" % (1, byte) for byte in FEED], b"0\r\nX: y\r\n\r\n"),
        raw(OK + b"\r\n" + FEED),  # its end is the end of the connection
        raw(b"HTTP/1.0 200\r\n\r\n" + FEED),
        raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK + b"\r\n" + FEED),
        raw(OK + b"Content-Length: %d\r\n\r\n" % len(FEED) + FEED + b"and more than it said"),
    ],
    ids=["byte-by-byte", "no-length", "old-http", "early-hints", "more-than-it-said"],
)
def test_what_is_odd_but_whole_is_taken(page: Answer) -> None:
    came = fetch(page)
    assert (came.kind, came.body) == (Kind.FETCHED, FEED)


# --- limits


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    zeros = bytes(1_000_000)
    return b"".join(packer.compress(zeros) for _ in range(megabytes)) + packer.flush()


@pytest.mark.parametrize(
    "page",
    [
        says(bomb(50), Content_Encoding="gzip"),
        says(gzip.compress(bomb(50)), Content_Encoding="gzip, gzip"),
        never_ends("200 OK", b"<rss>", b"x" * 65_536),
        never_ends("200 OK\r\nTransfer-Encoding: chunked", b"", b"1000\r\n%s\r\n" % bytes(0x1000)),
        never_ends("200 OK\r\nContent-Encoding: gzip", gzip.compress(b""), bytes(65_536)),
        raw(OK + b"Content-Length: 100001\r\n\r\n"),
    ],
    ids=["bomb", "bomb-in-a-bomb", "endless", "endless-chunks", "endless-gzip", "announced"],
)
def test_no_answer_is_longer_than_the_limit(page: Answer) -> None:
    came = fetch(page, SMALL)
    assert (came.kind, came.body) == (Kind.TOO_LONG, b"")
    assert "100000 bytes" in came.error


def test_an_answer_as_long_as_the_limit_is_taken() -> None:
    assert len(fetch(says(b"x" * 100_000), SMALL).body) == 100_000
    assert fetch(says(b"x" * 100_001), SMALL).kind is Kind.TOO_LONG


@pytest.mark.parametrize(
    "page",
    [stays_silent(), stays_silent(OK), stays_silent(OK + b"Content-Length: 9\r\n\r\n<rss>")],
    ids=["no-head", "half-a-head", "half-a-body"],
)
def test_a_site_that_falls_silent_is_not_waited_for(page: Answer) -> None:
    came = fetch(page, FetchLimits(piece_s=0.05))
    assert (came.kind, came.error) == (Kind.TIMED_OUT, "127.0.0.1 has not answered in time")


def test_a_site_that_always_sends_a_little_more_is_not_waited_for() -> None:
    async def trickle(_head: str, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0)

    limits = FetchLimits(whole_s=0.1, body_bytes=1_000_000_000)
    assert fetch(trickle, limits).kind is Kind.TIMED_OUT


def test_the_limit_on_the_whole_counts_all_hops() -> None:
    async def ask() -> Fetched:
        async def paced(_url: str) -> None:
            await asyncio.Event().wait()

        limits = FetchLimits(whole_s=0.05)
        async with visited({"/a": moved(302, "/b")}, limits=limits) as here:
            return await here.fetch("/a", before_hop=paced)

    assert run(ask).kind is Kind.TIMED_OUT


def test_a_fetch_that_is_cancelled_is_cancelled() -> None:
    async def ask() -> None:
        asked = asyncio.Event()

        async def silent(head: str, writer: asyncio.StreamWriter) -> None:
            asked.set()
            await stays_silent()(head, writer)

        async with visited({"/feed": silent}) as here:
            task = asyncio.create_task(here.fetch("/feed"))
            await asked.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    run(ask)


# --- redirects


def led(*statuses: int, last: Answer | None = None) -> tuple[Fetched, Visited]:
    """Along pages /0, /1, … with these statuses, to a feed or to what is said."""
    pages = {f"/{n}": moved(status, f"/{n + 1}#top") for n, status in enumerate(statuses)}
    pages[f"/{len(statuses)}"] = last or says(FEED)

    async def ask() -> tuple[Fetched, Visited]:
        async with visited(pages) as here:
            return await here.fetch("/0"), here

    return run(ask)


@pytest.mark.parametrize("statuses", [[301], [308], [301, 308], [301] * 5])
def test_a_feed_moves_when_every_redirect_is_permanent(statuses: list[int]) -> None:
    came, here = led(*statuses)
    assert (came.kind, came.hops) == (Kind.FETCHED, len(statuses))
    assert came.moved_to == came.url == here.at(f"/{len(statuses)}")


@pytest.mark.parametrize("statuses", [[302], [303], [307], [301, 302], [302, 301], [308, 307, 301]])
def test_a_feed_stays_when_one_redirect_is_not(statuses: list[int]) -> None:
    came, here = led(*statuses)
    assert (came.kind, came.body, came.moved_to) == (Kind.FETCHED, FEED, None)
    assert came.url == here.at(f"/{len(statuses)}")


def test_a_feed_does_not_move_to_an_error() -> None:
    came, _ = led(301, last=says(b"", "404 Not Found"))
    assert (came.kind, came.moved_to, came.hops) == (Kind.NOT_FOUND, None, 1)


def test_what_is_gone_ends_a_feed_unless_the_way_there_is_temporary() -> None:
    gone = says(b"", "410 Gone")
    assert led(301, last=gone)[0].kind is Kind.GONE
    came, _ = led(301, 302, last=gone)
    assert (came.kind, came.status) == (Kind.NOT_FOUND, 410)


def test_at_most_five_redirects_are_followed() -> None:
    came, here = led(*[302] * 6)
    assert (came.kind, came.hops) == (Kind.BAD_REDIRECT, 5)
    assert "more than 5 times" in came.error
    assert here.site.paths == ["/0", "/1", "/2", "/3", "/4", "/5"]


@pytest.mark.parametrize(
    ("places", "paths"),
    [(["/0"], ["/0"]), ([""], ["/0"]), (["/1", "/0#again"], ["/0", "/1"]),
     (["/1", "/2", "/1"], ["/0", "/1", "/2"])],
)  # fmt: skip
def test_a_circle_is_left_at_once(places: list[str], paths: list[str]) -> None:
    async def ask() -> tuple[Fetched, list[str]]:
        pages = {f"/{n}": moved(301, place) for n, place in enumerate(places)}
        async with visited(pages) as here:
            return await here.fetch("/0"), here.site.paths

    came, seen = run(ask)
    assert (came.kind, came.moved_to) == (Kind.BAD_REDIRECT, None)
    assert seen == paths


@pytest.mark.parametrize(
    "page",
    [
        says(FEED, "301 Moved Permanently"),
        moved(301, "http://[::zz]/"),
        moved(301, "/" + "x" * 5_000),
    ],
    ids=["no-place", "no-address", "too-long"],
)
def test_a_redirect_to_nowhere_is_told(page: Answer) -> None:
    came = fetch(page)
    assert came.kind is Kind.BAD_REDIRECT
    assert (came.body, came.moved_to) == (b"", None)


@pytest.mark.parametrize(
    ("place", "path"),
    [(b"next", "/a/next"), (b"../next?x=1", "/next?x=1"), (b"?page=2", "/a/b?page=2"),
     ("/f\u00e9".encode(), "/f%C3%A9"), (b"/f\xe9", "/f%E9"), (b"/with space", "/with%20space"),
     (b"  /next  ", "/next")],
)  # fmt: skip
def test_where_a_redirect_leads_may_be_written_in_many_ways(place: bytes, path: str) -> None:
    async def ask() -> list[str]:
        page = raw(b"HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: " + place + b"\r\n\r\n")
        async with visited({"/a/b": page}) as here:
            here.pages["/a/b?page=2"] = says(FEED)
            await here.fetch("/a/b")
            return here.site.paths

    assert run(ask) == ["/a/b", path]


@pytest.mark.parametrize(
    "place",
    ["http://127.0.0.2:{port}/x", "//127.0.0.2:{port}/x", "http://inside.example:{port}/x",
     "http://169.254.169.254/latest/meta-data", "http://[::ffff:127.0.0.2]:{port}/x",
     "http://100.64.0.1/", "http://127.0.0.1:99999999/", "http://[64:ff9b::7f00:2]:{port}/",
     "file:/etc/passwd", "ftp://a/x",
     f"http://ann:{SECRET}@127.0.0.1:{{port}}/x"],
)  # fmt: skip
@pytest.mark.parametrize("hops_before", [0, 2])
def test_a_redirect_into_a_private_network_is_refused(place: str, hops_before: int) -> None:
    async def ask() -> tuple[Fetched, int]:
        names = Names(inside_example=[["127.0.0.2"]])
        async with visited({}, names=names) as here:
            port = here.site.port
            for hop in range(hops_before):
                here.pages[f"/{hop}"] = moved(301, f"/{hop + 1}")
            here.pages[f"/{hops_before}"] = moved(301, place.format(port=port))
            async with site(says(b"private"), "127.0.0.2", port) as inside:
                return await here.fetch("/0"), inside.connections

    came, connections = run(ask)
    assert (came.kind, came.body, came.moved_to) == (Kind.REFUSED, b"", None)
    assert connections == 0
    assert SECRET not in came.error


def test_a_name_that_leads_inside_the_second_time_is_not_followed() -> None:
    async def ask() -> tuple[list[Kind], int]:
        names = Names(feeds_example=[["127.0.0.1"], ["127.0.0.2"]])
        async with (
            visited({"/feed": says(FEED)}, names=names) as here,
            site(says(b"private"), "127.0.0.2", here.site.port) as inside,
        ):
            url = here.at("/feed", "feeds.example")
            kinds = [(await here.fetcher.fetch(url)).kind for _ in range(2)]
            return kinds, inside.connections

    assert run(ask) == ([Kind.FETCHED, Kind.REFUSED], 0)


def test_a_redirect_from_https_to_http_is_followed_and_noted(tmp_path: Path) -> None:
    serving, asking = certificate_for("feeds.example", tmp_path)

    async def ask() -> tuple[Fetched, Fetched]:
        names = Names(feeds_example=[["127.0.0.1"]])
        async with visited({"/feed": says(FEED)}, names=names, verify=asking) as here:
            async with site(moved(301, here.at("/feed")), tls=serving) as safe:
                down = await here.fetcher.fetch(f"https://feeds.example:{safe.port}/feed")
            return down, await here.fetch("/feed")

    down, plain = run(ask)
    assert (down.kind, down.downgraded, plain.downgraded) == (Kind.FETCHED, True, False)
    assert down.moved_to == plain.url


def test_each_further_hop_may_be_paced_before_it_is_asked() -> None:
    async def ask() -> tuple[list[Any], Visited]:
        seen: list[Any] = []
        pages = {"/0": moved(301, "/1"), "/1": moved(302, "/2"), "/2": says(FEED)}
        async with visited(pages) as here:

            async def note(url: str) -> None:
                seen.append((url, len(here.site.heads)))

            await here.fetch("/0", before_hop=note)
            return seen, here

    seen, here = run(ask)
    assert seen == [(here.at("/1"), 1), (here.at("/2"), 2)]


# --- sites that cannot be reached


def test_a_name_that_is_unknown_is_told_from_a_site_that_is_down() -> None:
    async def resolve(host: str, _port: int) -> list[str]:
        if host == "nowhere.example":
            raise OSError("no such name")
        return [] if host == "empty.example" else ["127.0.0.1"]

    async def ask() -> list[Fetched]:
        async with site(says()) as one:
            port = one.port  # nobody is there any more below
        allowed = Allowed(["127.0.0.1"])
        async with Fetcher(allowed, resolve=resolve, verify=TRUSTS_NOBODY) as fetcher:
            hosts = ("nowhere.example", "empty.example", "down.example")
            return [await fetcher.fetch(f"http://{host}:{port}/") for host in hosts]

    came = run(ask)
    assert [each.kind for each in came] == [Kind.DNS, Kind.DNS, Kind.NETWORK]
    assert "nowhere.example" in came[0].error


def test_a_name_that_is_not_looked_up_in_time_is_not_waited_for() -> None:
    async def resolve(_host: str, _port: int) -> list[str]:
        await asyncio.Event().wait()
        raise AssertionError

    async def ask() -> Fetched:
        limits = FetchLimits(connect_s=0.05)
        async with Fetcher(
            Allowed(), resolve=resolve, limits=limits, verify=TRUSTS_NOBODY
        ) as fetcher:
            return await fetcher.fetch("http://slow.example/")

    assert run(ask).kind is Kind.TIMED_OUT


def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path) -> None:
    serving, asking = certificate_for("feeds.example", tmp_path)

    async def ask() -> list[Fetched]:
        names = Names(feeds_example=[["127.0.0.1"]], other_example=[["127.0.0.1"]])
        allowed = Allowed(["127.0.0.1"])
        async with (
            site(says(FEED), tls=serving) as safe,
            no_tls() as port,
            Fetcher(allowed, resolve=names, verify=asking) as fetcher,
        ):
            return [
                await fetcher.fetch(f"https://feeds.example:{safe.port}/"),
                await fetcher.fetch(f"https://other.example:{safe.port}/"),
                await fetcher.fetch(f"https://feeds.example:{port}/"),
            ]

    good, wrong_name, not_safe = run(ask)
    assert good.kind is Kind.FETCHED
    assert wrong_name.kind is not_safe.kind is Kind.TLS
    assert "other.example" in wrong_name.error


@asynccontextmanager
async def no_tls() -> AsyncIterator[int]:
    """Answers plain HTTP to whatever comes."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    "url",
    ["", "feeds.example/rss", "ftp://feeds.example/rss", "http://", "http://[::1/", "http://10.0.0.1/",
     "http://127.0.0.1/", "http://a.example:0/", f"https://ann:{SECRET}@feeds.example/",
     f"not an address, token={SECRET}"],
)  # fmt: skip
def test_what_can_never_be_asked_is_refused_at_once(url: str) -> None:
    async def ask() -> Fetched:
        async with Fetcher(Allowed(), verify=TRUSTS_NOBODY) as fetcher:
            return await fetcher.fetch(url)

    came = run(ask)
    assert came.kind is Kind.REFUSED
    assert came.error
    assert SECRET not in came.error


# --- what is not told


@pytest.mark.parametrize(
    "page",
    [says(b"", "404 Not Found"), says(b"", "429 Busy"), raw(b"no HTTP"), raw(CHUNKED + b"zz"),
     never_ends("200 OK", b"", bytes(65_536)), moved(301, f"/feed?token={SECRET}"),
     moved(301, f"/{SECRET}/nowhere"), moved(302, f"ftp://a.example/{SECRET}"),
     stays_silent(), says(FEED)],
)  # fmt: skip
def test_no_part_of_an_address_but_its_host_is_ever_shown(page: Answer) -> None:
    async def ask() -> Fetched:
        limits = FetchLimits(body_bytes=100_000, piece_s=0.1)
        async with visited({"/feed": page}, limits=limits) as here:
            return await here.fetch(f"/feed?token={SECRET}")

    came = run(ask)
    assert SECRET not in came.error
    assert SECRET not in repr(came)
    assert SECRET not in str(came)
