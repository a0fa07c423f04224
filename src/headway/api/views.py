"""Jobs as people see them: the canonical view, and the words of the request queue."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from headway.core.explain import Explanation
from headway.core.retry import RetryPolicy
from headway.engine.tickets import spec_of
from headway.store.records import Event, Job, Progress, TrailRow

INF = float("inf")
COOKIE_LANE, NO_COOKIE_LANE = "requires_cookie", "no_cookie"
REQUEST_WORDS = {"pending": "queued", "completed": "done", "cancelled": "canceled"}
FROM_REQUEST_WORDS = {
    "queued": ("pending", "queued"),
    "done": ("completed",),
    "canceled": ("cancelled",),
}
# Priorities of the request queue grow with urgency and start at 0; ours shrink, from 5.
USUAL_RANK = 5


def moment(at: float | None) -> str | None:
    """A time as ISO 8601 in UTC."""
    if at is None or not 0 < at < 1e11:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def plain_job(job: Job, policy: RetryPolicy) -> dict[str, Any]:
    """Everything that the store knows. What only the engine knows is added by `with_wait`."""
    spec = spec_of(job.spec)
    burnt, lost, pushed_back, _ = msgspec.json.decode(job.tries) if job.tries else (0, 0, 0, None)
    running = job.state == "running"
    begun = job.state not in ("pending", "queued", "paused") and job.granted_at is not None
    return {
        "id": job.id,
        "type": job.type,
        "status": job.state,
        "lane": job.lane,
        "tenant": job.tenant,
        "key": job.key,
        "upstreams": [] if job.upstreams is None else msgspec.json.decode(job.upstreams),
        "upstream": job.upstream,
        "priority": job.priority,
        "pinned": job.pin is not None,
        "labels": spec.labels,
        "about": spec.about,
        "tools": list(spec.tools),
        "weight": spec.weight,
        "traffic": spec.traffic,
        "cost": spec.cost,
        "ordered": spec.ordered,
        "keep_result_s": spec.keep_result_s,
        "batch": job.batch,
        "schedule": job.schedule,
        "created_at": moment(job.created_at),
        "next_attempt_at": moment(job.not_before) if job.state == "pending" else None,
        "deadline": moment(job.deadline),
        "started_at": moment(job.granted_at),
        "finished_at": moment(job.finished_at),
        "since": moment(job.since),
        "waited_s": job.waited_s,
        "run_s": None if not begun or job.finished_at is None or job.granted_at is None
        else max(0.0, job.finished_at - job.granted_at),
        "failed_attempts": burnt,
        "lost_leases": lost,
        "pushbacks": pushed_back,
        "max_attempts": spec.max_attempts or policy.retries + 1,
        "timeout_seconds": policy.timeout_s,
        "fence": job.fence,
        "stop_requested": job.asked if running else None,
        "last_error": job.error,
        "heartbeat_at": None,
        "progress": None,
        "wait_reason": None,
        "wait_since": None,
        "position": None,
        "eta": None,
        "opens_at": None,
    }  # fmt: skip


def with_wait(view: dict[str, Any], why: Explanation | None) -> None:
    if why is None or view["status"] not in ("pending", "queued", "paused"):
        return
    view["wait_reason"] = in_words(why)
    view["wait_since"] = moment(why.since)
    view["position"] = why.position
    view["eta"] = moment(why.starts_at)
    view["opens_at"] = moment(why.opens_at)


def in_words(why: Explanation) -> str:
    """`waits at upstream:example.com: closed (429 pushback, Retry-After 30 s)`."""
    if why.reason == "not_due":
        return "not due yet"
    if why.reason == "after":
        return f"waits for {why.detail}"
    text = f"waits at {why.gate}: {why.reason}" if why.gate else why.reason
    return f"{text} ({why.detail})" if why.detail else text


def progress_view(progress: Progress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    percent = None
    if progress.total:
        percent = round(min(max(100.0 * progress.done / progress.total, 0.0), 100.0), 1)
    return {
        "done": progress.done,
        "total": progress.total,
        "note": progress.note,
        "percent": percent,
        "at": moment(progress.at),
    }


def explanation_view(why: Explanation, now: float) -> dict[str, Any]:
    return {
        "status": why.state.value,
        "reason": why.reason,
        "gate": why.gate,
        "detail": why.detail,
        "text": in_words(why),
        "since": moment(why.since),
        "opens_at": moment(why.opens_at),
        "position": why.position,
        "eta": moment(why.starts_at),
        "now": moment(now),
    }


# ---------------------------------------------------------------------- attempts and events


def attempts(events: list[Event]) -> list[dict[str, Any]]:
    """Each permit and how it ended, from the audit trail."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event.event == "grant":
            found.append({
                "number": len(found) + 1, "fence": event.fence, "started_at": moment(event.at),
                "ended_at": None, "outcome": None, "duration_s": None, "error": None,
                "_at": event.at,
            })  # fmt: skip
        elif event.before == "running" and found and found[-1]["ended_at"] is None:
            last = found[-1]
            last["ended_at"] = moment(event.at)
            last["outcome"] = event.event
            last["duration_s"] = max(0.0, event.at - last["_at"])
            last["error"] = event.detail or None
    for each in found:
        del each["_at"]
    return found


def event_view(event: Event | TrailRow) -> dict[str, Any]:
    view: dict[str, Any] = {
        "id": event.id,
        "at": moment(event.at),
        "job": event.job,
        "event": event.event,
        "before": event.before,
        "after": event.after,
        "fence": event.fence,
        "detail": event.detail,
        "subject": event.subject,
        "who": event.who,
    }
    if isinstance(event, TrailRow):
        view |= {"type": event.type, "lane": event.lane, "tenant": event.tenant, "key": event.key}
    return view


# ---------------------------------------------------------------------- the request queue


def request_view(view: dict[str, Any]) -> dict[str, Any]:
    """A job in the words of the request queue."""
    about = view["about"]
    return {
        "id": view["id"],
        "type": view["type"],
        "subscription_id": subscription_of(view["key"]),
        "url": about.get("url"),
        "requires_cookie": view["lane"] == COOKIE_LANE,
        "ua_profile": about.get("ua_profile"),
        "status": REQUEST_WORDS.get(view["status"], view["status"]),
        "priority": USUAL_RANK - view["priority"],
        "attempts": view["failed_attempts"] + view["lost_leases"]
        + (1 if view["status"] in ("running", "completed") else 0),
        "max_attempts": view["max_attempts"],
        "last_error": view["last_error"],
        "created_at": view["created_at"],
        "started_at": view["started_at"],
        "finished_at": view["finished_at"],
        "lane": view["lane"],
        "wait_reason": view["wait_reason"],
        "wait_since": view["wait_since"],
        "position": view["position"],
        "eta": view["eta"],
    }  # fmt: skip


SUBSCRIPTION = "subscription:"


def subscription_of(key: str | None) -> str | int | None:
    """Jobs of one subscription share a key, so that they run one after the other."""
    if key is None or not key.startswith(SUBSCRIPTION):
        return None
    text = key.removeprefix(SUBSCRIPTION)
    return int(text) if text.isdecimal() and str(int(text)) == text and len(text) < 16 else text
