"""What is seen of a run from outside: counts in spans of time, waits, and who got which share."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.core import Core, State
from headway.core.gate import Gate
from headway.core.learning import Learning
from headway.core.ticket import Traffic
from headway.simulation.limiters import INF
from headway.simulation.load import Arrival
from headway.simulation.scenario import Scenario
from headway.simulation.upstream import AWAY, BANNED, BUSY, OK, UNWELL

SPANS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 360, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
SPANS = 240  # about so many in the time of the load
LOOKS = 6  # in each span

COUNTED = ("came", "started", OK, BUSY, BANNED, UNWELL, AWAY, "online", "turned_away")


class Job:
    """One that is open: what it asked for, and what became of it so far."""

    __slots__ = ("account", "arrival", "came_at", "held", "started_at", "tries", "waits")

    def __init__(self, arrival: Arrival, now: float) -> None:
        self.arrival = arrival
        self.came_at = now
        self.started_at = -1.0
        self.tries = 0
        self.account: Account | None = None
        self.waits = False
        self.held = False


class Account:
    """A tenant at an upstream: what it got of the places while it wanted more."""

    __slots__ = ("due", "got", "held", "idle", "in_span", "integrated_at", "tenant", "waiting",
                 "weight")  # fmt: skip

    def __init__(self, tenant: str, weight: float, now: float) -> None:
        self.tenant = tenant
        self.weight = weight
        self.waiting = 0
        self.held = 0
        self.idle = True  # it has wanted nothing at some moment of this span
        self.in_span = 0.0  # slot-seconds
        self.integrated_at = now
        self.got = 0.0
        self.due = 0.0

    def integrate(self, now: float) -> None:
        if self.held:
            self.in_span += self.held * (now - self.integrated_at)
        self.integrated_at = now


@dataclass(slots=True)
class GateSeries:
    """How a gate was at each look, a mean for each span."""

    kind: str
    name: str
    cap: float | None = None
    inside: list[float] = field(default_factory=list)
    closed: list[float] = field(default_factory=list)
    believed: list[float | None] = field(default_factory=list)
    sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    peak: int = 0
    learns: bool = False


class Recorder:
    def __init__(self, scenario: Scenario) -> None:
        wanted = scenario.load.duration_s / SPANS
        self.span_s = float(next((each for each in SPANS_S if each >= wanted), SPANS_S[-1]))
        self.gates = [GateSeries(kind, name) for kind, name in scenario.gates]
        self.series: dict[str, list[float]] = {name: [] for name in COUNTED}
        self.series |= {"waiting": [], "running": []}
        self.always_waiting: list[bool] = []  # whether somebody waited at each look of a span
        self.totals: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self.waits: dict[tuple[str, int], array[float]] = {}  # by tenant and priority
        self.sojourns: array[float] = array("d")
        self.recorded: list[tuple[float, float]] = []  # (wait that was recorded, wait now)
        self.ends: dict[State, int] = {}
        self.online_ends: dict[State, int] = {}
        self.start_at = scenario.start_at
        self.last_end_at = self.start_at
        self.closed_at = self.start_at
        self.next_at = self.start_at + self.span_s / LOOKS
        self._accounts: dict[tuple[str, str], Account] = {}
        self._counts: dict[str, int] = dict.fromkeys(COUNTED, 0)
        self._looks = 0
        self._sums = [0.0, 0.0]
        self._always = True
        self.waiting = 0
        self.running = 0
        self.online_turned_away = 0

    # ------------------------------------------------------------------ jobs

    def came(self, job: Job, now: float) -> None:
        self._counts["came"] += 1
        arrival = job.arrival
        if arrival.traffic is Traffic.ONLINE:
            return
        where = arrival.upstreams[0] if arrival.upstreams else f"lane {arrival.lane}"
        account = self._accounts.get((where, arrival.tenant))
        if account is None:
            account = Account(arrival.tenant, arrival.weight, now)
            self._accounts[where, arrival.tenant] = account
        job.account = account

    def turned_away(self, job: Job) -> None:
        """Refused by Headway itself: the upstream is closed, or too many wait."""
        self._counts["turned_away"] += 1
        if job.arrival.traffic is Traffic.ONLINE:
            self.online_turned_away += 1

    def stood_in_line(self, job: Job) -> None:
        job.waits = True
        self.waiting += 1
        if job.account is not None:
            job.account.waiting += 1

    def left_the_line(self, job: Job) -> None:
        if not job.waits:
            return
        job.waits = False
        self.waiting -= 1
        account = job.account
        if account is not None:
            account.waiting -= 1
            if not account.waiting:
                account.idle = True

    def started(self, job: Job, now: float) -> None:
        counts, arrival = self._counts, job.arrival
        counts["started"] += 1
        self.running += 1
        job.held = True
        if job.account is not None:
            job.account.integrate(now)
            job.account.held += 1
        if job.started_at >= 0:
            return
        job.started_at = now
        wait_s = now - job.came_at
        if arrival.traffic is Traffic.ONLINE:
            counts["online"] += 1
            return
        self._waited(arrival, wait_s)
        if arrival.recorded_wait_s is not None:
            self.recorded.append((arrival.recorded_wait_s, wait_s))

    def _waited(self, arrival: Arrival, wait_s: float) -> None:
        waits = self.waits.get((arrival.tenant, arrival.priority))
        if waits is None:
            waits = self.waits[arrival.tenant, arrival.priority] = array("d")
        waits.append(wait_s)

    def called(self, what: str) -> None:
        self._counts[what] += 1

    def gave_back(self, job: Job, now: float) -> None:
        if not job.held:
            return
        job.held = False
        self.running -= 1
        if job.account is not None:
            job.account.integrate(now)
            job.account.held -= 1

    def ended(self, job: Job, state: State, now: float) -> None:
        if job.arrival.traffic is Traffic.ONLINE:
            self.online_ends[state] = self.online_ends.get(state, 0) + 1
        else:
            self.last_end_at = now
            self.ends[state] = self.ends.get(state, 0) + 1
            self.sojourns.append(now - job.came_at)

    # ------------------------------------------------------------------ spans

    def look(self, core: Core, now: float) -> None:
        self._looks += 1
        self._sums[0] += self.waiting
        self._sums[1] += self.running
        self._always = self._always and self.waiting > 0
        for series in self.gates:
            self._look_at(core, series, now)
        if self._looks == LOOKS:
            self._close_span(now)
        self.next_at = (
            self.start_at + (len(self.always_waiting) + (self._looks + 1) / LOOKS) * self.span_s
        )

    def _look_at(self, core: Core, series: GateSeries, now: float) -> None:
        gate: Gate = core.gate(series.kind, series.name)
        inside = len(gate.leases)
        series.cap = None if gate.cap == INF else gate.cap
        series.peak = max(series.peak, inside)
        series.sums[0] += inside
        closed = gate.door.closed_until > now
        believed: float | None = None
        for limit in gate.limits:
            if isinstance(limit, Learning):
                series.learns = True
                closed = closed or limit.phase(now) in ("holding", "testing")
                believed = limit.beliefs.rpm
            elif limit.stops_online and limit.opens_at > now:
                closed = True
        series.sums[1] += closed
        if self._looks == LOOKS:
            series.inside.append(series.sums[0] / LOOKS)
            series.closed.append(series.sums[1] / LOOKS)
            series.believed.append(believed)
            series.sums = [0.0, 0.0]

    def _close_span(self, now: float) -> None:
        for name, many in self._counts.items():
            self.series[name].append(many)
            self.totals[name] += many
            self._counts[name] = 0
        self.series["waiting"].append(self._sums[0] / LOOKS)
        self.series["running"].append(self._sums[1] / LOOKS)
        self.always_waiting.append(self._always)
        self._looks, self._sums, self._always = 0, [0.0, 0.0], True
        self._share_out(now)

    def _share_out(self, now: float) -> None:
        """What each got of the places in this span, beside what it was due: equal by weight among
        those who wanted more than they had, all the time.
        """
        wanting: dict[str, list[Account]] = {}
        for (where, _), account in self._accounts.items():
            account.integrate(now)
            if not account.idle:
                wanting.setdefault(where, []).append(account)
        for accounts in wanting.values():
            if len(accounts) > 1:
                got = sum(each.in_span for each in accounts)
                weights = sum(each.weight for each in accounts)
                for each in accounts:
                    each.got += each.in_span
                    each.due += got * each.weight / weights
        for account in self._accounts.values():
            account.in_span = 0.0
            account.idle = account.waiting == 0

    def close(self, core: Core, now: float, left: Iterable[Job]) -> None:
        """The end: the last span is as long as the others, however much of it was needed. Who never
        started has waited until now, or whoever starts nobody would seem to let nobody wait.
        """
        while self._looks or any(self._counts.values()):
            self.look(core, now)
        self.closed_at = now
        for job in left:
            if job.started_at < 0 and job.arrival.traffic is not Traffic.ONLINE:
                self._waited(job.arrival, now - job.came_at)

    def shares(self) -> dict[str, tuple[float, float]]:
        """By tenant: slot-seconds that it got and was due, while several wanted more."""
        found: dict[str, tuple[float, float]] = {}
        for account in self._accounts.values():
            if account.due > 0:
                got, due = found.get(account.tenant, (0.0, 0.0))
                found[account.tenant] = (got + account.got, due + account.due)
        return found
