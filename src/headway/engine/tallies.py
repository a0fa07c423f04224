"""What has happened at each upstream and in each lane, counted while it happens.

Kept as meters are: the brain's thread writes, any thread reads, and nobody takes a lock. A lane and
an upstream are found together, so that a grant and an end cost one look into a dict.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

MAX_PLACES = 2_000  # pairs of a lane and an upstream that are remembered; then they are found anew


class Tallied(NamedTuple):
    """One lane or upstream as it was at one moment. All but `waiting` only grow."""

    completed: int
    failed: int  # attempts, whether they are tried again or not, and jobs that never ran
    pushbacks: int
    online: int  # online calls that went
    refused: int  # online calls that were refused here
    waiting: int  # jobs in line; of lanes only
    waits: tuple[int, ...]  # jobs and slots that started, by how long they had waited

    @property
    def started(self) -> int:
        return sum(self.waits)

    @property
    def rest(self) -> tuple[int, ...]:
        """The counts beside that, in this order."""
        return (self.completed, self.failed, self.pushbacks, self.online, self.refused)


class Reckoning(NamedTuple):
    """All of them at one moment. What is in no lane of these is counted as one more."""

    submitted: int
    lanes: dict[str, Tallied]
    upstreams: dict[str, Tallied]


class Tally:
    __slots__ = ("completed", "failed", "online", "pushbacks", "refused", "waiting", "waits")

    def __init__(self, bounds: int) -> None:
        self.completed = self.failed = self.pushbacks = 0
        self.online = self.refused = self.waiting = 0
        self.waits = [0] * (bounds + 1)

    def read(self) -> Tallied:
        return Tallied(
            self.completed, self.failed, self.pushbacks, self.online, self.refused,
            max(0, self.waiting), tuple(self.waits),
        )  # fmt: skip


class Place(NamedTuple):
    """An upstream as it is called from a lane: what happens there is counted at both."""

    lane: Tally
    upstream: Tally

    def started(self, bound: int) -> None:
        self.lane.waits[bound] += 1
        self.upstream.waits[bound] += 1

    def completed(self) -> None:
        self.lane.completed += 1
        self.upstream.completed += 1

    def failed(self) -> None:
        self.lane.failed += 1
        self.upstream.failed += 1

    def pushed_back(self) -> None:
        self.lane.pushbacks += 1
        self.upstream.pushbacks += 1

    def called_online(self) -> None:
        self.lane.online += 1
        self.upstream.online += 1

    def refused_online(self) -> None:
        self.lane.refused += 1
        self.upstream.refused += 1


class Tallies:
    def __init__(self, bounds: int, most: int, other: str) -> None:
        self._bounds = bounds  # of waits
        self._most, self._other = most, other  # names of each kind; what is counted for the rest
        self._lanes: dict[str, Tally] = {}
        self._upstreams: dict[str, Tally] = {}
        self._places: dict[tuple[str, str], Place] = {}
        self._nowhere = Tally(bounds)  # the upstream of what calls none

    # ------------------------------------------------------------------ from the brain's thread

    def at(self, lane: str, upstream: str) -> Place:
        place = self._places.get((lane, upstream))
        return self._new_place(lane, upstream) if place is None else place

    def _new_place(self, lane: str, upstream: str) -> Place:
        if len(self._places) >= MAX_PLACES:
            self._places.clear()
        there = self._tally(self._upstreams, upstream) if upstream else self._nowhere
        place = self._places[lane, upstream] = Place(self.lane(lane), there)
        return place

    def lane(self, name: str) -> Tally:
        tally = self._lanes.get(name)
        return self._tally(self._lanes, name) if tally is None else tally

    def _tally(self, tallies: dict[str, Tally], name: str) -> Tally:
        if name not in tallies and len(tallies) >= self._most:
            name = self._other
        tally = tallies.get(name)
        if tally is None:
            tally = tallies[name] = Tally(self._bounds)
        return tally

    def forget(self, upstreams: Mapping[str, Tallied]) -> list[str]:
        """Make room for other names: forget those that are still as somebody has read them, so
        that nothing is lost. Returns which.
        """
        gone = []
        for name, seen in upstreams.items():
            tally = self._upstreams.get(name)
            if tally is not None and tally.read() == seen:
                del self._upstreams[name]
                gone.append(name)
        if gone:
            self._places.clear()
        return gone

    # ------------------------------------------------------------------ from any thread

    def read(self) -> tuple[dict[str, Tallied], dict[str, Tallied]]:
        """Lanes, and upstreams."""
        # A dict is copied in one step, while going through it could meet a new name.
        lanes, upstreams = self._lanes.copy(), self._upstreams.copy()
        return (
            {name: tally.read() for name, tally in lanes.items()},
            {name: tally.read() for name, tally in upstreams.items()},
        )
