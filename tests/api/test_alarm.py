"""What an alarm remembers of what was told, whatever its store and its receivers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2
import msgspec

from headway.api.config import Config
from headway.api.site import Site
from headway.apps.alerts.alarm import Alarm
from headway.apps.alerts.ledger import Message, What
from headway.apps.alerts.receiver import MOST, Receiver
from headway.apps.alerts.settings import AlertSettings
from headway.apps.alerts.tables import DROP_OPEN, PUT_OPEN
from headway.errors import StoreFull
from tests.api.test_alert_ledger import seen

ID = "upstream_closed:upstream:a.example"
URL = "https://hooks.example/x"


@dataclass
class Standing:
    """As much of a site as an alarm looks at, with a store that may refuse what it is given."""

    items: list[Any] = field(default_factory=list)
    rows: dict[str, Any] = field(default_factory=dict)
    refuses: bool = False
    at: float = 1_000.0
    engine: None = None

    def __post_init__(self) -> None:
        self.config = Config()
        self.app = self.store = self.watch = self

    def now(self) -> float:
        return self.at

    def answer(self, _tenant: None) -> dict[str, Any]:
        return {"items": self.items}

    def write(self, writes: list[Any]) -> None:
        if self.refuses:
            raise StoreFull("no room")
        for what, rows in writes:
            for row in rows:
                if what is PUT_OPEN:
                    self.rows[row[0]] = row
                elif what is DROP_OPEN:
                    self.rows.pop(row[0], None)


def in_a_loop(do: Callable[[Alarm, Standing], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        site = Standing()
        alarm = Alarm(cast("Site", site), AlertSettings(url=(URL,)), "instance")
        await do(alarm, site)
        await alarm.stop()

    asyncio.run(run())


async def looks(alarm: Alarm, site: Standing, *items: Any, after_s: float = 5.0) -> None:
    site.items = list(items)
    site.at += after_s
    await alarm._look()


def hears_all(alarm: Alarm) -> None:
    """The receiver takes all that waits for it."""
    [receiver] = alarm.receivers
    while receiver._pending:
        alarm._heard(receiver._pending.popleft(), receiver)


def test_what_the_store_refuses_is_written_down_later() -> None:
    async def begins_and_ends(alarm: Alarm, site: Standing) -> None:
        await looks(alarm, site, seen())
        await looks(alarm, site, seen())
        hears_all(alarm)
        site.refuses = True
        await looks(alarm, site, seen())
        assert site.rows[ID][3] is None
        site.refuses = False
        await looks(alarm, site, seen())
        assert site.rows[ID][3] is not None

        await looks(alarm, site, after_s=60.0)
        hears_all(alarm)
        site.refuses = True
        await looks(alarm, site)
        assert ID in site.rows
        site.refuses = False
        await looks(alarm, site)
        assert site.rows == {}

    in_a_loop(begins_and_ends)


def test_what_begins_again_before_its_end_was_written_down_is_there() -> None:
    async def back(alarm: Alarm, site: Standing) -> None:
        await looks(alarm, site, seen())
        await looks(alarm, site, seen())
        hears_all(alarm)
        await looks(alarm, site, after_s=60.0)
        hears_all(alarm)
        site.refuses = True
        await looks(alarm, site, seen())
        await looks(alarm, site, seen())
        site.refuses = False
        await looks(alarm, site, seen())
        assert site.rows[ID][2:] == (site.at - 5.0, None)

    in_a_loop(back)


def test_nothing_waits_for_a_receiver_that_wants_no_more() -> None:
    """What goes on is untold, for one that is named later; what has ended is forgotten."""

    async def gone(_request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(410)

    async def over(alarm: Alarm, site: Standing) -> None:
        await looks(alarm, site, seen(), seen("b.example"))
        await looks(alarm, site, seen(), seen("b.example"))
        await looks(alarm, site, seen("b.example"), after_s=60.0)
        [receiver] = alarm.receivers
        assert receiver.waiting == 3
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(gone)) as client:
            await receiver._one_turn(client, alarm._heard)
        assert (receiver.waiting, alarm._waiting) == (0, {})
        await looks(alarm, site, seen("b.example"))
        assert [row[3] for row in site.rows.values()] == [None]

    in_a_loop(over)


def test_nothing_waits_for_what_was_one_too_many() -> None:
    async def too_many(alarm: Alarm, site: Standing) -> None:
        items = [seen(f"{number}.example") for number in range(600)]
        for _ in range(2):
            await looks(alarm, site, *items)
        await looks(alarm, site, after_s=60.0)
        [receiver] = alarm.receivers
        assert (receiver.waiting, receiver.dropped) == (MOST, 200)
        assert len(alarm._waiting) == MOST
        hears_all(alarm)
        await looks(alarm, site)
        assert site.rows == {}

    in_a_loop(too_many)


def test_what_is_tried_again_is_the_same_message_whatever_has_come_since() -> None:
    """A receiver that took it, and could not say so, knows it by its id."""
    sent: list[tuple[str, Any]] = []

    async def unwell_once(request: httpx2.Request) -> httpx2.Response:
        sent.append((request.headers["webhook-id"], msgspec.json.decode(request.content)))
        return httpx2.Response(500 if len(sent) == 1 else 204)

    async def tell() -> None:
        heard: list[Message] = []
        one = Receiver(URL, "", "instance", 600, lambda: 0.0)
        one._delay_s = 0.0
        first, *more = [Message(What.BEGINS, f"{n}@0", 0.0, seen(str(n))) for n in range(3)]
        async with httpx2.AsyncClient(transport=httpx2.MockTransport(unwell_once)) as client:
            one.tell([first])
            await one._one_turn(client, lambda message, _: heard.append(message))
            one.tell(more)
            while one.waiting:
                await one._one_turn(client, lambda message, _: heard.append(message))
        assert heard == [first, *more]

    asyncio.run(tell())
    assert sent[0][0] == sent[1][0] != sent[2][0]
    assert [said["type"] for _, said in sent][:2] == ["alert.begins", "alert.begins"]
