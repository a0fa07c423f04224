"""Time and loops: the brain that decides and commits, and the hands that work.

`engine.Engine` is the way in. Only this package reads the clock.
"""

from headway.engine.engine import Engine

__all__ = ["Engine"]
