"""What an alarm remembers of what was told, whatever its store and its receivers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from headway.api.config import Config
from headway.api.site import Site
from headway.apps.alerts.alarm import Alarm
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
