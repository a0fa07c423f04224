"""What would happen: the real core on a virtual clock, against a modelled upstream and load.

A settings file says what Headway would do, a model what the upstream really bears (`limiters`,
`upstream`), a load who would ask for what (`arrivals`, `load`) or who did (`replay`). `running` has
the loop: it drives `headway.core.Core` as the engine does, with policies read by the engine's own
settings, and jumps from one moment at which anything happens to the next. `recorder` writes down
what is seen from outside; `report` makes figures of it, `comparing` sentences, `drawing` and
`document` a page without a script.

The models read no clock, no file and no socket, and draw chance only from the generator that they
are given: the same seed gives the same report. Files are read in `reading` and `replay` alone.
"""

from headway.simulation.errors import BadModel
from headway.simulation.report import Report
from headway.simulation.running import simulate
from headway.simulation.scenario import Scenario

__all__ = ["BadModel", "Report", "Scenario", "simulate"]
