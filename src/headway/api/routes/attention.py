"""What needs attention, for people and for whoever wakes them."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from headway.api.auth import Reader
from headway.api.models import Moment
from headway.api.problems import documented
from headway.api.site import Reply, TheSite

router = APIRouter(tags=["System"])


class SubjectModel(BaseModel):
    kind: str = Field(description="Such as upstream, lane, type, schedule, channel or disk.")
    name: str = Field(description="Empty: there is only one of its kind, or it is about several.")


class AttentionModel(BaseModel):
    kind: str = Field(description="What it is, for programs.")
    level: Literal["bad", "warn", "info"] = Field(
        description="Something does not work; will not; or was wanted, or passes by itself."
    )
    subject: SubjectModel
    since: Moment
    until: Moment = Field(description="When it ends by itself, if that is known.")
    values: dict[str, Any] = Field(description="What the sentence is made of.")
    text: str = Field(description="The sentence, in English.")
    of: list[str] = Field(
        description="If it is one sentence for many: the kinds that each of them alone would have."
    )


class AttentionList(BaseModel):
    items: list[AttentionModel] = Field(description="The worst first, 100 at most.")
    more: int = Field(description="How many are left out.")
    at: str = Field(description="When this was so.")


@router.get(
    "/api/attention",
    summary="What needs attention, in words",
    operation_id="getAttention",
    response_class=Reply,
    responses={200: {"model": AttentionList}, **documented()},
)
def attention(site: TheSite, principal: Reader) -> Response:
    """Pauses, closed upstreams, failures of the last hour, lost leases, types that no worker knows,
    late schedules, a full disk, and what applications have to say. Two seconds old at most, and
    cheap to ask for. Whoever is bound to a tenant sees what concerns that one.
    """
    return Reply(site.watch.answer(principal.tenant))
