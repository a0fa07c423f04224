"""Looking, telling, and remembering what was told. Only a server that leads does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

import httpx2
import msgspec

from headway.api.attention import Attention, Level
from headway.api.noticing import SILENT
from headway.api.site import Site
from headway.apps.alerts.falling import Falls
from headway.apps.alerts.ledger import Ledger, Message, What
from headway.apps.alerts.receiver import Receiver, Trouble
from headway.apps.alerts.settings import AlertSettings
from headway.apps.alerts.tables import DROP_OPEN, PUT_FACT, PUT_OPEN, SELECT_FACT, SELECT_OPEN
from headway.errors import EngineStopped, StoreError
from headway.net.addresses import Allowed
from headway.net.outbound import Refused, check_url, guarded_client
from headway.store import Store
from headway.store.tables import Rows, Write

STEP_S = 10.0
FALLS_S = 30.0  # between two looks at what was learned
ANSWER_S = 5.0  # for the brain
SILENT_S = 300.0  # a receiver that was not reached for so long needs attention
LEADER = "leader"
MOST_OPEN = 1_000  # alerts that go on
LOOKS = 2  # in which something is seen before it is told: what passes at once is no alert

logger = logging.getLogger("headway.alerts")


class _Waiting(msgspec.Struct):
    """Who has not heard a message yet, and whether anybody has."""

    receivers: set[Receiver]
    was_heard: bool = False


class Alarm:
    def __init__(self, site: Site, settings: AlertSettings, instance: str) -> None:
        self._site = site
        self.settings = settings
        self.ledger = Ledger(
            settings.wants, repeat_s=settings.repeat_s, calm_s=settings.calm_s, looks=LOOKS
        )
        self.falls = Falls()
        self.receivers = [
            Receiver(url, settings.secret, instance, settings.per_minute, site.now)
            for url in settings.url
        ]
        allowed = Allowed(site.config.outbound_allow)
        for url, each in zip(settings.url, self.receivers, strict=True):
            try:
                check_url(url, allowed)
            except Refused as error:  # which would be heard of with the first alert alone
                each.last_error, each.failing_since = str(error), site.now()
                logger.error("alerts cannot be sent: %s", error)
        self._client = guarded_client(allowed, timeout_s=STEP_S)
        self._waiting: dict[str, _Waiting] = {}  # by key of a message
        self._changed: set[str] = set()  # alerts, by id, that the store knows otherwise, or not
        self._over: set[str] = set()  # alerts that the store still has
        self._looked_at = float("-inf")
        self._tasks: list[asyncio.Task[None]] = []

    # ------------------------------------------------------------------ in the server's loop

    async def start(self) -> None:
        for each in self.receivers:
            self._tasks.append(asyncio.create_task(each.run(self._client, self._heard)))
        self._tasks.append(asyncio.create_task(self._watch()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    async def _watch(self) -> None:
        await self._remember()
        while True:
            try:
                await self._look()
            except (EngineStopped, StoreError, TimeoutError):
                logger.debug("what needs attention cannot be seen now", exc_info=True)
            except Exception:
                logger.exception("alerts cannot be looked for")
            await asyncio.sleep(self.settings.look_s)

    async def _remember(self) -> None:
        """What was told before, and who led."""
        now = self._site.now()
        with suppress(StoreError):
            rows = await asyncio.to_thread(self._site.store.rows, SELECT_OPEN)
            self.ledger.load(((row[0], row[1], row[2], row[3]) for row in rows), now)
            self._tell(self.ledger.untold(now))
        with suppress(StoreError):
            self._tell(await asyncio.to_thread(self._leader_change, now))

    def _leader_change(self, now: float) -> list[Message]:
        """If servers share the store, and another one led when this was last written down."""
        if not self._site.config.dsn:
            return []
        url = self._site.app.server_url
        store = self._site.store
        rows = store.rows(SELECT_FACT, (LEADER,))
        before = rows[0][0] if rows else url
        store.write([(PUT_FACT, [(LEADER, url)])])
        if before == url or not self.settings.wants("leader_changed", Level.WARN.value):
            return []
        alert = {
            "kind": "leader_changed", "level": Level.WARN.value, "since": None, "until": None,
            "subject": {"kind": "server", "name": url}, "values": {"before": before, "now": url},
            "text": f"{url} leads now; before, it was {before}",
        }  # fmt: skip
        return [Message(What.EVENT, f"leader_changed@{url}.{now:.3f}", now, alert)]

    async def _look(self) -> None:
        site, engine = self._site, self._site.app.engine
        if engine is not None and monotonic() >= self._looked_at + FALLS_S:
            self._looked_at = monotonic()
            brain = engine.brain
            ask: Callable[[Any], Any] = lambda call: engine.ask(call).result(ANSWER_S)  # noqa: E731
            await asyncio.to_thread(self.falls.look, brain, ask)
        answer = await asyncio.to_thread(site.watch.answer, None)
        items = answer["items"][:MOST_OPEN]
        blind = any(each["kind"] in SILENT for each in items)
        messages = self.ledger.hear(items, site.now(), blind=blind)
        self._changed |= {each.of for each in messages if each.what is What.BEGINS}
        self._tell(messages)
        with suppress(StoreError):
            await self._write_down()

    def _tell(self, messages: Sequence[Message]) -> None:
        """Of what goes on while nobody is there to be told, a receiver hears that is there after a
        restart; of what has ended, nobody needs to.
        """
        reached = [each for each in self.receivers if not each.gone]
        for message in messages:
            if reached:
                self._waiting[message.key] = _Waiting(set(reached))
            elif message.what is What.ENDS:
                self._everybody_heard(message)
        for each in reached:
            for dropped in each.tell(messages):
                self._heard(dropped, each)

    def _heard(self, message: Message, receiver: Receiver) -> None:
        """Or it never will. What nobody heard because all are gone is as if nobody was there."""
        waiting = self._waiting.get(message.key)
        if waiting is None:
            return
        waiting.receivers.discard(receiver)
        waiting.was_heard = waiting.was_heard or not receiver.gone
        if not waiting.receivers:
            del self._waiting[message.key]
            if waiting.was_heard or message.what is What.ENDS:
                self._everybody_heard(message)

    def _everybody_heard(self, message: Message) -> None:
        over = self.ledger.heard_of(message, self._site.now())
        if over is not None:
            self._over.add(over)
        self._changed.add(message.of)

    async def _write_down(self) -> None:
        """What has begun, what was told, what is over: so that a restart tells nothing twice. What
        the store does not take now, it is given again.
        """
        changed, over = self._changed, self._over
        self._changed, self._over = set(), set()
        rows = [
            (id, msgspec.json.encode(each.alert).decode(), each.began_at, each.told_at)
            for id in changed if (each := self.ledger.open.get(id)) is not None
        ]  # fmt: skip
        writes: list[tuple[Write, Rows]] = []
        if over:  # first: it may have begun again since
            writes.append((DROP_OPEN, [(id,) for id in over]))
        if rows:
            writes.append((PUT_OPEN, rows))
        try:
            if writes:
                await asyncio.to_thread(self._site.store.write, writes)
        except BaseException:
            self._changed |= changed
            self._over |= over
            raise

    # ------------------------------------------------------------------ for people

    def attention(self, now: float) -> Sequence[Attention]:
        found = list(self.falls.attention(now))
        for each in self.receivers:
            since = each.failing_since
            if each.gone or (since is not None and now - since >= SILENT_S):
                why = each.gone or each.last_error
                found.append(Attention(
                    "alerts_failing", Level.WARN, ("receiver", each.host),
                    f"alerts do not reach {each.host}: {why}",
                    {"name": each.host, "why": why}, since=since,
                ))  # fmt: skip
        return found


async def send_test(
    site: Site, settings: AlertSettings, instance: str
) -> list[dict[str, Any]]:  # fmt: skip
    """One to every receiver, now, past all that waits. What came of it."""
    now = site.now()
    alert = {
        "kind": "test", "level": Level.INFO.value, "since": None, "until": None, "values": {},
        "subject": {"kind": "server", "name": site.app.server_url},
        "text": "this is a test: alerts of this server reach you",
    }  # fmt: skip
    message = Message(What.TEST, f"test@{now:.6f}", now, alert)

    async def one(url: str, client: httpx2.AsyncClient) -> dict[str, Any]:
        receiver = Receiver(url, settings.secret, instance, 1, site.now)
        began = monotonic()
        error = None
        try:
            await receiver.post(client, [message])
        except Trouble as trouble:
            error = str(trouble)
        took_ms = round(1000 * (monotonic() - began), 1)
        return {"host": receiver.host, "ok": error is None, "error": error, "took_ms": took_ms}

    async with guarded_client(Allowed(site.config.outbound_allow), timeout_s=STEP_S) as client:
        return list(await asyncio.gather(*(one(url, client) for url in settings.url)))


def open_rows(store: Store) -> list[dict[str, Any]]:
    """As they are stored, for whoever looks without a server."""
    found = []
    for _, alert, began_at, told_at in store.rows(SELECT_OPEN):
        with suppress(msgspec.MsgspecError):
            view = msgspec.json.decode(alert, type=dict)
            found.append({**view, "began_at": began_at, "told_at": told_at})
    return found
