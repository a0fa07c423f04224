"""Reading one object of a JSON document. Each key has a path; what nobody asks for is noted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from headway.errors import BadSettings

T = TypeVar("T")

MOST = 999_999_999  # of any number; more digits are no duration in the language of settings
MAX_TEXT = 200  # characters of a name
MAX_UNKNOWN = 10  # keys of one object that are named; a document may have any number of them
NAME = re.compile(r"[ -~]*")  # what a header can carry


class Section:
    """One object. `notes` is shared by all sections of a document."""

    def __init__(self, said: Any, path: str, notes: list[str]) -> None:
        if not isinstance(said, Mapping | None):
            raise BadSettings(f"{path or 'the document'} must be an object, not {kind_of(said)}")
        self.path = path
        self.notes = notes
        self._said: Mapping[str, Any] = said or {}
        self._known: set[str] = set()

    def path_of(self, key: str) -> str:
        shown_key = key if key.isprintable() and len(key) <= 60 else json.dumps(key[:60])
        return f"{self.path}.{shown_key}" if self.path else shown_key

    def take(self, key: str) -> Any:
        """What was said; None: nothing."""
        self._known.add(key)
        return self._said.get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def section(self, key: str) -> Section:
        return Section(self.take(key), self.path_of(key), self.notes)

    # ------------------------------------------------------------------ values

    def whole(self, key: str, missing: T, *, below_one: T) -> int | T:
        """`below_one` takes the place of 0 and of all that is less."""
        value = self.take(key)
        if value is None:
            return missing
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise BadSettings(f"{self.path_of(key)} must be a whole number, not {shown(value)}")
        if value > MOST:
            raise BadSettings(f"{self.path_of(key)} must be at most {MOST}")
        return value if value >= 1 else below_one

    def number(self, key: str, missing: float, *, otherwise: float) -> float:
        """`otherwise` takes the place of 0 and of all that is less."""
        value = self.take(key)
        if value is None:
            return missing
        if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
            raise BadSettings(f"{self.path_of(key)} must be a number, not {shown(value)}")
        if value > MOST:
            raise BadSettings(f"{self.path_of(key)} must be at most {MOST}")
        return float(value) if value > 0 else otherwise

    def flag(self, key: str, missing: bool) -> bool:
        value = self.take(key)
        if value is None:
            return missing
        if not isinstance(value, bool):
            raise BadSettings(f"{self.path_of(key)} must be true or false, not {shown(value)}")
        return value

    def text(self, key: str, missing: str = "") -> str:
        """Without blanks around it; empty text says nothing. It may be a secret, so no error
        shows it.
        """
        value = self.take(key)
        if value is None:
            return missing
        if not isinstance(value, str):
            raise BadSettings(f"{self.path_of(key)} must be text in quotes, not {kind_of(value)}")
        return value.strip() or missing

    def name(self, key: str) -> str:
        """Text that will stand in a header."""
        value = self.text(key)
        if len(value) > MAX_TEXT or not NAME.fullmatch(value):
            raise BadSettings(
                f"{self.path_of(key)} is sent in a header, so it must be at most {MAX_TEXT} "
                "printable ASCII characters"
            )
        return value

    # ------------------------------------------------------------------ notes

    def note(self, key: str, what: str) -> None:
        self.notes.append(f"{self.path_of(key)} {what}.")

    def not_needed(self, key: str, why: str) -> None:
        """Accepted, and noted when it is there."""
        if self.take(key) is not None:
            self.note(key, f"is not needed: {why}")

    def end(self) -> None:
        """All that there is to know here was asked for."""
        unknown = [str(key) for key in self._said if key not in self._known]
        for key in unknown[:MAX_UNKNOWN]:
            meant = get_close_matches(key[:MAX_TEXT], sorted(self._known), 1)
            hint = f"; perhaps {meant[0]} is meant" if meant else ""
            self.note(key, f"is not known and has no effect{hint}")
        more = len(unknown) - MAX_UNKNOWN
        if more > 0:
            self.notes.append(f"{self.path or 'the document'} has {more} more keys that are "
                              "not known and have no effect.")  # fmt: skip


def shown(value: Any) -> str:
    """A value in a message, short, as it stands in the document."""
    if isinstance(value, str):
        text = value if len(value) <= 40 else f"{value[:40]}…"
        return json.dumps(text, ensure_ascii=not text.isprintable())
    if isinstance(value, bool | float | None) or (isinstance(value, int) and abs(value) <= MOST):
        return json.dumps(value)
    return kind_of(value)


def kind_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
    return "a list"
