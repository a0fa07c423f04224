"""The PostgreSQL store: a session for the engine, one for producers, one that listens, and some
that read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from headway.errors import (
    EngineRunning,
    OutcomeUnknown,
    StaleBrain,
    StoreBusy,
    StoreConflict,
    StoreUnavailable,
)
from headway.store.batch import Batch
from headway.store.grouping import Request
from headway.store.holder import Holder
from headway.store.installing import SET_VERSION, VERSION, Migration, missing, texts_of
from headway.store.keeping import Keeper
from headway.store.postgres.address import parse
from headway.store.postgres.bell import Herald, Listener
from headway.store.postgres.borrowing import Loan
from headway.store.postgres.committing import encoded_writes
from headway.store.postgres.connection import is_lost, translated
from headway.store.postgres.purging import purge, purge_type
from headway.store.postgres.reading import Reader, as_psycopg
from headway.store.postgres.schema import ONE_AT_A_TIME, prepare
from headway.store.postgres.seat import Seat
from headway.store.postgres.writer import Writer
from headway.store.protocol import ANYBODY, Done
from headway.store.records import (
    Brain,
    Candidate,
    Leader,
    NewJob,
    News,
    Purged,
    Receipt,
    ServerRow,
)
from headway.store.tables import Writes

TRIES = 3  # when two wait for each other
FORGOTTEN_S = 60.0  # a server that was not heard of for so long


class PostgresStore(Keeper, Reader):
    dialect = "postgres"

    def __init__(self, url: str) -> None:
        address = parse(url)
        prepare(address)
        super().__init__(address)
        self._heard: Callable[[], None] | None = None
        self._writer = self._new_writer()
        self._careful = self._new_writer()  # for what may have to wait for others' transactions
        self._listener: Listener | None = None
        self._seat: Seat | None = None
        self._herald: Herald | None = None

    def _new_writer(self) -> Writer:
        return Writer(self.address, ring=self._ring, rings_here=lambda: self._heard is not None)

    def _ring(self) -> None:
        heard = self._heard
        if heard is not None:
            heard()

    def close(self) -> None:
        try:
            self._writer.close()
            self._careful.close()
        finally:
            self.leave()
            self._pool.close()

    # ------------------------------------------------------------------ asking, in any process

    def insert(self, jobs: Sequence[NewJob]) -> list[Receipt]:
        receipts: list[Receipt] = self._writer_for(jobs).run(Request(jobs, atomic=True))
        return receipts

    def post(self, jobs: Sequence[NewJob], done: Done) -> None:
        self._writer_for(jobs).post(Request(jobs, done=done))

    def insert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        return Loan(conn, self.address, jobs).put()

    async def ainsert_with(self, conn: Any, jobs: Sequence[NewJob]) -> list[Receipt]:
        return await Loan(conn, self.address, jobs).aput()

    def _writer_for(self, jobs: Sequence[NewJob]) -> Writer:
        return self._careful if any(job.unique for job in jobs) else self._writer

    def command(
        self, verb: str, target: str, args: Any, now: float, who: str | None = None
    ) -> None:
        text = msgspec.json.encode(args).decode()
        self._write(
            "insert into commands (at, verb, target, args, who) values (?, ?, ?, ?, ?) "
            "returning cast(pg_notify(?, '') as text)",  # heard if and only if it is stored
            (now, verb, target, text, who, self.address.channel),
        )

    def _write(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """It must not run twice, so the session is tried first."""
        with translated(self.name), self._pool.session(tried=True) as db:
            return db.execute(as_psycopg(query), values).fetchall()

    # ------------------------------------------------------------------ tables of applications

    def install(self, app: str, migrations: Sequence[Migration]) -> None:
        texts = texts_of(app, migrations, "postgres")
        if not missing(self.name, app, texts, self.rows(VERSION, (app,))):
            return
        with translated(self.name), self._pool.session(tried=True) as db, db.transaction():
            db.execute(ONE_AT_A_TIME)
            found = db.execute(as_psycopg(VERSION), (app,)).fetchall()  # another may have been here
            for text in missing(self.name, app, texts, found):
                db.execute(text.encode())
            db.execute(as_psycopg(SET_VERSION), (app, len(texts)))

    def write(self, writes: Writes) -> None:
        text = encoded_writes(writes).decode()
        for _ in range(TRIES - 1):
            with contextlib.suppress(StoreBusy, StoreConflict):
                return self._take_writes(text)
        return self._take_writes(text)

    def _take_writes(self, text: str) -> None:
        with self._pool.session(tried=True) as db:
            try:
                with translated(self.name):
                    db.execute("select take_writes(%s::jsonb)", (text,))
            except StoreUnavailable as error:
                if is_lost(db):
                    raise OutcomeUnknown(
                        f"{self.name} was lost during a write ({error}); look what is there "
                        "before you write it again"
                    ) from error
                raise

    # ------------------------------------------------------------------ the one engine

    def enter(self, heard: Callable[[], None], candidate: Candidate = ANYBODY) -> Brain:
        if self._seat is not None:
            raise EngineRunning(
                "an engine runs on this store in this process already; stop it first"
            )
        seat = Seat(self.address)
        try:
            brain = seat.take(candidate, heard)
            self._listener = Listener(self.address, heard)
        except BaseException:
            seat.leave()
            raise
        self._seat, self._heard = seat, heard
        if candidate.url:
            self._herald = Herald(self.address)
        return brain

    def assure(self) -> None:
        self._the_seat().assure()

    def let_go(self) -> None:
        if self._seat is not None:
            self._seat.let_go()

    def leader(self) -> Leader | None:
        row = self._one("select term, holder from leader where lease_end > clock_timestamp()")
        holder = Holder() if row is None else Holder.parse(row[1])
        if row is None or holder.is_gone:
            return None
        return Leader(row[0], holder.id, str(holder), holder.url)

    def announce(self, server: str, about: str) -> None:
        self._write(
            "delete from servers where id = ? and ? = '' "
            "or seen_at < clock_timestamp() - make_interval(secs => ?) returning id",
            (server, about, FORGOTTEN_S),
        )
        if about:
            self._write(
                "insert into servers values (?, ?, clock_timestamp()) on conflict (id) do update "
                "set about = excluded.about, seen_at = excluded.seen_at returning id",
                (server, about),
            )

    def servers(self) -> list[ServerRow]:
        rows = self.rows(
            "select id, about, extract(epoch from clock_timestamp() - seen_at)::float8 "
            "from servers where seen_at > clock_timestamp() - make_interval(secs => ?) order by id",
            (FORGOTTEN_S,),
        )
        return [ServerRow(*row) for row in rows]

    def leave(self) -> None:
        self._heard = None
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._herald is not None:
            self._herald.close()
            self._herald = None
        if self._seat is not None:
            self._seat.leave()
            self._seat = None

    def load_new(self, mark: str, limit: int) -> News:
        if self._seat is None:
            return super().load_new(mark, limit)
        return self._seat.load_new(mark, limit)

    def commit(self, batch: Batch) -> None:
        self._the_seat().commit(batch)
        self._tell_followers()

    def send(self, batch: Batch) -> None:
        self._the_seat().send(batch)

    def settle(self) -> None:
        self._the_seat().settle()
        self._tell_followers()

    def _tell_followers(self) -> None:
        if self._herald is not None:
            self._herald.more()

    def follow(self, heard: Callable[[], None]) -> Callable[[], None]:
        return Listener(self.address, heard, self.address.trail_channel).close

    def _the_seat(self) -> Seat:
        if self._seat is None:
            raise StaleBrain("this engine has left its store, and may not write any more")
        return self._seat

    def purge(self, completed_before: float, failed_before: float, now: float) -> Purged:
        with translated(self.name), self._pool.session() as db:
            return purge(db, completed_before, failed_before, now)

    def purge_type(self, type: str, completed_before: float) -> Purged:
        with translated(self.name), self._pool.session() as db:
            return purge_type(db, type, completed_before)
