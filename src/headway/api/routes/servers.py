"""The servers that share a store, and which of them leads."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from headway.api.auth import Overseer
from headway.api.models import Moment
from headway.api.problems import documented
from headway.api.site import Reply, Site, TheSite
from headway.api.together.standing import About
from headway.api.views import moment
from headway.store.records import Leader

router = APIRouter(tags=["System"])


class ServerModel(BaseModel):
    url: str = Field(description="Where the other servers reach it.")
    role: Literal["leads", "follows"]
    host: str
    pid: int
    version: str
    started_at: Moment
    seen_s: float = Field(description="How many seconds ago it was heard of.")


class ServerList(BaseModel):
    items: list[ServerModel]
    term: int | None = Field(description="It rises whenever another one leads; null on SQLite.")


@router.get(
    "/api/servers",
    summary="The servers that share the store",
    operation_id="listServers",
    response_class=Reply,
    responses={200: {"model": ServerList}, **documented()},
)
def servers(site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
    """One leads, and any of them answers. On SQLite there is one."""
    leader = site.store.leader()
    rows = [(msgspec.json.decode(row.about, type=About), row.seen_s)
            for row in site.store.servers()]  # fmt: skip
    if not rows and site.app.server_url:  # else it is a command, and no server
        rows = [(_alone(site), 0.0)]
    items = [_view(about, seen_s, leads=_leads(site, about, leader)) for about, seen_s in rows]
    items.sort(key=lambda item: (item["role"] != "leads", item["url"]))
    return Reply({"items": items, "term": None if leader is None else leader.term})


def _leads(site: Site, about: About, leader: Leader | None) -> bool:
    return not site.config.dsn if leader is None else about.url == leader.url


def _alone(site: Site) -> About:
    return About.here(site.app.server_url, site.started_at)


def _view(about: About, seen_s: float, *, leads: bool) -> dict[str, Any]:
    return {
        "url": about.url, "role": "leads" if leads else "follows", "host": about.host,
        "pid": about.pid, "version": about.version, "started_at": moment(about.started_at),
        "seen_s": round(seen_s, 1),
    }  # fmt: skip
