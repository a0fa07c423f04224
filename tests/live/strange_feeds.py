"""Feeds of every kind that the live tests subscribe to, each with what must be shown of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape

from tests.contract.feeds_kit import Page, Says, answers
from tests.feeds.documents import atom, described, item, rss
from tests.feeds.strange_site import (
    MEGABYTE,
    StrangeSite,
    after,
    bomb,
    feed,
    half,
    in_turn,
    redirects,
    with_validators,
    without_length,
    written,
)

ACCENTS, CHINESE = "Crème brûlée à la carte", "中文新闻与简体字的标题"
FUTURE = "Wed, 01 Jan 2098 10:00:00 GMT"


@dataclass(frozen=True)
class Case:
    """What a site says, and what its reader is told."""

    says: Says
    status: str = "ok"
    error: str = ""  # a pattern
    articles: int = 1


def titled(title: str, **more: str) -> bytes:
    declared = f"<?xml version='1.0' encoding='{more['encoding']}'?>" if more else ""
    return rss(item(f"<guid>1</guid><title>{title}</title>"), declaration=declared).encode(
        more.get("written", "utf-8")
    )


def declaring(entity: str, used: str = "&it;") -> bytes:
    return rss(
        item(f"<guid>1</guid><title>{used}</title>"), declaration=f"<!DOCTYPE rss [{entity}]>"
    ).encode()


def laughs() -> bytes:
    """A billion of them."""
    levels = "".join(f'<!ENTITY lol{n + 1} "{f"&lol{n};" * 10}">' for n in range(9))
    return declaring(f'<!ENTITY lol0 "lol">{levels}', "&lol9;")


BROKEN = rss(
    item("<guid>1</guid><title>Fish & chips &nbsp; <b>unclosed</title><link>https://a.example/?a=1&b=2</link>")
    + item("<guid>2</guid><title>Second</title>")
).encode()[:-20]  # fmt: skip

NASTY = (
    "<p onclick='steal()'>kept</p><script>alert(1)</script><style>*{display:none}</style>"
    "<iframe src='https://evil.example'></iframe><svg onload='x()'><circle/></svg>"
    "<a href='javascript:alert(1)'>link</a><a href='JaVa\tScript:alert(1)'>other</a>"
    "<img src=x onerror='alert(1)'><img src='data:image/svg+xml,x'><form action='/'><input></form>"
    "<math><mi xlink:href='javascript:1'></math><a href='vbscript:x' style='x'>v</a>"
    "<object data='x'></object><embed src='x'><base href='https://evil.example'><meta http-equiv=x>"
)
# Nobody knows whether these are tags or what somebody writes about. It is text, whatever it is.
NASTY_TITLE = "About <img src=x onerror=alert(1)>"

JSON_FEED = {
    "version": "https://jsonfeed.org/version/1.1", "title": "J",
    "items": [{"id": 1, "title": "First", "content_html": "<b onclick=x>bold</b><script>1"},
              {"id": "lone", "title": "half \ud800 of a pair", "content_text": "also \udfff here"}],
}  # fmt: skip
RSS_1 = (
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' "
    "xmlns='http://purl.org/rss/1.0/'><channel rdf:about='x'><title>Old</title></channel>"
    "<item rdf:about='https://a.example/1'><title>One</title>"
    "<link>https://a.example/1</link></item></rdf:RDF>"
)
MANY = written(*(f"Article {number}" for number in range(5_000)))
HUGE = rss(described("<p>word </p>" * 300_000)).encode()
CONTROLS = rss(item("<guid>1</guid><title>a\x00b\x08c\x1b\ufffe[31m</title>")).encode()
LONG = rss(
    item(
        f"<guid>{'g' * 5_000}</guid><title>{'t' * 3_000}</title><author>{'n' * 300}</author>"
        f"<link>https://a.example/{'l' * 5_000}</link>" + f"<category>{'c' * 300}</category>" * 90
    ),
    channel=f"<description>{'d' * 9_000}</description><language>{'z' * 300}</language>",
).replace("A site", "N" * 300).encode()  # fmt: skip


def with_type(body: bytes, content_type: str) -> Says:
    return answers(body, Content_Type=content_type)


# Sites that need nothing but themselves.
ALONE: dict[str, Case] = {
    # polite
    "validators": Case(with_validators(written("one"))),
    "same": Case(feed("one")),
    "growing": Case(in_turn(feed("one"), feed("one", "two", "three")), articles=1),
    "slow": Case(after(0.5, feed("one"))),
    # saying no
    "missing": Case(answers(b"<rss/>", 404), "error", "404 Not Found; check the address", 0),
    "closed": Case(answers(b"", 401), "error", "wants a password", 0),
    "forbidden": Case(answers(b"", 403), "error", "does not let us in", 0),
    "unwell": Case(answers(b"", 500), "error", "500 Internal Server Error; it is tried again", 0),
    "busy for ever": Case(
        answers(b"", 503, Retry_After="9" * 18), "error", "503 .*; it is asked again later", 0
    ),
    "gone": Case(answers(b"", 410), "gone", "410 Gone; the feed has ended", 0),
    # too much, or too little
    "half": Case(half(written("one") * 50), "error", "broke off its answer", 0),
    "bomb": Case(bomb(30), "error", "longer than 10000000 bytes", 0),
    "endless": Case(without_length([MEGABYTE] * 30), "error", "longer than 10000000 bytes", 0),
    "announced": Case(
        answers(b"x" * 11_000_000), "error", "longer than 10000000 bytes; it was not read", 0
    ),
    "empty": Case(answers(b""), "error", "empty answer; that is no feed", 0),
    "blank": Case(answers(b" \n "), "error", "the document is empty. Check the address", 0),
    # no feed
    "page": Case(
        with_type(b"<!doctype html><html><title>Hi</title></html>", "application/rss+xml"),
        "error", "a web page, not a feed. Give the address of its feed", 0,
    ),
    "other": Case(answers(b"<note>Hi</note>"), "error", "begins with <note>. Check the addr", 0),
    "no-json-feed": Case(answers(b'{"items": []}'), "error", "no JSON Feed", 0),
    "broken-json": Case(answers(b'{"version": "https://json'), "error", "JSON is broken", 0),
    "opml": Case(answers(b"<opml><body/></opml>"), "error", "Import it instead", 0),
    # traps
    "laughs": Case(answers(laughs()), "error", "declares entities.*leave out the document", 0),
    "parameter": Case(
        answers(declaring("<!ENTITY % a '&#37;b;'> %a;")), "error", "declares entities", 0
    ),
    # broken, but not lost
    "broken": Case(answers(BROKEN), articles=2),
    "noise": Case(answers(b"Warning: line 3\n<br/>\n" + written("one"))),
    "controls": Case(answers(CONTROLS)),
    # charsets
    "latin-1 sent as utf-8": Case(
        with_type(titled(ACCENTS, encoding="utf-8", written="latin-1"), "text/xml; charset=utf-8")
    ),
    "utf-8 sent as latin-1": Case(with_type(titled(ACCENTS), "text/xml; charset=iso-8859-1")),
    "utf-16": Case(answers(titled(CHINESE, encoding="utf-16", written="utf-16"))),
    "gbk, declared": Case(answers(titled(CHINESE, encoding="gb2312", written="gbk"))),
    "gbk, in the header": Case(
        with_type(titled(CHINESE).decode().encode("gbk"), "text/xml; charset=gb2312")
    ),
    "gbk, undeclared": Case(answers(titled(CHINESE).decode().encode("gbk"))),
    "gbk, declared as utf-8": Case(answers(titled(CHINESE, encoding="utf-8", written="gbk"))),
    # other formats
    "json": Case(with_type(json.dumps(JSON_FEED).encode(), "application/json"), articles=2),
    "atom": Case(answers(atom("<entry><id>1</id><title>One</title></entry>").encode())),
    "rss 1.0": Case(answers(RSS_1.encode())),
    # strange articles
    "nasty": Case(answers(rss(described(NASTY, f"<title>{escape(NASTY_TITLE)}</title>")).encode())),
    "future": Case(
        answers(rss(item(f"<guid>1</guid><title>x</title><pubDate>{FUTURE}</pubDate>")).encode())
    ),
    "undated": Case(feed("one")),
    "twice": Case(feed("one", "one", "two", "one"), articles=2),
    "many": Case(answers(MANY), articles=2_000),
    "huge": Case(answers(HUGE)),
    "long": Case(answers(LONG)),
}  # fmt: skip


class Crowd:
    """All of them at their hosts, those included that lead to each other."""

    def __init__(self, site: StrangeSite, secret_file: str) -> None:
        self.site = site
        self.cases = dict(ALONE)
        self.pages: dict[str, Page] = {}
        self.stolen = self._never("/stolen")
        self.inside = self._never("/inside", host=f"http://0.0.0.0:{site.site.port}")
        self._traps(secret_file)
        self._redirects()
        self._closing()
        for name, case in self.cases.items():
            if name not in self.pages:
                self.pages[name] = site.put(case.says)

    def _never(self, path: str, host: str = "") -> Page:
        """A page that nobody should come to."""
        return self.site.put(feed("stolen"), path=path, host=host)

    def _traps(self, secret_file: str) -> None:
        said = "declares entities"
        for name, place in {"file": "file:" + f"//{secret_file}", "url": self.stolen.url}.items():
            told = declaring(f'<!ENTITY it SYSTEM "{place}">')
            self.cases[f"entity from {name}"] = Case(answers(told), "error", said, 0)
        elsewhere = f"<!DOCTYPE rss SYSTEM '{self.stolen.url}'>"
        styled = f"<?xml-stylesheet href='{self.stolen.url}'?>{elsewhere}".encode()
        self.cases["type elsewhere"] = Case(answers(styled + written("one")))

    def _redirects(self) -> None:
        self.new_home = self.site.put(feed("one"), path="/new")
        self.for_now = self.site.put(feed("one"), path="/now")
        self.late_home = self.site.put(feed("one"), path="/late")
        self.cases["moved"] = Case(redirects(301, self.new_home.url))
        self.cases["elsewhere for now"] = Case(redirects(302, self.for_now.url))
        self.cases["moves later"] = Case(in_turn(feed("one"), redirects(301, self.late_home.url)))
        self.far_home = self.site.put(feed("one"), path="/" + "far/" * 700)
        self.cases["too far to move"] = Case(redirects(301, self.far_home.url))
        self.cases["circle"] = Case(redirects(302, "/feed"), "error", "leads in a circle", 0)
        self.cases["to nowhere"] = Case(redirects(302, ""), "error", "does not say where to", 0)
        self.cases["to the inside"] = Case(
            redirects(302, self.inside.url), "error",
            r"0\.0\.0\.0:\d+ leads to an unspecified address.*can allow", 0,
        )  # fmt: skip
        self.cases["to a cloud's secrets"] = Case(
            redirects(301, "http://169.254.169.254/latest/meta-data/"), "error",
            r"169\.254\.169\.254:80 leads to a link-local network", 0,
        )  # fmt: skip
        self.cases["to a file"] = Case(
            redirects(302, "file:" + "///etc/hostname"), "error", "only http and https", 0
        )

    def _closing(self) -> None:
        """A site that wants to be left alone, and another feed there."""
        host = self.site.site.host()
        busy = answers(b"", 429, Retry_After="90")
        self.cases["busy"] = Case(busy, "error", "429 Too Many Requests; it is asked again", 0)
        self.pages["busy"] = self.site.put(busy, host=host)
        self.beside = self.site.put(feed("one"), path="/beside", host=host)
