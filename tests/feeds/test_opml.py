"""Lists of feeds come in from other readers, and go out so that nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.feeds.opml import (
    MAX_BYTES,
    MAX_FOLDERS_DEEP,
    MAX_OUTLINES,
    BadOpml,
    Subscription,
    read_opml,
    write_opml,
)


def opml(body: str, head: str = "", version: str = "2.0", before: str = "") -> bytes:
    return (
        f"{before}<opml version='{version}'><head>{head}</head><body>{body}</body></opml>".encode()
    )


def urls_of(document: bytes) -> list[str]:
    return [one.url for one in read_opml(document).subscriptions]


@pytest.mark.parametrize("version", ["1.0", "1.1", "2.0"])
def test_nested_folders_are_kept(version: str) -> None:
    found = read_opml(
        opml(
            "<outline text='News'><outline title='Tech &amp; more'>"
            "<outline type='rss' text='One' xmlUrl='https://one.example/feed?a=1&amp;b=2' "
            "htmlUrl='https://one.example/'/></outline>"
            "<outline text='Two' title='The second' xmlUrl='https://two.example/feed'/></outline>"
            "<outline text='Three' xmlUrl='https://three.example/feed'/>",
            head="<title>Mine</title><ownerName>Ann</ownerName>",
            version=version,
        )
    )
    assert found.title == "Mine"
    assert found.subscriptions == (
        Subscription(
            "https://one.example/feed?a=1&b=2", "One", "https://one.example/",
            ("News", "Tech & more"),
        ),
        Subscription("https://two.example/feed", "The second", None, ("News",)),
        Subscription("https://three.example/feed", "Three", None, ()),
    )  # fmt: skip


def test_a_feed_without_a_title_is_called_by_its_host() -> None:
    (one,) = read_opml(opml("<outline text=' ' xmlUrl='https://one.example/feed'/>")).subscriptions
    assert one.title == "one.example"


def test_a_folder_without_a_name_is_none() -> None:
    (one,) = read_opml(
        opml(
            "<outline><outline text='a'><outline xmlUrl='https://a.example/'/></outline></outline>"
        )
    ).subscriptions
    assert one.folders == ("a",)


def test_a_feed_that_is_named_again_counts_where_it_was_first() -> None:
    feed = "<outline text='{}' xmlUrl='https://one.example/feed'/>"
    found = read_opml(opml(f"<outline text='a'>{feed.format('x')}</outline>{feed.format('y')}"))
    assert [(one.title, one.folders) for one in found.subscriptions] == [("x", ("a",))]
    assert found.duplicates == 1


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("feed://one.example/feed", "http://one.example/feed"),
        ("feed:https://one.example/feed", "https://one.example/feed"),
        ("feed://https://one.example/feed", "https://one.example/feed"),
        (" https://one.example/a b ", "https://one.example/a%20b"),
    ],
)
def test_odd_addresses_are_understood(said: str, url: str) -> None:
    assert urls_of(opml(f"<outline xmlURL='{said}'/>")) == [url]


@pytest.mark.parametrize(
    "said", ["javascript:alert(1)", "file:/etc/passwd", "/feed", "one.example"]
)
def test_what_is_no_address_of_the_web_is_skipped_and_named(said: str) -> None:
    found = read_opml(opml(f"<outline xmlUrl='{said}'/><outline xmlUrl='https://a.example/'/>"))
    assert [one.url for one in found.subscriptions] == ["https://a.example/"]
    assert found.skipped == (said,)


def test_an_address_with_a_bare_ampersand_is_repaired() -> None:
    assert urls_of(opml("<outline xmlUrl='https://one.example/?a=1&b=2'/>")) == [
        "https://one.example/?a=1&b=2"
    ]


@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16", "windows-1251"])
def test_a_list_in_another_charset_is_read(charset: str) -> None:
    before = "" if charset == "utf-16" else f"<?xml version='1.0' encoding='{charset}'?>"
    document = opml("<outline text='Новости' xmlUrl='https://a.example/'/>", before=before)
    (one,) = read_opml(document.decode().encode(charset)).subscriptions
    assert one.title == "Новости"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"", "no element"),
        (b"hello", "no element"),
        (b"<html><body>Sign in</body></html>", "begins with <html>"),
        (b"<rss version='2.0'/>", "begins with <rss>"),
        (b"<opml><body><outline>", "broken in line 1"),
        (b"<opml><body></opml></body>", "broken in line 1"),
        (opml("", before="<!DOCTYPE opml [<!ENTITY a 'b'>]>"), "declares entities"),
        (opml("", before="<!DOCTYPE x [<!ENTITY % a SYSTEM 'file:/x'>]>"), "declares entities"),
        (b" " * (MAX_BYTES + 1), "Split it"),
        (opml("<outline/>" * (MAX_OUTLINES + 1)), "over 10,000 outlines"),
        (opml("<outline>" * 100_000), "over 10,000 outlines"),
    ],
)
def test_a_bad_list_is_refused_with_the_reason(document: bytes, reason: str) -> None:
    with pytest.raises(BadOpml, match=reason):
        read_opml(document)


def test_folders_are_only_so_deep() -> None:
    document = opml(
        "<outline text='f'>" * 5_000
        + "<outline xmlUrl='https://a.example/'/>"
        + "</outline>" * 5_000
    )
    (one,) = read_opml(document).subscriptions
    assert one.folders == ("f",) * MAX_FOLDERS_DEEP


def test_an_empty_list_is_a_list() -> None:
    assert read_opml(opml("")).subscriptions == ()
    assert read_opml(write_opml([])).subscriptions == ()


def test_a_written_list_says_what_it_is() -> None:
    document = write_opml([], title="Ann's <feeds>", at=datetime(2025, 6, 3, tzinfo=UTC))
    assert document.startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<opml version=\"2.0\">")
    assert b"<dateCreated>Tue, 03 Jun 2025 00:00:00 +0000</dateCreated>" in document
    assert read_opml(document).title == "Ann's <feeds>"


NAMES = st.text(min_size=1, max_size=20).map(
    lambda text: " ".join("".join(one for one in text if one.isprintable()).split())
).filter(bool)  # fmt: skip
URLS = st.builds(
    lambda host, path: f"https://{host}.example/{path}",
    st.sampled_from(["a", "b", "münchen", "例子"]),
    st.text("abc&=?<>\"'%2F/é你😀#;", max_size=15),
)
SUBSCRIPTIONS = st.lists(
    st.builds(Subscription, URLS, NAMES, st.none() | URLS, st.lists(NAMES, max_size=3).map(tuple)),
    unique_by=lambda one: one.url,
    max_size=12,
)


@given(SUBSCRIPTIONS)
def test_what_is_written_is_read_again(subscriptions: list[Subscription]) -> None:
    found = read_opml(write_opml(subscriptions))
    assert set(found.subscriptions) == set(subscriptions)
    assert (found.duplicates, found.skipped) == (0, ())


@given(SUBSCRIPTIONS)
def test_writing_again_gives_the_same_bytes(subscriptions: list[Subscription]) -> None:
    once = write_opml(subscriptions)
    assert write_opml(read_opml(once).subscriptions) == once


@given(st.text(max_size=50), st.text(max_size=50))
def test_any_name_can_be_written(title: str, folder: str) -> None:
    document = write_opml([Subscription("https://a.example/", title, None, (folder,))], title=title)
    (one,) = read_opml(document).subscriptions
    assert one.title
