"""`headway import`: what `headway export` has written, brought in line by line.

Settings and schedules may be brought in again and again. Jobs that had not ended are enqueued as
new ones. A line that cannot be read ends it: everything before it is done, nothing after it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Annotated, Any, TextIO

import typer

from headway.cli.asking import Call, asks
from headway.cli.client import Client, CommandFailed, part
from headway.cli.exporting import FORMAT, GATES, File, counting
from headway.cli.printing import count
from headway.cli.times import duration_text, moment

OPEN = ("pending", "queued", "running", "paused")
ASIDE_S = 30.0  # a paused job may not start before it is paused again
SCHEDULED = ("lane", "tenant", "key", "priority")


@dataclass
class Done:
    """What became of the lines."""

    settings: int = 0
    schedules: int = 0
    jobs: list[dict[str, int]] = field(default_factory=list)  # the old number and the new one
    ended: int = 0  # jobs that are not enqueued again
    left_out: list[str] = field(default_factory=list)  # and why

    def words(self) -> str:
        brought = (
            count(self.settings, "setting"),
            count(self.schedules, "schedule"),
            count(len(self.jobs), "job"),
        )
        return f"{', '.join(brought)} ({self.ended} had ended, {len(self.left_out)} left out)"


@asks
def import_(
    call: Call,
    file: File,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read it, and change nothing.")
    ] = False,
) -> None:
    """Bring in what `export` has written: settings, schedules, and the jobs that had not ended."""
    done = Done()
    client = call.client
    with _opened(file) as (lines, size), counting("bytes" if size else "lines") as tell:
        for number, line in _read(lines, size, tell):
            try:
                _bring(client, line, done, dry_run)
            except _UNFIT as error:
                raise CommandFailed(
                    f"line {number} of {file}: {_said(error)}; done before it: {done.words()}"
                ) from error
    _tell(call, done, dry_run)


class _BrokenLine(Exception):
    """A line that is not one of an export."""


_UNFIT = (_BrokenLine, CommandFailed, KeyError, TypeError, ValueError, AttributeError)


def _said(error: BaseException) -> str:
    match error:
        case KeyError():
            return f"{error} is missing"
        case _BrokenLine() | CommandFailed():
            return str(error)
    return "is not as an export writes it"


@contextmanager
def _opened(file: str) -> Iterator[tuple[TextIO, int]]:
    """The lines, and how many bytes they have if that is known."""
    if file == "-":
        yield sys.stdin, 0
        return
    try:
        with open(file, encoding="utf-8") as lines:
            yield lines, Path(file).stat().st_size
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from error


def _read(
    lines: TextIO, size: int, tell: Callable[[int, int], None]
) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """(number, line); None: it cannot be read."""
    read = 0
    number = 0
    while True:
        number += 1
        try:
            text = lines.readline()
        except UnicodeDecodeError:
            yield number, None
            return
        if not text:
            return
        read += len(text.encode()) if size else 1
        tell(read, size or read)
        if text.strip():
            yield number, _decoded(text)


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None


def _bring(client: Client, line: dict[str, Any] | None, done: Done, dry_run: bool) -> None:
    if line is None:
        raise _BrokenLine("it is no JSON object")
    match line.get("kind"):
        case "headway-export":
            if line["format"] != FORMAT:
                raise _BrokenLine(
                    f"it has format {line['format']}, and this Headway knows {FORMAT}"
                )
        case "setting":
            _bring_setting(client, line, dry_run)
            done.settings += 1
        case "schedule":
            _bring_schedule(client, line, done, dry_run)
        case "job":
            _bring_job(client, line, done, dry_run)
        case kind:
            raise _BrokenLine(f"it has the kind {kind!r}, which no export has")


def _bring_setting(client: Client, line: dict[str, Any], dry_run: bool) -> None:
    if line["of"] not in GATES.values():
        raise _BrokenLine(
            f"it sets something of {line['of']!r}; known are {', '.join(GATES.values())}"
        )
    path, value = f"/api/{line['of']}/{part(line['name'])}/settings", line["value"]
    if not dry_run:
        client.put(path, value)


def _bring_schedule(client: Client, line: dict[str, Any], done: Done, dry_run: bool) -> None:
    name, rule = line["name"], line["rule"]
    if line["source"] == "code":
        done.left_out.append(f"schedule {name}: it comes with the app that declares it")
        return
    if line.get("redacted"):
        done.left_out.append(f"schedule {name}: its secrets were not exported")
        return
    job = {each: line[each] for each in SCHEDULED if line[each] is not None}
    job |= {"type": line["type"], "args": line["args"]}
    if line["upstreams"]:
        job["upstream"] = line["upstreams"]
    body: dict[str, Any] = {"name": name, "job": job}
    if "cron" in rule:
        body |= {"cron": rule["cron"], "zone": rule["zone"]}
    else:
        body["every"] = duration_text(rule["every_s"])
    if not dry_run:
        client.post("/api/schedules", body)
        if line["paused"]:
            client.post(f"/api/schedules/{part(name)}/pause")
    done.schedules += 1


def _bring_job(client: Client, line: dict[str, Any], done: Done, dry_run: bool) -> None:
    id, body = line["id"], line["job"]
    why = None
    if line["status"] not in OPEN:
        done.ended += 1
        return
    if line.get("redacted"):
        why = "its secrets were not exported"
    elif line["schedule"] is not None:
        why = f"the schedule {line['schedule']} makes its own"
    elif _is_late(body):
        why = "its deadline is over"
    if why is not None:
        done.left_out.append(f"job {id}: {why}")
        return
    if dry_run:
        done.jobs.append({"was": id})
        return
    paused = line["status"] == "paused"
    if paused and "at" not in body:
        body = {**body, "delay_s": ASIDE_S}
    made = client.post("/api/jobs", body)
    if paused:
        client.post(f"/api/jobs/{made['id']}/pause")
    done.jobs.append({"was": id, "is": made["id"]})


def _is_late(body: dict[str, Any]) -> bool:
    deadline = moment(body.get("deadline"))
    return deadline is not None and deadline <= time()


def _tell(call: Call, done: Done, dry_run: bool) -> None:
    if call.out.as_json:
        call.out.line({
            "dry_run": dry_run, "settings": done.settings, "schedules": done.schedules,
            "jobs": done.jobs, "ended": done.ended, "left_out": done.left_out,
        }, indent=2)  # fmt: skip
        return
    for each in done.jobs:
        if "is" in each:
            call.out.say(f"job {each['was']} is now job {each['is']}")
    for why in done.left_out:
        call.out.aside(f"left out: {why}")
    call.out.say(f"{'would bring in' if dry_run else 'brought in'} {done.words()}")
