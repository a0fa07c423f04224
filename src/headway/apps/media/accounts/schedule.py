"""One open job for each account that its operator wants used, and never two: its next check.

The job that waits is the schedule. When it ends, however it ends, the next one is inserted by the
commit that ends it; a wish to have it now moves the job that is there. All of this happens in the
brain's turn.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import msgspec

from headway.apps.media.accounts.pool import AWAY, Account
from headway.apps.media.accounts.register import Accounts
from headway.core import State, Ticket
from headway.core.change import Change
from headway.engine.brain import Brain
from headway.engine.tickets import names_text, number_in_key
from headway.store.records import NewJob, Unique

CHECK = "media.check_account"
LANE = "requires_cookie"
COUNTED_FOR = "media:accounts"  # whom nobody signs in as
KEY = "account:"  # of a job, followed by the number of its account
EVERY_S = 6 * 3_600.0
JITTER = 0.1  # of that, so that not all accounts are asked about at once
BY_CLOCK, BY_HAND = 5, 2  # priorities
WHY_NOT_TWICE = "the next check of this account is in line already, and goes at once"
WHY_DROPPED = "nobody wants this account checked any more"


class CheckSchedule:
    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self.brain: Brain  # from the moment that an engine is about to start
        self.jobs: dict[int, int] = {}  # the open job of each account
        self._coming: dict[int, bool] = {}  # stored, but not taken in yet: whether it is wanted now
        self._again: set[int] = set()  # wanted at once when the job has ended
        accounts.on_change.append(self._changed)

    def meet(self, brain: Brain) -> None:
        """After `Accounts.meet`."""
        self.brain = brain
        self.jobs.clear()
        self._coming.clear()
        self._again.clear()
        brain.loaded.append(self._loaded)

    # ------------------------------------------------------------------ the engine's side

    def arrived(self, ticket: Ticket, now: float) -> None:
        """`JobType.arrived`."""
        number: Any = ticket.id
        id = number_in_key(ticket.key, KEY)
        at_once = self._coming.pop(id, False)
        account = self._wanted(id)
        if self.jobs.get(id, number) != number:
            self.brain.core.cancel(number, now, WHY_NOT_TWICE)
            self.check_now(id, now)  # as somebody wants who has put it here, or retries it
            return
        if account is None:
            self.brain.core.cancel(number, now, WHY_DROPPED)
            return
        self.jobs[id] = number
        self.brain.core.reroute(number, _upstreams(account), now)  # it may have another check URL
        if at_once:
            self._move(number, now)

    def ended(self, batch: int | None, change: Change, now: float) -> None:
        """`JobType.ended`: the one place where a chain goes on."""
        number: Any = change.ticket.id
        id = number_in_key(change.ticket.key, KEY)
        if self.jobs.get(id) != number:
            return  # one that was dropped
        del self.jobs[id]
        account = self._wanted(id)
        at_once = id in self._again
        self._again.discard(id)
        if account is not None:
            self._enqueue(account, now, at_once=at_once)

    def _loaded(self, now: float) -> None:
        for account in self._accounts.list():
            if account.enabled and account.id not in self.jobs:
                self._enqueue(account, now, at_once=account.checked_at is None)

    # ------------------------------------------------------------------ the accounts' side

    def check_now(self, id: int, now: float) -> State | None:
        """The state of its job; None: it is on its way, or nobody wants the account used."""
        account = self._wanted(id)
        if account is None:
            return None
        if id in self._coming:
            self._coming[id] = True
            return None
        number = self.jobs.get(id)
        if number is None:
            self._enqueue(account, now, at_once=True)
            return None
        ticket = self.brain.core.tickets.get(number)
        if ticket is None:  # it has ended in this very turn
            self._again.add(id)
            return None
        if ticket.state is not State.RUNNING:
            self._move(number, now)
        return ticket.state

    def _changed(self, before: Account | None, account: Account | None, now: float) -> None:
        if account is None or not account.enabled:
            row = account or before
            if row is not None:
                self._drop(row.id, now)
            return
        if before is not None and before.enabled and not _is_news(before, account):
            return
        number = self.jobs.get(account.id)
        ticket = self.brain.core.tickets.get(number or 0)
        if number is not None and ticket is not None:
            if ticket.state is State.RUNNING:
                self._again.add(account.id)  # what it asks is of yesterday
                return
            self.brain.core.reroute(number, _upstreams(account), now)
        self.check_now(account.id, now)

    def _drop(self, id: int, now: float) -> None:
        """Its job ends, and nothing follows; unless somebody wants it again before that."""
        self._again.discard(id)
        number = self.jobs.get(id, 0)
        if number in self.brain.core.tickets:
            self.brain.core.cancel(number, now, WHY_DROPPED)

    # ------------------------------------------------------------------ how

    def _wanted(self, id: int) -> Account | None:
        account = self._accounts.get(id)
        return account if account is not None and account.enabled else None

    def _enqueue(self, account: Account, now: float, *, at_once: bool = False) -> None:
        self._coming[account.id] = at_once
        self.brain.batch.jobs.append(
            NewJob(
                CHECK, msgspec.json.encode({"account": account.id}).decode(), created_at=now,
                lane=LANE, tenant=COUNTED_FOR, upstreams=names_text(_upstreams(account)),
                key=f"{KEY}{account.id}",
                priority=BY_HAND if at_once else BY_CLOCK,
                not_before=now if at_once else next_at(account, now),
                unique=Unique(f"{CHECK}:{account.id}"),
            )
        )  # fmt: skip

    def _move(self, number: int, now: float) -> None:
        core = self.brain.core
        ticket = core.tickets[number]
        core.prioritise(number, BY_HAND, now)
        core.reschedule(number, now, now)
        self.brain.ledger.touch(ticket)


def next_at(account: Account, now: float) -> float:
    """In six hours, more or less; when its cookies expire, if that is sooner."""
    chance = crc32(f"{account.id}:{now}".encode()) / 2**32
    at = now + EVERY_S * (1.0 + JITTER * (2.0 * chance - 1.0))
    ends_at = account.expires_at
    return at if ends_at is None or ends_at <= now else min(at, ends_at)


def _is_news(before: Account, account: Account) -> bool:
    """Whether what was known of it is so no more: there are other cookies, it is asked elsewhere,
    or its operator, and no check, says that it is well.
    """
    vouched = before.status in AWAY and account.status not in AWAY
    return (
        before.sealed != account.sealed
        or before.check_url != account.check_url
        or (vouched and before.checked_at == account.checked_at)
    )


def _upstreams(account: Account) -> tuple[str, ...]:
    """Who is asked: nobody, without a check URL."""
    return (account.site,) if account.check_url else ()
