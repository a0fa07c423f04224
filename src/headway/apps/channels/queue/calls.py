"""Single calls that wait their turn: what is asked, and how it is shown."""

from __future__ import annotations

from typing import Any

import msgspec

from headway.apps.channels.queue.jobs import CALL, CALL_BACK, queued_call
from headway.engine.tickets import spec_of, spec_text
from headway.store import Store
from headway.store.records import Job, NewJob

TYPES = frozenset({CALL, CALL_BACK})
NEEDS = {"/v1/chat/completions": "messages", "/v1/embeddings": "input"}
ANSWER = "select status, request_id, body from llm_answers where job = ?"
WAITS = ("wait_reason", "wait_since", "position", "eta", "opens_at")


def fault_in(endpoint: str, body: dict[str, Any]) -> str | None:
    """What is wrong with a call, as far as that can be known here."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        return "body.model names the model, as text"
    if not body.get(NEEDS[endpoint]):
        return f"body.{NEEDS[endpoint]} is missing; {endpoint} needs it"
    if body.get("stream"):
        return "nobody listens while a queued call runs; leave body.stream out"
    return None


def new_call(
    endpoint: str, body: dict[str, Any], *, tenant: str, now: float, priority: int,
    deadline: float | None, callback: str | None, host: str | None, metadata: dict[str, str],
) -> NewJob:  # fmt: skip
    """A job for this call. Whom to tell is a part of it from the beginning, so that no end can
    come before.
    """
    if callback is None or host is None:
        job = queued_call(CALL, endpoint, body, tenant=tenant, now=now, priority=priority,
                          deadline=deadline)  # fmt: skip
    else:
        job = queued_call(CALL_BACK, endpoint, body, tenant=tenant, now=now, priority=priority,
                          deadline=deadline, callback=callback)  # fmt: skip
    spec = spec_of(job.spec)
    spec.about = metadata
    if host is not None:
        spec.labels = {"callback": host}
    job.spec = spec_text(spec)
    return job


# ---------------------------------------------------------------------- how it is shown


def response_of(store: Store, number: int) -> dict[str, Any] | None:
    """What the provider has answered, if it has."""
    rows = store.rows(ANSWER, (number,))
    if not rows:
        return None
    status, request_id, text = rows[0]
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        body = text
    return {"status_code": status, "request_id": request_id, "body": body}


def outcome_shown(store: Store, row: Job) -> dict[str, Any]:
    """What whoever waits for a call is told about it."""
    return {
        "id": row.id,
        "status": row.state,
        "response": response_of(store, row.id),
        "error": None if row.state == "completed" else row.error,
        "metadata": spec_of(row.spec).about,
    }


def call_view(job: dict[str, Any], outcome: dict[str, Any], payload: str | None) -> dict[str, Any]:
    """A job in the words of whoever has asked for a call; `job` is its usual view."""
    asked = {} if payload is None else msgspec.json.decode(payload)
    return {
        **outcome,
        "endpoint": asked.get("endpoint"),
        "model": asked.get("body", {}).get("model"),
        "callback_url": asked.get("callback"),
        "tenant": job["tenant"],
        "priority": job["priority"],
        "channel": job["upstream"],
        "created_at": job["created_at"],
        "started_at": job["started_at"],
        "finished_at": job["finished_at"],
        "deadline": job["deadline"],
        "failed_attempts": job["failed_attempts"],
        **{name: job[name] for name in WAITS},
    }
