"""From what somebody types in, a page as a rule, to the feeds behind it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.feeds.discovery import (
    MAX_CANDIDATES,
    common_addresses,
    feeds_named_in,
)
from headway.apps.feeds.parsing import Candidate

URL = "https://example.com/blog/post.html"


def urls_in(page: str, url: str = URL) -> list[str]:
    return [found.url for found in feeds_named_in(page.encode(), url)]


def link(href: str, type: str = "application/rss+xml", more: str = "rel=alternate") -> str:
    return f"<link {more} type='{type}' href='{href}'>"


def test_feeds_are_found_in_the_order_of_the_page() -> None:
    page = (
        "<!DOCTYPE html><html><head><link rel=stylesheet href=x.css>"
        "<LINK REL='Alternate' TYPE='application/RSS+xml; charset=utf-8' TITLE='All &amp; more'"
        " HREF='/all'>"
        "<link rel='alternate home' type='application/atom+xml' href='atom.xml'/>"
        "<link rel=alternate type=application/feed+json "
        "href='//cdn.example.com/feed.json?a=1&amp;b=2'>"
    )
    assert feeds_named_in(page.encode(), URL) == (
        Candidate("https://example.com/all", "All & more", "application/rss+xml"),
        Candidate("https://example.com/blog/atom.xml", None, "application/atom+xml"),
        Candidate("https://cdn.example.com/feed.json?a=1&b=2", None, "application/feed+json"),
    )


def test_the_first_base_of_the_page_counts() -> None:
    page = f"<base href='/other/'><base href='/wrong/'>{link('feed')}"
    assert urls_in(page) == ["https://example.com/other/feed"]


@pytest.mark.parametrize(
    "markup",
    [
        link("/feed", more="rel=stylesheet"),
        link("/feed", type="text/html"),
        link("/feed", type="application/json"),
        link("javascript:alert(1)"),
        link("http://[half"),
        link(""),
        f"<!-- {link('/feed')} -->",
        f'<script>document.write("{link("/feed")}")</script>',
        "<link rel=alternate type=application/rss+xml>",
    ],
)
def test_other_links_are_no_feeds(markup: str) -> None:
    assert urls_in(markup) == []


def test_a_feed_that_is_named_twice_is_one() -> None:
    assert urls_in(link("/feed") + link("https://example.com/feed")) == ["https://example.com/feed"]


def test_only_so_many_candidates_are_kept() -> None:
    assert len(urls_in("".join(link(f"/{number}") for number in range(500)))) == MAX_CANDIDATES


@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "windows-1251"])
def test_a_page_in_another_charset_is_read(charset: str) -> None:
    page = "<title>Привет, мир</title>" + link("/feed", more="rel=alternate title='Новости'")
    (found,) = feeds_named_in(page.encode(charset), URL, f"text/html; charset={charset}")
    assert (found.url, found.title) == ("https://example.com/feed", "Новости")


@given(st.lists(st.sampled_from(["<", ">", "<link ", "rel=alternate ", "type=", "<!--", "-->", "'",
    "application/rss+xml ", "href=", "<base ", "//", "<script>", "<![", "\0", "&#0;", "&#xD800;"]),
    max_size=30).map("".join))  # fmt: skip
def test_no_page_is_too_odd(page: str) -> None:
    assert all(url.startswith("http") for url in urls_in(page))


def test_common_addresses_are_tried_beside_the_page_and_at_the_top() -> None:
    assert common_addresses("https://example.com:8080/?q=1#x") == tuple(
        f"https://example.com:8080/{path}"
        for path in ("feed", "rss.xml", "atom.xml", "index.xml", "feed.xml", "rss")
    )
    for page in ("https://example.com/blog", "https://example.com/blog/", URL):
        tried = common_addresses(page)
        assert tried[0] == "https://example.com/blog/feed"
        assert tried[6] == "https://example.com/feed"
        assert len(tried) == 12
