"""Programs elsewhere that want slots: those of ten tenants, one of which is greedy."""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import Any

from headway.demo import words
from headway.demo.stage import Stage, play

FILES, MIRROR = "files.example", "mirror.example"
GREEDY = words.TENANTS[-1]
CLIENTS, OF_THE_GREEDY = 2, 24  # of each tenant
OLD_CLIENTS = 5  # that speak the protocol of the fair queue
LEASE_S = 30.0
WAIT_MS = 20_000


class Crowd:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def gather(self) -> None:
        """All of them, for ever."""
        async with asyncio.TaskGroup() as everybody:
            for tenant in words.TENANTS:
                for number in range(1, (OF_THE_GREEDY if tenant == GREEDY else CLIENTS) + 1):
                    who = f"{tenant}-{number}"
                    chance = self._stage.chance(f"slot {who}")
                    everybody.create_task(self._visits(tenant, who, chance))
            for number in range(1, OLD_CLIENTS + 1):
                chance = self._stage.chance(f"fair queue {number}")
                everybody.create_task(self._old_visits(f"203.0.113.{number}/32", chance))

    async def _visits(self, tenant: str, who: str, chance: Random) -> None:
        wish = {"upstream": FILES, "tenant": tenant, "holder": who, "lease_s": LEASE_S,
                "wait_ms": WAIT_MS}  # fmt: skip

        async def visit() -> None:
            await self._stage.rest(chance.uniform(0.0, 2.0))
            while True:
                slot = await self._stage.ask("POST", "/api/slots", wish)
                while slot["status"] == "pending":
                    path = f"/api/slots/{slot['id']}/poll"
                    slot = await self._stage.ask("POST", path, {"wait_ms": WAIT_MS})
                await self._stage.rest(chance.uniform(2.0, 6.0))
                given = {"fence": slot["fence"], "status": 200}
                await self._stage.ask("POST", f"/api/slots/{slot['id']}/release", given)
                await self._stage.rest(chance.uniform(0.2, 2.0))

        await play(self._stage, f"slots of {who}", visit)

    async def _old_visits(self, network: str, chance: Random) -> None:
        async def visit() -> None:
            while True:
                await self._old_visit(network, chance)
                await self._stage.rest(chance.uniform(0.5, 2.0))

        await play(self._stage, f"fair queue for {network}", visit)

    async def _old_visit(self, network: str, chance: Random) -> None:
        wish: dict[str, Any] = {
            "hostname": MIRROR, "hostnameHash": MIRROR, "ipBucket": network, "now": _now_ms(),
        }  # fmt: skip
        said = await self._stage.ask("POST", "/api/v0/fairqueue/acquire", wish)
        while said["result"] == "pending":
            again = {"queryToken": said["queryToken"], "now": _now_ms()}
            said = await self._stage.ask("POST", "/api/v0/fairqueue/acquire", again)
        if said["result"] == "granted":
            hit_at = _now_ms()
            await self._stage.rest(chance.uniform(1.5, 4.0))
            given = {"slotToken": said["slotToken"], "hitUpstreamAtMs": hit_at, "now": _now_ms(),
                     "status": 200}  # fmt: skip
            await self._stage.ask("POST", "/api/v0/fairqueue/release", given)


def _now_ms() -> int:
    return int(time.time() * 1000)
