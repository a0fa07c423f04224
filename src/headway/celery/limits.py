"""Celery's own time limits. They count from the moment at which a process takes a message up, so
what a task waits for its start is taken from its time, and the server has to know how much it has.
"""

from __future__ import annotations

from typing import Any

from celery import signals


class Limits:
    """The worker is noted before it forks its processes: its command line may have limits."""

    def __init__(self, celery_app: Any) -> None:
        self._app = celery_app
        self._worker: Any = None
        signals.celeryd_init.connect(self._begins, weak=False)

    def _begins(self, instance: Any, **_: Any) -> None:
        if instance.app is self._app:
            self._worker = instance

    def shortest_s(self, task: Any) -> float | None:
        """Of the soft and the hard one, as its message says it, or the task, or the worker. None:
        it may take as long as it likes.
        """
        hard, soft = task.request.timelimit or (None, None)
        found = (
            hard or task.time_limit or getattr(self._worker, "time_limit", None),
            soft or task.soft_time_limit or getattr(self._worker, "soft_time_limit", None),
        )
        return min((float(each) for each in found if each), default=None)
