"""Whose places are taken: workers that read the same queues are a crew, and what was sent takes a
place of one crew.

A worker of several queues has its places once, so a crew asks for jobs of all its queues together.
Where crews share a queue, the broker decides who gets a message. A job that runs with another crew
than the one it was sent for goes home to it: it takes a place there as soon as there is one, and
until then it keeps the one it has. What has no place, since the server was started anew or workers
have left, gets the first one that is free. So no queue has more outstanding than those who read it
have places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from headway.apps.celery.fleet import Member
from headway.engine.hands.demand import MAX_TYPES, Taker

MAX_NAMED = 100_000  # types that all crews name together; other workers name some, too

K = TypeVar("K")
Names = Mapping[str, Sequence[str]]  # types, by queue


class Crew:
    """`held`: fences of what takes its places. `taker`: it waits, or something is on its way."""

    __slots__ = ("held", "places", "queues", "taker", "types")

    def __init__(self, queues: frozenset[str]) -> None:
        self.queues = queues
        self.places = 0
        self.types: frozenset[str] = frozenset()
        self.held: dict[int, None] = {}
        self.taker: Taker | None = None

    def is_dealt(self) -> bool:
        """Something is on its way to it; how much, is known when it is there."""
        return self.taker is not None and not self.taker.left

    @property
    def free(self) -> int:
        """Below 1: there is no place."""
        taker = self.taker
        coming = taker.size if taker is not None and not taker.left else 0
        return self.places - len(self.held) - coming


class Seat:
    """Where a job counts, and who runs it. None: nobody knows, or nobody has a place."""

    __slots__ = ("crew", "home", "queue")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.crew: Crew | None = None
        self.home: Crew | None = None


class Crews:
    def __init__(self) -> None:
        self._crews: dict[frozenset[str], Crew] = {}
        self._crew_of: dict[str, Crew] = {}  # by worker
        self._names: Names = {}
        self._turn = 0
        self._is_short = False  # of names: they take turns
        self._seats: dict[int, Seat] = {}  # by fence
        self._standing: dict[str, dict[int, None]] = {}  # fences without a place, by queue
        self._away: dict[tuple[Crew, Crew], dict[int, None]] = {}  # counted here, and run there

    def __iter__(self) -> Iterator[Crew]:
        return iter(self._crews.values())

    # ------------------------------------------------------------------ who is there

    def form(self, members: Iterable[Member], names: Names) -> None:
        """The fleet, or what it carries, has changed. Queues of which nothing is carried make no
        difference: many a worker has one of its own.
        """
        self._names = names
        self._crew_of.clear()
        places: dict[Crew, int] = {}
        for member in members:
            queues = frozenset(each for each in member.queues if each in names)
            if queues:
                crew = self._crews.setdefault(queues, Crew(queues))
                self._crew_of[member.name] = crew
                places[crew] = places.get(crew, 0) + member.places
        for queues, crew in list(self._crews.items()):
            crew.places = places.get(crew, 0)
            while len(crew.held) > crew.places:
                self._send_away(next(reversed(crew.held)))
            if not crew.places and crew.taker is None:
                del self._crews[queues]
        self._name_types()

    def _send_away(self, fence: int) -> None:
        seat = self._seats[fence]
        self._rise(fence, seat)
        self._stand(fence, seat)

    def next_turn(self) -> None:
        """Whoever has more types than may be named at once asks for others now."""
        if self._is_short:
            self._turn += 1
            self._name_types()

    def _name_types(self) -> None:
        most = min(MAX_TYPES, max(MAX_NAMED // max(len(self._crews), 1), 1))
        self._is_short = False
        for crew in self._crews.values():
            names = [name for queue in sorted(crew.queues) for name in self._names.get(queue, ())]
            if len(names) > most:
                self._is_short = True
                first = self._turn * most % len(names)
                names = (names[first:] + names[:first])[:most]
            crew.types = frozenset(names)

    # ------------------------------------------------------------------ what takes places

    def put(self, fence: int, queue: str, crew: Crew | None = None) -> None:
        """It was sent for this crew, or nobody knows for whom."""
        seat = self._seats[fence] = Seat(queue)
        if crew is not None and crew.free > 0:
            self._sit(fence, seat, crew)
        else:
            self._stand(fence, seat)

    def leave(self, fence: int) -> None:
        """It is over."""
        seat = self._seats.pop(fence, None)
        if seat is not None:
            self._rise(fence, seat)

    def claimed(self, fence: int, worker: str) -> bool:
        """This worker runs it. True: a place has become free elsewhere."""
        seat, home = self._seats.get(fence), self._crew_of.get(worker)
        if seat is None or home is None or seat.home is home:
            return False
        crew = seat.crew
        if crew is None:
            seat.home = home
            return False
        self._rise(fence, seat)
        seat.home = home
        goes = crew is not home and home.free > 0
        self._sit(fence, seat, home if goes else crew)
        return goes

    def settle(self) -> None:
        """Before anything is asked for. Who goes home makes room for others."""
        while self._bring_home():
            pass
        for queue in list(self._standing):
            for fence in list(self._standing[queue]):
                seat = self._seats[fence]
                crew = self._with_room(seat)
                if crew is None:
                    break
                self._rise(fence, seat)
                self._sit(fence, seat, crew)

    def _bring_home(self) -> bool:
        for (_, home), fences in list(self._away.items()):
            if home.free > 0:
                fence = next(iter(fences))
                seat = self._seats[fence]
                self._rise(fence, seat)
                self._sit(fence, seat, home)
                return True
        return False

    def _with_room(self, seat: Seat) -> Crew | None:
        """Who runs it; else whoever can do the least besides, as for every job that is dealt."""
        if seat.home is not None and seat.home.free > 0:
            return seat.home
        crews = [each for each in self._crews.values()
                 if seat.queue in each.queues and each.free > 0]  # fmt: skip
        return min(crews, key=lambda each: (len(each.queues), -each.free), default=None)

    # ------------------------------------------------------------------ sitting and standing

    def _sit(self, fence: int, seat: Seat, crew: Crew) -> None:
        seat.crew = crew
        crew.held[fence] = None
        if seat.home is not None and seat.home is not crew:
            self._away.setdefault((crew, seat.home), {})[fence] = None

    def _stand(self, fence: int, seat: Seat) -> None:
        self._standing.setdefault(seat.queue, {})[fence] = None

    def _rise(self, fence: int, seat: Seat) -> None:
        """From its place, or from among those who have none."""
        crew, seat.crew = seat.crew, None
        if crew is None:
            _drop(self._standing, seat.queue, fence)
            return
        del crew.held[fence]
        if seat.home is not None and seat.home is not crew:
            _drop(self._away, (crew, seat.home), fence)


def _drop(kept: dict[K, dict[int, None]], key: K, fence: int) -> None:
    fences = kept[key]
    del fences[fence]
    if not fences:
        del kept[key]
