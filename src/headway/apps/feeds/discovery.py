"""From the address of a site to that of its feeds.

`feeds_named_in` reads a page that anybody may have written, which can take long: ask a
`FeedParser` to do it. The rest is quick.
"""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlsplit

from headway.apps.feeds.parsing.charsets import decode
from headway.apps.feeds.parsing.model import Candidate
from headway.apps.feeds.parsing.text import MAX_NAME, one_line, web_link, without_controls

MAX_PAGE_BYTES = 1024 * 1024
MAX_CANDIDATES = 50

FEED_TYPES = frozenset(
    {"application/rss+xml", "application/atom+xml", "application/feed+json", "application/rdf+xml"}
)
COMMON_PATHS = ("feed", "rss.xml", "atom.xml", "index.xml", "feed.xml", "rss")


def feeds_named_in(page: bytes, url: str, content_type: str = "") -> tuple[Candidate, ...]:
    """The feeds that the page at `url` names, in its order, which is that of its author."""
    text = decode(page[:MAX_PAGE_BYTES], content_type).text
    reader = _Links(url)
    reader.feed(without_controls(text))
    reader.close()
    return tuple(reader.found.values())


def common_addresses(url: str) -> tuple[str, ...]:
    """Where sites that name no feed often have one: beside the page, then at the top."""
    parts = urlsplit(url)
    top = f"{parts.scheme}://{parts.netloc}/"
    directory = parts.path.rpartition("/")[0].strip("/")
    if last := parts.path.rpartition("/")[2]:
        # A last part without a suffix is more often a section, such as /blog, than a page.
        directory = f"{directory}/{last}".strip("/") if "." not in last else directory
    beside = (f"{top}{directory}/{path}" for path in COMMON_PATHS) if directory else ()
    return tuple(dict.fromkeys((*beside, *(f"{top}{path}" for path in COMMON_PATHS))))


class _Links(HTMLParser):
    """Collects `<link rel=alternate>` of the types of feeds."""

    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = url
        self._has_base = False
        self.found: dict[str, Candidate] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "base" and not self._has_base:
            base = web_link(dict(attrs).get("href"), self._base)
            self._base, self._has_base = base or self._base, base is not None
        elif tag == "link" and len(self.found) < MAX_CANDIDATES:
            self._consider(dict(reversed(attrs)))  # the first of two attributes counts

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip a `<![…>`: the standard library gives up on a page with an odd one."""
        end = self.rawdata.find(">", i)
        return len(self.rawdata) if end == -1 else end + 1

    def _consider(self, attributes: dict[str, str | None]) -> None:
        relations = (attributes.get("rel") or "").lower().split()
        type = (attributes.get("type") or "").partition(";")[0].strip().lower()
        is_named = "alternate" in relations and type in FEED_TYPES
        if not is_named and "feed" not in relations:
            return
        if url := web_link(attributes.get("href"), self._base):
            title = one_line(attributes.get("title"), MAX_NAME)
            self.found.setdefault(url, Candidate(url, title, type or None))
