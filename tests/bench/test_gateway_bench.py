"""The benchmark of the gateway: both ways are really asked, and what is added is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bench import gateway
from bench.gateway import DIRECT, GATEWAY, KEY, Connection, Figures, Refused, report
from headway.testing import LlmUpstream


@pytest.mark.soak
def test_both_ways_are_asked_equally_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "WARM_UP", 0)
    with (
        LlmUpstream(keys=(KEY,), latency_ms=0, jitter_ms=0, chunks=3, chunk_ms=1) as provider,
        gateway.served(tmp_path, provider.url, None) as address,
    ):
        measured = gateway.measure_all(4, 2, 2, provider, address)
        plain, streamed = asyncio.run(measured)
        assert provider.stats()["calls"] == 12
    for way in (DIRECT, GATEWAY):
        assert len(plain[way].whole_ms) == 4
        assert len(streamed[way].first_ms) == 2
        assert len(streamed[way].gaps_ms) >= 4
        assert min(plain[way].whole_ms + streamed[way].first_ms) > 0


def test_a_refusal_is_no_figure() -> None:
    async def ask(url: str) -> None:
        connection = Connection(url)
        try:
            await connection.ask(stream=False)
        finally:
            await connection.close()

    with LlmUpstream(keys=("another",)) as provider, pytest.raises(Refused, match="401"):
        asyncio.run(ask(provider.url))


def test_what_is_added_is_the_difference() -> None:
    ways = {DIRECT: Figures([1.0], [2.0], [3.0]), GATEWAY: Figures([1.5], [3.0], [3.0])}
    found = report(ways, ways)
    assert found["plain_ms"]["added"]["p50"] == 0.5
    assert found["first_chunk_ms"]["added"]["p99"] == 1.0
    assert found["chunk_gap_ms"]["added"]["p50"] == 0.0
