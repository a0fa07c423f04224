"""Headway and Celery (decision 0028).

Two ways: `serve` lets a Celery fleet run the jobs of an `App(…, executor="celery")`, and `polite`
puts Headway's admission in front of the tasks of a Celery application that is there already.

- `claiming`: what a process of the fleet says to the server. `station`: the jobs that it holds,
  with the heartbeats of any other worker. `starting`: the wait before the first step. `limits`:
  how long that may be.
  `reporting`: how it ended. `together`: many threads ask, and few requests are sent.
- `announcing`: a worker says that it is there. `running`: `serve`.
- `polite`: the two lines. `sending`: a task that is sent becomes a job. `bodies`: its turn
  has come, and the body runs. `revoking`: a task that still waits is not wanted any more.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("celery") is None:
    raise ModuleNotFoundError(
        "headway.celery needs Celery, which is not installed; pip install 'headway[celery]'",
        name="celery",
    )

from headway.celery.bodies import GivenUp
from headway.celery.polite import polite
from headway.celery.running import serve

__all__ = ["GivenUp", "polite", "serve"]
