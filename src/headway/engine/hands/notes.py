"""What a worker elsewhere says about a job that it holds: checked and bounded as `context` does it
for jobs that run here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from headway.engine.hands.context import MAX_LINE, MAX_LINES, MAX_NOTE
from headway.engine.ledger import clean

MAX_LEVEL = 50  # characters

Progress = tuple[float, float | None, str]  # done, total, note
Line = tuple[float, str, str]  # at, level, line


class Notes(NamedTuple):
    progress: Progress | None
    checkpoint: str | None  # JSON text
    logs: list[Line]

    @classmethod
    def checked(
        cls, progress: Progress | None, checkpoint: str | None, logs: Sequence[Line], limit: int
    ) -> Notes:
        """ValueError says what cannot be kept as it is."""
        return cls(
            None if progress is None else _progress(*progress),
            None if checkpoint is None else _checkpoint(checkpoint, limit),
            [_line(*each) for each in logs[: MAX_LINES + 1]],
        )

    def lines(self, before: int) -> list[Line]:
        """What is kept of the log lines of an attempt that has said so many before."""
        kept = self.logs[: max(MAX_LINES - before, 0)]
        if kept and before + len(kept) == MAX_LINES:
            at, level, _ = kept[-1]
            text = f"more than {MAX_LINES} lines; the rest of this attempt is not kept"
            kept[-1] = (at, level, text)
        return kept


def _progress(done: Any, total: Any, note: Any) -> Progress:
    if not _plain(done) or not (total is None or _plain(total)):
        raise ValueError(f"progress is told in plain numbers, not {done!r} of {total!r}")
    said = clean(str(note)[:MAX_NOTE])
    return float(done), None if total is None else float(total), said


def _checkpoint(text: str, limit: int) -> str:
    if len(text) > limit:
        raise ValueError(f"a checkpoint has at most {limit} characters, this one {len(text)}")
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"a checkpoint is JSON text: {error}") from None
    return text


def _line(at: Any, level: Any, line: Any) -> Line:
    if not _plain(at):
        raise ValueError(f"a log line has the time when it was said, not {at!r}")
    return float(at), clean(str(level)[:MAX_LEVEL]), clean(str(line)[:MAX_LINE])


def _plain(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
