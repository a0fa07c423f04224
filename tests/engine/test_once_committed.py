"""What is to be done when the decisions of a turn are committed, and not before."""

from __future__ import annotations

from typing import Any

import pytest

from headway import App, job
from headway.testing import World

pytestmark = pytest.mark.usefixtures("worlds")


def test_it_is_done_after_the_commit_that_ends_the_job() -> None:
    app = App()
    seen: list[Any] = []

    @app.job(type="work")
    async def work() -> None:
        brain = app.engine.brain  # type: ignore[union-attr]
        number = job.id

        def look() -> None:
            row = app.store.job(number)
            seen.append(None if row is None else row.state)

        job.with_end(lambda _: brain.once_committed(look))

    with World(app) as world:
        work.enqueue()
        world.run_for("1s")
        assert seen == ["completed"]
