"""Who looks after the demo: tokens, schedules and budgets at the beginning, then a deed every few
seconds, so that the audit has something to tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from headway.demo import words
from headway.demo.sites import API, MAPS
from headway.demo.stage import Refused, Stage

OPERATOR, SCRIPT = "operator", "nightly-script"
DEED_S = 5.0
SCOPES = {OPERATOR: ["read", "submit", "operate"], SCRIPT: ["read", "submit", "operate"],
          "dashboard": ["read"]}  # fmt: skip
BUDGETS = {words.TENANTS[0]: "20.00", words.TENANTS[1]: "5.00", words.TENANTS[2]: "0.25"}


class Operators:
    def __init__(self, stage: Stage, sites: dict[str, str]) -> None:
        self._stage = stage
        self._sites = sites
        self._chance = stage.chance("operators")
        self._paused: int | None = None  # the job that is held back

    # ------------------------------------------------------------------ the beginning

    async def prepare(self) -> None:
        for name, scopes in SCOPES.items():
            if name not in self._stage.tokens:
                made = await self._stage.ask(
                    "POST", "/api/tokens", {"name": name, "scopes": scopes}
                )
                self._stage.tokens[name] = made["token"]
        for schedule in self._schedules():
            await self._do(SCRIPT, "POST", "/api/schedules", schedule)
        await self._do(OPERATOR, "POST", "/api/schedules/weekly-audit/pause")
        for tenant, amount in BUDGETS.items():
            budget = {"period": "day", "amount": amount}
            await self._do(OPERATOR, "PUT", f"/api/budgets/{tenant}", budget)
        await self._do(OPERATOR, "PUT", "/api/lanes/nightly/settings", {"limit": 2})

    def _schedules(self) -> list[dict[str, Any]]:
        order = {"url": f"http://{self._sites[API]}/orders/7", "order": 7}
        return [
            {"name": "tidy-up", "every": "25s",
             "job": {"type": "report", "args": {"name": "tidy-up", "pages": 4}, "lane": "nightly"}},
            {"name": "price-check", "every": "40s",
             "job": {"type": "sync-order", "args": order, "upstream": API, "lane": "interactive",
                     "tenant": words.TENANTS[0]}},
            {"name": "hourly-summary", "cron": "0 * * * *",
             "job": {"type": "report", "args": {"name": "hourly-summary"}, "lane": "nightly"}},
            {"name": "nightly-report", "cron": "30 3 * * *", "zone": "Europe/Berlin",
             "job": {"type": "report", "args": {"name": "nightly-report"}, "lane": "nightly"}},
            {"name": "weekly-audit", "cron": "0 6 * * 1",
             "job": {"type": "report", "args": {"name": "weekly-audit"}, "lane": "nightly"}},
        ]  # fmt: skip

    # ------------------------------------------------------------------ what they do

    async def look_after(self) -> None:
        deeds: tuple[Callable[[], Awaitable[None]], ...] = (
            self._pin, self._widen, self._pause, self._close, self._cancel, self._raise_budgets,
            self._open, self._resume, self._narrow, self._retry,
        )  # fmt: skip
        while True:
            for deed in deeds:
                await self._stage.rest(DEED_S)
                try:
                    await deed()
                except Refused as refused:
                    if refused.status not in (404, 409):  # the job has ended meanwhile
                        raise

    async def _do(self, who: str, method: str, path: str, body: Any = None) -> Any:
        return await self._stage.ask(method, path, body, who=who)

    async def _some_job(self, search: str) -> int | None:
        query = {"q": search, "size": 20}
        found = (await self._stage.ask("GET", "/api/jobs", params=query))["items"]
        return self._chance.choice(found)["id"] if found else None

    async def _pin(self) -> None:
        if (id := await self._some_job("type:render-map status:queued")) is not None:
            await self._do(OPERATOR, "POST", f"/api/jobs/{id}/pin")

    async def _pause(self) -> None:
        self._paused = await self._some_job("type:mirror-file status:queued")
        if self._paused is not None:
            await self._do(OPERATOR, "POST", f"/api/jobs/{self._paused}/pause")

    async def _resume(self) -> None:
        paused, self._paused = self._paused, None
        if paused is not None:
            await self._do(OPERATOR, "POST", f"/api/jobs/{paused}/resume")

    async def _cancel(self) -> None:
        if (id := await self._some_job("type:fetch-video status:queued")) is not None:
            await self._do(SCRIPT, "POST", f"/api/jobs/{id}/cancel")

    async def _retry(self) -> None:
        if (id := await self._some_job("type:sync-order status:failed")) is not None:
            await self._do(OPERATOR, "POST", f"/api/jobs/{id}/retry")

    async def _widen(self) -> None:
        await self._do(OPERATOR, "PUT", "/api/lanes/bulk/settings", {"limit": 14})

    async def _narrow(self) -> None:
        await self._do(OPERATOR, "DELETE", "/api/lanes/bulk/settings")

    async def _close(self) -> None:
        closed = {"for_s": 120.0, "why": "they asked us to wait for their maintenance"}
        await self._do(SCRIPT, "POST", f"/api/upstreams/{MAPS}/close", closed)

    async def _open(self) -> None:
        await self._do(SCRIPT, "POST", f"/api/upstreams/{MAPS}/open")

    async def _raise_budgets(self) -> None:
        """Whoever has used his up gets twice as much."""
        for budget in (await self._stage.ask("GET", "/api/budgets"))["items"]:
            if float(budget["spent"]) >= float(budget["amount"]):
                more = {"period": budget["period"], "amount": f"{2 * float(budget['amount']):.2f}"}
                await self._do(OPERATOR, "PUT", f"/api/budgets/{budget['tenant']}", more)
