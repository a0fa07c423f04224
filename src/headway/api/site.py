"""What the routes share: the app with its engine, and jobs as they are shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Request
from starlette.responses import JSONResponse

from headway.api.application import Application
from headway.api.auth import Authenticator, Principal
from headway.api.config import Config
from headway.api.fairqueue.service import FairQueue
from headway.api.measures import Measures
from headway.api.metrics import Exposition
from headway.api.problems import Problem
from headway.api.room import Room
from headway.api.search import parse
from headway.api.stream import Hub
from headway.api.together.peers import Peers
from headway.api.together.standing import Standing
from headway.api.tracing import LABEL
from headway.api.views import moment, plain_job, progress_view, with_wait
from headway.api.watching import Watch
from headway.core.explain import Explanation
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY, RetryPolicy
from headway.engine import Engine
from headway.engine.hands import Work
from headway.engine.meters import Meters
from headway.engine.tickets import spec_of
from headway.errors import ENGINE_ELSEWHERE, EngineStopped, UnknownJob
from headway.sdk.app import App
from headway.sdk.control import Control
from headway.store import Store
from headway.store.records import Job, NewJob, Query

if TYPE_CHECKING:
    from headway.api.spans import AttemptSpan, Tracing

T = TypeVar("T")

MAX_PAGE = 200
AT_ONCE = 20  # jobs that are explained in one turn of the brain, so that nobody waits long
ANSWER_S = 30.0  # for the brain
FRESH_S = 1.0  # how old counts may be


class Reply(JSONResponse):
    """Plain data as JSON."""

    def render(self, content: Any) -> bytes:
        return msgspec.json.encode(content)


def paged(items: list[dict[str, Any]], total: int, page: int, size: int) -> Reply:
    return Reply({"items": items, "count": len(items), "total": total, "page": page, "size": size})


# From what was sent to `/api/requests/enqueue`, and by whom. `Problem` says what is wrong with it.
RequestMaker = Callable[[Any, Principal], NewJob]


def no_engine(app: App) -> EngineStopped:
    """Why nothing is done that only an engine can do."""
    return EngineStopped(
        ENGINE_ELSEWHERE if app.engine_elsewhere
        else "the server is stopping; try again when it is back"
    )  # fmt: skip


class Site:
    def __init__(
        self, app: App, config: Config, tracing: Tracing | None = None,
        queue: FairQueue | None = None, applications: Sequence[Application] = (),
        hub: Hub | None = None,
    ) -> None:  # fmt: skip
        self.app = app
        self.tracing = tracing
        self.config = config
        self.authenticator = Authenticator(config, app.store, app.now)
        self.hub = hub or Hub(app, config.max_clients, config.slow_client_s)
        self.peers: Peers | None = None  # where several servers share a store
        self.standing: Standing | None = None  # of one that follows another
        if app.engine is not None:
            app.engine.brain.committed = self.hub.committed
        meters = Meters() if app.engine is None else app.engine.brain.meters
        self.fairqueue = queue or FairQueue(config.fairqueue)
        self.fairqueue.serve(self)
        more = {each.name: each.counts for each in applications}
        self.exposition = Exposition(meters, Measures(self), more)
        self.applications = applications
        # By type of request: how an application wants it to be put into the queue.
        self.request_makers: dict[str, RequestMaker] = {}
        for each in applications:
            each.serve(self)
        self.started_at = app.now()
        self.boot = token_urlsafe(8)  # another one after each start, so that workers notice
        self.disk = config.data if Path(config.data).is_dir() else "."
        self.watch = Watch(self)
        self.stopping = False
        self.takers = 0  # requests for work that wait
        self.slot_waiters = 0  # requests for a slot that wait
        self.simulating = asyncio.Lock()  # a machine has better things to do than two at once
        # Requests that wait for the end of a job: how long they may, and the loop that knows.
        self._waiting: dict[asyncio.Timeout, asyncio.AbstractEventLoop] = {}
        self._room = Room(app.store)
        self._counted: dict[str | None, tuple[float, list[tuple[str, str, int]]]] = {}

    @property
    def store(self) -> Store:
        return self.app.store

    @property
    def engine(self) -> Engine:
        engine = self.app.engine
        if engine is None and self.standing is not None and not self.stopping:
            raise EngineStopped("no server leads at the moment, and only one that leads knows "
                                "this; one will in some seconds, so try again")  # fmt: skip
        if engine is None:
            raise no_engine(self.app)
        return engine

    def now(self) -> float:
        return self.app.now()

    def application(self, name: str) -> Any:
        """One that this server has; its class is known to whoever asks, and not down here."""
        return next(each for each in self.applications if each.name == name)

    def steering(self, principal: Principal) -> Control:
        """What this principal asks the engine to do is in the audit trail with its name."""
        return self.app.by(principal.who)

    def wait(self, future: Future[T]) -> T:
        try:
            return future.result(ANSWER_S)
        except TimeoutError:
            raise EngineStopped("the engine does not answer: " + (self.app.trouble or "it is busy")
                                + "; try again") from None  # fmt: skip

    def record(self, principal: Principal, event: str, subject: str, detail: str = "") -> None:
        """An operator's action that is no order to the engine, in the audit trail."""
        engine = self.app.engine
        if engine is None:
            return  # nobody could write it down
        brain = engine.brain

        def say(now: float) -> None:
            with brain.controls.acting(principal.who):
                brain.record(now, event, subject=subject, detail=detail)

        self.wait(engine.ask(say))

    def trace_attempts(self) -> None:
        """A span for each attempt that runs here, linked to the request that asked for it."""
        tracing = self.tracing
        if tracing is None:
            return

        def around(work: Work) -> AbstractContextManager[AttemptSpan]:
            row = self.store.job(work.id)
            about = {} if row is None else spec_of(row.spec).about
            return tracing.attempt_span(
                id=work.id, type=work.type.name, attempt=work.attempt, upstream=work.upstream,
                traceparent=about.get(LABEL),
            )  # fmt: skip

        self.engine.surround(around)

    def stop_waiting(self) -> None:
        """The server is to stop: streams, workers and clients of slots that wait are sent home,
        and whoever waits at an application. From any thread.
        """
        self.stopping = True
        self.hub.end()
        for loop in set(self._waiting.copy().values()):
            with suppress(RuntimeError):  # it is closed, so nobody waits
                loop.call_soon_threadsafe(self._end_patience)
        for each in self.applications:
            each.stop_waiting()
        engine = self.app.engine
        if engine is None or engine.done.is_set():
            return
        brain = engine.brain

        def send_home(now: float) -> None:
            brain.remote.send_home()
            brain.slots.send_home(now)

        engine.ask(send_home)

    def _end_patience(self) -> None:
        for end in self._waiting:
            if not end.expired():
                end.reschedule(0.0)

    # ------------------------------------------------------------------ jobs

    def policy(self, type: str) -> RetryPolicy:
        engine = self.app.engine
        policies = DEFAULT_POLICIES if engine is None else engine.brain.core.retry_policies
        return policies.get(type, DEFAULT_POLICY)

    def job(self, id: str | int, principal: Principal) -> Job:
        """A job that this principal may see."""
        number = number_of(id)
        row = None if number is None else self.store.job(number)
        if row is None or principal.tenant not in (None, row.tenant):
            raise UnknownJob(f"there is no job {id}; it never existed, or its record was purged")
        return row

    def view(self, row: Job) -> dict[str, Any]:
        return self.views([row])[0]

    def views(self, rows: Sequence[Job]) -> list[dict[str, Any]]:
        found = [plain_job(row, self.policy(row.type)) for row in rows]
        running = [row.id for row in rows if row.state == "running"]
        progress = self.store.progress_of([row.id for row in rows]) if rows else {}
        waiting = [row.id for row in rows if row.finished_at is None and row.state != "running"]
        looks = self._looks(running + waiting)
        for view in found:
            view["progress"] = progress_view(progress.get(view["id"]))
            look = looks.get(view["id"])
            if look is not None:
                why, heartbeat_at = look
                with_wait(view, why)
                if view["status"] == "running":
                    view["heartbeat_at"] = moment(heartbeat_at)
        return found

    def _looks(self, ids: list[int]) -> dict[int, tuple[Explanation | None, float | None]]:
        """What only the engine knows; nothing, if none runs here."""
        engine = self.app.engine
        looks: dict[int, tuple[Explanation | None, float | None]] = {}
        if engine is None:
            return looks
        controls = engine.brain.controls
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + AT_ONCE]
            looks |= self.wait(engine.ask(partial(controls.look_at_jobs, some)))
        return looks

    def narrowed(self, query: Query, q: str, principal: Principal) -> Query:
        """A query with what the search text says, and never beyond the principal's tenant."""
        if q:
            query = parse(q, query, self.now())
        if principal.tenant is None:
            return query
        if query.tenant not in (None, principal.tenant):
            raise Problem(403, "your token is bound to another tenant", kind="tenant")
        return replace(query, tenant=principal.tenant)

    @asynccontextmanager
    async def patience(self) -> AsyncIterator[None]:
        """Around what waits long: such requests may not take the places of all others, and wait no
        longer when the server is to stop. A TimeoutError inside ends the wait.
        """
        limit = min(self.config.max_takers, max(1, self.config.max_requests // 2))
        if len(self._waiting) >= limit:
            raise Problem(503, f"{limit} requests wait for jobs already; ask without waiting",
                          kind="busy", headers={"Retry-After": "1"})  # fmt: skip
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as end:
                self._waiting[end] = asyncio.get_running_loop()
                try:
                    if self.stopping:  # looked at last, so that nobody is forgotten
                        end.reschedule(0.0)
                    yield
                finally:
                    del self._waiting[end]

    def page(self, query: Query, page: int, size: int) -> tuple[list[Job], int]:
        query = replace(query, limit=size, offset=(page - 1) * size)
        return self.store.jobs(query), self.store.count(query)

    def tally(self, tenant: str | None) -> list[tuple[str, str, int]]:
        """(lane, state, how many). Counting reads all jobs, so the answer is a second old at most,
        or, when there are very many, ten times as long as counting takes.
        """
        until, rows = self._counted.get(tenant, (0.0, []))
        began = monotonic()
        if began > until:
            rows = self.store.tally(tenant)
            if len(self._counted) > 1_000:
                self._counted.clear()
            now = monotonic()
            self._counted[tenant] = (now + max(FRESH_S, 10 * (now - began)), rows)
        return rows

    def tenant_for(self, wanted: str | None, principal: Principal) -> str:
        """Whose job it is: what the token says, or what was sent."""
        if principal.tenant is None:
            return wanted or ""
        if wanted not in (None, principal.tenant):
            raise Problem(403, "your token is bound to another tenant", kind="tenant")
        return principal.tenant

    def check_room(self, tenant: str, more: int) -> None:
        """Refuse what would make the queue of a tenant longer than it may be."""
        engine = self.app.engine
        limit = self.config.max_open_per_tenant
        if engine is not None and engine.brain.open_by_tenant.get(tenant, 0) + more > limit:
            raise _full(tenant, limit)

    async def make_room(self, tenant: str, more: int) -> None:
        """The same where no engine may run that knows how long the queue is."""
        limit = self.config.max_open_per_tenant
        if self.app.engine is not None:
            self.check_room(tenant, more)
        elif not await self._room.takes(tenant, more, limit):
            raise _full(tenant, limit)


def _full(tenant: str, limit: int) -> Problem:
    return Problem(
        429,
        f"tenant {tenant!r} has {limit} open jobs, or would have more; wait until some have ended",
        kind="queue-full",
        headers={"Retry-After": "10"},
    )


def number_of(id: str | int) -> int | None:
    """The number of a job. None: it cannot be one."""
    if isinstance(id, int):
        return id
    return int(id) if id.isdecimal() and id.isascii() and len(id) <= 18 else None


async def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


TheSite = Annotated[Site, Depends(_site)]
