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
    tokens: float | None = Field(
        None, description="Of a pace: how many may start at once; a part of one is on its way."
    )
    next_at: Moment = Field(None, description="Of a pace: when the next may start; null: now.")
    last_at: Moment = Field(None, description="Of a pace: the last start, as far as it is known.")
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


class RunningBy(BaseModel):
    """Those that run, by their traffic."""

    online: int
    normal: int
    leftover: int


class GateModel(BaseModel):
    """A lane, an upstream, a tool or a type, as it is now."""

    kind: str
    name: str
    limit: float | None
    allowed_now: float | None
    reserve: int
    running: int
    running_by: RunningBy
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
    pushed_back_at: Moment = Field(
        description="When it last was; null: not as long as it is known."
    )
    limits: list[LimitModel]
    settings: SettingsModel | None
    counts: dict[str, int] | None = Field(None, description="Of a lane: jobs by their state.")


class HolderModel(BaseModel):
    id: int | str = Field(description="The number of a job, or such as slot-12 or online-7.")
    kind: Literal["job", "own", "lease", "fairqueue", "online"] = Field(
        description="A job, a slot by how it was asked for, or an online call."
    )
    type: str
    tenant: str
    traffic: Literal["online", "normal", "leftover"]
    key: str | None = Field(description="What runs one at a time.")
    holder: str = Field(description="Of a slot: what whoever holds it calls itself, or empty.")
    labels: dict[str, str]
    fence: int
    granted_at: Moment
    held_s: float
    lease_ends_at: Moment


class TenantModel(BaseModel):
    tenant: str
    running: int
    waiting: int
    weight: float = Field(description="The share that it is meant to have, beside the others'.")
    share: float = Field(
        description="What it used of late, in slot-seconds and with all its kinds of traffic: the "
        "part of what all who are listed here used, from 0 to 1. What is a minute old counts half."
    )
    waiting_since: Moment = Field(
        description="Since when the oldest of its tickets that are next has been queued; null: "
        "none waits, or all stand behind others of their key."
    )
    closed_until: Moment


class WholeGateModel(GateModel):
    holders: list[HolderModel] = Field(description="At most 200, the first that came first.")
    tenants: list[TenantModel] = Field(description="At most 200, the greediest first.")
    cooling_until: list[str] = Field(
        description="When the places open that are given back: the next 20 of them."
    )


class OneGateModel(WholeGateModel):
    now: str = Field(description="By the server's clock, for countdowns.")


class Gates(BaseModel):
    items: list[WholeGateModel] | list[GateModel] = Field(
        description="With holders and tenants if `whole` was asked for."
    )
    count: int
    total: int = Field(description="How many there are that match.")
    page: int
    size: int | None = Field(description="Items on a page; null: all of them.")
    now: str = Field(description="By the server's clock, for countdowns.")


class SettingChange(BaseModel):
    name: str = Field(description="Of a value in a table such as learn.pin_rpm.")
    before: Any = Field(description="null: it was not set.")
    after: Any = Field(description="null: it is not set.")


class DrainsModel(BaseModel):
    """Seconds until all who wait now have started, if nobody else comes. An estimate from paces,
    limits and how long places are usually held; null: not known, or never.
    """

    before: float | None
    after: float | None


class PreviewModel(BaseModel):
    """What would follow; nothing was changed. Of a pattern: for all gates in use that follow it."""

    dry_run: Literal[True]
    kind: str
    name: str
    before: dict[str, Any] = Field(description="The settings that hold now.")
    after: dict[str, Any] = Field(description="The settings that would hold.")
    changes: list[SettingChange]
    running: int
    waiting: int | None
    starts_now: int | None = Field(
        description="How many of those who wait could start at once, as far as it depends on this "
        "gate; where nobody is counted, how many places are free; null: any number."
    )
    over: int = Field(description="How many run above the new limit: they finish.")
    drains_in_s: DrainsModel
    notes: list[str] = Field(description="For people, what matters most first.")


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
