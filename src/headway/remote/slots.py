"""A slot that a server grants: `with app.slot(...)` on `App("http://…")`.

It is renewed in the background for as long as the block runs. On a loop that is a task; for plain
code it is a thread, which needs a loop of its own only when the first renewal is due.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from headway.core import Outcome
from headway.errors import HeadwayError, SlotLost, UnknownSlot
from headway.lease_clock import lease_clock
from headway.outcomes import Duration, Headers, outcome_of_block, outcome_of_status, seconds
from headway.remote.client import Backoff, Client
from headway.remote.slot_protocol import (
    GIVE_BACK_S,
    LEAVE_S,
    POLL_S,
    Heard,
    Lease,
    Renewed,
    Step,
    Waiting,
    giving_back,
    leaving,
    place,
    sendable,
    trouble,
)

logger = logging.getLogger("headway.slots")

T = TypeVar("T")

LOOK_S = 1.0  # how long a keeper sleeps at most: a clock may have jumped while the machine slept
MAX_HOLDER = 200  # characters


def wish_body(
    upstreams: tuple[str, ...], *, lane: str, tenant: str, key: str | None, tools: tuple[str, ...],
    weight: float, priority: int, lease_s: float | None, holder: str,
) -> dict[str, Any]:  # fmt: skip
    """The body of `POST /api/slots`. What was not said is left to the server."""
    body: dict[str, Any] = {"lane": lane, "weight": weight, "priority": priority}
    if upstreams:
        body["upstreams"] = list(upstreams)
    for name, value in (("tenant", tenant), ("key", key), ("tools", list(tools))):
        if value:
            body[name] = value
    if lease_s is not None:
        body["lease_s"] = lease_s
    holder = holder or f"{socket.gethostname()}, process {os.getpid()}"
    body["holder"] = sendable(holder, MAX_HOLDER)
    return body


class RemoteSlot:
    """One use each, like a slot of this process."""

    def __init__(
        self,
        client: Client,
        wish: Mapping[str, Any],
        timeout: Duration | None = None,
        *,
        on_lost: Callable[[], None] | None = None,
        heard: Heard = lambda _: None,
        poll_s: float = POLL_S,
    ) -> None:
        self.lost = threading.Event()
        self._client = client
        self._wish = wish
        self._timeout_s = None if timeout is None else seconds(timeout)
        self._on_lost = on_lost
        self._heard = heard
        self._poll_s = poll_s
        self._lease: Lease | None = None
        self._outcome: Outcome | None = None
        self._why_lost = ""
        self._left = threading.Event()
        self._cancel: Callable[[], object] = lambda: None
        self._keeper: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def id(self) -> int:
        return self._held().id

    @property
    def fence(self) -> int:
        return self._held().fence

    @property
    def upstream(self) -> str | None:
        return self._held().upstream

    def report(
        self, status: int, retry_after: Duration | None = None, *, headers: Headers | None = None
    ) -> None:
        """What the upstream answered: 429 and its like close it for everybody. The server hears it
        when the slot is given back.
        """
        after_s = None if retry_after is None else seconds(retry_after)
        self._outcome = outcome_of_status(status, after_s, headers)

    def _held(self) -> Lease:
        if self._lease is None:
            raise RuntimeError("the slot is not held; enter it with `with` or `async with`")
        return self._lease

    def _waiting(self) -> Waiting:
        return Waiting(self._wish, self._timeout_s, self._poll_s, self._heard)

    # ------------------------------------------------------------------ in plain code

    def __enter__(self) -> RemoteSlot:
        waiting = self._waiting()
        try:
            self._lease = drive(self._client, waiting.steps())
            self._keeper = threading.Thread(
                target=self._keep_in_thread, name="headway-slot", daemon=True
            )
            self._keeper.start()
        except BaseException:
            self._stop_keeping()
            if self._lease is not None:
                drive(self._client, giving_back(self._lease, Outcome.cancelled()))
            elif waiting.id is not None:
                drive(self._client, leaving(waiting.id))
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stop_keeping()
        assert self._keeper is not None
        self._keeper.join()
        self._given_back(drive(self._client, self._giving_back(error)), error)

    def _keep_in_thread(self) -> None:
        """Most slots are given back before there is anything to do."""
        lease = self._held()
        while not self._left.wait(_nap_s(lease.renew_at)):
            if lease_clock() >= lease.renew_at:
                try:
                    asyncio.run(self._keep_until_left())
                except asyncio.CancelledError:
                    pass  # it was left
                except Exception as error:  # there is no place for one more loop
                    self._lose(f"it cannot be renewed ({error})")
                return

    async def _keep_until_left(self) -> None:
        loop, keeping = asyncio.get_running_loop(), asyncio.current_task()
        assert keeping is not None
        self._cancel = lambda: loop.call_soon_threadsafe(keeping.cancel)
        if not self._left.is_set():  # after we can be told, so that nobody leaves unnoticed
            await self._keep()

    def _stop_keeping(self) -> None:
        self._left.set()
        with suppress(RuntimeError):  # its loop has ended by itself
            self._cancel()

    # ------------------------------------------------------------------ on a loop

    async def __aenter__(self) -> RemoteSlot:
        waiting = self._waiting()
        # A task of its own: who is cancelled while the first answer is on its way must still read
        # it, since without its number nobody can leave the line.
        entering = asyncio.ensure_future(adrive(self._client, waiting.steps()))
        try:
            self._lease = await asyncio.shield(entering)
        except BaseException:
            waiting.over = True
            if waiting.id is not None:
                entering.cancel()
            await self._aleave(waiting, entering)
            raise
        self._task = asyncio.create_task(self._keep())
        return self

    async def _aleave(self, waiting: Waiting, entering: asyncio.Future[Lease | None]) -> None:
        await _over(entering)
        lease = None if entering.cancelled() or entering.exception() else entering.result()
        if lease is not None:
            await adrive(self._client, giving_back(lease, Outcome.cancelled()))
        elif waiting.id is not None:
            await adrive(self._client, leaving(waiting.id))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        assert self._task is not None
        self._task.cancel()
        releasing = asyncio.ensure_future(adrive(self._client, self._giving_back(error)))
        try:
            accepted = await asyncio.shield(releasing)
        finally:
            await _over(releasing)  # also when we are cancelled now
            await _over(self._task)
        self._given_back(accepted, error)

    # ------------------------------------------------------------------ keeping it

    async def _keep(self) -> None:
        """Renew it when a third of it is over, and try again until it ends by our own clock."""
        lease = self._held()
        backoff = Backoff(longest_s=min(5.0, lease.lease_s / 6))
        next_at, why = lease.renew_at, "it could not be renewed in time"
        while True:
            now = lease_clock()
            if now >= lease.ends_at:
                return self._lose(why)
            if now < next_at:
                await asyncio.sleep(_nap_s(min(next_at, lease.ends_at)))
                continue
            try:
                async with asyncio.timeout(lease.ends_at - now):
                    renewed = await self._client.acall(lease.renewal(), Renewed, patience_s=0.0)
            except (SlotLost, UnknownSlot) as error:
                return self._lose(str(error))
            except Exception as error:  # whatever it is, there is time left
                why = trouble(error)
                next_at = lease_clock() + backoff.next_s()
            else:
                backoff.reset()
                lease.prolong(renewed.lease_s, now)
                next_at = lease.renew_at

    def _lose(self, why: str) -> None:
        self._why_lost = why
        self.lost.set()
        logger.warning("the slot at %s is lost: %s", place(self._wish), why)
        if self._on_lost is not None:
            try:
                self._on_lost()
            except Exception:
                logger.exception("what was to be called for a lost slot has failed")

    # ------------------------------------------------------------------ giving it back

    def _giving_back(
        self, error: BaseException | None
    ) -> Generator[Step, Any, bool | HeadwayError]:
        """Of a slot that is lost the server should hear too, since it counts who went on."""
        outcome = self._outcome or outcome_of_block(error)
        return giving_back(self._held(), outcome, 0.0 if self.lost.is_set() else GIVE_BACK_S)

    def _given_back(self, accepted: bool | HeadwayError, error: BaseException | None) -> None:
        self._lease = None
        where = place(self._wish)
        if isinstance(accepted, HeadwayError):
            logger.warning("the slot at %s could not be given back, and is free when its lease is "
                           "over: %s", where, accepted)  # fmt: skip
        elif not accepted and not self.lost.is_set():
            self._lose("its lease was over when it was given back")
        if self.lost.is_set() and error is None:
            raise SlotLost(f"the slot at {where} was lost: {self._why_lost}")


def _nap_s(until: float) -> float:
    return min(max(until - lease_clock(), 0.0), LOOK_S)


async def _over(future: asyncio.Future[Any]) -> None:
    """Wait until it has ended, or end it when it takes too long. How it ended is not said."""
    if not future.done():
        await asyncio.wait((future,), timeout=LEAVE_S)
    if not future.done():
        future.cancel()
        await asyncio.wait((future,))


# ---------------------------------------------------------------------- asking for real


def drive(client: Client, steps: Generator[Step, Any, T]) -> T:
    """Ask what is to be asked, wait where is to be waited; what came of it."""
    reply: Any = None
    error: Exception | None = None
    try:
        while True:
            step = steps.send(reply) if error is None else steps.throw(error)
            reply = error = None
            if isinstance(step, float):
                time.sleep(step)
                continue
            try:
                reply = client.call(step[0], step[1], patience_s=0.0)
            except Exception as caught:
                error = caught
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def adrive(client: Client, steps: Generator[Step, Any, T]) -> T:
    """The same on a loop."""
    reply: Any = None
    error: Exception | None = None
    try:
        while True:
            step = steps.send(reply) if error is None else steps.throw(error)
            reply = error = None
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            try:
                reply = await client.acall(step[0], step[1], patience_s=0.0)
            except Exception as caught:
                error = caught
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()
