"""Reading: what people look at, from a few sessions that all threads share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from psycopg.adapt import Transformer

from headway.errors import StoreUnavailable
from headway.store.filtering import Words
from headway.store.looking import Looker
from headway.store.postgres.address import Address
from headway.store.postgres.connection import Connection, Pool, checked, sql, translated
from headway.store.postgres.marks import NOTHING, Mark
from headway.store.postgres.nul import without_nul
from headway.store.records import Errand, News, OpenJob

COLUMNS = sql("columns").strip()
LOAD_NEW = sql("load_new").replace("{columns}", COLUMNS)
LOAD_LATER = LOAD_NEW.replace("{under_way}", "").replace("{end}", "").replace("{order}", "")
LOAD_ALL_NEW = (
    LOAD_NEW.replace("{under_way}", sql("load_under_way"))
    .replace("{end}", ")")
    .replace("{order}", "order by new.xid, new.id limit $5")
)
LOAD_OPEN = sql("load_open").replace("{columns}", COLUMNS)
LOAD_SOME = f"select {COLUMNS}, null from jobs where id = any(?) order by id"
ERRANDS = sql("errands")
LATER, ALL_NEW = b"load_later", b"load_all_new"
READERS = 4
AT_ONCE = 1_000  # rows in one message, when many are read


@lru_cache(maxsize=256)
def as_psycopg(query: str) -> bytes:
    return query.replace("%", "%%").replace("?", "%s").encode()


class Reader(Looker):
    WORDS = Words(
        many=list,
        among="= any(?)",
        at_upstream="(upstream = ? or read_json(upstreams) @> to_jsonb(cast(? as text)))",
        says=sql("where_says"),
        labelled="read_json(spec) -> 'labels' @> cast(? as jsonb)",
    )

    def __init__(self, address: Address) -> None:
        self.address = address
        self.name = address.name
        self._pool = Pool(address, READERS)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        text = as_psycopg(query)
        values = [without_nul(each) if isinstance(each, str) else each for each in values]
        try:
            with translated(self.name), self._pool.session() as db:
                return db.execute(text, values).fetchall()
        except StoreUnavailable:  # perhaps only this session is gone; reading twice does no harm
            with translated(self.name), self._pool.session(fresh=True) as db:
                return db.execute(text, values).fetchall()

    def version(self) -> int:
        """Changes whenever somebody has committed something."""
        row = self._one("select pg_current_snapshot()::text")
        assert row is not None
        return hash(row[0])

    def load_open(self, mark: str) -> Iterator[OpenJob]:
        """Reads as it is read."""
        seen = Mark.parse(mark)
        values = {
            "before": seen.before,
            "target": seen.target or NOTHING,
            "after_xid": seen.after_xid,
            "after_id": seen.after_id,
        }
        make = OpenJob._make
        with translated(self.name), self._pool.session() as db, db.cursor() as cursor:
            for row in cursor.stream(LOAD_OPEN.encode(), values, size=AT_ONCE):
                yield make(row)

    def load_new(self, mark: str, limit: int) -> News:
        with translated(self.name), self._pool.session() as db:
            return load_new(db, self.name, mark, limit)

    def load_some(self, ids: Iterable[int]) -> list[OpenJob]:
        return [OpenJob._make(row) for row in self.rows(LOAD_SOME, (self._among(ids),))]

    def errands(self, ids: Iterable[int]) -> list[Errand]:
        return [Errand._make(row) for row in self.rows(ERRANDS, (self._among(ids),))]

    def payload(self, id: int) -> str | None:
        row = self._one_of("select args from jobs where id = ?", id)
        return None if row is None else str(row[0])

    def last_event(self) -> int:
        row = self._one("select last_event from brain")
        assert row is not None  # the schema puts it there
        return int(row[0])


def prepare_looking(db: Connection, name: str) -> None:
    """For a session that looks again and again."""
    for statement, query in ((LATER, LOAD_LATER), (ALL_NEW, LOAD_ALL_NEW)):
        checked(db.pgconn, name, db.pgconn.prepare(statement, query.encode()))


def load_new(db: Connection, name: str, mark: str, limit: int, *, prepared: bool = False) -> News:
    """One page of what was not seen up to the mark. By hand, since somebody waits for it: that
    takes a third less time than a cursor.
    """
    seen = Mark.parse(mark)
    values: list[Any] = [
        seen.next_xid.encode(),
        None if seen.target is None else seen.target.encode(),
        seen.after_xid.encode(),
        b"%d" % seen.after_id,
        b"%d" % limit,
    ]
    statement, query = LATER, LOAD_LATER
    if seen.under_way != "{}":
        statement, query = ALL_NEW, LOAD_ALL_NEW
        values.append(seen.under_way.encode())
    if prepared:
        result = db.pgconn.exec_prepared(statement, values, result_format=1)
    else:
        result = db.pgconn.exec_params(query.encode(), values, result_format=1)
    transformer = Transformer.from_context(db)
    transformer.set_pgresult(checked(db.pgconn, name, result))
    rows = transformer.load_rows(0, result.ntuples, tuple)
    jobs = [OpenJob._make(row[:24]) for row in rows]
    if len(rows) < limit and seen.target is not None:
        # This was the last page. What came meanwhile has rung already, so look for it now.
        more = load_new(db, name, seen.target, limit - len(rows), prepared=prepared)
        return News(jobs + more.jobs, more.mark, more.orders)
    if not rows:
        return News(jobs, mark, True)
    xid, snapshot, orders = rows[-1][24:]
    if len(rows) < limit:
        return News(jobs, snapshot, orders)
    return News(jobs, str(Mark(seen.before, seen.target or snapshot, xid, rows[-1][0])), orders)
