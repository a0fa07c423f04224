"""The limits of an upstream of language models, on a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from headway.testing.llm_upstream.limits import Limiter, Standing
from headway.testing.llm_upstream.settings import Ban, Settings, changed
from headway.testing.llm_upstream.shapes import pieces_of, span

NOON = 1_767_268_800.0  # a full minute


def limiter(**settings: Any) -> Limiter:
    return Limiter(changed(Settings(), settings), NOON)


def asks(limits: Limiter, at: float, tokens: int = 1) -> str:
    """One call that ends at once: "yes", or what refused it."""
    refusal = limits.refuses(NOON + at, tokens)
    if refusal is not None:
        return refusal.by
    limits.enter(NOON + at, tokens)
    limits.leave()
    return "yes"


def waits_s(limits: Limiter, at: float, tokens: int = 1) -> float:
    refusal = limits.refuses(NOON + at, tokens)
    assert refusal is not None
    return refusal.wait_s


def test_a_fixed_window_starts_with_its_first_call() -> None:
    limits = limiter(rpm=2)
    assert [asks(limits, at) for at in (50, 100, 109.9)] == ["yes", "yes", "rpm"]
    assert waits_s(limits, 100) == 10
    assert [asks(limits, at) for at in (110, 111, 169.9, 170)] == ["yes", "yes", "rpm", "yes"]


def test_an_aligned_window_starts_at_the_full_minute() -> None:
    limits = limiter(rpm=2, window="aligned")
    assert [asks(limits, at) for at in (59, 59.5, 59.9, 60, 61, 62)] == [
        "yes", "yes", "rpm", "yes", "yes", "rpm",
    ]  # fmt: skip


def test_a_sliding_window_never_holds_more_than_its_limit() -> None:
    limits = limiter(rpm=2, window="sliding")
    assert [asks(limits, at) for at in (0, 40, 59.9, 60, 61, 99.9, 100)] == [
        "yes", "yes", "rpm", "yes", "rpm", "rpm", "yes",
    ]  # fmt: skip
    assert waits_s(limits, 105) == 15, "until the call at 60 has left"


def test_a_bucket_gives_its_burst_and_then_its_rate() -> None:
    limits = limiter(bucket=(2, 3))
    assert [asks(limits, at) for at in (0, 0, 0, 0, 0.25, 0.5, 0.5)] == [
        "yes", "yes", "yes", "bucket", "bucket", "yes", "bucket",
    ]  # fmt: skip
    assert waits_s(limits, 0.75) == pytest.approx(0.25)


def test_tokens_are_counted_apart_from_calls() -> None:
    limits = limiter(rpm=10, tpm=100)
    assert [asks(limits, 0, tokens) for tokens in (60, 41, 40, 1)] == ["yes", "tpm", "yes", "tpm"]
    assert limits.requests(NOON) == Standing(10, 8, 60), "what was refused took nothing"
    assert limits.tokens(NOON) == Standing(100, 0, 60)


def test_places_are_free_again_when_a_call_has_ended() -> None:
    limits = limiter(concurrency=1)
    limits.enter(NOON, 1)
    assert asks(limits, 0) == "concurrency"
    limits.leave()
    assert asks(limits, 0) == "yes"


def test_what_one_limit_refuses_is_taken_from_none() -> None:
    limits = limiter(rpm=5, bucket=(1, 1))
    assert [asks(limits, 0) for _ in range(9)] == ["yes", *["bucket"] * 8]
    assert [asks(limits, at) for at in (1, 2, 3, 4, 5)] == [*["yes"] * 4, "rpm"]


def test_a_lowered_limit_counts_what_was_spent_before() -> None:
    limits = limiter(rpm=10)
    assert [asks(limits, 0) for _ in range(6)] == ["yes"] * 6
    limits.change(Settings(rpm=5), NOON + 1)
    assert asks(limits, 1) == "rpm"
    limits.change(Settings(rpm=7), NOON + 2)
    assert [asks(limits, 2), asks(limits, 2)] == ["yes", "rpm"]


def test_many_refusals_in_a_short_time_bring_a_ban() -> None:
    limits = limiter(ban=Ban(after=3, within_s=10, for_s=120))
    for at in (0, 9, 11):
        limits.refused(NOON + at)
    assert limits.banned_s(NOON + 11) == 0, "the first was too long ago"
    limits.refused(NOON + 12)
    assert limits.banned_s(NOON + 12) == 120
    assert limits.banned_s(NOON + 132) == 0


def test_headers_speak_of_a_minute_also_where_the_window_is_shorter() -> None:
    limits = limiter(rpm=10, window_s=6)
    asks(limits, 0)
    assert limits.requests(NOON + 1) == Standing(limit=100, remaining=9, reset_s=5)


def test_headers_of_a_bucket_say_when_it_is_full() -> None:
    limits = limiter(bucket=(2, 10))
    for _ in range(4):
        asks(limits, 0)
    assert limits.requests(NOON) == Standing(limit=120, remaining=6, reset_s=2)


def test_of_two_limits_on_calls_headers_name_the_nearer_one() -> None:
    limits = limiter(rpm=100, bucket=(1, 3))
    asks(limits, 0)
    assert limits.requests(NOON) == Standing(60, 2, 1)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.02, "20ms"), (1.2, "1.2s"), (59.9996, "1m0s"), (360, "6m0s"), (3661, "1h1m1s")],
)
def test_spans_are_written_as_openai_writes_them(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize("text", ["", "one", "one two  three", " leading"])
@pytest.mark.parametrize("count", [None, 1, 3, 40])
def test_the_pieces_of_an_answer_are_the_answer(text: str, count: int | None) -> None:
    pieces = pieces_of(text, count)
    assert "".join(pieces) == text
    assert len(pieces) == (count or len(text.split(" ")))
