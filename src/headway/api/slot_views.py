"""Slots as their clients and other people see them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from headway.api.models import Moment
from headway.api.views import moment
from headway.core import Permit
from headway.core.explain import Explanation
from headway.engine.slots import Session
from headway.engine.slots.looking import wait_of

TIMES = ("since", "granted_at", "lease_ends_at", "eta", "opens_at")
State = Literal["waiting", "granted", "reclaimed"]
Kind = Literal["own", "lease", "fairqueue"]


class SlotGrantedModel(BaseModel):
    """The slot is held."""

    status: Literal["granted"]
    id: int
    fence: int = Field(description="Send it with every word about this slot.")
    upstream: str | None = Field(description="Where it was granted, of those that were named.")
    lease_s: float = Field(description="Renew it before this is over.")
    expires_at: Moment
    granted_at: Moment
    waited_s: float


class SlotPendingModel(BaseModel):
    """Not yet. Poll on within two seconds, and the place in line is kept."""

    status: Literal["pending"]
    id: int
    position: int | None = Field(description="1 is next.")
    eta: Moment = Field(description="When it should be granted; null: nobody can tell.")
    wait_reason: str | None
    wait_gate: str = Field(description="What holds it back, such as upstream:example.com.")
    wait_detail: str
    opens_at: Moment
    since: Moment = Field(description="Since when it waits.")
    poll: str = Field(description="Where to wait on.")


class SlotRenewalModel(BaseModel):
    id: int
    fence: int
    lease_s: float
    expires_at: Moment


class SlotRenewedModel(BaseModel):
    id: int
    fence: int
    lease_s: float | None = Field(description="null: the lease is over; stop working.")
    expires_at: Moment


class SlotRenewalsModel(BaseModel):
    slots: list[SlotRenewedModel]


class SlotWordModel(BaseModel):
    id: int
    fence: int
    accepted: bool = Field(description="False: the lease was over, or the fence is another's.")


class SlotWordsModel(BaseModel):
    slots: list[SlotWordModel]


class SlotEndModel(BaseModel):
    id: int
    ended: bool = Field(description="False: its lease was over already.")


class SlotModel(BaseModel):
    """Somebody who waits for a slot, holds one, or has held one for longer than it lasted."""

    id: int
    kind: Kind = Field(description="own: held in the server's own process.")
    state: State
    upstream: str | None = Field(description="Where it was granted.")
    upstreams: list[str]
    tenant: str
    holder: str
    lane: str
    key: str | None
    tools: list[str]
    priority: int
    weight: float
    fence: int | None
    since: Moment
    granted_at: Moment
    held_s: float | None
    waited_s: float
    lease_ends_at: Moment
    attached: bool = Field(description="A request waits for it now.")
    in_line: bool = Field(description="It can be granted something.")
    claimed: bool = Field(description="Its client has heard of the grant.")
    wait_reason: str | None
    wait_gate: str
    wait_detail: str
    position: int | None
    eta: Moment
    opens_at: Moment


class SlotPage(BaseModel):
    items: list[SlotModel]
    count: int
    total: int
    page: int
    size: int


class SlotSessionsModel(BaseModel):
    """How many wait, hold, are away, or have not given back what they held."""

    waiting: int
    granted: int
    absent: int
    reclaimed: int


class SlotKindModel(BaseModel):
    waiting: int
    granted: int
    absent: int


class SlotCountsModel(BaseModel):
    """Since the server started."""

    created: int
    granted: int
    throttled: int
    timeout: int
    released: int
    reclaimed: int = Field(description="Leases that ended without a word.")
    outlived: int = Field(description="Holders that were heard of when their lease was over.")


class SlotOvershootModel(BaseModel):
    """Since ever, at one upstream."""

    upstream: str
    reclaimed: int
    outlived: int
    outlived_s: float


class SlotStatsModel(BaseModel):
    sessions: SlotSessionsModel
    by_kind: dict[Kind, SlotKindModel]
    counts: SlotCountsModel
    overshoot: list[SlotOvershootModel]


# ---------------------------------------------------------------------- answers


def granted_view(session: Session, permit: Permit) -> dict[str, Any]:
    lease_s = min(permit.lease_s, permit.expires_at - session.granted_at)
    return {
        "status": "granted",
        "id": session.number,
        "fence": permit.fence,
        "upstream": session.upstream,
        "lease_s": round(lease_s, 3),
        "expires_at": moment(permit.expires_at),
        "granted_at": moment(session.granted_at),
        "waited_s": max(0.0, session.granted_at - session.created_at),
    }


def pending_view(session: Session, place: Explanation | None, unplaced: str) -> dict[str, Any]:
    """`unplaced`: why nobody has looked at its place."""
    why = wait_of(place, unplaced)
    return {
        "status": "pending",
        "id": session.number,
        **why,
        "eta": moment(why["eta"]),
        "opens_at": moment(why["opens_at"]),
        "since": moment(session.created_at),
        "poll": f"/api/slots/{session.number}/poll",
    }


def slot_view(seen: dict[str, Any]) -> dict[str, Any]:
    """A picture with times in words."""
    return seen | {name: moment(seen[name]) for name in TIMES}


def overshoot_view(row: tuple[str, int, int, float]) -> dict[str, Any]:
    upstream, reclaimed, outlived, outlived_s = row
    return {
        "upstream": upstream,
        "reclaimed": reclaimed,
        "outlived": outlived,
        "outlived_s": round(outlived_s, 3),
    }
