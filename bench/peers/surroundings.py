"""What a measurement and its worker are told by the driver, through the environment."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

REDIS_URL = "BENCH_REDIS_URL"
DIRECTORY = "BENCH_DIRECTORY"
VARIANT = "BENCH_VARIANT"
RECORDS = "BENCH_RECORDS"


def redis_url() -> str:
    return os.environ[REDIS_URL]


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


def script(name: str) -> str:
    """A console script of the environment that this interpreter belongs to."""
    return str(Path(sys.executable).parent / name)
