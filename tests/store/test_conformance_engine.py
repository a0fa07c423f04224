"""Every store: there is one engine, it is woken, and an old one can do no harm."""

from __future__ import annotations

import json
import threading
from itertools import pairwise

import pytest

from headway.errors import EngineRunning, StaleBrain
from headway.store import Store
from headway.store.batch import Batch
from headway.store.records import Brain
from tests.store.kit import (
    T0,
    WAIT_S,
    Engine,
    Opener,
    all_jobs,
    ended,
    event,
    granted,
    job,
    mark_of,
    moved,
    put,
    put_one,
    unique,
)


def nothing_heard() -> None:
    """For engines that need no waking."""


# Entering and leaving


def test_the_first_engine_starts_from_nothing(store: Store) -> None:
    assert store.enter(nothing_heard) == Brain(term=1, fence=0, mark="")


def test_only_one_engine_may_enter(store: Store, other: Store) -> None:
    store.enter(nothing_heard)

    with pytest.raises(EngineRunning, match="stop it first"):
        other.enter(nothing_heard)


def test_an_engine_cannot_enter_twice_and_stays_in(store: Store, other: Store) -> None:
    engine = Engine(store)

    with pytest.raises(EngineRunning):
        store.enter(nothing_heard)

    engine.commit(fence=1)
    with pytest.raises(EngineRunning):
        other.enter(nothing_heard)


def test_who_was_refused_may_still_enqueue_and_look(store: Store, other: Store) -> None:
    store.enter(nothing_heard)
    with pytest.raises(EngineRunning):
        other.enter(nothing_heard)

    number = put_one(other)

    assert all_jobs(other) == [number]


def test_the_next_engine_may_enter_when_the_one_before_has_left(store: Store, other: Store) -> None:
    store.enter(nothing_heard)
    store.leave()

    assert other.enter(nothing_heard).term == 2


def test_closing_is_leaving(store: Store, other: Store) -> None:
    store.enter(nothing_heard)
    store.close()

    assert other.enter(nothing_heard).term == 2


def test_leaving_without_having_entered_is_harmless(store: Store) -> None:
    store.leave()


def test_the_term_rises_each_time_also_after_reopening(open_store: Opener) -> None:
    terms = []
    for _ in range(3):
        store = open_store()
        terms.append(store.enter(nothing_heard).term)
        store.leave()
        terms.append(store.enter(nothing_heard).term)
        store.close()

    assert terms == [1, 2, 3, 4, 5, 6]


def test_an_engine_goes_on_where_the_last_one_stopped(store: Store, other: Store) -> None:
    put(store, *[job()] * 3)
    engine = Engine(store)
    mark = store.load_new("", 2)[1]
    engine.commit(fence=41, mark=mark)
    store.leave()

    assert other.enter(nothing_heard) == Brain(term=2, fence=41, mark=mark)


def test_marks_never_go_back(store: Store, other: Store) -> None:
    put(store, *[job()] * 3)
    engine, mark = Engine(store), mark_of(store)
    engine.commit(fence=41, mark=mark)
    engine.commit()
    store.leave()

    assert other.enter(nothing_heard)[1:3] == (41, mark)


# Stale engines


def test_an_engine_whose_term_is_over_changes_nothing(store: Store, other: Store) -> None:
    number = put_one(store, unique=unique("k"))
    old = Engine(store)
    store.leave()
    other.enter(nothing_heard)

    with pytest.raises(StaleBrain):
        old.commit(
            fence=9,
            mark=mark_of(store),
            moved=[moved(number)],
            granted=[granted(number)],
            completed=[(number, T0)],
            ended=[ended(number)],
            freed=[number],
            events=[event(number)],
            results=[(number, "1", T0)],
            gates=[("upstream", "x", "", "{}")],
            settings=[("cap", "x", "1", T0)],
            slots=[(1, "granted", 9, "x", "{}", T0, T0, T0 + 60, 1)],
            slot_totals=[("x", 1, 1, 0.5)],
            jobs=[job()],
        )

    assert all_jobs(store) == [number]
    seen = store.job(number)
    assert seen is not None
    assert (seen.state, seen.unique_key, seen.finished_at) == ("queued", "k", None)
    assert store.event_range() == (1, 0)
    assert (store.result(number), store.gates(), store.settings()) == (None, [], [])
    assert (store.slots(), store.slot_totals()) == ([], [])
    other.leave()
    assert other.enter(nothing_heard)[1:3] == (0, "")


def test_a_term_that_has_not_come_yet_is_as_stale(engine: Engine) -> None:
    with pytest.raises(StaleBrain):
        engine.store.commit(Batch(engine.brain.term + 1, fence=1))


# Commands


def test_commands_come_in_order(store: Store, other: Store) -> None:
    store.command("pause", "7", None, T0)
    other.command("cap", "x.com", {"cap": 3}, T0 + 1)
    store.command("pause", "8", [1], T0 + 2)

    first, second, third = store.commands(10)

    assert first[1:4] == (T0, "pause", "7")
    assert second[1:4] == (T0 + 1, "cap", "x.com")
    assert [json.loads(each.args) for each in (first, second, third)] == [None, {"cap": 3}, [1]]
    assert first.id < second.id < third.id
    assert store.commands(2) == [first, second]


def test_a_command_that_was_obeyed_is_forgotten(engine: Engine) -> None:
    store = engine.store
    for target in "abc":
        store.command("pause", target, None, T0)
    [first, second, third] = store.commands(10)

    engine.commit(obeyed=[first.id, third.id])

    assert store.commands(10) == [second]
    engine.commit(obeyed=[second.id])
    store.command("pause", "d", None, T0)
    [fourth] = store.commands(10)
    assert fourth.id > third.id > first.id


# Waking


def woken(store: Store) -> threading.Event:
    """Become the engine; what is returned is set when the store calls."""
    heard = threading.Event()
    store.enter(heard.set)
    heard.clear()
    return heard


def test_the_engine_hears_of_jobs_from_its_own_process(store: Store) -> None:
    heard = woken(store)

    put(store)

    assert heard.wait(WAIT_S)


def test_the_engine_hears_of_jobs_from_other_processes(store: Store, other: Store) -> None:
    heard = woken(store)

    put(other)

    assert heard.wait(WAIT_S)


def test_the_engine_hears_of_posted_jobs(store: Store, other: Store) -> None:
    heard = woken(store)

    other.post([job()], lambda *_: None)

    assert heard.wait(WAIT_S)


@pytest.mark.parametrize("own", [True, False])
def test_the_engine_hears_of_commands(store: Store, other: Store, own: bool) -> None:
    heard = woken(store)

    (store if own else other).command("pause", "7", None, T0)

    assert heard.wait(WAIT_S)


def test_the_engine_hears_again_and_again(store: Store, other: Store) -> None:
    heard = woken(store)

    for _ in range(5):
        put(other)
        assert heard.wait(WAIT_S)
        heard.clear()


def test_what_the_engine_hears_of_can_be_seen(store: Store, other: Store) -> None:
    seen: list[list[int]] = []
    heard = threading.Event()

    def look() -> None:
        seen.append(all_jobs(store))
        heard.set()

    store.enter(look)
    heard.clear()
    numbers = put(other)

    assert heard.wait(WAIT_S)
    assert seen[-1] == numbers


def test_the_next_engine_hears_when_the_one_before_has_left(store: Store, other: Store) -> None:
    woken(store)
    store.leave()
    heard = woken(other)

    put(store)

    assert heard.wait(WAIT_S)


# Versions


def test_the_version_stays_while_nothing_happens(store: Store) -> None:
    assert store.version() == store.version()


def test_looking_does_not_change_the_version(store: Store, other: Store) -> None:
    before = store.version()
    all_jobs(store)
    all_jobs(other)

    assert store.version() == before


def test_the_version_changes_with_every_commit(store: Store, other: Store) -> None:
    engine = Engine(store)
    versions = [store.version()]
    for act in (
        lambda: put(store),
        lambda: put(other),
        lambda: store.command("pause", "7", None, T0),
        lambda: engine.commit(fence=3),
    ):
        act()
        versions.append(store.version())

    assert all(before != after for before, after in pairwise(versions))


def test_the_version_is_the_same_in_every_thread(store: Store, other: Store) -> None:
    """So that an engine may look from one thread and compare in another."""
    before = store.version()
    put(other)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(store.version()))
    thread.start()
    thread.join()

    assert seen == [store.version()]
    assert seen != [before]


def test_the_version_changes_while_jobs_are_being_loaded(store: Store, other: Store) -> None:
    put(store, *[job()] * 3)
    loading = store.load_open(mark_of(store))
    next(loading)
    before = store.version()

    put(other)

    assert store.version() != before
    assert len(list(loading)) == 2
