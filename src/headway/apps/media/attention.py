"""What needs attention at the archive: accounts, downloads that failed for good, and its disk. From
any thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from time import monotonic

from headway.api.attention import Attention, Level, bundled, several
from headway.apps.media.accounts.pool import AWAY, Account, usable_at
from headway.apps.media.accounts.register import Accounts
from headway.apps.media.covering import Part, numbers
from headway.apps.media.library.errors import LibraryError, LibraryFull, LibraryReadOnly
from headway.apps.media.model import State
from headway.apps.media.shelf import Shelf
from headway.apps.media.tallying import FRESH_S, Tally
from headway.store import Store

LOOK_S = 30.0  # between two looks at the disk
WAIT_S = 1.0  # for one of them
SILENT_S = 10.0  # a disk that does not answer for so long
MANY = 1_000  # tenants whose numbers are kept
LOW = 2.0  # times what must stay free

Trouble = tuple[str, str]  # what it is, and in words


class ArchiveAttention:
    def __init__(self, store: Store, accounts: Accounts, tally: Tally, library: Shelf) -> None:
        self._store = store
        self._accounts = accounts
        self._tally = tally
        self._disk = DiskWatch(library)
        self._numbers: dict[str, tuple[float, dict[str, int]]] = {}

    def attention(self, tenant: str | None, now: float) -> Iterator[Attention]:
        if tenant is None:
            yield from self._library()
            yield from self._of_accounts(now)
        states = self._tally.numbers()[0] if tenant is None else self._states_of(tenant)
        for state, kind, what in (
            (State.FAILED, "archive_failed", "could not be downloaded; retry or skip them"),
            (State.MISSING, "archive_missing", "were on disk, and are not any more"),
        ):
            count = states.get(state.value, 0)
            if count:
                yield Attention(kind, Level.WARN, ("archive", ""),
                                f"{several(count, 'video')} {what}", {"count": count})  # fmt: skip

    def _states_of(self, tenant: str) -> dict[str, int]:
        until, states = self._numbers.get(tenant, (0.0, {}))
        began = monotonic()
        if began >= until:
            states = numbers(self._store, Part(tenant))[0]
            if len(self._numbers) >= MANY:
                self._numbers.clear()
            kept_s = max(FRESH_S, 10.0 * (monotonic() - began))
            self._numbers[tenant] = (monotonic() + kept_s, states)
        return states

    def _library(self) -> Iterator[Attention]:
        trouble = self._disk.trouble()
        if trouble is not None:
            kind, why = trouble
            level = Level.WARN if kind == "library_low" else Level.BAD
            yield Attention(kind, level, ("library", ""), f"the archive: {why}", {"why": why})

    def _of_accounts(self, now: float) -> Iterator[Attention]:
        accounts = self._accounts.list()
        wanted = [each for each in accounts if each.enabled]
        without = sorted({each.site for each in wanted
                          if usable_at(accounts, each.site, now) is None})  # fmt: skip
        items = [
            Attention("accounts_none", Level.BAD, ("site", site),
                      f"no account of {site} can be used; replace the cookies of one",
                      {"site": site})
            for site in without
        ]  # fmt: skip
        yield from bundled("accounts_none_widely", items,
                           lambda many, names: f"no account can be used of {many} sites: "
                           f"{names}")  # fmt: skip
        away = [_away(each) for each in wanted if each.status in AWAY]
        yield from bundled(
            "accounts_away", away, lambda many, names: f"{many} accounts cannot be used: {names}"
        )


def _away(account: Account) -> Attention:
    return Attention(
        "account_away", Level.WARN, ("account", account.label),
        f"account {account.label} is {account.status}: {account.reason}",
        {"name": account.name, "site": account.site, "status": account.status,
         "why": account.reason},
        since=account.changed_at,
    )  # fmt: skip


class DiskWatch:
    """Looks at the library from a thread of its own: a mount that is away may never answer."""

    def __init__(self, library: Shelf) -> None:
        self._library = library
        self._lock = threading.Lock()
        self._until = 0.0
        self._began = 0.0
        self._back = threading.Event()
        self._back.set()
        self._trouble: Trouble | None = None

    def trouble(self) -> Trouble | None:
        with self._lock:
            if self._back.is_set() and monotonic() >= self._until:
                self._began = monotonic()
                self._back.clear()
                threading.Thread(target=self._look, name="headway-library", daemon=True).start()
        if not self._back.wait(WAIT_S) and monotonic() - self._began > SILENT_S:
            return "library_silent", "its disk does not answer; look at its mount"
        return self._trouble

    def _look(self) -> None:
        try:
            self._trouble = self._seen()
        finally:
            self._until = monotonic() + LOOK_S
            self._back.set()

    def _seen(self) -> Trouble | None:
        library = self._library
        try:
            if not library.was_used():
                return None
            library.check()
            free = library.free_bytes()
        except LibraryError as error:
            kinds = {LibraryFull: "library_full", LibraryReadOnly: "library_readonly"}
            return kinds.get(type(error), "library_gone"), str(error)
        if free < LOW * library.min_free_bytes:
            return "library_low", (f"{library.root} has {free} bytes free, and downloads wait "
                                   f"below {library.min_free_bytes}")  # fmt: skip
        return None
