"""The server: routes, guard and engine in one process."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import uvicorn
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from headway import __version__
from headway.api import problems, quick, tracing
from headway.api.application import Application
from headway.api.auth import BEARER, SESSION
from headway.api.config import Config
from headway.api.fairqueue.door import Door
from headway.api.fairqueue.service import FairQueue
from headway.api.guard import Guard
from headway.api.links import add_links
from headway.api.protocol import limited
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
    slots,
    system,
    tasks,
    tokens,
    work,
)
from headway.api.site import Site
from headway.errors import BadSettings
from headway.net.redaction import SECRETS
from headway.sdk.app import App

logger = logging.getLogger("headway.server")

ROUTERS = (jobs, work, requests, queue, tasks, gates, schedules, batches, events, tokens, system,
           pages, fairqueue, slots, learning, retention, attention)  # fmt: skip
OPEN_PATHS = ("/healthz", "/readyz")  # that need no token
ABOUT = """Background work at the pace its upstreams allow.

Everything that the page and the command line do, they do through these routes. Errors are problem
details (RFC 9457) that say what to do. Times are ISO 8601 in UTC; names that end in `_s` are
seconds.
"""
BACKLOG = 2_048
STATE_FILE = "server.json"


def create(site: Site) -> FastAPI:
    """The application. Its engine must be running before it is asked anything."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await site.fairqueue.start()
        for each in site.applications:
            await each.start()
        noting = asyncio.create_task(site.watch.keep_noting())
        yield
        noting.cancel()
        for each in site.applications:
            await each.stop()
        await site.fairqueue.stop()
        await site.hub.close()

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
                       door=Door(site.fairqueue))  # fmt: skip
    if site.tracing is not None:
        app.add_middleware(tracing.TracingMiddleware, tracing=site.tracing)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


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


# ---------------------------------------------------------------------- running


def check_safe(config: Config, app: App, queue: FairQueue) -> None:
    """A server that others can reach must not be open to all of them."""
    if config.open:
        return
    if queue.configured:
        # Its clients have their own key, or were told that they need none; nobody else gets in.
        if not queue.config.auth.enabled:
            logger.warning("whoever reaches %s may take slots: auth is not enabled", config.host)
        return
    now = app.now()
    usable = any(each.revoked_at is None and (each.expires_at or now + 1) > now
                 for each in app.store.tokens())  # fmt: skip
    if not usable and not config.signed_tokens:
        where = "--dsn …" if config.dsn else f"--data {config.data}"
        raise BadSettings(
            f"{config.host} can be reached by others, and there is no token yet; make one with "
            f"`headway tokens create admin --scope admin {where}`, or set jwt_secret or jwks"
        )


def serve(
    config: Config, app: App, *, applications: Sequence[Application] = (),
    ready: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Run until SIGINT or SIGTERM. `ready` hears the address."""
    hide_secrets(config)
    if not config.dsn:
        # Others on this machine could read in it what lets them in.
        Path(config.data).mkdir(mode=0o700, parents=True, exist_ok=True)
    queue = FairQueue(config.fairqueue)
    check_safe(config, app, queue)
    app.slot_profile = queue.settings_of
    listening = _listen(config)
    host, port = listening.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    site: Site | None = None
    try:
        app.start()
        site = Site(app, config, tracing.set_up("headway"), queue, applications)
        site.trace_attempts()
        _run(config, site, listening, address, ready)
    finally:
        _forget(config)
        listening.close()
        if site is not None and site.tracing is not None:
            site.tracing.close()
        app.stop(config.drain_s)
        app.close()
        logger.info("stopped")
    if site.error is not None:
        raise site.error


def hide_secrets(config: Config) -> None:
    """Wherever they would appear, in a log or in an answer."""
    SECRETS.add(config.jwt_secret)
    with suppress(ValueError):  # the store says what is wrong with its address
        password = urlsplit(config.dsn).password or ""
        SECRETS.add(password)
        SECRETS.add(unquote(password))


def _listen(config: Config) -> socket.socket:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise BadSettings(
            f"{config.host}:{config.port} cannot be used: {error.strerror}; name another with "
            "--host and --port"
        ) from error
    listening.listen(BACKLOG)
    listening.set_inheritable(True)
    return listening


def _run(
    config: Config, site: Site, listening: socket.socket, address: str,
    ready: Callable[[str], None] | None,
) -> None:  # fmt: skip
    server = uvicorn.Server(
        uvicorn.Config(
            create(site), loop="uvloop", http=limited(config), ws="none", lifespan="on",
            log_config=None, access_log=False, server_header=False, backlog=BACKLOG,
            timeout_keep_alive=75,
            proxy_headers=bool(config.trusted_proxies),
            forwarded_allow_ips=config.trusted_proxies or None,
            timeout_graceful_shutdown=int(config.drain_s) + 1,
        )
    )  # fmt: skip
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # we say ourselves when we serve
    _stop_together(site, server)
    _remember(config, address)
    logger.info("serving on %s", address, extra={"fields": {"store": site.store_name}})
    if ready is not None:
        ready(address)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(server.serve(sockets=[listening]))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _stop_together(site: Site, server: uvicorn.Server) -> None:
    """When the engine cannot go on, neither can the server; when the server is told to stop,
    streams end first, since they would go on for ever.
    """
    engine = site.engine

    def engine_is_over() -> None:
        if engine.error is not None:
            site.error = engine.error
            server.should_exit = True

    engine.when_done = engine_is_over

    def told_to_stop(sig: int, frame: Any) -> None:  # noqa: ARG001 - so are handlers called
        site.stop_waiting()
        if server.should_exit and sig == signal.SIGINT:
            server.force_exit = True
            engine.hurry()
        server.should_exit = True

    # The server's own handler would raise the signal again when it has stopped, and so end the
    # process before the engine has. Ours stays in place while jobs drain.
    server.handle_exit = told_to_stop  # type: ignore[method-assign]
    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, told_to_stop)


def _remember(config: Config, address: str) -> None:
    """Where the command line finds this server."""
    if config.dsn:
        return
    path = Path(config.data) / STATE_FILE
    text = json.dumps({"url": address, "pid": os.getpid(), "open": config.open})
    partial = path.with_suffix(".new")
    partial.write_text(text)
    partial.replace(path)


def _forget(config: Config) -> None:
    """Only what is ours: another server may run on this data, and have kept this one from it."""
    path = Path(config.data) / STATE_FILE
    if not config.dsn:
        with suppress(OSError, ValueError, KeyError):
            if json.loads(path.read_text())["pid"] == os.getpid():
                path.unlink()
