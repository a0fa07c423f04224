"""What is believed about an upstream at a moment, and the record of how that changed."""

from __future__ import annotations

from dataclasses import dataclass

MOST_KEPT = 200  # records that nobody has taken away yet
WORTH_SAYING = 0.01  # of a number
# An upstream may say another limit with each answer. So many changes are written down as they come;
# after that there is room for one in a minute, and what is between two of them is left out.
AT_ONCE = 20
EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Beliefs:
    """None: nothing is known about this unit."""

    rpm: float | None = None
    tpm: float | None = None
    concurrency: float | None = None
    limit_kind: str | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """One change of one believed value, for the audit trail."""

    at: float
    what: str
    before: float | str | None
    after: float | str | None
    cause: str

    def __str__(self) -> str:
        return f"{self.what} {_said(self.before)} -> {_said(self.after)}: {self.cause}"


class Diary:
    __slots__ = ("_changes", "_room", "_room_at", "_said")

    def __init__(self) -> None:
        self._said = Beliefs()
        self._changes: list[Changed] = []
        self._room = float(AT_ONCE)
        self._room_at = 0.0

    def note(self, now: float, beliefs: Beliefs, cause: str) -> None:
        """Write down what has changed since the last time, if it is worth it."""
        said = self._said
        if beliefs == said:
            return
        self._room = min(AT_ONCE, self._room + max(0.0, now - self._room_at) / EVERY_S)
        self._room_at = now
        if self._room < 1:
            return  # the next one that is written down tells the difference
        values: dict[str, float | str | None] = {}
        for what in ("rpm", "tpm", "concurrency", "limit_kind"):
            before, after = getattr(said, what), getattr(beliefs, what)
            values[what] = after if _differs(before, after) else before
            if values[what] is not before:
                self._changes.append(Changed(now, what, before, after, cause))
                self._room -= 1
        self._said = Beliefs(**values)  # type: ignore[arg-type]
        del self._changes[:-MOST_KEPT]

    def accept(self, beliefs: Beliefs) -> None:
        """Known before: no change."""
        self._said = beliefs

    def take(self) -> list[Changed]:
        changes, self._changes = self._changes, []
        return changes


def _said(value: float | str | None) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value < 1000 else f"{value:.0f}"
    return "unknown" if value is None else str(value)


def _differs(before: float | str | None, after: float | str | None) -> bool:
    if isinstance(before, float) and isinstance(after, float):
        return abs(after - before) > WORTH_SAYING * max(abs(before), abs(after))
    return before != after
