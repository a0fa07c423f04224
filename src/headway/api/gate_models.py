"""What gates, their settings and what was learned look like, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from headway.api.models import Moment


class TrafficModel(BaseModel):
    concurrent: int = Field(description="Calls on their way.")
    rpm: float = Field(description="Calls of the last 60 seconds that were not refused.")


class BelievedModel(BaseModel):
    """What is believed to be borne; null: nothing is known about this unit."""

    rpm: float | None
    tpm: float | None
    concurrency: float | None
    limit_kind: Literal["window", "bucket"] | None


class PinsModel(BaseModel):
    """What an operator has pinned; null: it is learned."""

    rpm: float | None
    tpm: float | None
    concurrency: int | None


class RefusalModel(BaseModel):
    at: Moment
    rpm: float = Field(description="Calls of the minute before this 429.")
    response_ms: float


Source = Literal["headers", "history", "peak", "open"]
LearningPhase = Literal["start", "cruise", "probe", "holding", "testing"]


class LimitModel(BaseModel):
    name: str
    allowed_now: float | None
    opens_at: Moment
    interval_s: float | None = None
    burst: int | None = None
    jitter: float | None = None
    by_cost: bool | None = None
    state: str | None = None
    heard_of: int | None = None
    bad: int | None = None
    cooldown_s: float | None = None
    min_hold_s: float | None = None
    limit_rpm: float | None = Field(None, description="Of a learner: its plain estimate.")
    source: Source | None = None
    remaining: float | None = None
    threshold: float | None = None
    believed: BelievedModel | None = None
    pins: PinsModel | None = None
    phase: LearningPhase | None = None
    holding_why: str | None = None
    online: TrafficModel | None = None
    queued: TrafficModel | None = None
    history: list[RefusalModel] | None = None


class SettingsModel(BaseModel):
    value: dict[str, Any]
    said_by: dict[str, str] = Field(alias="from", description="Which layer said so, for each.")
    overridden: bool = Field(description="An operator has set something at run time.")
    declared_as: str = Field(description="The name or pattern that this comes from.")


class SettingModel(BaseModel):
    """What is declared for a name or a pattern."""

    kind: str
    name: str
    value: dict[str, Any]
    said_by: dict[str, str] = Field(alias="from", description="Which layer said so, for each.")
    overridden: bool = Field(description="An operator has set something at run time.")


class SettingsList(BaseModel):
    items: list[SettingModel]


class GateModel(BaseModel):
    """A lane, an upstream, a tool or a type, as it is now."""

    kind: str
    name: str
    limit: float | None
    allowed_now: float | None
    reserve: int
    running: int
    cooling: int = Field(description="Places that are given back, and open later.")
    waiting: int | None
    paused: bool
    closed_until: Moment
    closed_since: Moment
    closed_why: str
    open: bool
    reason: str
    detail: str
    opens_at: Moment
    pushbacks_in_a_row: int
    limits: list[LimitModel]
    settings: SettingsModel | None
    counts: dict[str, int] | None = Field(None, description="Of a lane: jobs by their state.")


class HolderModel(BaseModel):
    id: int | str = Field(description="The number of a job, or such as slot-12.")
    kind: Literal["job", "own", "lease", "fairqueue"] = Field(
        description="A job, or a slot by how it was asked for."
    )
    type: str
    tenant: str
    fence: int
    granted_at: Moment
    held_s: float
    lease_ends_at: Moment


class TenantModel(BaseModel):
    tenant: str
    running: int
    waiting: int
    weight: float
    closed_until: Moment


class WholeGateModel(GateModel):
    holders: list[HolderModel]
    tenants: list[TenantModel]


class Gates(BaseModel):
    items: list[GateModel]


class SampleModel(BaseModel):
    ts: Moment
    rpm: float = Field(description="Calls of the minute before this 429.")
    avg_ms: float


class LearnedModel(BaseModel):
    """What is believed about an upstream, what goes there now, and what may go next."""

    name: str
    limit_rpm: float | None = Field(description="The plain estimate; null: nothing is known.")
    source: Source = Field(description="What the plain estimate comes from.")
    remaining: float = Field(description="The share of it that is not in use, from 0 to 1.")
    threshold: float = Field(description="The share that queued work leaves unused.")
    samples: list[SampleModel] = Field(description="The last 429s, the newest at the end.")
    believed: BelievedModel
    pins: PinsModel
    phase: LearningPhase
    holding_why: str | None = Field(description="rate, blocked, ban or outage, after a refusal.")
    online: TrafficModel
    queued: TrafficModel
    opens_at: Moment = Field(description="When the next queued call may go; null: now.")
    closed_until: Moment = Field(description="The upstream is closed for everybody until then.")


class LearnedList(BaseModel):
    items: list[LearnedModel]


class LeftOutModel(BaseModel):
    name: str
    why: str


class ImportedModel(BaseModel):
    hinted: list[str] = Field(description="These start from what was learned elsewhere.")
    left_out: list[LeftOutModel]
