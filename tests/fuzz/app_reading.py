"""The same for the applications: feeds, the archive, and reader apps."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import msgspec

from headway.apps.feeds import discovery, identity
from headway.apps.feeds.fetching_answers import fresh_until, validator
from headway.apps.feeds.greader.asking import Asked, _pairs
from headway.apps.feeds.greader.ids import entry_of, long_id, short_id, stream_of
from headway.apps.feeds.opml import read_opml, write_opml
from headway.apps.feeds.parsing.charsets import decode
from headway.apps.feeds.parsing.dates import EARLIEST, LATEST, moment
from headway.apps.feeds.parsing.reading import read
from headway.apps.feeds.parsing.sanitising import clean_html, html_as_text, text_as_html
from headway.apps.feeds.parsing.text import web_link
from headway.apps.feeds.routes.article_views import ArticleBody, before_of, place_of
from headway.apps.feeds.routes.article_views import entry_of as entry_of_body
from headway.apps.feeds.rules import Rule, fault_in, matches, readable
from headway.apps.feeds.searching import condition_of
from headway.apps.media.accounts.cookies import (
    cookie_header,
    expires_at,
    netscape_file,
    parse_cookies,
    plain_site,
    read_cookies,
    values,
)
from headway.apps.media.fetcher.filters import Filters, reason_to_skip
from headway.apps.media.fetcher.protocol import Order
from headway.apps.media.library import info_files
from headway.apps.media.library.legal_names import legal_name
from headway.apps.media.library.metadata import Metadata
from headway.apps.media.library.naming import Facts, Template
from headway.apps.media.library.nfo import nfo
from headway.apps.media.podcast import Episode, feed
from headway.apps.media.running import _Reading
from headway.apps.media.serving import _first_byte
from tests.fuzz.reading import NOW, inside, loaded, well_formed
from tests.fuzz.target import headers_of, text_of

URL = "https://blog.example/a/feed.xml"
# What runs a script: a tag that brings one, a handler, or an address that is one.
LIVE = re.compile(
    r"<\s*(script|style|iframe|object|embed|form|svg|base|meta|link)\b|<[^>]*\son\w+\s*="
    r"|<[^>]*(href|src)\s*=\s*[\"']?\s*(javascript|vbscript|data):",
    re.IGNORECASE,
)


# ---------------------------------------------------------------------- feeds


def feed_document(data: bytes) -> None:
    kind, _, document = data.partition(b"\n")
    found = read(document, url=URL, content_type=text_of(kind))
    for entry in found.entries:
        identity.identity_of_entry(entry)
        for shown in (entry.summary, entry.content):
            assert shown is None or not LIVE.search(shown), shown


def charset(data: bytes) -> None:
    kind, _, document = data.partition(b"\n")
    text = decode(document, text_of(kind)).text
    assert len(text) <= len(document) + 1
    text.encode()


def html(text: str) -> None:
    for shown in (clean_html(text, URL), text_as_html(text)):
        assert shown is None or not LIVE.search(shown), shown
    html_as_text(text)


def page(data: bytes) -> None:
    for found in discovery.feeds_named_in(data, URL, "text/html"):
        assert found.url.startswith(("http://", "https://"))


def opml(data: bytes) -> None:
    """What was read is written so that it is read again."""
    found = read_opml(data)
    again = read_opml(write_opml(found.subscriptions))
    assert [each.url for each in again.subscriptions] == [each.url for each in found.subscriptions]


def date_of_entry(text: str) -> None:
    found = moment(text)
    assert found is None or EARLIEST <= found <= LATEST


def caching(data: bytes) -> None:
    headers = headers_of(data)
    until = fresh_until(headers, NOW)
    assert until is None or NOW <= until <= NOW + 400 * 86_400
    for value in headers.values():
        kept = validator(value)
        assert kept is None or not re.search(r"[\r\n\0]", kept)


def links(text: str) -> None:
    found = web_link(text, URL)
    assert found is None or found.startswith(("http://", "https://"))
    assert len(identity.identity_of(guid=text, link=text)) <= identity.MAX_IDENTITY
    identity.normal_link(text)
    discovery.common_addresses(found or URL)


def article_search(text: str) -> None:
    for dialect in ("sqlite", "postgres"):
        condition = condition_of(text, dialect)
        assert condition.text.count("?") == len(condition.values), "a value stands in the words"


def article_rule(data: bytes) -> None:
    rule = msgspec.json.decode(data, type=Rule)
    if fault_in(rule) is None:
        article = readable(title="A", author=None, link=None, categories=(), text="some text")
        matches(rule, "1", "news", article)


def article_body(data: bytes) -> None:
    entry_of_body(ArticleBody.model_validate_json(data), URL)


def place_in_list(text: str) -> None:
    try:
        place_of(text)
    except ValueError:
        before_of(text)


# ---------------------------------------------------------------------- reader apps


def reader_ids(text: str) -> None:
    entry = entry_of(text)
    if entry:
        assert entry_of(short_id(entry)) == entry == entry_of(long_id(entry))
    stream = stream_of(text)
    assert stream is None or stream_of(stream.text) == stream or stream.name != ""


def reader_form(data: bytes) -> None:
    asked = Asked(_pairs(data))
    asked.streams("s", "xt", "it")
    asked.entries(100)
    since, until = asked.since("ot"), asked.until("nt")
    assert since is None or abs(since) < 1e12
    assert until is None or abs(until) < 1e12
    asked.number("n", 20)


# ---------------------------------------------------------------------- the archive


def cookies(text: str) -> None:
    """What a program reads from the file is what was pasted."""
    found = parse_cookies(text, "video.example")
    again = read_cookies(netscape_file(found), "video.example")
    assert [(each.name, each.value) for each in again] == [(c.name, c.value) for c in found]
    header = cookie_header(found, "https://video.example/", NOW)
    assert not re.search(r"[\r\n\0]", header)
    expires_at(found)
    values(found)


def site_of_account(text: str) -> None:
    assert plain_site(plain_site(text)) == plain_site(text)


def order(data: bytes) -> None:
    made = Order.from_json(data)
    assert Order.from_json(made.to_json()) == made


def line_of_program(text: str) -> None:
    def nothing(*_said: Any) -> None: ...

    _Reading(nothing, nothing).line(text)


def info(data: bytes) -> None:
    told = loaded(data)
    Metadata.of(told)
    well_formed(nfo(told))
    well_formed(nfo(told, kind="episode", show=str(told)[:100], index_in_day=3))
    raw = info_files.encode(told, identity="x", extension="mp4", image=None, size_bytes=1)
    assert info_files.decode(raw) is not None


def info_file(data: bytes) -> None:
    info_files.decode(data)


def name_of_file(text: str) -> None:
    template, _, title = text.partition("\n")
    facts = Facts(title=title, id=title[:20], uploader=template, published_at=NOW)
    inside(Template.parse("{uploader}/{title} [{id}]").render(facts))
    name = legal_name(title)
    assert legal_name(name) == name
    inside(Template.parse(template).render(facts))


def filters(data: bytes) -> None:
    wanted = Filters.from_dict(loaded(data))
    assert Filters.from_dict(wanted.to_dict()) == wanted
    reason_to_skip(wanted, "A title", NOW, 10.0, 3)


def range_of_file(text: str) -> None:
    found = _first_byte(text, 1_000)
    assert found is None or found >= 0


def podcast(data: bytes) -> None:
    title, _, url = text_of(data).partition("\n")
    row = SimpleNamespace(name=title, url=url, created_at=0.0)
    item = SimpleNamespace(
        title=title, key=url, url=url, subscription=1, published_at=None, done_at=float(len(data)),
        found_at=0.0, id=3, size_bytes=None, uploader=title, duration_s=1e9, changed_at=-1e300,
    )  # fmt: skip
    episode: Any = Episode(item, f"a/{title}.mp4", f"a/{title}.jpg")  # type: ignore[arg-type]
    well_formed(feed(row, "secret", "https://own.example", [episode]))  # type: ignore[arg-type]
