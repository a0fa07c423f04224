"""What goes into a store and comes out of it: plain data, the same for every store.

Times are seconds since 1970 (UTC). `None` means: nothing there, the default holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class UniqueScope(StrEnum):
    """In which states a unique job keeps others of its key away."""

    QUEUED = "queued"  # while it waits
    QUEUED_RUNNING = "queued+running"  # until it ends


class OnConflict(StrEnum):
    """What becomes of a job whose unique key is taken."""

    JOIN = "join"  # the caller gets the job that is there; its priority may rise
    REPLACE = "replace"  # the job that waits takes over the new payload, time and priority
    REJECT = "reject"  # DuplicateJob


@dataclass(frozen=True, slots=True)
class Unique:
    key: str
    scope: UniqueScope = UniqueScope.QUEUED_RUNNING
    on_conflict: OnConflict = OnConflict.JOIN


class NewJob:
    """A job to be stored. `spec` is JSON text with what only few jobs need (see engine.tickets)."""

    __slots__ = (
        "after",
        "args",
        "batch",
        "created_at",
        "deadline",
        "key",
        "lane",
        "not_before",
        "occurrence",
        "priority",
        "schedule",
        "spec",
        "tenant",
        "type",
        "unique",
        "upstreams",
    )

    def __init__(
        self,
        type: str,
        args: str,
        *,
        created_at: float,
        lane: str = "default",
        tenant: str = "",
        key: str | None = None,
        upstreams: str | None = None,  # JSON text of an array of names
        priority: int = 5,
        not_before: float = 0.0,
        deadline: float | None = None,
        spec: str | None = None,
        unique: Unique | None = None,
        batch: int | None = None,
        after: tuple[int, ...] = (),
        schedule: str | None = None,
        occurrence: str | None = None,
    ) -> None:
        self.type = type
        self.args = args
        self.created_at = created_at
        self.lane = lane
        self.tenant = tenant
        self.key = key
        self.upstreams = upstreams
        self.priority = priority
        self.not_before = not_before
        self.deadline = deadline
        self.spec = spec
        self.unique = unique
        self.batch = batch
        self.after = after
        self.schedule = schedule
        self.occurrence = occurrence


class Receipt(NamedTuple):
    """The answer to an enqueue that is committed. `joined`: the job was there before."""

    id: int
    joined: bool = False


class OpenJob(NamedTuple):
    """A job that has not ended, as the engine loads it. The payload stays in the store."""

    id: int
    type: str
    lane: str
    tenant: str
    key: str | None
    upstreams: str | None
    priority: int
    not_before: float
    deadline: float | None
    spec: str | None
    unique_scope: str | None
    batch: int | None
    schedule: str | None
    waits: int  # 1 while it waits for other jobs
    state: str
    since: float
    pin: int | None
    fence: int
    upstream: str | None
    granted_at: float | None
    lease_end: float | None
    tries: str | None  # JSON text: burnt, lost, pushed back, pushed back since
    asked: str | None
    args: str | None = None  # the payload, where a store has it at hand for a new job


class News(NamedTuple):
    """Some jobs that are new, what was seen with them, and whether there may be commands, too."""

    jobs: list[OpenJob]
    mark: str
    orders: bool = True


class Job(NamedTuple):
    """Everything there is to see about a job, apart from its payload and its history."""

    id: int
    type: str
    lane: str
    tenant: str
    key: str | None
    upstreams: str | None
    priority: int
    not_before: float
    deadline: float | None
    created_at: float
    spec: str | None
    unique_key: str | None
    batch: int | None
    schedule: str | None
    state: str
    since: float
    pin: int | None
    fence: int
    upstream: str | None
    granted_at: float | None
    waited_s: float | None
    tries: str | None
    asked: str | None
    finished_at: float | None
    error: str | None


class Event(NamedTuple):
    """One row of the audit trail. Ids have no gaps. `subject` names a gate when no job moved."""

    id: int
    at: float
    job: int | None
    event: str
    before: str | None
    after: str | None
    fence: int
    detail: str
    subject: str | None
    who: str | None = None  # who did it, and from where; None: the system by itself


class TrailRow(NamedTuple):
    """An event, and of its job, as long as that is there, where it belongs."""

    id: int
    at: float
    job: int | None
    event: str
    before: str | None
    after: str | None
    fence: int
    detail: str
    subject: str | None
    who: str | None
    type: str | None
    lane: str | None
    tenant: str | None
    key: str | None


class Schedule(NamedTuple):
    """A recurring job: its rule, and the one occurrence that is open."""

    name: str
    type: str
    args: str
    rule: str  # JSON text
    options: str  # JSON text: what the occurrences are enqueued with
    paused: int
    strikes: int  # failures in a row, which stretch the interval
    last_due_at: float | None
    next_due_at: float | None
    missed: int
    created_at: float
    source: str  # "code" or "operator"


class Command(NamedTuple):
    """What another process asked the engine to do."""

    id: int
    at: float
    verb: str
    target: str
    args: str
    who: str | None = None


class Errand(NamedTuple):
    """What a hand needs to start a job that was granted."""

    id: int
    args: str
    checkpoint: str | None


class Result(NamedTuple):
    value: str  # JSON text
    expires_at: float


class Progress(NamedTuple):
    """How far a running job is, as its handler said it last."""

    done: float
    total: float | None
    note: str
    at: float


class BatchRow(NamedTuple):
    id: int
    created_at: float
    label: str
    tenant: str


class TypeStats(NamedTuple):
    """How the jobs of one type fared."""

    type: str
    ended: int
    completed: int
    failed: int
    cancelled: int
    mean_run_s: float | None
    p95_run_s: float | None
    mean_wait_s: float | None


class Failures(NamedTuple):
    """Jobs of one type that have failed."""

    type: str
    many: int
    first_at: float
    last: int  # the newest of them,
    error: str | None  # and what went wrong with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which jobs to list. What is None does not matter, and times are from `after` on and below
    `before`.
    """

    states: tuple[str, ...] = ()  # one of them; none: all
    type: str | None = None
    lane: str | None = None
    tenant: str | None = None
    key: str | None = None
    batch: int | None = None
    schedule: str | None = None
    upstream: str | None = None  # the one that was granted, or one that may be
    error: str | None = None  # is somewhere in the error; A to Z and a to z are the same
    labels: tuple[tuple[str, str], ...] = ()  # it has all of them
    pinned: bool = False  # only what was put to the front; False: whatever
    created_after: float | None = None
    created_before: float | None = None
    finished_after: float | None = None
    finished_before: float | None = None
    ids: tuple[int, ...] | None = None
    below: int | None = None  # ids smaller than this, for pages that stay as they are
    limit: int = 50
    offset: int = 0


class Purged(NamedTuple):
    """What retention has removed."""

    jobs: int
    events: int
    results: int


class Token(NamedTuple):
    """What somebody may do who knows the secret that this is the hash of."""

    id: str
    name: str
    hash: str
    scopes: str  # JSON text of an array of names
    tenant: str | None
    created_at: float
    expires_at: float | None = None
    revoked_at: float | None = None
    last_used_at: float | None = None


class SlotRow(NamedTuple):
    """Somebody who waits for a slot, holds one, or has outlived its lease."""

    number: int
    phase: str
    fence: int  # 0 while it waits
    upstream: str | None  # where it was granted
    wish: str | None  # what was asked for, as JSON; None: by the engine's own process
    created_at: float
    granted_at: float
    lease_end: float
    claimed: int  # 0: not heard of its grant yet; or, when reclaimed, counted as overdue


class Brain(NamedTuple):
    """Where the last engine stopped."""

    term: int
    fence: int
    mark: str  # what was seen of the jobs; empty: nothing. Only the store can read it
    # Of the engine before: it has certainly ended, with all that it ran; it was on this machine.
    is_gone: bool = True
    was_here: bool = True
    before: str = ""  # who it was, for people


class Candidate(NamedTuple):
    """Who wants to be the engine, where a lease says who is."""

    url: str = ""  # where the other servers reach it
    lease_s: float = 3.0  # how long it leads without a word to the store
    # Called while it cannot be sure that it still leads, with the seconds since it was; from
    # another thread.
    doubted: Callable[[float], None] = lambda _: None


class Leader(NamedTuple):
    """Who is the engine, as everybody can see it."""

    term: int
    id: str
    name: str  # for people
    url: str


class ServerRow(NamedTuple):
    """A server that shares the store with others. `about` is JSON text."""

    id: str
    about: str
    seen_s: float  # how long ago it was heard of
