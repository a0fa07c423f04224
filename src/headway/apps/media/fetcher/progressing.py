"""How far a download is, told a few times a second; and the limits it must stay within."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

from .failures import Verdict
from .protocol import FailureKind, Line, Order
from .values import number, whole

BETWEEN_S = 0.25
MAX_SPEED = 1e12
MAX_ETA_S = 1e8

Tell = Callable[[dict[str, Any]], None]


class Room:
    """What the disk and the order allow."""

    def __init__(self, order: Order) -> None:
        self._directory = str(order.directory)
        self._keep_free = order.min_free_bytes
        self._most = order.max_bytes

    def check(self, done: int, total: int | None) -> None:
        self.check_size(max(done, total or 0))
        if shutil.disk_usage(self._directory).free < max((total or 0) - done, 0) + self._keep_free:
            raise Verdict(
                FailureKind.DISK,
                f"there is not enough space left: {self._keep_free} bytes must stay free",
            )

    def check_size(self, size: int) -> None:
        if self._most is not None and size > self._most:
            raise Verdict(FailureKind.TOO_LARGE, f"it is larger than {self._most} bytes")


class Progress:
    """yt-dlp calls it after each block."""

    def __init__(self, room: Room, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._tell = tell
        self._clock = clock
        self._next_at = 0.0
        self._names: list[str] = []
        self._before = 0  # bytes of the parts that are complete
        self._done = 0  # bytes of this one
        self.parts = 1
        self.on_size: Callable[[int], None] | None = None  # told once, when it is known

    def __call__(self, event: dict[str, Any]) -> None:
        name = str(event.get("filename"))
        if name not in self._names:
            self._names.append(name)
            self._before, self._done = self._before + self._done, 0
            self._next_at = 0.0
        done = self._done = whole(event.get("downloaded_bytes")) or 0
        total = whole(event.get("total_bytes")) or whole(event.get("total_bytes_estimate"))
        if self.on_size is not None and whole(event.get("total_bytes")):
            tell_size, self.on_size = self.on_size, None
            tell_size(int(event["total_bytes"]))
        self._room.check_size(self._before + done)
        is_over = event.get("status") == "finished"
        if not is_over and self._clock() < self._next_at:
            return
        self._next_at = self._clock() + BETWEEN_S
        if not is_over:
            self._room.check(self._before + done, None if total is None else self._before + total)
        self._tell(
            {
                "kind": Line.PROGRESS,
                "done_bytes": done,
                "total_bytes": total,
                "speed": number(event.get("speed"), MAX_SPEED),
                "eta_s": number(event.get("eta"), MAX_ETA_S),
                "part": len(self._names),
                "parts": max(self.parts, len(self._names)),
            }
        )
