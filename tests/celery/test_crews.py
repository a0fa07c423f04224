"""A worker of several queues has its places once, and those who share a queue share its jobs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from headway import App
from headway.apps.celery import crews
from headway.engine.hands import RemoteWork
from headway.engine.hands.demand import Taker
from tests.celery.carrying import Carrying

X, Y, Z = "visit_x", "visit_y", "visit_z"
QUEUES = {X: "x", Y: "y", Z: "z"}


@pytest.fixture
def carrying(app: App) -> Carrying:
    return Carrying(app, types=QUEUES)


def types_of(works: Sequence[RemoteWork]) -> list[str]:
    return sorted(work.type for work in works)


def test_a_worker_of_two_queues_gets_no_more_than_its_places(carrying: Carrying) -> None:
    with carrying.world:
        carrying.put(5, type=X)
        carrying.put(5, type=Y)
        carrying.here(2, queues=["x", "y"])
        works = carrying.works()
        assert len(works) == 2
        for work in works:
            carrying.claim(work, member="a")
            carrying.complete(work)
            assert len(carrying.works()) == 1


def test_a_queue_without_jobs_keeps_no_places_from_the_other(carrying: Carrying) -> None:
    with carrying.world:
        carrying.here(2, queues=["x", "y"])
        carrying.put(3, type=Y)
        works = carrying.works()
        assert types_of(works) == [Y, Y]
        carrying.put(1, type=X)
        carrying.complete(works[0])
        carrying.complete(works[1])
        assert types_of(carrying.works()) == [X, Y]


def test_each_message_goes_to_the_queue_of_its_type(carrying: Carrying) -> None:
    with carrying.world:
        carrying.put(1, type=X)
        carrying.put(1, type=Y)
        carrying.here(2, queues=["x", "y"])
        sent = {parcel.work.type: parcel.options["routing_key"]  # type: ignore[union-attr]
                for parcel in carrying.parcels}  # fmt: skip
        assert sent == {X: "x", Y: "y"}
        assert {queue: len(held) for queue, held in carrying.courier.carried.items()} == {
            "x": 1, "y": 1,
        }  # fmt: skip


def test_crews_that_share_a_queue_get_the_places_of_both(carrying: Carrying) -> None:
    with carrying.world:
        carrying.put(9, type=Y)
        carrying.here(2, "both", ["x", "y"])
        carrying.here(1, "one", ["y"])
        assert len(carrying.works()) == 3
        carrying.put(9, type=X)
        assert carrying.works() == []


def test_whoever_can_do_less_is_used_for_what_it_can_do(carrying: Carrying) -> None:
    with carrying.world:
        carrying.here(1, "both", ["x", "y"])
        carrying.here(1, "one", ["y"])
        carrying.put(1, type=Y)
        carrying.put(1, type=X)
        assert types_of(carrying.works()) == [X, Y]


def test_a_job_counts_where_it_runs(carrying: Carrying) -> None:
    """It was sent for the one worker, and the broker has given it to the other."""
    with carrying.world:
        carrying.here(1, "one", ["y"])
        carrying.put(1, type=Y)
        [work] = carrying.works()
        carrying.here(1, "both", ["x", "y"])
        carrying.put(1, type=X)
        [other] = carrying.works()
        carrying.complete(other)
        carrying.claim(work, member="both")
        carrying.put(1, type=X)
        assert carrying.works() == [], "its only place is taken"
        carrying.put(1, type=Y)
        assert types_of(carrying.works()) == [Y], "and the other one is free"


def test_a_job_that_runs_where_there_is_no_place_goes_there_when_there_is(
    carrying: Carrying,
) -> None:
    with carrying.world:
        carrying.here(1, "one", ["y"])
        carrying.put(1, type=Y)
        [work] = carrying.works()
        carrying.here(1, "both", ["x", "y"])
        carrying.put(2, type=X)
        [other] = carrying.works()
        carrying.claim(work, member="both")
        carrying.put(1, type=Y)
        assert carrying.works() == [], "two places, and two are outstanding"
        carrying.complete(other)
        assert types_of(carrying.works()) == [Y], "x waits for the worker that runs something else"
        carrying.complete(work)
        assert types_of(carrying.works()) == [X]


def test_two_that_have_each_others_jobs_both_go_home(carrying: Carrying) -> None:
    with carrying.world:
        carrying.here(1, "one", ["y"])
        carrying.put(1, type=Y)
        [first] = carrying.works()
        carrying.here(1, "both", ["x", "y"])
        carrying.put(1, type=Y)
        [second] = carrying.works()
        carrying.claim(first, member="both")
        carrying.claim(second, member="one")
        carrying.put(1, type=X)
        carrying.complete(second)
        assert carrying.works() == [], "it was the place for y that became free"
        carrying.complete(first)
        assert types_of(carrying.works()) == [X]


def test_places_that_fall_are_not_filled_and_those_that_rise_are(carrying: Carrying) -> None:
    with carrying.world:
        carrying.put(20, type=X)
        carrying.here(4, queues=["x", "y"])
        works = carrying.works()
        assert len(works) == 4
        carrying.here(2, queues=["x", "y"])
        carrying.here(1, "b", ["x"])
        assert carrying.works() == [], "the new place is for one of those that were sent"
        carrying.complete(works.pop())
        assert carrying.works() == []
        carrying.complete(works.pop())
        works += carrying.works()
        assert len(works) == 3
        carrying.here(3, queues=["x", "y"])
        works += carrying.works()
        assert len(works) == 4


def test_what_was_held_before_a_restart_takes_a_place_of_whoever_reads_its_queue(
    carrying: Carrying,
) -> None:
    with carrying.world:
        carrying.put(9, type=Y)
        carrying.here(3, queues=["y"])
        held = carrying.works()
        carrying.world.crash()
        carrying.courier = carrying._courier()
        carrying.world.restart()
        carrying.here(2, "other", ["x"])
        carrying.here(1, queues=["y"])
        assert carrying.works() == []
        carrying.here(3, "both", ["x", "y"])
        assert len(carrying.works()) == 1, "four places, and three were held"
        carrying.complete(held[0])
        assert len(carrying.works()) == 1


def test_more_types_than_can_be_named_at_once_take_turns(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crews, "MAX_TYPES", 2)
    carrying = Carrying(app, types=QUEUES)
    with carrying.world:
        carrying.here(5, queues=["x", "y", "z"])
        for name in QUEUES:
            carrying.put(1, type=name)
        assert len(carrying.works()) == 2
        carrying.pass_time(1)
        assert len(carrying.works()) == 1


def test_what_is_on_its_way_to_a_crew_takes_places_already() -> None:
    crew = crews.Crew(frozenset("x"))
    crew.places = 3
    crew.taker = Taker("celery", [X], 2, lambda *_: None)
    assert (crew.free, crew.is_dealt()) == (3, False)
    crew.taker.left = 0  # how much of it was dealt is known when it is there
    assert (crew.free, crew.is_dealt()) == (1, True)


class Fleet:
    """Workers that get what a broker gives them, which is anybody's guess."""

    def __init__(self, carrying: Carrying, seed: int) -> None:
        self.rng = random.Random(seed)
        self.carrying = carrying
        self.workers: dict[str, tuple[list[str], int]] = {}
        self.running: dict[str, list[RemoteWork]] = {}
        self.sent: list[RemoteWork] = []
        self.done = 0

    def come(self, name: str) -> None:
        queues = self.rng.sample(["x", "y", "z"], self.rng.randint(1, 3))
        self.workers[name] = queues, self.rng.randint(1, 4)
        self.running[name] = []
        self.carrying.here(self.workers[name][1], name, queues)

    def begin(self) -> None:
        name = self.rng.choice(list(self.workers))
        queues, places = self.workers[name]
        found = [work for work in self.sent if QUEUES[work.type] in queues]
        if found and len(self.running[name]) < places:
            work = self.rng.choice(found)
            self.sent.remove(work)
            self.carrying.claim(work, member=name)
            self.running[name].append(work)

    def end(self) -> None:
        name = self.rng.choice(list(self.workers))
        if self.running[name]:
            self.carrying.complete(self.running[name].pop())
            self.done += 1

    def check(self) -> None:
        """For queues alone and together."""
        self.sent += self.carrying.works()
        carried = self.carrying.courier.carried
        for count in (1, 2, 3):
            for queues in combinations("xyz", count):
                places = sum(many for read, many in self.workers.values() if {*read} & {*queues})
                assert sum(len(carried.get(queue, ())) for queue in queues) <= places


@pytest.mark.parametrize("seed", range(8))
def test_no_queues_have_more_outstanding_than_places_whoever_gets_the_messages(
    app: App, seed: int
) -> None:
    carrying = Carrying(app, types=QUEUES)
    with carrying.world:
        fleet = Fleet(carrying, seed)
        for name in QUEUES:
            carrying.put(20, type=name)
        carrying.here(1, "all", ["x", "y", "z"])
        fleet.workers["all"], fleet.running["all"] = (["x", "y", "z"], 1), []
        for name in "abc":
            fleet.come(name)
            fleet.check()
        for _ in range(2_000):
            fleet.rng.choice((fleet.begin, fleet.end))()
            fleet.check()
            if fleet.done == 60:
                break
        assert fleet.done == 60
