"""The refresh queue over HTTP: asking for a refresh, what became of it, and whether all is well."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import TimeoutError as TooLong
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from headway.api.auth import Principal, Reader, Submitter
from headway.api.models import Moment, Status
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite, number_of
from headway.api.turns import in_own_name
from headway.api.views import moment
from headway.apps.feeds.model import Source, Subscription
from headway.apps.feeds.routes.feed_bodies import FeedId, Lenient
from headway.apps.feeds.routes.feeds import register_of
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.routes.showing import unknown
from headway.apps.feeds.scheduling import BY_HAND, REFRESH, source_of
from headway.apps.feeds.views import open_ticket
from headway.core import State
from headway.engine.intake import take_in
from headway.errors import HeadwayError, StoreError, UnknownJob
from headway.store.records import Job

router = APIRouter(tags=["Feed queue"])

PATH = "/api/backend/queue"
LATE_S = 300.0  # a refresh that is due for longer than that, and does not wait for its site
ASK_S = 2.0  # for the engine, by whoever asks whether all is well
LOOKED_AT = 100  # refreshes that are late, and are asked why

TaskId = Annotated[str, Path(max_length=40, description="The id of a refresh.")]
Priority = Literal["high", "default"]
CeleryStatus = Literal["PENDING", "STARTED", "RETRY", "SUCCESS", "FAILURE", "REVOKED"]
CELERYS_WORDS = {
    "pending": "PENDING", "queued": "PENDING", "paused": "PENDING", "running": "STARTED",
    "completed": "SUCCESS", "failed": "FAILURE", "cancelled": "REVOKED",
}  # fmt: skip


class FeedRefreshBody(Lenient):
    """Which feed, and how much of a hurry there is."""

    feed_id: FeedId = Field(description="The feed.")
    force_immediate: bool = Field(
        False, description="As soon as its site allows, before what is due by the clock."
    )


class Scheduled(BaseModel):
    task_id: str | None = Field(description="To ask what became of it; null while it runs already.")
    status: Literal["queued", "scheduled", "already_running"] = Field(
        description="It starts as soon as its site allows; or it is due later; or it runs."
    )
    delay_seconds: float = Field(description="Until it is due.")
    reason: str | None = Field(description="Why it will not start although it is due.")


# ---------------------------------------------------------------------- asking for a refresh


@router.post(
    PATH + "/schedule-feed",
    summary="Refresh a feed now, or say when it is due",
    operation_id="scheduleFeed",
    response_class=Reply,
    responses={200: {"model": Scheduled}, **documented(404, 409)},
)
def schedule_feed(
    body: FeedRefreshBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """Without force_immediate nothing changes: each feed has its next refresh in line already. A
    feed that is paused or has ended is refreshed once if it is forced.
    """
    name = (owner(principal), str(body.feed_id))
    register, brain = feeds.register, site.engine.brain

    def ask(now: float) -> tuple[Source, State | None]:
        subscription = register.subscriptions.get(name)
        if subscription is None:
            raise unknown(name[1])
        row = register.sources[subscription.source]
        if not body.force_immediate:
            if not (register.is_wanted(row) and not subscription.paused):
                raise Problem(409, f"feed {name[1]!r} is {_why_not(subscription, row)}, so nothing "
                              "is scheduled; send force_immediate to refresh it once",
                              kind="not-scheduled")  # fmt: skip
            ticket = open_ticket(register, row.id)
            return row, None if ticket is None else ticket.state
        state = register.refresh_now(name, now)
        if state is not State.RUNNING:
            brain.record(now, "feed_refresh", subject=f"feed:{name[1]}")
        return register.sources[row.id], state

    row, state = in_own_name(site, principal, ask)
    if state is State.RUNNING:
        said = {"task_id": None, "status": "already_running", "delay_seconds": 0, "reason": None}
        return Reply(said)
    return Reply(_as_scheduled(site, feeds, row.id))


def _why_not(subscription: Subscription, row: Source) -> str:
    return "paused" if subscription.paused else f"{row.status} for good"


def _as_scheduled(site: Site, feeds: TheFeeds, source: int) -> dict[str, Any]:
    """The open job of a source, and when it is due."""
    brain = site.engine.brain

    def look(now: float) -> dict[str, Any]:
        while open_ticket(feeds.register, source) is None and take_in(brain, now):
            pass  # it was stored a moment ago, and nobody has looked yet
        ticket = open_ticket(feeds.register, source)
        row = feeds.register.sources.get(source)
        due_at = now if row is None else row.due_at
        reason = None
        if ticket is not None:
            due_at = ticket.not_before
            if ticket.state is State.PAUSED:
                reason = "an operator has paused it"
        delay_s = max(0.0, due_at - now)
        return {
            "task_id": None if ticket is None else str(ticket.id),
            "status": "scheduled" if reason or delay_s > 0 else "queued",
            "delay_seconds": round(delay_s, 3),
            "reason": reason,
        }

    return site.wait(site.engine.ask(look))


# ---------------------------------------------------------------------- what became of it


class RefreshResult(BaseModel):
    """What a refresh has found."""

    success: bool
    feed_id: str | None = Field(description="What you call the feed.")
    article_count: int = Field(description="Articles in the feed; 0 if it has not changed.")
    new_count: int = Field(description="Those that were not known before.")
    changed_count: int = Field(description="Those that are not as they were.")
    not_modified: bool = Field(description="Whether the feed was as it was the last time.")
    duration_ms: int
    error: str | None = Field(description="Why it failed.")


class RefreshTask(BaseModel):
    """A refresh: one that waits, one that runs, or one that has ended."""

    task_id: str
    feed_id: str | None = Field(description="What you call the feed.")
    status: Status
    celery_status: CeleryStatus = Field(description="The same in words that Celery's clients know.")
    priority: Priority = Field(description="high: somebody asked for it.")
    result: RefreshResult | None = Field(description="Once it has ended; kept for two days.")
    error: str | None = Field(description="What went wrong last.")
    failed_attempts: int
    wait_reason: str | None = Field(description="What it waits for.")
    eta: Moment = Field(description="When it should start, as far as anybody can tell.")
    created_at: Moment
    started_at: Moment
    finished_at: Moment


@router.get(
    PATH + "/task/{id}",
    summary="What became of a refresh",
    operation_id="getRefresh",
    response_class=Reply,
    responses={200: {"model": RefreshTask}, **documented(404)},
)
def get_task(id: TaskId, site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    """Whoever subscribes to the feed may look."""
    number = number_of(id)
    row = None if number is None else site.store.job(number)
    feed = None
    if row is not None and row.type == REFRESH:
        feed = _own_feed(register_of(site, feeds).subscribers(source_of(row.key)), principal)
    if row is None or row.type != REFRESH or (feed is None and principal.tenant is not None):
        raise UnknownJob(f"there is no refresh {id}; it never was, its record was purged, or "
                         "nobody subscribes to its feed any more")  # fmt: skip
    view = site.view(row)
    retried = view["status"] == "pending" and view["failed_attempts"] > 0
    why = view["wait_reason"]
    return Reply({
        "task_id": str(row.id),
        "feed_id": feed,
        "status": view["status"],
        "celery_status": "RETRY" if retried else CELERYS_WORDS[view["status"]],
        "priority": _priority(row.priority),
        "result": _result(site, row, feed),
        "error": view["last_error"],
        "failed_attempts": view["failed_attempts"],
        "wait_reason": "an operator has paused it" if why == "paused" else why,
        "eta": view["eta"],
        "created_at": view["created_at"],
        "started_at": view["started_at"],
        "finished_at": view["finished_at"],
    })  # fmt: skip


def _own_feed(subscribers: Iterable[Subscription], principal: Principal) -> str | None:
    tenant = owner(principal)
    return next((each.id for each in subscribers if each.tenant == tenant), None)


def _priority(priority: int) -> Priority:
    return "high" if priority <= BY_HAND else "default"


def _result(site: Site, row: Job, feed: str | None) -> dict[str, Any] | None:
    if row.state not in ("completed", "failed"):
        return None
    took_s = 0.0
    if row.granted_at is not None and row.finished_at is not None:
        took_s = max(0.0, row.finished_at - row.granted_at)
    found: dict[str, Any] = {
        "success": False, "feed_id": feed, "article_count": 0, "new_count": 0, "changed_count": 0,
        "not_modified": False, "duration_ms": round(took_s * 1000), "error": row.error,
    }  # fmt: skip
    if row.state == "failed":
        return found
    kept = site.store.result(row.id)
    if kept is None or kept.expires_at <= site.now():
        return None
    return {**found, **msgspec.json.decode(kept.value)}


# ---------------------------------------------------------------------- whether all is well


class QueueModel(BaseModel):
    waiting: int = Field(description="Refreshes that are due, and have not started.")
    running: int
    scheduled: int = Field(description="Refreshes that are due later.")


class Queues(BaseModel):
    high: QueueModel = Field(description="What somebody asked for.")
    default: QueueModel = Field(description="What goes by the clock.")


class QueueHealth(BaseModel):
    status: Literal["healthy", "degraded"]
    queues: Queues
    total_pending: int = Field(description="Refreshes that are due, and have not started.")
    overdue: int = Field(
        description="Those that are due for more than five minutes, and do not wait for a site "
        "that wants to be left alone."
    )
    trouble: list[str] = Field(description="What is wrong, in words.")
    checked_at: Moment


class Late(NamedTuple):
    """A refresh that should have started."""

    job: int
    due_at: float


@router.get(
    "/api/backend/queue-health",
    summary="Whether refreshes start when they are due",
    operation_id="getQueueHealth",
    response_class=Reply,
    responses={200: {"model": QueueHealth}, **documented()},
)
def queue_health(site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    """Of your own feeds; of all of them, if your token is bound to no tenant."""
    now = site.now()
    queues = {name: {"waiting": 0, "running": 0, "scheduled": 0} for name in ("high", "default")}
    trouble = _troubles(site)
    late: list[Late] = []
    if site.app.engine is not None:
        late = _count(feeds, principal.tenant, queues, now)
    overdue = _overdue(site, late, trouble)
    if overdue:
        trouble.append(f"refreshes that should have started more than 5 minutes ago: {overdue}")
    return Reply({
        "status": "degraded" if trouble else "healthy",
        "queues": queues,
        "total_pending": sum(queue["waiting"] for queue in queues.values()),
        "overdue": overdue,
        "trouble": trouble,
        "checked_at": moment(now),
    })  # fmt: skip


def _troubles(site: Site) -> list[str]:
    engine = site.app.engine
    if engine is None or engine.done.is_set():
        return ["the engine has stopped"]
    if site.app.trouble:
        return ["the store cannot be used now"]
    try:
        site.store.last_event()
    except StoreError:
        return ["the store cannot be used now"]
    return []


def _count(
    feeds: TheFeeds, tenant: str | None, queues: dict[str, dict[str, int]], now: float
) -> list[Late]:
    """Count the open jobs into their queues. Those that are late."""
    register = feeds.register
    sources: Iterable[int] = register.schedule.jobs.copy()
    if tenant is not None:
        sources = {each.source for each in register.of_tenant(tenant)}
    late: list[Late] = []
    for source in sources:
        ticket = open_ticket(register, source)
        if ticket is None:
            continue
        queue = queues[_priority(ticket.priority)]
        if ticket.state is State.RUNNING:
            queue["running"] += 1
        elif ticket.not_before > now or ticket.state is State.PAUSED:
            queue["scheduled"] += 1
        else:
            queue["waiting"] += 1
            if now - ticket.not_before > LATE_S:
                late.append(Late(int(str(ticket.id)), ticket.not_before))
    return late


def _overdue(site: Site, late: list[Late], trouble: list[str]) -> int:
    """How many of them wait for something else than their site. Some are looked at; what is found
    there goes for the rest.
    """
    if not late or trouble:
        return len(late)
    some = [each.job for each in sorted(late, key=lambda each: each.due_at)[:LOOKED_AT]]
    looks: dict[int, Any] = {}
    with suppress(HeadwayError):
        controls = site.engine.brain.controls
        try:
            looks = site.engine.ask(lambda now: controls.look_at_jobs(some, now)).result(ASK_S)
        except TooLong:
            trouble.append("the engine does not answer")
            return len(late)
    ours = sum(
        why is not None and not why.gate.startswith("upstream:") for why, _ in looks.values()
    )
    return round(len(late) * ours / len(some))
