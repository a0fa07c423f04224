"""A database that cannot be used: the error says why, and nobody ever sees the password."""

from __future__ import annotations

import logging
import multiprocessing
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from headway import App
from headway.errors import HeadwayError, SchemaTooNew, StoreCorrupt, StoreError, StoreUnavailable
from headway.store import open_store
from headway.store.postgres import schema
from headway.store.postgres.address import parse
from tests.faults.kit import is_over
from tests.postgres import Postgres, _free_port, in_memory, postgres
from tests.store.producers import insert_one

SECRET = "s3cr3t"


@contextmanager
def refused(url: str, kind: type[HeadwayError], words: str) -> Iterator[None]:
    """Opening fails for this reason, and neither the error nor its causes tell the password."""
    with pytest.raises(kind, match=words) as caught:
        open_store(url)
    shown = "".join(traceback.format_exception(caught.value))
    messages = [line for line in shown.splitlines() if "Error" in line or "store" in line]
    assert SECRET not in "\n".join(messages)
    yield


@pytest.fixture(scope="module")
def strict() -> Iterator[Postgres]:
    """A server that asks for a password."""
    with postgres(in_memory(1 << 30), max_wal_size="256MB") as server:
        server.execute(f"create role ada login superuser password '{SECRET}'")
        (server.data / "pg_hba.conf").write_text(
            "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        )
        server.execute("select pg_reload_conf()")
        wrong = f"postgresql://ada:wrong@127.0.0.1:{server.port}/postgres"
        while True:  # until the new rules are read
            try:
                psycopg.connect(wrong).close()
            except psycopg.OperationalError:
                break
        yield server


def address(server: Postgres, password: str = SECRET, database: str = "postgres") -> str:
    return f"postgresql://ada:{password}@127.0.0.1:{server.port}/{database}"


def test_a_wrong_password_is_called_so(strict: Postgres) -> None:
    with refused(address(strict, f"not{SECRET}"), StoreError, "password authentication failed"):
        pass


def test_a_database_that_is_not_there_is_called_so(strict: Postgres) -> None:
    with refused(address(strict, database="nowhere"), StoreError, '"nowhere" does not exist'):
        pass


def test_a_server_that_is_down_is_called_so() -> None:
    url = f"postgresql://ada:{SECRET}@127.0.0.1:{_free_port()}/postgres"
    with refused(url, StoreUnavailable, "cannot be reached now.*refused"):
        pass
    app = App(url)

    @app.job()
    def note() -> None: ...

    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        note.enqueue()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        app.start()
    app.close()


@pytest.mark.parametrize(
    "password",
    ["%zz" + SECRET, "a/" + SECRET, "a?" + SECRET, "a@" + SECRET, SECRET + "/b", "[" + SECRET],
)
def test_a_password_that_is_not_encoded_is_not_shown(password: str) -> None:
    """The address is torn apart at the wrong place; no part of it may come out."""
    url = f"postgresql://ada:{password}@127.0.0.1:{_free_port()}/postgres?connect_timeout=2"
    with pytest.raises(HeadwayError) as caught:
        open_store(url)
    assert SECRET not in str(caught.value)


def test_options_reach_the_server_as_they_are_written(strict: Postgres) -> None:
    options = "options=-c%20work_mem%3D7MB%20-c%20statement_timeout%3D0&application_name=a%2Bb+c"
    known = parse(f"{address(strict)}?schema=mine&{options}")
    with psycopg.connect(known.conninfo) as db:
        assert db.execute("show work_mem").fetchone() == ("7MB",)
        assert db.execute("show application_name").fetchone() == ("a+b+c",)
    assert known.schema == "mine"


def test_the_password_is_in_no_message_log_line_or_event(
    strict: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    database = strict.new_database()
    url = address(strict, database=database.rpartition("/")[2])
    app, said = App(url), []

    @app.job()
    def note(name: str) -> None: ...

    with caplog.at_level(logging.DEBUG), app.running():
        note.enqueue("first")
        is_over(database)
        strict.stop("immediate")
        with pytest.raises(StoreUnavailable) as caught:
            note.enqueue("second")
        said += ["".join(traceback.format_exception_only(caught.value)), app.trouble]
        strict.start()
        note.enqueue("third")
        is_over(database)
        said += [event.detail for event in app.store.events(0, 1_000)]
        with pytest.raises(StoreError) as running:
            App(url).start()
        said.append(str(running.value))
    app.close()
    with psycopg.connect(database) as db:
        said += [str(row) for row in db.execute("select * from headway.brain")]
    assert len(said) > 4
    assert SECRET not in "\n".join([*said, caplog.text])


def test_a_schema_of_another_program_is_left_alone(direct: str) -> None:
    with psycopg.connect(direct, autocommit=True) as db:
        db.execute("create schema headway")
        db.execute("create table headway.jobs (theirs text)")
        with refused(direct, StoreCorrupt, "tables of another program.*schema="):
            pass
        names = db.execute("select relname from pg_class where relname = 'jobs'").fetchall()
        assert names == [("jobs",)]
        open_store(f"{direct}?schema=ours").close()


def test_an_empty_schema_that_somebody_made_for_us_is_used(direct: str) -> None:
    with psycopg.connect(direct, autocommit=True) as db:
        db.execute("create schema headway")
    open_store(direct).close()


def test_a_newer_schema_is_refused(direct: str) -> None:
    open_store(direct).close()
    with psycopg.connect(direct, autocommit=True) as db:
        db.execute("comment on schema headway is 'headway schema version 9999'")
    with refused(direct, SchemaTooNew, "9999"):
        pass


def test_a_database_that_is_not_utf8_is_refused(server: Postgres) -> None:
    server.execute("drop database if exists latin")
    server.execute("create database latin template template0 encoding 'LATIN1' locale 'C'")
    with refused(server.url("latin"), StoreError, "encoding LATIN1; make a database with UTF8"):
        pass
    server.execute("drop database latin")


def test_a_server_that_is_too_old_is_refused(direct: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST", 990_000)
    with refused(direct, StoreError, "Headway needs 99 or newer"):
        pass


def test_processes_that_come_at_once_make_the_schema_once(direct: str) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=insert_one, args=(direct,)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * 4
    with psycopg.connect(direct) as db:
        assert db.execute("select count(*) from headway.jobs").fetchone() == (4,)
        assert db.execute("select count(*) from headway.brain").fetchone() == (1,)
