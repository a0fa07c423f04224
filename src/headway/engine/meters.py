"""What the engine counts while it works, for whoever measures it.

The brain's thread writes, any thread reads, and nobody takes a lock: a write changes one number of
a list that is there already, and a reading is a copy. A reading may miss what is being counted at
that moment, but it never counts anything twice and never goes back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from headway.engine.tallies import Reckoning, Tallies

INF = float("inf")
MAX_NAMES = 200  # of types, lanes and upstreams each; what comes after them is counted as OTHER
OTHER = "other"

# Upper bounds in seconds. Waits and runs may take hours, commits take milliseconds.
LONG_BOUNDS_S = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
    1800.0, 3600.0,
)  # fmt: skip
SHORT_BOUNDS_S = (
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram as it was at one moment."""

    bounds_s: Sequence[float]
    counts: Sequence[int]  # one more than there are bounds: the last is for what is above them all
    sum_s: float

    @property
    def count(self) -> int:
        return sum(self.counts)


class Histogram:
    __slots__ = ("_bounds_s", "_counts", "_sum_s")

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self._sum_s = 0.0

    def add(self, seconds: float) -> int:
        """Returns where it belongs among the counts."""
        if not 0.0 <= seconds < INF:
            seconds = 0.0  # one wrong number would spoil the sum for ever
        place = bisect_left(self._bounds_s, seconds)
        self._counts[place] += 1
        self._sum_s += seconds
        return place

    def read(self) -> Distribution:
        return Distribution(self._bounds_s, tuple(self._counts), self._sum_s)


class _Ends:
    """How attempts of one type ended, and how long they ran."""

    __slots__ = ("by_event", "runs")

    def __init__(self) -> None:
        self.by_event: dict[str, int] = {}
        self.runs = Histogram(LONG_BOUNDS_S)


@dataclass(frozen=True, slots=True)
class Reading:
    """All meters as they were at one moment."""

    submitted: int
    turns: int
    lost_leases: int
    waits: dict[str, Distribution]  # by lane
    slot_waits: Distribution
    runs: dict[str, Distribution]  # by type
    commits: Distribution
    ended: dict[tuple[str, str], int]  # by type and event
    pushbacks: dict[str, int]  # by upstream
    online: dict[tuple[str, str], int]  # online calls by upstream and how they were answered

    @property
    def grants(self) -> int:
        return sum(waits.count for waits in self.waits.values())


class Meters:
    __slots__ = (
        "_commits",
        "_ends",
        "_lost",
        "_online",
        "_pushbacks",
        "_slot_waits",
        "_submitted",
        "_turns",
        "_waits",
        "places",
    )

    def __init__(self) -> None:
        self._submitted = 0
        self._turns = 0
        self._lost = 0
        self._waits: dict[str, Histogram] = {}
        self._slot_waits = Histogram(LONG_BOUNDS_S)
        self._ends: dict[str, _Ends] = {}
        self._pushbacks: dict[str, int] = {}
        self._online: dict[tuple[str, str], int] = {}
        self._commits = Histogram(SHORT_BOUNDS_S)
        self.places = Tallies(len(LONG_BOUNDS_S), MAX_NAMES, OTHER)

    # ------------------------------------------------------------------ from the brain's thread

    def submitted(self, jobs: int = 1) -> None:
        self._submitted += jobs

    def turned(self) -> None:
        self._turns += 1

    def committed(self, seconds: float) -> None:
        """A turn was sent and is committed; what lies between is its latency."""
        self._commits.add(seconds)

    def granted(self, lane: str, waited_s: float, upstream: str = "") -> None:
        waits = self._waits.get(lane)
        if waits is None:
            waits = self._new_lane(lane)
        place = self.places.at(lane, upstream)
        place.started(waits.add(waited_s))
        place.lane.waiting -= 1

    def slot_granted(self, waited_s: float, lane: str = "default", upstream: str = "") -> None:
        self.places.at(lane, upstream).started(self._slot_waits.add(waited_s))

    def lined_up(self, lane: str, jobs: int = 1) -> None:
        """So many more jobs wait in this lane; or fewer, if they left it without a grant."""
        self.places.lane(lane).waiting += jobs

    def ended(self, type: str, event: str, run_s: float | None) -> None:
        """An attempt, or with None a job that did not run, has come to its end."""
        ends = self._ends.get(type)
        if ends is None:
            ends = self._new_type(type)
        counts = ends.by_event
        try:
            counts[event] += 1
        except KeyError:
            _count(counts, event)
        if run_s is not None:
            ends.runs.add(run_s)

    def pushed_back(self, upstream: str) -> None:
        try:
            self._pushbacks[upstream] += 1
        except KeyError:
            _count(self._pushbacks, upstream)

    def online_ended(self, upstream: str, answer: str) -> None:
        """An online call, by its status, or by what became of it without one."""
        key = (upstream, answer)
        if key not in self._online and len(self._online) >= MAX_NAMES:
            key = (OTHER, answer)
        self._online[key] = self._online.get(key, 0) + 1

    def lost_lease(self) -> None:
        self._lost += 1

    def _new_lane(self, lane: str) -> Histogram:
        name = lane if len(self._waits) < MAX_NAMES else OTHER
        waits = self._waits.get(name)
        if waits is None:
            waits = self._waits[name] = Histogram(LONG_BOUNDS_S)
        return waits

    def _new_type(self, type: str) -> _Ends:
        name = type if len(self._ends) < MAX_NAMES else OTHER
        ends = self._ends.get(name)
        if ends is None:
            ends = self._ends[name] = _Ends()
        return ends

    # ------------------------------------------------------------------ from any thread

    def reckon(self) -> Reckoning:
        """Upstreams and lanes only, which is cheap enough to be done every other second."""
        return Reckoning(self._submitted, *self.places.read())

    def read(self) -> Reading:
        # A dict is copied in one step, while going through it could meet a new name.
        ends = self._ends.copy()
        return Reading(
            submitted=self._submitted,
            turns=self._turns,
            lost_leases=self._lost,
            waits={lane: waits.read() for lane, waits in self._waits.copy().items()},
            slot_waits=self._slot_waits.read(),
            runs={type: each.runs.read() for type, each in ends.items()},
            commits=self._commits.read(),
            ended={
                (type, str(event)): count
                for type, each in ends.items()
                for event, count in each.by_event.copy().items()
            },
            pushbacks=self._pushbacks.copy(),
            online=self._online.copy(),
        )


def _count(counts: dict[str, int], name: str) -> None:
    """The first of a name."""
    if len(counts) >= MAX_NAMES:
        name = OTHER
    counts[name] = counts.get(name, 0) + 1
