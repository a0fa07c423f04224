"""From bytes to text, whatever charset the server or the document claims.

Text that is valid UTF-8 is taken as that: other text hardly ever is by chance, and servers name
charsets that nobody has checked. Only charsets on the list are used: Python knows some, such as
utf-7, that are traps.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

_MARKS = (  # the longer ones first: one of them begins like a shorter one
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Where the zeros are in the first two characters, if both are ASCII.
_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
}
_SEVEN_BITS = frozenset({"iso2022_jp", "hz"})  # valid UTF-8, but not meant so
_KNOWN = _SEVEN_BITS | {
    "ascii", "utf-8", "big5", "big5hkscs", "cp932", "cp949", "euc_jp", "euc_kr", "gb18030",
    "gb2312", "gbk", "koi8-r", "koi8-u", "mac-roman", "shift_jis", "tis-620", "cp866", "cp874",
    *(f"cp{number}" for number in range(1250, 1259)),
    *(f"iso8859-{number}" for number in (*range(1, 12), 13, 14, 15, 16)),
}  # fmt: skip
# Browsers read these as the larger charset that they are a part of, and so authors test with that.
_LARGER = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}

_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_IN_DOCUMENT = re.compile(rb"^\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]+)")


class Decoded(NamedTuple):
    text: str
    charset: str
    problem: str | None


def decode(document: bytes, content_type: str = "") -> Decoded:
    for mark, charset in _MARKS:
        if document.startswith(mark):
            return Decoded(document[len(mark) :].decode(charset, "replace"), charset, None)
    zeros = tuple(byte == 0 for byte in document[:4])
    if (wide := _ZEROS.get(zeros)) and (text := _attempt(document, wide)) is not None:
        return Decoded(text, wide, None)
    claimed = _claimed(document, content_type)
    tried = [name for name in claimed if name in _SEVEN_BITS]
    tried += ["utf-8", *claimed, _guess(document)]
    for charset in tried:
        if (text := _attempt(document, charset)) is not None:
            return Decoded(text, charset, _complaint(charset, claimed))
    return Decoded(
        document.decode("cp1252", "replace"), "cp1252", "its charset is unknown; some of it is lost"
    )


def _attempt(document: bytes, charset: str) -> str | None:
    try:
        return document.decode(charset)
    except UnicodeDecodeError:
        return None


def _claimed(document: bytes, content_type: str) -> list[str]:
    """What the server says, then what the document says, as Python's names."""
    found = []
    if in_header := _IN_HEADER.search(content_type):
        found.append(in_header.group(1))
    if in_document := _IN_DOCUMENT.match(document[:1_000]):
        found.append(in_document.group(1).decode("ascii", "replace"))
    names = []
    for name in found:
        try:
            known = codecs.lookup(name).name
        except (LookupError, ValueError):
            continue
        if known in _KNOWN:
            names.append(_LARGER.get(known, known))
    return names


def _complaint(charset: str, claimed: list[str]) -> str | None:
    if not claimed:
        return None if charset == "utf-8" else f"it names no charset; read as {charset}"
    if claimed[0] == charset:
        return None
    if charset == "utf-8" and claimed == ["cp1252"]:
        return None  # a server's default, or plain ASCII: nothing to complain about
    return f"it claims to be {claimed[0]}, but was read as {charset}"


def _guess(document: bytes) -> str:
    """Of what is not UTF-8 and claims nothing that fits.

    In western text, letters beyond ASCII stand alone; in others they stand in rows. Small Cyrillic
    letters are the last 32 of windows-1251; Chinese uses all of the upper half.
    """
    sample = document[:200_000]
    rows = re.findall(rb"[\x80-\xff]+", sample)
    high = sum(map(len, rows))
    in_rows = sum(len(row) for row in rows if len(row) > 2)
    if high == 0 or in_rows < 0.6 * high:
        return "cp1252"
    small = sum(len(row) for row in re.findall(rb"[\xe0-\xff]+", sample))
    return "cp1251" if small > 0.6 * high else "gb18030"
