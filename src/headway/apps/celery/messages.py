"""From a job to the message that a Celery worker gets."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple

import msgspec

from headway.apps.celery.tables import CarriedType, Kind
from headway.engine.hands import RemoteWork

RUN_TASK = "headway.run"
HEADER = "headway"  # where a task's own message says which job it is


class Parcel(NamedTuple):
    """A message, and what else the broker is told."""

    work: RemoteWork | Word
    body: bytes
    options: dict[str, Any]


class Word(NamedTuple):
    """To whoever waits for a task in Celery: its job has ended, and its body will not run."""

    id: int
    state: str
    why: str


class Kept(msgspec.Struct):
    """A task's own message, as its producer has prepared it."""

    body: str  # base64
    content_type: str
    content_encoding: str
    exchange: str
    routing_key: str
    headers: dict[str, Any]
    properties: dict[str, Any] = {}


class KeptArgs(msgspec.Struct):
    """The payload of such a job."""

    message: Kept


def parcel_of(work: RemoteWork, carried: CarriedType) -> Parcel:
    """ValueError: there is no message in it."""
    return _own_message(work) if carried.kind is Kind.TASK else _run_message(work, carried.queue)


def _run_message(work: RemoteWork, queue: str) -> Parcel:
    """Only id and fence: whoever reads the queue learns nothing of the payload."""
    name = f"headway-{work.id}-{work.fence}"
    embedded = {"callbacks": None, "errbacks": None, "chain": None, "chord": None}
    body = json.dumps([[work.id, work.fence], {}, embedded]).encode()
    headers = {
        "lang": "py", "task": RUN_TASK, "id": name, "root_id": name, "parent_id": None,
        "group": None, "retries": 0, "eta": None, "expires": None, "timelimit": [None, None],
        "argsrepr": f"({work.id}, {work.fence})", "kwargsrepr": "{}", "origin": "headway",
        "ignore_result": True,
    }  # fmt: skip
    return Parcel(work, body, {
        "exchange": "", "routing_key": queue, "headers": headers, "correlation_id": name,
        "content_type": "application/json", "content_encoding": "utf-8",
    })  # fmt: skip


def _own_message(work: RemoteWork) -> Parcel:
    return _sent_on(work, work.args, {"id": work.id, "fence": work.fence})


def last_word(word: Word, args: str) -> Parcel:
    """The task's own message once more: the worker that gets it says so in Celery's way, and does
    nothing else.
    """
    ended = {"state": word.state, "why": word.why}
    return _sent_on(word, args, {"id": word.id, "fence": 0, "ended": ended})


def _sent_on(what: RemoteWork | Word, args: str, header: dict[str, Any]) -> Parcel:
    try:
        kept = msgspec.json.decode(args, type=KeptArgs).message
        body = base64.b64decode(kept.body, validate=True)
    except (msgspec.MsgspecError, ValueError) as error:
        raise ValueError(f"there is no message of a Celery task in it: {error}") from None
    # Its time has come, so the worker must not look at its own clock for that.
    headers = {**kept.headers, "eta": None, HEADER: header}
    return Parcel(what, body, {
        **kept.properties, "exchange": kept.exchange, "routing_key": kept.routing_key,
        "headers": headers, "content_type": kept.content_type,
        "content_encoding": kept.content_encoding,
    })  # fmt: skip
