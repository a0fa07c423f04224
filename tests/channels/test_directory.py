"""What the directory keeps when another look at the store comes at the same moment, and what a new
key opens.
"""

from __future__ import annotations

from functools import partial

import pytest

from headway.apps.channels.calling import outcome_of_answer
from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import API
from headway.engine.online import OnlineCall
from tests.channels.batch_world import ChannelsWorld, channels_world


def test_a_channel_that_is_added_in_the_turn_of_a_rescan_stays() -> None:
    """It is not in the store before that turn is committed."""
    with channels_world() as world:
        directory = world.channels.directory
        channel = Channel("fresh", "m", "http://127.0.0.1:1/v1")

        def both(now: float) -> None:
            directory.put(channel, None, API, now)
            directory.rescan(now)

        world.channels.batches.turn(both)
        assert directory.get("fresh") is not None
        world.run_for(1.0)
        world.channels.batches.turn(directory.rescan)
        assert directory.get("fresh") is not None
        world.channels.batches.turn(partial(directory.remove, "fresh"))
        assert directory.get("fresh") is None


FAST = Channel("fast", "m", "http://127.0.0.1:1/v1")


def give_key(world: ChannelsWorld, key: str) -> None:
    world.channels.batches.turn(lambda now: world.channels.directory.put(FAST, key, API, now))


def closed(world: ChannelsWorld) -> bool:
    online = world._engine.brain.online
    found = world._engine.ask(lambda now: online.go(("fast",), now)).result(0)
    return not isinstance(found, OnlineCall)


@pytest.mark.parametrize("status", [401, 403])
def test_another_key_opens_what_the_provider_has_closed_for_the_last_one(status: int) -> None:
    with channels_world() as world:
        give_key(world, "sk-one")
        online = world._engine.brain.online

        def refused(now: float) -> None:
            call = online.go(("fast",), now)
            assert isinstance(call, OnlineCall)
            online.end(call, outcome_of_answer(status, {}, b"", now), now)

        world._engine.ask(refused).result(0)
        assert closed(world)
        give_key(world, "sk-one")
        assert closed(world)
        give_key(world, "sk-two")
        assert not closed(world)


def test_another_key_does_not_open_what_an_operator_has_closed() -> None:
    with channels_world() as world:
        give_key(world, "sk-one")
        world.app.close_until("upstream:fast", world.now + 600, "maintenance")
        give_key(world, "sk-two")
        assert closed(world)
