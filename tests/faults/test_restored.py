"""A mark that does not fit the server: the database was restored, or moved to another one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import psycopg
import pytest

from tests.faults.conftest import Maker
from tests.faults.kit import Works, check_all, is_over
from tests.postgres import Postgres, in_memory, postgres

AHEAD = "999999999:999999999:"


def set_mark(direct: str, mark: str) -> None:
    with psycopg.connect(direct, autocommit=True) as db:
        db.execute("update headway.brain set mark = %s", (mark,))


def burn_transactions(direct: str, count: int) -> None:
    with psycopg.connect(direct, autocommit=True) as db:
        for _ in range(count):
            db.execute("select pg_current_xact_id()")


@pytest.mark.parametrize(
    "mark", [AHEAD, "5:999999999:77,88", f"5:9:7 {AHEAD} 999999998 3", "", "1:1:"]
)
def test_a_mark_of_another_server_hides_nothing(direct: str, works: Maker, mark: str) -> None:
    engine = works(direct)
    with engine.app.running():
        engine.put("done before")
        is_over(direct)
    engine.put(*[f"open {place}" for place in range(5)])
    set_mark(direct, mark)
    with engine.app.running():
        engine.put("new")
        is_over(direct)
        engine.put("newer")
        is_over(direct)
    history = check_all(direct, engine.journal)
    assert len(history.rows) == 8


@pytest.fixture
def another() -> Iterator[Postgres]:
    with postgres(in_memory(1 << 30), max_wal_size="256MB") as server:
        yield server


def dump_and_restore(old: Postgres, direct: str, new: Postgres) -> str:
    """The address of the copy."""
    name = direct.rpartition("/")[2]
    common = ["-h", "127.0.0.1", "-U", "postgres", "--no-password"]
    dump = subprocess.run(
        [str(old._bin / "pg_dump"), *common, "-p", str(old.port), "-Fc", name],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    copy = new.new_database()
    subprocess.run(
        [str(new._bin / "pg_restore"), *common, "-p", str(new.port), "--exit-on-error",
         "-d", copy.rpartition("/")[2]],
        input=dump.stdout, capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return copy


def leave_work(engine: Works, direct: str) -> None:
    """Some is done, some was seen and waits, some nobody has seen."""
    with engine.app.running():
        engine.put("done")
        is_over(direct)
        engine.app.pause("type:held")
        for place in range(3):
            [id] = engine.put(f"paused {place}", kind="held")
            engine.app.pause(id)
    engine.put(*[f"unseen {place}" for place in range(5)])


@pytest.mark.parametrize("older", ["the copy has given fewer numbers", "more", "about as many"])
def test_a_restored_dump_goes_on(
    server: Postgres, another: Postgres, direct: str, works: Maker, older: str
) -> None:
    """Numbers of transactions are those of the old server, and mean nothing on the new one."""
    if older != "more":
        burn_transactions(direct, 300)
    else:
        burn_transactions(another.url(), 3_000)
    first = works(direct)
    leave_work(first, direct)
    first.app.close()
    copy = dump_and_restore(server, direct, another)
    if older == "about as many":  # the numbers of new jobs come to lie among the old ones
        [(there,)] = server.execute("select pg_current_xact_id()::text::bigint")
        [(here,)] = another.execute("select pg_current_xact_id()::text::bigint")
        burn_transactions(copy, max(int(str(there)) - int(str(here)) - 10, 0))
    second = works(copy)
    with second.app.running():
        second.put("new")
        second.free.set()
        second.app.resume("type:held")
        for id in range(2, 5):
            second.app.resume(id)
        is_over(copy)
        for round in range(10):
            second.put(f"newer {round}")
        is_over(copy)
    history = check_all(copy, first.journal)
    assert len(history.rows) == 20


def test_many_jobs_of_another_server_do_not_hide_each_other(
    server: Postgres, another: Postgres, direct: str, works: Maker
) -> None:
    """More than one page of them waits for a day, and those behind them are due."""
    burn_transactions(direct, 300)
    first = works(direct)
    first.app.enqueue_many(
        [first.task.options(delay="1d").call(f"tomorrow {place}") for place in range(2_100)]
    )
    first.put("today")
    first.app.close()
    copy = dump_and_restore(server, direct, another)
    second = works(copy)
    with second.app.running():
        [id] = second.put("new")
        assert second.app.handle(id).wait(20) == "completed"
        assert second.app.handle(2_101).wait(20) == "completed"
