"""The gate `tool:account:SITE`: closed while no account of a site can be used, so that what needs
one waits there and is told why. All of this happens in the brain's turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from headway.apps.media.accounts.cookies import covers
from headway.apps.media.accounts.pool import AWAY, Account, serving, usable_at
from headway.core.kinds import TOOL

if TYPE_CHECKING:
    from headway.apps.media.accounts.register import Accounts

INF = float("inf")
PREFIX = "account:"  # of the name of a tool, followed by the site

# By these words a closure is known as ours, also after a restart: what an operator has closed
# stays so.
_OURS = re.compile(r"no usable account for |(?:all \d+ accounts|the only account) of \S+ cools? d")


def tool_of(site: str) -> str:
    """What a job names among its tools if it needs an account of this site."""
    return f"{PREFIX}{site}"


class AccountGates:
    def __init__(self, accounts: Accounts, needed: Callable[[str], bool] | None) -> None:
        self._accounts = accounts
        self.needed = needed or self._has_any
        self._sites: set[str] = set()  # others that were asked for

    def sync_gate(self, site: str, now: float, needed: bool | None = None) -> None:
        """Close or open the gate of a site, as its accounts are. `needed`: whether anything there
        needs one.
        """
        self._sites.add(site)
        accounts = self._accounts.accounts.values()
        wanted = self.needed(site) if needed is None else needed
        at = usable_at(accounts, site, now)
        gates = self._accounts.brain.core.gates
        door = gates.get(TOOL, tool_of(site)).door
        is_ours = _OURS.match(door.closed_why) is not None
        if not wanted or at == now:
            if is_ours:
                gates.open(TOOL, tool_of(site), now)
            return
        until, why = INF if at is None else at, why_not(serving(accounts, site), site)
        if is_ours:
            if (door.closed_until, door.closed_why) == (until, why):
                return
            gates.open(TOOL, tool_of(site), now)  # a shorter closure never ends a longer one
        gates.close(TOOL, tool_of(site), now, until=until, why=why)

    def sync_around(self, site: str, now: float) -> None:
        """An account of this site has changed; it serves all hosts below it, too."""
        for each in sorted({site, *(name for name in self._sites if covers(site, name))}):
            self.sync_gate(each, now)

    def sync_all(self, now: float) -> None:
        """All that was open is here again. Closures that end with a time are remembered by the
        engine; whether they are right is known here.
        """
        names = {each.site for each in self._accounts.accounts.values()} | self._sites
        atlas = self._accounts.brain.core.admission.atlas
        for kind, name in list(atlas.gates):
            if kind == TOOL and name.startswith(PREFIX):
                names.add(name.removeprefix(PREFIX))
        for site in sorted(names):
            self.sync_gate(site, now)

    def _has_any(self, site: str) -> bool:
        return bool(serving(self._accounts.accounts.values(), site))


def why_not(accounts: list[Account], site: str) -> str:
    """Why none of these can be used, in words for people."""
    resting = [each for each in accounts if each.enabled and each.status not in AWAY]
    if not resting:
        return f"no usable account for {site}: add a cookie, or enable one"
    said = sorted({each.reason.rpartition(" ")[2] for each in resting} & {"412", "429"})
    after = f" after {' and '.join(said)}" if said else ""
    if len(resting) == 1:
        return f"the only account of {site} cools down{after}"
    return f"all {len(resting)} accounts of {site} cool down{after}"
