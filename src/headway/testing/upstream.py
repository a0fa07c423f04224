"""Upstreams that answer by a script, and remember when they were called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from headway.outcomes import Duration, check_status, seconds

Line = int | tuple[int, Duration] | BaseException


@dataclass(frozen=True, slots=True)
class Answer:
    """What a scripted upstream answered; it looks like an HTTP client's answer."""

    status: int
    retry_after_s: float | None = None

    @property
    def headers(self) -> dict[str, str]:
        """`Retry-After`, if the script names one."""
        return {} if self.retry_after_s is None else {"Retry-After": f"{self.retry_after_s:g}"}

    def raise_for_status(self) -> None:
        """Like an HTTP client's: nothing for a success."""
        check_status(self.status, self.headers)


class ScriptedUpstream:
    """`[200, (429, "30s"), TimeoutError(), 200]`: one line for each call; the last one repeats."""

    def __init__(self, name: str, script: Iterable[Line], now: Callable[[], float]) -> None:
        self.name = name
        self.calls: list[float] = []  # when it was called
        self._script = list(script) or [200]
        self._now = now

    def answer(self) -> Answer:
        """Call it: the next line of the script, which is raised if it is an exception."""
        line = self._script[min(len(self.calls), len(self._script) - 1)]
        self.calls.append(self._now())
        if isinstance(line, BaseException):
            raise line
        if isinstance(line, int):
            return Answer(line)
        status, retry_after = line
        return Answer(status, seconds(retry_after))

    async def call(self) -> Answer:
        """`answer` for async handlers."""
        return self.answer()

    def gaps(self) -> list[float]:
        """Seconds between one call and the next."""
        return [after - before for before, after in zip(self.calls, self.calls[1:], strict=False)]
