"""Running a server: its socket, its engine if it leads, and an orderly end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import unquote, urlsplit

import uvicorn
from fastapi import FastAPI

from headway.api import tracing
from headway.api.application import Application
from headway.api.config import Config
from headway.api.fairqueue.service import FairQueue
from headway.api.listening import BACKLOG, address_of, begin_again, inherited, listen, reachable
from headway.api.protocol import limited
from headway.api.server import create
from headway.api.site import Site
from headway.api.stream import Hub
from headway.api.together.forwarding import Forwarder
from headway.api.together.front import Front
from headway.api.together.peers import Peers
from headway.api.together.standing import Standing
from headway.engine import Engine
from headway.errors import BadSettings, EngineRunning, StaleBrain, StoreError
from headway.net.redaction import SECRETS
from headway.sdk.app import App

logger = logging.getLogger("headway.server")

STATE_FILE = "server.json"
LAST_WORDS_S = 1  # for answers that are on their way when another server shall lead
LOOK_S = 0.02
AGAIN_S = 0.5  # between two looks at a store that is away


class Server:
    """One process that serves. It leads, or follows another one that shares its PostgreSQL store
    until that is gone.
    """

    def __init__(
        self, config: Config, app: App, queue: FairQueue, applications: Sequence[Application]
    ) -> None:
        self._config = config
        self._app = app
        self._queue = queue
        self._applications = applications
        self._hub: Hub | None = None
        self._stop_following: Callable[[], None] = lambda: None
        self.tracing = tracing.set_up("headway")
        self.site: Site | None = None
        self.front = Front()
        self.error: BaseException | None = None  # why it cannot go on
        self.uvicorn: uvicorn.Server | None = None
        self.drain_s = config.drain_s  # what is left of it
        self._told = False
        self._leaving: threading.Thread | None = None
        self._spoilt = False  # it could not lead, though it had an engine
        self._pause = threading.Event()  # never set

    def sit_down(self) -> None:
        try:
            app = self.lead()
        except EngineRunning as error:
            if not self._config.dsn:
                raise
            app = self._follow()
            logger.info("another server leads, and this one follows it: %s", error)
        else:
            self.settle(app)
        self.front.app = app
        if self._config.dsn:
            leads = self.front.forwarder is None
            self.front.standing = self.front.standing or self._new_standing(leads=leads)
            self.front.candidate = self

    # ------------------------------------------------------------------ leading

    def lead(self) -> FastAPI:
        try:
            self._check_may_lead()
            self._app.start()
            self._check_may_lead()  # that took its time
            engine = self._app.engine
            assert engine is not None
            engine.when_done = self._engine_is_over
            site = self._new_site(self._applications)
            site.trace_attempts()
            return create(site)
        except EngineRunning:
            self._app.stop(0.0)
            raise
        except BaseException:
            if self._app.engine is not None:
                self.give_up()  # somebody else may have more luck
            raise

    def _check_may_lead(self) -> None:
        """Nobody could reach one that stops, and one that is to begin again has had its try."""
        if self._told or self._spoilt:
            raise EngineRunning("this server is to stop; another one shall lead")

    def settle(self, app: FastAPI) -> None:
        self.site = app.state.site
        self._stop_following()
        engine = self._app.engine
        if engine is not None and engine.done.is_set():
            self._engine_is_over()  # while nobody looked

    def give_up(self) -> None:
        """What the applications know of their time with that engine cannot be taken back, so the
        process begins again.
        """
        self._spoilt = True
        self._app.stop(0.0)
        self._exit()

    def _follow(self) -> FastAPI:
        standing = self.front.standing = self._new_standing(leads=False)
        site = self.site = self._new_site(())
        site.standing = standing
        self._stop_following = self._app.store.follow(site.hub.committed)
        assert site.peers is not None
        self.front.forwarder = Forwarder(
            standing, site.peers, self.front, site.authenticator.forget
        )
        return create(site, self.front.forwarder)

    def _new_standing(self, *, leads: bool) -> Standing:
        return Standing(self._app.store, self._app.server_url, leads=leads)

    def _new_site(self, applications: Sequence[Application]) -> Site:
        """Whoever listens to the trail goes on listening when this server begins to lead."""
        site = Site(self._app, self._config, self.tracing, self._queue, applications, hub=self._hub)
        self._hub = site.hub
        if self._config.dsn:
            site.peers = Peers(self._app.store)
        return site

    def _engine_is_over(self) -> None:
        """When the engine cannot go on, neither can the server."""
        engine = self._app.engine
        if engine is not None and engine.error is not None:
            self.error = engine.error
            self._exit()

    def _exit(self) -> None:
        self._hurry()
        self._send_home()
        if self.uvicorn is not None:
            self.uvicorn.should_exit = True

    def _send_home(self) -> None:
        """Whoever waits here, for whatever it is."""
        if self.front.standing is not None:
            self.front.standing.stop()
        if self.site is not None:
            self.site.stop_waiting()

    # ------------------------------------------------------------------ stopping

    @property
    def begins_again(self) -> bool:
        """Another one leads, or shall, and this one goes on without what it has in memory."""
        unfit = self._spoilt or isinstance(self.error, StaleBrain)
        return unfit and bool(self._config.dsn) and not self._told

    def wait_for_store(self) -> None:
        """A process that begins while its store is away ends at once."""
        while self.begins_again:
            try:
                self._app.store.leader()
                return
            except StoreError:
                self._pause.wait(AGAIN_S)

    def close(self) -> None:
        self._stop_following()
        if self._leaving is not None:
            self._leaving.join()

    def _hand_over(self, engine: Engine, stop: Callable[[], None]) -> None:
        """While others would have to wait for this server to be gone before one of them leads, it
        answers until nothing runs here any more.
        """
        others = False
        with suppress(StoreError):
            others = len(self._app.store.servers()) > 1
        if not others:
            return stop()
        idle = engine.drain(self.drain_s)
        self.drain_s = 0.0
        stop()
        if not idle:
            return self._hurry()
        if self._has_answered(engine):
            # Before the last connections end: a slow client may keep one for long.
            self.front.retire()
            self._app.stop(0.0)
        return None

    def _has_answered(self, engine: Engine) -> bool:
        """Wait a moment for what was asked until now, and longer for calls to an upstream: only
        this engine can write down their end and their price. False: some go on for too long.
        """
        server = self.uvicorn
        assert server is not None
        began, connections = monotonic(), server.server_state.connections
        while connections and monotonic() < began + LAST_WORDS_S:
            self._pause.wait(LOOK_S)
        calls = engine.brain.online.own
        while calls and monotonic() < began + self._config.drain_s and not server.force_exit:
            self._pause.wait(LOOK_S)
        return not calls

    def _hurry(self) -> None:
        """No client is waited for any longer: another server shall lead, or leads."""
        if self.uvicorn is not None:
            self.uvicorn.config.timeout_graceful_shutdown = LAST_WORDS_S

    def stop_with(self, server: uvicorn.Server, listening: socket.socket) -> None:
        """When it is told to stop, streams end first, since they would go on for ever. The server
        has a copy of the socket: ours stays, should this process begin again.
        """
        self.uvicorn = server
        if self.error is not None:
            server.should_exit = True

        def stop() -> None:
            listening.close()
            self._send_home()
            server.should_exit = True

        def told_to_stop(sig: int, frame: Any) -> None:  # noqa: ARG001 - so are handlers called
            engine, again = self._app.engine, self._told
            self._told = True
            if engine is not None and self._config.dsn and not again:
                self._leaving = threading.Thread(target=self._hand_over, args=(engine, stop))
                self._leaving.start()
                return
            if again and sig == signal.SIGINT:
                server.force_exit = server.should_exit
                if engine is not None:
                    engine.hurry()
            stop()

        # The server's own handler would raise the signal again when it has stopped, and so end the
        # process before the engine has. Ours stays in place while jobs drain.
        server.handle_exit = told_to_stop  # type: ignore[method-assign]
        if threading.current_thread() is threading.main_thread():
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, told_to_stop)


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
    listening = inherited() or listen(config)
    host, port = listening.getsockname()[:2]
    address = address_of(host, port)
    app.server_url = config.advertise or address_of(reachable(host), port)
    app.leader_lease_s = config.leader_lease_s
    server = Server(config, app, queue, applications)
    try:
        server.sit_down()
        _run(config, server, listening, address, ready)
        server.wait_for_store()
    finally:
        _forget(config)
        if not server.begins_again:
            listening.close()
        server.close()
        if server.tracing is not None:
            server.tracing.close()
        app.stop(server.drain_s)
        app.close()
        logger.info("stopped")
    if server.begins_again:
        begin_again(listening)
    if server.error is not None and not isinstance(server.error, StaleBrain):
        raise server.error


def hide_secrets(config: Config) -> None:
    """Wherever they would appear, in a log or in an answer."""
    SECRETS.add(config.jwt_secret)
    for address in (config.dsn, *config.celery_broker.split(";")):
        with suppress(ValueError):  # whoever uses it says what is wrong with it
            password = urlsplit(address).password or ""
            SECRETS.add(password)
            SECRETS.add(unquote(password))


def _run(
    config: Config, server: Server, listening: socket.socket, address: str,
    ready: Callable[[str], None] | None,
) -> None:  # fmt: skip
    running = uvicorn.Server(
        uvicorn.Config(
            server.front, loop="uvloop", http=limited(config), ws="none", lifespan="on",
            log_config=None, access_log=False, server_header=False, backlog=BACKLOG,
            timeout_keep_alive=75,
            proxy_headers=bool(config.trusted_proxies),
            forwarded_allow_ips=config.trusted_proxies or None,
            timeout_graceful_shutdown=int(config.drain_s) + 1,
        )
    )  # fmt: skip
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # we say ourselves when we serve
    accepting = listening.dup()  # now: whoever is told to stop closes the other one
    server.stop_with(running, listening)
    _remember(config, address)
    logger.info(
        "serving on %s",
        address,
        extra={"fields": {"store": "postgresql" if config.dsn else "sqlite"}},
    )
    if ready is not None:
        ready(address)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(running.serve(sockets=[accepting]))
    if server.front.failure is not None:  # else a supervisor would take it for an orderly end
        raise server.front.failure


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - not on every system
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


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
