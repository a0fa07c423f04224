"""HTML that may be shown: no scripts, styles, forms or frames; links that lead away safely."""

from __future__ import annotations

import html
import re

import nh3

from headway.apps.feeds.parsing.text import MAX_LINK, without_controls

MAX_HTML = 500_000
MAX_DEPTH = 500

_TAGS = {
    "a", "abbr", "article", "aside", "b", "bdi", "bdo", "blockquote", "br", "caption", "center",
    "cite", "code", "col", "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em",
    "figcaption", "figure", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "i",
    "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "rp", "rt", "ruby", "s", "samp",
    "section", "small", "span", "strike", "strong", "sub", "summary", "sup", "table", "tbody",
    "td", "tfoot", "th", "thead", "time", "tr", "tt", "u", "ul", "var", "wbr",
}  # fmt: skip
_ATTRIBUTES = {
    "*": {"dir", "lang", "title"},
    "a": {"href", "hreflang"},
    "blockquote": {"cite"},
    "col": {"span"},
    "colgroup": {"span"},
    "del": {"cite", "datetime"},
    "img": {"alt", "height", "src", "width"},
    "ins": {"cite", "datetime"},
    "ol": {"start"},
    "q": {"cite"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "time": {"datetime"},
}
# Gone with all that is in them; of any other tag, what is in it stays.
_GONE = {
    "applet", "button", "canvas", "embed", "frame", "frameset", "iframe", "math", "noembed",
    "noframes", "object", "script", "select", "style", "svg", "template", "textarea", "title",
}  # fmt: skip
# Written here and not by nh3, which would write the two in another order each time.
_LATE = ' loading="lazy" referrerpolicy="no-referrer">'
_SCHEMES = {"http", "https", "mailto", "tel"}

# These read what nh3 wrote, where all attributes are quoted, and `<` and `"` in texts are escaped.
_IMAGE = re.compile(r'<img(?: [\w-]+="[^"]*")*>')
_ATTRIBUTE = re.compile(r' ([\w-]+)="([^"]*)"')
_TINY = re.compile(r"\s*[01]\s*(?:px)?\s*")

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")
# Never closed by many authors, or never to be closed; these do not nest.
_FLAT = frozenset(
    {
        "area", "br", "col", "dd", "dt", "hr", "img", "input", "li", "link", "meta", "option", "p",
        "source", "td", "th", "tr", "wbr",
    }
)  # fmt: skip


def clean_html(source: str, base: str) -> str | None:
    """Safe HTML of it, with absolute links; None if nothing is left to see."""
    source = without_controls(source[:MAX_HTML]).strip()
    if not source:
        return None
    if "<" not in source and "&" not in source:
        return html.escape(source, quote=False)
    if _too_deep(source):
        return text_as_html(re.sub(r"<[^<>]*>?", " ", source))
    is_web = base.startswith(("http://", "https://")) and len(base) <= MAX_LINK
    cleaned = nh3.clean(
        source,
        tags=_TAGS,
        clean_content_tags=_GONE,
        attributes=_ATTRIBUTES,
        link_rel="noopener noreferrer",
        url_schemes=_SCHEMES,
        url_relative=("rewrite_with_base", base) if is_web else "deny",
    )
    if len(cleaned) > 4 * MAX_HTML:  # thousands of short links with a long base
        return None
    return _IMAGE.sub(_shown, cleaned).strip() or None


def text_as_html(text: str) -> str | None:
    """Plain text, with its lines kept."""
    lines = without_controls(text[:MAX_HTML]).strip()
    return html.escape(lines, quote=False).replace("\n", "<br>") or None


def html_as_text(source: str) -> str:
    """The text of some HTML, such as that of a title."""
    bare: str = nh3.clean(source, tags=set(), clean_content_tags=_GONE)
    return html.unescape(bare)


def _shown(image: re.Match[str]) -> str:
    """The image, unless it is none: from elsewhere than the web, or a pixel that only counts."""
    attributes = dict(_ATTRIBUTE.findall(image.group()))
    sizes = [attributes[side] for side in ("width", "height") if side in attributes]
    is_pixel = len(sizes) == 2 and all(map(_TINY.fullmatch, sizes))
    is_web = attributes.get("src", "").startswith(("http://", "https://"))
    return image.group()[:-1] + _LATE if is_web and not is_pixel else ""


def _too_deep(source: str) -> bool:
    """Whether tags are nested so deeply that building the tree would take minutes."""
    if source.count("<") <= MAX_DEPTH:
        return False
    depth = 0
    for closing, name in _TAG.findall(source):
        if name.lower() in _FLAT:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        if depth > MAX_DEPTH:
            return True
    return False
