"""The types of jobs that this process knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.core import RetryPolicy, Ticket
from headway.core.change import Change
from headway.core.classify import Meaning
from headway.core.retry import DEFAULT_POLICIES, DEFAULT_POLICY

# Tools that stand for what the hands of one machine can do at once.
ASYNC = "hands:async"
THREADS = "hands:threads"

# And of what workers elsewhere can: one that all of them share, and one for each type of job.
REMOTE = "hands:remote"
WORK = "work:"

KEEP_RESULT_S = 86_400.0


@dataclass(slots=True)
class JobType:
    """What the engine must know to run a job: the handler and the rules around it."""

    name: str
    handler: Callable[..., Any]
    is_async: bool
    decode: Callable[[str], dict[str, Any]]  # the payload as arguments; ValueError if it is no fit
    policy: RetryPolicy = DEFAULT_POLICY
    tools: tuple[str, ...] = ()
    keep_result_s: float = KEEP_RESULT_S
    meanings: Mapping[type[BaseException], Meaning] = field(default_factory=dict)
    # Adds, in the brain's turn and before the job stands in line, what it needs and whoever put it
    # did not say, such as its upstream; also after a restart. It may set `upstreams` and `tools`.
    filled_in: Callable[[Ticket], None] | None = None
    # Hears, in the brain's turn, of each job that is taken in, also after a restart, and of one
    # that an operator retries.
    arrived: Callable[[Ticket, float], None] | None = None
    # Hears, in the brain's turn, of each job that has ended: its batch, how, and when.
    ended: Callable[[int | None, Change, float], None] | None = None

    @property
    def all_tools(self) -> tuple[str, ...]:
        return (*self.tools, ASYNC if self.is_async else THREADS)


class Registry:
    def __init__(self) -> None:
        self.types: dict[str, JobType] = {}

    def add(self, job_type: JobType) -> None:
        if job_type.name in self.types:
            raise ValueError(f"two jobs have the type {job_type.name!r}; give one of them another")
        self.types[job_type.name] = job_type

    def policies(self) -> dict[str, RetryPolicy]:
        return {**DEFAULT_POLICIES, **{name: each.policy for name, each in self.types.items()}}
