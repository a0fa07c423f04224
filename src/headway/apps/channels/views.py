"""Channels as people see them, and what they look like in the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from pydantic import BaseModel, Field

from headway.api.gate_models import BelievedModel, LearningPhase, SampleModel, Source, TrafficModel
from headway.api.models import Moment
from headway.api.views import moment
from headway.apps.channels.directory import Entry

HINT_ABOVE = 12  # characters of a key, so that its last four say nothing about the rest
HINT = 4

Mode = Literal["none", "pull", "route", "both"]


class PriceModel(BaseModel):
    input_per_1k: float
    output_per_1k: float
    currency: str


class ChannelModel(BaseModel):
    """One model behind one key at one provider."""

    code: str
    model: str
    base_url: str
    upstream_model: str | None = Field(description="What the provider calls it; null: the same.")
    queue_mode: Mode
    price: PriceModel
    batch_discount: float
    max_concurrency: int | None
    max_concurrency_per_tenant: int | None
    rpm: float | None
    tpm: float | None
    remaining_threshold: float
    timeout_s: float
    enabled: bool
    has_key: bool = Field(description="The key itself is never shown.")
    key_ends_with: str | None = Field(description="Its last characters, if it is long enough.")
    source: Literal["api", "file"] = Field(description="Who declares it; a file cannot be changed.")
    trouble: str | None = Field(description="Why it cannot be used; null: nothing is known.")
    created_at: Moment
    updated_at: Moment


class ChannelList(BaseModel):
    items: list[ChannelModel]


def channel_view(entry: Entry) -> dict[str, Any]:
    """All but its key."""
    key = entry.key
    return {
        **msgspec.structs.asdict(entry.channel),
        "queue_mode": entry.channel.queue_mode.value,
        "price": msgspec.structs.asdict(entry.channel.price),
        "has_key": entry.sealed_key is not None,
        "key_ends_with": None if key is None or len(key) <= HINT_ABOVE else key[-HINT:],
        "source": entry.source,
        "trouble": entry.trouble or None,
        "created_at": moment(entry.created_at),
        "updated_at": moment(entry.updated_at),
    }


# ---------------------------------------------------------------------- capacity


class HolderModel(BaseModel):
    tenant: str
    concurrent: int = Field(description="Its calls on their way.")
    waiting: int = Field(description="Its queued calls that wait here.")
    closed_until: Moment = Field(description="Until when the tenant is held back here.")
    closed_why: str


class CapacityModel(BaseModel):
    """What a channel bears, what goes there now, and why queued work waits."""

    code: str
    model: str
    limit_rpm: float | None = Field(description="The plain estimate; null: nothing is known.")
    source: Source = Field(description="What the plain estimate comes from.")
    remaining: float = Field(description="The share of it that is not in use, from 0 to 1.")
    threshold: float = Field(description="The share that queued work leaves unused.")
    online: TrafficModel
    queued: TrafficModel
    tenants: list[HolderModel] = Field(description="Who calls or waits here, the busiest first.")
    closed_until: Moment = Field(description="The channel is closed for everybody until then.")
    closed_why: str
    opens_at: Moment = Field(description="When the next queued call may go; null: now.")
    samples: list[SampleModel] = Field(description="The last 429s, the newest at the end.")
    believed: BelievedModel
    phase: LearningPhase
    waiting: int = Field(description="Queued calls that could go here.")
    idle_because: str | None = Field(
        description="Why no queued call starts here now, in words; null: they do."
    )
