"""From our records to what goes over the wire, and back. `api/views.py` is the other end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from headway.core import State
from headway.core.explain import Explanation
from headway.core.recurrence import Every, spread_anchor
from headway.engine.rules import rule_text
from headway.engine.schedules import ScheduleOptions
from headway.engine.tickets import Spec, names_text, spec_text
from headway.errors import BadJob
from headway.store.records import (
    BatchRow,
    Event,
    Job,
    NewJob,
    Progress,
    Query,
    Schedule,
    TrailRow,
    TypeStats,
)

View = Mapping[str, Any]
ToolsOf = Callable[[str], tuple[str, ...]]  # what every job of a type needs


def stamp(moment: str | None) -> float | None:
    """Seconds since 1970."""
    return None if moment is None else datetime.fromisoformat(moment).timestamp()


def stamp_or_0(moment: str | None) -> float:
    return stamp(moment) or 0.0


# ---------------------------------------------------------------------- what is sent


def job_body(job: NewJob, tools_of: ToolsOf) -> dict[str, Any]:
    """The body of `POST /api/jobs`. What only the owner of the store may say is not in it."""
    body: dict[str, Any] = {
        "type": job.type,
        "args": msgspec.Raw(job.args.encode()),
        "lane": job.lane,
        "priority": job.priority,
        **_spec_body(with_tools(job.spec, tools_of(job.type))),
    }
    if job.tenant:
        body["tenant"] = job.tenant
    if job.key is not None:
        body["key"] = job.key
    if job.upstreams is not None:
        body["upstream"] = msgspec.Raw(job.upstreams.encode())
    if job.not_before:
        body["at"] = job.not_before
    if job.deadline is not None:
        body["deadline"] = job.deadline
    if job.unique is not None:
        body["unique"] = {
            "key": job.unique.key.removeprefix(f"{job.type}:"),
            "while": job.unique.scope.value,
            "on_conflict": job.unique.on_conflict.value,
        }
    if job.after:
        body["after"] = list(job.after)
    if job.batch is not None:
        body["batch"] = job.batch
    return body


def with_tools(spec: str | None, tools: tuple[str, ...]) -> str | None:
    """The server does not know what a type needs that only workers know, so each job says it."""
    if not tools:
        return spec
    said = Spec() if spec is None else msgspec.json.decode(spec, type=Spec)
    said.tools = tuple(dict.fromkeys((*said.tools, *tools)))
    return spec_text(said)


def _spec_body(spec: str | None) -> dict[str, Any]:
    """They have the same names there."""
    found: dict[str, Any] = {} if spec is None else msgspec.json.decode(spec)
    return found


def schedule_body(row: Schedule) -> dict[str, Any]:
    options = msgspec.json.decode(row.options, type=ScheduleOptions)
    call = NewJob(
        row.type, row.args, created_at=row.created_at, lane=options.lane, tenant=options.tenant,
        key=options.key, upstreams=options.upstreams, priority=options.priority, spec=options.spec,
    )  # fmt: skip
    return {"name": row.name, "job": job_body(call, lambda _: ()), **_rule_body(row)}


def _rule_body(row: Schedule) -> dict[str, Any]:
    rule = msgspec.json.decode(row.rule)
    if "cron" in rule:
        return {"cron": rule["cron"], "zone": rule["zone"]}
    every_s = rule["every_s"]
    plain = Every(every_s, anchor_at=spread_anchor(row.name, every_s), seed=row.name)
    if rule_text(plain) != row.rule:
        raise BadJob(
            f"the schedule {row.name!r} has an anchor, jitter, growth or bounds, which cannot be "
            "said over HTTP; declare it with every= in the worker's code, or write an interval "
            "such as '30m', or Cron(...)"
        )
    return {"every": f"{every_s:.3f}s"}


def search(query: Query) -> dict[str, Any]:
    """The parameters of `GET /api/jobs`."""
    if query.below is not None:
        raise BadJob("`below` cannot be said over HTTP; use limit and offset")
    if query.pinned:
        raise BadJob("`pinned` cannot be said over HTTP; look at each job instead")
    words = [f"label:{quoted(f'{name}={value}')}" for name, value in query.labels]
    if query.error is not None:
        words.append(f"error:{quoted(query.error)}")
    if query.ids is not None:
        words.append("id:" + ",".join(str(id) for id in query.ids))
    for name in ("created_after", "created_before", "finished_after", "finished_before"):
        at = getattr(query, name)
        if at is not None:
            what, _, side = name.partition("_")
            words.append(f"{what}:{'>' if side == 'after' else '<'}{moment(at)}")
    return {
        "q": " ".join(words) or None,
        "status": ",".join(query.states) or None,
        "type": query.type, "lane": query.lane, "tenant": query.tenant, "key": query.key,
        "upstream": query.upstream, "batch": query.batch, "schedule": query.schedule,
    }  # fmt: skip


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


# ---------------------------------------------------------------------- what comes back


def job_row(view: View) -> Job:
    """What the server shows of a job. The rest of `spec`, the unique key, and when a job that waits
    at a gate was due, stay there.
    """
    spec = Spec(labels=view["labels"], about=view["about"])
    tries = (view["failed_attempts"], view["lost_leases"], view["pushbacks"])
    return Job(
        id=view["id"],
        type=view["type"],
        lane=view["lane"],
        tenant=view["tenant"],
        key=view["key"],
        upstreams=names_text(tuple(view["upstreams"])),
        priority=view["priority"],
        not_before=stamp_or_0(view["next_attempt_at"]),
        deadline=stamp(view["deadline"]),
        created_at=stamp_or_0(view["created_at"]),
        spec=spec_text(spec),
        unique_key=None,
        batch=view["batch"],
        schedule=view["schedule"],
        state=view["status"],
        since=stamp_or_0(view["since"]),
        pin=0 if view["pinned"] else None,
        fence=view["fence"],
        upstream=view["upstream"],
        granted_at=stamp(view["started_at"]),
        waited_s=view["waited_s"],
        tries=msgspec.json.encode((*tries, None)).decode() if any(tries) else None,
        asked=view["stop_requested"],
        finished_at=stamp(view["finished_at"]),
        error=view["last_error"],
    )


def progress_row(view: View | None) -> Progress | None:
    if view is None:
        return None
    return Progress(view["done"], view["total"], view["note"], stamp_or_0(view["at"]))


def event_row(view: View) -> Event:
    return Event(**{**{name: view[name] for name in Event._fields}, "at": stamp_or_0(view["at"])})


def trail_row(view: View) -> TrailRow:
    said = {name: view[name] for name in TrailRow._fields}
    return TrailRow(**{**said, "at": stamp_or_0(view["at"])})


def explanation(view: View) -> Explanation:
    return Explanation(
        State(view["status"]), view["reason"], view["gate"], view["detail"],
        since=stamp(view["since"]), opens_at=stamp(view["opens_at"]), position=view["position"],
        starts_at=stamp(view["eta"]),
    )  # fmt: skip


def schedule_row(view: View) -> Schedule:
    options = ScheduleOptions(
        lane=view["lane"], tenant=view["tenant"], key=view["key"], priority=view["priority"],
        upstreams=names_text(tuple(view["upstreams"])),
    )  # fmt: skip
    return Schedule(
        view["name"],
        view["type"],
        _text(view["args"]),
        _text(view["rule"]),
        _text(options),
        paused=int(view["paused"]),
        strikes=view["strikes"],
        last_due_at=stamp(view["last_due_at"]),
        next_due_at=stamp(view["next_due_at"]),
        missed=view["missed"],
        created_at=stamp_or_0(view["created_at"]),
        source=view["source"],
    )


def batch_row(view: View) -> BatchRow:
    return BatchRow(view["id"], stamp_or_0(view["created_at"]), view["label"], view["tenant"])


def stats_row(view: View) -> TypeStats:
    return TypeStats(
        view["type"], view["count"], view["completed"], view["failed"], view["cancelled"],
        view["mean_run_s"], view["p95_run_s"], view["mean_wait_s"],
    )  # fmt: skip


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
