"""One document, from bytes to a feed. It may take long and much memory: run it in a worker."""

from __future__ import annotations

from msgspec.structs import replace

from headway.apps.feeds.parsing.charsets import decode
from headway.apps.feeds.parsing.errors import FeedTooLarge, NotAFeed
from headway.apps.feeds.parsing.json_feed import read_json
from headway.apps.feeds.parsing.limits import MAX_DOCUMENT_BYTES
from headway.apps.feeds.parsing.model import ParsedFeed
from headway.apps.feeds.parsing.text import without_controls
from headway.apps.feeds.parsing.xml_feeds import read_xml


def read(document: bytes, *, url: str, content_type: str = "") -> ParsedFeed:
    """The feed in the document that was fetched from `url`. Raises one of `FeedUnreadable`."""
    if len(document) > MAX_DOCUMENT_BYTES:
        raise FeedTooLarge(
            f"The feed has {len(document):,} bytes; {MAX_DOCUMENT_BYTES:,} are allowed."
        )
    decoded = decode(document, content_type)
    problems = [decoded.problem] if decoded.problem else []
    text = without_controls(decoded.text).strip()
    if len(text) < len(decoded.text.strip()):
        problems.append("it contains control characters, which were left out")
    if not text:
        raise NotAFeed("This is no feed: the document is empty. Check the address.")
    feed = (read_json if text[0] in "{[" else read_xml)(text, url)
    return replace(feed, problems=(*problems, *feed.problems))
