"""The thread that has waited for the end of a job reports it, but not at any price."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from headway import App
from headway.celery import station as station_module
from headway.celery.claiming import Claim
from headway.celery.reporting import Ending
from headway.celery.station import TaskStation
from headway.core import Outcome
from headway.engine.registry import JobType
from headway.errors import BadJob
from headway.lease_clock import lease_clock
from headway.remote import worker
from headway.remote.protocol import Given

NOWHERE = "http://127.0.0.1:9"
TYPE = JobType("t", print, False, lambda _: {})


@pytest.fixture
def lonely(monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskStation]:
    """Its server is away."""
    monkeypatch.setattr(station_module, "HEARD_S", 0.05)
    monkeypatch.setattr(worker, "GRACE_S", 0.05)
    monkeypatch.setattr(worker, "LAST_WORDS_S", 0.05)
    app = App(NOWHERE)
    made = TaskStation(app, NOWHERE, None)
    made.start()
    yield made
    made.stop(0.0)
    app.close()


def claimed(fence: int) -> Claim:
    claim = Claim("mine", 7, fence)
    claim.job = Given(7, fence, "t", msgspec.Raw(b"{}"), 1, 60.0, 90.0)
    claim.asked_at = lease_clock()
    return claim


@pytest.mark.parametrize("talks", [False, True])
def test_nobody_waits_for_ever_for_a_server_that_is_away(
    lonely: TaskStation, talks: bool, caplog: pytest.LogCaptureFixture
) -> None:
    claim = claimed(9)
    job, ending = lonely.enter(claim, TYPE)
    if talks:
        job.log("something that must be heard first")
    lonely.leave(job, Outcome.ok())
    lonely.see_off(claim, ending)
    assert not ending.is_known()
    assert "could not be reported yet" in caplog.text


def test_the_first_word_of_an_end_counts() -> None:
    ending = Ending()
    ending.settle("completed", lost=False)
    ending.set(None)
    assert (ending.state, ending.lost, ending.is_known()) == ("completed", False, True)


def test_a_process_that_does_not_talk_any_more_begins_nothing(lonely: TaskStation) -> None:
    lonely.stop(0.0)
    claim = claimed(9)
    with pytest.raises((BadJob, RuntimeError)):
        lonely.enter(claim, TYPE)
    lonely.give_back(claim)  # nobody hears it, and nobody minds
