"""The app: where a program declares its jobs and upstreams, enqueues, and runs them."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from headway.core import RetryPolicy
from headway.core.classify import Meaning
from headway.engine import Engine
from headway.engine.brain import Brain
from headway.engine.clock import Clock, SystemClock
from headway.engine.controls import Controls
from headway.engine.engine import LEADER_LEASE_S
from headway.engine.registry import ASYNC, KEEP_RESULT_S, THREADS, JobType, Registry
from headway.engine.retention import Retention
from headway.engine.settings import Settings
from headway.engine.slots import OWN, Wish
from headway.errors import BadJob, EngineStopped
from headway.outcomes import Duration, seconds
from headway.remote.address import is_server
from headway.sdk.control import Control
from headway.sdk.declaring import check_executor, retry_policy
from headway.sdk.handle import Batch, JobHandle
from headway.sdk.jobs import Job, Names, Options
from headway.sdk.mail import Mail
from headway.sdk.scheduling import Recurring, declared_schedule
from headway.sdk.signature import Signature
from headway.sdk.slot import OwnSlot, Slot
from headway.store import Store, open_store
from headway.store.records import NewJob, Receipt, Schedule
from headway.until_told import Runner, run_until_told

if TYPE_CHECKING:
    from headway.remote.store import RemoteStore
    from headway.remote.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class App(Control):
    """`App("sqlite:///jobs.db")`, `App("postgresql://…")`, or `App("http://host:8000", token=…)`
    for a server that keeps the store. Nothing is opened before it is needed. With
    `executor="celery"` a Celery fleet runs its jobs (`headway.celery.serve`); that needs a server.
    """

    def __init__(
        self,
        url: str = "sqlite:///headway.db",
        *,
        token: str | None = None,
        executor: str = "headway",
        settings_file: str | None = None,
        threads: int = 16,
        tasks: int = 512,
        payload_limit: int = 1_048_576,
        completed_days: float = 7.0,
        failed_days: float = 30.0,
        lease: Duration = 90.0,
        clock: Clock | None = None,
    ) -> None:
        check_executor(executor, url)
        self.url = url
        self.executor = executor
        self.lease_s = seconds(lease)
        self.clock: Clock = clock or SystemClock()
        self.payload_limit = payload_limit
        self.threads = threads
        self.tasks = tasks
        self.registry = Registry()
        self.settings = Settings()
        # Where other servers reach the one that runs this app, and how long its engine leads them
        # without a word to the store they share.
        self.server_url = ""
        self.leader_lease_s = LEADER_LEASE_S
        # What holds for a host of slot clients that nobody has declared.
        self.slot_profile: Callable[[str], dict[str, Any]] | None = None
        # Called with the brain of an engine before that takes in what is stored.
        self.preparing: list[Callable[[Brain], None]] = []
        self.retention = Retention(completed_days=completed_days, failed_days=failed_days)
        self.recurring: list[Recurring] = []
        self.engine: Engine | None = None
        self.engine_elsewhere = False  # as a command has found that works on the store itself
        self.worker: Worker | None = None  # in the place of the engine, if there is a server
        self.token = token
        self._settings_file = settings_file
        self._store: Store | RemoteStore | None = None
        self._mail: Mail | None = None  # of the loop that enqueued last
        self._opening = threading.Lock()
        self.settings.declare("code", "tool", ASYNC, {"limit": tasks})
        self.settings.declare("code", "tool", THREADS, {"limit": threads})
        self.settings.declare("code", "tool", "disk", {"limit": 2})

    def now(self) -> float:
        """The time by the clock of this app, in seconds since 1970."""
        return self.clock.now()

    def use(self, url: str, settings_file: str | None = None) -> None:
        """Work on another store than the one that was named when the app was made."""
        if self._store is not None or self.engine is not None:
            raise EngineStopped(
                "the app is in use already; close it before it moves to another store"
            )
        check_executor(self.executor, url)
        self.url = url
        self._settings_file = settings_file or self._settings_file

    @property
    def store(self) -> Store:
        """Opened when it is first needed. With a server it can do less, and says so."""
        return cast(Store, self._opened())

    @property
    def remote(self) -> RemoteStore | None:
        """What stands for the store, if there is a server between."""
        return cast("RemoteStore", self._opened()) if is_server(self.url) else None

    def _opened(self) -> Store | RemoteStore:
        if self._store is None:
            with self._opening:
                if self._store is None:
                    self._store = self._reached() if is_server(self.url) else open_store(self.url)
        return self._store

    def _reached(self) -> RemoteStore:
        from headway.remote.client import Client  # noqa: PLC0415 - few need an HTTP client
        from headway.remote.store import RemoteStore  # noqa: PLC0415

        return RemoteStore(Client(self.url, self.token), self._tools_of)

    def _tools_of(self, type: str) -> tuple[str, ...]:
        known = self.registry.types.get(type)
        return () if known is None else known.tools

    def close(self) -> None:
        """Stop what runs, and close the store. The app opens it again when it is needed."""
        self.stop(0.0)
        with self._opening:
            if self._store is not None:
                self._store.close()
                self._store = None

    # ------------------------------------------------------------------ declaring

    def lane(self, name: str, **settings: Any) -> None:
        """`app.lane("cookie", limit=1)`: declare a lane that jobs may stand in."""
        self.settings.declare("code", "lane", name, settings)

    def upstream(self, name: str, **settings: Any) -> None:
        """`app.upstream("*.example.com", limit=2, every="1s")`: declare what jobs call, and what it
        bears. The most specific name wins; the guide to upstreams has all settings.
        """
        self.settings.declare("code", "upstream", name, settings)

    def tool(self, name: str, **settings: Any) -> None:
        """`app.tool("ffmpeg", limit=2)`: declare something that jobs of several lanes share."""
        self.settings.declare("code", "tool", name, settings)

    def job(
        self,
        *,
        type: str | None = None,
        timeout: Duration | None = None,
        retries: int | None = None,
        retry_delay: Duration | None = None,
        retry_growth: float | None = None,
        policy: RetryPolicy | None = None,
        tools: tuple[str, ...] = (),
        every: Any = None,
        meanings: Mapping[type[BaseException], Meaning] | None = None,
        **options: Any,
    ) -> Callable[[Callable[P, Any]], Job[P, Any]]:
        """Make a function a job: `@app.job(upstream="api.example.com", retries=3)`.

        `type` is its name in the store, the function's if nothing is said. `timeout`, `retries`,
        `retry_delay`, `retry_growth` (or a whole `policy`) say how patient to be, `tools` what each
        attempt needs, `every` that it recurs, `meanings` what exceptions mean. Everything else is a
        field of `Options`, and holds for all of its jobs.
        """

        def decorate(handler: Callable[P, Any]) -> Job[P, Any]:
            name = type or handler.__name__
            signature = Signature(name, handler, self.payload_limit)
            try:
                chosen = Options(**options)
            except TypeError as error:
                raise BadJob(f"job {name!r} has no such option: {error}") from None
            if chosen.conn is not None:
                raise BadJob("a connection is named when a job is enqueued, not when it is made")
            if not isinstance(tools, tuple | list) or len(set(tools)) != len(tools):
                raise BadJob(f"tools are a tuple of different names, not {tools!r}")
            keep = chosen.keep_result
            rules = policy or retry_policy(name, timeout, retries, retry_delay, retry_growth)
            job_type = JobType(
                name, handler, inspect.iscoroutinefunction(handler), signature.decode, rules,
                tuple(tools), KEEP_RESULT_S if keep is None else seconds(keep), meanings or {},
            )  # fmt: skip
            job: Job[P, Any] = Job(self, name, handler, signature, chosen)
            if every is not None:
                self.recurring.append(Recurring(name, job, every))
            self.registry.add(job_type)
            return job

        return decorate

    # ------------------------------------------------------------------ asking

    def enqueue(self, call: NewJob, *, conn: Any = None) -> JobHandle[Any]:
        """Store what `Job.call` made; it is safe when this returns. `conn`: a connection of your
        own to the same PostgreSQL database; the job is there if and only if its transaction
        commits.
        """
        return self.enqueue_many((call,), conn=conn)[0]

    async def aenqueue(self, call: NewJob, *, conn: Any = None) -> JobHandle[Any]:
        """`enqueue` without blocking the loop."""
        return (await self.aenqueue_many((call,), conn=conn))[0]

    def enqueue_many(self, calls: Iterable[NewJob], *, conn: Any = None) -> list[JobHandle[Any]]:
        """All or none, in one transaction: `app.enqueue_many(fetch.call(url) for url in urls)`."""
        calls = tuple(calls)
        store = self.store
        receipts = store.insert(calls) if conn is None else store.insert_with(conn, calls)
        return [JobHandle(self, receipt.id, receipt.joined) for receipt in receipts]

    async def aenqueue_many(
        self, calls: Iterable[NewJob], *, conn: Any = None
    ) -> list[JobHandle[Any]]:
        """`enqueue_many` without blocking the loop."""
        calls = tuple(calls)
        if conn is not None:
            receipts = await self.store.ainsert_with(conn, calls)
        elif self.remote is not None:
            receipts = await self.remote.ainsert(calls)
        else:
            receipts = await self._post(calls)
        return [JobHandle(self, receipt.id, receipt.joined) for receipt in receipts]

    def _post(self, calls: tuple[NewJob, ...]) -> asyncio.Future[list[Receipt]]:
        loop = asyncio.get_running_loop()
        mail = self._mail
        if mail is None or mail.loop is not loop:
            mail = self._mail = Mail(loop)
        future: asyncio.Future[list[Receipt]] = loop.create_future()
        self.store.post(calls, partial(mail.put, future))
        return future

    def batch(self, label: str = "") -> Batch:
        """Jobs that are counted together: `fetch.options(batch=batch).enqueue(url)`."""
        return Batch(self, self.store.open_batch(label, self.now()))

    def handle(self, id: int) -> JobHandle[Any]:
        """The handle of a job whose number is known, for example from a web request."""
        return JobHandle(self, id)

    def slot(
        self,
        upstream: Names | None = None,
        *,
        lane: str = "default",
        tenant: str = "",
        key: str | None = None,
        tools: tuple[str, ...] = (),
        weight: float = 1.0,
        priority: int = 5,
        timeout: Duration | None = None,
        lease: Duration | None = None,
        holder: str = "",
        on_lost: Callable[[], None] | None = None,
    ) -> Slot:
        """Hold a place at an upstream for work of your own, in line with all jobs. `lease`: how
        long a server keeps it without a word from here. `holder`: who it is, for people. `on_lost`
        is called, on the loop or in a thread, when it is not held any more.
        """
        names = () if upstream is None else (
            (upstream,) if isinstance(upstream, str) else tuple(upstream)
        )  # fmt: skip
        remote = self.remote
        if remote is not None:
            from headway.remote.slots import wish_body  # noqa: PLC0415 - as above

            body = wish_body(
                names, lane=lane, tenant=tenant, key=key, tools=tools, weight=weight,
                priority=priority, lease_s=None if lease is None else seconds(lease),
                holder=holder,
            )  # fmt: skip
            return remote.slot(body, timeout, on_lost)
        if self.engine is None:
            raise EngineStopped("a slot needs an engine in this process; start one with "
                                "`with app.running():`")  # fmt: skip
        wish = Wish(
            kind=OWN, upstreams=names, tenant=tenant, lane=lane, tools=tools, key=key,
            weight=weight, priority=priority, holder=holder,
        )  # fmt: skip
        return OwnSlot(self.engine, wish, timeout, on_lost)

    # ------------------------------------------------------------------ running

    def start(self, *, idle: bool = False) -> None:
        """Start an engine in this process: it decides, and runs the jobs of this app. `idle`: it
        does what operators ask, and lets nothing start.
        """
        if self.executor == "celery":
            raise EngineStopped(
                "the jobs of this app run on Celery workers; start one with `celery worker` for "
                "the module that calls headway.celery.serve"
            )
        if is_server(self.url):
            self._start_worker()
            return
        if self.engine is not None:
            raise EngineStopped("an engine runs in this app already")
        self.read_settings()
        engine = Engine(
            self.store, self.registry, self.settings, clock=self.clock, threads=self.threads,
            payload_limit=self.payload_limit, retention=self.retention, lease_s=self.lease_s,
            url=self.server_url, leader_lease_s=self.leader_lease_s,
        )  # fmt: skip
        engine.brain.granting = not idle
        for prepare in self.preparing:
            prepare(engine.brain)
        if self.slot_profile is not None:
            engine.brain.policies.hosts.profile_of = self.slot_profile
        try:
            engine.start()
        except BaseException:
            engine.stop(0.0)
            raise
        self.engine = engine
        try:
            for row in self.declared_schedules():
                self._order("schedule", row.name, row, partial(_declare, row))
        except BaseException:  # nobody would stop it
            self.stop(0.0)
            raise

    def _start_worker(self) -> None:
        if self.worker is not None:
            raise EngineStopped("a worker runs in this app already")
        from headway.remote.worker import Worker  # noqa: PLC0415 - few need an HTTP client

        worker = Worker(self, self.url, self.token)
        worker.start()
        self.worker = worker

    def declared_schedules(self) -> list[Schedule]:
        """What jobs were declared with `every=`."""
        return [declared_schedule(each, self.now()) for each in self.recurring]

    def stop(self, drain: Duration = 30.0) -> None:
        """Let running jobs end within the time; give the others back without a burnt attempt."""
        runner = self.engine or self.worker
        self.engine = self.worker = None
        if runner is not None:
            runner.stop(seconds(drain))

    @property
    def trouble(self) -> str:
        """Why nothing starts: the store or the server cannot be reached. Empty: all is well."""
        if self.worker is not None:
            return self.worker.trouble
        return "" if self.engine is None else self.engine.brain.trouble

    def read_settings(self) -> None:
        """The layers above the code: the file, then the environment."""
        if self._settings_file is not None:
            self.settings.read_file(self._settings_file)
        self.settings.read_environment()

    @contextmanager
    def running(self, drain: Duration = 30.0) -> Iterator[App]:
        """`with app.running():` runs an engine, or a worker of the server, as long as the block
        does.
        """
        self.start()
        try:
            yield self
        finally:
            self.stop(drain)

    def run(self, drain: Duration = 30.0) -> None:
        """Run until SIGINT or SIGTERM; a second one ends at once."""

        def start() -> Runner:
            self.start()
            runner = self.engine or self.worker
            assert runner is not None
            return runner

        run_until_told(start, lambda: self.stop(drain))


def _declare(row: Schedule, controls: Controls, now: float) -> None:
    controls.schedule(row, now)
