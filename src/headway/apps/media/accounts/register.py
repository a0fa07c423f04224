"""All accounts, in memory as the store has them. Read from any thread; changed in the brain's turn,
and every change is written with the commit of its turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from headway.apps.media.accounts.cookies import (
    Cookie,
    covers,
    expires_at,
    netscape_file,
    parse_cookies,
    plain_site,
    values,
)
from headway.apps.media.accounts.gates import AccountGates
from headway.apps.media.accounts.pool import (
    AWAY,
    Account,
    Heard,
    Status,
    after,
    is_usable,
    least_load,
    pick,
    renewed,
    serving,
    taken,
)
from headway.apps.media.accounts.tables import DROP_ACCOUNT, PUT_ACCOUNT, SELECT_ACCOUNTS
from headway.engine.brain import Brain
from headway.net.redaction import SECRETS
from headway.net.sealing import Vault
from headway.store import Store

MOST_ACCOUNTS = 1_000
LONGEST_NAME = 100  # characters
LONGEST_URL = 2_000
CHECK_URLS = {"bilibili.com": "https://api.bilibili.com/x/web-interface/nav"}

# In the turn: the account before and after a change of its status, its cookies or whether it is
# enabled. None: it is new, or it is gone.
OnChange = Callable[[Account | None, Account | None, float], None]


class Accounts:
    def __init__(
        self, store: Store, vault: Callable[[], Vault], needed: Callable[[str], bool] | None = None
    ) -> None:
        """`needed`: whether anything at a site needs an account; by default, if it has any."""
        self._store = store
        self._vault = vault
        self.accounts: dict[int, Account] = {}  # replaced as a whole, never changed
        self.gates = AccountGates(self, needed)
        self.on_change: list[OnChange] = []
        self.brain: Brain  # from the moment that an engine is about to start
        # By the job that holds it: the account, and what was sealed when it was picked.
        self._held: dict[int, tuple[int, str]] = {}
        self._last = 0  # number of an account

    def meet(self, brain: Brain) -> None:
        """An engine is about to start."""
        self.brain = brain
        brain.entered.append(self._begin)
        brain.loaded.append(self.gates.sync_all)

    def _begin(self, now: float) -> None:
        """Nobody else changes the store any more."""
        rows = self._store.rows(SELECT_ACCOUNTS)
        self.accounts = {row[0]: Account._make(row) for row in rows}
        self._last = max(self._last, *self.accounts, 0)
        self._held.clear()

    # ------------------------------------------------------------------ looking

    def get(self, id: int) -> Account | None:
        return self.accounts.get(id)

    def list(self, site: str | None = None) -> tuple[Account, ...]:
        """All of them, or those that serve a site."""
        every = self.accounts.values()
        return tuple(every if site is None else serving(every, site))

    def in_use(self, id: int) -> int:
        return sum(id == held for held, _ in list(self._held.values()))

    def cookies_of(self, id: int) -> tuple[Cookie, ...]:
        """KeyError: there is no such account. SealedElsewhere: they cannot be opened here."""
        account = self.accounts[id]
        text = self._vault().unseal(account.sealed, about_cookies(id))
        return _hidden(parse_cookies(text, account.site))

    # ------------------------------------------------------------------ operators, in the turn

    def add(
        self, name: str, site: str, cookies_text: str, check_url: str | None, now: float
    ) -> Account:
        """ValueError says what is wrong. A check URL of None: that of the site, if it is known; of
        nothing: none.
        """
        site = plain_site(site)
        if len(self.accounts) >= MOST_ACCOUNTS:
            raise ValueError(f"there are {MOST_ACCOUNTS} accounts already; remove some")
        self._check_name(name, site)
        if check_url is None:
            check_url = CHECK_URLS.get(site)
        check_url = _plain_check_url(check_url, site)
        cookies = _fresh_cookies(cookies_text, site, now)
        self._last = id = max(self._last + 1, int(now * 1000))
        account = Account(
            id, name, site, self._sealed(id, cookies), enabled=1, status=Status.UNCHECKED.value,
            reason="", check_url=check_url, uses=0, failures=0, load=0.0, load_at=now,
            last_used_at=None, cooled_until=0.0, pushbacks=0, strikes="[]", checked_at=None,
            expires_at=expires_at(cookies), created_at=now, changed_at=now,
        )  # fmt: skip
        self._put(account, now, "account_added")
        return account

    def replace_cookies(self, id: int, cookies_text: str, now: float) -> Account:
        """KeyError: there is no such account."""
        account = self.accounts[id]
        cookies = _fresh_cookies(cookies_text, account.site, now)
        account = renewed(account, now)._replace(
            sealed=self._sealed(id, cookies), expires_at=expires_at(cookies), checked_at=None,
            changed_at=now,
        )  # fmt: skip
        self._put(account, now, "account_cookies_replaced")
        return self.accounts[id]

    def change(
        self, id: int, now: float, *, name: str | None = None, enabled: bool | None = None,
        check_url: str | None = None,
    ) -> Account:  # fmt: skip
        """What is None stays. KeyError: there is no such account. Whoever enables one that was
        disabled for its refusals, or has expired, vouches for it until the next check.
        """
        before = account = self.accounts[id]
        if name is not None and name != account.name:
            self._check_name(name, account.site)
            account = account._replace(name=name)
        if check_url is not None:
            account = account._replace(check_url=_plain_check_url(check_url, account.site))
        if enabled is not None:
            account = account._replace(enabled=int(enabled))
            if enabled and account.status in AWAY:
                account = renewed(account, now)
        if account != before:
            said = "" if account.enabled == before.enabled else f"enabled: {bool(account.enabled)}"
            self._put(account._replace(changed_at=now), now, "account_changed", said)
        return self.accounts[id]

    def remove(self, id: int, now: float) -> Account:
        """KeyError: there is no such account. What runs with it may end."""
        gone = self.accounts[id]
        self.accounts = {key: each for key, each in self.accounts.items() if key != id}
        self.brain.write(DROP_ACCOUNT, (id,))
        self.brain.record(now, "account_removed", subject=f"account:{gone.label}")
        self._tell(gone, None, now)
        self.gates.sync_around(gone.site, now)
        return gone

    # ------------------------------------------------------------------ jobs, in the turn

    def pick(
        self, site: str, now: float, not_these: Collection[int] = (), *, holder: int
    ) -> Account | None:
        """The one to use now. It is in use by its holder, a job, until that gives it back, lets go
        of it, or picks again.
        """
        self.let_go(holder)
        every = self.accounts.values()
        account = pick(every, site, now, Counter(id for id, _ in self._held.values()), not_these)
        if account is None:
            return None
        self._held[holder] = (account.id, account.sealed)
        self._put(taken(account, every, now), now)
        return self.accounts[account.id]

    def given_back(self, holder: int, heard: Heard, now: float) -> None:
        """What came of it. Said once; who holds nothing has nothing to say."""
        id, sealed = self._held.pop(holder, (0, ""))
        self._hear(id, heard, now, sealed)

    def let_go(self, holder: int) -> None:
        """A job has ended, and nothing was heard of the account."""
        self._held.pop(holder, None)

    def checked(self, id: int, verdict: Heard, now: float, *, of: str | None = None) -> None:
        """What a check has said. `of`: what was sealed when it began."""
        self._hear(id, verdict, now, of)

    def resealed(self, renewed: Mapping[str, str]) -> None:
        """In the turn that puts these into the store, in the place of those: the same cookies."""
        self.accounts = {
            id: each._replace(sealed=renewed.get(each.sealed, each.sealed))
            for id, each in self.accounts.items()
        }
        for holder, (id, sealed) in list(self._held.items()):
            self._held[holder] = (id, renewed.get(sealed, sealed))

    # ------------------------------------------------------------------ how

    def _hear(self, id: int, heard: Heard, now: float, of: str | None) -> None:
        """What is said of other cookies than those it has now is not held against it."""
        account = self.accounts.get(id)
        if account is not None and of in (None, account.sealed):
            self._put(after(account, heard, now), now)

    def _put(self, account: Account, now: float, event: str | None = None, said: str = "") -> None:
        before = self.accounts.get(account.id)
        if before == account:
            return
        if before is not None and is_usable(account, now) and not is_usable(before, now):
            account = self._caught_up(account, now)
        self.brain.write(PUT_ACCOUNT, account)
        self.accounts = {**self.accounts, account.id: account}
        subject = f"account:{account.label}"
        if event is not None:
            self.brain.record(now, event, subject=subject, detail=said)
        if before is not None and before.status != account.status:
            event = f"account_{account.status}"
            self.brain.record(now, event, subject=subject, detail=account.reason)
        if before is None or _matters(before) != _matters(account):
            self._tell(before, account, now)
        if before is None or _when(before) != _when(account):
            self.gates.sync_around(account.site, now)

    def _caught_up(self, account: Account, now: float) -> Account:
        """It was away: others have worked meanwhile, and it does not have to make up for that."""
        others = [each for each in serving(self.accounts.values(), account.site)
                  if each.id != account.id and is_usable(each, now)]  # fmt: skip
        least = least_load(others, now)
        if least <= account.load:
            return account
        return account._replace(load=least, load_at=now)

    def _tell(self, before: Account | None, account: Account | None, now: float) -> None:
        for tell in self.on_change:
            tell(before, account, now)

    def _check_name(self, name: str, site: str) -> None:
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise ValueError(f"a name has 1 to {LONGEST_NAME} characters that can be printed")
        if any(each.name == name and each.site == site for each in self.accounts.values()):
            raise ValueError(f"there is an account {name} at {site} already; choose another name")

    def _sealed(self, id: int, cookies: tuple[Cookie, ...]) -> str:
        return self._vault().seal(netscape_file(cookies), about_cookies(id))


def about_cookies(id: int) -> str:
    """What the cookies of an account are sealed for."""
    return f"media/account/{id}"


def _matters(account: Account) -> tuple[Any, ...]:
    return account.status, account.enabled, account.sealed, account.check_url


def _when(account: Account) -> tuple[Any, ...]:
    """On what it depends when it can be used."""
    return account.status, account.enabled, account.cooled_until


def _hidden(cookies: tuple[Cookie, ...]) -> tuple[Cookie, ...]:
    for value in values(cookies):
        SECRETS.add(value)
    return cookies


def _fresh_cookies(text: str, site: str, now: float) -> tuple[Cookie, ...]:
    cookies = _hidden(parse_cookies(text, site))
    ends_at = expires_at(cookies)
    if ends_at is not None and ends_at <= now:
        raise ValueError(
            "these cookies have expired already; log in at the site again and export new ones"
        )
    return cookies


def _plain_check_url(url: str | None, site: str) -> str | None:
    if not url:
        return None
    try:
        place = urlsplit(url)
        host, _ = (place.hostname or "").lower(), place.port
    except ValueError:
        host, place = "", None
    if place is None or place.scheme not in ("http", "https") or len(url) > LONGEST_URL:
        raise ValueError("the check URL is no address; write it as https://host/path")
    if not covers(site, host) or "@" in place.netloc:
        raise ValueError(f"the check URL must be at {site}, where the cookies are for")
    return url
