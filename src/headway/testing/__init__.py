"""For tests of programs that use Headway: a virtual clock and upstreams that follow a script.

    with World(app) as world:
        site = world.upstream("api.example.com", [200, (429, "30s"), 200])
        fetch.enqueue("https://api.example.com/1")
        world.run_for("1h")  # takes milliseconds

Everything is real (the store, the engine, the hands) except time.
"""

from headway.testing.upstream import Answer, ScriptedUpstream
from headway.testing.world import VirtualClock, World

__all__ = ["Answer", "ScriptedUpstream", "VirtualClock", "World"]
