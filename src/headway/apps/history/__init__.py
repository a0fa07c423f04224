"""How the queue has been: the last minutes, the last hour and the last day, as series for charts.

Every other second the engine's tallies and gates are looked at, and what has changed goes into
buckets (decision 0025).

- `bucket`: one stretch of time, and how several of them stand in a ring. `recorder`: all series,
  plain memory without a clock.
- `looking`: what is to be seen of gates, in the brain's turn. `sampling`: the loop that does it.
- `tables`: what outlives a restart. `routes`: all that over HTTP. `application`: put together.
"""
