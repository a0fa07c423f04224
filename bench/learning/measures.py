"""How well the leftover capacity was used, and who paid for it.

The yardstick is a sender that knows everything in advance and leaves every online call alone that
would succeed without queued work; use is the share of what it could have done.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from bench.learning.scenarios import Scenario
from bench.learning.simulation import Trace

MINUTE = 60
WARM_MINUTES = 10  # use is also given without the first ten minutes
LONGEST_S = 1200


@dataclass(frozen=True)
class Measures:
    used: float
    used_warm: float
    refused: float  # share of its own calls
    bans: int
    harm: float  # online calls refused that would not have been, as a share of all online calls
    slower: float  # mean online latency against what it is alone, minus 1
    recovery_s: tuple[int, ...]


def possible(scenario: Scenario, alone: Trace) -> list[float]:
    """The queued calls that fit into each minute beside the online calls."""
    minutes = math.ceil(scenario.length_s / MINUTE)
    calls, busy_s = [0] * minutes, [0.0] * minutes
    for start, end in alone.online_spans:
        calls[min(minutes - 1, int(start / MINUTE))] += 1
        for minute in range(int(start / MINUTE), min(minutes, math.ceil(end / MINUTE))):
            busy_s[minute] += min(end, (minute + 1) * MINUTE) - max(start, minute * MINUTE)
    return [_fits(scenario, minute, calls[minute], busy_s[minute]) for minute in range(minutes)]


def _fits(scenario: Scenario, minute: int, online_calls: int, online_busy_s: float) -> float:
    start, end = float(minute * MINUTE), min(scenario.length_s, (minute + 1.0) * MINUTE)
    length_s, call_s = end - start, scenario.latency.mean_s
    limiter = scenario.limiter()
    limit = limiter.limit.mean(start, end)
    fits = scenario.pool * length_s / call_s
    if limiter.counts_calls:
        at_once = limiter.burst if minute == 0 else 0.0
        fits = min(fits, limit * length_s / MINUTE - online_calls + at_once)
    else:
        fits = min(fits, (limit * length_s - online_busy_s) / call_s)
    if scenario.knee:
        fits = min(fits, (scenario.knee * length_s - online_busy_s) / call_s)
    dead_s = sum(max(0.0, min(end, b) - max(start, a)) for a, b in scenario.outages)
    return max(0.0, fits) * (1 - dead_s / length_s) * (1 - scenario.flaky)


def recovery(scenario: Scenario, trace: Trace, fits: list[float]) -> tuple[int, ...]:
    """Seconds after each step until 30 s went by at 90 % of the new rate with hardly a refusal."""

    def well(second: int) -> bool:
        done = sum(trace.done_at[second - 30 : second])
        refused = sum(trace.refused_at[second - 30 : second])
        wanted = fits[min(len(fits) - 1, (second - 1) // MINUTE)] / 2
        return done >= 0.9 * wanted and refused <= 0.05 * max(1, done + refused)

    found = []
    for step_at in scenario.steps_at:
        first, last = int(step_at) + 30, min(int(scenario.length_s), int(step_at) + LONGEST_S)
        done_at = next((second for second in range(first, last) if well(second)), None)
        found.append(LONGEST_S if done_at is None else done_at - int(step_at))
    return tuple(found)


def measure(scenario: Scenario, trace: Trace, alone: Trace) -> Measures:
    fits = possible(scenario, alone)
    warm = fits[WARM_MINUTES:] or fits
    done_warm = sum(trace.done_at[WARM_MINUTES * MINUTE :])
    slower = 0.0
    if alone.online_latencies and trace.online_latencies:
        slower = fmean(trace.online_latencies) / fmean(alone.online_latencies) - 1
    return Measures(
        used=sum(trace.done_at) / max(sum(fits), 1e-9),
        used_warm=done_warm / max(sum(warm), 1e-9),
        refused=trace.refused / max(1, trace.sent),
        bans=trace.bans,
        harm=(trace.online_refused - alone.online_refused) / max(1, trace.online),
        slower=slower,
        recovery_s=recovery(scenario, trace, fits),
    )
