"""Items that say they are in line, and are not.

Whatever ends a job of type download says so to its item. But nobody hears it while the archive is
off, so all that was cancelled or removed then is looked for at the next start: it is as if it had
just been found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headway.apps.media.items import chunks
from headway.apps.media.jobs import DOWNLOAD, ITEM, unique_key
from headway.apps.media.model import State
from headway.apps.media.tables import MOVE_ITEM_FROM
from headway.engine.brain import Brain
from headway.store import Store

AT_ONCE = 500  # items in one question


def heal(store: Store, brain: Brain, now: float) -> None:
    """`Brain.loaded`: all jobs that are open are there."""
    named = {
        dict(ticket.labels).get(ITEM)
        for ticket in brain.core.tickets.values()
        if ticket.type == DOWNLOAD
    }
    rows = store.rows("select id from media_items where state = ?", (State.QUEUED.value,))
    alone = [id for (id,) in rows if str(id) not in named]
    for some in chunks(alone, AT_ONCE):
        lost = list(_without_job(store, some))
        if lost:
            moves = ((id, State.FOUND.value, None, None, now, State.QUEUED.value) for id in lost)
            brain.write(MOVE_ITEM_FROM, *moves)


def _without_job(store: Store, ids: Sequence[int]) -> Iterator[int]:
    """Others are at the same address as one that has a job, or somebody has asked for them by their
    address: such jobs have the key that theirs would have.
    """
    marks = ", ".join("?" * len(ids))
    rows = store.rows(
        f"select id, tenant, subscription, url from media_items where id in ({marks})", tuple(ids)
    )
    keys = {id: unique_key(DOWNLOAD, tenant, subscription or None, url)
            for id, tenant, subscription, url in rows}  # fmt: skip
    taken = store.rows(
        f"select unique_key from jobs where unique_key in ({marks})", tuple(keys.values())
    )
    there = {key for (key,) in taken}
    return (id for id, key in keys.items() if key not in there)
