"""Which account goes next, and what follows from what a site says to one. Pure: accounts and the
time come in, accounts go out.

The least used goes first. Uses count less with every day, and whoever is new or was away counts as
much as the least used of the others: so nobody has all the work until it has caught up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

from headway.apps.media.accounts.cookies import covers
from headway.core.classify import MAX_RETRY_AFTER_S

HALF_LIFE_S = 86_400.0  # in which a use counts half
STRIKES = 3
STRIKES_WITHIN_S = 900.0
HOLD_S = 600.0
LONGEST_HOLD_S = 7_200.0
RESTS = "rests after a pushback"
REFUSALS = frozenset({401, 403})
PUSHBACKS = frozenset({412, 429})


class Status(StrEnum):
    UNCHECKED = "unchecked"
    HEALTHY = "healthy"
    COOLING = "cooling"  # until `cooled_until`, and in name until it is used again
    DISABLED = "disabled"  # it was refused too often; a check may heal it
    EXPIRED = "expired"  # the site does not know it any more


AWAY = frozenset({Status.DISABLED, Status.EXPIRED})


class Account(NamedTuple):
    """A row of its table."""

    id: int
    name: str
    site: str
    sealed: str  # its cookies
    enabled: int  # whether its operator wants it used
    status: str
    reason: str
    check_url: str | None
    uses: int
    failures: int  # refusals and pushbacks
    load: float  # what its uses count for, at `load_at`
    load_at: float
    last_used_at: float | None
    cooled_until: float
    pushbacks: int  # in a row
    strikes: str  # the times of its latest refusals
    checked_at: float | None
    expires_at: float | None
    created_at: float
    changed_at: float

    @property
    def label(self) -> str:
        return f"{self.name}@{self.site}"

    def __repr__(self) -> str:  # never with its cookies, though they are sealed
        return f"Account({self.label!r}, {self.status})"


class Word(StrEnum):
    """What was heard of an account."""

    OK = "ok"
    REFUSED = "refused"
    PUSHBACK = "pushback"
    TROUBLE = "trouble"  # the network, or the site itself: the account is not to blame
    VALID = "valid"  # said by a check
    INVALID = "invalid"
    UNKNOWN = "unknown"  # the check could not be made


class Heard(NamedTuple):
    word: Word
    status: int | None = None
    retry_after_s: float | None = None
    reason: str = ""


# ---------------------------------------------------------------------- who goes


def is_usable(account: Account, now: float) -> bool:
    return bool(account.enabled) and account.status not in AWAY and account.cooled_until <= now


def status_at(account: Account, now: float) -> Status:
    """For people: one that has rested is not said to be at it still."""
    rested = account.status == Status.COOLING and account.cooled_until <= now
    return Status.UNCHECKED if rested else Status(account.status)


def serving(accounts: Iterable[Account], site: str) -> list[Account]:
    return [each for each in accounts if covers(each.site, site)]


def pick(
    accounts: Iterable[Account], site: str, now: float, in_use: Mapping[int, int],
    not_these: Collection[int] = (),
) -> Account | None:  # fmt: skip
    """The one to use next, as it is. None: there is none now."""
    usable = [each for each in serving(accounts, site) if is_usable(each, now)]

    def rank(account: Account) -> tuple[float, ...]:
        return (
            in_use.get(account.id, 0),
            load(account, usable, now),
            account.last_used_at or 0.0,
            account.status != Status.HEALTHY,
            account.id,
        )

    return min((each for each in usable if each.id not in not_these), key=rank, default=None)


def load(account: Account, others: Iterable[Account], now: float) -> float:
    """What its uses count for now; of one that is new or was away, no less than those of the
    others.
    """
    own = _load(account, now)
    if account.status == Status.HEALTHY:
        return own
    return max(own, least_load(others, now))


def least_load(accounts: Iterable[Account], now: float) -> float:
    """Of those that are at work."""
    healthy = [_load(each, now) for each in accounts if each.status == Status.HEALTHY]
    return min(healthy, default=0.0)


def _load(account: Account, now: float) -> float:
    return float(account.load * 0.5 ** (max(now - account.load_at, 0.0) / HALF_LIFE_S))


def taken(account: Account, accounts: Iterable[Account], now: float) -> Account:
    """It is used from now on."""
    usable = [each for each in serving(accounts, account.site) if is_usable(each, now)]
    return account._replace(
        uses=account.uses + 1, load=load(account, usable, now) + 1.0, load_at=now, last_used_at=now
    )


def usable_at(accounts: Iterable[Account], site: str, now: float) -> float | None:
    """When one can be used: now, or when the first has rested. None: never by itself."""
    coming = [
        max(each.cooled_until, now)
        for each in serving(accounts, site)
        if each.enabled and each.status not in AWAY
    ]
    return min(coming, default=None)


# ---------------------------------------------------------------------- what follows


def after(account: Account, heard: Heard, now: float) -> Account:
    """The account, once this was heard of it."""
    match heard.word:
        case Word.OK:
            return account if account.status in AWAY else _well(account, now)
        case Word.REFUSED:
            return _refused(account, heard, now)
        case Word.PUSHBACK:
            return _pushed_back(account, heard, now)
        case Word.VALID:
            return _well(account._replace(checked_at=now), now)
        case Word.INVALID:
            reason = heard.reason or "the site says that it is not logged in"
            return account._replace(
                status=Status.EXPIRED.value, reason=f"{reason}; replace its cookies",
                checked_at=now,
            )  # fmt: skip
        case Word.TROUBLE | Word.UNKNOWN:
            return account


def _well(account: Account, now: float) -> Account:
    if account.cooled_until > now:  # it goes well, and it still has to rest
        return renewed(account, now)
    return account._replace(status=Status.HEALTHY.value, reason="", pushbacks=0, strikes="[]")


def _refused(account: Account, heard: Heard, now: float) -> Account:
    times = [min(at, now) for at in strikes_of(account)]
    times = [*[at for at in times if now - at <= STRIKES_WITHIN_S][-STRIKES:], now]
    account = account._replace(
        strikes=msgspec.json.encode(times).decode(), failures=account.failures + 1
    )
    if len(times) < STRIKES or account.status in AWAY:
        return account
    return account._replace(
        status=Status.DISABLED.value,
        reason=f"refused {STRIKES} times within {STRIKES_WITHIN_S / 60:g} minutes "
        f"({heard.status or 'no status'}); check its cookies, then enable it",
    )


def strikes_of(account: Account) -> list[float]:
    return msgspec.json.decode(account.strikes, type=list[float])


def _pushed_back(account: Account, heard: Heard, now: float) -> Account:
    row = account.pushbacks
    if account.cooled_until <= now:  # else it is the same event, heard once more
        row += 1
    hold_s = min(HOLD_S * 2.0 ** min(max(row - 1, 0), 20), LONGEST_HOLD_S)
    told_s = min(heard.retry_after_s or 0.0, MAX_RETRY_AFTER_S)
    until = max(account.cooled_until, now + max(hold_s, told_s))
    account = account._replace(
        pushbacks=row, cooled_until=until, failures=account.failures + 1
    )  # fmt: skip
    if account.status in AWAY:
        return account
    return account._replace(
        status=Status.COOLING.value, reason=f"{RESTS} {heard.status or ''}".strip()
    )


def renewed(account: Account, now: float) -> Account:
    """Its operator vouches for it: nobody has said anything against it yet. What a site has to say
    about the pace holds nevertheless.
    """
    if account.cooled_until <= now:
        return account._replace(status=Status.UNCHECKED.value, reason="", strikes="[]")
    reason = account.reason if account.status == Status.COOLING else RESTS
    return account._replace(status=Status.COOLING.value, reason=reason, strikes="[]")
