"""Every store: tokens and secrets, batches, and how much there is of what."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from headway.errors import StoreError
from headway.store import Store
from headway.store.records import BatchRow, Progress, Token
from tests.store.kit import T0, WAIT_S, Engine, Opener, ended, granted, job, put

IMPOSSIBLE = ["\x00", "t\x00", "\ud800"]


def token(id: str = "t", **fields: Any) -> Token:
    plain = Token(id, "ops", "hash", '["read"]', None, T0)
    return plain._replace(**fields)


# Tokens


def test_a_token_comes_back_as_it_was_made(store: Store, other: Store) -> None:
    plain = token("a")
    full = token("b", name="x '\"%😀", tenant="acme", expires_at=T0 + 5, scopes="[]")
    for each in (plain, full):
        store.add_token(each)

    assert other.token("a") == plain
    assert other.token("b") == full
    assert other.token("A") is None
    assert other.token("") is None


def test_tokens_are_listed_in_the_order_in_which_they_were_made(store: Store) -> None:
    later, first, second = token("a", created_at=T0 + 1), token("b"), token("c")
    assert store.tokens() == []
    for each in (later, second, first):
        store.add_token(each)

    assert store.tokens() == [first, second, later]


def test_a_token_is_never_made_twice(store: Store) -> None:
    store.add_token(token(name="first"))

    with pytest.raises(StoreError):
        store.add_token(token(name="second"))

    assert [each.name for each in store.tokens()] == ["first"]


def test_a_token_is_revoked_once(store: Store, other: Store) -> None:
    store.add_token(token("a"))
    store.add_token(token("b"))

    assert store.revoke_token("a", T0 + 5)
    assert not store.revoke_token("a", T0 + 9)
    assert not store.revoke_token("c", T0 + 9)

    assert [each.revoked_at for each in other.tokens()] == [T0 + 5, None]


def test_when_a_token_was_used_last(store: Store) -> None:
    store.add_token(token("a"))
    store.add_token(token("b"))

    for at in (T0 + 1, T0 + 3, T0 + 2):
        store.used_token("a", at)
    store.used_token("c", T0)

    assert [each.last_used_at for each in store.tokens()] == [T0 + 3, None]


@pytest.mark.parametrize("id", IMPOSSIBLE)
def test_a_token_that_cannot_be_is_not_there(store: Store, id: str) -> None:
    store.add_token(token())

    assert store.token(id) is None
    assert not store.revoke_token(id, T0)
    store.used_token(id, T0)


def test_the_use_of_a_token_is_noted_only_if_that_can_be_done(open_store: Opener) -> None:
    store = open_store()
    store.add_token(token())
    store.close()

    store.used_token("t", T0)

    assert open_store().tokens()[0].last_used_at is None


# Secrets


def test_the_first_value_of_a_secret_stays(store: Store, other: Store, open_store: Opener) -> None:
    assert store.secret("signing", "first") == "first"
    assert store.secret("signing", "second") == "first"
    assert other.secret("signing", "third") == "first"
    assert other.secret("another", "third") == "third"
    store.close()
    assert open_store().secret("signing", "fourth") == "first"


def test_all_who_ask_for_a_secret_at_once_get_the_same(open_store: Opener) -> None:
    count = 4
    stores = [open_store() for _ in range(count)]
    for name in map(str, range(10)):
        together = Barrier(count, timeout=WAIT_S)

        def ask(number: int, name: str = name, together: Barrier = together) -> str:
            together.wait()
            return stores[number].secret(name, f"value {number}")

        with ThreadPoolExecutor(count) as pool:
            assert len(set(pool.map(ask, range(count)))) == 1


# Batches


def test_batches_are_listed_newest_first(store: Store) -> None:
    first = store.open_batch("first", T0)
    second = store.open_batch("x '\"%😀", T0 + 1, "acme")
    third = store.open_batch("third", T0 + 2, tenant="acme")
    rows = [
        BatchRow(third, T0 + 2, "third", "acme"),
        BatchRow(second, T0 + 1, "x '\"%😀", "acme"),
        BatchRow(first, T0, "first", ""),
    ]

    assert store.batches(None, 10, 0) == rows
    assert store.batches("acme", 10, 0) == rows[:2]
    assert store.batches("", 10, 0) == rows[2:]
    assert store.batches(None, 1, 1) == rows[1:2]
    assert store.batches("acme", 1, 1) == rows[1:2]
    assert [store.batch_row(row.id) for row in rows] == rows
    assert (store.count_batches(None), store.count_batches("acme")) == (3, 2)
    assert store.batches(None, 10**30, 0) == rows
    assert store.batches(None, 10, 10**30) == store.batches(None, -1, 0) == []


@pytest.mark.parametrize("tenant", ["nobody", *IMPOSSIBLE])
def test_a_tenant_that_has_nothing(store: Store, tenant: str) -> None:
    store.open_batch("", T0)
    put(store)

    assert (store.batches(tenant, 10, 0), store.count_batches(tenant)) == ([], 0)
    assert store.tally(tenant) == []


# How much there is


def test_jobs_are_counted_by_lane_and_state(engine: Engine) -> None:
    store = engine.store
    assert store.tally() == []
    fast, slow, *_ = put(
        store,
        job(lane="fast", tenant="acme"),
        job(lane="slow", tenant="acme"),
        job(lane="slow", tenant="acme"),
        job(lane="slow"),
        job(lane="Slow", not_before=T0 + 9),
    )
    engine.commit(granted=[granted(fast)], ended=[ended(slow)])

    assert store.tally() == [
        ("Slow", "pending", 1),
        ("fast", "running", 1),
        ("slow", "completed", 1),
        ("slow", "queued", 2),
    ]
    assert store.tally("acme") == [
        ("fast", "running", 1),
        ("slow", "completed", 1),
        ("slow", "queued", 1),
    ]
    assert store.tally(tenant="") == [("Slow", "pending", 1), ("slow", "queued", 1)]
    assert store.open_by_tenant() == {"acme": 2, "": 2}


def test_the_progress_of_many(engine: Engine) -> None:
    first, second, silent = put(engine.store, *[job()] * 3)
    engine.commit(progress=[(first, 1, 2, "half", T0), (second, 7, None, "", T0 + 1)])

    wanted = {first: Progress(1, 2, "half", T0), second: Progress(7, None, "", T0 + 1)}
    assert engine.store.progress_of([first, silent, second, 10**30]) == wanted
    assert engine.store.progress_of(iter([second])) == {second: wanted[second]}
    assert engine.store.progress_of([]) == {}
