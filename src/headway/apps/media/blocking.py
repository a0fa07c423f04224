"""What somebody decides about items: to try them again, to take back that they were given up, or to
leave them out. In the brain's turn; what is decided for very many takes several turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from headway.apps.media.items import COLUMNS
from headway.apps.media.jobs import BY_HAND, DOWNLOAD, new_request
from headway.apps.media.listing import download_job
from headway.apps.media.model import Item, State
from headway.apps.media.register import Register
from headway.apps.media.tables import ITEMS, MOVE_ITEM_FROM
from headway.store import Store
from headway.store.records import NewJob

AT_ONCE = 500  # items in one turn
HAND = "by_hand"  # kind of a reason

TRIED_AGAIN = (State.FAILED, State.SKIPPED, State.MISSING, State.FOUND)
UNBLOCKED = (State.FAILED, State.SKIPPED)
LEFT_OUT = (State.FOUND, State.FAILED, State.MISSING, State.QUEUED)

# It was on disk, and is not wanted there any more.
FORGET_ITEM = ITEMS.change("state", "reason", "failure", "files", "size_bytes", "changed_at")

Act = Callable[[Register, Sequence[Item], float], int]


class Failed(NamedTuple):
    """Which of the items that have failed. None: any."""

    tenant: str | None = None
    subscription: int | None = None
    kind: str | None = None
    ids: tuple[int, ...] | None = None

    def where(self) -> tuple[str, list[Any]]:
        parts, values = ["state = ?"], [State.FAILED.value]
        said = {"tenant": self.tenant, "subscription": self.subscription, "failure": self.kind}
        for column, value in said.items():
            if value is not None:
                parts.append(f"{column} = ?")
                values.append(value)  # type: ignore[arg-type]
        if self.ids is not None:
            parts.append(f"id in ({', '.join('?' * len(self.ids)) or 'null'})")
            values.extend(self.ids)  # type: ignore[arg-type]
        return " and ".join(parts), values


def in_parts(store: Store, wanted: Failed) -> Iterator[list[Item]]:
    """Each of them once, whatever becomes of those before. Blocking."""
    where, values = wanted.where()
    after = 0
    while rows := store.rows(
        f"select {COLUMNS} from media_items where {where} and id > ? order by id limit ?",
        (*values, after, AT_ONCE),
    ):
        after = rows[-1][0]
        yield [Item(*row) for row in rows]


# ---------------------------------------------------------------------- in the brain's turn


def try_again(register: Register, found: Sequence[Item], now: float) -> int:
    """They are in line with the commit of this turn. How many are."""
    jobs = {each.id: _download(register, each, now) for each in found}
    there = [each for each in found if jobs[each.id] is not None]
    _move(register, there, State.QUEUED, None, None, now)
    register.enqueue(job for job in jobs.values() if job is not None)
    return len(there)


def unblock(register: Register, found: Sequence[Item], now: float) -> int:
    """They are as if they had just been found."""
    _move(register, found, State.FOUND, None, None, now)
    return len(found)


def leave_out(register: Register, found: Sequence[Item], now: float) -> int:
    """Nobody downloads them, until somebody says otherwise."""
    _move(register, found, State.SKIPPED, "left out by hand", HAND, now)
    return len(found)


def forget_file(register: Register, item: Item, now: float) -> None:
    """Its file is not ours any more, and it is not to come again."""
    row = (item.id, State.SKIPPED.value, "deleted by hand", HAND, None, None, now)
    register.brain.write(FORGET_ITEM, row)


def _download(register: Register, item: Item, now: float) -> NewJob | None:
    """None: nobody subscribes to it any more."""
    if not item.subscription:
        return new_request(
            DOWNLOAD, item.url, now, tenant=item.tenant, item=item.id, priority=BY_HAND
        )
    row = register.subscriptions.get(item.subscription)
    return None if row is None else download_job(item, row, now, by_hand=True, anyhow=True)


def _move(
    register: Register, found: Sequence[Item], to: State, reason: str | None, kind: str | None,
    now: float,
) -> None:  # fmt: skip
    """Those that are still as they were when they were looked at."""
    if found:
        moves = ((each.id, to.value, reason, kind, now, each.state) for each in found)
        register.brain.write(MOVE_ITEM_FROM, *moves)
