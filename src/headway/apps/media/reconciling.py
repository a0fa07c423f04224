"""Comparing the archive with the disk: `media.reconcile`.

What is gone becomes missing, what is back is there again, and nothing else is changed. When the
library is away, or so much is gone that a fault is likelier than a deletion, nothing is changed at
all. Each change is looked at once more right before it is made, and a few hundred of them are one
turn: whoever is stopped in the middle has done that much, and the next look does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from os import stat
from typing import Any

import msgspec

from headway.api.turns import in_turn
from headway.api.views import moment
from headway.apps.media.adopting import Adopted, Adopter
from headway.apps.media.covering import (
    Kept,
    Part,
    kept_again,
    kept_items,
    numbers,
    with_work,
)
from headway.apps.media.items import chunks
from headway.apps.media.library.errors import LibraryError
from headway.apps.media.library.surveying import Record, Survey, survey
from headway.apps.media.listing import InThread
from headway.apps.media.model import State
from headway.apps.media.register import Register
from headway.apps.media.shelf import Shelf
from headway.apps.media.tables import MOVE_ITEM_FROM, PUT_FACT
from headway.core import RetryPolicy
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.store import Store

RECONCILE = "media.reconcile"
COUNTED_FOR = "media:library"  # whom nobody signs in as
RULES = RetryPolicy(timeout_s=6 * 3_600.0, retries=5, delay_s=30.0, growth=2.0, max_lost=20)
AT_ONCE = 500  # changes in one turn
SHOWN = 100  # of each kind, one by one
GONE = "it is not on disk any more"


@dataclass(slots=True)
class Look:
    """What a survey says about the part that it was made for."""

    survey: Survey
    lost: list[Kept] = field(default_factory=list)
    back: list[Kept] = field(default_factory=list)
    refused: str | None = None


class Reconciler:
    def __init__(
        self, store: Store, register: Register, library: Shelf, in_thread: InThread
    ) -> None:
        self._store = store
        self._register = register
        self._library = library
        self.in_thread = in_thread
        self.adopter = Adopter(store, register, library, in_thread)
        self.brain: Brain  # from the moment that an engine is about to start

    def meet(self, brain: Brain) -> None:
        self.brain = self.adopter.brain = brain

    async def reconcile(
        self, tenant: str | None = None, subscription: int | None = None, adopt: bool = False,
        foreign: bool = False, dry_run: bool = False, force: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """The job. `adopt`: files that nobody knows become items, `foreign` also those that lie
        elsewhere than where the tenant's do.
        """
        part = Part(tenant, subscription)
        look, adopted, changed, refused = Look(Survey()), Adopted(), 0, None
        try:
            look = await self.in_thread(self._look, part)
            refused = None if force else look.refused
            if refused is None and not dry_run:
                changed = await self._apply(look)
            if refused is None and adopt:
                into = self._register.subscriptions.get(subscription or 0)
                adopted = await self.adopter.adopt(part, into, foreign=foreign, dry_run=dry_run)
        except LibraryError as error:
            refused = self._in_words(error, part)
        report = await self.in_thread(self._report, part, look, adopted)
        report |= {"dry_run": dry_run, "forced": force, "refused": refused, "changed": changed}
        job.with_end(partial(self._keep, part, report))
        return report

    # ------------------------------------------------------------------ looking, in a thread

    def _look(self, part: Part) -> Look:
        self._library.open()
        rows = {row.id: row for row in kept_items(self._store)}
        records = (Record(row.id, row.key, row.video, row.size_bytes) for row in rows.values())
        found = survey(
            self._library.root, records, _tell, identity=self._library.identity,
            within=part.has_path,
        )  # fmt: skip
        ours = {id: row for id, row in rows.items() if part.has(row)}
        look = Look(_narrowed(found, ours))
        for record in look.survey.missing:
            if ours[record.item].state == State.DONE:
                look.lost.append(ours[record.item])
        look.back = [ours[id] for id in look.survey.there if ours[id].state == State.MISSING]
        # What is known to be missing says nothing about the disk.
        known = {id: row for id, row in ours.items() if row.state == State.DONE}
        judged = _narrowed(found, known)
        if judged.is_suspicious():
            absent = len(judged.missing) + len(judged.unreadable)
            look.refused = (
                f"{absent} of {judged.expected} videos are not there, which looks like a fault of "
                "the disk or of its mount: nothing was changed. Look at it, and if they are really "
                "gone, ask again with force"
            )
        return look

    def _in_words(self, error: LibraryError, part: Part) -> str:
        """Where the library is concerns only who sees all of it."""
        said = str(error)
        return said if part.tenant is None else said.replace(str(self._library.root), "the library")

    # ------------------------------------------------------------------ changing

    async def _apply(self, look: Look) -> int:
        changed = 0
        for rows, state, reason in (
            (look.lost, State.MISSING, GONE),
            (look.back, State.DONE, None),
        ):
            for some in chunks(rows, AT_ONCE):
                sure = await self.in_thread(self._still, some, state is State.DONE)
                await in_turn(self.brain, partial(self._move, sure, state, reason))
                changed += len(sure)
                job.progress(look.survey.files, note=f"{changed:,} changes made")
        return changed

    def _still(self, rows: Sequence[Kept], is_there: bool) -> list[Kept]:
        """Those that are as they were when they were looked at, and so is their file."""
        now = kept_again(self._store, (row.id for row in rows))
        same = [row for row in rows if now.get(row.id) == row]
        found = [row for row in same if self._is_there(row.video) is is_there]
        self._library.open()  # whatever was not there was not there in this library
        return found

    def _is_there(self, path: str) -> bool | None:
        """None: who knows."""
        try:
            stat(self._library.root / path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except (OSError, ValueError):
            return None
        return True

    def _move(self, rows: Iterable[Kept], state: State, reason: str | None, now: float) -> None:
        """In the brain's turn."""
        moves = [(row.id, state.value, reason, None, now, row.state) for row in rows]
        if moves:
            self.brain.write(MOVE_ITEM_FROM, *moves)

    def _keep(self, part: Part, report: dict[str, Any], now: float) -> None:
        self.brain.write(PUT_FACT, (part.fact, msgspec.json.encode(report).decode()))

    # ------------------------------------------------------------------ telling, in a thread

    def _report(self, part: Part, look: Look, adopted: Adopted) -> dict[str, Any]:
        states, size_bytes = numbers(self._store, part)
        found = look.survey
        work = with_work(self._store, part, found.work)
        free: int | None = None
        with suppress(LibraryError):
            free = self._library.free_bytes()
        return {
            "at": moment(self.brain.clock.now()),
            "subscription": part.subscription,
            "expected": self._expected(part),
            "listed": sum(states.values()),
            "on_disk": states.get(State.DONE, 0),
            "pending": states.get(State.FOUND, 0) + states.get(State.QUEUED, 0),
            "failed": states.get(State.FAILED, 0),
            "missing": states.get(State.MISSING, 0),
            "skipped": states.get(State.SKIPPED, 0),
            "bytes": size_bytes,
            "free_bytes": free,
            "lost": _listed(len(look.lost), (_item(row) for row in look.lost[:SHOWN])),
            "found_again": _listed(len(look.back), (_item(row) for row in look.back[:SHOWN])),
            "resized": _listed(len(found.resized), (
                {"item": each.record.item, "path": _written(each.record.path),
                 "size_bytes": each.size_bytes, "was_bytes": each.record.size_bytes}
                for each in found.resized[:SHOWN])),
            "unreadable": len(found.unreadable),
            "orphans": _listed(found.orphan_count, map(_written, found.orphans[:SHOWN])),
            "unfinished": _listed(len(work), work[:SHOWN]),
            "imported": adopted.view(SHOWN),
        }  # fmt: skip

    def _expected(self, part: Part) -> int:
        """How many the sites say there are, where they do."""
        return sum(
            row.total or 0
            for row in list(self._register.subscriptions.values())
            if part.tenant in (None, row.tenant) and part.subscription in (None, row.id)
        )


def _tell(files: int) -> None:
    """And stop here, if the job is to stop."""
    job.progress(files, note=f"{files:,} files looked at")


def _narrowed(found: Survey, ours: dict[int, Kept]) -> Survey:
    """What it says about these."""
    return Survey(
        there=[id for id in found.there if id in ours],
        missing=[each for each in found.missing if each.item in ours],
        resized=[each for each in found.resized if each.record.item in ours],
        unreadable=[each for each in found.unreadable if each.item in ours],
        orphans=found.orphans, orphan_count=found.orphan_count, orphan_bytes=found.orphan_bytes,
        files=found.files, work=found.work,
    )  # fmt: skip


def _item(row: Kept) -> dict[str, Any]:
    return {"item": row.id, "path": _written(row.video)}


def _listed(count: int, items: Iterable[Any]) -> dict[str, Any]:
    return {"count": count, "items": list(items)}


def _written(path: str) -> str:
    """A name on disk may have bytes that are no text."""
    return path.encode("utf-8", "replace").decode()
