"""What Prometheus reads: the engine's meters, and what is asked of the server at each scrape.

A source that fails leaves its metrics out and is counted; the rest of the page stays true. Label
values come from users, so there are only so many of them, they are made safe, and none is there
twice: one bad line would make Prometheus refuse the whole page.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.utils import floatToGoString

from headway import __version__
from headway.engine.meters import MAX_NAMES, OTHER, Distribution, Meters, Reading
from headway.net.redaction import redact

logger = logging.getLogger("headway")

MAX_GATES = 2_000
MAX_UPSTREAMS = 100  # whose overshoot is told apart
MAX_LABEL = 200  # characters
OPEN_METRICS = "application/openmetrics-text"


class GateReading(NamedTuple):
    """A gate as it is now."""

    kind: str
    name: str
    leases: int
    closed_s: float  # until it opens; 0 when it is open, infinity while it is paused
    limits: Mapping[str, float]  # by where they come from: "declared", "learned"
    rates: Mapping[str, float] = {}  # that were learned, by unit: "rpm", "tpm"


class SlotsReading(NamedTuple):
    """Slots as they are now."""

    sessions: Mapping[tuple[str, str], int]  # by kind and state
    events: Mapping[str, int]  # since the start
    overshoot: Iterable[tuple[str, int, int, float]]  # since ever; the worst upstreams first


class Counts(NamedTuple):
    """Something that an application counts: a name, what it is, labels, and a number for each of
    their values.
    """

    name: str
    about: str
    labels: tuple[str, ...]
    counts: Mapping[tuple[str, ...], float]
    now: bool = False  # how many there are at this moment, and not how many there ever were


CountsOf = Callable[[], Iterable[Counts]]


class Sources(Protocol):
    """Where the numbers come from that nobody counts. Called from any thread, at each scrape."""

    def jobs(self) -> Iterable[tuple[str, str, int]]:
        """(lane, state, how many) of all that have not ended, and of what else is counted."""

    def gates(self) -> Iterable[GateReading]: ...

    def slots(self) -> SlotsReading: ...

    def sse_clients(self) -> int: ...

    def takers_waiting(self) -> int:
        """Workers that wait for something to do."""

    def last_event(self) -> int: ...

    def store_up(self) -> bool: ...


class Exposition:
    """The page of metrics. `render` may be called from any thread."""

    def __init__(
        self, meters: Meters, sources: Sources, more: Mapping[str, CountsOf] | None = None
    ) -> None:
        """`more`: what applications count, by their names."""
        self._meters = meters
        self._sources = sources
        self._more = more or {}
        self._lock = threading.Lock()
        self._errors: dict[str, int] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        for each in (ProcessCollector, PlatformCollector, GCCollector):
            each(registry=self._registry)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The page and its content type: OpenMetrics for those who ask for it."""
        with self._lock:
            if _wants_open_metrics(accept):
                page: bytes = openmetrics.generate_latest(self._registry)  # type: ignore[no-untyped-call]
                return page, openmetrics.CONTENT_TYPE_LATEST
            return generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        yield InfoMetricFamily("headway_build", "The Headway that runs.", {"version": __version__})
        sources = self._sources
        yield from self._tried("meters", lambda: _metered(self._meters.read()))
        yield from self._tried("jobs", lambda: [_jobs(sources.jobs())])
        yield from self._tried("gates", lambda: _gates(sources.gates()))
        yield from self._tried("slots", lambda: _slots(sources.slots()))
        for application, counts in self._more.items():
            yield from self._tried(application, partial(_counted, counts))
        for name, about, read in (
            ("sse_clients", "Clients that follow the live events.", sources.sse_clients),
            ("takers_waiting", "Workers that wait for jobs.", sources.takers_waiting),
            ("events_last", "The number of the last event in the trail.", sources.last_event),
            ("store_up", "1 while the store can be used, else 0.", sources.store_up),
        ):
            yield from self._tried(name, partial(_one_gauge, name, about, read))
        errors = CounterMetricFamily(
            "headway_scrape_errors",
            "Sources that could not be read for this page.",
            labels=["source"],
        )
        for name, count in self._errors.items():
            errors.add_metric([name], count)
        yield errors

    def _tried(self, source: str, make: Callable[[], list[Metric]]) -> list[Metric]:
        try:
            return make()
        except Exception:
            self._errors[source] = self._errors.get(source, 0) + 1
            if self._errors[source] == 1:  # a page is asked for every few seconds, for ever
                logger.exception("the metrics of %s cannot be read, and are left out", source)
            return []


def _wants_open_metrics(accept: str) -> bool:
    for kind in accept.lower().split(","):
        media, *settings = (part.strip() for part in kind.split(";"))
        if media == OPEN_METRICS:
            return not any(each.replace(" ", "") in ("q=0", "q=0.0") for each in settings)
    return False


# ---------------------------------------------------------------------- from the meters


def _metered(reading: Reading) -> list[Metric]:
    return [
        _total("jobs_submitted", "Jobs that were taken in.", reading.submitted),
        _total("grants", "Permits that were granted.", reading.grants),
        _totals("ended", "Attempts, and jobs that never ran, by how they ended.",
                ("type", "outcome"), reading.ended),
        _totals("pushbacks", "Answers by which an upstream asked to be left alone.", ("upstream",),
                {(name,): count for name, count in reading.pushbacks.items()}),
        _totals("online_calls", "Online calls by how they were answered.", ("upstream", "answer"),
                reading.online),
        _total("lost_leases", "Leases that ended because nobody renewed them.",
               reading.lost_leases),
        _total("turns", "Turns of the engine, each with at most one commit.", reading.turns),
        _histogram("wait_seconds", "Time from queued to granted.", "lane", reading.waits),
        _histogram("slot_wait_seconds", "Time from asking for a slot to its grant.", None,
                   {"": reading.slot_waits}),
        _histogram("run_seconds", "Time from granted to the end of the attempt.", "type",
                   reading.runs),
        _histogram("commit_seconds", "Time that the store takes to commit a turn.", None,
                   {"": reading.commits}),
    ]  # fmt: skip


def _counted(counts: CountsOf) -> list[Metric]:
    return [_totals(*each) for each in counts()]


def _total(name: str, about: str, count: float) -> Metric:
    return CounterMetricFamily(f"headway_{name}", about, value=count)


def _totals(
    name: str, about: str, labels: tuple[str, ...], counts: Mapping[Any, float], now: bool = False
) -> Metric:
    kind = GaugeMetricFamily if now else CounterMetricFamily
    family = kind(f"headway_{name}", about, labels=labels)
    merged: dict[tuple[str, ...], float] = {}
    for values, count in counts.items():
        safe = tuple(_label(value) for value in values)
        merged[safe] = merged.get(safe, 0) + count
    for safe, count in merged.items():
        family.add_metric(safe, count)
    return family


def _histogram(
    name: str, about: str, label: str | None, distributions: Mapping[str, Distribution]
) -> Metric:
    family = HistogramMetricFamily(
        f"headway_{name}", about, labels=() if label is None else (label,)
    )
    for value, distribution in _merged(distributions).items():
        bounds = [*map(floatToGoString, distribution.bounds_s), "+Inf"]
        buckets = list(zip(bounds, accumulate(distribution.counts), strict=True))
        family.add_metric([] if label is None else [value], buckets, distribution.sum_s)
    return family


def _merged(distributions: Mapping[str, Distribution]) -> dict[str, Distribution]:
    merged: dict[str, Distribution] = {}
    for value, each in distributions.items():
        safe = _label(value)
        known = merged.get(safe)
        if known is None:
            merged[safe] = each
        else:  # two names that look the same once they are safe
            counts = [a + b for a, b in zip(known.counts, each.counts, strict=True)]
            merged[safe] = Distribution(each.bounds_s, counts, known.sum_s + each.sum_s)
    return merged


# ---------------------------------------------------------------------- from the sources


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"headway_{name}", about, value=value)


def _one_gauge(name: str, about: str, read: Callable[[], float]) -> list[Metric]:
    return [_gauge(name, about, float(read()))]


def _jobs(rows: Iterable[tuple[str, str, int]]) -> Metric:
    counts: dict[tuple[str, str], float] = {}
    lanes: set[str] = set()
    for lane, state, count in rows:
        if len(lanes) < MAX_NAMES:
            lanes.add(lane)
        safe = (_label(lane) if lane in lanes else OTHER, _label(state))
        counts[safe] = counts.get(safe, 0.0) + float(count)
    family = GaugeMetricFamily("headway_jobs", "Jobs by lane and state.", labels=("lane", "state"))
    for safe, total in counts.items():
        family.add_metric(safe, total)
    return family


def _gates(readings: Iterable[GateReading]) -> list[Metric]:
    gate = ("kind", "name")
    limit = GaugeMetricFamily(
        "headway_gate_limit", "Leases that a gate allows at once.", labels=(*gate, "source")
    )
    leases = GaugeMetricFamily("headway_leases", "Live leases at a gate.", labels=gate)
    closed = GaugeMetricFamily(
        "headway_gate_closed_seconds",
        "Time until a gate opens: 0 when it is open, infinite while it is paused.",
        labels=gate,
    )
    learned = GaugeMetricFamily(
        "headway_learned_rate",
        "What an upstream is believed to bear in a minute: requests (rpm) or tokens (tpm).",
        labels=(*gate, "unit"),
    )
    shown: set[tuple[str, str]] = set()
    left_out = 0
    for each in readings:
        name = (_label(each.kind), _label(each.name))
        if name in shown or len(shown) >= MAX_GATES:
            left_out += 1
            continue
        shown.add(name)
        leases.add_metric(name, float(each.leases))
        closed.add_metric(name, max(float(each.closed_s), 0.0))
        for source, value in each.limits.items():
            if value < float("inf"):  # else there is none
                limit.add_metric((*name, _label(source)), float(value))
        for unit, rate in each.rates.items():
            learned.add_metric((*name, _label(unit)), float(rate))
    about = f"Gates beyond the first {MAX_GATES}, which have no metrics."
    return [limit, leases, closed, learned, _gauge("gates_left_out", about, left_out)]


def _slots(reading: SlotsReading) -> list[Metric]:
    sessions = GaugeMetricFamily(
        "headway_slot_sessions",
        "Clients of slots: those that wait, hold one, or are away.",
        labels=("kind", "state"),
    )
    for (kind, state), count in reading.sessions.items():
        sessions.add_metric((_label(kind), _label(state)), float(count))
    return [
        sessions,
        _totals("slots", "What became of slots since the start.", ("event",),
                {(event,): count for event, count in reading.events.items()}),
        *_overshoot(reading.overshoot),
    ]  # fmt: skip


def _overshoot(rows: Iterable[tuple[str, int, int, float]]) -> list[Metric]:
    counts: dict[str, list[float]] = {}
    for upstream, *numbers in rows:
        name = _label(upstream)
        if name not in counts and len(counts) >= MAX_UPSTREAMS:
            name = OTHER
        sums = counts.setdefault(name, [0.0, 0.0, 0.0])
        counts[name] = [a + float(b) for a, b in zip(sums, numbers, strict=True)]
    abouts = (
        ("slot_reclaimed", "Leases of slots that ended without a word, since ever."),
        ("slot_outlived", "Holders of slots that were heard of after their lease, since ever."),
        ("slot_outlived_seconds", "For how long those went on after their lease, since ever."),
    )
    found: list[Metric] = []
    for place, (metric, about) in enumerate(abouts):
        family = GaugeMetricFamily(f"headway_{metric}", about, labels=("upstream",))
        for name, sums in counts.items():
            family.add_metric((name,), sums[place])
        found.append(family)
    return found


def _label(value: Any) -> str:
    text = redact(str(value).encode("utf-8", "replace").decode("utf-8"))
    return text if len(text) <= MAX_LABEL else f"{text[:MAX_LABEL]}…"
