"""Rounds and their feeds, as the store has them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from headway.apps.feeds.tables import ROUNDS
from headway.store.tables import Write

REFRESH, IMPORT = "refresh", "import"  # kinds of rounds
WAITING, DONE, FAILED, SKIPPED = "waiting", "done", "failed", "skipped"  # states of their feeds

COUNTS = ("total", "done", "failed", "skipped", "new_count", "finished_at")
COUNT_ROUND = ROUNDS.change(*COUNTS)
DROP_ROUND = ROUNDS.drop()
DROP_ITEMS_OF_ROUND = Write(
    sqlite="delete from feed_round_items where round in "
    "(select given.value ->> 0 from jsonb_each(?1) as given)",
    postgres="delete from feed_round_items as kept using jsonb_array_elements($1) as given (cells) "
    "where kept.round = given.cells ->> 0",
    types=("text",),
    name="feeds of rounds that are forgotten",
    table="feed_round_items",
)


class RoundRow(NamedTuple):
    """The columns of `feed_rounds`."""

    id: str
    tenant: str
    kind: str
    total: int
    done: int
    failed: int
    skipped: int
    new_count: int
    report: str  # JSON; what else there is to say about it
    created_at: float
    finished_at: float | None

    @property
    def handled(self) -> int:
        return self.done + self.failed + self.skipped


class ItemRow(NamedTuple):
    """The columns of `feed_round_items`."""

    round: str
    feed: str
    source: int
    state: str
    new_count: int
    error: str | None


class Report(msgspec.Struct):
    """What else there is to say about a round. `position`: how much of a list is taken in; `size`:
    how much there is.
    """

    position: int = 0
    size: int = 0
    added: int = 0
    duplicates: int = 0
    invalid: int = 0
    duplicate_feeds: list[dict[str, str]] = []  # some of them
    invalid_feeds: list[dict[str, str]] = []
