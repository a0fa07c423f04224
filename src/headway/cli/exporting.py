"""`headway export`: jobs, schedules and what operators have set, as lines of JSON.

Tokens are never in it. What looks like a secret in a payload is hidden, and such a job cannot be
enqueued again from the file; `--with-secrets` writes payloads as they are.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headway import __version__
from headway.cli.asking import Call, asks
from headway.cli.client import PAGE, Client, CommandFailed
from headway.cli.printing import count, new_console
from headway.cli.times import moment, stamp
from headway.cli.words import complete_search
from headway.net.redaction import redact, redact_value

FORMAT = 1
GATES = {"lane": "lanes", "upstream": "upstreams", "tool": "tools", "type": "types"}
# What a job is asked for with, as far as the API shows it.
ASKED = ("type", "lane", "tenant", "key", "priority", "labels", "about", "deadline", "weight",
         "traffic", "cost", "tools", "ordered", "keep_result_s")  # fmt: skip
# What became of it: for the record, since a job that has ended is not enqueued again.
BECAME = ("id", "status", "upstream", "batch", "schedule", "created_at", "started_at",
          "finished_at", "failed_attempts", "last_error")  # fmt: skip

File = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for stdout or stdin.")]


@asks
def export(
    call: Call,
    file: File,
    match: Annotated[
        str, typer.Option(metavar="SEARCH", autocompletion=complete_search, help="Only these jobs.")
    ] = "",
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Payloads as they are, secrets included.")
    ] = False,
) -> None:
    """Write jobs with their payloads, schedules and operators' settings as lines of JSON."""
    client = call.client
    counts = {"job": 0, "schedule": 0, "setting": 0}
    with written(file) as out:

        def write(kind: str, line: dict[str, Any]) -> None:
            out.write(json.dumps({"kind": kind, **line}, ensure_ascii=False) + "\n")
            counts[kind] += 1

        out.write(json.dumps({"kind": "headway-export", "format": FORMAT, "version": __version__}))
        out.write("\n")
        for kind, line in _settings(client):
            write(kind, line)
        for schedule in client.get("/api/schedules")["items"]:
            write("schedule", _without_secrets(schedule, with_secrets))
        with counting("jobs") as tell:
            for job, total in all_jobs(client, match):
                write("job", _line_of(client, job, with_secrets))
                tell(counts["job"], total)
    said = ", ".join(count(many, noun) for noun, many in counts.items())
    if file == "-":
        call.out.aside(f"exported {said}")
    elif call.out.as_json:
        call.out.line(
            {"file": file, **{f"{noun}s": many for noun, many in counts.items()}}, indent=2
        )
    else:
        call.out.say(f"exported {said} to {file}")


@contextmanager
def written(file: str) -> Iterator[TextIO]:
    """The file as a whole or not at all. Payloads are in it, so nobody else may read it."""
    if file == "-":
        yield sys.stdout
        return
    path = Path(file)
    partial = path.with_name(f"{path.name}.part")
    try:
        with open(partial, "w", encoding="utf-8", opener=_private) as out:
            yield out
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CommandFailed(f"{file} cannot be written: {error.strerror}") from error
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _settings(client: Client) -> Iterator[tuple[str, dict[str, Any]]]:
    """What operators have set, each name or pattern once."""
    for row in client.get("/api/settings")["items"]:
        noun = GATES.get(row["kind"])
        if row["overridden"] and noun is not None:
            value = {name: said for name, said in row["value"].items()
                     if row["from"][name] == "operator"}  # fmt: skip
            yield "setting", {"of": noun, "name": row["name"], "value": value}


def all_jobs(client: Client, match: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The oldest first, so that they come back in their order. The API lists the newest first, so
    its pages are read from the last to the first; what is enqueued meanwhile is left out, or it
    would move them.
    """
    newest = client.get("/api/jobs", q=match, size=1)
    if not newest["items"]:
        return
    until = stamp((moment(newest["items"][0]["created_at"]) or 0.0) + 0.001)
    q = match if "created:<" in match else f"{match} created:<{until}".strip()
    total = client.get("/api/jobs", q=q, size=1)["total"]
    last = 0
    for page in range(-(-total // PAGE), 0, -1):
        for job in reversed(client.get("/api/jobs", q=q, page=page, size=PAGE)["items"]):
            if job["id"] > last:  # what was purged or has changed meanwhile makes others come twice
                last = job["id"]
                yield job, total


def _line_of(client: Client, job: dict[str, Any], with_secrets: bool) -> dict[str, Any]:
    line = {name: job[name] for name in BECAME}
    asked = {name: job[name] for name in ASKED if job.get(name) not in (None, "", [], {})}
    if job["upstreams"]:
        asked["upstream"] = job["upstreams"]
    if job["next_attempt_at"] is not None:
        asked["at"] = job["next_attempt_at"]
    asked["args"] = client.get(f"/api/jobs/{job['id']}/payload")["value"]
    return _without_secrets({**line, "job": asked}, with_secrets)


def _without_secrets(line: dict[str, Any], with_secrets: bool) -> dict[str, Any]:
    """`redacted` says that something in it was hidden, so that nobody enqueues it like this."""
    if line.get("last_error"):
        line["last_error"] = redact(line["last_error"])
    hidden = redact_value(line)
    if with_secrets or hidden == line:
        return line
    return {**hidden, "redacted": True}


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr for whoever watches; nothing otherwise."""
    console = new_console(stderr=True)
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what)
        yield lambda done, total: bar.update(task, completed=done, total=total)
