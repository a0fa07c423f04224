"""The checks notice what they are there for."""

from __future__ import annotations

from typing import Any

import pytest

from headway.store.records import Event, Job
from tests.crash.checks import (
    events_have_no_gaps,
    every_job_has_ended,
    every_trail_is_legal,
    no_promise_is_broken,
    no_run_overlaps_another,
)


def job(id: int = 1, state: str = "completed", **fields: Any) -> Job:
    plain: dict[str, Any] = dict.fromkeys(Job._fields)
    plain |= {"type": "task", "not_before": 0.0, "created_at": 0.0}
    return Job(**(plain | {"id": id, "state": state} | fields))


def event(id: int, name: str, before: str | None, after: str | None) -> Event:
    return Event(id, 0.0, 1, name, before, after, 0, "", None)


STORE: Any = None  # these checks do not get so far as to look into it


def test_a_lost_job_is_noticed() -> None:
    with pytest.raises(AssertionError, match="is lost"):
        no_promise_is_broken(STORE, [["enqueued", "2"]], {1: job()})


def test_a_forgotten_cancel_is_noticed() -> None:
    with pytest.raises(AssertionError, match="was cancelled, and is not"):
        no_promise_is_broken(STORE, [["cancelled", "1"]], {1: job()})


@pytest.mark.parametrize("state", ["running", "queued", "failed"])
def test_a_job_that_is_left_over_is_noticed(state: str) -> None:
    with pytest.raises(AssertionError, match=f"is {state}"):
        every_job_has_ended({1: job(state=state)})


def test_two_runs_at_once_are_noticed() -> None:
    with pytest.raises(AssertionError, match="runs twice at once"):
        no_run_overlaps_another([["start", "1", "7", "1"], ["start", "1", "7", "2"]])


def test_a_fence_that_falls_is_noticed() -> None:
    journal = [["start", "1", "7", "5"], ["start", "2", "7", "5"]]
    with pytest.raises(AssertionError, match="older fence"):
        no_run_overlaps_another(journal)


def test_a_gap_is_noticed() -> None:
    with pytest.raises(AssertionError):
        events_have_no_gaps(
            [event(1, "submit", None, "queued"), event(3, "grant", "queued", "running")]
        )


@pytest.mark.parametrize(
    "second",
    [
        event(2, "ok", "running", "completed"),  # it was never granted
        event(2, "ok", "queued", "completed"),  # what waits cannot be done
        event(2, "grant", "queued", "completed"),
    ],
)
def test_an_illegal_trail_is_noticed(second: Event) -> None:
    with pytest.raises((AssertionError, KeyError)):
        every_trail_is_legal({1: job()}, [event(1, "submit", None, "queued"), second])
