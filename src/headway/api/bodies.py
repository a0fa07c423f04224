"""What programs send, checked at the edge."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from headway.engine.json_text import json_text
from headway.engine.tickets import FAR, PLAIN, Spec, names_text, spec_text
from headway.errors import BadJob, PayloadTooLarge
from headway.store.records import NewJob, OnConflict, Unique, UniqueScope

# No database keeps the NUL character, and nobody needs it in a name.
NO_NUL = r"^[^\x00]*$"
MAX_ID = 2**53 - 1  # beyond it, JSON's numbers are not exact everywhere
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
Text = Annotated[str, StringConstraints(max_length=2_000, pattern=NO_NUL)]
Tenant = Annotated[str, StringConstraints(max_length=200, pattern=NO_NUL)]


def _as_integer(value: Any) -> Any:
    """JSON does not tell 5 from 5.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_as_integer)  # behind a field's limits, so that the document has them
Priority = Annotated[int, Field(gt=-1_000_000_000, lt=1_000_000_000), WHOLE]
Id = Annotated[int, Field(ge=1, le=MAX_ID), WHOLE]
Attempts = Annotated[int, Field(ge=1, le=1_000), WHOLE]
Seconds = Annotated[float, Field(ge=0, lt=1e10, allow_inf_nan=False)]
Stamp = Annotated[float, Field(ge=0, lt=FAR, allow_inf_nan=False)]


def _time_of(value: Any) -> datetime:
    if not isinstance(value, str):
        raise ValueError("write a time as seconds since 1970, or as text in ISO 8601")
    return datetime.fromisoformat(value.upper())


Moment = Annotated[
    Stamp | Annotated[datetime, BeforeValidator(_time_of)],
    Field(description="Seconds since 1970, or ISO 8601."),
]


class Body(BaseModel):
    # A number is a number: `true` is not taken for 1, nor "1".
    model_config = ConfigDict(extra="forbid", strict=True)


class UniqueBody(Body):
    """Keeps a second job of the same kind away."""

    key: Annotated[str, StringConstraints(max_length=1_048_576, pattern=NO_NUL)] = Field(
        description="Of two jobs of one type with the same key, one is there."
    )
    scope: Literal["queued", "queued+running"] = Field(
        default="queued+running", alias="while", description="In which states it keeps others away."
    )
    on_conflict: Literal["join", "replace", "reject"] = Field(
        default="join", description="What happens to the second one; reject answers 409."
    )


class JobBody(Body):
    """A job to be done. Only its type is needed."""

    type: Name = Field(description="What is to be done; workers name the types that they know.")
    args: dict[str, Any] = Field(
        default_factory=dict, description="What the handler is called with."
    )
    lane: Name = Field(default="default", description="Jobs of a lane share its limits.")
    tenant: Tenant | None = Field(default=None, description="Whose job it is; a token may fix it.")
    key: Text | None = Field(default=None, description="Jobs with the same key run one at a time.")
    upstream: Name | Annotated[list[Name], Field(max_length=100)] | None = Field(
        default=None, description="What it calls, or several candidates."
    )
    priority: Priority = Field(default=5, description="Lower goes first; 1 to 10 by custom.")
    weight: float = Field(
        default=1.0,
        gt=0,
        le=1e6,
        allow_inf_nan=False,
        description="Its tenant's share beside others.",
    )
    traffic: Literal["normal", "leftover"] = Field(
        default="normal", description="leftover: goes only where nothing else wants to."
    )
    cost: float = Field(
        default=1.0, ge=0, le=1e9, allow_inf_nan=False, description="For limits that count cost."
    )
    tools: list[Name] = Field(
        default_factory=list, max_length=20, description="What else it holds while it runs."
    )
    ordered: Literal["pass", "hold"] | None = Field(
        default=None,
        description="Jobs of a key in the order they came; hold: a retry holds the next.",
    )
    labels: dict[Name, Text] = Field(
        default_factory=dict, max_length=50, description="To search by: label:name=value."
    )
    about: dict[Name, Text] = Field(
        default_factory=dict, max_length=50, description="Shown with the job, and nothing else."
    )
    delay_s: Seconds | None = Field(
        default=None, description="Not before so many seconds from now."
    )
    at: Moment | None = Field(default=None, description="Not before this: ISO 8601, or since 1970.")
    deadline: Moment | None = Field(
        default=None, description="It fails if it has not started by then."
    )
    within_s: Seconds | None = Field(
        default=None, description="A deadline, from when it may start."
    )
    unique: UniqueBody | None = Field(
        default=None, description="Whether a second one is kept away."
    )
    after: list[Id] = Field(
        default_factory=list, max_length=1_000, description="Jobs that must complete before it."
    )
    batch: Id | None = Field(default=None, description="The batch that counts it.")
    keep_result_s: Seconds | None = Field(
        default=None, description="How long its result can be read."
    )
    max_attempts: Attempts | None = Field(
        default=None, description="How often it may fail before it has failed."
    )


def stamp(value: float | datetime | None) -> float | None:
    if isinstance(value, datetime):
        at = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        if not 0 <= at < FAR:
            raise BadJob(f"{value.isoformat()} is out of range; name a time after 1970")
        return at
    return value


def as_text(value: Any) -> str:
    """JSON text of what was sent, or what is wrong with it."""
    try:
        return json_text(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadJob(f"this cannot be kept as JSON: {error}") from None


_RESERVED: list[str] = []


def payload_text(args: Any, limit: int) -> str:
    text = as_text(args)
    if len(text) > limit:
        raise PayloadTooLarge(
            f"a payload has at most {limit} characters, this one {len(text)}; store it elsewhere "
            "and pass its address"
        )
    return text


def reserve(beginning: str) -> None:
    """Jobs whose type begins so are an application's own, and made by its routes alone."""
    _RESERVED.append(beginning)


def check_type(type: str) -> None:
    if type.startswith(tuple(_RESERVED)):
        raise BadJob(f"jobs of type {type!r} are made by routes of their own")


def new_job(body: JobBody, tenant: str, now: float, limit: int, *, apart: bool = False) -> NewJob:
    """`apart`: the tenant's unique keys must not meet those of others."""
    check_type(body.type)
    not_before = stamp(body.at) or 0.0
    if body.delay_s is not None:
        if body.at is not None:
            raise BadJob("delay_s and at say the same thing; send one of them")
        not_before = now + body.delay_s
    deadline = stamp(body.deadline)
    if body.within_s is not None:
        deadline = max(now, not_before) + body.within_s
    if deadline is not None and deadline <= max(now, not_before):
        raise BadJob("its deadline is over before it may start; name a later one")
    if body.ordered is not None and body.key is None:
        raise BadJob("ordered needs a key: name what must stay in order, or drop `ordered`")
    upstreams = (body.upstream,) if isinstance(body.upstream, str) else tuple(body.upstream or ())
    if len(set(upstreams)) != len(upstreams) or len(set(body.tools)) != len(body.tools):
        raise BadJob("an upstream or a tool is named twice")
    unique = None
    if body.unique is not None:
        key = f"{body.type}:{body.unique.key}"
        if apart:  # with its length, so that no two tenants can say the same
            key = f"tenant {len(tenant)}:{tenant}:{key}"
        unique = Unique(
            key,
            UniqueScope(body.unique.scope),
            OnConflict(body.unique.on_conflict),
        )
    spec = Spec(
        tools=tuple(body.tools),
        # The very same objects, or they would be stored with every job.
        weight=PLAIN.weight if body.weight == PLAIN.weight else body.weight,
        traffic=body.traffic,
        cost=PLAIN.cost if body.cost == PLAIN.cost else body.cost,
        ordered=body.ordered,
        labels=body.labels,
        about=body.about,
        keep_result_s=body.keep_result_s,
        max_attempts=body.max_attempts,
    )
    return NewJob(
        body.type,
        payload_text(body.args, limit),
        created_at=now,
        lane=body.lane,
        tenant=tenant,
        key=body.key,
        upstreams=names_text(upstreams),
        priority=body.priority,
        not_before=not_before,
        deadline=deadline,
        spec=spec_text(spec),
        unique=unique,
        batch=body.batch,
        after=tuple(body.after),
    )


def decoded(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)
