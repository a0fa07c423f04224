"""Recurring jobs: from `every=` to the row of a schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec

from headway.core.recurrence import Every, spread_anchor
from headway.cron import Cron
from headway.engine.rules import Rule, rule_text
from headway.engine.schedules import ScheduleOptions
from headway.errors import BadJob
from headway.sdk.jobs import Job
from headway.store.records import NewJob, Schedule


@dataclass(frozen=True, slots=True)
class Recurring:
    """A job that was declared with `every=`."""

    name: str
    job: Job[Any, Any]
    every: Any


def rule_from(name: str, every: Any) -> Rule:
    """`Every(...)`, `Cron(...)`, or text such as "30m". Each name gets a phase of its own."""
    if isinstance(every, Cron):
        return every
    if isinstance(every, str):
        every = Every.parse(every)
    if not isinstance(every, Every):
        raise BadJob(f"every is Every(...), Cron(...) or text such as '30m', not {every!r}")
    rule: Every = every
    if rule.anchor_at == 0.0:
        rule = replace(rule, anchor_at=spread_anchor(name, rule.interval_s))
    return replace(rule, seed=rule.seed or name)


def schedule_row(name: str, call: NewJob, every: Any, now: float, source: str) -> Schedule:
    if not name:
        raise BadJob("a schedule needs a name")
    if call.unique is not None or call.after or call.deadline is not None:
        raise BadJob("a recurring job cannot be unique, have a deadline, or follow other jobs")
    options = ScheduleOptions(
        lane=call.lane,
        tenant=call.tenant,
        key=call.key,
        upstreams=call.upstreams,
        priority=call.priority,
        spec=call.spec,
    )
    return Schedule(
        name,
        call.type,
        call.args,
        rule_text(rule_from(name, every)),
        msgspec.json.encode(options).decode(),
        paused=0,
        strikes=0,
        last_due_at=None,
        next_due_at=None,
        missed=0,
        created_at=now,
        source=source,
    )


def declared_schedule(each: Recurring, now: float) -> Schedule:
    return schedule_row(each.name, each.job.call(), each.every, now, "code")
