"""Writes the Python reference from docstrings: `python -m tools.reference`.

With `--check` nothing is written, and it fails if what is there is not what would be written.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import headway
import headway.testing
from headway import errors
from headway.core.explain import Explanation
from headway.engine.hands.context import RunningJob
from headway.engine.hands.processes import Completed
from headway.sdk.jobs import Options
from headway.store import records

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
# What is public but for the machinery: not for programs that use Headway.
INNER = {
    "App": {"preparing", "read_settings", "declared_schedules", "watching", "remote", "store"},
    "Job": {"handler", "name"},
    "RunningJob": {"flush", "note_process", "with_end", "lock", "work", "task"},
    "Pushback": {"outcome"},
    "BadStatus": {"outcome"},
    "Cancel": {"outcome"},
    "Fail": {"outcome"},
    "Retry": {"outcome"},
    "Snooze": {"outcome"},
}
INTRODUCTION = {
    "python": (
        "# Python API: `headway`\n\nEverything here is imported from `headway`. What each option "
        "means in practice is in the guides: [jobs](../guides/jobs.md), "
        "[upstreams](../guides/upstreams.md), [schedules](../guides/schedules.md), "
        "[slots](../guides/slots.md)."
    ),
    "results": (
        "# What comes back\n\nValues that the [Python API](python.md) returns. All of them are "
        "plain data; times are seconds since 1970."
    ),
    "errors": (
        "# Errors: `headway.errors`\n\nOne family of exceptions. Each message says what to do. "
        "After every error but `OutcomeUnknown`, nothing was stored."
    ),
    "testing": (
        "# Testing: `headway.testing`\n\nA virtual clock and upstreams that follow a script; "
        "the [guide](../guides/testing.md) shows them at work."
    ),
}
RUNNING = "The running `job`"  # beside the class `Job`
NOTE = "<!-- Made by `make reference` from docstrings: change those, and make it again. -->"


def public_names() -> dict[str, dict[str, Any]]:
    """What is described, by page."""
    python = {name: getattr(headway, name) for name in headway.__all__ if name != "__version__"}
    python["job"] = RunningJob  # `job` stands for the one that runs
    python["Options"] = Options
    returned = (Explanation, records.Job, records.Event, records.Progress, records.Schedule,
                records.TypeStats, records.Purged, Completed)  # fmt: skip
    return {
        "python": dict(sorted(python.items(), key=lambda pair: pair[0].lower())),
        "results": {each.__name__: each for each in returned},
        "errors": {
            name: each
            for name, each in vars(errors).items()
            if inspect.isclass(each) and each.__module__ == errors.__name__
        },
        "testing": {name: getattr(headway.testing, name) for name in headway.testing.__all__},
    }


def members_of(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that somebody wrote, inherited ones of Headway included."""
    hidden = INNER.get(thing.__name__, set())
    for name in dict.fromkeys(name for each in thing.__mro__ for name in vars(each)):
        member = inspect.getattr_static(thing, name)
        plain = getattr(member, "__func__", member)
        if name.startswith("_") or name in hidden:
            continue
        if isinstance(member, property) or inspect.isfunction(plain):
            home = plain.fget if isinstance(member, property) else plain
            if home.__module__.startswith("headway."):
                yield name, member


def doc_of(thing: Any) -> str:
    """As it was written, and not what Python makes up for records."""
    text = inspect.cleandoc(getattr(thing, "__doc__", None) or "")
    made_up = inspect.isclass(thing) and text.startswith(f"{thing.__name__}(")
    return "" if made_up else text


# ---------------------------------------------------------------------- writing


def page(name: str) -> str:
    parts = [INTRODUCTION[name], NOTE]
    things = public_names()[name]
    if name != "errors":
        parts.append(" · ".join(f"[`{each}`](#{anchor(each)})" for each in things))
    for each, thing in things.items():
        parts.append(f"## `{each}`" if each != "job" else f"## {RUNNING}")
        parts += described(each, thing)
    return "\n\n".join(parts) + "\n"


def anchor(name: str) -> str:
    return RUNNING.lower().replace(" ", "-").replace("`", "") if name == "job" else name.lower()


def described(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        yield code(f"{name}{signature(thing)}")
        yield doc_of(thing)
        return
    if issubclass(thing, BaseException):
        yield f"A `{thing.__mro__[1].__name__}`."
    fields = dataclasses.is_dataclass(thing)  # which have a table
    if not issubclass(thing, Enum) and "__init__" in vars(thing) and name != "job" and not fields:
        yield code(f"{name}{signature(thing)}")
    yield doc_of(thing)
    yield from values_of(thing)
    for member, value in members_of(thing):
        yield f"### `{name}.{member}`"
        if isinstance(value, property):
            yield f"Property: `{annotation(value.fget, 'return')}`"
        else:
            plain = getattr(value, "__func__", value)
            prefix = "async " if inspect.iscoroutinefunction(plain) else ""
            yield code(f"{prefix}{name}.{member}{signature(plain, method=True)}")
        yield doc_of(value)


def values_of(thing: type) -> Iterator[str]:
    """The fields of a record, or the members of an enumeration, as a table."""
    if issubclass(thing, Enum):
        yield "\n".join(["| value | |", "| --- | --- |",
                         *(f"| `{each.name}` | `{each.value}` |" for each in thing)])  # fmt: skip
        return
    fields = getattr(thing, "_fields", None) or (
        [each.name for each in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else []
    )
    if not fields:
        return
    hints, rows = thing.__annotations__, ["| field | type | default |", "| --- | --- | --- |"]
    for name in fields:
        default = default_of(thing, name)
        kind = str(hints.get(name, "")).replace("|", "\\|")
        rows.append(f"| `{name}` | `{kind}` | {f'`{default}`' if default else ''} |")
    yield "\n".join(rows)


def default_of(thing: type, name: str) -> str:
    if hasattr(thing, "_field_defaults"):
        return repr(thing._field_defaults[name]) if name in thing._field_defaults else ""
    field = thing.__dataclass_fields__[name]  # type: ignore[attr-defined]
    if field.default is not dataclasses.MISSING:
        return repr(getattr(field.default, "value", field.default))
    return "{}" if field.default_factory is not dataclasses.MISSING else ""


def signature(thing: Callable[..., Any], *, method: bool = False) -> str:
    """As it was written: annotations are texts, and only defaults are values."""
    found = inspect.signature(thing)
    words, by_name = [], False
    for each in list(found.parameters.values())[1 if method else 0 :]:
        if each.kind is each.KEYWORD_ONLY and not by_name:
            words.append("*")
        by_name = each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        words.append(parameter(each))
    returns = found.return_annotation
    end = "" if inspect.isclass(thing) or returns is found.empty else f" -> {returns}"
    return f"({', '.join(words)}){end}"


def parameter(each: inspect.Parameter) -> str:
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    kind = "" if each.annotation is each.empty else f": {each.annotation}"
    if each.default is each.empty:
        return f"{stars}{each.name}{kind}"
    return f"{each.name}{kind} = {each.default!r}" if kind else f"{each.name}={each.default!r}"


def annotation(function: Any, name: str) -> str:
    return str(function.__annotations__.get(name, "Any"))


def code(text: str) -> str:
    """Long signatures have a line for each parameter."""
    if len(text) > 90 and "(" in text:
        head, _, rest = text.partition("(")
        inside, _, tail = rest.rpartition(")")
        parts = ",\n    ".join(split_parameters(inside))
        text = f"{head}(\n    {parts},\n){tail}"
    return f"```text\n{text}\n```"


def split_parameters(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def main(arguments: list[str]) -> int:
    outdated = []
    for name in INTRODUCTION:
        file = REFERENCE / f"{name}.md"
        text = page(name)
        if "--check" in arguments:
            if not file.exists() or file.read_text("utf-8") != text:
                outdated.append(file.name)
        else:
            file.write_text(text, "utf-8")
    if outdated:
        print(f"docs/reference: {', '.join(outdated)} is not what the docstrings say; "
              "run `make reference`", file=sys.stderr)  # fmt: skip
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
