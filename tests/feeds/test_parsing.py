"""A document becomes a feed, whatever state it is in, or is refused with a reason."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.feeds.parsing import (
    Enclosure,
    EntitiesDeclared,
    FeedTooLarge,
    FeedUnreadable,
    NotAFeed,
)
from headway.apps.feeds.parsing import reading as reading_module
from headway.apps.feeds.parsing.limits import MAX_ENTRIES
from tests.feeds.documents import atom, described, entry_of, item, only, parsed, rss

BILLION_LAUGHS = "<!DOCTYPE rss [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {new} '{f'&{old};' * 10}'>" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


# The formats


def test_an_rss_feed_is_read_whole() -> None:
    feed = parsed(
        rss(
            channel="<link>https://example.com/</link><description>All &lt;b&gt;news&lt;/b&gt;"
            "</description><language>en-gb</language><ttl>90</ttl>"
            "<skipHours><hour>0</hour><hour>13</hour><hour>24</hour><hour>99</hour></skipHours>"
            "<skipDays><day>Sunday</day><day>Someday</day></skipDays>"
            "<atom:link rel='self' href='https://example.com/feed.xml'/>"
            "<atom:link rel='hub' href='https://hub.example.net/'/>",
            items=item(
                "<guid isPermaLink='false'> id-1 </guid><link>https://example.com/1?a=1&amp;b=2</link>"
                "<title>Fish &amp;amp; chips</title><dc:creator>Ann</dc:creator>"
                "<pubDate>Tue, 03 Jun 2025 11:39:21 +0200</pubDate>"
                "<category>food</category><category>food</category><category>sea</category>"
                "<description>short</description><content:encoded>&lt;p&gt;long&lt;/p&gt;"
                "</content:encoded>"
                "<enclosure url='/1.mp3' type='audio/mpeg' length='1234'/>"
            ),
        )
    )
    assert (feed.format, feed.title, feed.description) == ("rss20", "A site", "All news")
    assert feed.site_link == "https://example.com/"
    assert (feed.language, feed.ttl_minutes) == ("en-gb", 90)
    assert feed.skip_hours == {0, 13}
    assert feed.skip_days == {6}
    assert feed.problems == ()
    entry = only(feed.entries)
    assert entry.guid == "id-1"
    assert entry.link == "https://example.com/1?a=1&b=2"
    assert entry.title == "Fish & chips"
    assert entry.author == "Ann"
    assert entry.published == datetime(2025, 6, 3, 9, 39, 21, tzinfo=UTC)
    assert (entry.summary, entry.content) == ("short", "<p>long</p>")
    assert entry.enclosures == (Enclosure("https://example.com/1.mp3", "audio/mpeg", 1234),)
    assert entry.categories == ("food", "sea")


def test_an_atom_feed_is_read_whole() -> None:
    feed = parsed(
        atom(
            feed="<link href='https://example.com/'/><link rel='self' href='/feed.xml'/>"
            "<author><name>Ann</name></author>",
            entries="<entry><id>tag:1</id>"
            "<title type='html'>Fish &amp;amp; &lt;b>chips&lt;/b></title>"
            "<link href='https://example.com/1'/>"
            "<link rel='enclosure' href='v.mp4' type='video/mp4'/>"
            "<published>2025-06-03T09:39:21.5Z</published>"
            "<updated>2025-06-04T00:00:00+01:00</updated>"
            "<category term='t' label='Label'/><summary>1 &lt; 2\nand so on</summary>"
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>long</p></div></content>"
            "</entry>",
        )
    )
    assert feed.format == "atom10"
    entry = only(feed.entries)
    assert (entry.guid, entry.title, entry.author) == ("tag:1", "Fish & chips", "Ann")
    assert entry.published == datetime(2025, 6, 3, 9, 39, 21, tzinfo=UTC)
    assert entry.updated == datetime(2025, 6, 3, 23, tzinfo=UTC)
    assert entry.summary == "1 &lt; 2<br>and so on"
    assert entry.content == "<p>long</p>"
    assert entry.enclosures == (Enclosure("https://example.com/blog/v.mp4", "video/mp4", None),)
    assert entry.categories == ("Label",)


def test_an_rss_1_0_feed_has_its_items_beside_the_channel() -> None:
    feed = parsed(
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' "
        "xmlns='http://purl.org/rss/1.0/' xmlns:dc='http://purl.org/dc/elements/1.1/'>"
        "<channel><title>A site</title></channel><item rdf:about='https://example.com/1'>"
        "<title>One</title><dc:date>2025-06-03</dc:date></item></rdf:RDF>"
    )
    entry = only(feed.entries)
    assert (feed.format, entry.guid) == ("rss10", "https://example.com/1")
    assert entry.dated == datetime(2025, 6, 3, tzinfo=UTC)


@pytest.mark.parametrize(("said", "author"), [
    ("Ann", "Ann"),
    ("ann@blog.com (Ann)", "Ann"),
    ("ann@blog.example (Ann)", "Ann"),
    ("Ann Onymous &lt;ann@blog.online&gt;", "Ann Onymous"),
    ("Ann (ann@blog.online)", "Ann"),
    ("ann@blog.online", "ann@blog.online"),
    ("@ann@mastodon.social", "@ann@mastodon.social"),
])  # fmt: skip
def test_the_name_of_an_author_is_shown_and_not_the_address(said: str, author: str) -> None:
    entry = entry_of(rss(item(f"<title>x</title><author>{said}</author>")))
    assert entry.author == author


@pytest.mark.parametrize("version", ["0.91", "0.92"])
def test_old_rss_with_its_public_document_type_is_read(version: str) -> None:
    feed = parsed(
        '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://example.com/rss.dtd">'
        f"<rss version='{version}'><channel><title>Old</title><item><title>x</title></item>"
        "</channel></rss>"
    )
    assert (feed.title, feed.problems) == ("Old", ())


@pytest.mark.parametrize(("version", "format"), [("1", "json10"), ("1.1", "json11")])
def test_a_json_feed_is_read_whole(version: str, format: str) -> None:
    author = {"author": {"name": "Ann"}} if version == "1" else {"authors": [{"name": "Ann"}]}
    feed = parsed(
        json.dumps(
            {
                "version": f"https://jsonfeed.org/version/{version}",
                "title": "A site",
                "home_page_url": "https://example.com/",
                "feed_url": "https://example.com/feed.json",
                "hubs": [{"type": "WebSub", "url": "https://hub.example.net/"}],
                "language": "en",
                **author,
                "items": [
                    {
                        "id": 7,
                        "url": "/7",
                        "title": "Seven",
                        "content_html": "<p onclick='x()'>long</p>",
                        "summary": "a < b",
                        "date_published": "2025-06-03T09:39:21+02:00",
                        "tags": ["food", 1, "food"],
                        "attachments": [
                            {"url": "/7.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 9}
                        ],
                    },
                    {"id": "8", "content_text": "one\n<two>", "authors": [{"name": "Bob"}]},
                    "nonsense",
                    {"id": True, "title": ["no"], "url": 5, "attachments": "x", "tags": {}},
                ],
            }
        )
    )
    assert (feed.format, feed.title, feed.language) == (format, "A site", "en")
    seven, eight = feed.entries
    assert (seven.guid, seven.link, seven.author) == ("7", "https://example.com/7", "Ann")
    assert (seven.content, seven.summary) == ("<p>long</p>", "a &lt; b")
    assert seven.published == datetime(2025, 6, 3, 7, 39, 21, tzinfo=UTC)
    assert seven.enclosures == (Enclosure("https://example.com/7.mp3", "audio/mpeg", 9),)
    assert seven.categories == ("food",)
    assert (eight.content, eight.author) == ("one<br>&lt;two&gt;", "Bob")


def test_media_rss_counts_as_enclosures() -> None:
    entry = entry_of(
        rss(item("<title>v</title><media:content url='/v.mp4' type='video/mp4' fileSize='5'/>"))
    )
    assert entry.enclosures == (Enclosure("https://example.com/v.mp4", "video/mp4", 5),)


# Guids and links


def test_a_guid_that_is_no_address_stays_as_it_is_and_is_no_link() -> None:
    entry = entry_of(rss(item("<guid>7</guid><title>x</title>")))
    assert (entry.guid, entry.link) == ("7", None)


def test_a_guid_that_is_an_address_is_the_link_of_an_item_without_one() -> None:
    entry = entry_of(rss(item("<guid>https://example.com/7</guid>")))
    assert entry.link == "https://example.com/7"


def test_a_relative_link_starts_at_the_feed_or_at_its_own_base() -> None:
    assert entry_of(rss(item("<link>7.html</link>"))).link == "https://example.com/blog/7.html"
    content = "<content type='html'>&lt;a href='x'>y&lt;/a></content>"
    entry = f"<entry><id>1</id><link href='7'/>{content}</entry>"
    based = entry_of(atom(entry, attributes="xml:base='https://other.example/dir/'"))
    assert based.link == "https://other.example/dir/7"
    assert 'href="https://other.example/dir/x"' in (based.content or "")


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", "ftp://example.com/", "http://[half", "  "]
)
def test_a_link_that_leads_elsewhere_than_the_web_is_none(link: str) -> None:
    entry = entry_of(rss(item(f"<title>x</title><link>{link}</link>")))
    assert entry.link is None


# Dates


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("Tue, 03 Jun 2025 09:39:21 GMT", datetime(2025, 6, 3, 9, 39, 21, tzinfo=UTC)),
        ("Tue, 03 Jun 25 09:39:21 EST", datetime(2025, 6, 3, 14, 39, 21, tzinfo=UTC)),
        ("3 June 2025", datetime(2025, 6, 3, tzinfo=UTC)),
        ("2025-06-03 09:39:21 +0200", datetime(2025, 6, 3, 7, 39, 21, tzinfo=UTC)),
        ("2025-06-03T09:39Z", datetime(2025, 6, 3, 9, 39, tzinfo=UTC)),
        ("20250603", datetime(2025, 6, 3, tzinfo=UTC)),
        ("2025年6月3日", datetime(2025, 6, 3, tzinfo=UTC)),
    ],
)
def test_a_date_is_read_as_utc(said: str, moment: datetime) -> None:
    assert entry_of(rss(item(f"<guid>1</guid><pubDate>{said}</pubDate>"))).published == moment


@pytest.mark.parametrize(
    "said",
    [
        "31 Feb 2024 10:00:00 GMT",
        "2024-02-31",
        "2024-13-45T00:00:00Z",
        "2025-06-03T10:00:00+99:00",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "Mon, 01 Jan 0001 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "1717407561",
        "12",
        "yesterday",
        "",
    ],
)
def test_a_date_that_cannot_be_is_none(said: str) -> None:
    assert entry_of(rss(item(f"<guid>1</guid><pubDate>{said}</pubDate>"))).published is None
    document = {"version": "https://jsonfeed.org/version/1", "items": [{"id": "1"}]}
    document["items"][0]["date_published"] = said  # type: ignore[index]
    assert entry_of(json.dumps(document)).published is None


# Entities


@pytest.mark.parametrize(
    "declaration",
    [
        BILLION_LAUGHS + "]>",
        "<!DOCTYPE rss [<!ENTITY x SYSTEM 'file:/etc/passwd'>]>",
        "<!DOCTYPE rss [<!ENTITY % x SYSTEM 'http://192.0.2.1/'> %x;]>",
        "<?xml version='1.0'?><!-- <rss> --><?php '<rss' ?><!DOCTYPE rss [<!ENTITY x 'y'>]>",
        "<!DOCTYPE rss [<!-- it's --><!ELEMENT a (b)><?x it's ?><!ENTITY x 'y'>]>",
        "noise <!doctype rss [ <!ENTITY\nx 'y'>]>",
        "<!DOCTYPE rss SYSTEM \"]>\" [<!EN\0TITY x 'y'>]>",
    ],
)
@pytest.mark.parametrize("charset", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_declared_entities_are_refused_however_they_are_hidden(
    declaration: str, charset: str
) -> None:
    document = rss(item("<title>&x;</title>"), declaration=declaration)
    if charset == "utf-16-le" or charset == "utf-16-be":
        document = f"<?xml version='1.0' encoding='utf-16'?>{document}"
    with pytest.raises(EntitiesDeclared, match="declares entities"):
        parsed(document.encode(charset))


def test_a_text_about_entities_is_no_declaration() -> None:
    entry = entry_of(rss(described("<pre>&lt;!ENTITY x 'y'&gt;</pre>")))
    assert entry.summary == "<pre>&lt;!ENTITY x 'y'&gt;</pre>"


def test_utf_7_is_not_spoken_here() -> None:
    hidden = "<?xml version='1.0' encoding='utf-7'?>+ADwAIQ-ENTITY x 'y'>" + rss()
    assert parsed(hidden).title == "A site"


# Charsets


@pytest.mark.parametrize(
    "charset", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_wide_characters_are_read_with_a_mark_and_without(charset: str) -> None:
    entry = entry_of(rss(item("<title>Grüße 你好 😀</title>")).encode(charset))
    assert entry.title == "Grüße 你好 😀"


@pytest.mark.parametrize(
    ("charset", "title"),
    [
        ("windows-1251", "Привет, мир, и всем добрый день"),
        ("gb18030", "今天的新闻。天气很好。大家都出去玩了"),
        ("windows-1252", "Grüße aus Köln, très bien"),
    ],
)
def test_text_that_is_no_utf_8_though_it_says_so_is_guessed_and_reported(
    charset: str, title: str
) -> None:
    document = rss(
        item(f"<title>{title}</title>"), declaration="<?xml version='1.0' encoding='utf-8'?>"
    )
    feed = parsed(document.encode(charset), "text/xml; charset=utf-8")
    assert only(feed.entries).title == title
    assert "claims to be utf-8" in feed.problems[0]


@pytest.mark.parametrize(
    ("content_type", "declared"),
    [("text/xml; charset=koi8-r", "utf-8"), ("", "koi8-r"), ("text/xml", "KOI8-R")],
)
def test_a_charset_that_fits_is_used(content_type: str, declared: str) -> None:
    document = rss(
        item("<title>Привет</title>"), declaration=f"<?xml version='1.0' encoding='{declared}'?>"
    )
    assert entry_of(document.encode("koi8-r"), content_type).title == "Привет"


def test_a_server_that_calls_utf_8_latin_1_is_not_believed() -> None:
    assert (
        entry_of(rss(item("<title>Grüße</title>")), "text/xml; charset=iso-8859-1").title == "Grüße"
    )


@pytest.mark.parametrize("name", ["punycode", "unicode_escape", "zlib", "no-such", "x" * 500])
def test_an_odd_charset_is_passed_over(name: str) -> None:
    document = rss(declaration=f"<?xml version='1.0' encoding='{name}'?>")
    assert parsed(document, f"text/xml; charset={name}").title == "A site"


# Broken documents


@pytest.mark.parametrize(
    "document",
    [
        rss(item("<title>one & two</title>")),
        rss(item("<title>one &nbsp; two</title>")),
        rss(item("<title>one</title>")) + "<trailing>",
        rss(item("<title>one</title>"))[: -len("</channel></rss>")],
        rss(item("<title>one</title><undeclared:x/>")),
    ],
)
def test_broken_xml_is_read_as_far_as_it_goes_and_reported(document: str) -> None:
    feed = parsed(document)
    assert (only(feed.entries).title or "").startswith("one")
    assert "not well-formed" in feed.problems[-1]


def test_nul_and_other_control_characters_are_left_out_and_reported() -> None:
    feed = parsed(rss(item("<title>o\0n\x1be</title>")))
    assert only(feed.entries).title == "one"
    assert "control characters" in feed.problems[0]
    assert only(parsed(rss(item("<title>o&#0;ne</title>"))).entries).title != "o\0ne"


def test_what_a_site_prints_before_its_feed_is_passed_over() -> None:
    noise = "<br />\n<b>Warning</b>: something failed in line 7<br />\n<?xml version='1.0'?>"
    assert parsed(rss(declaration=noise)).title == "A site"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "empty"),
        (" \n\0\0 ", "empty"),
        ("<!DOCTYPE html><html><head><title>502</title></head><body>Bad</body></html>", "web page"),
        ("<html><feed><entry><title>x</title></entry></feed></html>", "web page"),
        ("<opml version='2.0'><body/></opml>", "list of feeds"),
        ("Not found", "no element"),
        ("<svg xmlns='http://www.w3.org/2000/svg'/>", "begins with <svg>"),
        ("<!DOCTYPE rss [", "never ends"),
        ("{", "JSON is broken"),
        ('{"error": "no such feed"}', "no JSON Feed"),
        ("[1, 2]", "no JSON Feed"),
        ("[" * 100_000, "nested too deeply"),
        ('{"version": ' + "1" * 5_000 + "}", "number is too long"),
    ],
)
def test_what_is_no_feed_is_refused_with_the_reason(document: str, reason: str) -> None:
    with pytest.raises(NotAFeed, match=reason):
        parsed(document)


def test_a_feed_without_entries_is_a_feed() -> None:
    assert parsed(rss()).entries == ()
    assert parsed(atom()).entries == ()


def test_items_with_nothing_in_them_are_none() -> None:
    assert parsed(rss(item("") + item("<title> </title>"))).entries == ()


# Limits


def test_a_document_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading_module, "MAX_DOCUMENT_BYTES", 100)
    with pytest.raises(FeedTooLarge, match="100 are allowed"):
        parsed(" " * 101)


def test_only_so_many_entries_are_read() -> None:
    items = [item(f"<guid>{number}</guid>") for number in range(MAX_ENTRIES + 1)]
    feed = parsed(rss("".join(items)))
    assert [entry.guid for entry in feed.entries] == [str(number) for number in range(MAX_ENTRIES)]
    assert "only the first 2000" in feed.problems[0]


def test_texts_are_cut_and_lists_are_bounded() -> None:
    entry = entry_of(
        rss(
            item(
                f"<guid>{'g' * 100_000}</guid><title>{'t' * 100_000}</title>"
                f"<link>https://example.com/{'l' * 100_000}</link>"
                + "".join(f"<category>{number}</category>" for number in range(200))
                + "".join(f"<enclosure url='/{number}'/>" for number in range(200))
            )
        )
    )
    assert len(entry.guid or "") < 100
    assert len(entry.title or "") == 1_000
    assert entry.link is None
    assert (len(entry.categories), len(entry.enclosures)) == (50, 50)


def test_all_texts_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.apps.feeds.parsing.limits.MAX_TEXT", 250)
    feed = parsed(rss(described("x" * 100) * 5))
    assert len(feed.entries) == 2
    assert "only the first 2 entries" in feed.problems[0]


@pytest.mark.parametrize("ttl", ["-5", "0", "soon", "9" * 50, "٣", ""])
def test_a_ttl_that_is_no_number_of_minutes_is_none(ttl: str) -> None:
    assert parsed(rss(channel=f"<ttl>{ttl}</ttl>")).ttl_minutes is None


# Anything at all


PIECES = st.sampled_from(
    ["<rss version='2.0'>", "<channel>", "<item>", "</item>", "<title>", "</title>", "<link>",
     "<guid>", "</guid>", "<feed xmlns='http://www.w3.org/2005/Atom'>", "<entry>", "<content",
     " type='xhtml'", ">", "<![CDATA[", "]]>", "<!--", "-->", "&amp;", "&#0;", "&x;", "<?", "'",
     "<!DOCTYPE", "[", "\0", "\ud7ff", "😀", "{", '"version":', "<author>", "a@b.c", "<pubDate>",
     "2025-06-03", "<enclosure url='", "<link href='", "xml:base='//'", "<div>", "http://[", "/"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_text_is_a_feed_or_refused(text: str) -> None:
    try:
        feed = parsed(text)
    except FeedUnreadable:
        return
    assert "\0" not in repr(feed)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_feed_or_refused(document: bytes) -> None:
    with suppress(FeedUnreadable):
        assert parsed(document).format
