"""`polite`: the tasks of a Celery application wait their turn in Headway.

Nothing in them changes. Where Celery would hand a message to the broker, it becomes a job; when it
is let go, the server sends the message on, and the worker claims the job before the body runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from celery import Task, signals
from celery.exceptions import ImproperlyConfigured
from celery.utils.imports import symbol_by_name

from headway.celery.announcing import Announcer, keep_quiet
from headway.celery.bodies import Bodies
from headway.celery.limits import Limits
from headway.celery.revoking import revoke_too
from headway.celery.sending import Choice, Sender, type_body
from headway.celery.station import Stations, TaskStation
from headway.errors import BadJob
from headway.remote.quick import QuickClient
from headway.remote.taking import Introduction
from headway.remote.worker import introduce
from headway.sdk.app import App

FALLBACKS = ("raise", "send")


def polite(
    celery_app: Any,
    *,
    server: str,
    token: str | None = None,
    upstream: Choice = None,
    key: Choice = None,
    tenant: Choice = None,
    priority: Choice = None,
    tasks: Iterable[str] | None = None,
    upstreams: Mapping[str, Mapping[str, Any]] | None = None,
    fallback: str = "raise",
) -> None:
    """Call it once, in the module that producers and workers import, after the app is made.

    `upstream`, `key`, `tenant` and `priority` are values, or functions of the task's arguments by
    their names: `upstream=lambda url: urlsplit(url).hostname`. `tasks`: only those, by name.
    `upstreams`: limits to declare, as in `App.upstream`. `fallback="send"`: when the server is
    away, tasks go to the broker at once, without limits; else sending raises, and nothing was sent.
    """
    if fallback not in FALLBACKS:
        raise BadJob(f"fallback is one of {', '.join(FALLBACKS)}, not {fallback!r}")
    if hasattr(celery_app, "_headway_polite"):
        raise ImproperlyConfigured("polite() was called for this Celery application before")
    declaring = App(server, token=token)
    for name, settings in (upstreams or {}).items():
        declaring.upstream(name, **settings)
    client = QuickClient(server, token)
    choices = {"upstream": upstream, "key": key, "tenant": tenant, "priority": priority}
    names = None if tasks is None else frozenset(tasks)
    sender = Sender(celery_app, client, choices, tasks=names, fallback=fallback)

    def types() -> list[dict[str, Any]]:
        queue = celery_app.conf.task_default_queue
        return [type_body(name, queue) for name in celery_app.tasks if sender.is_ours(name)]

    def said() -> Introduction:
        return introduce(declaring)

    keep_quiet()
    announcer = Announcer(celery_app, client, said, types)
    stations = Stations(lambda: TaskStation(declaring, server, token, announcer.name))
    bodies = Bodies(stations, sender, Limits(celery_app))
    celery_app._headway_polite = sender
    _send_through(celery_app, sender)
    _stand_in_front(celery_app, bodies)
    revoke_too(celery_app, client)
    signals.task_postrun.connect(bodies.ended, weak=False)
    signals.worker_process_shutdown.connect(stations.close, weak=False)
    signals.worker_shutdown.connect(stations.close, weak=False)


def _send_through(celery_app: Any, sender: Sender) -> None:
    """Where a finished message is handed to the broker. The class is what is changed: Celery makes
    one of it when its configuration has been read.
    """
    base: Any = symbol_by_name(celery_app.amqp_cls)

    class PoliteAMQP(base):  # type: ignore[misc]
        send_task_message = property(lambda _: sender)

    celery_app.amqp_cls = PoliteAMQP
    celery_app.__dict__.pop("amqp", None)


def _stand_in_front(celery_app: Any, bodies: Bodies) -> None:
    """A `__call__` of the base class of all its tasks: Celery's worker calls that instead of `run`
    as soon as there is one. Classes of tasks that have their own are wrapped one by one.
    """

    def call(task: Any, *args: Any, **kwargs: Any) -> Any:
        # A worker calls `run` and has made the request; whoever calls a task himself has none.
        return bodies.call(task, task.run, partial(Task.__call__, task), args, kwargs)

    celery_app.Task.__call__ = call

    def wrap(sender: Any, **_: Any) -> None:
        for kind in {type(task) for task in sender.tasks.values()}:
            if kind.__call__ is not call:
                _wrap_class(kind, bodies)

    if celery_app.finalized:
        wrap(celery_app)
    else:
        celery_app.on_after_finalize.connect(wrap, weak=False)


def _wrap_class(kind: Any, bodies: Bodies) -> None:
    plain = kind.__call__
    own = plain is not Task.__call__

    def call(task: Any, *args: Any, **kwargs: Any) -> Any:
        direct = partial(plain, task)
        return bodies.call(task, direct if own else task.run, direct, args, kwargs)

    kind.__call__ = call
