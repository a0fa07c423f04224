"""The thread that sends messages to the broker, so that no loop waits for it.

A broker that is away is tried again and again, ever more slowly. What could not be sent, or only
perhaps, goes back to the queue: the fence of a message that arrives after all is stale.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from headway.apps.celery.messages import Parcel, Word
from headway.errors import BadSettings
from headway.net.redaction import redact
from headway.remote.client import Backoff

logger = logging.getLogger("headway.celery")

TICK_S = 1.0
MANY = 200  # messages that are sent before anybody is told
ANSWER_S = 5.0
LONGEST_S = 10.0  # between two tries to reach the broker


class Customer(Protocol):
    """Who wants messages to be sent. Called from the thread."""

    def unsent(self, parcels: Sequence[Parcel]) -> None: ...

    def broker_is(self, trouble: str) -> None:
        """Empty: it is there."""

    def worded(self, word: Word) -> Parcel | None:
        """None: there is nobody to be told."""

    def look(self) -> None:
        """A second has passed."""


class Publisher:
    def __init__(self, broker: str, customer: Customer) -> None:
        self._broker = broker
        self._customer = customer
        self._parcels: SimpleQueue[Parcel | Word | None] = SimpleQueue()
        self._connection: Any = None
        self._producer: Any = None
        self._backoff = Backoff(LONGEST_S, 0.1)
        self.trouble: str | None = None  # empty: the broker is there; None: not known yet
        self._look_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headway-celery", daemon=True)
        self.sent = 0

    def start(self) -> None:
        self._thread.start()

    def send(self, parcels: Sequence[Parcel]) -> None:
        """From any thread, at once."""
        for parcel in parcels:
            self._parcels.put(parcel)

    def tell(self, word: Word) -> None:
        """It is kept until the broker is there."""
        self._parcels.put(word)

    def stop(self) -> None:
        self._stopping.set()
        self._parcels.put(None)
        self._thread.join(2 * ANSWER_S)

    # ------------------------------------------------------------------ in the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._producer is None and not self._reach():
                    self._unsent(self._waiting())
                    self._customer.look()
                    self._stopping.wait(self._backoff.next_s())
                    continue
                parcels = self._wait()
                if parcels:
                    self._send_all(parcels)
                else:
                    self._knock()
                self._look()
            except Exception:
                logger.exception("the courier of Celery's messages goes on after this")
                self._stopping.wait(TICK_S)
        self._unsent(self._waiting())
        self._hang_up()

    def _look(self) -> None:
        """Not after each message: it takes a turn of the brain."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + TICK_S
            self._customer.look()

    def _unsent(self, parcels: Sequence[Parcel | Word]) -> None:
        for each in parcels:
            if isinstance(each, Word):
                self.tell(each)
        self._customer.unsent([each for each in parcels if isinstance(each, Parcel)])

    def _wait(self) -> list[Parcel | Word]:
        try:
            first = self._parcels.get(timeout=TICK_S)
        except Empty:
            return []
        return [] if first is None else [first, *self._waiting()]

    def _waiting(self) -> list[Parcel | Word]:
        found: list[Parcel | Word] = []
        with suppress(Empty):
            while len(found) < MANY:
                parcel = self._parcels.get_nowait()
                if parcel is not None:
                    found.append(parcel)
        return found

    def _send_all(self, parcels: list[Parcel | Word]) -> None:
        for done, each in enumerate(parcels):
            parcel = self._customer.worded(each) if isinstance(each, Word) else each
            if parcel is None:
                continue
            try:
                self._producer.publish(parcel.body, retry=False, **parcel.options)
                self.sent += 1
            except Exception as error:
                self._away(error)
                self._unsent(parcels[done:])
                return

    def _knock(self) -> None:
        """Somebody who has nothing to send should know whether it could."""
        try:
            self._connection.channel().close()
        except Exception as error:
            self._away(error)

    def _reach(self) -> bool:
        try:
            self._connection = connection_to(self._broker)
            self._connection.ensure_connection(max_retries=1, timeout=ANSWER_S)
            self._producer = self._connection.Producer(self._connection.channel())
        except Exception as error:
            self._away(error)
            return False
        self._backoff.reset()
        if self.trouble:
            logger.warning("the Celery broker is back")
        if self.trouble != "":
            self.trouble = ""
            self._customer.broker_is("")
        return True

    def _away(self, error: Exception) -> None:
        text = redact(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        if not self.trouble:
            logger.warning("the Celery broker cannot be reached (%s); trying again", text)
        self.trouble = text
        self._customer.broker_is(text)
        self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                connection.release()


def connection_to(broker: str) -> Any:
    """Nothing is sent yet. No call waits for ever, whatever the broker does."""
    try:
        from kombu import Connection  # noqa: PLC0415 - few have a fleet
    except ImportError:
        raise BadSettings(
            "celery_broker is set, and Celery is not installed; pip install 'headway[celery]'"
        ) from None
    options: dict[str, Any] = {}
    if broker.startswith(("redis:", "rediss:", "redis+", "unix:", "sentinel:")):
        options = {"socket_timeout": ANSWER_S, "socket_connect_timeout": ANSWER_S}
    elif broker.startswith(("amqp:", "amqps:", "pyamqp:")):
        options = {"read_timeout": ANSWER_S, "write_timeout": ANSWER_S}
    try:
        return Connection(broker, connect_timeout=ANSWER_S, transport_options=options)
    except Exception as error:
        raise BadSettings(redact(f"celery_broker is no address of a broker: {error}")) from None
