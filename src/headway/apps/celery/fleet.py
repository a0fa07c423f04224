"""Which Celery workers are there: their queues, and how many jobs they run at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

FORGOTTEN_S = 30.0  # a worker that has said nothing for so long is gone
MAX_WORKERS = 1_000


class Member(NamedTuple):
    name: str
    queues: tuple[str, ...]
    places: int
    heard_at: float


class Fleet:
    def __init__(self) -> None:
        self.members: dict[str, Member] = {}

    def here(self, name: str, queues: Iterable[str], places: int, now: float) -> bool:
        """A worker says that it is there. True: that is news. ValueError: there are too many."""
        if name not in self.members and len(self.members) >= MAX_WORKERS:
            raise ValueError(f"{MAX_WORKERS} Celery workers are known already; that is too many")
        before, said = self.members.get(name), Member(name, tuple(queues), places, now)
        self.members[name] = said
        return before is None or before._replace(heard_at=now) != said

    def gone(self, name: str) -> None:
        self.members.pop(name, None)

    def forget(self, now: float) -> bool:
        """Whoever has not spoken for long. True: there was one."""
        late = [each.name for each in self.members.values() if each.heard_at + FORGOTTEN_S <= now]
        for name in late:
            del self.members[name]
        return bool(late)

    def places(self, queue: str) -> int:
        return sum(each.places for each in self.members.values() if queue in each.queues)
