"""What is wanted is another thing from now on: items that were only found, or left out by a filter
or by how far back to go, are judged again.

What is in line, on disk, failed, or left out by somebody's hand stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from headway.apps.media.items import COLUMNS
from headway.apps.media.listing import filters_of, judged
from headway.apps.media.model import Item, State, Subscription
from headway.apps.media.register import Register
from headway.apps.media.tables import MOVE_ITEM_FROM
from headway.store import Store

T = TypeVar("T")
AT_ONCE = 200  # items that are judged in one turn
UNDECIDED = (
    "select {} from media_items where subscription = ? and id > ? and (state = 'found' "
    "or (state = 'skipped' and failure in ('filter', 'depth'))) order by id limit ?"
)


class Sifted(NamedTuple):
    """How many changed sides."""

    wanted: int = 0
    left_out: int = 0


def goes_further(before: int, after: int) -> bool:
    """Whether a depth reaches beyond another one; 0 has no end."""
    return before != 0 and (after == 0 or after > before)


def sift(
    store: Store, register: Register, subscription: int,
    in_turn: Callable[[Callable[[float], Sifted]], Sifted],
) -> Sifted:  # fmt: skip
    """Blocking. `in_turn` lets the brain do something, and waits until it is committed."""
    wanted = left_out = after = 0
    while rows := store.rows(UNDECIDED.format(COLUMNS), (subscription, after, AT_ONCE)):
        found = [Item(*row) for row in rows]
        after = found[-1].id
        done = in_turn(partial(_judge, register, subscription, found))
        wanted += done.wanted
        left_out += done.left_out
    return Sifted(wanted, left_out)


def _judge(register: Register, subscription: int, found: Sequence[Item], now: float) -> Sifted:
    """In the brain's turn, by what the subscription wants at that moment."""
    row = register.subscriptions.get(subscription)
    if row is None:
        return Sifted()
    moves = []
    wanted = 0
    for each, after in zip(found, judged_again(found, row), strict=True):
        if (after.state, after.reason) != (each.state, each.reason):
            moves.append((each.id, after.state, after.reason, after.failure, now, each.state))
            wanted += each.state != after.state == State.FOUND
    if moves:
        register.brain.write(MOVE_ITEM_FROM, *moves)
    left_out = sum(move[1] != move[5] for move in moves) - wanted
    return Sifted(wanted, left_out)


def judged_again(found: Sequence[Item], row: Subscription) -> list[Item]:
    """A list that was read to its end has new items only at its head, so those pass whatever their
    place is; here the place of each counts.
    """
    row, filters = row._replace(is_complete=0), filters_of(row)
    return [judged(each, row, filters) for each in found]
