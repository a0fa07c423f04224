"""What clients of slots send, checked at the edge."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headway.api.bodies import (
    MAX_ID,
    NO_NUL,
    WHOLE,
    Body,
    Id,
    Name,
    Priority,
    Seconds,
    Stamp,
    Tenant,
    Text,
)
from headway.api.work_bodies import MOST, RATE_HEADERS, RateHeaderFields, Status

LONGEST_S = 86_400.0
WaitMs = Annotated[int, Field(ge=0, le=60_000), WHOLE]
LeaseS = Annotated[float, Field(ge=1, le=LONGEST_S, allow_inf_nan=False)]
Fence = Annotated[int, Field(ge=0, le=MAX_ID), WHOLE]
FENCE = "What came with the grant."
LEASE = "How long it lasts from now on, without another word."


class SlotWishBody(Body):
    """A wish for a slot. It names an upstream, or a lane, a key or tools."""

    upstream: Name | None = Field(default=None, description="What is to be called.")
    upstreams: list[Name] = Field(
        default_factory=list, max_length=100, description="Several candidates instead; any will do."
    )
    tenant: Tenant | None = Field(default=None, description="Who asks; a token may fix it.")
    weight: float = Field(
        default=1.0,
        gt=0,
        le=1_000,
        allow_inf_nan=False,
        description="Its tenant's share beside others.",
    )
    priority: Priority = Field(default=5, description="Lower goes first; 1 to 10 by custom.")
    key: Text | None = Field(
        default=None, description="Whoever holds the same key excludes the others."
    )
    lane: Name = Field(default="default", description="Slots and jobs of a lane share its limits.")
    tools: list[Name] = Field(
        default_factory=list, max_length=20, description="What else it holds."
    )
    cost: float = Field(
        default=1.0, ge=0, le=1e9, allow_inf_nan=False, description="For limits that count cost."
    )
    traffic: Literal["normal", "leftover"] = Field(
        default="normal", description="leftover: goes only where nothing else wants to."
    )
    lease_s: LeaseS | None = Field(
        default=None,
        description="How long a grant lasts without a renewal; else as the server is set.",
    )
    wait_ms: WaitMs = Field(default=20_000, description="How long this request waits.")
    timeout_s: float | None = Field(
        default=None,
        ge=0,
        le=LONGEST_S,
        allow_inf_nan=False,
        description="How long to wait in all, over several requests.",
    )
    holder: Annotated[str, Field(max_length=200, pattern=NO_NUL)] = Field(
        default="", description="Who it is, for people."
    )


class SlotPollBody(Body):
    """Wait on."""

    wait_ms: WaitMs = Field(default=20_000, description="How long this request waits.")


class SlotRenewBody(Body):
    """Prolong a lease."""

    fence: Fence = Field(description=FENCE)
    lease_s: LeaseS | None = Field(default=None, description=f"{LEASE} Else as long as before.")


class SlotToRenewBody(SlotRenewBody):
    """Prolong this lease."""

    id: Id = Field(description="The number of a slot.")


class SlotsToRenewBody(Body):
    """Prolong leases."""

    slots: list[SlotToRenewBody] = Field(max_length=MOST, description="Of these slots.")


class SlotReportBody(Body):
    """What the upstream answered, while the slot is held."""

    fence: Fence = Field(description=FENCE)
    status: Status = Field(description="Of HTTP.")
    retry_after_s: Seconds | None = Field(default=None, description="As the upstream has said.")
    headers: RateHeaderFields | None = Field(default=None, description=RATE_HEADERS)


class SlotReleaseBody(Body):
    """A slot comes back."""

    fence: Fence = Field(description=FENCE)
    status: Status | None = Field(default=None, description="What the upstream answered, of HTTP.")
    retry_after_s: Seconds | None = Field(default=None, description="As the upstream has said.")
    headers: RateHeaderFields | None = Field(default=None, description=RATE_HEADERS)
    hit_at: Stamp | None = Field(
        default=None, description="When it was called, in seconds since 1970."
    )
    error: Text = Field(default="", description="What went wrong, if it was no answer.")


class SlotToReleaseBody(SlotReleaseBody):
    """This slot comes back."""

    id: Id = Field(description="The number of a slot.")


class SlotsToReleaseBody(Body):
    """Slots come back."""

    slots: list[SlotToReleaseBody] = Field(max_length=MOST, description="These.")
