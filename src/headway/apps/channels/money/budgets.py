"""Budgets: what a tenant may spend in a day, in a month, or in total.

The ledger is the one truth. What a tenant has spent in the running period is counted along in
memory, in the turn that writes each bill, and counted anew from the ledger when an engine starts.
In that same turn a tenant whose budget is used up is held at the gate of every channel, with the
reason that its waiting jobs are shown with; its online calls hear it at once. What was under way
then may end, and is the most by which a budget can be passed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from headway.api.views import moment
from headway.apps.channels.directory import Directory
from headway.apps.channels.money.billing import Bill
from headway.apps.channels.money.costs import money
from headway.apps.channels.tables import ADD_BILL, DROP_BUDGET, PUT_BUDGET
from headway.core.kinds import UPSTREAM
from headway.core.lines import SharedGate
from headway.core.order import Account
from headway.engine.brain import Brain
from headway.engine.tickets import FAR
from headway.store import Store

BEGINS = "the budget of "  # every reason, so that what was closed here can be told from the rest
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
SELECT = "select tenant, period, currency, amount_nano, updated_at from llm_budgets"
SPENT = (
    "select cast(coalesce(sum(cost_nano), 0) as bigint) from llm_bills "
    "where tenant = ? and currency = ? and at >= ?"
)


class Period(StrEnum):
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


class Budget(NamedTuple):
    """The columns of `llm_budgets`."""

    tenant: str
    period: str
    currency: str
    amount_nano: int
    updated_at: float

    @property
    def key(self) -> tuple[str, str, str]:
        return self.tenant, self.period, self.currency


class Tally(NamedTuple):
    """What was spent since the period began."""

    begins_at: float
    nano: int


class Held(NamedTuple):
    until: float
    why: str


def span_of(period: str, now: float) -> tuple[float, float]:
    """When the running period began, and when the next one does; in UTC."""
    if period == Period.TOTAL:
        return 0.0, FAR
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == Period.DAY:
        return today.timestamp(), (today + timedelta(days=1)).timestamp()
    first = today.replace(day=1)
    return first.timestamp(), (first + timedelta(days=32)).replace(day=1).timestamp()


def in_words(budget: Budget, now: float) -> str:
    """`50.00 USD for November 2026`."""
    amount = f"{money(budget.amount_nano)} {budget.currency}"
    if budget.period == Period.TOTAL:
        return f"{amount} in total"
    day = datetime.fromtimestamp(now, UTC)
    month = f"{MONTHS[day.month - 1]} {day.year}"
    return (
        f"{amount} for {day.day} {month}"
        if budget.period == Period.DAY
        else f"{amount} for {month}"
    )


class Budgets:
    """Changed in the brain's turn; `why_not` may be asked from any thread."""

    def __init__(self, store: Store, directory: Directory) -> None:
        self._store = store
        self._directory = directory
        self.brain: Brain  # from the moment that an engine is about to start
        self._budgets: dict[str, tuple[Budget, ...]] = {}  # by tenant
        self._spent: dict[tuple[str, str, str], Tally] = {}
        self._told: dict[str, str] = {}  # for which reason each tenant is held

    # ------------------------------------------------------------------ looking

    def why_not(self, tenant: str) -> str | None:
        """Why a tenant may spend nothing now. None: it may."""
        if tenant not in self._budgets:
            return None
        held = self._held(tenant, self.brain.clock.now())
        return None if held is None else held.why

    def tenants(self) -> list[str]:
        return sorted(self._budgets)

    def spent(self, tenant: str, now: float) -> list[tuple[Budget, int]]:
        """Each budget of a tenant, and what is spent of it, in billionths."""
        return [(each, self._spent_now(each, now)) for each in self._budgets.get(tenant, ())]

    def view(self, tenant: str, now: float) -> list[dict[str, Any]]:
        """Each budget of a tenant with what is spent."""
        return [self._view(budget, now) for budget in self._budgets.get(tenant, ())]

    def _view(self, budget: Budget, now: float) -> dict[str, Any]:
        spent = self._spent_now(budget, now)
        begins_at, ends_at = span_of(budget.period, now)
        return {
            "tenant": budget.tenant,
            "period": budget.period,
            "currency": budget.currency,
            "amount": money(budget.amount_nano),
            "spent": money(spent),
            "left": money(max(0, budget.amount_nano - spent)),
            "used_up": spent >= budget.amount_nano,
            "begins_at": moment(begins_at),
            "begins_anew_at": moment(ends_at),
            "updated_at": moment(budget.updated_at),
        }

    # ------------------------------------------------------------------ changing, in a turn

    def begin(self, now: float) -> None:
        """An engine has started: count everything anew."""
        self._budgets.clear()
        self._spent.clear()
        for row in self.brain.insist(lambda: self._store.rows(SELECT)):
            self._take(Budget(*row), now)
        held = {tenant: self._held(tenant, now) for tenant in self._budgets}
        # The trail has it since then.
        self._told = {tenant: each.why for tenant, each in held.items() if each is not None}
        self.look_again(now)

    def put(self, budget: Budget, now: float) -> None:
        brain = self.brain
        self._take(budget, now)
        brain.write(PUT_BUDGET, tuple(budget))
        self._hold(budget.tenant, now)
        said = f"{money(budget.amount_nano)} {budget.currency}, {budget.period}"
        brain.record(now, "budget_set", subject=subject_of(budget.tenant), detail=said)

    def remove(
        self, tenant: str, period: str | None, currency: str | None, now: float
    ) -> list[Budget]:
        """Those of this period and currency, or all. What there was."""
        brain = self.brain
        gone = [
            each for each in self._budgets.get(tenant, ())
            if period in (None, each.period) and currency in (None, each.currency)
        ]  # fmt: skip
        left = tuple(each for each in self._budgets.get(tenant, ()) if each not in gone)
        self._budgets[tenant] = left
        if not left:
            del self._budgets[tenant]
        for budget in gone:
            self._spent.pop(budget.key, None)
            brain.write(DROP_BUDGET, budget.key)
            said = f"{money(budget.amount_nano)} {budget.currency}, {budget.period}"
            brain.record(now, "budget_removed", subject=subject_of(tenant), detail=said)
        if gone:
            self._hold(tenant, now)
        return gone

    def hear(self, bill: Bill, now: float) -> None:
        """A bill was written in this turn."""
        counts = False
        for budget in self._budgets.get(bill.tenant, ()):
            if budget.currency == bill.currency:
                spent = self._spent_now(budget, now) + bill.cost_nano
                self._spent[budget.key] = Tally(span_of(budget.period, now)[0], spent)
                counts = True
        if counts:
            held = self._held(bill.tenant, now)
            news = (None if held is None else held.why) != self._told.get(bill.tenant)
            # Somebody may have opened a gate by hand; whoever is to spend more raises the budget.
            if news or (held is not None and not self._is_held(bill.tenant, held.until)):
                self._hold(bill.tenant, now)

    def look_again(self, now: float) -> None:
        """There are other channels than before, or another engine."""
        for account in self._accounts():
            if account.name not in self._budgets and _is_ours(account):
                self._open(account, now)
        for tenant in list(self._budgets):
            self._hold(tenant, now)

    # ------------------------------------------------------------------ inside

    def _take(self, budget: Budget, now: float) -> None:
        others = (each for each in self._budgets.get(budget.tenant, ()) if each.key != budget.key)
        mine = sorted((*others, budget), key=lambda each: each.key)
        self._budgets[budget.tenant] = tuple(mine)
        if budget.key not in self._spent:
            begins_at = span_of(budget.period, now)[0]
            self._spent[budget.key] = Tally(begins_at, self._counted(budget, begins_at))

    def _counted(self, budget: Budget, begins_at: float) -> int:
        """From the ledger, with what this very turn is about to write there."""
        brain = self.brain
        values = (budget.tenant, budget.currency, begins_at)
        stored = int(brain.insist(lambda: self._store.rows(SPENT, values))[0][0])
        for write, rows in brain.batch.writes:
            if write is ADD_BILL:
                for bill in (Bill(*row) for row in rows):
                    if (bill.tenant, bill.currency) == values[:2] and bill.at >= begins_at:
                        stored += bill.cost_nano
        return stored

    def _spent_now(self, budget: Budget, now: float) -> int:
        tally = self._spent.get(budget.key)
        begins_at = span_of(budget.period, now)[0]
        return tally.nano if tally is not None and tally.begins_at == begins_at else 0

    def _held(self, tenant: str, now: float) -> Held | None:
        """By the budget that lasts the longest of those that are used up."""
        found: Held | None = None
        for budget in self._budgets.get(tenant, ()):
            until = span_of(budget.period, now)[1]
            used_up = self._spent_now(budget, now) >= budget.amount_nano
            if used_up and (found is None or until > found.until):
                found = Held(until, f"{BEGINS}{in_words(budget, now)} is used up")
        return found

    def _hold(self, tenant: str, now: float) -> None:
        """Let the gates be as the budgets say."""
        brain = self.brain
        held = self._held(tenant, now)
        for account in self._accounts(tenant):
            if _is_ours(account) and (held is None or account.door.closed_why != held.why):
                self._open(account, now)
        if held is None:
            self._told.pop(tenant, None)
            return
        for code in self._directory.entries:
            brain.core.gates.close(
                UPSTREAM, code, now, until=held.until, why=held.why, tenant=tenant
            )
        if self._told.get(tenant) != held.why:
            self._told[tenant] = held.why
            brain.record(now, "budget_used_up", subject=subject_of(tenant), detail=held.why)

    def _is_held(self, tenant: str, until: float) -> bool:
        gates = self.brain.core.gates
        return all(
            gates.get(UPSTREAM, code, tenant=tenant).door.closed_until >= until
            for code in self._directory.entries
        )

    def _open(self, account: Account, now: float) -> None:
        self.brain.core.gates.open(UPSTREAM, account.shares.name, now, tenant=account.name)

    def _accounts(self, tenant: str | None = None) -> list[Account]:
        """Of a tenant, or of all, at whatever upstream: a channel may have gone meanwhile."""
        found: list[Account] = []
        for (kind, _), gate in self.brain.core.admission.atlas.gates.items():
            if kind == UPSTREAM and isinstance(gate, SharedGate):
                accounts = gate.shares.accounts
                if tenant is None:
                    found += accounts.values()
                elif tenant in accounts:
                    found.append(accounts[tenant])
        return found


def _is_ours(account: Account) -> bool:
    return account.door.closed_why.startswith(BEGINS)


def subject_of(tenant: str) -> str:
    return f"budget:{tenant or '-'}"
