"""A body that was claimed and cannot begin goes back, and is no failure."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from celery.exceptions import Ignore

from headway.celery.bodies import Bodies
from headway.celery.claiming import Claim
from headway.celery.limits import Limits
from headway.errors import BadJob


class Mute:
    """A station whose thread that talks to the server has died."""

    def __init__(self) -> None:
        self.claims = self
        self.given_back: list[Claim] = []

    def make(self, id: int, fence: int, within_s: float | None) -> Claim:
        assert within_s == 5.0
        return Claim("mine", id, fence)

    def enter(self, *_: Any) -> Any:
        raise BadJob("this process does not talk to the server any more")

    def give_back(self, claim: Claim) -> None:
        self.given_back.append(claim)


class Request(dict[str, Any]):
    """Of Celery."""

    called_directly = False
    timelimit = (5.0, None)


def test_a_task_whose_process_cannot_talk_any_more_is_ignored_and_goes_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    station, ran = Mute(), list[bool]()
    monkeypatch.setattr("headway.celery.bodies.TaskStation", Mute)
    bodies = Bodies(SimpleNamespace(here=lambda: station), None, Limits(None))  # type: ignore[arg-type]
    request = Request(headway={"id": 7, "fence": 9})
    task = SimpleNamespace(name="shop.add", request=request, time_limit=None, soft_time_limit=None)
    with caplog.at_level(logging.ERROR), pytest.raises(Ignore, match="does not talk"):
        bodies.call(task, lambda: ran.append(True), None, (), {})
    bodies.ended(task)
    assert not ran
    assert [claim.fence for claim in station.given_back] == [9]
    assert "shop.add does not begin here, and will be sent again" in caplog.text
