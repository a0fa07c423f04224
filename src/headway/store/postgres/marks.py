"""What an engine has seen of the jobs: a snapshot of the database, and perhaps a place in the pages
between it and the next one.
"""

from __future__ import annotations

from typing import NamedTuple

NOTHING = "1:1:"


class Mark(NamedTuple):
    before: str  # all that was visible in this snapshot was seen
    target: str | None = None  # and what is visible in this one, up to the place below
    after_xid: str = "0"
    after_id: int = 0

    @classmethod
    def parse(cls, text: str) -> Mark:
        if not text:
            return cls(NOTHING)
        before, _, rest = text.partition(" ")
        if not rest:
            return cls(before)
        target, after_xid, after_id = rest.split(" ")
        return cls(before, target, after_xid, int(after_id))

    def __str__(self) -> str:
        if self.target is None:
            return "" if self.before == NOTHING else self.before
        return f"{self.before} {self.target} {self.after_xid} {self.after_id}"

    @property
    def next_xid(self) -> str:
        """The first transaction that had not begun."""
        return self.before.split(":")[1]

    @property
    def under_way(self) -> str:
        """The transactions that had begun and not ended, as an array."""
        return "{" + self.before.split(":")[2] + "}"

    def is_of_another_server(self, snapshot: str) -> bool:
        """Whether numbers in it are above those that were given so far: it was restored here."""
        newest = self.target or self.before
        return int(newest.split(":")[1]) > int(snapshot.split(":")[1])
