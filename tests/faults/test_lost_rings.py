"""A producer elsewhere rings for its jobs, with the commit or after it; a bell may be lost."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import psycopg
import pytest

from headway.errors import StoreReadOnly
from headway.store.postgres import writer as writing
from tests.faults.conftest import Maker
from tests.faults.kit import WAIT_S, check_all, is_over
from tests.faults.proxy import PUT, RING, Do, Proxy
from tests.faults.test_lost_puts import writer_of


@pytest.mark.usefixtures("pace")
@pytest.mark.parametrize("do", list(Do))
def test_the_engine_hears_of_a_job_whose_put_was_lost(
    proxy: Proxy, direct: str, works: Maker, do: Do
) -> None:
    engine, producer = works(direct), works(proxy.url(direct), "elsewhere")
    producer.put("first")
    with engine.app.running():
        is_over(direct)
        engine.look_only_when_called()
        struck = proxy.next(PUT, do)
        producer.put("second")
        assert struck.wait(WAIT_S)
        is_over(direct)
    check_all(direct, producer.journal)


def test_the_engine_hears_of_a_job_that_was_put_while_busy_and_asked_for_while_quiet(
    proxy: Proxy, direct: str, works: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that stored it did not ring, and the one that gets the answer stores nothing."""
    engine, producer = works(direct), works(proxy.url(direct), "elsewhere")
    producer.put("first")
    with engine.app.running():
        is_over(direct)
        engine.look_only_when_called()
        real, paces = writer_of(producer)._call, iter((float("inf"), float("-inf")))

        def call(db: Any, values: Any) -> Any:
            monkeypatch.setattr(writing, "QUIET_S", next(paces))
            return real(db, values)

        monkeypatch.setattr(writer_of(producer), "_call", call)
        struck = proxy.next(PUT, Do.LOSE_ANSWER)
        producer.put("second")
        assert struck.is_set()
        is_over(direct)
    check_all(direct, producer.journal)


@pytest.mark.usefixtures("always_busy")
@pytest.mark.parametrize("do", list(Do))
def test_a_job_whose_ring_was_lost_is_seen_with_the_next_one(
    proxy: Proxy, direct: str, works: Maker, do: Do
) -> None:
    engine, producer = works(direct), works(proxy.url(direct), "elsewhere")
    producer.put("first")
    with engine.app.running():
        is_over(direct)
        engine.look_only_when_called()
        struck = proxy.next(RING, do)
        producer.put("not rung for")
        assert struck.wait(WAIT_S)
        producer.put("next")
        is_over(direct)
    check_all(direct, producer.journal)


@pytest.mark.usefixtures("always_busy")
def test_a_job_whose_ring_was_lost_is_seen_without_another(
    proxy: Proxy, direct: str, works: Maker
) -> None:
    """The engine looks every now and then."""
    engine, producer = works(direct), works(proxy.url(direct), "elsewhere")
    producer.put("first")
    with engine.app.running():
        is_over(direct)
        struck = proxy.next(RING, Do.LOSE_REQUEST)
        producer.put("not rung for")
        assert struck.wait(WAIT_S)
        is_over(direct)
    check_all(direct, producer.journal)


def test_a_bell_that_fails_leaves_nobody_in_doubt(direct: str, works: Maker, pace: str) -> None:
    """After the commit it is no failure, else the producer would enqueue again what is there."""
    assert works(direct).app.store  # made by the one who may
    role = f"r{direct[-8:]}"
    with psycopg.connect(direct, autocommit=True) as db:
        db.execute(f"create role {role} login".encode())
        db.execute(f"grant usage on schema headway to {role}".encode())
        db.execute(f"grant all on all tables in schema headway to {role}".encode())
        db.execute("revoke execute on function pg_notify(text, text) from public")
        producer = works(direct.replace("postgres@", f"{role}@"))
        ids: list[int] = []
        for name in ("first", "second", "third"):
            with nullcontext() if pace == "busy" else pytest.raises(StoreReadOnly):
                ids += producer.put(name)
        rows = db.execute("select id from headway.jobs order by id").fetchall()
    assert rows == [(id,) for id in ids]
    assert len(ids) == (3 if pace == "busy" else 0)
