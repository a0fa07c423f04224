"""What a measurement and its worker are told by the driver, through the environment."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

REDIS_URL = "BENCH_REDIS_URL"
POSTGRES_URL = "BENCH_POSTGRES_URL"
DIRECTORY = "BENCH_DIRECTORY"
VARIANT = "BENCH_VARIANT"
RECORDS = "BENCH_RECORDS"

DATABASE = "bench"


def redis_url() -> str:
    return os.environ[REDIS_URL]


def postgres_url() -> str:
    """Of the one database that everything measured uses, and that each reset makes anew."""
    server, _, _ = os.environ[POSTGRES_URL].rpartition("/")
    return f"{server}/{DATABASE}"


def directory() -> Path:
    """A scratch directory on the real disk: the SQLite files are in it."""
    return Path(os.environ[DIRECTORY])


def variant() -> str:
    return os.environ[VARIANT]


def remove_files(prefix: str) -> None:
    for found in directory().glob(f"{prefix}*"):
        if found.is_dir():
            shutil.rmtree(found)
        else:
            found.unlink()


def flush_redis() -> None:
    import redis  # noqa: PLC0415 - only the products on Redis need it

    with redis.Redis.from_url(redis_url()) as client:
        client.flushall()


def new_database() -> None:
    """An empty one; whoever is still connected to the old one is thrown out."""
    import psycopg  # noqa: PLC0415 - only the products on PostgreSQL need it

    with psycopg.connect(os.environ[POSTGRES_URL], autocommit=True) as db:
        db.execute(f"drop database if exists {DATABASE} with (force)")
        db.execute(f"create database {DATABASE}")


def postgres_count(query: str) -> int:
    """The one number that a query finds."""
    import psycopg  # noqa: PLC0415 - only the products on PostgreSQL need it

    with psycopg.connect(postgres_url(), autocommit=True) as db:
        [(count,)] = db.execute(query.encode())
    return int(count)


def script(name: str) -> str:
    """A console script of the environment that this interpreter belongs to."""
    return str(Path(sys.executable).parent / name)
