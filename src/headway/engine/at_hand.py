"""Payloads that need not be asked for: of jobs that came in and wait for their first grant."""

from __future__ import annotations

ROOM = 16_000_000  # characters; what does not fit stays in the store


class AtHand:
    def __init__(self, room: int = ROOM) -> None:
        self._payloads: dict[int, str] = {}
        self._room = room

    def keep(self, job: int, args: str) -> None:
        self.take(job)
        if len(args) <= self._room:
            self._payloads[job] = args
            self._room -= len(args)

    def take(self, job: int) -> str | None:
        """It is not kept any longer."""
        args = self._payloads.pop(job, None)
        if args is not None:
            self._room += len(args)
        return args

    def __len__(self) -> int:
        return len(self._payloads)
