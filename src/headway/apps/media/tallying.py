"""What the archive counts for Prometheus, and for people: items, bytes, accounts."""

from __future__ import annotations

import threading
from collections import Counter
from time import monotonic

from headway.api.metrics import Counts
from headway.apps.media.accounts.pool import Status, status_at
from headway.apps.media.accounts.register import Accounts
from headway.apps.media.covering import Part, numbers
from headway.apps.media.model import State
from headway.apps.media.register import Register
from headway.store import Store

FRESH_S = 2.0  # people watch these numbers
SHARE = 30.0  # counting reads all items: of the time, one in so many at most is spent on it


class Tally:
    def __init__(self, store: Store, register: Register, accounts: Accounts) -> None:
        self._store = store
        self._register = register
        self._accounts = accounts
        self._lock = threading.Lock()
        self._until = 0.0
        self._known: tuple[dict[str, int], int] = ({}, 0)

    def numbers(self) -> tuple[dict[str, int], int]:
        """Items by their state, and bytes on disk, of everybody. Two seconds old at most, and
        older where counting takes long. From any thread; one at a time counts.
        """
        with self._lock:
            began = monotonic()
            if began >= self._until:
                self._known = numbers(self._store, Part())
                now = monotonic()
                self._until = now + max(FRESH_S, SHARE * (now - began))
            return self._known

    def accounts(self, now: float) -> dict[str, Counter[str]]:
        """How many are in each status, by site."""
        found: dict[str, Counter[str]] = {}
        for each in self._accounts.list():
            found.setdefault(each.site, Counter())[status_at(each, now).value] += 1
        return found

    def counts(self, now: float) -> list[Counts]:
        states, size_bytes = self.numbers()
        statuses: Counter[str] = sum(self.accounts(now).values(), Counter())
        return [
            Counts("archive_subscriptions", "Collections that are archived.", (),
                   {(): len(self._register.subscriptions)}, now=True),
            Counts("archive_items", "Videos by what became of them.", ("state",),
                   {(each.value,): states.get(each.value, 0) for each in State}, now=True),
            Counts("archive_bytes", "Bytes of videos on disk.", (), {(): size_bytes}, now=True),
            Counts("archive_accounts", "Accounts by how they are.", ("status",),
                   {(each.value,): statuses[each.value] for each in Status}, now=True),
        ]  # fmt: skip
