"""Rate-limit headers in the styles of the big providers, and garbage that looks like them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.rate_headers import Quota, RateHeaders, parse_rate_headers

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


def parse(**headers: str) -> RateHeaders | None:
    return parse_rate_headers({name.replace("_", "-"): text for name, text in headers.items()}, NOW)


def test_openai() -> None:
    found = parse(
        x_ratelimit_limit_requests="500",
        x_ratelimit_remaining_requests="499",
        x_ratelimit_reset_requests="120ms",
        x_ratelimit_limit_tokens="30000",
        x_ratelimit_remaining_tokens="29000",
        x_ratelimit_reset_tokens="6m0s",
    )
    assert found == RateHeaders(Quota(500, 499, 0.12), Quota(30000, 29000, 360.0))


def test_anthropic() -> None:
    found = parse(
        anthropic_ratelimit_requests_limit="50",
        anthropic_ratelimit_requests_remaining="49",
        anthropic_ratelimit_requests_reset="2027-01-15T08:00:30Z",
        anthropic_ratelimit_input_tokens_limit="40000",
        anthropic_ratelimit_input_tokens_remaining="39000",
        anthropic_ratelimit_input_tokens_reset="2027-01-15T08:00:02+00:00",
        anthropic_ratelimit_output_tokens_limit="8000",
        anthropic_ratelimit_output_tokens_remaining="1000",
        anthropic_ratelimit_output_tokens_reset="2027-01-15T08:00:50Z",
    )
    assert found == RateHeaders(Quota(50, 49, 30.0), Quota(8000, 1000, 50.0))


def test_github() -> None:
    found = parse(
        x_ratelimit_limit="5000", x_ratelimit_remaining="4999", x_ratelimit_reset="1800001800"
    )
    assert found == RateHeaders(Quota(5000, 4999, 1800.0, window_s=3600.0))


def test_the_fields_of_the_draft() -> None:
    found = parse(
        RateLimit_Policy='"burst";q=100;w=10, "daily";q=1000;w=86400',
        RateLimit='"burst";r=50;t=4, "daily";r=10;t=40000',
    )
    assert found == RateHeaders(Quota(1000, 10, 40000.0, window_s=86400.0))
    assert found.requests is not None
    assert found.requests.per_s == 1000 / 86400


def test_the_fields_before_the_draft_had_structure() -> None:
    found = parse(RateLimit_Limit="100, 100;w=60", RateLimit_Remaining="3", RateLimit_Reset="12")
    assert found == RateHeaders(Quota(100, 3, 12.0))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("120", 120.0), ("1.5", 1.5), ("Fri, 15 Jan 2027 08:01:00 GMT", 60.0)],
)
def test_retry_after(text: str, seconds: float) -> None:
    assert parse(Retry_After=text) == RateHeaders(retry_after_s=seconds)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/json"},
        {"retry-after": "soon"},
        {"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "1"},
        {"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0"},
        {"x-ratelimit-limit-requests": "-5"},
        {"ratelimit": "\x00", "ratelimit-policy": ";;;"},
    ],
)
def test_what_says_nothing_is_none(headers: dict[str, str]) -> None:
    assert parse_rate_headers(headers, NOW) is None


NAMES = st.sampled_from(
    [
        f"x-ratelimit-{what}{unit}"
        for what in ("limit", "remaining", "reset")
        for unit in ("", "-requests", "-tokens")
    ]
    + [
        f"anthropic-ratelimit-{unit}-{what}"
        for unit in ("requests", "tokens", "input-tokens", "output-tokens")
        for what in ("limit", "remaining", "reset")
    ]
    + ["RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining"]
    + ["RateLimit-Reset", "Retry-After"]
)
SHAPES = st.one_of(
    st.text(max_size=40),
    st.integers(-(10**12), 10**20).map(str),
    st.floats().map(str),
    st.from_regex(r"([0-9]{1,6}(ms|s|m|h|d)){1,4}", fullmatch=True),
    st.from_regex(r'"[a-z]{1,5}";[qrwt]=[0-9]{1,20}(;[qrwt]=[0-9.-]{1,9})?', fullmatch=True),
    st.datetimes().map(lambda moment: moment.isoformat()),
)


@given(st.dictionaries(NAMES, SHAPES, max_size=12), st.floats(0, 1e11))
def test_whatever_comes_nothing_raises_and_numbers_are_sane(
    headers: dict[str, str], now: float
) -> None:
    found = parse_rate_headers(headers, now)
    if found is None:
        return
    for quota in (found.requests, found.tokens):
        if quota is not None:
            assert quota.limit > 0
            assert 0 <= quota.remaining <= quota.limit
            assert 0 <= quota.reset_s < math.inf
            assert 0 < quota.per_s < math.inf
    assert found.retry_after_s is None or 0 <= found.retry_after_s < math.inf


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 3599))
def test_what_is_written_is_read(limit: int, remaining: int, reset_s: int) -> None:
    found = parse_rate_headers(
        {
            "X-RateLimit-Limit-Requests": f" {limit} ",
            "X-RateLimit-Remaining-Requests": str(remaining),
            "X-RateLimit-Reset-Requests": f"{reset_s // 60}m{reset_s % 60}s",
        },
        NOW,
    )
    assert found == RateHeaders(Quota(limit, min(limit, remaining), float(reset_s)))
