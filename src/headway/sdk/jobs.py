"""Jobs as programs write them: a function with a decorator, and `.enqueue`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar

from headway.engine.tickets import FAR, INF, Spec, names_text, spec_text
from headway.errors import BadJob
from headway.outcomes import Duration, seconds
from headway.sdk.signature import Signature
from headway.store.records import NewJob, OnConflict, Unique, UniqueScope

if TYPE_CHECKING:
    from headway.sdk.app import App
    from headway.sdk.handle import Batch, JobHandle

P = ParamSpec("P")
R = TypeVar("R")

Names = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class Options:
    """How a job is asked for. A function is called with the arguments of the job that it names."""

    lane: str = "default"
    upstream: Names | Callable[..., Names] | None = None
    key: str | Callable[..., str | None] | None = None
    tenant: str | Callable[..., str] = ""
    priority: int = 5
    weight: float = 1.0
    traffic: Literal["normal", "leftover"] = "normal"
    cost: float = 1.0
    tools: tuple[str, ...] = ()
    ordered: Literal["pass", "hold"] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    delay: Duration | None = None
    at: float | None = None
    deadline: float | None = None
    within: Duration | None = None
    unique: bool | str | Callable[..., str] | None = None
    unique_while: Literal["queued", "queued+running"] = "queued+running"
    on_conflict: Literal["join", "replace", "reject"] = "join"
    after: tuple[int, ...] = ()
    batch: Batch | int | None = None
    keep_result: Duration | None = None
    conn: Any = None  # whose transaction the job is stored in, on PostgreSQL

    def __post_init__(self) -> None:
        if not self.lane:
            raise BadJob("a lane needs a name")
        if self.traffic not in ("normal", "leftover"):
            raise BadJob(f"traffic is 'normal' or 'leftover', not {self.traffic!r}")
        if self.ordered is not None and self.key is None:
            raise BadJob("ordered needs a key: name what must stay in order, or drop `ordered`")
        if self.delay is not None and self.at is not None:
            raise BadJob("delay and at say the same thing; give one of them")
        if not 0 < self.weight < INF or not 0 <= self.cost < INF:
            raise BadJob("weight must be a number above 0, cost one of 0 or more")
        if type(self.priority) is not int or not -1e9 < self.priority < 1e9:
            raise BadJob(f"a priority is a whole number, not {self.priority!r}")
        if self.ordered not in (None, "pass", "hold"):
            raise BadJob(f"ordered is 'pass' or 'hold', not {self.ordered!r}")
        self._check_names()
        _check_time("at", self.at)
        _check_time("deadline", self.deadline)
        try:
            UniqueScope(self.unique_while)
            OnConflict(self.on_conflict)
        except ValueError as error:
            raise BadJob(f"a unique job cannot be asked for like this: {error}") from None

    def _check_names(self) -> None:
        tools: Any = self.tools
        if isinstance(tools, str) or not all(isinstance(each, str) and each for each in tools):
            raise BadJob(f"tools are a tuple of names such as ('disk',), not {tools!r}")
        if not all(isinstance(part, str) for pair in self.labels.items() for part in pair):
            raise BadJob(f"labels are text by text, not {self.labels!r}")
        _text("lane", self.lane)
        if not callable(self.tenant):
            _text("tenant", self.tenant)
        if not callable(self.key):
            _optional_text("key", self.key)


class Job(Generic[P, R]):
    """A type of job. Call it to run the function here and now; `enqueue` it to have it run."""

    def __init__(
        self, app: App, name: str, handler: Callable[P, Any], signature: Signature, options: Options
    ) -> None:
        self._app = app
        self.name = name
        self.handler = handler
        self._signature = signature
        self._options = options
        self.__doc__ = handler.__doc__
        self._plain = not (
            callable(options.upstream) or callable(options.key) or callable(options.tenant)
            or options.delay is not None or options.at is not None or options.unique
            or options.deadline is not None or options.within is not None
        )  # fmt: skip
        self._spec = spec_text(
            Spec(
                tools=tuple(options.tools),
                weight=options.weight,
                traffic=options.traffic,
                cost=options.cost,
                ordered=options.ordered,
                labels=options.labels,
                keep_result_s=None if options.keep_result is None else seconds(options.keep_result),
            )
        )
        self._upstreams = None if callable(options.upstream) else _upstreams(options.upstream)
        self._batch = options.batch if isinstance(options.batch, int) else (
            None if options.batch is None else options.batch.id
        )  # fmt: skip

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self.handler(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<job {self.name!r}>"

    def options(self, **changes: Any) -> Job[P, R]:
        """The same job, asked for in another way: `fetch.options(priority=1).enqueue(url)`."""
        try:
            options = replace(self._options, **changes)
        except TypeError as error:
            raise BadJob(f"job {self.name!r} has no such option: {error}") from None
        if changes.get("after") is not None:
            options = replace(options, after=_ids(changes["after"]))
        return Job(self._app, self.name, self.handler, self._signature, options)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Store a job with these arguments, typed like the function. On disk when this returns."""
        return self._app.enqueue(self.call(*args, **kwargs), conn=self._options.conn)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """`enqueue` without blocking the loop."""
        return await self._app.aenqueue(self.call(*args, **kwargs), conn=self._options.conn)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """The job that `enqueue` would store, for `app.enqueue_many` and `app.schedule`."""
        arguments = self._signature.arguments(args, kwargs)
        text = self._signature.encode(arguments)
        now = self._app.now()
        options = self._options
        if self._plain:
            return NewJob(
                self.name,
                text,
                created_at=now,
                lane=options.lane,
                tenant=options.tenant,  # type: ignore[arg-type]
                key=options.key,  # type: ignore[arg-type]
                upstreams=self._upstreams,
                priority=options.priority,
                spec=self._spec,
                batch=self._batch,
                after=options.after,
            )
        return self._full_call(text, arguments, now)

    def _full_call(self, text: str, arguments: dict[str, Any], now: float) -> NewJob:
        options = self._options
        not_before = 0.0 if options.at is None else float(options.at)
        if options.delay is not None:
            not_before = now + seconds(options.delay)
        deadline = options.deadline
        if options.within is not None:
            deadline = max(now, not_before) + seconds(options.within)
        if deadline is not None and deadline <= max(now, not_before):
            raise BadJob(f"the deadline of job {self.name!r} is over before it may start")
        arguments = {**self._signature.defaults, **arguments}
        upstream = _called(options.upstream, arguments)
        key = _optional_text("key", _called(options.key, arguments))
        if options.ordered is not None and key is None:
            raise BadJob(f"job {self.name!r} is ordered, but has no key for these arguments")
        return NewJob(
            self.name,
            text,
            created_at=now,
            lane=options.lane,
            tenant=_text("tenant", _called(options.tenant, arguments)),
            key=key,
            upstreams=_upstreams(upstream),
            priority=options.priority,
            not_before=not_before,
            deadline=deadline,
            spec=self._spec,
            unique=self._unique(text, arguments),
            batch=self._batch,
            after=options.after,
        )

    def _unique(self, text: str, arguments: dict[str, Any]) -> Unique | None:
        wanted = self._options.unique
        if not wanted:
            return None
        key = text if wanted is True else _text("unique", _called(wanted, arguments))
        return Unique(
            f"{self.name}:{key}",
            UniqueScope(self._options.unique_while),
            OnConflict(self._options.on_conflict),
        )


def _check_time(what: str, at: float | None) -> None:
    if at is not None and (isinstance(at, bool) or not 0 <= at < FAR):
        raise BadJob(f"{what} is a number of seconds since 1970, not {at!r}")


def _called(value: Any, arguments: dict[str, Any]) -> Any:
    if not callable(value):
        return value
    wanted = _parameters(value)
    if wanted is not None:
        arguments = {name: each for name, each in arguments.items() if name in wanted}
    return value(**arguments)


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> frozenset[str] | None:
    """The names that a function takes. None: all of them."""
    parameters = inspect.signature(function).parameters.values()
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in parameters)


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise BadJob(f"{what} must be text, not {value!r}")
    if "\x00" in value:
        raise BadJob(f"{what} may not contain the NUL character: {value!r}")
    return value


def _optional_text(what: str, value: Any) -> str | None:
    return None if value is None else _text(what, value)


def _upstreams(value: Names | None) -> str | None:
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise BadJob(f"an upstream is a name such as 'api.example.com', not {value!r}")
    if len(set(names)) != len(names):
        raise BadJob(f"an upstream is named twice in {names!r}")
    return names_text(names)


def _ids(after: Any) -> tuple[int, ...]:
    """Handles or numbers, one or several."""
    several = after if isinstance(after, list | tuple | set | frozenset) else (after,)
    return tuple(each if isinstance(each, int) else each.id for each in several)
