"""What an upstream bears, learned from its answers: a handful of small parts, one idea each.

Queued work fills what online calls leave over of a limit that nobody names. The parts:

- `counting`: how much went there in the last minute and the last seconds.
- `online`: what online calls do, and how much room their noise needs.
- `bucket`: the shadow bucket. All calls drain it; queued work goes when it is full.
- `ceiling`: the remembered ceiling, and the curve below it: start, cruise, probe.
- `refusal`: what a 429 says about the ceiling.
- `told`: what rate-limit headers say, which beats all that is learned.
- `holding`: when to be silent after a 429, and how to come back.
- `concurrency`: the cap on calls in flight.
- `latency`: the guard against upstreams that slow down instead of refusing.
- `history`: the plain estimate from the 429s alone, for people who know it.

`rate` puts the parts of one unit together (requests, or tokens), `knowledge` all that is known,
`learner` lets calls and answers change it, and `limit` is the limit at a gate. Rates are units per
second inside; nothing here has a clock.
"""

from headway.core.learning.limit import Learning
from headway.core.learning.rule import LearnRule

__all__ = ["LearnRule", "Learning"]
