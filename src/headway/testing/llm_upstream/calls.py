"""What an upstream remembers of the calls that came in."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import msgspec

LONGEST_LOG = 500_000  # calls; older ones are forgotten, the counts are not
LONGEST_ASKED = 200  # characters


class Call(msgspec.Struct, gc=False):
    """One call. Times are those of `time.time()`."""

    number: int  # from 1
    id: str  # in the `id` of the answer, after `chatcmpl-`
    at: float
    endpoint: str
    key: str | None
    request_id: str | None
    idempotency_key: str | None
    model: str | None = None
    asked: str | None = None  # the last user message, or the first input
    stream: bool = False
    status: int | None = None  # None: there was no answer
    refused_by: str | None = None  # rpm, tpm, bucket, concurrency, ban or script
    prompt_tokens: int = 0  # of what was answered
    completion_tokens: int = 0
    tokens: int = 0
    chunks: int = 0
    answered_at: float | None = None  # the first byte of the answer
    ended_at: float | None = None
    cut: bool = False  # by the script
    broken_off: bool = False  # by the client


class Log:
    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=LONGEST_LOG)
        self.count = 0
        self.in_flight = self.peak_in_flight = 0
        self._statuses: Counter[str] = Counter()
        self._refused_by: Counter[str] = Counter()
        self._prompt_tokens = self._completion_tokens = 0
        self._cut = self._broken_off = 0

    def begin(
        self, id: str, now: float, endpoint: str, key: str | None, headers: dict[bytes, str]
    ) -> Call:
        self.count += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        call = Call(
            self.count, id, now, endpoint, key, headers.get(b"x-request-id"),
            headers.get(b"idempotency-key"),
        )  # fmt: skip
        self.calls.append(call)
        return call

    def end(self, call: Call, now: float) -> None:
        self.in_flight -= 1
        call.ended_at = now
        call.tokens = call.prompt_tokens + call.completion_tokens
        self._statuses[str(call.status)] += 1
        if call.refused_by is not None:
            self._refused_by[call.refused_by] += 1
        self._prompt_tokens += call.prompt_tokens
        self._completion_tokens += call.completion_tokens
        self._cut += call.cut
        self._broken_off += call.broken_off

    def since(self, number: int) -> list[Call]:
        """The calls after that one, oldest first."""
        if not self.calls:
            return []
        skipped = max(0, number + 1 - self.calls[0].number)
        return [call for place, call in enumerate(self.calls) if place >= skipped]

    def stats(self) -> dict[str, Any]:
        return {
            "calls": self.count,
            "answered": self._statuses["200"],
            "refused": self._statuses["429"],
            "by_status": dict(self._statuses),
            "refused_by": dict(self._refused_by),
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._completion_tokens,
            "tokens": self._prompt_tokens + self._completion_tokens,
            "in_flight": self.in_flight,
            "peak_in_flight": self.peak_in_flight,
            "cut": self._cut,
            "broken_off": self._broken_off,
        }
