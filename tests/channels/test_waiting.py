"""How long a caller says that it would wait, and that nothing it was granted is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headway.api.problems import Problem
from headway.apps.channels.online.waiting import Passage, wait_said
from headway.engine.online import OnlineCall


@pytest.mark.parametrize(("said", "seconds"), [
    (None, None), ("30s", 30.0), ("1m30s", 90.0), ("10m", 600.0), ("0", 0.0), ("0s", 0.0),
    ("2.5", 2.5), (" 5 ", 5.0), ("600", 600.0),
])  # fmt: skip
def test_a_time_or_a_number_of_seconds(said: str | None, seconds: float | None) -> None:
    assert wait_said(said) == seconds


@pytest.mark.parametrize("said", ["", "x", "-1", "inf", "nan", "1e2", "601", "11m", "1h", "٣", "."])
def test_anything_else_is_refused(said: str) -> None:
    with pytest.raises(Problem, match="30s") as refused:
        wait_said(said)
    assert refused.value.status == 400


class Engine:
    """Hears what is asked when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Callable[[float], Any]] = []
        self.ended: list[OnlineCall] = []
        self.brain = self
        self.online = self
        self.slots = None

    def ask_for(self, _: object, call: Callable[[float], Any], *, later: bool) -> None:
        assert later
        self.asked.append(call)

    def ask(self, call: Callable[[float], Any]) -> None:
        self.asked.append(call)

    def hear(self) -> None:
        while self.asked:
            self.asked.pop(0)(0.0)

    def go(self, *_: object, **__: object) -> OnlineCall:
        return OnlineCall()

    def end(self, call: OnlineCall, *_: object) -> None:
        self.ended.append(call)


async def goes_twice(engine: Any) -> None:
    passage = Passage(engine, "", 1.0)
    first = asyncio.create_task(passage.go(("first",)))
    await asyncio.sleep(0)  # it asks
    engine.hear()
    await first
    passage.leave()  # which nobody has heard when it goes on
    second = asyncio.create_task(passage.go(("second",)))
    await asyncio.sleep(0)
    engine.hear()
    second.cancel()
    passage.leave()
    engine.hear()


def test_what_is_granted_behind_an_end_is_given_back_too() -> None:
    """A call goes elsewhere before the brain has heard that it left, and then hangs up."""
    engine = Engine()
    asyncio.run(goes_twice(engine))
    assert len(engine.ended) == 2
