"""What tenants used of late: it fades, has a bound, and forgets who used next to nothing."""

from __future__ import annotations

import pytest

from headway.core.order import HALF_S, LATELY_S, MANY, Shares


def test_what_was_used_counts_half_after_a_while() -> None:
    shares = Shares("x", keeps_idle=False)
    shares.sweep(1000.0)
    shares.served("a", 8.0, 1.0)
    shares.served("a", 10_000.0, 1.0)
    assert shares.lately == {"a": 8.0 + LATELY_S}
    shares.sweep(1000.0 + HALF_S / 2)
    assert shares.lately == {"a": 8.0 + LATELY_S}, "it is too early"
    shares.sweep(1000.0 + 2 * HALF_S)
    assert shares.lately == {"a": pytest.approx((8.0 + LATELY_S) / 4)}


def test_a_flood_of_tenants_leaves_little_behind() -> None:
    shares = Shares("x", keeps_idle=False)
    shares.sweep(1000.0)
    shares.served("steady", 50.0, 1.0)
    for number in range(5 * MANY):
        shares.served(f"t{number}", 0.01, 1.0)
    assert len(shares.lately) == MANY
    shares.sweep(1000.0 + HALF_S)
    assert set(shares.lately) == {"steady"}
