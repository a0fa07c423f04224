"""Every store: what the engine loads, what people look at, and what retention takes away."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.store import Store
from headway.store.records import Errand, Job, OpenJob, Purged, Query, TypeStats
from tests.store.kit import (
    T0,
    Engine,
    all_jobs,
    ended,
    event,
    job,
    mark_of,
    moved,
    put,
    put_one,
    unique,
)

LATER = T0 + 1_000_000


def numbers_of(jobs: Iterable[Job | OpenJob]) -> list[int]:
    return [each.id for each in jobs]


# Loading


def test_open_jobs_are_loaded_up_to_a_mark(engine: Engine) -> None:
    store = engine.store
    numbers = put(store, *[job()] * 5)
    mark = mark_of(store)
    put(store)
    engine.commit(ended=[ended(numbers[1])])

    loaded = list(store.load_open(mark))

    assert numbers_of(loaded) == [numbers[0], *numbers[2:5]]


def test_a_loaded_job_has_all_that_the_engine_needs(engine: Engine) -> None:
    number = put_one(
        engine.store,
        type="fetch",
        lane="slow",
        tenant="acme",
        key="k",
        upstreams='["x.com"]',
        deadline=T0 + 600,
        spec="{}",
        batch=3,
        schedule="nightly",
    )
    engine.commit(
        moved=[
            moved(
                number,
                "running",
                since=T0 + 1,
                not_before=T0 + 2,
                priority=3,
                pin=4,
                fence=5,
                upstream="x.com",
                granted_at=T0 + 6,
                lease_end=T0 + 7,
                tries="[]",
                asked="pause",
            )
        ]
    )
    wanted = OpenJob(
        id=number,
        type="fetch",
        lane="slow",
        tenant="acme",
        key="k",
        upstreams='["x.com"]',
        priority=3,
        not_before=T0 + 2,
        deadline=T0 + 600,
        spec="{}",
        unique_scope=None,
        batch=3,
        schedule="nightly",
        waits=0,
        state="running",
        since=T0 + 1,
        pin=4,
        fence=5,
        upstream="x.com",
        granted_at=T0 + 6,
        lease_end=T0 + 7,
        tries="[]",
        asked="pause",
    )

    [new], mark, _ = engine.store.load_new("", 1)
    assert list(engine.store.load_open(mark)) == [wanted]
    assert new._replace(args=None) == wanted
    assert new.args in (None, engine.store.payload(number))
    assert engine.store.load_some([number]) == [wanted]


def test_new_jobs_are_loaded_page_by_page(store: Store) -> None:
    numbers = put(store, *[job()] * 5)
    pages, marks = [], [""]
    for _ in range(4):
        page, mark, _ = store.load_new(marks[-1], 2)
        pages.append(numbers_of(page))
        marks.append(mark)

    assert pages == [numbers[:2], numbers[2:4], numbers[4:], []]
    assert [numbers_of(store.load_open(mark)) for mark in marks[:4]] == [
        [],
        numbers[:2],
        numbers[:4],
        numbers,
    ]
    later = put_one(store)
    assert numbers_of(store.load_new(marks[-1], 2)[0]) == [later]


def test_some_jobs_are_loaded_by_number_as_far_as_they_are_there(store: Store) -> None:
    first, _, third = put(store, *[job()] * 3)

    assert sorted(numbers_of(store.load_some([first, third, third + 99]))) == [first, third]
    assert store.load_some([]) == []
    assert store.load_some(iter([first]))[0].id == first


def test_a_loading_that_is_given_up_does_not_hide_what_comes_after(
    store: Store, other: Store
) -> None:
    put(store, *[job()] * 3)
    loading = iter(store.load_open(mark_of(store)))
    next(loading)
    del loading

    put(other)

    assert len(all_jobs(store)) == 4


def test_states_of_jobs_that_are_there(engine: Engine) -> None:
    first, second, _ = put(engine.store, *[job()] * 3)
    engine.commit(ended=[ended(second, "cancelled")])

    assert engine.store.states([first, second, 999]) == {first: "queued", second: "cancelled"}
    assert engine.store.states([]) == {}


def test_an_errand_is_the_payload_and_where_the_last_attempt_stopped(engine: Engine) -> None:
    first, second = put(engine.store, job("[1]"), job("[2]"))
    engine.commit(checkpoints=[(second, "page 7", T0)])

    assert sorted(engine.store.errands([second, first, 999])) == [
        Errand(first, "[1]", None),
        Errand(second, "[2]", "page 7"),
    ]


# Looking


SINGLE = ["job", "payload", "result", "checkpoint", "progress", "batch", "batch_row"]
STRANGE = [7, 0, -1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30]


@pytest.mark.parametrize("look", SINGLE)
def test_what_is_not_there_is_none(store: Store, look: str) -> None:
    put_one(store)

    for number in STRANGE:
        assert getattr(store, look)(number) is None, number


def test_what_has_no_history_has_an_empty_one(store: Store) -> None:
    for number in STRANGE:
        assert store.logs(number) == [], number
        assert store.events_of(number) == [], number
        assert store.events(number, 10) == [], number


def test_numbers_that_nothing_can_have_are_passed_over(store: Store) -> None:
    there = put_one(store)
    numbers = [10**30, there, -(10**30)]

    assert store.states(numbers) == {there: "queued"}
    assert [each.id for each in store.errands(numbers)] == [there]
    assert numbers_of(store.load_some(numbers)) == [there]
    assert store.progress_of(numbers) == {}
    assert store.waits(numbers) == []


FILTERS: dict[str, Any] = {
    "type": "fetch",
    "lane": "slow",
    "tenant": "acme",
    "key": "k",
    "batch": 3,
    "schedule": "nightly",
}


@pytest.mark.parametrize("name", FILTERS)
def test_jobs_are_found_by_each_of_their_fields(store: Store, name: str) -> None:
    wanted = put_one(store, **{name: FILTERS[name]})
    put_one(store)
    query = Query(**{name: FILTERS[name]})

    assert numbers_of(store.jobs(query)) == [wanted]
    assert store.count(query) == 1


def test_jobs_are_found_by_state(engine: Engine) -> None:
    first, second = put(engine.store, job(), job())
    engine.commit(ended=[ended(first)])

    assert numbers_of(engine.store.jobs(Query(states=("completed",)))) == [first]
    assert numbers_of(engine.store.jobs(Query(states=("queued",)))) == [second]
    assert numbers_of(engine.store.jobs(Query(states=("completed", "queued")))) == [second, first]
    assert numbers_of(engine.store.jobs(Query(states=("paused", "failed")))) == []


def test_filters_hold_together(store: Store) -> None:
    wanted = put_one(store, tenant="acme", lane="slow")
    put(store, job(tenant="acme"), job(lane="slow"))

    assert numbers_of(store.jobs(Query(tenant="acme", lane="slow"))) == [wanted]
    assert store.count(Query(tenant="acme", lane="fast")) == 0


def test_an_empty_name_is_a_filter_too(store: Store) -> None:
    put_one(store, tenant="acme")
    nobody = put_one(store, tenant="")

    assert numbers_of(store.jobs(Query(tenant=""))) == [nobody]


def test_jobs_come_newest_first_and_page_by_page(store: Store) -> None:
    newest_first = put(store, *[job()] * 5)[::-1]

    assert numbers_of(store.jobs(Query())) == newest_first
    assert numbers_of(store.jobs(Query(limit=2))) == newest_first[:2]
    assert numbers_of(store.jobs(Query(limit=2, offset=2))) == newest_first[2:4]
    assert numbers_of(store.jobs(Query(limit=2, offset=4))) == newest_first[4:]
    assert store.count(Query(limit=2)) == 5


def test_a_name_is_only_a_name(store: Store) -> None:
    """Nothing that is asked for becomes part of a query."""
    put_one(store)

    assert store.jobs(Query(tenant="' or 1=1 --")) == []


def test_events_are_read_page_by_page(engine: Engine) -> None:
    engine.commit(events=[event()] * 5)

    assert [each.id for each in engine.store.events(0, 2)] == [1, 2]
    assert [each.id for each in engine.store.events(2, 2)] == [3, 4]
    assert [each.id for each in engine.store.events(4, 2)] == [5]
    assert engine.store.event_range() == (1, 5)


def test_the_trail_of_a_job_is_its_own(engine: Engine) -> None:
    engine.commit(events=[event(1, "grant"), event(2), event(None), event(1, "ok")])

    assert [each.event for each in engine.store.events_of(1)] == ["grant", "ok"]


# Statistics


def run(engine: Engine, run_s: float, waited_s: float = 1.0, **fields: Any) -> int:
    number = put_one(engine.store, **fields)
    granted = moved(number, granted_at=T0, waited_s=waited_s)
    engine.commit(moved=[granted], ended=[ended(number, at=T0 + run_s)])
    return number


def test_statistics_count_what_ended_by_type(engine: Engine) -> None:
    run(engine, 2.0, waited_s=1.0, type="fetch")
    run(engine, 4.0, waited_s=3.0, type="fetch")
    failed, cancelled, _ = put(engine.store, *[job(type="send")] * 3)
    engine.commit(ended=[ended(failed, "failed"), ended(cancelled, "cancelled")])

    assert engine.store.stats(T0) == [
        TypeStats("fetch", 2, 2, 0, 0, 3.0, 4.0, 2.0),
        TypeStats("send", 2, 0, 1, 1, None, None, None),
    ]


def test_statistics_of_nothing(store: Store) -> None:
    assert store.stats(0.0) == []


def test_statistics_look_back_only_so_far(engine: Engine) -> None:
    run(engine, 1.0)
    run(engine, 9.0)

    [stats] = engine.store.stats(T0 + 5)
    assert stats.ended == 1


def test_one_job_is_enough_for_statistics(engine: Engine) -> None:
    run(engine, 2.5)

    [stats] = engine.store.stats(T0)
    assert (stats.mean_run_s, stats.p95_run_s) == (2.5, 2.5)


def test_statistics_of_one_tenant(engine: Engine) -> None:
    run(engine, 2.0, type="fetch", tenant="acme")
    run(engine, 4.0, type="fetch", tenant="")
    run(engine, 4.0, type="send", tenant="other")

    assert engine.store.stats(T0, "acme") == [TypeStats("fetch", 1, 1, 0, 0, 2.0, 2.0, 1.0)]
    assert [each.mean_run_s for each in engine.store.stats(T0, tenant="")] == [4.0]
    assert [each.ended for each in engine.store.stats(T0)] == [2, 1]
    assert engine.store.stats(T0, "nobody") == engine.store.stats(T0, "\x00") == []


def test_statistics_are_in_the_order_of_types(engine: Engine) -> None:
    for type in ("é", "b", "B", "_", "a"):
        run(engine, 1.0, type=type)

    assert [each.type for each in engine.store.stats(T0)] == ["B", "_", "a", "b", "é"]


whole_seconds = st.lists(st.integers(0, 20), min_size=1, max_size=45)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(whole_seconds)
def test_nineteen_of_twenty_ran_no_longer_than_p95(engine: Engine, runs: list[int]) -> None:
    type = str(engine.store.open_batch("", T0))  # the examples share a store, and not a type
    numbers = put(engine.store, *(job(type=type) for _ in runs))
    engine.commit(
        moved=[moved(number, granted_at=T0) for number in numbers],
        ended=[ended(number, at=T0 + s) for number, s in zip(numbers, runs, strict=True)],
    )

    [stats] = [each for each in engine.store.stats(T0) if each.type == type]

    assert stats.p95_run_s == sorted(runs)[math.ceil(len(runs) * 0.95) - 1]


# Retention


def purge_all(store: Store, **moments: float) -> Purged:
    """Call it until it removes nothing, as the protocol says."""
    times = {"completed_before": LATER, "failed_before": LATER, "now": LATER} | moments
    total = Purged(0, 0, 0)
    for _ in range(50):
        purged = store.purge(**times)
        if purged == (0, 0, 0):
            return total
        total = Purged(*(a + b for a, b in zip(total, purged, strict=True)))
    raise AssertionError("purging does not come to an end")


def test_an_open_job_is_never_purged(engine: Engine) -> None:
    numbers = put(engine.store, *[job()] * 3)
    engine.commit(moved=[moved(numbers[1], "running"), moved(numbers[2], "paused")])

    assert purge_all(engine.store) == (0, 0, 0)
    assert all_jobs(engine.store) == numbers


def test_old_jobs_go_with_all_they_have(engine: Engine) -> None:
    store = engine.store
    number, _ = put(store, job(occurrence="n@1", after=(999,)), job())
    engine.commit(
        ended=[ended(number)],
        results=[(number, "1", LATER)],
        checkpoints=[(number, "[]", T0)],
        progress=[(number, 1, 2, "", T0)],
        logs=[(number, T0, "info", "line")],
    )

    assert purge_all(store).jobs == 1

    assert (store.job(number), store.payload(number), store.result(number)) == (None, None, None)
    assert (store.checkpoint(number), store.progress(number)) == (None, None)
    assert (store.logs(number), store.waits(), len(all_jobs(store))) == ([], [], 1)
    assert not store.insert([job(occurrence="n@1")])[0].joined


def test_failed_jobs_are_kept_as_long_as_is_asked(engine: Engine) -> None:
    done, cancelled, failed = numbers = put(engine.store, *[job()] * 3)
    states = ["completed", "cancelled", "failed"]
    engine.commit(ended=[ended(n, s, T0) for n, s in zip(numbers, states, strict=True)])

    purge_all(engine.store, failed_before=T0)
    assert all_jobs(engine.store) == [failed]

    purge_all(engine.store, completed_before=T0)
    assert all_jobs(engine.store) == []
    assert {done, cancelled}.isdisjoint(all_jobs(engine.store))


def test_jobs_are_kept_until_their_time(engine: Engine) -> None:
    old, young = put(engine.store, job(), job())
    engine.commit(ended=[ended(old, at=T0), ended(young, at=T0 + 10)])

    purge_all(engine.store, completed_before=T0 + 10)

    assert all_jobs(engine.store) == [young]


def test_results_go_when_they_expire_and_their_jobs_stay(engine: Engine) -> None:
    first, second = put(engine.store, job(), job())
    engine.commit(results=[(first, "1", T0), (second, "2", T0 + 10)])

    assert purge_all(engine.store, now=T0 + 5) == Purged(jobs=0, events=0, results=1)

    assert engine.store.result(first) is None
    assert engine.store.result(second) is not None
    assert all_jobs(engine.store) == [first, second]


def test_a_purged_key_is_free(engine: Engine) -> None:
    number = put_one(engine.store, unique=unique("k"))
    engine.commit(ended=[ended(number)])
    purge_all(engine.store)

    assert not engine.store.insert([job(unique=unique("k"))])[0].joined


def test_old_events_go_from_the_front_only(engine: Engine) -> None:
    engine.commit(events=[event(at=T0), event(at=T0 + 1), event(at=T0 + 50), event(at=T0 + 2)])

    purged = purge_all(engine.store, completed_before=T0 + 10, failed_before=T0 + 10)

    assert purged.events == 2
    assert [each.id for each in engine.store.events(0, 10)] == [3, 4]


def test_events_are_kept_as_long_as_the_jobs_that_are_kept_longest(engine: Engine) -> None:
    engine.commit(events=[event(at=T0), event(at=T0 + 1)])

    purge_all(engine.store, failed_before=T0 + 1)

    assert engine.store.event_range() == (2, 2)


def test_a_job_that_is_still_there_keeps_its_trail(engine: Engine) -> None:
    gone, alive = put(engine.store, job(), job())
    engine.commit(
        ended=[ended(gone)],
        events=[event(gone), event(alive), event(gone), event(alive)],
    )

    assert purge_all(engine.store) == Purged(jobs=1, events=1, results=0)
    assert [each.id for each in engine.store.events_of(alive)] == [2, 4]
    assert engine.store.event_range() == (2, 4)

    engine.commit(ended=[ended(alive)])
    assert purge_all(engine.store) == Purged(jobs=1, events=3, results=0)


def test_completed_jobs_of_one_type_may_go_sooner_with_their_events(engine: Engine) -> None:
    store = engine.store
    old, young, failed, other, last = put(
        store, *(job(type=name) for name in ("visit", "visit", "visit", "rare", "visit"))
    )
    engine.commit(
        ended=[
            ended(old, at=T0),
            ended(young, at=T0 + 10),
            ended(failed, "failed", T0),
            ended(other),
        ],
        results=[(old, "1", LATER)],
        events=[event(old), event(other), event(failed), event(old), event(young), event(last)],
    )

    assert store.purge_type("visit", T0 + 5) == Purged(jobs=1, events=2, results=0)
    assert store.purge_type("visit", T0 + 5) == Purged(0, 0, 0)

    assert all_jobs(store) == [young, failed, other, last]
    assert (store.payload(old), store.result(old)) == (None, None)
    assert [each.id for each in store.events(0, 10)] == [2, 3, 5, 6]
    assert store.event_range() == (5, 6), "whoever comes back from before has missed something"
    engine.commit(events=[event(last)])
    assert store.event_range() == (5, 7)


def test_numbers_go_on_when_the_last_events_went_with_their_jobs(engine: Engine) -> None:
    number = put_one(engine.store)
    engine.commit(ended=[ended(number)], events=[event(number), event(number)])

    assert engine.store.purge_type("send", LATER) == Purged(jobs=1, events=2, results=0)

    assert engine.store.event_range() == (1, 0)
    assert engine.store.last_event() == 2
    engine.commit(events=[event()])
    assert [each.id for each in engine.store.events(0, 10)] == [3]
    assert engine.store.event_range() == (3, 3)


def test_event_numbers_go_on_after_all_were_purged(engine: Engine) -> None:
    engine.commit(events=[event()] * 3)
    purge_all(engine.store)
    assert engine.store.event_range() == (1, 0)

    engine.commit(events=[event()])

    assert engine.store.event_range() == (4, 4)


def test_a_great_many_are_purged_chunk_by_chunk(engine: Engine) -> None:
    numbers = put(engine.store, *[job()] * 2_500)
    survivor = put_one(engine.store)
    engine.commit(
        ended=[ended(number) for number in numbers],
        events=[event(number) for number in numbers],
        results=[(survivor, "1", T0)],
    )
    first = engine.store.purge(LATER, LATER, LATER)

    rest = purge_all(engine.store)

    assert 0 < first.jobs < 2_500
    assert first.jobs + rest.jobs == 2_500
    assert first.events + rest.events == 2_500
    assert first.results + rest.results == 1
    assert all_jobs(engine.store) == [survivor]


def test_purging_is_seen_by_other_processes(engine: Engine, other: Store) -> None:
    number = put_one(engine.store)
    engine.commit(ended=[ended(number)])

    purge_all(other)

    assert engine.store.job(number) is None
