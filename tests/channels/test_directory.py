"""What the directory keeps when another look at the store comes at the same moment."""

from __future__ import annotations

from functools import partial

from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import API
from tests.channels.batch_world import channels_world


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
