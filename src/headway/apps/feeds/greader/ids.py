"""How items and streams are called.

An item has a number of 64 bits, which clients write in three ways: as a decimal number, in hex
with 16 digits behind a prefix, and in hex alone, which some of them do not pad. So that none is
ever taken for another, our numbers begin at one whose hex begins with a letter: written in decimal
they have no letter, written in hex they have one, or a zero in front.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

LONG = "tag:google.com,2005:reader/item/"
FIRST = 0xA_0000_0000_0000  # what is below 2**53, so that a double can hold it
LAST = 0xF_FFFF_FFFF_FFFF
STATE = "user/-/state/com.google/"
LABEL = "user/-/label/"
FEED = "feed/"

_HEX = re.compile(r"[0-9A-Fa-f]{1,16}")
_STATE = re.compile(r"user/[^/]*/state/com\.google/(.*)", re.DOTALL)
_LABEL = re.compile(r"user/[^/]*/label/(.*)", re.DOTALL)


def short_id(entry: int) -> str:
    return str(FIRST + entry)


def long_id(entry: int) -> str:
    return f"{LONG}{FIRST + entry:016x}"


def entry_of(text: str) -> int | None:
    """The entry that an item's id stands for, in any way of writing it; None: it is no id."""
    digits = text.removeprefix(LONG)
    is_hex = digits != text or digits.startswith("0") or not digits.isdecimal()
    if is_hex and not _HEX.fullmatch(digits):
        return 0 if digits.startswith("-") and digits[1:].isdecimal() else None
    if not digits.isascii() or len(digits) > 20:
        return None
    number = int(digits, 16 if is_hex else 10)
    return number - FIRST if FIRST < number <= LAST else 0


class Kind(Enum):
    ALL = "reading-list"
    READ = "read"
    UNREAD = "kept-unread"
    STARRED = "starred"
    OTHER = "other"  # a state that nothing here has, such as "broadcast"
    LABEL = "label"
    FEED = "feed"


_STATES = {each.value: each for each in (Kind.ALL, Kind.READ, Kind.UNREAD, Kind.STARRED)}
_STATES["unread"] = Kind.UNREAD  # as FreshRSS says it


class Stream(NamedTuple):
    kind: Kind
    name: str = ""  # of a label; of a feed its id, or its address

    @property
    def text(self) -> str:
        if self.kind is Kind.FEED:
            return FEED + self.name
        return LABEL + self.name if self.kind is Kind.LABEL else STATE + (self.name or "")


ALL = Stream(Kind.ALL, Kind.ALL.value)


def stream_of(text: str) -> Stream | None:
    """None: this is no stream. Whose it claims to be does not matter: it is that of who asks."""
    if text.startswith(FEED) and len(text) > len(FEED):
        return Stream(Kind.FEED, text.removeprefix(FEED))
    if found := _LABEL.fullmatch(text):
        return Stream(Kind.LABEL, found[1]) if found[1] else None
    if found := _STATE.fullmatch(text):
        return Stream(_STATES.get(found[1], Kind.OTHER), found[1])
    return None
