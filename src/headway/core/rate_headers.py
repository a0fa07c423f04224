"""What the rate-limit headers of an answer say, in one shape. Values in, values out.

Read are the styles of OpenAI (`x-ratelimit-limit-requests`, resets such as `6m0s`), Anthropic
(`anthropic-ratelimit-requests-limit`, resets as RFC 3339 times), GitHub (`x-ratelimit-limit`, reset
in epoch seconds), the `RateLimit` and `RateLimit-Policy` fields of the IETF draft and the three
fields that came before them, and `Retry-After`. What cannot be read is left out; nothing raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from headway.core.classify import parse_retry_after

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0
LONGEST_S = 366 * DAY_S
MOST = 1e15
_EPOCH = 1e9  # a larger number of seconds is a moment, not a wait
_MAX_HEADER = 300  # characters

_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,18})?")
_SPAN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(ms|us|µs|ns|d|h|m|s)")
_SPAN_S = {"d": DAY_S, "h": HOUR_S, "m": 60.0, "s": 1.0}
_SPAN_S |= {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z*][\w.*:/%-]*)')
_PARAMETER = re.compile(r"\s*;\s*([a-z*][\w.*-]*)\s*=\s*([^;,]*)")


@dataclass(frozen=True, slots=True)
class Quota:
    """One unit's limit: how many in a window, how many are left, and when it is full again."""

    limit: float
    remaining: float
    reset_s: float
    window_s: float = MINUTE_S

    @property
    def per_s(self) -> float:
        return self.limit / self.window_s


@dataclass(frozen=True, slots=True)
class RateHeaders:
    """Requests and tokens are different units and never mixed."""

    requests: Quota | None = None
    tokens: Quota | None = None
    retry_after_s: float | None = None


def parse_rate_headers(headers: Mapping[str, str], now: float) -> RateHeaders | None:
    """None when the headers say nothing about rates. Names may be in any case."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        lower = str(name).lower()
        if "ratelimit" in lower or lower == "retry-after":
            found[lower] = str(value)[:_MAX_HEADER].strip()
    if not found:
        return None
    retry_after_s = parse_retry_after(found["retry-after"], now) if "retry-after" in found else None
    requests = _openai(found, "requests", now) or _anthropic(found, "requests", now)
    tokens = _openai(found, "tokens", now) or _anthropic(found, "tokens", now)
    tokens = tokens or _tightest(found, now)
    requests = requests or _structured(found, now) or _older(found, now) or _github(found, now)
    if requests is None and tokens is None and retry_after_s is None:
        return None
    return RateHeaders(requests, tokens, retry_after_s)


# ------------------------------------------------------------------ the styles


def _openai(found: Mapping[str, str], unit: str, now: float) -> Quota | None:
    return _quota(
        found.get(f"x-ratelimit-limit-{unit}"),
        found.get(f"x-ratelimit-remaining-{unit}"),
        _wait_s(found.get(f"x-ratelimit-reset-{unit}"), now),
        MINUTE_S,
    )


def _anthropic(found: Mapping[str, str], unit: str, now: float) -> Quota | None:
    start = f"anthropic-ratelimit-{unit}"
    return _quota(
        found.get(f"{start}-limit"),
        found.get(f"{start}-remaining"),
        _wait_s(found.get(f"{start}-reset"), now),
        MINUTE_S,
    )


def _tightest(found: Mapping[str, str], now: float) -> Quota | None:
    """Anthropic counts input and output tokens apart too; what is nearer to its end counts."""
    both = [_anthropic(found, unit, now) for unit in ("input-tokens", "output-tokens")]
    known = [quota for quota in both if quota is not None]
    return min(known, key=lambda quota: quota.remaining / quota.limit, default=None)


def _github(found: Mapping[str, str], now: float) -> Quota | None:
    """`x-ratelimit-reset` is a moment there, and the window an hour; others send seconds."""
    raw = found.get("x-ratelimit-reset")
    moment = _number(raw)
    hourly = moment is not None and moment >= _EPOCH
    reset_s = _wait_s(raw, now)
    window_s = _window_for(reset_s, HOUR_S if hourly else MINUTE_S)
    return _quota(
        found.get("x-ratelimit-limit"), found.get("x-ratelimit-remaining"), reset_s, window_s
    )


def _older(found: Mapping[str, str], now: float) -> Quota | None:
    """`RateLimit-Limit: 100, 100;w=60`, `RateLimit-Remaining`, `RateLimit-Reset` in seconds."""
    limit = found.get("ratelimit-limit", "")
    window = re.search(r"w\s*=\s*([0-9]{1,9})", limit)
    reset_s = _wait_s(found.get("ratelimit-reset"), now)
    window_s = float(window[1]) if window else _window_for(reset_s, MINUTE_S)
    first = re.split(r"[,;]", limit)[0]
    return _quota(first, found.get("ratelimit-remaining"), reset_s, window_s)


def _structured(found: Mapping[str, str], now: float) -> Quota | None:
    """`RateLimit: "name";r=50;t=30` beside `RateLimit-Policy: "name";q=100;w=60`."""
    policies = _items(found.get("ratelimit-policy", ""))
    quotas: list[Quota] = []
    for name, state in _items(found.get("ratelimit", "")).items():
        policy = policies.get(name, {})
        reset_s = _wait_s(state.get("t"), now)
        window = _number(policy.get("w"))
        window_s = window if window else _window_for(reset_s, MINUTE_S)
        quota = _quota(policy.get("q"), state.get("r"), reset_s, window_s)
        if quota is not None and policy.get("qu", '"requests"').strip('"') == "requests":
            quotas.append(quota)
    return min(quotas, key=lambda quota: quota.remaining / quota.limit, default=None)


def _items(text: str) -> dict[str, dict[str, str]]:
    """A list of named items with parameters, read leniently."""
    items: dict[str, dict[str, str]] = {}
    at = 0
    while (item := _ITEM.match(text, at)) is not None:
        at = item.end()
        parameters: dict[str, str] = {}
        while (parameter := _PARAMETER.match(text, at)) is not None:
            parameters[parameter[1]] = parameter[2].strip()
            at = parameter.end()
        items[item[1].strip('"')] = parameters
        comma = text.find(",", at)
        if comma < 0:
            break
        at = comma + 1
    return items


# ------------------------------------------------------------------ values


def _quota(
    limit: str | None, remaining: str | None, reset_s: float | None, window_s: float
) -> Quota | None:
    most, left = _number(limit), _number(remaining)
    if most is None or not 0 < most <= MOST or not 0 < window_s <= LONGEST_S:
        return None
    left = most if left is None else min(left, most)
    return Quota(most, left, window_s if reset_s is None else min(reset_s, LONGEST_S), window_s)


def _window_for(reset_s: float | None, usual_s: float) -> float:
    """A window cannot be shorter than the time until it ends."""
    for window_s in (usual_s, MINUTE_S, HOUR_S, DAY_S):
        if window_s >= usual_s and (reset_s is None or reset_s <= window_s + 1.0):
            return window_s
    return LONGEST_S


def _number(text: str | None) -> float | None:
    if text is None or not _NUMBER.fullmatch(text.strip()):
        return None
    return float(text)


def _wait_s(text: str | None, now: float) -> float | None:
    """Seconds, an epoch, `1m30s`, or an RFC 3339 time. Moments that have passed are 0."""
    if text is None:
        return None
    number = _number(text)
    if number is not None:
        return max(0.0, number - now) if number >= _EPOCH else number
    parts = _SPAN.findall(text)
    if parts and "".join(amount + unit for amount, unit in parts) == text:
        return math.fsum(float(amount) * _SPAN_S[unit] for amount, unit in parts)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        return max(0.0, moment.timestamp() - now)
    except (OverflowError, ValueError):
        return None
