"""Language models behind channels: providers whose limits change and stand in no document, online
calls, and batches that take what those leave over.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from itertools import count
from random import Random
from typing import Any

from headway.demo import words
from headway.demo.stage import Refused, Stage, play
from headway.testing import LlmUpstream

LARGE, SMALL = "demo-large", "demo-small"
# What they bear, one after the other: calls a second, and calls a minute.
RATES, RPMS = (4.0, 2.4, 5.0, 3.0), (150, 90, 200, 120)
BURST = 6.0
CHANGE_S = 40.0
DOCUMENTED_RPM = {LARGE: 330, SMALL: 240}  # which they do not keep to
PRICES = {LARGE: 0.01, SMALL: 0.001}  # for 1,000 tokens
LINES = 60  # of a batch
ONLINE_S = 1.3  # between two online calls of one model, on average
CHAT = "/v1/chat/completions"
ENDED = ("completed", "failed", "expired", "cancelled")


class Providers:
    """One that refuses what is too much and says no more, and one whose headers say how much is
    left. Both answer with what they were asked.
    """

    def __init__(self) -> None:
        answers: dict[str, Any] = {"latency_ms": 700.0, "jitter_ms": 400.0, "answer_tokens": 120}
        self._large = LlmUpstream(bucket=(RATES[0], BURST), headers="none", **answers)
        self._small = LlmUpstream(rpm=RPMS[0], headers="openai", **answers)

    def start(self) -> None:
        self._large.start()
        self._small.start()

    def stop(self) -> None:
        self._large.stop()
        self._small.stop()

    def url(self, model: str) -> str:
        return self._large.url if model == LARGE else self._small.url

    def change(self, number: int) -> None:
        """To the limits of that number."""
        self._large.set(bucket=(RATES[number % len(RATES)], BURST))
        self._small.set(rpm=RPMS[number % len(RPMS)])


class Models:
    def __init__(self, stage: Stage, providers: Providers) -> None:
        self._stage = stage
        self._providers = providers

    async def run(self) -> None:
        await play(self._stage, "channels", self._declare)
        async with asyncio.TaskGroup() as everything:
            everything.create_task(self._change_limits())
            for model in PRICES:
                for name, script in (("online", self._online), ("batch", self._batches)):
                    chance = self._stage.chance(f"{name} {model}")
                    doing = partial(script, model, chance)
                    everything.create_task(play(self._stage, f"{name} {model}", doing))

    async def _declare(self) -> None:
        there = {each["code"] for each in (await self._stage.ask("GET", "/api/channels"))["items"]}
        for model, price in PRICES.items():
            if model not in there:
                channel = {
                    "code": model, "model": model, "base_url": self._providers.url(model),
                    "rpm": DOCUMENTED_RPM[model], "batch_discount": 0.5,
                    "price": {"input_per_1k": price, "output_per_1k": 3 * price},
                }  # fmt: skip
                await self._stage.ask("POST", "/api/channels", channel, who="operator")

    async def _change_limits(self) -> None:
        for number in count(1):
            await self._stage.rest(CHANGE_S)
            await asyncio.to_thread(self._providers.change, number)

    # ------------------------------------------------------------------ calls

    async def _online(self, model: str, chance: Random) -> None:
        """People who wait for their answers, and put up with a refusal."""
        async with asyncio.TaskGroup() as calls:
            while True:
                calls.create_task(self._call(model, chance))
                await self._stage.rest(chance.expovariate(1 / ONLINE_S))

    async def _call(self, model: str, chance: Random) -> None:
        body = {**_question(model, chance), "stream": chance.random() < 0.2}
        headers = {"X-Headway-Tenant": chance.choice(words.TENANTS[:4])}
        try:
            await self._stage.ask("POST", CHAT, body, headers=headers)
        except Refused as refused:
            if refused.status != 429:
                raise

    # ------------------------------------------------------------------ batches

    async def _batches(self, model: str, chance: Random) -> None:
        while True:
            lines = "\n".join(_line(model, number, chance) for number in range(LINES))
            file = await self._stage.ask(
                "POST", "/v1/files", files={"file": (f"{model}.jsonl", lines.encode())},
                data={"purpose": "batch"},
            )  # fmt: skip
            wanted = {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h",
                      "metadata": {"name": chance.choice(words.PROJECTS)}}  # fmt: skip
            batch = await self._stage.ask("POST", "/v1/batches", wanted)
            while batch["status"] not in ENDED:
                await self._stage.rest(3.0)
                batch = await self._stage.ask("GET", f"/v1/batches/{batch['id']}")
            await self._stage.rest(chance.uniform(4.0, 10.0))


def _question(model: str, chance: Random) -> dict[str, Any]:
    content = chance.choice(words.QUESTIONS)
    return {"model": model, "messages": [{"role": "user", "content": content}]}


def _line(model: str, number: int, chance: Random) -> str:
    body = _question(model, chance)
    return json.dumps({"custom_id": f"line-{number}", "method": "POST", "url": CHAT, "body": body})
