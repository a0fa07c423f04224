"""What headers say is followed, whatever limit is behind them."""

from __future__ import annotations

from headway.core.learning.counting import Ring
from headway.core.learning.told import Kind, Told
from headway.core.rate_headers import Quota


def test_it_is_believed_for_two_minutes() -> None:
    told, ring = Told(), Ring()
    assert not told.fresh(10.0)
    told.hear(Quota(600, 590, 30.0), 10.0, ring)
    assert told.fresh(100.0)
    assert not told.fresh(131.0)


def test_the_rest_of_a_window_is_spread_over_the_time_that_is_left() -> None:
    told, ring = Told(), Ring()
    ring.advance(1000.0)
    told.hear(Quota(600, 100, 20.0), 1000.0, ring)
    assert told.kind is Kind.FIXED
    assert told.rate(1000.0, ring, online=0.0) <= 100 / 20.0
    assert told.left(1000.0, ring) == 100
    ring.add(1001.0)
    assert told.left(1001.0, ring) == 99
    assert told.left(1021.0, ring) == 600, "a new window"


def test_an_older_answer_that_took_longer_says_nothing_new() -> None:
    told, ring = Told(), Ring()
    told.hear(Quota(600, 500, 20.0), 10.0, ring)
    told.hear(Quota(600, 590, 29.0), 9.0, ring)
    assert told.left(10.0, ring) == 500


def test_a_bucket_is_known_by_its_rest_and_its_reset_and_kept_half_full() -> None:
    told, ring = Told(), Ring()
    for number in range(60):
        rest = 100 - number % 50
        told.hear(Quota(600, rest, (100 - rest) / 10.0), 10.0 + number, ring)
    assert told.kind is Kind.BUCKET
    assert told.kept(0.0) == 50.0


def test_a_window_that_hardly_moves_when_it_resets_rolls() -> None:
    told, ring, now = Told(), Ring(), 1000.0
    for _ in range(120):
        now += 0.5
        ring.add(now, 4.0)
        told.hear(Quota(600, max(0, 600 - ring.minute - 60), 0.2), now, ring)
    assert told.kind is Kind.ROLLING
    assert 55 < told.others * 60 < 65, "what is missing and was not ours is theirs"
    assert told.left(now, ring) < 600 - ring.minute - 50


def test_refused_in_spite_of_what_it_says_it_is_trusted_less() -> None:
    told = Told()
    told.refused(Quota(600, 0, 20.0))
    assert told.trust == 1.0
    told.refused(Quota(600, 300, 20.0))
    assert told.trust < 1.0
    told.pass_time(3600.0)
    assert told.trust == 1.0
