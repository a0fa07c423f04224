"""For tests of programs that use Headway: a virtual clock and upstreams that follow a script.

    with World(app) as world:
        site = world.upstream("api.example.com", [200, (429, "30s"), 200])
        fetch.enqueue("https://api.example.com/1")
        world.run_for("1h")  # takes milliseconds

Everything is real (the store, the engine, the hands) except time. Where the network is to be real
too, `LlmUpstream` is a server that pushes back. Each name is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.testing.llm_upstream import LlmUpstream
    from headway.testing.upstream import Answer, ScriptedUpstream
    from headway.testing.world import VirtualClock, World

_HOMES = {
    "Answer": "headway.testing.upstream",
    "LlmUpstream": "headway.testing.llm_upstream",
    "ScriptedUpstream": "headway.testing.upstream",
    "VirtualClock": "headway.testing.world",
    "World": "headway.testing.world",
}

__all__ = ["Answer", "LlmUpstream", "ScriptedUpstream", "VirtualClock", "World"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headway.testing' has no attribute {name!r}")
    return getattr(import_module(home), name)
