"""What a preview of settings says in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from headway.core.gate import Gate

if TYPE_CHECKING:
    from headway.engine.preview import Outlook

INF = float("inf")
Behind = dict[str, Any] | None


def notes_on(
    name: str, gates: Sequence[Gate], before: Behind, after: Behind,
    changes: Sequence[dict[str, Any]], would: Outlook, now: float,
) -> list[str]:  # fmt: skip
    """Whole sentences, what matters most first."""
    notes: list[str] = []
    if not changes:
        notes.append("Nothing changes: these are the settings that hold already.")
    notes += _whose(before, after)
    if name.startswith("*"):
        notes.append(f"{name} is for all such names without a declaration of "
                     f"their own; {len(gates)} of them are in use.")  # fmt: skip
    if after is not None and after["value"].get("limit") == 0:
        notes.append("A limit of 0 lets nothing through.")
    if would.over:
        run = "1 runs" if would.over == 1 else f"{would.over} run"
        notes.append(f"{run} above the new limit: nothing is stopped, and nobody starts until "
                     "enough have finished.")  # fmt: skip
    if would.starts and would.waiting is not None:
        count = int(would.starts)
        notes.append(f"{count} of {would.waiting} that wait may start at once.")
    notes += _doors(gates, now)
    return notes


def _whose(before: Behind, after: Behind) -> list[str]:
    """Which declaration holds, if that changes."""
    was = None if before is None else before["declared_as"]
    then = None if after is None else after["declared_as"]
    if was == then or before is None:
        return []
    if after is None:
        return ["Nothing is declared any more: it has no limits of its own."]
    lost = sorted(set(before["value"]) - set(after["value"]))
    said = f"What is declared for {then} takes the place of what is declared for {was}"
    return [f"{said}; {', '.join(lost)} no longer {'holds' if len(lost) == 1 else 'hold'}."
            if lost else f"{said}."]  # fmt: skip


def _doors(gates: Sequence[Gate], now: float) -> list[str]:
    """Of one gate: what keeps it closed whatever is set."""
    if len(gates) != 1:
        return []
    door = gates[0].door
    if door.paused:
        return ["It is paused: nothing starts until it is resumed."]
    if now < door.closed_until < 1e11:
        until = datetime.fromtimestamp(door.closed_until, UTC).isoformat(timespec="seconds")
        return [f"It is closed until {until.replace('+00:00', 'Z')}: nothing starts before that."]
    return []
