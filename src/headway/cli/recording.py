"""`headway events --record`: what happened and what the jobs asked for, for `headway simulate
--replay`. No payload, result or error is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from time import time
from typing import Any

from headway.cli.asking import Call
from headway.cli.client import Client, CommandFailed, Refused
from headway.cli.exporting import all_jobs, written
from headway.cli.times import moment, stamp

FORMAT = 1
MOST_OLDER = 2_000  # jobs that are asked for one by one
AT_ONCE = 1_000  # events that the API gives at once
ASKED = ("id", "type", "lane", "tenant", "key", "priority", "upstreams", "tools", "weight",
         "traffic", "cost")  # fmt: skip
HAPPENED = ("at", "job", "event", "before", "after", "fence")


def record(call: Call, file: str, since_s: float) -> None:
    client, start = call.client, time() - since_s
    counts = {"job": 0, "event": 0}
    with written(file) as out:

        def write(kind: str, line: dict[str, Any]) -> None:
            out.write(json.dumps({"kind": kind, **line}, ensure_ascii=False) + "\n")
            counts[kind] = counts.get(kind, 0) + 1

        write("headway-recording", {"format": FORMAT, "since": stamp(start)})
        seen: set[int] = set()
        for event in _events_since(client, start):
            seen.add(event["job"])
            write("event", {name: event[name] for name in HAPPENED})
        for job in _jobs_of(client, seen, start):
            write("job", {name: job[name] for name in ASKED})
    if counts["job"] < len(seen):
        call.out.aside(f"{len(seen) - counts['job']} of {len(seen)} jobs are from before that time "
                       "or removed, and are left out of a replay")  # fmt: skip
    if not counts["event"]:
        call.out.aside("nothing happened to any job in that time; the recording is empty")
    said = f"recorded {counts['event']} events of {counts['job']} jobs"
    if file == "-":
        call.out.aside(said)
    elif call.out.as_json:
        call.out.line({"file": file, "events": counts["event"], "jobs": counts["job"]}, indent=2)
    else:
        call.out.say(f"{said} in {file}; `headway simulate POLICY --replay {file}` runs them again")


def _events_since(client: Client, start: float) -> Iterator[dict[str, Any]]:
    """Transitions of jobs, oldest first."""
    cursor = first_after(client, start) - 1
    while True:
        found = client.get("/api/trail", after=cursor, limit=AT_ONCE)["items"]
        for event in found:
            if event["job"] is not None and event["after"] is not None:
                yield event
        if len(found) < AT_ONCE:
            return
        cursor = found[-1]["id"]


def _jobs_of(client: Client, seen: set[int], start: float) -> Iterator[dict[str, Any]]:
    """Those that came in this time in pages, and one by one those that waited from before."""
    missing = set(seen)
    for job, _ in all_jobs(client, f"created:>{stamp(start)}"):
        if job["id"] in missing:
            missing.discard(job["id"])
            yield job
    for id in sorted(missing)[:MOST_OLDER]:
        with suppress(Refused):  # it is purged
            yield client.get(f"/api/jobs/{id}")


def first_after(client: Client, start: float) -> int:
    """The number of the first event from this time on: numbers and times grow together."""
    trail = client.get("/api/trail", limit=1)
    low, high = int(trail["oldest"]), int(trail["newest"]) + 1
    while low < high:
        middle = (low + high) // 2
        found = client.get("/api/trail", after=middle - 1, limit=1)["items"]
        at = moment(found[0]["at"]) if found else None
        if at is None and found:
            raise CommandFailed("the server has an event without a time; it cannot be recorded")
        if at is None or at >= start:
            high = middle
        else:
            low = middle + 1
    return max(1, low)
