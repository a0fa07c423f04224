"""What stands before the root of an XML document. The parser never sees it.

A document type may declare entities: those that double ten times over, and those that read files.
None is needed in a feed, so a document that declares any is refused; all else before the root,
document types included, is skipped here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from headway.apps.feeds.parsing.errors import EntitiesDeclared, NotAFeed

_NAME = re.compile(r"[A-Za-z_][\w.:-]{0,100}")
_DECLARES = re.compile(r"<!\s*ENTITY", re.IGNORECASE)
_TOKEN = re.compile(r"<!--|<\?|<|>|\"[^\"]*\"|'[^']*'")
_FEED_ROOT = re.compile(r"<(rss|feed|rdf:RDF)[\s>]")
_NOISE = 20_000  # characters before the root in which we look for it, such as a script's warnings


class Root(NamedTuple):
    start: int
    name: str


def root_of(text: str) -> Root:
    """Where the root element begins. Raises `EntitiesDeclared`, or `NotAFeed` if there is none."""
    at = 0
    while (at := text.find("<", at)) != -1:
        if text.startswith("<?", at):
            at = _behind(text, "?>", at)
        elif text.startswith("<!--", at):
            at = _behind(text, "-->", at)
        elif text.startswith("<!", at):
            at = _behind_declaration(text, at)
        elif name := _NAME.match(text, at + 1):
            return Root(at, name.group().lower())
        else:
            at += 1
    raise NotAFeed("This is no feed: there is no element in it. Check the address.")


def feed_root_of(text: str) -> Root:
    """The root of a feed, even if a broken site has printed something before it."""
    root = root_of(text)
    if root.name in ("rss", "feed", "rdf:rdf", "html"):
        return root
    noisy = _FEED_ROOT.search(text, root.start, root.start + _NOISE)
    return Root(noisy.start(), noisy.group(1).lower()) if noisy else root


def _behind(text: str, end: str, at: int) -> int:
    found = text.find(end, at)
    return len(text) if found == -1 else found + len(end)


def _behind_declaration(text: str, at: int) -> int:
    """Behind a `<!…>` with all that is nested in it. Quotes count: they may hold a bracket."""
    depth = 0
    while token := _TOKEN.search(text, at):
        at = token.end()
        if token.group() == "<!--":
            at = _behind(text, "-->", at)
        elif token.group() == "<?":
            at = _behind(text, "?>", at)
        elif token.group() == "<":
            depth += 1
            if _DECLARES.match(text, token.start()):
                raise EntitiesDeclared(
                    "The document declares entities. They can blow up or read files, and no feed "
                    "needs them: ask its author to leave out the document type."
                )
        elif token.group() == ">":
            depth -= 1
            if depth <= 0:
                return at
    raise NotAFeed("This is no feed: its document type never ends. Check the address.")
