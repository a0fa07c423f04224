"""The program reads lists: what it counts, sees and tells, with yt-dlp itself and over HTTP."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yt_dlp.utils import InAdvancePagedList, OnDemandPagedList

from headway.apps.media.fetcher import values
from headway.apps.media.fetcher.counting import total_of
from headway.apps.media.fetcher.listing import flat, list_entries
from headway.apps.media.fetcher.protocol import FailureKind, Order, Task
from tests.media.fetcher_kit import visit
from tests.media.video_site import NEWEST, VideoSite


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite() as site:
        yield site


def test_a_list_of_999_videos_is_told_with_one_request(site: VideoSite) -> None:
    site.collection("many", 999)
    ran = visit(site, Task.LIST, site.collection_url("many"))
    assert ran.result == {"count": 999, "next": None, "title": "Collection many", "uploader": None}
    assert [each["position"] for each in ran.entries] == list(range(999))
    assert len({each["key"] for each in ran.entries}) == 999
    assert ran.entries[0] == {
        "key": ran.entries[0]["key"], "url": site.media_url("many-999"),
        "title": "Video many-999", "duration_s": 90.0, "published_at": NEWEST, "views": None,
        "uploader": None, "position": 0,
    }  # fmt: skip
    assert [(each.path, each.headers["User-Agent"]) for each in site.log] == [
        ("/c/many.rss", "Visitor/1.0")
    ]


def test_a_list_is_read_on_from_where_it_was_left(site: VideoSite) -> None:
    site.collection("few", 5, pages=True)
    ran = visit(site, Task.LIST, site.collection_url("few"), start=3, referer="http://from.test/")
    assert [(each["position"], each["url"]) for each in ran.entries] == [
        (3, site.watch_url("few-2")),
        (4, site.watch_url("few-1")),
    ]
    assert site.log[0].headers["Referer"] == "http://from.test/"


def test_a_list_is_counted_with_one_request(site: VideoSite) -> None:
    site.collection("many", 999)
    moved = site.redirect("/moved", site.collection_url("many"))
    ran = visit(site, Task.COUNT, moved)
    assert ran.result == {
        "total": 999, "exact": True, "how": "list", "at_least": 999, "title": "Collection many",
    }  # fmt: skip
    # yt-dlp asks again for where a redirect leads to.
    assert [each.path for each in site.log] == ["/moved", "/c/many.rss", "/c/many.rss"]


def test_a_list_is_looked_at(site: VideoSite) -> None:
    site.collection("many", 30)
    seen = visit(site, Task.LOOK, site.collection_url("many")).result
    assert (seen["kind"], seen["title"], seen["total"]) == ("playlist", "Collection many", 30)
    assert len(seen["entries"]) == 10


def test_a_video_is_looked_at(site: VideoSite) -> None:
    site.video("one", title="A <video> & more")
    seen = visit(site, Task.LOOK, site.watch_url("one")).result
    assert (seen["kind"], seen["id"], seen["total"]) == ("video", "one", 1)
    assert (seen["title"], seen["uploader"]) == ("A <video> & more", "An uploader")
    assert seen["thumbnail"] == f"{site.url}/thumb/one.jpg"
    assert not site.asked("/media/")


def test_a_page_without_a_video_is_unsupported_whatever_it_says(site: VideoSite) -> None:
    url = site.page("/about", "<html><title>HTTP Error 429: private video</title></html>")
    assert visit(site, Task.LOOK, url).failure.kind is FailureKind.UNSUPPORTED


# --- lists in the forms that yt-dlp has, without a site


def pages(total: int, size: int, asked: list[int]) -> Any:
    def page(number: int) -> Iterator[dict[str, Any]]:
        asked.append(number)
        for each in range(number * size, min(total, (number + 1) * size)):
            yield {"_type": "url", "url": f"https://site.test/{each}", "title": f"Video {each}"}

    return page


def in_advance(total: int, size: int, asked: list[int]) -> InAdvancePagedList:
    return InAdvancePagedList(pages(total, size, asked), math.ceil(total / size), size)


def on_demand(total: int, size: int, asked: list[int]) -> OnDemandPagedList:
    return OnDemandPagedList(pages(total, size, asked), size)


@pytest.mark.parametrize("total", [0, 1, 10, 11, 95, 100])
def test_pages_that_are_known_in_advance_are_counted_by_the_last_one(total: int) -> None:
    asked: list[int] = []
    counted = total_of({"_type": "playlist", "entries": in_advance(total, 10, asked)})
    assert (counted["total"], counted["how"], counted["exact"]) == (total, "pages", True)
    assert len(asked) <= 1


def test_a_number_that_the_site_says_costs_nothing() -> None:
    asked: list[int] = []
    raw = {"_type": "playlist", "playlist_count": 77, "entries": in_advance(77, 10, asked)}
    assert total_of(raw)["how"] == "field"
    assert asked == []


def test_pages_on_demand_are_counted_if_one_is_all() -> None:
    asked: list[int] = []
    assert total_of({"_type": "playlist", "entries": on_demand(7, 10, asked)})["total"] == 7
    full = total_of({"_type": "playlist", "entries": on_demand(30, 10, asked)})
    assert (full["total"], full["exact"], full["at_least"]) == (None, False, 10)
    assert asked == [0, 0]


def test_a_list_without_an_end_is_not_counted() -> None:
    endless = ({"url": "https://site.test"} for _ in iter(int, 1))
    counted = total_of({"_type": "playlist", "entries": endless})
    assert (counted["total"], counted["how"]) == (None, "unknown")


class Opened:
    """Stands for yt-dlp when it has read a page."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw

    def extract_info(self, url: str, **_: Any) -> dict[str, Any]:
        return self.raw


def read(entries: Any, **more: Any) -> tuple[list[int], int | None]:
    """The positions that were told, and where it goes on."""
    told: list[dict[str, Any]] = []
    made = Order(task=Task.LIST, url="https://site.test/list", user_agent="x", **more)
    raw = {"_type": "playlist", "title": "T", "entries": entries}
    result = list_entries(Opened(raw), made, told.append)
    return [each["position"] for each in told], result["next"]


@pytest.mark.parametrize("kind", [in_advance, on_demand])
def test_of_a_list_in_pages_only_those_are_asked_for_that_are_needed(kind: Any) -> None:
    asked: list[int] = []
    positions, following = read(kind(100, 10, asked), start=40, most=20)
    assert (positions, following) == (list(range(40, 60)), 60)
    assert asked == [4, 5]


@pytest.mark.parametrize("kind", [in_advance, on_demand])
def test_a_list_in_pages_has_an_end(kind: Any) -> None:
    assert read(kind(25, 10, []), start=20, most=10) == ([20, 21, 22, 23, 24], None)


def entries_on(count: int) -> Iterator[dict[str, Any]]:
    for each in range(count):
        yield {"_type": "url", "url": f"https://site.test/{each}"}


def test_a_list_that_comes_one_by_one_is_read_further_while_there_is_time() -> None:
    assert read(entries_on(10_000), most=10) == (list(range(100)), 100)
    assert read(entries_on(105), start=100, most=10) == ([100, 101, 102, 103, 104], None)


def test_a_list_that_takes_too_long_still_gets_further_each_time() -> None:
    assert read(entries_on(100), start=7, most=10, budget_s=0.0) == ([7], 8)


def test_the_cursor_walks_through_any_list_without_a_gap() -> None:
    for make in (lambda: entries_on(57), lambda: on_demand(57, 10, []), lambda: [*entries_on(57)]):
        seen, cursor = [], 0
        while cursor is not None:
            positions, cursor = read(make(), start=cursor, most=5)
            seen += positions
        assert seen == list(range(57))


# --- what pages say is not believed


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.lists(st.text(), max_size=2), st.dictionaries(st.text(), st.text(), max_size=2),
    st.sampled_from(["99999-01-01", "999990101", "20261332", 10**400, -5, "\ud800", "\x1b[2J"]),
)  # fmt: skip


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("title", "duration", "timestamp", "upload_date", "view_count", "uploader", "id",
             "ie_key", "webpage_url", "_type", "channel"),
            ANYTHING,
        ),
    )
)  # fmt: skip
def test_no_entry_breaks_a_list(entry: dict[str, Any]) -> None:
    line = flat(None, entry | {"url": "https://site.test/v"}, 0)
    assert line is not None
    for name in ("title", "uploader"):
        found = line[name] or "-"
        assert 0 < len(found) <= 500
        assert not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in found)
    for name in ("duration_s", "published_at", "views"):
        assert line[name] is None or 0 <= line[name] <= 2**53
    str(line).encode()


@given(ANYTHING)
def test_an_address_that_is_none_is_left_out(url: Any) -> None:
    line = flat(None, {"_type": "url", "url": url}, 0)
    assert line is None or line["url"].startswith(("http://", "https://"))


def test_a_key_is_of_the_site_where_it_has_ids_and_of_the_address_elsewhere() -> None:
    known = {"_type": "url", "url": "https://a.test/1", "ie_key": "Youtube", "id": "abc"}
    assert (flat(None, known, 0) or {})["key"] == "youtube:abc"
    plain = {"_type": "url", "url": "https://a.test/1"}
    other = {"_type": "url", "url": "https://a.test/2", "ie_key": "Generic", "id": "abc"}
    keys = {(flat(None, each, 0) or {})["key"] for each in (plain, other)}
    assert len(keys) == 2
    assert all(key.startswith("url:") and len(key) == 36 for key in keys)


@given(st.recursive(ANYTHING, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_whatever_a_page_says_can_be_written_as_json(value: Any) -> None:
    json.dumps(values.plain(value), allow_nan=False).encode("ascii")


def test_hostile_titles_arrive_as_one_harmless_line(site: VideoSite) -> None:
    made = site.collection("bad", 1)
    made.title = "Line\none\u202e \x85 end"
    made.videos[0].title = "../../etc/passwd\t$(touch x) %(id)s \u2066" + "y" * 900
    ran = visit(site, Task.LIST, site.collection_url("bad"))
    assert ran.result["title"] == "Line one end"
    assert ran.entries[0]["title"].startswith("../../etc/passwd $(touch x) %(id)s yyy")
    assert len(ran.entries[0]["title"]) == 500
