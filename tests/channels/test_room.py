"""How much the gateway takes on at once, and how much of an answer it reads."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest

from headway.api.problems import Problem
from headway.apps.channels import calling
from headway.apps.channels.calling import answer_in
from headway.apps.channels.online.gateway import MOST_AT_ONCE, MOST_BYTES, Gateway


@pytest.mark.parametrize(
    ("calls", "held", "size"), [(MOST_AT_ONCE, 0, 1), (1, MOST_BYTES - 5, 6)]
)  # fmt: skip
def test_neither_too_many_calls_nor_too_large_ones_are_under_way(
    calls: int, held: int, size: int
) -> None:
    nobody: Any = None
    gateway = Gateway(nobody, nobody)
    gateway.under_way, gateway.bytes_under_way = calls, held
    with pytest.raises(Problem, match="try again") as refused:
        gateway.check_room(size)
    assert refused.value.status == 503
    gateway.under_way, gateway.bytes_under_way = MOST_AT_ONCE - 1, MOST_BYTES - 5
    gateway.check_room(5)


def test_an_answer_without_end_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> Any:
            while True:
                yield b"x" * 1_000

    monkeypatch.setattr(calling, "MOST_ANSWER", 10_000)
    with pytest.raises(httpx2.RemoteProtocolError, match="longer than 10000 bytes"):
        asyncio.run(answer_in(httpx2.Response(200, stream=Endless()), None))
