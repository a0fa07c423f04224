"""A task that is sent becomes a job: its message, ready to go, is kept as the payload, and the
server sends it on when its turn has come.

This sits where Celery hands a finished message to the broker, so that all ways to send a task lead
through it: `delay`, `apply_async`, `send_task`, `retry`, schedules and canvas.
"""

from __future__ import annotations

import base64
import inspect
import threading
import uuid
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from kombu.compression import compress
from kombu.serialization import dumps

from headway.celery.claiming import FleetLine
from headway.errors import BadJob, OutcomeUnknown, StoreUnavailable
from headway.remote.client import Ask, Client

LABEL = "celery_id"  # by which the job of a task is found
PLAIN = (str, int, float, bool, type(None))
LONG_S = 86_400.0  # Celery's own limits say how long a task may take

Ask_ = Callable[..., Any]
Choice = Any  # a value, or a function of the task's arguments, by their names

# What a running task puts aside: its own retry is sent when it is known how it ended.
put_aside: ContextVar[tuple[str, list[dict[str, Any]]] | None] = ContextVar(
    "headway_put_aside", default=None
)


class Caught:
    """Stands for a producer, and keeps what it is told to publish."""

    def __init__(self, producer: Any, put: Callable[[Any, dict[str, Any]], None]) -> None:
        self.connection = producer.connection
        self._put = put

    def publish(self, body: Any, **options: Any) -> None:
        self._put(body, options)

    def revive(self, channel: Any) -> None:
        """There is no connection to be made anew."""


class Sender:
    def __init__(
        self, celery_app: Any, client: Client, choices: Mapping[str, Choice],
        *, tasks: frozenset[str] | None, fallback: str,
    ) -> None:  # fmt: skip
        self._app = celery_app
        self._client = client
        self._line = FleetLine(client, "")
        self._choices = choices
        self._tasks = tasks
        self._fallback = fallback
        self._lock = threading.Lock()
        self._carried: set[str] = set()  # types that the server knows
        self._send: Callable[..., Any] | None = None  # Celery's own way

    def is_ours(self, name: str) -> bool:
        if self._tasks is None:
            return not name.startswith(("celery.", "headway."))
        return name in self._tasks

    def __call__(self, producer: Any, name: str, message: Any, **options: Any) -> Any:
        """In the place of `app.amqp.send_task_message`."""
        if self._send is None:
            self._send = self._app.amqp._create_task_sender()
        if not self.is_ours(name):
            return self._send(producer, name, message, **options)
        if not isinstance(message.body, tuple):
            raise BadJob("polite tasks need task_protocol = 2, which is Celery's default")

        def put(body: Any, told: dict[str, Any]) -> None:
            self._put(name, body, told)

        caught = Caught(producer, put)
        try:
            # No event says that it was sent: it was not, yet.
            return self._send(caught, name, message._replace(sent_event=None), **options)
        except StoreUnavailable as error:
            if self._fallback != "send" or isinstance(error, OutcomeUnknown):
                raise
            return self._send(producer, name, message, **options)

    def _put(self, name: str, body: Any, told: dict[str, Any]) -> None:
        headers, queue = told["headers"], _queue_of(told)
        type = name if queue == self._app.conf.task_default_queue else f"{name}@{queue}"
        if len(type) > 200:
            raise BadJob(f"the task {name!r} has a name of more than 200 characters")
        self._carry(type, queue)
        job: dict[str, Any] = {
            "type": type,
            "args": {"message": _kept(body, told)},
            "labels": {LABEL: headers["id"]},
            "about": {"task": name, "args": str(headers.get("argsrepr") or "")[:200]},
            # Asking twice puts it once.
            "unique": {"key": uuid.uuid4().hex, "while": "queued+running", "on_conflict": "join"},
            **_times(headers),
            **self._chosen(name, body),
        }
        aside = put_aside.get()
        if aside is not None and aside[0] == headers["id"]:
            aside[1].append(job)
        else:
            self.put([job])

    def put(self, jobs: list[dict[str, Any]]) -> None:
        """All of them or none."""
        self._client.call(Ask("POST", "/api/work/put", {"jobs": jobs}, repeats=True))

    def _carry(self, type: str, queue: str) -> None:
        """The server is told once, before the first job of a type."""
        with self._lock:
            if type in self._carried:
                return
        self._line.carry([type_body(type, queue)])
        with self._lock:
            self._carried.add(type)

    def _chosen(self, name: str, body: Any) -> dict[str, Any]:
        args, kwargs = body[0], body[1]
        task = self._app.tasks.get(name)
        found: dict[str, Any] = {}
        for option, choice in self._choices.items():
            value = asked(choice, option, task, args, kwargs) if callable(choice) else choice
            if value is not None:
                found[option] = value
        return found


def asked(choice: Ask_, option: str, task: Any, args: Any, kwargs: Any) -> Any:
    """What a function says, called with those of the task's arguments that it names."""
    named: dict[str, Any] = dict(kwargs)
    if task is not None:
        try:
            bound = inspect.signature(task.run).bind(*args, **kwargs)
        except TypeError as error:
            raise BadJob(f"the arguments do not fit the task {task.name!r}: {error}") from None
        bound.apply_defaults()
        named = dict(bound.arguments)
    wanted = inspect.signature(choice).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in wanted.values()):
        return choice(**named)
    missing = [name for name, each in wanted.items()
               if name not in named and each.default is inspect.Parameter.empty]  # fmt: skip
    if missing:
        raise BadJob(f"{option}= asks for {', '.join(missing)}, and the task has no such argument")
    return choice(**{name: named[name] for name in wanted if name in named})


def type_body(type: str, queue: str) -> dict[str, Any]:
    """Failures are for Celery to try again; only pushbacks are not."""
    return {"name": type, "queue": queue, "kind": "task", "retries": 0, "timeout_s": LONG_S}


def _queue_of(told: Mapping[str, Any]) -> str:
    """The routing key is the queue, unless an exchange of its own leads there."""
    declared = told.get("declare") or []
    name = declared[0].name if declared else told["routing_key"]
    return str(name)


def _kept(body: Any, told: dict[str, Any]) -> dict[str, Any]:
    headers = dict(told["headers"])
    content_type, encoding, data = dumps(body, serializer=told.get("serializer"))
    content = data.encode() if isinstance(data, str) else bytes(data)
    if told.get("compression"):
        content, headers["compression"] = compress(content, told["compression"])
    exchange = told.get("exchange") or ""
    left_out = {"headers", "serializer", "compression", "exchange", "routing_key", "declare",
                "retry", "retry_policy", "timeout", "confirm_timeout"}  # fmt: skip
    return {
        "body": base64.b64encode(content).decode(),
        "content_type": content_type,
        "content_encoding": encoding,
        "exchange": str(getattr(exchange, "name", exchange)),
        "routing_key": told["routing_key"],
        "headers": headers,
        "properties": {name: value for name, value in told.items()
                       if name not in left_out and isinstance(value, PLAIN)},
    }  # fmt: skip


def _times(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Its time to come is for Headway to keep, and so is the end of its use."""
    found: dict[str, Any] = {}
    if headers.get("eta"):
        found["at"] = _stamp(headers["eta"])
    if headers.get("expires"):
        found["deadline"] = _stamp(headers["expires"])
    return found


def _stamp(moment: Any) -> float:
    """A time without a zone is UTC, as it is for Celery's workers."""
    found = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
