"""What workers send, checked at the edge."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from headway.api.bodies import NO_NUL, WHOLE, Body, Id, JobBody, Name, Seconds, Stamp, Text

MOST_JOBS = 10_000  # in one put
MOST = 1_000  # in one take, heartbeat or complete
Retries = Annotated[int, Field(ge=0, le=1_000), WHOLE]
Count = Annotated[int, Field(ge=0, le=1_000_000), WHOLE]
Status = Annotated[int, Field(ge=100, le=599), WHOLE]
RateHeaderFields = Annotated[
    dict[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=8_192)]],
    Field(max_length=200),
]
RATE_HEADERS = "Of the upstream's answer. What speaks about rates is read, all else is forgotten."
Worker = Annotated[
    str,
    Field(
        max_length=200,
        pattern=NO_NUL,
        description="The same name in all calls of one process.",
    ),
]


class PutBody(Body):
    """Many jobs."""

    jobs: list[JobBody] = Field(
        min_length=1, max_length=MOST_JOBS, description="Each as in `POST /api/jobs`."
    )


class TypeBody(Body):
    """A type of job that a worker can run, and by which rules."""

    name: Name = Field(description="The type.")
    timeout_s: float | None = Field(None, gt=0, lt=1e9, description="Of one attempt.")
    retries: Retries | None = Field(None, description="After the first attempt.")
    delay_s: float | None = Field(None, ge=0, lt=1e9, description="Before the first retry.")
    growth: float | None = Field(None, ge=1, le=100, description="Of the delay, each time.")
    max_delay_s: float | None = Field(None, ge=0, lt=1e9, description="However often it fails.")
    max_lost: Count | None = Field(None, description="Leases, then it fails.")
    max_pushbacks: Count | None = Field(None, description="Then it fails.")
    max_pushed_back_s: float | None = Field(None, ge=0, lt=1e9, description="Then it fails.")
    keep_result_s: float | None = Field(None, gt=0, lt=1e9, description="Of its results.")


class SettingBody(Body):
    """What code declares for a gate. What an operator sets wins."""

    kind: Literal["lane", "upstream", "tool", "type", "key", "everything"] = Field(
        description="What it holds for."
    )
    name: str = Field(max_length=200, pattern=NO_NUL, description="Of which one.")
    value: dict[str, Any] = Field(description="Such as a limit, or a pace.")


class RecurringBody(Body):
    """A schedule that is declared in the worker's code; texts as the engine stores them."""

    name: Name = Field(description="The same name is the same schedule.")
    type: Name = Field(description="Of the jobs that it makes.")
    args: str = Field("{}", max_length=1_048_576, description="JSON: what they are called with.")
    rule: Text = Field(description="JSON: when they are due.")
    options: Text = Field("{}", description="JSON: their lane, key, upstreams and so on.")


class HelloBody(Body):
    """What a worker's code declares."""

    worker: Worker = ""
    types: list[TypeBody] = Field(
        default_factory=list, max_length=MOST, description="What it can run."
    )
    settings: list[SettingBody] = Field(
        default_factory=list, max_length=MOST, description="Limits that its code declares."
    )
    schedules: list[RecurringBody] = Field(
        default_factory=list, max_length=MOST, description="What comes again and again."
    )


class TakeBody(Body):
    """What a worker would do next."""

    types: list[Name] = Field(
        default_factory=list, max_length=MOST, description="The types that it can run."
    )
    queues: list[Name] = Field(default_factory=list, max_length=MOST, description="Like types.")
    size: Annotated[int, Field(ge=0, le=MOST), WHOLE] = Field(
        1, description="0: only hear what must be stopped."
    )
    wait_ms: Annotated[int, Field(ge=0, le=60_000), WHOLE] = Field(
        0, description="Answer after this at the latest."
    )
    worker: Worker = ""


class ProgressBody(Body):
    """How far a job is."""

    done: float = Field(allow_inf_nan=False, description="In any unit.")
    total: float | None = Field(None, allow_inf_nan=False, description="In the same unit.")
    note: str = Field("", max_length=2_000, description="In words.")


class LogBody(Body):
    """A line of a job's log."""

    at: Stamp = Field(description="Seconds since 1970.")
    level: str = Field("info", max_length=50, description="Such as info or error.")
    line: str = Field(max_length=10_000, description="The text.")


class BeatBody(Body):
    """A sign of life for one job."""

    fence: Id = Field(description="As it came with the job.")
    progress: ProgressBody | None = Field(None, description="Null keeps what was said.")
    checkpoint: Any = Field(None, description="Where another attempt can go on; null keeps it.")
    logs: list[LogBody] = Field(
        default_factory=list, max_length=2_000, description="New lines of its log."
    )


class BeatOfBody(BeatBody):
    """A sign of life for a job."""

    id: Id = Field(description="The number of the job.")


class BeatsBody(Body):
    """Signs of life for many jobs."""

    worker: Worker = ""
    jobs: list[BeatOfBody] = Field(max_length=MOST, description="Those that it holds.")


class OutcomeBody(Body):
    """How an attempt ended, in the engine's own words."""

    kind: Literal["ok", "failed", "pushback", "cancelled", "returned"] = Field(
        description="returned: it was not begun, and goes back without a burnt attempt."
    )
    fatal: bool = Field(False, description="failed: another attempt would not help.")
    ban: bool = Field(False, description="pushback: the upstream has shut us out for long.")
    scope: Literal["upstream", "tenant"] = Field("upstream", description="Who is pushed back.")
    status: Status | None = Field(None, description="Of the upstream's answer.")
    retry_after_s: Seconds | None = Field(None, description="When to try again.")
    upstream_fault: bool = Field(False, description="It counts against the upstream.")
    error: str = Field("", max_length=20_000, description="What went wrong.")
    hit_at: Stamp | None = Field(None, description="When the upstream was called.")


class CompletionBody(Body):
    """Either `outcome`, or the `status_code` of the answer that the upstream gave: 2xx completes
    the job, 429 and 503 send it back without a burnt attempt and close the upstream, others fail.
    """

    fence: Id = Field(description="As it came with the job.")
    status_code: Status | None = Field(None, description="The upstream's answer.")
    retry_after_s: Seconds | None = Field(None, description="What its Retry-After said.")
    error: str = Field("", max_length=20_000, description="What went wrong.")
    outcome: OutcomeBody | None = Field(None, description="Instead of status_code.")
    headers: RateHeaderFields | None = Field(None, description=RATE_HEADERS)
    body: Any = Field(None, description="The result, if it completed.")


class CompletionOfBody(CompletionBody):
    """How an attempt at a job ended."""

    id: Id = Field(description="The number of the job.")


class CompletionsBody(Body):
    """How many attempts ended."""

    worker: Worker = ""
    jobs: list[CompletionOfBody] = Field(max_length=MOST, description="Those that have ended.")
