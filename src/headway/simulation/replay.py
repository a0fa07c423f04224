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
from typing import Annotated, Any, TypeVar

import msgspec

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


class JobLine(msgspec.Struct):
    """What a job asked for."""

    id: int
    type: str = "job"
    tenant: str | None = None
    lane: str | None = None
    key: str | None = None
    priority: int | None = None
    upstreams: tuple[Annotated[str, msgspec.Meta(min_length=1)], ...] | None = None
    tools: tuple[str, ...] | None = None
    weight: Annotated[float, msgspec.Meta(gt=0)] | None = None
    traffic: str | None = None
    cost: Annotated[float, msgspec.Meta(ge=0)] | None = None


class EventLine(msgspec.Struct):
    """What happened to one."""

    job: int
    event: str
    at: float | str
    before: str | None = None
    after: str | None = None
    type: str = "job"


T = TypeVar("T", JobLine, EventLine)


@dataclass(slots=True)
class Recording:
    """What came, in order, and how long the log is."""

    arrivals: list[Arrival]
    start_at: float
    duration_s: float
    left_out: int = 0  # jobs that cannot be replayed: from before the log, never gone, or unknown
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Life:
    """What the log says about one job."""

    type: str = "job"
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
            yield {}  # so that lines can be counted
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            raise BadModel(f"{path}: line {number} is no JSON; a recording has one object on each "
                           "line, as `headway events --record` writes it") from None  # fmt: skip
        if not isinstance(row, dict):
            raise BadModel(f"{path}: line {number} is no object")
        yield row


def recording_of(rows: Iterable[dict[str, Any]], path: str) -> Recording:
    """Rows of both kinds, events in the order in which they happened."""
    jobs: dict[int, JobLine] = {}
    lives: dict[int, _Life] = {}
    first: float | None = None
    last = 0.0
    for number, row in enumerate(rows, 1):
        where = f"{path}: line {number}"
        kind = row.get("kind", "event")
        if kind == "job":
            job = _line(row, JobLine, where)
            jobs[job.id] = job
        elif kind == "event" and row.get("job") is not None and "event" in row:
            event = _line(row, EventLine, where)
            at = _moment(event.at, where)
            first = at if first is None else first
            last = max(last, at)
            _live(lives.setdefault(event.job, _Life(type=event.type)), event, at)
    if first is None:
        raise BadModel(f"{path} has no events of jobs; record some with `headway events --record`")
    return _recording(jobs, lives, first, last)


def _line(row: dict[str, Any], type_: type[T], where: str) -> T:
    try:
        return msgspec.convert(row, type_)
    except msgspec.ValidationError as error:
        raise BadModel(f"{where} is not as `headway events --record` writes it: {error}") from None


def _moment(at: float | str, where: str) -> float:
    if isinstance(at, int | float):
        return float(at)
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        raise BadModel(f"{where}: the time of the event is {at!r}; write ISO 8601") from None


def _live(life: _Life, row: EventLine, at: float) -> None:
    event, before, after = row.event, row.before, row.after
    if event == Event.GRANT:
        life.granted_at = at
        life.first_grant_at = at if life.first_grant_at is None else life.first_grant_at
    elif before == "running":
        if life.granted_at is None:
            life.headless = life.headless or not life.attempts
        else:
            outcome = ENDS.get(event, GIVEN_UP)  # type: ignore[call-overload]
            life.attempts.append(Attempt(max(0.0, at - life.granted_at), outcome))
            life.granted_at = None
    if after == "queued" and life.queued_at is None and life.first_grant_at is None:
        life.queued_at = at
    life.ended = after in ("completed", "failed", "cancelled")


def _recording(
    jobs: dict[int, JobLine], lives: dict[int, _Life], first: float, last: float
) -> Recording:
    usual = _usual_holds(jobs, lives)
    plain = not jobs  # events alone, which say nothing of what jobs ask for
    found = Recording([], first, max(LEAST_S, last - first))
    for id, life in lives.items():
        never_went = life.ended and life.first_grant_at is None
        unheard = life.queued_at is None and life.first_grant_at is None
        unknown = id not in jobs and not plain  # it would seem to ask for nothing
        if life.headless or never_went or unheard or unknown:
            found.left_out += 1
            continue
        job = jobs.get(id) or JobLine(id, type=life.type)
        if life.granted_at is not None:  # it still ran when the log ended
            so_far = Attempt(max(last - life.granted_at, usual.get(job.type, 0.0)),
                             Outcome.ok())  # fmt: skip
            life.attempts.append(so_far)
        came_at = first if life.queued_at is None else life.queued_at
        arrival = _arrival(job, came_at - first, usual.get(job.type, 1.0))
        arrival.attempts = life.attempts
        if life.queued_at is not None and life.first_grant_at is not None:
            arrival.recorded_wait_s = life.first_grant_at - life.queued_at
        found.arrivals.append(arrival)
    found.arrivals.sort(key=lambda each: each.at)
    if not found.arrivals:
        raise BadModel("nothing in the recording can be replayed: no job begins in it")
    _note(found, plain=plain)
    return found


def _usual_holds(jobs: dict[int, JobLine], lives: dict[int, _Life]) -> dict[str, float]:
    """How long jobs of a type take: the median of those that went well."""
    holds: dict[str, list[float]] = {}
    for id, life in lives.items():
        well = [each.hold_s for each in life.attempts if each.outcome.kind == "ok"]
        if well:
            holds.setdefault(jobs[id].type if id in jobs else life.type, []).extend(well)
    return {type_: median(values) for type_, values in holds.items()}


def _arrival(job: JobLine, at: float, hold_s: float) -> Arrival:
    return Arrival(
        at,
        job.tenant or "",
        upstreams=job.upstreams or (),
        weight=1.0 if job.weight is None else job.weight,
        lane=job.lane or "default",
        type=job.type,
        tools=job.tools or (),
        priority=USUAL_PRIORITY if job.priority is None else job.priority,
        key=job.key,
        cost=1.0 if job.cost is None else job.cost,
        traffic=Traffic.LEFTOVER if job.traffic == "leftover" else Traffic.NORMAL,
        hold_s=hold_s,
    )


def _note(found: Recording, *, plain: bool) -> None:
    """What whoever reads the report should know."""
    if found.left_out:
        found.notes.append(
            f"{found.left_out} of {len(found.arrivals) + found.left_out} jobs are left out: they "
            "began before the recording, were cancelled before they went, or are known no more."
        )
    if plain:
        found.notes.append(
            "The log says nothing about upstreams and priorities; "
            "`headway events --record FILE` writes them, too."
        )
