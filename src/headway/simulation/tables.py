"""Reading plain data with care: whatever is wrong is said with its file and its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headway.core.recurrence import duration_s
from headway.simulation.errors import BadModel

MOST = 1e9


class Table:
    """A table of a file. Each key is taken once; `end` complains about those that nobody took."""

    def __init__(self, file: str, values: Any, path: str = "") -> None:
        self.file = file
        self.path = path
        if not isinstance(values, dict):
            raise BadModel(f"{file}: {path or 'the file'} must be a table, not {values!r}")
        self._values = dict(values)
        self._known: list[str] = []

    def key(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def wrong(self, name: str, what: str) -> BadModel:
        return BadModel(f"{self.file}: {self.key(name)} {what}")

    def has(self, name: str) -> bool:
        return name in self._values

    def names(self) -> list[str]:
        return list(self._values)

    def take(self, name: str, default: Any = None) -> Any:
        self._known.append(name)
        return self._values.pop(name, default)

    def end(self) -> None:
        if self._values:
            unknown = next(iter(self._values))
            known = ", ".join(sorted(self._known))
            raise self.wrong(unknown, f"is not known here; known are {known}")

    # ------------------------------------------------------------------ kinds of values

    def text(self, name: str, default: str, known: Sequence[str] = ()) -> str:
        value = self.take(name, default)
        if not isinstance(value, str):
            raise self.wrong(name, f"must be text, not {value!r}")
        if known and value not in known:
            raise self.wrong(name, f"is {value!r}; known are {', '.join(known)}")
        return value

    def number(self, name: str, default: float, *, least: float = 0.0, most: float = MOST) -> float:
        value = self.take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, f"must be a number, not {value!r}")
        if not least <= value <= most:
            raise self.wrong(name, f"must be from {least:g} to {most:g}, not {value!r}")
        return float(value)

    def whole(self, name: str, default: int, *, least: int = 0, most: int = 1_000_000) -> int:
        value = self.take(name, default)
        if type(value) is not int or not least <= value <= most:
            raise self.wrong(name, f"must be a whole number from {least} to {most}, not {value!r}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, f"must be true or false, not {value!r}")
        return value

    def seconds(self, name: str, default_s: float) -> float:
        """A duration such as `90s`; a number alone is refused, for nobody knows its unit."""
        value = self.take(name)
        return default_s if value is None else self.seconds_of(name, value)

    def seconds_of(self, name: str, value: Any) -> float:
        if value == 0 and not isinstance(value, bool):
            return 0.0
        try:
            return duration_s(value)
        except ValueError as error:
            raise self.wrong(name, f"is wrong: {error}") from None

    def names_in(self, name: str) -> tuple[str, ...]:
        """Text, or a list of texts."""
        value = self.take(name, [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(name, f"must be a name or a list of names, not {value!r}")
        twice = next((each for each in value if value.count(each) > 1), None)
        if twice is not None:
            raise self.wrong(name, f"names {twice!r} twice")
        return tuple(value)

    def table(self, name: str) -> Table | None:
        value = self.take(name)
        return None if value is None else Table(self.file, value, self.key(name))

    def tables(self, name: str) -> list[Table]:
        """A list of tables, or one alone."""
        value = self.take(name, [])
        if isinstance(value, dict):
            return [Table(self.file, value, self.key(name))]
        if not isinstance(value, list):
            raise self.wrong(name, f"must be a list of tables, not {value!r}")
        return [
            Table(self.file, each, f"{self.key(name)}[{place}]") for place, each in enumerate(value)
        ]
