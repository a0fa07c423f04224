"""What happened: live, in pages, and who did what."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from headway.api import models
from headway.api.auth import Principal, Reader
from headway.api.bodies import MAX_ID
from headway.api.problems import documented
from headway.api.queue_stats import queue_stats
from headway.api.site import Reply, Site, TheSite
from headway.api.stream import EventStream, Words, all_words
from headway.api.views import event_view

router = APIRouter(tags=["Events"])

SSE: dict[str, Any] = {
    "description": "Server-sent events: `id`, `event`, and `data` as JSON.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}
LastEventId = Annotated[
    int | None,
    Header(alias="Last-Event-ID", ge=0, le=MAX_ID, description="Go on after this event."),
]
After = Annotated[int, Query(ge=0, le=MAX_ID, description="Events after this one.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="So many at most.")]


def following(site: Site, principal: Principal, after: int | None, words: Words) -> Response:
    """The stream, from this event on, for as long as the principal may hear it."""
    site.hub.check_room()
    tenant = principal.tenant
    source = site.hub.stream(after, words, tenant, lambda: queue_stats(site, tenant))
    return EventStream(site.hub, source, partial(site.authenticator.still_in, principal))


@router.get(
    "/api/events",
    summary="Follow everything that happens",
    operation_id="followEvents",
    response_class=Response,
    responses={200: SSE, **documented()},
)
async def follow(
    site: TheSite,
    principal: Reader,
    last_event_id: LastEventId = None,
    after: Annotated[
        int | None, Query(ge=0, le=MAX_ID, description="The same, for the first connection.")
    ] = None,
) -> Response:
    """Server-sent events. `Last-Event-ID` resumes without a gap or a repeat, also after the server
    was restarted; when what came in between is gone, a `reset` event with a snapshot comes first.
    """
    return following(site, principal, after if last_event_id is None else last_event_id, all_words)


@router.get(
    "/api/trail",
    summary="The audit trail in pages",
    operation_id="listTrail",
    response_class=Reply,
    responses={200: {"model": models.Trail}, **documented()},
)
def trail(site: TheSite, principal: Reader, after: After = 0, limit: Limit = 100) -> Response:
    rows = site.store.trail(after, limit, tenant=principal.tenant)
    oldest, newest = site.store.event_range()
    return Reply({"items": [event_view(row) for row in rows], "oldest": oldest, "newest": newest})


@router.get(
    "/api/audit",
    summary="Who did what, newest first",
    operation_id="listAudit",
    response_class=Reply,
    responses={200: {"model": models.Trail}, **documented()},
)
def audit(
    site: TheSite,
    principal: Reader,
    before: Annotated[
        int | None, Query(ge=1, le=MAX_ID, description="Events before this one.")
    ] = None,
    limit: Limit = 100,
) -> Response:
    rows = site.store.audit(before, limit, principal.tenant)
    oldest, newest = site.store.event_range()
    return Reply({"items": [event_view(row) for row in rows], "oldest": oldest, "newest": newest})
