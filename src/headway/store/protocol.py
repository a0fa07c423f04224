"""What the engine asks of a store. SQLite and PostgreSQL behave the same, by one suite of tests.

Every method blocks until it is done, unless it says otherwise, and may be called from any thread.
What a method has returned from is durable. Errors are those of `headway.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from headway.store.batch import Batch
from headway.store.installing import Migration
from headway.store.records import (
    BatchRow,
    Brain,
    Candidate,
    Command,
    Errand,
    Event,
    Failures,
    Job,
    Leader,
    NewJob,
    News,
    OpenJob,
    Progress,
    Purged,
    Query,
    Receipt,
    Result,
    Schedule,
    ServerRow,
    SlotRow,
    Token,
    TrailRow,
    TypeStats,
)
from headway.store.tables import Writes

Done = Callable[[Any, BaseException | None], None]
ANYBODY = Candidate()


class Producing(Protocol):
    """What any process may do, with or without an engine elsewhere."""

    def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        """Store all of them or none, and wake the engine. DuplicateJob when one is rejected."""

    def post(self, jobs: Sequence[NewJob], done: Done) -> None:
        """The same without waiting: `done(receipts, None)` or `done(None, error)` comes from
        another thread.
        """

    def insert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        """In the transaction of a connection of the caller's, on PostgreSQL."""

    async def ainsert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        """The same with an asynchronous connection."""

    def command(
        self, verb: str, target: str, args: Any, now: float, who: str | None = None
    ) -> None:
        """Leave a command for the engine, and wake it. `who` asks, and from where."""

    def open_batch(self, label: str, now: float, tenant: str = "") -> int: ...


class Looking(Protocol):
    """What anybody may read, at any time. A tenant of None means: of all."""

    def job(self, id: int) -> Job | None: ...
    def jobs(self, query: Query) -> list[Job]: ...
    def count(self, query: Query) -> int: ...

    def tally(self, tenant: str | None = None) -> list[tuple[str, str, int]]:
        """(lane, state, how many jobs). Looks at every job."""

    def payload(self, id: int) -> str | None: ...
    def result(self, id: int) -> Result | None: ...
    def checkpoint(self, id: int) -> str | None: ...
    def progress(self, id: int) -> Progress | None: ...
    def progress_of(self, ids: Iterable[int]) -> dict[int, Progress]: ...
    def logs(self, id: int) -> list[tuple[float, str, str]]: ...
    def events(self, after: int, limit: int) -> list[Event]: ...
    def events_of(self, id: int) -> list[Event]: ...
    def event_range(self) -> tuple[int, int]: ...

    def last_event(self) -> int:
        """The number of the last event there ever was, even if it was purged; 0: none."""

    def trail(self, after: int, limit: int, tenant: str | None = None) -> list[TrailRow]:
        """The events after this one, in order. Of a tenant: those of jobs that are there. Whoever
        gets fewer than the limit has seen all up to the `last_event` of before he asked, and may
        go on from there.
        """

    def audit(self, before: int | None, limit: int, tenant: str | None = None) -> list[TrailRow]:
        """Only what somebody did, newest first; below this number, if there is one."""

    def batch(self, id: int) -> dict[str, int] | None: ...
    def batch_row(self, id: int) -> BatchRow | None: ...
    def batches(self, tenant: str | None, limit: int, offset: int) -> list[BatchRow]: ...
    def count_batches(self, tenant: str | None) -> int: ...
    def stats(self, since: float, tenant: str | None = None) -> list[TypeStats]: ...
    def schedules(self) -> list[Schedule]: ...
    def settings(self) -> list[tuple[str, str, str, float]]: ...


class Keeping(Protocol):
    """Who may come in, and what a server must find again."""

    def failures(self, since: float, tenant: str | None = None) -> list[Failures]:
        """What failed since then, by type; a tenant of None means: of all."""

    def add_token(self, token: Token) -> None: ...
    def token(self, id: str) -> Token | None: ...
    def tokens(self) -> list[Token]: ...

    def revoke_token(self, id: str, at: float) -> bool:
        """False: there is no such token, or it was revoked before."""

    def used_token(self, id: str, at: float) -> None:
        """Note it down, if that can be done now: one small commit, so not for every call."""

    def secret(self, name: str, value: str) -> str:
        """Store the value if the name is new. What is stored, whoever was first."""


class Tables(Protocol):
    """Tables of applications, beside the others. Any process may write them; what is to be there if
    and only if a turn of the engine is goes with `Batch.writes`.
    """

    dialect: str  # whose words its queries are in: sqlite or postgres, as in migrations

    def install(self, app: str, migrations: Sequence[Migration]) -> None:
        """Bring the tables of an application up to date: each migration once, all that are missing
        or none. SchemaTooNew when a newer version of the application was here. A migration that
        was published stays as it is; what changes is a new one at the end.
        """

    def write(self, writes: Writes) -> None:
        """All of them in order, in one transaction, or none. OutcomeUnknown: perhaps."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query that reads. Every question mark stands for a value. Columns are best
        called by their names: with `*`, a migration would change what a query means.
        """


class Store(Producing, Looking, Keeping, Tables, Protocol):
    """All of it: what the one engine needs too."""

    def enter(self, heard: Callable[[], None], candidate: Candidate = ANYBODY) -> Brain:
        """Become the engine of this store, or EngineRunning. From now on `heard` is called, from
        any thread, when there may be something new. The term rises, so that whoever was the
        engine before can commit nothing any more.
        """

    def assure(self) -> None:
        """StaleBrain: another engine has taken over. Asks nobody while that cannot be."""

    def let_go(self) -> None:
        """This engine decides nothing more, though what it ran may go on: another one may lead as
        soon as the lease runs out.
        """

    def leave(self) -> None:
        """Stop being the engine: nothing that it ran goes on."""

    def leader(self) -> Leader | None:
        """Who is the engine. None: nobody, or this store cannot tell."""

    def follow(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Hear, from another thread, when a server that leads has added to the trail. What comes
        back ends it.
        """

    def announce(self, server: str, about: str) -> None:
        """A server is there, for others to see. Empty text: it leaves."""

    def servers(self) -> list[ServerRow]:
        """Those that were heard of in the last minute, where several can share a store."""

    def open_by_tenant(self) -> dict[str, int]:
        """How many jobs of each tenant have not ended. For servers without an engine."""

    def close(self) -> None: ...

    def commit(self, batch: Batch) -> None:
        """All of it in one transaction; StaleBrain when the term is over. What was sent before,
        and is perhaps committed, may be handed in again: it counts once.
        """

    def send(self, batch: Batch) -> None:
        """Begin to commit. The engine may think on meanwhile, and calls `settle` before it asks
        the store for anything else.
        """

    def settle(self) -> None:
        """Wait until what was sent is committed. StoreUnavailable: perhaps it is not; go on with
        `commit`.
        """

    def version(self) -> int:
        """Another number than before: somebody has committed something since."""

    def load_open(self, mark: str) -> Iterator[OpenJob]:
        """The open jobs that were seen up to the mark, in order."""

    def load_new(self, mark: str, limit: int) -> News:
        """Open jobs that were not seen up to the mark, and the mark after them. Each job comes
        once, however late it was committed. As many as the limit: there may be more. May be called
        before `settle`.
        """

    def load_some(self, ids: Iterable[int]) -> list[OpenJob]: ...
    def states(self, ids: Iterable[int]) -> dict[int, str]: ...
    def waits(self, ids: Iterable[int] | None = None) -> list[tuple[int, int]]: ...
    def commands(self, limit: int) -> list[Command]: ...
    def errands(self, ids: Iterable[int]) -> list[Errand]: ...
    def gates(self) -> list[tuple[str, str, str, str]]: ...
    def open_occurrences(self) -> dict[str, int]: ...
    def slots(self) -> list[SlotRow]: ...
    def slot_totals(self) -> list[tuple[str, int, int, float]]: ...
    def processes(self) -> list[tuple[int, int, float]]: ...

    def purge(self, completed_before: float, failed_before: float, now: float) -> Purged:
        """Remove a chunk of what is old. Call it until it removes nothing."""

    def purge_type(self, type: str, completed_before: float) -> Purged:
        """The same for completed jobs of one type, whose events go with them: of a job that runs
        again and again nobody reads last week's trail. What is left before the last of these
        events has gaps, and `event_range` says so.
        """
