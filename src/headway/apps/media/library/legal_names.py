"""Names that every file system takes: ext4, APFS, NTFS, and what is shared between them by SMB."""

from __future__ import annotations

import unicodedata

MAX_NAME_BYTES = 200  # of the 255 that file systems allow: a number and `.info.json` still fit
UNKNOWN = "unknown"

# What some file system forbids becomes the wide form of the same sign, which all of them take.
_WIDE = {ord(sign): chr(ord(sign) + 0xFEE0) for sign in '<>:"/\\|?*'}
# Signs that turn the direction of writing can make a name look like another one.
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_INVISIBLE = _DIRECTIONS | {"\ufeff"}
# Control signs, halves of characters, and what no version of Unicode knows (APFS refuses it).
_REFUSED = frozenset({"Cc", "Cs", "Cn"})
_JOINER = "\u200d"

_DEVICES = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
    | {f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³"}
)


def legal_name(text: str, *, most_bytes: int = MAX_NAME_BYTES) -> str:
    """One path component, as near to the text as can be. Never empty, never hidden. What is legal
    already stays as it is.
    """
    name = _one_line(text).translate(_WIDE)
    name = unicodedata.normalize("NFC", name)
    name = name.lstrip(". ").rstrip(". ")
    if _is_device(name):
        name = f"_{name}"
    return cut(name, most_bytes).rstrip(". ") or UNKNOWN


def cut(text: str, most_bytes: int) -> str:
    """At most so many bytes of UTF-8, and no character without the marks that belong to it."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= most_bytes:
        return text
    kept = raw[:most_bytes].decode("utf-8", "ignore")
    end = len(kept)
    while end and (_clings(text[end]) or text[end - 1] == _JOINER):
        end -= 1
    return kept[:end] if end else kept


def folded(name: str) -> str:
    """The same for all names that some file system takes for one: capitals, composed or not."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _one_line(text: str) -> str:
    signs = (" " if sign.isspace() else sign for sign in text)
    kept = "".join(sign for sign in signs if not _is_refused(sign))
    return " ".join(kept.split())


def _is_refused(sign: str) -> bool:
    return sign in _INVISIBLE or unicodedata.category(sign) in _REFUSED


def _is_device(name: str) -> bool:
    """Windows takes `con.mp4` for the console, whatever the extension."""
    return name.split(".", 1)[0].rstrip(" ").upper() in _DEVICES


def _clings(sign: str) -> bool:
    """Whether it belongs to the character before it: accents, skin tones, joined emoji."""
    return (
        sign == _JOINER
        or unicodedata.category(sign) in ("Mn", "Mc", "Me")
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
    )
