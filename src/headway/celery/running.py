"""`serve`: a Celery fleet runs the jobs of an app. A message has nothing in it but the number of a
job and its fence; what the job is, the worker hears when it claims it.
"""

from __future__ import annotations

import logging
from typing import Any

from celery import signals

from headway.celery.announcing import Announcer, keep_quiet
from headway.celery.limits import Limits
from headway.celery.station import Station, Stations
from headway.errors import BadJob, ClaimRefused, HeadwayError
from headway.remote.client import Client
from headway.remote.taking import Introduction
from headway.remote.worker import introduce
from headway.sdk.app import App

logger = logging.getLogger("headway.celery")

RUN_TASK = "headway.run"


def serve(celery_app: Any, app: App, *, queue: str | None = None) -> None:
    """Let the workers of this Celery application run the jobs of this app, whose messages go to
    `queue` (Celery's default one). Call it in the module that workers import.
    """
    if app.executor != "celery":
        raise BadJob('make the app with executor="celery", so that nothing else runs its jobs')
    url, token = app.url, app.token

    def types() -> list[dict[str, Any]]:
        name = queue or celery_app.conf.task_default_queue
        return [{"name": each, "queue": name, "kind": "run"} for each in app.registry.types]

    def said() -> Introduction:
        return introduce(app)

    keep_quiet()
    announcer = Announcer(celery_app, Client(url, token), said, types)
    stations = Stations(lambda: Station(app, url, token, announcer.name))
    limits = Limits(celery_app)

    @celery_app.task(name=RUN_TASK, ignore_result=True, shared=False)  # type: ignore[untyped-decorator]
    def run(id: int, fence: int) -> None:
        run_one(stations.here(), id, fence, limits.shortest_s(run))

    # Who has taken messages that it cannot begin yet keeps them from others who could.
    celery_app.add_defaults({"worker_prefetch_multiplier": 1})
    signals.worker_process_shutdown.connect(stations.close, weak=False)
    signals.worker_shutdown.connect(stations.close, weak=False)


def run_one(station: Station, id: int, fence: int, within_s: float | None = None) -> None:
    """Whatever goes wrong here, the job is not lost: nobody has claimed it, or its lease ends."""
    try:
        claim = station.claims.make(id, fence, within_s)
    except ClaimRefused as error:
        logger.info("nothing to do: %s", error)
    except HeadwayError as error:
        logger.warning("job %s could not be claimed, and will be sent again: %s", id, error)
    else:
        station.run(claim)
