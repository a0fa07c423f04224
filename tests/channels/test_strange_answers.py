"""Providers that answer what nobody expects: the answer is kept, and paid for once."""

from __future__ import annotations

import pytest

from headway.apps.channels.calling import Answer
from headway.apps.channels.channel import NANO, Price
from headway.apps.channels.money.billing import MOST_NANO
from headway.apps.channels.money.costs import Wanted, totals
from tests.channels.batch_world import channels_world

STRANGE = {
    "nothing": b"",
    "no JSON": b"\x00\xff",
    "half a character": b'{"a": "\xff"}',
    "very deep": b'{"a":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "more than there are": b'{"usage": {"prompt_tokens": 900000000000000}}',
    "less than nothing": b'{"usage": {"prompt_tokens": -5}}',
    "in several lines": b'{\r\n "n": 123456789012345678901234567890\n}',
}


@pytest.mark.parametrize("body", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("status", [200, 400])
def test_a_strange_answer(status: int, body: bytes) -> None:
    with channels_world() as world:
        world.channel(price=Price(1.0, 1.0))
        world.provider.says = lambda _text, _time: Answer(status, {}, body)
        batch = world.batch(2)
        done = world.until(batch, "completed", within_s=60)
        well = status == 200
        counts = done["request_counts"]
        assert (counts["completed"], counts["failed"]) == ((2, 0) if well else (0, 2))
        found = world.lines_of(done["output_file_id" if well else "error_file_id"])
        assert [line["response"]["status_code"] for line in found] == [status, status]
        state = "completed" if well else "failed"
        assert world.count("jobs", f"type = 'llm.line' and state = '{state}'") == 2
        assert world.count("llm_bills") == (2 if well else 0)
        assert world.count("llm_bills", "estimated = 1") == (2 if well else 0)


def test_what_a_call_cannot_cost_does_not_spoil_the_sum() -> None:
    with channels_world() as world:
        world.channel(price=Price(9e8, 9e8))
        world.provider.says = lambda _text, _time: Answer(
            200, {}, b'{"usage": {"prompt_tokens": 1000000000}}'
        )
        batch = world.batch(3)
        world.until(batch, "completed", within_s=60)
        (found,) = totals(world.app.store, Wanted())
        assert found["cost"] == f"{3 * MOST_NANO // NANO}.00"
