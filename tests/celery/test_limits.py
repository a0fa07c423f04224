"""Which of Celery's own time limits counts first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, signals

from headway.celery.limits import Limits


def body() -> None:
    """Takes no time at all."""


@pytest.mark.parametrize(
    ("message", "task", "worker", "shortest"),
    [
        (None, (None, None), (None, None), None),
        ([None, None], (None, None), (None, None), None),
        ([5, 3], (None, None), (None, None), 3),
        ([5, None], (60, 9), (None, None), 5),
        (None, (60, None), (None, None), 60),
        (None, (60, None), (10, 5), 5),
        (None, (None, None), (10, None), 10),
    ],
)
def test_the_message_counts_before_the_task_and_the_task_before_the_worker(
    message: Any, task: Any, worker: Any, shortest: float | None
) -> None:
    """As for Celery, each of both by itself; the first to come is what matters."""
    app = Celery("limited")
    made = app.task(name="limited", time_limit=task[0], soft_time_limit=task[1])(body)
    made.push_request(timelimit=message)
    limits = Limits(app)
    instance = SimpleNamespace(app=app, time_limit=worker[0], soft_time_limit=worker[1])
    signals.celeryd_init.send(sender="w", instance=instance, options={})
    assert limits.shortest_s(made) == shortest
