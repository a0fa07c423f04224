"""Celery fleets: jobs that this server admits and workers of Celery run (decision 0028).

The brain decides who goes; the broker carries only what was let go, and a claim with the fence is
the moment of going. So a message that is lost, late or there twice does no harm.

- `fleet`: which workers are there, and how many places they have. `crews`: what takes them.
  `starts`: when a claim may begin, so that an uneven broker beats no pace. All three are plain
  memory without a clock.
- `courier`: takes jobs for the fleet and hands them over, in the brain's turn. `messages`: what is
  sent. `publishing`: the thread that sends it, and notices when the broker is away.
- `tables`: which types are carried, also after a restart. `routes`: all that over HTTP.
  `application`: put together.
"""
