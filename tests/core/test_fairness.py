"""The order of the real core in five unfair workloads, beside brute force."""

from __future__ import annotations

import statistics
from functools import cache

import pytest

from bench.fair import Result, run
from bench.schedulers import SCHEDULERS
from bench.workloads import WORKLOADS, Workload

SEED = 1


@cache
def result(work: Workload, order: str) -> Result:
    return run(work, SCHEDULERS[order](work), SEED)


# One with an aggressor, one with a whale beside it; each takes seconds of brute force.
IN_EVERY_RUN = (WORKLOADS[0], WORKLOADS[2])
SOME = [work if work in IN_EVERY_RUN else pytest.param(work, marks=pytest.mark.soak)
        for work in WORKLOADS]  # fmt: skip


@pytest.mark.parametrize("work", SOME, ids=lambda work: work.name)
class TestEachWorkload:
    def test_slot_seconds_are_shared_fairly(self, work: Workload) -> None:
        assert result(work, "headway").jain >= 0.98

    def test_polite_tenants_wait_no_longer_than_by_brute_force(self, work: Workload) -> None:
        assert result(work, "headway").p99_s <= 1.1 * result(work, "fair").p99_s

    def test_no_slot_idles_while_somebody_eligible_waits(self, work: Workload) -> None:
        assert result(work, "headway").idle == pytest.approx(0.0, abs=1e-9)


def test_first_come_would_not_do() -> None:
    """The workloads can tell orders apart."""
    work = WORKLOADS[2]
    assert result(work, "first come").jain < 0.7
    assert result(work, "first come").p99_s > 10 * result(work, "headway").p99_s


@pytest.mark.soak
def test_the_estimated_start_is_within_a_quarter_of_the_wait() -> None:
    """Median over everybody who had to wait, asked on arrival, after 20 grants at the gate."""
    errors = [error for work in WORKLOADS for error in result(work, "headway").estimate_errors]
    assert len(errors) > 40_000
    assert statistics.median(errors) <= 0.25
