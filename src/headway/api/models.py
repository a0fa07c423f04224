"""What the answers look like, for the OpenAPI document. Nothing is validated by these at run time;
the contract tests compare every answer with them.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

Moment = str | None  # ISO 8601 in UTC
Status = Literal["pending", "queued", "running", "paused", "completed", "failed", "cancelled"]
RequestStatus = Literal["queued", "running", "paused", "done", "failed", "canceled"]


class ProgressModel(BaseModel):
    done: float
    total: float | None
    note: str
    percent: float | None
    at: Moment


class JobModel(BaseModel):
    """A job. `position`, `eta` and `wait_*` are there while it waits."""

    id: int
    type: str
    status: Status
    lane: str
    tenant: str
    key: str | None
    upstreams: list[str]
    upstream: str | None = Field(description="The one that was chosen when it was granted.")
    priority: int
    pinned: bool
    labels: dict[str, str]
    about: dict[str, str]
    tools: list[str]
    weight: float
    traffic: Literal["online", "normal", "leftover"]
    cost: float
    ordered: Literal["pass", "hold"] | None
    keep_result_s: float | None
    batch: int | None
    schedule: str | None
    created_at: Moment
    next_attempt_at: Moment
    deadline: Moment
    started_at: Moment
    finished_at: Moment
    since: Moment = Field(description="Since when it has been in this state.")
    waited_s: float | None
    run_s: float | None
    failed_attempts: int
    lost_leases: int
    pushbacks: int
    max_attempts: int
    timeout_seconds: float
    fence: int
    stop_requested: str | None
    last_error: str | None
    heartbeat_at: Moment
    progress: ProgressModel | None
    wait_reason: str | None
    wait_since: Moment
    position: int | None
    eta: Moment
    opens_at: Moment


class AttemptModel(BaseModel):
    number: int
    fence: int
    started_at: Moment
    ended_at: Moment
    outcome: str | None = Field(description="The event that ended it; null while it runs.")
    duration_s: float | None
    error: str | None


class TaskModel(JobModel):
    """A job with its attempts."""

    attempts: list[AttemptModel]


class JobAnswer(JobModel):
    joined: bool = Field(description="Its unique key was taken: this is the job that was there.")


class JobPage(BaseModel):
    items: list[JobModel]
    count: int
    total: int
    page: int
    size: int


class RequestModel(BaseModel):
    """A job in the words of the request queue."""

    id: int
    type: str
    subscription_id: int | str | None
    url: str | None
    requires_cookie: bool
    ua_profile: str | None
    status: RequestStatus
    priority: int
    attempts: int
    max_attempts: int
    last_error: str | None
    created_at: Moment
    started_at: Moment
    finished_at: Moment
    lane: str
    wait_reason: str | None
    wait_since: Moment
    position: int | None
    eta: Moment


class RequestAnswer(RequestModel):
    joined: bool


class RequestPage(BaseModel):
    items: list[RequestModel]
    count: int
    total: int
    page: int
    size: int


class EventModel(BaseModel):
    id: int
    at: Moment
    job: int | None
    event: str
    before: str | None
    after: str | None
    fence: int
    detail: str
    subject: str | None
    who: str | None


class TrailModel(EventModel):
    type: str | None
    lane: str | None
    tenant: str | None
    key: str | None


class Events(BaseModel):
    items: list[EventModel]


class Trail(BaseModel):
    items: list[TrailModel]
    oldest: int
    newest: int


class ExplanationModel(BaseModel):
    status: Status
    reason: str
    gate: str
    detail: str
    text: str = Field(description="The same in words.")
    since: Moment
    opens_at: Moment
    position: int | None
    eta: Moment
    now: Moment


class LogLine(BaseModel):
    at: Moment
    level: str
    line: str


class Logs(BaseModel):
    items: list[LogLine]


class Value(BaseModel):
    value: Any


class ResultModel(BaseModel):
    value: Any
    expires_at: Moment


class BulkAnswer(BaseModel):
    action: str
    dry_run: bool
    matched: int = Field(description="Jobs that the search found.")
    possible: int = Field(description="Of those, jobs to which this can be done now.")
    done: int
    refused: int
    sample: list[JobModel] = Field(description="The first of them.")
    touched: list[int] = Field(
        description="To which jobs it was done, at most 10,000 of them: what undoes it needs them."
    )
    touched_complete: bool = Field(description="Whether these are all.")


class ScheduleModel(BaseModel):
    name: str
    type: str
    args: dict[str, Any]
    rule: dict[str, Any]
    lane: str
    tenant: str
    key: str | None
    upstreams: list[str]
    priority: int
    paused: bool
    strikes: int
    last_due_at: Moment
    next_due_at: Moment
    missed: int
    created_at: Moment
    source: str


class Schedules(BaseModel):
    items: list[ScheduleModel]


class BatchModel(BaseModel):
    id: int
    label: str
    tenant: str
    created_at: Moment
    counts: dict[str, int]
    total: int
    done: bool


class BatchPage(BaseModel):
    items: list[BatchModel]
    count: int
    total: int
    page: int
    size: int


class TokenModel(BaseModel):
    id: str
    name: str
    scopes: list[str]
    tenant: str | None
    created_at: Moment
    expires_at: Moment
    revoked_at: Moment
    last_used_at: Moment


class NewTokenModel(TokenModel):
    token: str = Field(description="Shown this once.")


class Tokens(BaseModel):
    items: list[TokenModel]
