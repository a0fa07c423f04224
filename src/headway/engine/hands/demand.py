"""Who waits for work, and for work of which types.

Takers that name the same types stand in one crowd, first come first served. A job goes to the
smallest crowd that names its type, so that workers who can do less are used for what they can do;
crowds of one size take turns. No taker is ever dealt more than it asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush, heapreplace
from itertools import count

from headway.core.order import Peer
from headway.engine.hands import RemoteStop, RemoteWork

MAX_TAKERS = 10_000
MAX_TYPES = 1_000  # that one taker names
MAX_NAMES = 250_000  # types named by all crowds together
MAX_SIZE = 1_000
MAX_NAME = 500  # characters of a type or of a worker

Deliver = Callable[[list[RemoteWork], list[RemoteStop]], None]


class Taker:
    """A worker that asks for at most `size` jobs of these types; with 0 it only wants to hear what
    it must stop. `deliver` is called once, from the brain's thread, and must not block.
    """

    __slots__ = ("crowd", "deliver", "left", "size", "types", "worker")

    def __init__(self, worker: str, types: Iterable[str], size: int, deliver: Deliver) -> None:
        check_names(worker, names := list(types))
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MAX_SIZE:
            raise ValueError(f"size is a number of jobs from 0 to {MAX_SIZE}, not {size!r}")
        if size and not names:
            raise ValueError("a worker that asks for jobs must name the types that it can run")
        self.worker = worker
        self.types = frozenset(names)
        self.size = size
        self.deliver = deliver
        self.left = size  # what it may still be dealt
        self.crowd: Crowd | None = None


def check_names(worker: str, types: list[str]) -> None:
    if not isinstance(worker, str) or len(worker) > MAX_NAME:
        raise ValueError(f"a worker's name is text of at most {MAX_NAME} characters")
    if len(types) > MAX_TYPES:
        raise ValueError(f"a worker names at most {MAX_TYPES} types, not {len(types)}")
    for name in types:
        if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
            raise ValueError(f"a type is text of 1 to {MAX_NAME} characters, not {name!r}")


class Crowd(Peer):
    """The takers that name the same types."""

    __slots__ = ("demand", "line", "takers", "term", "types")

    def __init__(self, types: frozenset[str]) -> None:
        self.types = types
        self.takers = 0  # all that wait
        self.line: dict[Taker, None] = {}  # those that may be dealt something, first come first
        self.demand = 0  # jobs that they may still be dealt
        self.term = 0  # grows when there is no demand any more: what was noted before is void


class Demand:
    """`changed` hears of each type that is wanted now and was not, or the other way round."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self.takers: dict[Taker, None] = {}
        self.crowds: dict[frozenset[str], Crowd] = {}
        self._changed = changed
        self._named = 0
        self._turns = count()
        self._wanting: dict[str, int] = {}  # how many crowds with demand name a type
        # For each type: size of the crowd, its turn, its term, and itself.
        self._heaps: dict[str, list[tuple[int, int, int, Crowd]]] = {}

    def wants(self, type: str) -> bool:
        return type in self._wanting

    # ------------------------------------------------------------------ coming and going

    def join(self, taker: Taker) -> None:
        if len(self.takers) >= MAX_TAKERS:
            raise ValueError(f"{MAX_TAKERS} requests for work wait already; ask again later")
        crowd = self.crowds.get(taker.types)
        if crowd is None:
            if self._named + len(taker.types) > MAX_NAMES:
                raise ValueError("workers wait for too many different sets of types already; "
                                 "let those that can do the same name the same types")  # fmt: skip
            crowd = self.crowds[taker.types] = Crowd(taker.types)
            self._named += len(taker.types)
        self.takers[taker] = None
        taker.crowd = crowd
        crowd.takers += 1
        if taker.left:
            crowd.line[taker] = None
            crowd.demand += taker.left
            if crowd.demand == taker.left:
                self._begin(crowd)

    def leave(self, taker: Taker) -> bool:
        """False: it does not wait any more."""
        if taker not in self.takers:
            return False
        del self.takers[taker]
        crowd = taker.crowd
        assert crowd is not None
        self._fill(crowd, taker, taker.left)
        crowd.takers -= 1
        if not crowd.takers:
            del self.crowds[crowd.types]
            self._named -= len(crowd.types)
        return True

    def deal(self, type: str) -> Taker | None:
        """The taker that gets the next job of this type."""
        heap = self._heaps.get(type, [])
        while heap:
            size, _, term, crowd = heap[0]
            if term != crowd.term:
                heappop(heap)
                continue
            heapreplace(heap, (size, next(self._turns), term, crowd))
            taker = next(iter(crowd.line))
            self._fill(crowd, taker, 1)
            return taker
        return None

    # ------------------------------------------------------------------ what is wanted

    def _fill(self, crowd: Crowd, taker: Taker, jobs: int) -> None:
        if not jobs:
            return
        taker.left -= jobs
        crowd.demand -= jobs
        if not taker.left:
            del crowd.line[taker]
        if not crowd.demand:
            self._end(crowd)

    def _begin(self, crowd: Crowd) -> None:
        size, wanting = len(crowd.types), self._wanting
        turn = next(self._turns)
        for name in crowd.types:
            before = wanting.get(name, 0)
            wanting[name] = before + 1
            heap = self._heaps.setdefault(name, [])
            if len(heap) > 2 * before + 8:  # most of it is void
                heap[:] = [entry for entry in heap if entry[2] == entry[3].term]
                heapify(heap)
            heappush(heap, (size, turn, crowd.term, crowd))
            if not before:
                self._changed(name)

    def _end(self, crowd: Crowd) -> None:
        crowd.term += 1
        for name in crowd.types:
            left = self._wanting[name] - 1
            if left:
                self._wanting[name] = left
            else:
                del self._wanting[name], self._heaps[name]
                self._changed(name)
