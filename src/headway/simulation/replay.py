"""From the event log of a real server to work that comes again, under another policy.

A recording is lines of JSON: `{"kind": "job", …}` says what a job asked for, `{"kind": "event", …}`
what happened to it (`headway events --record FILE` writes both). Plain events are read too; they
say nothing about upstreams and priorities.

What a log cannot know: what the upstream would have answered at another time. Each attempt takes as
long as it did and ends as it did, in the order of the job's attempts, unless a model of the
upstream says more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from headway.core import Outcome, Traffic
from headway.core.lifecycle import Event
from headway.simulation.errors import BadModel
from headway.simulation.load import USUAL_PRIORITY, Arrival, Attempt

LEAST_S = 60.0
ENDS = {
    Event.OK: Outcome.ok(),
    Event.PUSHBACK: Outcome.pushback(),
    Event.RETRY: Outcome.failed(),
    Event.LOST: Outcome.lost(),
    Event.RETURN: Outcome.returned(),
    Event.PAUSE: Outcome.returned(),
    Event.CANCEL: Outcome.cancelled(),
}
GIVEN_UP = Outcome.failed(fatal=True)  # the last word then is the last word now


@dataclass(slots=True)
class Recording:
    """What came, in order, and how long the log is."""

    arrivals: list[Arrival]
    start_at: float
    duration_s: float
    left_out: int = 0  # jobs that cannot be replayed: they began before the log, or never went
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Life:
    """What the log says about one job."""

    queued_at: float | None = None
    granted_at: float | None = None  # of the attempt that runs
    first_grant_at: float | None = None
    attempts: list[Attempt] = field(default_factory=list)
    ended: bool = False
    headless: bool = False  # its first word was the end of something


def read_recording(path: str) -> Recording:
    try:
        with Path(path).open(encoding="utf-8") as lines:
            return recording_of(_rows(lines, path), path)
    except OSError as error:
        raise BadModel(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadModel(f"{path} is not text: {error}") from error


def _rows(lines: Iterable[str], path: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            raise BadModel(f"{path}: line {number} is no JSON; a recording has one object on each "
                           "line, as `headway events --record` writes it") from None  # fmt: skip
        if not isinstance(row, dict):
            raise BadModel(f"{path}: line {number} is no object")
        yield row


def recording_of(rows: Iterable[dict[str, Any]], path: str) -> Recording:
    """Rows of both kinds, events in the order in which they happened."""
    jobs: dict[int, dict[str, Any]] = {}
    lives: dict[int, _Life] = {}
    first: float | None = None
    last = 0.0
    for row in rows:
        kind = row.get("kind", "event")
        if kind == "job":
            jobs[row["id"]] = row
        elif kind == "event" and row.get("job") is not None and "event" in row:
            at = _moment(row, path)
            first = at if first is None else first
            last = max(last, at)
            _live(lives.setdefault(row["job"], _Life()), row, at)
            jobs.setdefault(row["job"], row)
    if first is None:
        raise BadModel(f"{path} has no events of jobs; record some with `headway events --record`")
    return _recording(jobs, lives, first, last)


def _moment(row: dict[str, Any], path: str) -> float:
    at = row.get("at")
    if isinstance(at, int | float):
        return float(at)
    try:
        return datetime.fromisoformat(str(at)).timestamp()
    except ValueError:
        raise BadModel(f"{path}: an event has the time {at!r}; it must be ISO 8601") from None


def _live(life: _Life, row: dict[str, Any], at: float) -> None:
    event, before, after = row["event"], row.get("before"), row.get("after")
    if event == Event.GRANT:
        life.granted_at = at
        life.first_grant_at = at if life.first_grant_at is None else life.first_grant_at
    elif before == "running":
        if life.granted_at is None:
            life.headless = life.headless or not life.attempts
        else:
            outcome = ENDS.get(event, GIVEN_UP)
            life.attempts.append(Attempt(max(0.0, at - life.granted_at), outcome))
            life.granted_at = None
    if after == "queued" and life.queued_at is None and life.first_grant_at is None:
        life.queued_at = at
    life.ended = after in ("completed", "failed", "cancelled")


def _recording(
    jobs: dict[int, dict[str, Any]], lives: dict[int, _Life], first: float, last: float
) -> Recording:
    usual = _usual_holds(jobs, lives)
    found = Recording([], first, max(LEAST_S, last - first))
    for id, life in lives.items():
        never_went = life.ended and life.first_grant_at is None
        unheard = life.queued_at is None and life.first_grant_at is None
        if life.headless or never_went or unheard:
            found.left_out += 1
            continue
        job = jobs[id]
        if life.granted_at is not None:  # it still ran when the log ended
            so_far = Attempt(max(last - life.granted_at, usual.get(job.get("type"), 0.0)),
                             Outcome.ok())  # fmt: skip
            life.attempts.append(so_far)
        came_at = first if life.queued_at is None else life.queued_at
        arrival = _arrival(job, came_at - first, usual.get(job.get("type"), 1.0))
        arrival.attempts = life.attempts
        if life.queued_at is not None and life.first_grant_at is not None:
            arrival.recorded_wait_s = life.first_grant_at - life.queued_at
        found.arrivals.append(arrival)
    found.arrivals.sort(key=lambda each: each.at)
    if not found.arrivals:
        raise BadModel("nothing in the recording can be replayed: no job begins in it")
    _note(found, jobs)
    return found


def _usual_holds(jobs: dict[int, dict[str, Any]], lives: dict[int, _Life]) -> dict[Any, float]:
    """How long jobs of a type take: the median of those that went well."""
    holds: dict[Any, list[float]] = {}
    for id, life in lives.items():
        well = [each.hold_s for each in life.attempts if each.outcome.kind == "ok"]
        if well:
            holds.setdefault(jobs[id].get("type"), []).extend(well)
    return {type_: median(values) for type_, values in holds.items()}


def _arrival(job: dict[str, Any], at: float, hold_s: float) -> Arrival:
    return Arrival(
        at,
        job.get("tenant") or "",
        upstreams=tuple(job.get("upstreams") or ()),
        weight=job.get("weight") or 1.0,
        lane=job.get("lane") or "default",
        type=job.get("type") or "job",
        tools=tuple(job.get("tools") or ()),
        priority=job.get("priority", USUAL_PRIORITY),
        key=job.get("key"),
        cost=job.get("cost") or 1.0,
        traffic=Traffic.LEFTOVER if job.get("traffic") == "leftover" else Traffic.NORMAL,
        hold_s=hold_s,
    )


def _note(found: Recording, jobs: dict[int, dict[str, Any]]) -> None:
    """What whoever reads the report should know."""
    if found.left_out:
        found.notes.append(
            f"{found.left_out} of {len(found.arrivals) + found.left_out} jobs are left out: they "
            "began before the recording, or were cancelled before they went."
        )
    if not any(job.get("kind") == "job" for job in jobs.values()):
        found.notes.append(
            "The log says nothing about upstreams and priorities; "
            "`headway events --record FILE` writes them, too."
        )
