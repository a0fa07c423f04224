"""Payloads are kept while there is room, and only until the first grant."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway import App
from headway.engine.at_hand import AtHand
from headway.testing import World


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.text(max_size=6))))
def test_what_is_kept_fits_and_is_what_was_given(steps: list[tuple[bool, int, str]]) -> None:
    at_hand, given_last = AtHand(room=10), {}
    for keeps, job, args in steps:
        if keeps:
            at_hand.keep(job, args)
            given_last[job] = args
        else:
            assert at_hand.take(job) in (None, given_last.get(job))
            assert at_hand.take(job) is None
    kept = [args for job in range(6) if (args := at_hand.take(job)) is not None]
    assert sum(map(len, kept)) <= 10
    assert len(at_hand) == 0
    at_hand.keep(9, "x" * 10)
    assert at_hand.take(9) == "x" * 10, "all the room is there again"


def brain_of(app: App) -> Any:
    assert app.engine is not None
    return app.engine.brain


@pytest.mark.parametrize("room", [0, 25, 10_000])
def test_jobs_get_their_payloads_from_wherever_they_are(app: App, room: int) -> None:
    got: list[int] = []
    app.lane("narrow", limit=1)

    @app.job(lane="narrow")
    async def note(number: int) -> None:
        got.append(number)

    with World(app) as world:
        brain_of(app).at_hand = AtHand(room)
        for number in range(10):
            note.enqueue(number)
        world.run_for("1m")
        assert got == list(range(10))
        assert len(brain_of(app).at_hand) == 0


def test_a_job_that_never_runs_leaves_nothing_behind(app: App) -> None:
    @app.job()
    async def never() -> None: ...

    with World(app) as world:
        app.pause("lane:default")
        handles = [never.enqueue() for _ in range(3)]
        world.run_for("1s")
        assert len(brain_of(app).at_hand) == 3
        for handle in handles:
            handle.cancel()
        world.run_for("1s")
        assert len(brain_of(app).at_hand) == 0
