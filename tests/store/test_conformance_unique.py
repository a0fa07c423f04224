"""Every store: unique jobs, occurrences, waits and batches."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.errors import DuplicateJob
from headway.store import Store
from headway.store.records import OnConflict, Receipt, UniqueScope
from tests.store.kit import T0, Engine, Opener, all_jobs, job, moved, put, put_one, unique

JOIN, REPLACE, REJECT = OnConflict.JOIN, OnConflict.REPLACE, OnConflict.REJECT


# Unique jobs


@pytest.mark.parametrize("conflict", OnConflict)
def test_a_key_that_is_free_keeps_nobody_away(store: Store, conflict: OnConflict) -> None:
    [receipt] = store.insert([job(unique=unique("k", conflict))])

    assert not receipt.joined
    assert store.job(receipt.id) is not None


def test_different_keys_do_not_meet(store: Store) -> None:
    put(store, job(unique=unique("a")), job(unique=unique("b")))

    assert len(all_jobs(store)) == 2


@pytest.mark.parametrize("scope", UniqueScope)
def test_the_engine_learns_the_scope(store: Store, scope: UniqueScope) -> None:
    number = put_one(store, unique=unique("k", scope=scope))

    assert [each.unique_scope for each in store.load_some([number])] == [scope.value]


@pytest.mark.parametrize("scope", UniqueScope)
def test_a_key_is_taken_until_the_engine_frees_it(engine: Engine, scope: UniqueScope) -> None:
    store = engine.store
    wanted = job(unique=unique("k", scope=scope))
    first = put_one(store, unique=unique("k", scope=scope))
    engine.commit(moved=[moved(first)])
    assert store.insert([wanted]) == [Receipt(first, joined=True)]

    engine.commit(freed=[first])

    [second] = store.insert([wanted])
    assert not second.joined
    assert second.id != first


def test_joining_gives_the_job_that_is_there(store: Store, other: Store) -> None:
    first = put_one(store, args="[1]", unique=unique("k"))

    assert other.insert([job("[2]", unique=unique("k"))]) == [Receipt(first, joined=True)]
    assert all_jobs(store) == [first]
    assert store.payload(first) == "[1]"


def test_jobs_of_one_insert_join_each_other(store: Store) -> None:
    first, second = store.insert([job(unique=unique("k"))] * 2)

    assert second == Receipt(first.id, joined=True)


def test_joining_with_a_better_priority_asks_the_engine_to_raise_it(store: Store) -> None:
    first = put_one(store, priority=5, unique=unique("k"))

    put(store, job(created_at=T0 + 9, priority=2, unique=unique("k")))

    [command] = store.commands(10)
    assert (command.at, command.verb, command.target) == (T0 + 9, "prioritise", str(first))
    assert json.loads(command.args) == 2


@pytest.mark.parametrize("priority", [5, 9])
def test_joining_with_no_better_priority_asks_for_nothing(store: Store, priority: int) -> None:
    put(store, job(priority=5, unique=unique("k")), job(priority=priority, unique=unique("k")))

    assert store.commands(10) == []


def test_replacing_changes_the_payload_and_asks_the_engine_for_the_rest(store: Store) -> None:
    first = put_one(store, args="[1]", unique=unique("k"))

    [receipt] = store.insert(
        [job("[2]", not_before=T0 + 60, priority=1, unique=unique("k", REPLACE))]
    )

    assert receipt == Receipt(first, joined=True)
    assert store.payload(first) == "[2]"
    [command] = store.commands(10)
    assert (command.verb, command.target) == ("replace", str(first))
    assert json.loads(command.args) == [T0 + 60, 1]


def test_a_running_job_cannot_be_replaced(engine: Engine) -> None:
    store = engine.store
    first = put_one(store, args="[1]", unique=unique("k"))
    engine.commit(moved=[moved(first, "running")])

    with pytest.raises(DuplicateJob, match="runs already") as caught:
        store.insert([job(), job("[2]", unique=unique("k", REPLACE))])

    assert caught.value.job_id == first
    assert all_jobs(store) == [first]
    assert store.payload(first) == "[1]"
    assert store.commands(10) == []


def test_a_rejected_job_names_the_one_that_is_there(store: Store) -> None:
    first = put_one(store, unique=unique("k"))

    with pytest.raises(DuplicateJob, match=f"job {first} .*'k'") as caught:
        store.insert([job(unique=unique("k", REJECT))])

    assert caught.value.job_id == first
    assert all_jobs(store) == [first]


def test_a_rejected_insert_leaves_no_command_and_no_replacement(store: Store) -> None:
    first, _ = put(store, job("[1]", unique=unique("a")), job(unique=unique("b")))

    with pytest.raises(DuplicateJob):
        store.insert([job("[2]", unique=unique("a", REPLACE)), job(unique=unique("b", REJECT))])

    assert store.payload(first) == "[1]"
    assert store.commands(10) == []


asked = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([JOIN, REPLACE, REJECT])))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(asked)
def test_however_they_are_asked_for_a_key_has_one_job(
    store: Store, wishes: list[tuple[str, OnConflict]]
) -> None:
    example = store.open_batch("", T0)  # the examples share a store, and not a key
    holders: dict[str, int] = {}
    for letter, conflict in wishes:
        key = f"{letter} of {example}"
        wanted = job(unique=unique(key, conflict))
        if key in holders and conflict is REJECT:
            with pytest.raises(DuplicateJob):
                store.insert([wanted])
        else:
            [receipt] = store.insert([wanted])
            assert receipt.joined == (key in holders)
            assert holders.setdefault(key, receipt.id) == receipt.id


# Occurrences


def test_an_occurrence_is_claimed_once(store: Store, other: Store) -> None:
    [first] = store.insert([job(occurrence="nightly@1")])

    assert not first.joined
    assert other.insert([job(occurrence="nightly@1")]) == [Receipt(first.id, joined=True)]
    assert all_jobs(store) == [first.id]


def test_the_next_occurrence_is_another_job(store: Store) -> None:
    assert len(set(put(store, job(occurrence="n@1"), job(occurrence="n@2")))) == 2


def test_an_occurrence_stays_claimed_when_its_job_has_ended(engine: Engine) -> None:
    number = put_one(engine.store, occurrence="n@1")
    engine.commit(ended=[(number, "completed", T0, None, None)])

    assert engine.store.insert([job(occurrence="n@1")]) == [Receipt(number, joined=True)]


def test_the_open_job_of_each_schedule_is_known(engine: Engine) -> None:
    over, hourly, nightly, _ = put(
        engine.store,
        job(schedule="hourly", occurrence="h@1"),
        job(schedule="hourly", occurrence="h@2"),
        job(schedule="nightly", occurrence="n@1"),
        job(),
    )
    engine.commit(ended=[(over, "completed", T0, None, None)])

    assert engine.store.open_occurrences() == {"hourly": hourly, "nightly": nightly}


# Waits


def test_a_job_waits_for_others(store: Store) -> None:
    first, second = put(store, job(), job())
    third = put_one(store, after=(first, second))

    assert sorted(store.waits()) == [(third, first), (third, second)]
    assert [(each.waits, each.state) for each in store.load_some([third])] == [(1, "pending")]


def test_waits_of_certain_jobs_can_be_asked_for(store: Store) -> None:
    [first] = put(store)
    second, third = put(store, job(after=(first,)), job(after=(first,)))

    assert store.waits([third]) == [(third, first)]
    assert store.waits([first]) == []
    assert sorted(store.waits([second, third])) == [(second, first), (third, first)]


def test_waiting_twice_for_the_same_job_is_waiting_once(store: Store) -> None:
    [first] = put(store)
    second = put_one(store, after=(first, first))

    assert store.waits() == [(second, first)]


# Batches


def test_a_batch_counts_its_jobs_by_state(engine: Engine) -> None:
    store = engine.store
    batch = store.open_batch("import", T0)
    one, _, _ = put(store, *[job(batch=batch)] * 3)
    put(store)
    engine.commit(ended=[(one, "completed", T0, None, None)])

    assert store.batch(batch) == {"completed": 1, "queued": 2}


def test_an_empty_batch_is_there(store: Store) -> None:
    assert store.batch(store.open_batch("", T0)) == {}


def test_an_unknown_batch_is_not(store: Store) -> None:
    assert store.batch(7) is None


def test_batches_have_different_numbers(store: Store, other: Store, open_store: Opener) -> None:
    numbers = [each.open_batch("", T0) for each in (store, other, store, open_store())]

    assert len(set(numbers)) == 4
