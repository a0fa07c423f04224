"""Headway: a job queue and slot service.

Everything that programs use is here; each name is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headway.core import BreakerRule, Outcome, RetryPolicy
    from headway.core.classify import Meaning
    from headway.core.recurrence import Every
    from headway.cron import Cron
    from headway.engine.hands.context import Stopped, job
    from headway.errors import HeadwayError, SlotLost
    from headway.outcomes import (
        BadStatus,
        Cancel,
        Fail,
        Pushback,
        Retry,
        Snooze,
        check_status,
    )
    from headway.sdk.app import App
    from headway.sdk.handle import Batch, JobHandle
    from headway.sdk.jobs import Job
    from headway.sdk.slot import Slot

__version__ = version("headway")

_HOMES = {
    "App": "headway.sdk.app",
    "BadStatus": "headway.outcomes",
    "Batch": "headway.sdk.handle",
    "BreakerRule": "headway.core",
    "Cancel": "headway.outcomes",
    "Cron": "headway.cron",
    "Every": "headway.core.recurrence",
    "Fail": "headway.outcomes",
    "HeadwayError": "headway.errors",
    "Job": "headway.sdk.jobs",
    "JobHandle": "headway.sdk.handle",
    "Meaning": "headway.core.classify",
    "Outcome": "headway.core",
    "Pushback": "headway.outcomes",
    "Retry": "headway.outcomes",
    "RetryPolicy": "headway.core",
    "Slot": "headway.sdk.slot",
    "SlotLost": "headway.errors",
    "Snooze": "headway.outcomes",
    "Stopped": "headway.engine.hands.context",
    "check_status": "headway.outcomes",
    "job": "headway.engine.hands.context",
}

__all__ = [
    "App",
    "BadStatus",
    "Batch",
    "BreakerRule",
    "Cancel",
    "Cron",
    "Every",
    "Fail",
    "HeadwayError",
    "Job",
    "JobHandle",
    "Meaning",
    "Outcome",
    "Pushback",
    "Retry",
    "RetryPolicy",
    "Slot",
    "SlotLost",
    "Snooze",
    "Stopped",
    "__version__",
    "check_status",
    "job",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headway' has no attribute {name!r}")
    return getattr(import_module(home), name)
