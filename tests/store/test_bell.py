"""The bells of PostgreSQL: what is said is heard, whatever becomes of the sessions."""

from __future__ import annotations

import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from headway.errors import StoreUnavailable
from headway.store.batch import Batch
from headway.store.postgres import PostgresStore, bell
from headway.store.postgres.address import Address, parse
from headway.store.postgres.bell import Herald, Listener
from headway.store.records import Candidate
from tests.hands.kit import WAIT_S, eventually
from tests.postgres import shared_postgres

FILES = 1_100  # more than `select` can count


@pytest.fixture
def url() -> str:
    return shared_postgres().url(schema=f"s{uuid4().hex}")


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url)
    yield store
    store.close()


@pytest.fixture
def address(store: PostgresStore, url: str) -> Address:  # noqa: ARG001 - it makes the schema
    return parse(url)


def cut(db: Any) -> None:
    """By whoever looks after the database."""
    with psycopg.connect(shared_postgres().url(), autocommit=True) as session:
        session.execute("select pg_terminate_backend(%s)", (db.info.backend_pid,))
        gone = "select count(*) from pg_stat_activity where pid = %s"
        eventually(lambda: session.execute(gone, (db.info.backend_pid,)).fetchone() == (0,))


def test_a_ring_whose_session_was_cut_is_rung_again(address: Address) -> None:
    """Nobody else says that there is more: followers would show it with the next event only."""
    heard = threading.Event()
    with ExitStack() as ending:
        listener = Listener(address, heard.set, address.trail_channel)
        ending.callback(listener.close)
        herald = Herald(address)
        ending.callback(herald.close)
        herald.more()
        assert heard.wait(WAIT_S)
        cut(herald._db)
        heard.clear()
        herald.more()
        assert heard.wait(WAIT_S)


def test_followers_hear_of_a_turn_that_had_to_be_sent_again(store: PostgresStore) -> None:
    brain = store.enter(lambda: None, Candidate(url="http://here"))
    heard = threading.Event()
    stop = store.follow(heard.set)
    store.commit(Batch(brain.term))
    assert heard.wait(WAIT_S)
    stop()


def test_a_bell_waits_for_its_server_in_a_process_with_many_files(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = threading.Event()
    tried = threading.Event()
    reach = bell.connect

    def away(*_: object, **__: object) -> Any:
        tried.set()
        raise StoreUnavailable("away")

    with ExitStack() as ending:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * FILES), hard))
        ending.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        with socket.socket() as any_file:
            for _ in range(FILES):
                ending.callback(os.close, os.dup(any_file.fileno()))
        listener = Listener(address, heard.set)
        ending.callback(listener.close)
        monkeypatch.setattr(bell, "connect", away)
        cut(listener._db)
        assert tried.wait(WAIT_S)
        tried.clear()
        assert tried.wait(WAIT_S), "it tries again"
        monkeypatch.setattr(bell, "connect", reach)
        assert heard.wait(WAIT_S)
