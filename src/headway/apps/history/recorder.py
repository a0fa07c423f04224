"""All series: what was read every other second comes in, and what charts show goes out.

Plain memory without a clock, a store or an engine. There is room for so many upstreams and lanes;
when another one comes, the one that was idle for longest makes way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import sub
from typing import Any, Literal, NamedTuple

from headway.apps.history.bucket import (
    COUNTS,
    NO_COUNTS,
    NO_WAITS,
    VALUES,
    Bucket,
    Gauges,
    Ring,
)
from headway.engine.tallies import Reckoning, Tallied

Kind = Literal["all", "lane", "upstream"]
SpanName = Literal["live", "1h", "24h"]
Subject = tuple[str, str]  # the kind, and a name
Row = tuple[int, int, dict[str, Any]]  # the step, the number of a bucket, and what is in it

ALL: Subject = ("all", "")
SAMPLE_S = 2.0
LAG_S = 3.0  # what is older than that has been looked at for certain
LONGEST_GAP_S = 10.0  # between two looks; after a longer one nobody knows what was between
SET_BACK_S = 60.0  # a clock that was set back by less stands still until it has caught up
BUSY_S = 30.0  # who was busy within that time does not make way
STALE_S = 60.0
MANY_TALLIES = 150  # of upstreams; then those that are stale are forgotten
MOST_STALE = 50  # at once
MOST_UNSAVED = 600  # buckets, while there is no store to keep them

HIDDEN = {
    "all": {"limit_rpm", "limit_concurrency", "closed"},
    "lane": {"submitted", "limit_rpm", "limit_concurrency", "closed"},
    "upstream": {"submitted"},
}


class Span(NamedTuple):
    name: SpanName
    step_s: int
    length: int
    kept: bool  # over restarts

    def number(self, at: float) -> int:
        return int(at // self.step_s)


SPANS = (Span("live", 2, 150, False), Span("1h", 15, 240, True), Span("24h", 300, 288, True))
BY_NAME = {span.name: span for span in SPANS}


class Look(NamedTuple):
    """What was to be seen of gates at one moment."""

    running: int
    lanes: Mapping[str, int]  # how many run there
    upstreams: Mapping[str, Gauges]


class Track:
    """The series of one subject."""

    __slots__ = ("moved_at", "rings")

    def __init__(self) -> None:
        self.rings = tuple(Ring(span.length) for span in SPANS)
        self.moved_at = -math.inf


class Stretch(NamedTuple):
    """The time between two readings."""

    seconds: float
    seen_all: bool  # it was no longer than it should be


class Moved(NamedTuple):
    """What has happened between two readings."""

    counts: Sequence[int]  # in the order of COUNTS
    waits: Sequence[int]


class Recorder:
    def __init__(self, most_upstreams: int = 200, most_lanes: int = 100) -> None:
        self._most = {"upstream": most_upstreams, "lane": most_lanes, "all": 1}
        self._tracks: dict[Subject, Track] = {ALL: Track()}
        self._last = Reckoning(0, {}, {})
        self._at: float | None = None
        self._numbers = [-1] * len(SPANS)  # of the buckets that are open
        self._finished: dict[tuple[int, int], dict[str, Any]] = {}  # and not stored yet

    # ------------------------------------------------------------------ coming in

    def record(self, now: float, reading: Reckoning, gates: Look | None) -> None:
        """What was counted up to now, since the start of the engine; and gates as they are now, or
        None if nobody could look.
        """
        last, at = self._at, now
        if last is not None and last - SET_BACK_S < now < last:
            at = last
        gap_s = math.inf if last is None or at < last else at - last
        seen_all = gap_s <= LONGEST_GAP_S
        # The middle of the time that it is about, since looks do not come to the very moment.
        self._turn_to(at - gap_s / 2 if seen_all else at)
        self._at = at
        stretch = Stretch(max(gap_s, 0.001) if seen_all else SAMPLE_S, seen_all)
        moved = self._moved(reading)
        self._last = reading
        self._record_all(reading, moved, gates, stretch)
        self._follow(self._active(moved, reading, gates), at)
        for subject, track in self._tracks.items():
            if subject != ALL:
                gauges = _gauges(subject, reading, gates)
                self._add(track, moved.get(subject), gauges, stretch)

    def _moved(self, reading: Reckoning) -> dict[Subject, Moved]:
        found: dict[Subject, Moved] = {}
        for kind, before, after in (
            ("lane", self._last.lanes, reading.lanes),
            ("upstream", self._last.upstreams, reading.upstreams),
        ):
            for name, tallied in after.items():
                moved = _since(before.get(name), tallied)
                if moved is not None:
                    found[kind, name] = moved
        submitted = reading.submitted - self._last.submitted
        total = _total(
            [each for (kind, _), each in found.items() if kind == "lane"],
            reading.submitted if submitted < 0 else submitted,
        )
        return found if total is None else {**found, ALL: total}

    def _active(
        self, moved: Mapping[Subject, Moved], reading: Reckoning, gates: Look | None
    ) -> set[Subject]:
        """Those where something happens, or somebody waits."""
        found = set(moved)
        found |= {("lane", name) for name, each in reading.lanes.items() if each.waiting}
        if gates is not None:
            found |= {("lane", name) for name, running in gates.lanes.items() if running}
            found |= {("upstream", name) for name, seen in gates.upstreams.items()
                      if seen.running or seen.waiting}  # fmt: skip
        return found

    def _follow(self, active: set[Subject], at: float) -> None:
        """First those that are known, so that none of them makes way for another."""
        strange: list[Subject] = []
        for subject in active:
            track = self._tracks.get(subject)
            if track is None:
                strange.append(subject)
            else:
                track.moved_at = at
        full: set[str] = set()  # kinds that have no room for others
        for subject in sorted(strange):
            if subject[0] not in full and not self._found_room(subject, at):
                full.add(subject[0])

    def _record_all(
        self,
        reading: Reckoning,
        moved: Mapping[Subject, Moved],
        gates: Look | None,
        stretch: Stretch,
    ) -> None:
        waiting = sum(each.waiting for each in reading.lanes.values())
        gauges = Gauges(None if gates is None else gates.running, waiting)
        self._add(self._tracks[ALL], moved.get(ALL), gauges, stretch)

    def _add(self, track: Track, moved: Moved | None, gauges: Gauges, stretch: Stretch) -> None:
        for ring, number in zip(track.rings, self._numbers, strict=True):
            bucket = ring.at(number, seen_all=stretch.seen_all)
            if moved is not None:
                bucket.add(moved.counts, moved.waits)
            bucket.see(gauges, stretch.seconds)

    def _turn_to(self, at: float) -> None:
        """Put aside what is finished, for whoever stores it."""
        for place, span in enumerate(SPANS):
            number, before = span.number(at), self._numbers[place]
            if number != before:
                self._numbers[place] = number
                if span.kept and before >= 0:
                    self._finished[span.step_s, before] = self._dump(place, before)
        while len(self._finished) > MOST_UNSAVED:
            del self._finished[next(iter(self._finished))]

    # ------------------------------------------------------------------ who is looked at

    def names(self, kind: Kind) -> list[str]:
        return [name for each, name in self._tracks if each == kind]

    def _found_room(self, subject: Subject, at: float) -> bool:
        """False: there is none, for all others are busy."""
        kind = subject[0]
        others = [each for each in self._tracks if each[0] == kind]
        if len(others) >= self._most[kind]:
            idlest = min(others, key=lambda each: self._tracks[each].moved_at)
            if self._tracks[idlest].moved_at > at - BUSY_S:
                return False
            del self._tracks[idlest]
        self._tracks[subject] = track = Track()
        track.moved_at = at
        return True

    def stale(self, reading: Reckoning) -> dict[str, Tallied]:
        """Upstreams that need not be counted any more, so that there is room to count others."""
        if len(reading.upstreams) < MANY_TALLIES or self._at is None:
            return {}
        idle: list[tuple[float, str]] = []
        for name, tallied in reading.upstreams.items():
            track = self._tracks.get(("upstream", name))
            moved_at = -math.inf if track is None else track.moved_at
            if moved_at < self._at - STALE_S and self._last.upstreams.get(name) == tallied:
                idle.append((moved_at, name))
        return {name: reading.upstreams[name] for _, name in sorted(idle)[:MOST_STALE]}

    def forgotten(self, names: Iterable[str]) -> None:
        """These are counted from nothing if they come again."""
        for name in names:
            self._last.upstreams.pop(name, None)

    # ------------------------------------------------------------------ going out

    def read(self, span_name: SpanName, subject: Subject, now: float) -> dict[str, Any]:
        """The series up to now. The last bucket is the one in which it was three seconds ago: with
        `live` it is finished, with the others most often not.
        """
        place, span = next(
            (place, span) for place, span in enumerate(SPANS) if span.name == span_name
        )
        last = span.number(now - LAG_S)
        first = last - span.length + 1
        track = self._tracks.get(subject)
        rows = [None] * span.length if track is None else track.rings[place].read(first, last)
        series: dict[str, list[float | None]] = {}
        for column, name in enumerate(VALUES):
            if name not in HIDDEN[subject[0]]:
                whole = name in COUNTS
                series[name] = [None if row is None else _shown(row[column], whole) for row in rows]
        return {
            "step_s": span.step_s,
            "start": float(first * span.step_s),
            "end": float((last + 1) * span.step_s),
            "series": series,
        }

    # ------------------------------------------------------------------ memory

    def unsaved(self) -> list[Row]:
        """What is finished, and what is open as far as it is."""
        rows = [(step_s, number, each) for (step_s, number), each in self._finished.items()]
        for place, span in enumerate(SPANS):
            if span.kept and self._numbers[place] >= 0:
                number = self._numbers[place]
                rows.append((span.step_s, number, self._dump(place, number)))
        return rows

    def saved(self, rows: Iterable[Row]) -> None:
        for step_s, number, each in rows:
            if self._finished.get((step_s, number)) is each:
                del self._finished[step_s, number]

    def _dump(self, place: int, number: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for (kind, name), track in self._tracks.items():
            bucket = track.rings[place].open
            if bucket is not None and bucket.number == number:
                found[f"{kind}:{name}"] = bucket.dump()
        return found

    def load(self, rows: Iterable[Row], now: float) -> None:
        """What was stored before a restart, the newest first."""
        places = {span.step_s: place for place, span in enumerate(SPANS) if span.kept}
        for step_s, number, found in rows:
            place = places.get(step_s)
            if place is None:
                continue
            newest = SPANS[place].number(now)
            if not newest - SPANS[place].length <= number <= newest:
                continue
            for label, dumped in found.items():
                kind, _, name = label.partition(":")
                if kind in self._most:
                    bucket = Bucket.load(number, dumped)
                    self._take_back((kind, name), place, bucket, is_open=number == newest)

    def _take_back(self, subject: Subject, place: int, bucket: Bucket, *, is_open: bool) -> None:
        track = self._tracks.get(subject)
        if track is None:
            if sum(1 for kind, _ in self._tracks if kind == subject[0]) >= self._most[subject[0]]:
                return
            track = self._tracks[subject] = Track()
        if any(bucket.counts):
            track.moved_at = max(track.moved_at, float(bucket.number * SPANS[place].step_s))
        if is_open:
            track.rings[place].open = bucket
        else:
            track.rings[place].put(bucket.number, bucket.values())


def _gauges(subject: Subject, reading: Reckoning, gates: Look | None) -> Gauges:
    kind, name = subject
    if kind == "upstream":
        return Gauges() if gates is None else gates.upstreams.get(name, Gauges())
    tallied = reading.lanes.get(name)
    running = None if gates is None else gates.lanes.get(name, 0)
    return Gauges(running, 0 if tallied is None else tallied.waiting)


def _since(before: Tallied | None, after: Tallied) -> Moved | None:
    """None: nothing has happened. A count that is smaller than before began anew."""
    if after == before:
        return None
    rest, waits = after.rest, after.waits
    if before is not None:
        more_rest = tuple(map(sub, rest, before.rest))
        more_waits = tuple(map(sub, waits, before.waits))
        if min(more_rest) >= 0 and min(more_waits) >= 0:
            rest, waits = more_rest, more_waits
    counts = (sum(waits), *rest, 0)
    return Moved(counts, waits) if any(counts) else None


def _total(moves: Sequence[Moved], submitted: int) -> Moved | None:
    if not moves:
        return Moved((*NO_COUNTS[:-1], submitted), NO_WAITS) if submitted else None
    counts = [sum(each) for each in zip(*(move.counts for move in moves), strict=True)]
    waits = [sum(each) for each in zip(*(move.waits for move in moves), strict=True)]
    return Moved((*counts[:-1], submitted), waits)


def _shown(value: float, whole: bool) -> float | None:
    if math.isnan(value):
        return None
    return round(value) if whole else round(value, 4)
