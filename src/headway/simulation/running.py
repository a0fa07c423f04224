"""The loop: time jumps to the next moment at which anything happens, and the core is asked.

It does what the engine and its hands do around a real core: takes in what comes, finishes what has
ended, admits, and calls the upstream for each permit. There is no other order of events than time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple

from headway.core import Core, Outcome, Permit, State
from headway.core.change import Refusal, Refused
from headway.core.lifecycle import TERMINAL
from headway.core.outcome import Kind
from headway.core.ticket import Traffic
from headway.simulation.limiters import INF
from headway.simulation.load import Arrival, arrivals
from headway.simulation.recorder import Job, Recorder
from headway.simulation.report import Report, report_of
from headway.simulation.scenario import Scenario
from headway.simulation.upstream import BUSY, OK, UNWELL, Answer, Upstream, UpstreamModel

ALONE_S = 1.0  # how long a job takes that calls nobody, if nobody says so
LEAST_AFTER_S = 3600.0  # what is open when the last has come may take so long at least
SWEEP_S = 3600.0
TELL_EVERY = 256  # events: a moment, also where a thousand gates are looked at

Tell = Callable[[float, int], bool]  # how far (0 to 1), how many calls; False: stop here


class Ended(NamedTuple):
    """A call whose end is known: who holds what, and what will be said of it."""

    permit: Permit
    job: Job
    upstream: Upstream | None
    outcome: Outcome


def simulate(scenario: Scenario, tell: Tell | None = None) -> Report:
    """Run it to its end, to its bounds, or until `tell` says that it is enough."""
    simulation = Simulation(scenario)
    simulation.run(tell or _go_on)
    return report_of(scenario, simulation.recorder, simulation.stopped)


def _go_on(_share: float, _calls: int) -> bool:
    return True


class Simulation:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.recorder = Recorder(scenario)
        self.stopped = ""  # why it ended before its time
        self._rng = Random(f"{scenario.seed}/upstreams")
        self._core = Core(scenario.policies, rng=Random(f"{scenario.seed}/core"), lease_s=INF)
        self._upstreams: dict[str, Upstream | None] = {}
        self._alone = UpstreamModel()
        self._jobs: dict[Hashable, Job] = {}
        self._ending: list[tuple[float, int, Ended]] = []
        self._count = count(1)
        self._calls = 0
        self._start_at = scenario.start_at
        self._end_at = self._start_at + scenario.load.duration_s
        after_s = min(scenario.bounds.after_s, max(scenario.load.duration_s, LEAST_AFTER_S))
        self._last_at = self._end_at + after_s

    # ------------------------------------------------------------------ time

    def run(self, tell: Tell) -> None:
        core, recorder = self._core, self.recorder
        coming = self._coming()
        arrival = next(coming, None)
        sweep_at = self._start_at + SWEEP_S
        events, now = 0, self._start_at
        while True:
            came_at = INF if arrival is None else self._start_at + arrival.at
            ended_at = self._ending[0][0] if self._ending else INF
            now = max(now, min(came_at, ended_at, core.next_wakeup(), recorder.next_at))
            if self._is_over(now, arrival is None):
                break
            if recorder.next_at <= now:
                recorder.look(core, now)
            while self._ending and self._ending[0][0] <= now:
                self._finish(heappop(self._ending)[2], now)
            while arrival is not None and self._start_at + arrival.at <= now and not self._full():
                self._take_in(arrival, now)
                arrival = next(coming, None)
            if self.stopped:
                break
            for permit in core.admit(now):
                self._start(permit, now)
            self._hear(now)
            if now >= sweep_at:
                core.sweep(now)
                sweep_at = now + SWEEP_S
            events += 1
            if events % TELL_EVERY == 0 and not self._go_on(tell, now):
                break
        recorder.close(core, min(now, self._last_at), self._jobs.values())

    def _coming(self) -> Iterator[Arrival]:
        if self.scenario.replayed is not None:
            return iter(self.scenario.replayed)
        return arrivals(self.scenario.load, self.scenario.seed)

    def _is_over(self, now: float, all_came: bool) -> bool:
        if now > self._last_at:
            if self._jobs:
                self.stopped = "time"
            return True
        if now == INF:
            return True
        return all_came and not self._jobs and not self._ending and now >= self._end_at

    def _full(self) -> bool:
        """More are open than there may be calls: they would fill the memory and never go."""
        if len(self._jobs) > self.scenario.bounds.calls:
            self.stopped = "calls"
        return bool(self.stopped)

    def _go_on(self, tell: Tell, now: float) -> bool:
        share = (now - self._start_at) / max(1.0, self._end_at - self._start_at)
        if not tell(min(1.0, share), self._calls):
            self.stopped = "asked"
        elif self._calls >= self.scenario.bounds.calls:
            self.stopped = "calls"
        return not self.stopped

    # ------------------------------------------------------------------ what happens

    def _take_in(self, arrival: Arrival, now: float) -> None:
        number = next(self._count)
        ticket = arrival.ticket(number, arrival.tenant if self.scenario.fair else "")
        self._jobs[number] = job = Job(arrival, now)
        self.recorder.came(job, now)
        if arrival.traffic is Traffic.ONLINE:
            answer = self._core.call(ticket, now)
            if isinstance(answer, Refusal):
                del self._jobs[number]
                self.recorder.turned_away(job)
            else:
                self._start(answer, now)
            return
        try:
            self._core.submit(ticket, now)
        except Refused:
            del self._jobs[number]
            self.recorder.turned_away(job)

    def _start(self, permit: Permit, now: float) -> None:
        job = self._jobs[permit.ticket.id]
        name = "" if permit.upstream is None else permit.upstream.name
        self.recorder.started(job, now)
        upstream, answer = self._called(job, name, now)
        job.tries += 1
        self._calls += 1
        self.recorder.called(answer.what)
        ended = Ended(permit, job, upstream if answer.took else None, answer.outcome)
        heappush(self._ending, (now + answer.lasts_s, next(self._count), ended))

    def _called(self, job: Job, name: str, now: float) -> tuple[Upstream | None, Answer]:
        """A model answers where there is one; else a job that is replayed ends as it did."""
        upstream = self._upstream(name) if name else None
        arrival = job.arrival
        attempts = arrival.attempts
        hold_s = arrival.hold_s
        if upstream is not None:
            if attempts:
                attempt = attempts[min(job.tries, len(attempts) - 1)]
                hold_s = attempt.hold_s if attempt.outcome.kind is not Kind.PUSHBACK else hold_s
            return upstream, upstream.call(now - self._start_at, arrival.tenant, hold_s)
        if attempts and job.tries < len(attempts):
            attempt = attempts[job.tries]
            return None, Answer(_what(attempt.outcome), attempt.hold_s, attempt.outcome)
        return None, Answer(OK, ALONE_S if hold_s is None else hold_s, Outcome.ok())

    def _upstream(self, name: str) -> Upstream | None:
        if name not in self._upstreams:
            model = self.scenario.models.of(name)
            if model is None and self.scenario.replayed is None:
                model = self._alone
            self._upstreams[name] = None if model is None else Upstream(model, self._rng)
        return self._upstreams[name]

    def _finish(self, ended: Ended, now: float) -> None:
        permit = ended.permit
        if ended.upstream is not None:
            ended.upstream.ended(ended.job.arrival.tenant)
        self._core.finish(permit.ticket.id, permit.fence, ended.outcome, now)

    def _hear(self, now: float) -> None:
        """What the core has decided meanwhile, as the engine would write it down."""
        core, recorder, jobs = self._core, self.recorder, self._jobs
        for change in core.changes:
            job = jobs.get(change.ticket.id)
            if job is None:
                continue
            if change.before is State.RUNNING:
                recorder.gave_back(job, now)
            if change.before is State.QUEUED:
                recorder.left_the_line(job)
            if change.after is State.QUEUED:
                recorder.stood_in_line(job)
            elif change.after in TERMINAL:
                recorder.ended(job, change.after, now)
                del jobs[change.ticket.id]
        core.changes.clear()
        core.stops.clear()
        core.admission.touched.clear()


def _what(outcome: Outcome) -> str:
    """How an outcome that was recorded is counted."""
    if outcome.kind is Kind.OK:
        return OK
    return BUSY if outcome.kind is Kind.PUSHBACK else UNWELL
