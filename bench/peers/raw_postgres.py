"""What PostgreSQL and the disk allow, without any product.

The same rows as Headway's, one connection, into a plain table that has Headway's columns, a primary
key and the one index that every open job is in. Several rows are copied, which is the quickest way.
"""

from __future__ import annotations

import time
from itertools import count, islice

import psycopg

from bench.peers import surroundings
from bench.peers.raw import PER_TRANSACTION, row

COLUMNS = """id, type, lane, tenant, key, upstreams, priority, not_before, deadline, created_at,
    spec, unique_key, unique_scope, batch, schedule, waits, state, since, args"""
TABLE = """
create table jobs (
    id bigint primary key, type text not null, lane text not null, tenant text not null, key text,
    upstreams text, priority integer not null, not_before double precision not null,
    deadline double precision, created_at double precision not null, spec text, args text,
    unique_key text, unique_scope text, batch bigint, schedule text,
    waits integer not null default 0, state text not null, since double precision not null,
    pin bigint, fence bigint not null default 0, upstream text, granted_at double precision,
    lease_end double precision, waited_s double precision, tries text, asked text,
    finished_at double precision, error text
)"""
INDEX = "create index jobs_open on jobs (id) where finished_at is null"
INSERT = f"insert into jobs ({COLUMNS}) values ({', '.join(['%s'] * 19)})"
COPY = f"copy jobs ({COLUMNS}) from stdin"


def rows_per_s(workload: str, jobs: int) -> float:
    surroundings.new_database()
    with psycopg.connect(surroundings.postgres_url(), autocommit=True) as db:
        assert db.execute("show fsync").fetchone() == ("on",)
        assert db.execute("show synchronous_commit").fetchone() == ("on",)
        db.execute(TABLE)
        db.execute(INDEX)
        each, numbers = PER_TRANSACTION[workload], count(1)
        insert = _insert_one if each == 1 else _insert_many
        insert(db, numbers, each, 50)  # warm up
        start = time.perf_counter()
        insert(db, numbers, each, jobs // each)
        return jobs // each * each / (time.perf_counter() - start)


def _insert_one(db: psycopg.Connection, numbers: count[int], _each: int, times: int) -> None:
    values = row(time.time())
    for _ in range(times):
        db.execute(INSERT, (next(numbers), *values), prepare=True)


def _insert_many(db: psycopg.Connection, numbers: count[int], each: int, times: int) -> None:
    rest = "\t".join("\\N" if value is None else str(value) for value in row(time.time()))
    for _ in range(times):
        lines = "".join(f"{number}\t{rest}\n" for number in islice(numbers, each))
        with db.cursor().copy(COPY) as copy:
            copy.write(lines)
