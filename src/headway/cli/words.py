"""Reading what people type: `name=value`, JSON, and the options that describe a job."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.times import seconds_of, stamp, time_of

QUALIFIERS = ("id", "status", "type", "lane", "tenant", "key", "upstream", "schedule", "error",
              "batch", "label", "created", "finished")  # fmt: skip
STATES = ("pending", "queued", "running", "paused", "completed", "failed", "cancelled")
GROUPS = ("open", "ended", "waiting", "done", "canceled")


def complete_search(incomplete: str) -> list[str]:
    """`sta` → `status:`, `status:fa` → `status:failed`."""
    name, colon, value = incomplete.partition(":")
    if colon and name == "status":
        return [f"status:{each}" for each in (*STATES, *GROUPS) if each.startswith(value)]
    return [f"{each}:" for each in QUALIFIERS if each.startswith(incomplete)]


def complete_scope(incomplete: str) -> list[str]:
    return [each for each in ("read", "submit", "operate", "admin") if each.startswith(incomplete)]


Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="[QUALIFIER:VALUE]...", autocompletion=complete_search,
                   help="type:download status:failed upstream:x.com error:timeout …"),
]  # fmt: skip


def search_of(words: Iterable[str] | None) -> str:
    """The shell has taken the quotes away; a value with spaces gets them back."""
    return " ".join(_quoted(word) for word in words or ())


def _quoted(word: str) -> str:
    name, colon, value = word.partition(":")
    if colon and name in QUALIFIERS and " " in value and not value.startswith('"'):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'{name}:"{escaped}"'
    return word


def value_of(text: str) -> Any:
    """JSON if it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def pairs_of(words: Iterable[str] | None, *, as_text: bool = False) -> dict[str, Any]:
    """`limit=2 every=1s` as an object."""
    found: dict[str, Any] = {}
    for each in words or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"write name=value, not {each!r}")
        if name in found:
            raise typer.BadParameter(f"{name!r} is named twice")
        found[name] = value if as_text else value_of(value)
    return found


def object_of(text: str) -> dict[str, Any]:
    """An object as JSON, from the command line, `@file`, or `-` for stdin."""
    if text == "-":
        text = sys.stdin.read()
    elif text.startswith("@"):
        try:
            text = Path(text[1:]).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{text[1:]} cannot be read: {error}") from None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"--args is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise typer.BadParameter('--args is an object: {"name": value}')
    return found


# ---------------------------------------------------------------------- a job

JobType = Annotated[str, typer.Argument(metavar="TYPE", help="The type of the job.")]
Arguments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=VALUE]...", help="What its handler is called with; JSON or text."
    ),
]
Args = Annotated[
    str | None, typer.Option(metavar="JSON", help="The same as an object; @FILE reads one.")
]
Lane = Annotated[str | None, typer.Option(help="The lane it stands in.")]
Tenant = Annotated[str | None, typer.Option(help="Whose job it is.")]
Key = Annotated[str | None, typer.Option(help="Jobs with the same key run one at a time.")]
Upstream = Annotated[list[str] | None, typer.Option(help="What it calls; several are candidates.")]
Tool = Annotated[list[str] | None, typer.Option(help="What it shares with others.")]
Priority = Annotated[int | None, typer.Option(help="Lower goes first; 5 is usual.")]
Label = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="To find it by.")]
MaxAttempts = Annotated[int | None, typer.Option(min=1, help="How often it is tried.")]
Delay = Annotated[str | None, typer.Option(metavar="DURATION", help="Not before 30s, 5m, …")]
At = Annotated[str | None, typer.Option(metavar="TIME", help="Not before 2026-01-31T12:00.")]
Deadline = Annotated[str | None, typer.Option(metavar="TIME", help="Given up after this.")]
Within = Annotated[str | None, typer.Option(metavar="DURATION", help="A deadline from its start.")]
Unique = Annotated[str | None, typer.Option(metavar="KEY", help="One open job of this key.")]
After = Annotated[list[int] | None, typer.Option(metavar="ID", help="Only after these jobs.")]
Batch = Annotated[int | None, typer.Option(metavar="ID", help="Counted in this batch.")]
KeepResult = Annotated[str | None, typer.Option(metavar="DURATION", help="How long.")]


def job_body(type: str, arguments: list[str] | None, args: str | None, **said: Any) -> Any:
    """What the API is sent to enqueue a job. What was not said is left out."""
    if args is not None and arguments:
        raise typer.BadParameter("write name=value or --args, but not both")
    body = {"type": type, "args": pairs_of(arguments) if args is None else object_of(args)}
    renamed = {"tool": "tools", "label": "labels"}
    for name, value in said.items():
        if value is not None and value != []:
            field, sent = _field(name, value)
            body[renamed.get(field, field)] = sent
    return body


def _field(name: str, value: Any) -> tuple[str, Any]:
    match name:
        case "delay" | "within" | "keep_result":
            return f"{name}_s", seconds_of(value)
        case "at" | "deadline":
            return name, stamp(time_of(value))
        case "label":
            return name, pairs_of(value, as_text=True)
        case "unique":
            return name, {"key": value}
    return name, value
