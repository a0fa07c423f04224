"""What a type of job adds to its jobs before they stand in line."""

from __future__ import annotations

import pytest

from headway import App
from headway.core import Ticket
from headway.testing import World
from tests.engine.kit import Diary

pytestmark = pytest.mark.usefixtures("worlds")


def test_what_is_filled_in_holds_for_every_job_however_it_came_also_after_a_restart() -> None:
    app = App()
    diary = Diary()

    @app.job(type="visit", retries=0)
    async def visit() -> None:
        diary.note()

    def fill_in(ticket: Ticket) -> None:
        ticket.upstreams = ("site.example",)
        ticket.tools = (*ticket.tools, "account")

    app.registry.types["visit"].filled_in = fill_in
    app.upstream("site.example", every="10s")
    with World(app) as world:
        diary.begin(world)
        for _ in range(3):
            visit.enqueue()
        world.run_for("5s")
        assert len(diary.times) == 1
        world.restart()
        gate = {"do": "close", "kind": "tool", "name": "account", "until": world.now + 20}
        assert app.engine is not None
        controls = app.engine.brain.controls
        app.engine.ask(lambda now: controls.gate(gate, now)).result()
        world.run_for("1m")
        assert [round(at) for at in diary.times] == [0, 25, 35]
