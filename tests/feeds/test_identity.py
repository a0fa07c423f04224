"""The same entry is found again, and two entries are never taken for one."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headway.apps.feeds.identity import (
    MAX_IDENTITY,
    distinct,
    identity_of,
    identity_of_entry,
    normal_link,
)
from headway.apps.feeds.parsing import Enclosure, ParsedEntry
from tests.feeds.documents import item, parsed, rss

TEXTS = st.none() | st.text(max_size=20)
SOME = st.text(min_size=1, max_size=20).filter(str.strip)
PATHS = st.text("abcAB019/-_.~%25", max_size=12).map(lambda path: f"/{path}")
LINKS = st.builds(
    lambda scheme, host, port, path, query, fragment: (
        f"{scheme}://{host}{port}{path}{query}{fragment}"
    ),
    st.sampled_from(["http", "https", "HTTPS"]),
    st.sampled_from(["example.com", "Example.COM", "example.com.", "[::1]", "münchen.example"]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    st.just("") | PATHS,
    st.sampled_from(["", "?", "?a=1", "?b=2&a=1", "?utm_source=x", "?a=1&utm_medium=y&fbclid=z"]),
    st.sampled_from(["", "#", "#top"]),
)


@given(SOME, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS)
def test_with_a_guid_nothing_else_matters(
    guid: str, link: str | None, title: str | None, content: str | None, new: str | None,
    other: str | None,
) -> None:  # fmt: skip
    assert identity_of(guid=guid, link=link, title=title, content=content) == identity_of(
        guid=f" {guid}\n", link=new, title=other, content=new
    )


@given(LINKS, TEXTS, TEXTS, TEXTS)
def test_without_a_guid_the_link_is_what_counts(
    link: str, title: str | None, content: str | None, new: str | None
) -> None:
    assert identity_of(guid=" ", link=link, title=title, content=content) == identity_of(
        link=link, title=new, content=new
    )


@given(SOME, SOME)
def test_other_guids_are_other_entries(one: str, other: str) -> None:
    assume(one.strip() != other.strip())
    assert identity_of(guid=one) != identity_of(guid=other)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_without_guid_and_link_the_text_is_what_counts(
    title: str | None, content: str | None, other_title: str | None, other_content: str | None
) -> None:
    def words(text: str | None) -> list[str]:
        return (text or "").split()

    same = words(title) == words(other_title) and words(content) == words(other_content)
    one = identity_of(title=title, content=content)
    assert (one == identity_of(title=other_title, content=other_content)) is same


@given(st.text(max_size=5_000), st.text(max_size=5_000))
def test_an_identity_is_short_enough_to_be_indexed(guid: str, link: str) -> None:
    assert len(identity_of(guid=guid, link=link)) <= MAX_IDENTITY


def test_a_guid_link_and_hash_are_never_taken_for_each_other() -> None:
    link = identity_of(link="https://example.com/1")
    text = identity_of(title="x")
    long = identity_of(guid="g" * 1_000)
    for identity in (link, text, long):
        assert identity_of(guid=identity) != identity
        assert identity_of(guid=identity.partition(":")[2]) != identity
    assert long != identity_of(guid="g" * 1_001)


@given(LINKS)
def test_normalising_twice_changes_nothing(link: str) -> None:
    once = normal_link(link)
    assert normal_link(once) == once


@given(LINKS, st.sampled_from(["utm_source=rss", "fbclid=1", "gclid=2", "utm_id"]))
def test_where_a_reader_came_from_does_not_matter(link: str, tracking: str) -> None:
    address, mark, fragment = link.partition("#")
    tracked = f"{address}{'&' if '?' in address else '?'}{tracking}{mark}{fragment}"
    assert normal_link(tracked) == normal_link(link)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.com/a", "https://EXAMPLE.com:443/a"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com/%e4", "https://example.com/%E4"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        (" https://example.com/a\n", "https://example.com/a?"),
    ],
)
def test_links_to_the_same_place(one: str, other: str) -> None:
    assert normal_link(one) == normal_link(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://example.com/a", "https://example.com/A"),
        ("https://example.com/a", "https://example.com/a/"),
        ("https://example.com/?p=1", "https://example.com/?p=2"),
        ("https://example.com/news#1", "https://example.com/news#2"),
        ("https://example.com:8080/", "https://example.com/"),
        ("https://example.com/?a=1&b=2", "https://example.com/?b=2&a=1"),
    ],
)
def test_links_to_other_places(one: str, other: str) -> None:
    assert normal_link(one) != normal_link(other)


@pytest.mark.parametrize("link", ["", "no link", "http://[half", "http://a:port/", "mailto:a@b"])
def test_what_is_no_link_is_left_as_it_is(link: str) -> None:
    assert normal_link(link) == link


def test_of_two_entries_with_one_identity_the_first_wins() -> None:
    document = rss(
        item("<guid>1</guid><title>first</title>")
        + item("<guid>2</guid><title>other</title>")
        + item("<guid> 1 </guid><title>second</title>")
    )
    found = distinct(parsed(document).entries)
    assert [entry.title for entry in found.values()] == ["first", "other"]


def test_an_episode_without_guid_and_link_is_told_by_its_file() -> None:
    file = (Enclosure("https://example.com/1.mp3"),)
    before = ParsedEntry(title="Episode", enclosures=file)
    after = ParsedEntry(title="Episode 1, corrected", enclosures=file)
    assert identity_of_entry(before) == identity_of_entry(after)


def test_the_identity_of_an_entry_stays_when_its_feed_moves() -> None:
    document = rss(item("<guid>7</guid>")).encode()
    old, new = (
        list(distinct(parsed(document, url=url).entries))
        for url in ("http://example.com/feed", "https://new.example.com/rss.xml")
    )
    assert old == new
