"""`revoke` also reaches a task that still waits in Headway."""

from __future__ import annotations

import logging
from typing import Any

from celery.utils.imports import symbol_by_name

from headway.celery.sending import LABEL
from headway.core import IllegalTransition
from headway.core.change import UnknownTicket
from headway.errors import HeadwayError
from headway.remote.client import Ask, Client

logger = logging.getLogger("headway.celery")

OPEN = "pending,queued,running,paused"


def revoke_too(celery_app: Any, client: Client) -> None:
    """Celery's own order goes out first: workers refuse the task from then on. The class is what is
    changed, since Celery reads its configuration when it makes one.
    """
    base: Any = symbol_by_name(celery_app.control_cls)

    class PoliteControl(base):  # type: ignore[misc]
        def revoke(self, task_id: Any, *args: Any, **options: Any) -> Any:
            answer = super().revoke(task_id, *args, **options)
            for each in [task_id] if isinstance(task_id, str) else task_id:
                _cancel(client, each)
            return answer

    celery_app.control_cls = PoliteControl
    celery_app.__dict__.pop("control", None)


def _cancel(client: Client, task_id: str) -> None:
    query = {"q": f'label:"{LABEL}={task_id}"', "status": OPEN}
    try:
        for job in client.call(Ask("GET", "/api/jobs", query=query))["items"]:
            client.call(Ask("POST", f"/api/jobs/{job['id']}/cancel", verb="cancel"))
    except (IllegalTransition, UnknownTicket):
        return  # it has just ended
    except HeadwayError as error:
        logger.warning("task %s is revoked, but its job may still wait: %s", task_id, error)
