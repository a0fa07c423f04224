"""The routes of a server as one application, with its guard in front and its document."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from headway import __version__
from headway.api import problems, quick, tracing
from headway.api.auth import BEARER, SESSION
from headway.api.fairqueue.door import Door
from headway.api.guard import Forward, Guard
from headway.api.links import add_links
from headway.api.routes import (
    attention,
    batches,
    events,
    fairqueue,
    gates,
    jobs,
    learning,
    pages,
    queue,
    requests,
    retention,
    schedules,
    servers,
    simulate,
    slots,
    system,
    tasks,
    tokens,
    work,
)
from headway.api.site import Site

ROUTERS = (jobs, work, requests, queue, tasks, gates, schedules, batches, events, tokens, system,
           pages, fairqueue, slots, learning, retention, attention, servers,
           simulate)  # fmt: skip
OPEN_PATHS = ("/healthz", "/readyz")  # that need no token
ABOUT = """Background work at the pace its upstreams allow.

Everything that the page and the command line do, they do through these routes. Errors are problem
details (RFC 9457) that say what to do. Times are ISO 8601 in UTC; names that end in `_s` are
seconds.
"""


def create(site: Site, forward: Forward | None = None) -> FastAPI:
    """The application. Its engine must be running before it is asked anything, or requests are
    passed on to a server that leads.
    """

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        if forward is not None:
            yield
            return
        async with started(site):
            yield

    app = FastAPI(
        title="Headway", version=__version__, description=ABOUT, docs_url=None, redoc_url=None,
        openapi_url="/openapi.json", lifespan=lifespan, separate_input_output_schemas=False,
        telemetry=tracing.ONLY_OURS,
        redirect_slashes=False,  # that would lead to whatever Host the request has named
    )  # fmt: skip
    app.state.site = site
    problems.install(app)
    for each in ROUTERS:
        app.include_router(each.router)
    for application in site.applications:
        for router in application.routers:
            app.include_router(router)
    app.add_middleware(Guard, config=site.config, authenticator=site.authenticator,
                       door=Door(site.fairqueue), peers=site.peers, forward=forward)  # fmt: skip
    if site.tracing is not None:
        app.add_middleware(tracing.TracingMiddleware, tracing=site.tracing)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def started(site: Site) -> AsyncIterator[None]:
    """All that runs beside the requests. If one part of it cannot start, the others are stopped:
    whoever tries again would have them twice. Streams go on then, since nothing has changed.
    """
    async with AsyncExitStack() as running:
        await site.fairqueue.start()
        running.push_async_callback(site.fairqueue.stop)
        for each in site.applications:
            await each.start()
            running.push_async_callback(each.stop)
        noting = asyncio.create_task(site.watch.keep_noting())
        running.callback(noting.cancel)
        running.push_async_callback(site.hub.close)
        yield


def _document(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is not None:
        return app.openapi_schema
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    parts = document.setdefault("components", {})
    parts["schemas"] |= quick.schemas()
    schema = problems.ProblemDetails.model_json_schema(ref_template="#/components/schemas/{model}")
    for name, part in schema.pop("$defs", {}).items():
        parts["schemas"][name] = part
    parts["schemas"]["ProblemDetails"] = schema
    for unused in ("HTTPValidationError", "ValidationError"):
        parts["schemas"].pop(unused, None)
    parts["securitySchemes"] = {
        "bearer": BEARER.model.model_dump(by_alias=True, exclude_none=True, mode="json"),
        "session": SESSION.model.model_dump(by_alias=True, exclude_none=True, mode="json"),
    }
    for path, methods in document["paths"].items():
        if path not in OPEN_PATHS:
            for operation in methods.values():
                operation.setdefault("security", [{"bearer": []}, {"session": []}, {}])
    add_links(document)
    app.openapi_schema = document
    return document
