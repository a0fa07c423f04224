"""Reading lists: `list_fetch`, one part of a list at a time.

A list is read from its head until something known comes up, and to its end now and then. Each part
is a job of its own, so the subscription is free in between. What a part has found, the downloads
that follow from it, the place where to go on and the job that goes on there are one commit: a part
that was read counts as a whole, or not at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from headway.api.turns import in_turn
from headway.apps.media import items
from headway.apps.media.fetcher.filters import Filters, reason_to_skip
from headway.apps.media.fetcher.protocol import FailureKind, Task
from headway.apps.media.jobs import BY_CLOCK, BY_HAND, DOWNLOAD, new_request, subscription_of
from headway.apps.media.judging import in_words
from headway.apps.media.model import DAY_S, MAX_TITLE, Item, State, Subscription, error_text
from headway.apps.media.register import Register
from headway.apps.media.running import Failure
from headway.apps.media.settings import MediaSettings
from headway.apps.media.tables import ADD_ITEM, MARK_GONE, TELL_ITEM
from headway.apps.media.visiting import Visitor, check_key
from headway.core import State as JobState
from headway.core.change import Change
from headway.engine.brain import Brain
from headway.engine.hands.context import job
from headway.engine.ledger import clean
from headway.outcomes import Answered, Cancel
from headway.store import Store
from headway.store.records import NewJob

T = TypeVar("T")
PART = 100  # entries that are asked for
AT_ONCE = 1_000  # that are taken in by one turn
HEAD, WALK = "head", "walk"  # until something is known; to the end
LEAST_BUDGET_S = 5.0


class InThread(Protocol):
    def __call__(self, call: Callable[..., T], /, *args: Any) -> Awaitable[T]: ...


class Part(NamedTuple):
    """What one visit has brought."""

    mode: str
    start: int
    entries: list[dict[str, Any]]
    known: dict[str, Item]
    next: int | None  # where the list goes on
    title: str | None
    began_at: float


class Lister:
    def __init__(
        self, store: Store, register: Register, visitor: Visitor, settings: MediaSettings,
        in_thread: InThread,
    ) -> None:  # fmt: skip
        self._store = store
        self._register = register
        self._visitor = visitor
        self._settings = settings
        self.in_thread = in_thread
        self.brain: Brain  # from the moment that an engine is about to start

    async def list_fetch(
        self, subscription_id: int, url: str | None = None, requires_cookie: bool = False,
        ua_profile: str | None = None, start: int | None = None, mode: str = HEAD,
        full: bool = False,
    ) -> dict[str, Any] | Answered:  # fmt: skip
        """The job. Without a start it begins at the head."""
        row = self._register.get(subscription_id, job.tenant)
        if row is None:
            raise Cancel(f"there is no subscription {subscription_id} any more")
        check_key(row.id)
        began_at = self.brain.clock.now()
        if start and mode == WALK:
            # Somebody may try a part again that failed long ago: the walk goes on where it is now.
            start = None if row.walk_at is None else row.cursor
        if start is None:
            start, mode = 0, WALK if full or self._is_due_in_full(row, began_at) else HEAD
        entries: list[dict[str, Any]] = []
        limit_s = self._settings.list_timeout_s
        answer = await self._visitor.visit(
            Task.LIST, row.url, site=row.site, cookie=requires_cookie, ua_profile=ua_profile,
            timeout_s=limit_s, start=start, most=PART, on_entry=entries.append,
            budget_s=max(LEAST_BUDGET_S, limit_s / 2),
        )  # fmt: skip
        if answer.failure is not None:
            return self._failed(row, answer.failure, requires_cookie, start, mode)
        result = answer.result or {}
        entries = _distinct(entries)
        known = await self.in_thread(
            items.known, self._store, row, [each["key"] for each in entries]
        )
        part = Part(mode, start, entries, known, result.get("next"), result.get("title"), began_at)
        part = await self._take_most(row.id, part)
        job.with_end(partial(self._end, row.id, part))
        new = sum(1 for each in entries if each["key"] not in known)
        job.progress(start + len(entries), row.total, f"{start + len(entries)} listed, {new} new")
        return {"subscription_id": row.id, "listed": len(entries), "new": new, "start": start,
                "mode": mode, "next": part.next}  # fmt: skip

    async def _take_most(self, id: int, part: Part) -> Part:
        """A list that comes as one piece is taken in bit by bit, so that nobody else waits long;
        each bit with the place after it. What is left for the end.
        """
        while len(part.entries) > AT_ONCE:
            bit = part._replace(entries=part.entries[:AT_ONCE], next=part.start + AT_ONCE)
            await in_turn(self.brain, partial(self._take_bit, id, bit))
            part = part._replace(entries=part.entries[AT_ONCE:], start=part.start + AT_ONCE)
        return part

    def _take_bit(self, id: int, bit: Part, now: float) -> None:
        row = self._register.subscriptions.get(id)
        if row is None:
            return
        self._take_in(row, bit, now)
        if bit.mode == WALK:
            walk_at = _walk_at(row, bit)
            self._register.put(row._replace(cursor=bit.next or 0, walk_at=walk_at))

    def _is_due_in_full(self, row: Subscription, now: float) -> bool:
        """A list that was never read to its end, or not for long."""
        if not row.is_complete:
            return row.walk_at is None  # else the walk goes on after the head
        every_s = self._settings.full_every_days * DAY_S
        return row.full_at is None or not 0 <= now - row.full_at < every_s

    def _failed(
        self, row: Subscription, failure: Failure, cookie: bool, start: int, mode: str
    ) -> dict[str, Any] | Answered:
        refused = failure.kind is FailureKind.CREDENTIAL
        if refused and not cookie and self._visitor.has_account(row.site):
            job.with_end(partial(self._with_cookie, row.id, start, mode))
            return {"subscription_id": row.id, "listed": 0, "new": 0, "start": start, "mode": mode,
                    "next": start, "stage": "cookie"}  # fmt: skip
        outcome = self._visitor.outcome(failure, row.site)
        job.with_end(partial(self._blame, row.id, failure))
        return Answered(outcome)

    # ------------------------------------------------------------------ in the brain's turn

    def ended(self, batch: int | None, change: Change, now: float) -> None:
        """`JobType.ended`. Anybody may give a job of his own any key."""
        row = self._register.subscriptions.get(subscription_of(change.ticket.key))
        if row is None or row.tenant != change.ticket.tenant:
            return
        if change.after is JobState.FAILED:
            error = row.error or error_text(change.detail) or "it failed"
            row = row._replace(failures=row.failures + 1, error=error)
        elif change.after is JobState.CANCELLED:
            row = row._replace(wanted=0)  # who stops the listing does not wait for its downloads
        else:
            return
        if self._leaves_gap(change):
            row = row._replace(full_at=None)  # so that the next look goes to the end
        self._register.put(row)

    def _leaves_gap(self, change: Change) -> bool:
        """What is new was read in part: the next look at the head finds only what is known."""
        number: Any = change.ticket.id
        try:
            said = msgspec.json.decode(self._store.payload(number) or "{}")
            return bool(said.get("start")) and said.get("mode", HEAD) != WALK
        except (AttributeError, ValueError):
            return False  # it was none of ours

    def _blame(self, id: int, failure: Failure, now: float) -> None:
        row = self._register.subscriptions.get(id)
        if row is not None:
            self._register.put(row._replace(error=error_text(in_words(failure))))

    def _with_cookie(self, id: int, start: int, mode: str, now: float) -> None:
        row = self._register.subscriptions.get(id)
        if row is not None:
            row = row._replace(with_cookie=1)
            self._register.put(row)
            self._register.list_again(row, now, start=start, mode=mode)

    def _end(self, id: int, part: Part, now: float) -> None:
        """In the commit that ends the attempt."""
        row = self._register.subscriptions.get(id)
        if row is None:
            return  # nobody wants it any more
        row = row._replace(listed_at=now, error=None, failures=0)
        if part.title:
            row = row._replace(found_title=clean(str(part.title))[:MAX_TITLE])
        self._take_in(row, part, now)
        following = self._go_on(row, part, now)
        if following is None:
            row = self._register.subscriptions[id]
            if row.wanted:
                self._register.put(row._replace(wanted=0))
                self._register.start_found(row, now)
        else:
            self._register.list_again(
                self._register.subscriptions[id], now, start=following[0], mode=following[1]
            )

    def _take_in(self, row: Subscription, part: Part, now: float) -> None:
        filters = filters_of(row)
        jobs: list[NewJob] = []
        fresh: list[Item] = []
        told: list[tuple[Any, ...]] = []
        unknown = [each for each in part.entries if each["key"] not in part.known]
        for entry in part.entries:
            if entry["key"] in part.known:
                told.append(_told(part.known[entry["key"]], entry, now))
        for number, entry in zip(self._register.item_numbers(len(unknown)), unknown, strict=True):
            found = items.new_item(number, row.tenant, row.id, entry, now)
            found = judged(found, row, filters)
            if found.state == State.FOUND and row.wanted:
                found = found._replace(state=State.QUEUED.value)
                jobs.append(download_job(found, row, now))
            fresh.append(found)
        brain = self._register.brain
        if told:
            brain.write(TELL_ITEM, *told)
        if fresh:
            brain.write(ADD_ITEM, *fresh)
        self._register.enqueue(jobs)

    def _go_on(self, row: Subscription, part: Part, now: float) -> tuple[int, str] | None:
        """Where this listing goes on, and how. None: it is over."""
        most = self._settings.list_max_chunks * PART
        if row.depth:
            most = min(most, row.depth)
        is_cut = part.next is not None and part.next >= most
        following = None if is_cut else part.next
        if part.mode == WALK:
            walk_at = _walk_at(row, part)
            if following is not None:
                self._register.put(row._replace(cursor=following, walk_at=walk_at))
                return following, WALK
            if not is_cut:
                brain = self._register.brain
                brain.write(MARK_GONE, (row.id, walk_at, now))
            self._register.put(row._replace(cursor=0, walk_at=None, is_complete=1, full_at=now))
            return None
        self._register.put(row)
        if following is not None and not part.known:
            return following, HEAD
        return None if row.walk_at is None else (row.cursor, WALK)


def _walk_at(row: Subscription, part: Part) -> float:
    """When the walk began that this is a part of."""
    if part.start == 0 or row.walk_at is None:
        return part.began_at
    return min(part.began_at, row.walk_at)  # a clock may be put back


def download_job(
    found: Item, row: Subscription, now: float, *, by_hand: bool = False, anyhow: bool = False
) -> NewJob:
    """`anyhow`: whatever the filters say."""
    more: dict[str, Any] = {"anyhow": True} if anyhow else {}
    return new_request(
        DOWNLOAD, found.url, now, subscription=row, item=found.id,
        priority=BY_HAND if by_hand else BY_CLOCK, **more,
    )  # fmt: skip


def filters_of(row: Subscription) -> Filters:
    return Filters.from_dict(msgspec.json.decode(row.filters))


def judged(found: Item, row: Subscription, filters: Filters) -> Item:
    """As it is wanted, or why not."""
    reason, kind = None, None
    if row.depth and found.place is not None and found.place >= row.depth and not row.is_complete:
        reason, kind = f"it is beyond the newest {row.depth}", "depth"
    else:
        reason = reason_to_skip(
            filters, title=found.title or "", published_at=found.published_at,
            duration_s=found.duration_s, views=found.views,
        )  # fmt: skip
        kind = None if reason is None else "filter"
    state = State.FOUND if reason is None else State.SKIPPED
    return found._replace(state=state.value, reason=reason, failure=kind)


def _told(there: Item, entry: dict[str, Any], now: float) -> tuple[Any, ...]:
    """What is known stays, where the list says nothing."""
    facts = items.facts_of(entry)
    kept = {name: getattr(there, name) if value is None else value
            for name, value in facts.items()}  # fmt: skip
    return (
        there.id, kept["title"], kept["uploader"], kept["published_at"], kept["duration_s"],
        kept["views"], entry.get("position"), now, None,
    )  # fmt: skip


def _distinct(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A list may have one video twice."""
    return list({each["key"]: each for each in reversed(entries)}.values())[::-1]
