"""How the server is: for load balancers, for Prometheus, for people."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from headway import __version__
from headway.api.auth import Overseer, Reader
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.together.standing import Standing

router = APIRouter(tags=["System"])


class HealthModel(BaseModel):
    status: str


@router.get(
    "/healthz",
    summary="Whether the process lives",
    operation_id="getHealth",
    response_class=Reply,
    responses={200: {"model": HealthModel}, **documented()},
)
async def healthz() -> Response:
    """Needs no token, and asks nobody: restart the server if this does not answer."""
    return Reply({"status": "ok"})


class ReadyModel(BaseModel):
    status: str
    engine: str
    store: str


@router.get(
    "/readyz",
    summary="Whether it can work",
    operation_id="getReadiness",
    response_class=Reply,
    responses={200: {"model": ReadyModel}, **documented()},
)
def readyz(site: TheSite) -> Response:
    """Needs no token. 503 while the store cannot be reached, the engine has stopped, or, where
    several servers share a store, none of them leads.
    """
    engine = site.app.engine
    if site.standing is not None and not site.standing.leads:
        return _follows(site, site.standing)
    if engine is None or engine.done.is_set():
        raise Problem(503, "the engine has stopped; the server's log says why", kind="unavailable")
    if site.app.trouble:
        raise Problem(503, "the store cannot be used now; the server's log says why",
                      kind="unavailable")  # fmt: skip
    site.store.last_event()
    return Reply({"status": "ready", "engine": "running", "store": "reachable"})


def _follows(site: Site, standing: Standing) -> Response:
    if standing.leader is None:
        raise Problem(503, "no server leads at the moment", kind="unavailable")
    site.store.last_event()
    return Reply({"status": "ready", "engine": "elsewhere", "store": "reachable"})


@router.get(
    "/metrics",
    summary="Everything in numbers, for Prometheus",
    operation_id="getMetrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}},
                          "application/openmetrics-text": {"schema": {"type": "string"}}}},
        **documented(),
    },
)  # fmt: skip
def metrics(request: Request, site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
    body, kind = site.exposition.render(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": kind})


class InfoModel(BaseModel):
    version: str
    store: str
    who: str
    scopes: list[str]
    tenant: str | None
    open: bool
    lease_s: float


@router.get(
    "/api/info",
    summary="Which server this is, and who you are to it",
    operation_id="getInfo",
    response_class=Reply,
    responses={200: {"model": InfoModel}, **documented()},
)
def info(site: TheSite, principal: Reader) -> Response:
    return Reply({
        "version": __version__,
        "store": "postgresql" if site.config.dsn else "sqlite",
        "who": principal.name,
        "scopes": sorted(principal.scopes),
        "tenant": principal.tenant,
        "open": site.config.open,
        "lease_s": site.config.lease_s,
    })  # fmt: skip
