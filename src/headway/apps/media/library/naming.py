"""What a video is called: a template with fields in braces, filled with what is known of it.

The templates have their own small language. Python's `str.format` would let whoever writes one
reach into attributes, and `%(title)s` of yt-dlp would put a site's text into a path as it is.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import NamedTuple

from headway.apps.media.library.legal_names import MAX_NAME_BYTES, UNKNOWN, cut, legal_name

DEFAULT = "{subscription}/{date} {title} [{id}]"
MAX_TEMPLATE = 500  # characters
MAX_DEPTH = 8  # directories and the name itself
TENANTS = "tenants"  # the directory of the tenants; no template leads there

TEXTS = ("title", "id", "uploader", "subscription", "site", "date")
NUMBERS = ("year", "month", "day", "index", "height")
_LEAST_BYTES = 24  # of a field that is shortened so that the others fit
_LARGEST = 10**12
_NOT_IN_NAMES = frozenset('<>:"\\|?*')


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a video when it gets its name. Empty or None: unknown."""

    title: str = ""
    id: str = ""
    extractor: str = ""
    uploader: str = ""
    subscription: str = ""
    site: str = ""
    published_at: float | None = None  # seconds since 1970
    index: int | None = None
    height: int | None = None


class Field(NamedTuple):
    name: str
    width: int = 0  # zeros in front, for numbers


Piece = str | Field
Component = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Template:
    """How videos are named: `Template.parse(text).render(facts)`."""

    text: str
    components: tuple[Component, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        """ValueError: what is wrong with it, and what is known."""
        if len(text) > MAX_TEMPLATE:
            raise ValueError(f"A name template has at most {MAX_TEMPLATE} characters.")
        text = unicodedata.normalize("NFC", text)
        components = tuple(_merged(each) for each in _split(_pieces(text)))
        if len(components) > MAX_DEPTH:
            raise ValueError(f"A name template has at most {MAX_DEPTH} parts between slashes.")
        for component in components:
            _check(component)
        fields = {piece.name for each in components for piece in each if isinstance(piece, Field)}
        if not fields & {"title", "id"}:
            raise ValueError("A name template needs {title} or {id}: names would all be the same.")
        return cls(text, components)

    def render(self, facts: Facts) -> PurePosixPath:
        """A relative path without extension. Whatever the facts say, it stays where it is put."""
        values = _values(facts)
        names = [_filled(component, values) for component in self.components]
        if names[0].casefold() == TENANTS:
            names[0] = f"_{names[0]}"
        return PurePosixPath(*names)


# ---------------------------------------------------------------------- parsing


def _pieces(text: str) -> list[Piece]:
    """Signs and fields, one after the other. A slash in a field's place cannot come out of it."""
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if text[at : at + 2] in ("{{", "}}"):
            pieces.append(sign)
            at += 2
        elif sign == "{":
            end = text.find("}", at)
            if end < 0:
                raise ValueError(f"The brace at character {at + 1} is never closed; write {{{{.")
            pieces.append(_field(text[at + 1 : end]))
            at = end + 1
        elif sign == "}":
            raise ValueError(f"The brace at character {at + 1} closes nothing; write }}}}.")
        else:
            pieces.append(sign)
            at += 1
    return pieces


def _field(inside: str) -> Field:
    name, colon, spec = inside.partition(":")
    if name not in TEXTS + NUMBERS:
        known = " ".join(f"{{{each}}}" for each in TEXTS + NUMBERS)
        raise ValueError(f"There is no field {{{inside}}}; known are {known}.")
    if not colon:
        return Field(name)
    if name not in NUMBERS:
        raise ValueError(f"{{{inside}}}: only numbers can be padded: {', '.join(NUMBERS)}.")
    if len(spec) != 2 or spec[0] != "0" or spec[1] not in "123456789":
        raise ValueError(f"{{{inside}}}: a number is padded as in {{{name}:04}}, nothing else.")
    return Field(name, int(spec[1]))


def _split(pieces: list[Piece]) -> list[list[Piece]]:
    components: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece == "/":
            components.append([])
        else:
            components[-1].append(piece)
    return components


def _merged(pieces: list[Piece]) -> Component:
    merged: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return tuple(merged)


def _check(component: Component) -> None:
    literal = "".join(piece for piece in component if isinstance(piece, str))
    wrong = sorted({sign for sign in literal if sign in _NOT_IN_NAMES or not sign.isprintable()})
    if wrong:
        raise ValueError(f"{wrong[0]!r} cannot be part of a file's name on every system.")
    if any(isinstance(piece, Field) for piece in component):
        if isinstance(component[0], str) and component[0].lstrip(" ").startswith("."):
            raise ValueError("A name that begins with a dot is hidden; begin with something else.")
        return
    if not literal.strip(" "):
        raise ValueError("A part of the template is empty: no slash at its ends, nor two together.")
    if legal_name(literal) != literal:
        raise ValueError(f"{literal!r} is no name for a directory on every system.")


# ---------------------------------------------------------------------- rendering


def _values(facts: Facts) -> dict[str, str | int | None]:
    day = day_of(facts.published_at)
    return {
        "title": facts.title,
        "id": facts.id,
        "uploader": facts.uploader,
        "subscription": facts.subscription,
        "site": facts.site,
        "date": None if day is None else f"{day.year:04}-{day.month:02}-{day.day:02}",
        "year": None if day is None else day.year,
        "month": None if day is None else day.month,
        "day": None if day is None else day.day,
        "index": facts.index,
        "height": facts.height,
    }


def day_of(published_at: float | None) -> datetime | None:
    """The day in UTC, so that a name is the same wherever the server stands."""
    if published_at is None:
        return None
    try:
        return datetime.fromtimestamp(published_at, UTC)
    except (OverflowError, ValueError, OSError):  # it is no moment of any calendar
        return None


def _filled(component: Component, values: dict[str, str | int | None]) -> str:
    pieces = [
        piece if isinstance(piece, str) else _shown(piece, values[piece.name])
        for piece in component
    ]
    # The id is what tells two videos apart, so everything else gives way first.
    free = [
        at for at, piece in enumerate(component) if isinstance(piece, Field) and piece.name != "id"
    ]
    excess = _size("".join(pieces)) - MAX_NAME_BYTES
    for at in sorted(free, key=lambda each: -_size(pieces[each])):
        if excess <= 0:
            break
        before = _size(pieces[at])
        pieces[at] = cut(pieces[at], max(_LEAST_BYTES, before - excess)).rstrip()
        excess -= before - _size(pieces[at])
    return legal_name("".join(pieces))


def _shown(field: Field, value: str | int | None) -> str:
    if isinstance(value, str):
        # Longer than any name can be; only its shortening is left to see to.
        return legal_name(value, most_bytes=2 * MAX_NAME_BYTES)
    if value is None or not -_LARGEST < value < _LARGEST:
        return UNKNOWN
    width = field.width or (2 if field.name in ("month", "day") else 0)
    return f"{int(value):0{width}}" if width else str(int(value))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
