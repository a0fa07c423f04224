"""One table of the settings file and the variables that go before it, read into a dataclass.

The dataclass says everything: its names are those that may be set, its defaults say what each one
is. What does not fit is refused with the name of the place where it stands.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from headway.errors import BadSettings

LARGEST = 2**63 - 1  # what a database can hold; Python does not even print much larger ones


class Checked(Protocol):
    """A dataclass of settings, which knows what of them cannot work."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def check(self) -> None: ...


S = TypeVar("S", bound=Checked)


@dataclass(frozen=True, slots=True)
class SettingsTable(Generic[S]):
    """Where the settings of one part of the server stand."""

    name: str  # [name] in the file
    prefix: str  # of variables: before a setting's name, in capitals
    defaults: S
    own: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)  # read in another way

    def read(self, file: str | None, environment: Mapping[str, str]) -> S:
        """The environment goes before the file."""
        return self.filled(self.in_file(file) | self.in_environment(environment))

    def filled(self, said: Mapping[str, Any]) -> S:
        settings = replace(self.defaults, **said)
        settings.check()
        return settings

    def in_file(self, file: str | None) -> dict[str, Any]:
        if file is None:
            return {}
        said = tables_in(file).get(self.name, {})
        if not isinstance(said, dict):
            raise BadSettings(f"{self.name} in {file} is a table of settings: [{self.name}]")
        known = [each.name for each in fields(self.defaults)]
        unknown = sorted(set(said) - set(known))
        if unknown:
            raise BadSettings(f"[{self.name}] in {file} has no {', '.join(unknown)}; "
                              f"known are {', '.join(known)}")  # fmt: skip
        return {
            each: self.typed(each, value, f"{each} of [{self.name}]")
            for each, value in said.items()
        }

    def in_environment(self, environment: Mapping[str, str]) -> dict[str, Any]:
        variables = {each.name: self.prefix + each.name.upper() for each in fields(self.defaults)}
        return {
            each: self.typed(each, environment[variable], variable)
            for each, variable in variables.items()
            if variable in environment
        }

    def typed(self, name: str, value: Any, called: str) -> Any:
        """As what the setting is, by its default. `called` is how an error names it."""
        if name in self.own:
            return self.own[name](value)
        default = getattr(self.defaults, name)
        if isinstance(default, tuple):
            return _texts(value, called)
        if isinstance(default, str):
            return _text(value, called)
        return _number(type(default), value, called)


def tables_in(file: str) -> dict[str, Any]:
    """What a settings file has in it."""
    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        raise BadSettings(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # no TOML or UTF-8, a huge number; too deep
        raise BadSettings(f"{file} is not a TOML file: {error}") from error


def _texts(value: Any, called: str) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(each, str) for each in parts):
        raise BadSettings(f"{called} is text, or a list of it")
    return tuple(each.strip() for each in parts if each.strip())


def _text(value: Any, called: str) -> str:
    if not isinstance(value, str):
        raise BadSettings(f"{called} is text; put it in quotes")  # not shown: it may be a secret
    return value


def _number(kind: Callable[[Any], float], value: Any, called: str) -> float:
    try:
        number = kind(value)
    except (TypeError, ValueError, OverflowError):
        raise BadSettings(f"{called} is a number, not {_shown(value)}") from None
    if isinstance(number, int) and abs(number) > LARGEST:
        raise BadSettings(f"{called} is a number, not one so large")
    return number


def _shown(value: Any) -> str:
    """In one short piece, whatever it is."""
    if isinstance(value, str | float):
        return repr(value)
    return "one so large" if isinstance(value, int) else f"a {type(value).__name__}"
