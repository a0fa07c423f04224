"""The order as a property: whatever happens, it is what a brute-force reading of the rules says."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headway.core import Core, GatePolicy, Outcome, Permit, State, Ticket
from headway.core.order import PINNED, Account, FairQueue, Shares
from headway.core.policy import OPEN
from tests.core.kit import X, core_with, end

TENANTS = "abcd"
WEIGHT = {"a": 1.0, "b": 2.0, "c": 4.0, "d": 1.0}
CLOSE = 1e-6
# No zero here: two tickets that join at different moments then differ by rank, not by luck.
GAPS = st.sampled_from([0.25, 1.0, 3.0, 7.5])


@dataclass
class Reference:
    """Start-time fair queueing by slot-seconds, computed the slow way. Where newcomers start is
    told by the core; it is checked that this never falls, nor lies below the last grant.
    """

    cap: int
    tenant_cap: int
    start: float = 0.0
    used: dict[str, float] = field(default_factory=dict)
    held: dict[str, list[float]] = field(default_factory=lambda: {t: [] for t in TENANTS})
    waiting: dict[str, list[Ticket]] = field(default_factory=lambda: {t: [] for t in TENANTS})

    def tag(self, tenant: str, now: float) -> float:
        running_s = sum(now - since for since in self.held[tenant])
        return self.used[tenant] + running_s / WEIGHT[tenant]

    def starts_at(self, start: float) -> None:
        assert start >= self.start - CLOSE, "newcomers would overtake who came before them"
        self.start = max(start, self.start)

    def submit(self, ticket: Ticket) -> None:
        tenant = ticket.tenant
        if not self.waiting[tenant] and not self.held[tenant]:  # new, or back from idling
            self.used[tenant] = max(self.used.get(tenant, self.start), self.start)
        self.waiting[tenant].append(ticket)

    def withdraw(self, ticket: Ticket) -> None:
        self.waiting[ticket.tenant].remove(ticket)

    def eligible(self) -> list[str]:
        return [t for t in TENANTS if self.waiting[t] and len(self.held[t]) < self.tenant_cap]

    def full(self) -> bool:
        return sum(map(len, self.held.values())) >= self.cap

    def grant(self, ticket: Ticket, now: float) -> None:
        tenant = ticket.tenant
        assert not self.full(), "the pool is exceeded"
        eligible = self.eligible()
        assert tenant in eligible, f"{ticket} may not go"
        tag = self.tag(tenant, now)
        best = min(self.tag(other, now) for other in eligible)
        assert tag <= best + CLOSE, f"{ticket} went at {tag}, but {best} was waiting"
        first = min(self.waiting[tenant], key=lambda t: (t.rank, t.seq))
        assert ticket is first, f"{ticket} overtook {first}"
        self.start = max(self.start, tag)
        self.waiting[tenant].remove(ticket)
        self.held[tenant].append(now)

    def release(self, tenant: str, since: float, now: float) -> None:
        self.held[tenant].remove(since)
        self.used[tenant] += (now - since) / WEIGHT[tenant]


STEPS = st.lists(
    st.tuples(
        GAPS,
        st.sampled_from(["submit", "submit", "submit", "finish", "finish", "cancel", "burst"]),
        st.sampled_from(TENANTS),
        st.integers(0, 99),
    ),
    min_size=40,  # short histories have no room for anybody to come back
    max_size=60,
)


@given(cap=st.integers(1, 3), tenant_cap=st.sampled_from([1, 2, 99]), steps=STEPS)
def test_whoever_goes_has_the_smallest_tag_of_all_who_may(
    cap: int, tenant_cap: int, steps: list[tuple[float, str, str, int]]
) -> None:
    policy = GatePolicy(cap=cap, tenant=GatePolicy(cap=tenant_cap))
    core = core_with(upstream={"x.com": policy}, lease_s=1e9, age_s=10.0)
    shares = core.admission.atlas.shared("upstream", "x.com").shares
    reference = Reference(cap, tenant_cap)
    running: list[Permit] = []
    now = 0.0
    for number, (gap_s, what, tenant, pick) in enumerate(steps):
        now += gap_s
        reference.starts_at(shares.start)
        if what in ("submit", "burst"):
            for n in range(1 if what == "submit" else 5):
                ticket = _ticket((number, n), tenant, pick)
                core.submit(ticket, now)
                reference.submit(ticket)
        elif what == "finish" and running:
            permit = running.pop(pick % len(running))
            end(core, permit.ticket, now)
            reference.release(permit.ticket.tenant, permit.granted_at, now)
        elif what == "cancel" and reference.waiting[tenant]:
            victim = reference.waiting[tenant][pick % len(reference.waiting[tenant])]
            core.cancel(victim.id, now)
            reference.withdraw(victim)
        for permit in core.admit(now):
            reference.grant(permit.ticket, now)
            running.append(permit)
        assert reference.full() or not reference.eligible(), "somebody waits for nothing"


def _ticket(id: tuple[int, int], tenant: str, pick: int) -> Ticket:
    return Ticket(id, upstreams=X, tenant=tenant, weight=WEIGHT[tenant], priority=1 + pick % 10)


# --- the queue alone


class Item:
    def __init__(self, tenant: str, rank: float, seq: int) -> None:
        self.tenant, self.rank, self.seq = tenant, rank, seq
        self.entry: Any = None


class Bench:
    """A FairQueue beside a plain list of what is in it."""

    def __init__(self) -> None:
        self.shares = Shares("x.com", keeps_idle=True)
        self.queue = FairQueue(self.shares, None)
        self.items: list[Item] = []
        self.floor: dict[str, float] = {}  # of tenants without an account: v when they came
        self.now = 0.0
        self.seq = 0

    def account(self, tenant: str) -> Account:
        account = self.shares.accounts.get(tenant)
        if account is None:
            account = Account(self.shares, tenant, OPEN, ())
            account.used = self.floor.get(tenant, self.shares.start)
            account.weight = WEIGHT[tenant]
            self.shares.open(account, self.now)
        return account

    def put(self, tenant: str, rank: float) -> None:
        if not any(item.tenant == tenant for item in self.items):
            self.floor[tenant] = self.shares.start
        self.seq += 1
        item = Item(tenant, rank, self.seq)
        self.items.append(item)
        self.queue.put(self.queue.group(tenant), item, rank, item.seq, self.now)

    def move(self, item: Item, rank: float) -> None:
        item.rank = rank
        self.queue.put(self.queue.group(item.tenant), item, rank, item.seq, self.now)

    def drop(self, item: Item) -> None:
        self.items.remove(item)
        self.queue.drop(self.queue.group(item.tenant), item)

    def hold(self, tenant: str) -> None:
        account = self.account(tenant)
        account.count(self.now)
        self.shares.start = max(self.shares.start, account.used)
        self.seq += 1
        account.leases[self.seq] = None  # type: ignore[assignment]

    def release(self, tenant: str) -> None:
        account = self.account(tenant)
        if account.leases:
            account.count(self.now)
            account.leases.popitem()

    def key(self, item: Item) -> tuple[float, float, int]:
        if item.rank <= PINNED:
            return (-float("inf"), item.rank, item.seq)
        account = self.shares.accounts.get(item.tenant)
        tag = self.floor[item.tenant] if account is None else account.tag(self.now)
        return (tag, item.rank, item.seq)

    def check(self) -> None:
        """The first is the best of the tenant with the smallest tag; pins go before all."""
        first = self.queue.first(self.now)
        if not self.items:
            assert first is None
            return
        tenants = {item.tenant for item in self.items}
        heads = [
            min((i for i in self.items if i.tenant == t), key=lambda i: (i.rank, i.seq))
            for t in tenants
        ]
        expected = min(map(self.key, heads))
        assert first[:3] == expected
        head = first[3].head()[2]
        assert self.key(head) == expected


RANKS = st.sampled_from([1.0, 2.0, 2.0, 5.0, PINNED - 1, PINNED - 2])
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "move", "drop", "drop", "hold", "release", "wait"]),
        st.sampled_from(TENANTS),
        RANKS,
        st.integers(0, 99),
    ),
    min_size=40,
    max_size=80,
)


@given(actions=ACTIONS)
def test_the_first_of_a_fair_queue_is_what_a_look_at_everything_finds(
    actions: list[tuple[str, str, float, int]],
) -> None:
    bench = Bench()
    for what, tenant, rank, pick in actions:
        if what == "put":
            bench.put(tenant, rank)
        elif what == "wait":
            bench.now += pick / 10
        elif what in ("hold", "release"):
            getattr(bench, what)(tenant)
        elif bench.items:
            item = bench.items[pick % len(bench.items)]
            bench.drop(item) if what == "drop" else bench.move(item, rank)
        bench.check()


@given(
    used=st.dictionaries(st.sampled_from(TENANTS), st.floats(0, 100), min_size=1),
    start=st.floats(0, 100),
    holding=st.sets(st.sampled_from(TENANTS)),
    waiting=st.sets(st.sampled_from(TENANTS)),
)
def test_a_sweep_keeps_those_who_hold_or_wait_and_what_the_others_owe(
    used: dict[str, float], start: float, holding: set[str], waiting: set[str]
) -> None:
    bench = Bench()
    for tenant, amount in used.items():
        bench.account(tenant).used = amount
        if tenant in holding:
            bench.account(tenant).leases[1] = None  # type: ignore[assignment]
    for tenant in waiting:
        bench.put(tenant, 5.0)
    bench.shares.start = start
    busy = bool(waiting or holding & used.keys())
    line = start if busy else max(start, *used.values())
    bench.shares.sweep(0.0)
    kept = {t for t in used if t in holding or t in waiting}
    assert set(bench.shares.accounts) == kept
    owed = {t: amount for t, amount in used.items() if t not in kept and amount > line}
    assert {t: debt for t, (debt, _) in bench.shares.debts.items()} == owed
    assert bench.shares.start == line


@given(
    weights=st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=2, max_size=4),
    holds=st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=4, max_size=4),
)
def test_shares_of_those_who_always_want_more_differ_by_one_hold_at_most(
    weights: list[float], holds: list[float]
) -> None:
    core = core_with(upstream={"x.com": GatePolicy(cap=1)}, lease_s=1e9)
    served = dict.fromkeys(range(len(weights)), 0.0)
    now, number = 0.0, 0
    for tenant, weight in enumerate(weights):
        for _ in range(2):
            number += 1
            core.submit(Ticket(number, upstreams=X, tenant=str(tenant), weight=weight), now)
    for _ in range(200):
        (permit,) = core.admit(now)
        tenant = int(permit.ticket.tenant)
        number += 1
        core.submit(Ticket(number, upstreams=X, tenant=str(tenant), weight=weights[tenant]), now)
        served[tenant] += holds[tenant] / weights[tenant]
        now += holds[tenant]
        end(core, permit.ticket, now)
        one_hold = max(holds[t] / weights[t] for t in served)
        assert max(served.values()) - min(served.values()) <= one_hold + CLOSE


# --- strict order of keys


@given(seed=st.integers(0, 10_000), ordered=st.sampled_from(["pass", "hold"]))
def test_ordered_keys_go_in_order_of_seq(seed: int, ordered: str) -> None:
    rng = Random(seed)
    core = core_with(upstream={"x.com": GatePolicy(cap=2)}, age_s=10.0)
    tickets: list[Ticket] = []
    now = 0.0
    for number in range(60):
        now += rng.choice((0.0, 1.0, 5.0))
        if rng.random() < 0.5:
            tickets.append(_ordered_ticket(rng, number, ordered, now))
            core.submit(tickets[-1], now)
        elif core.leases.permits:
            permit = rng.choice(list(core.leases.permits.values()))
            end(core, permit.ticket, now, rng.choice(ENDINGS))
        elif tickets:
            _meddle(core, rng, rng.choice(tickets), now)
        core.advance(now)
        before = {t: t.state for t in tickets}
        for permit in core.admit(now):
            ticket = permit.ticket
            earlier = [t for t in tickets if t.key == ticket.key and t.seq < ticket.seq]
            overtaken = [t for t in earlier if before[t] in MAY_NOT_BE_OVERTAKEN[ordered]]
            assert not overtaken, f"{ticket} overtook {overtaken}"


ENDINGS = [Outcome.ok(), Outcome.failed("no luck"), Outcome.returned(after_s=4.0)]
MAY_NOT_BE_OVERTAKEN = {
    "pass": {State.QUEUED, State.RUNNING},
    "hold": {State.QUEUED, State.RUNNING, State.PENDING, State.PAUSED},
}


def _ordered_ticket(rng: Random, number: int, ordered: Any, now: float) -> Ticket:
    return Ticket(
        number,
        upstreams=X,
        tenant=rng.choice(TENANTS),
        lane=rng.choice(("one", "two")),
        priority=rng.randint(1, 10),
        not_before=now + rng.choice((0.0, 0.0, 3.0)),
        key=rng.choice(("k1", "k2")),
        ordered=ordered,
    )


def _meddle(core: Core, rng: Random, ticket: Ticket, now: float) -> None:
    if ticket.state is State.PAUSED:
        core.resume(ticket.id, now)
    elif ticket.state in (State.PENDING, State.QUEUED):
        rng.choice((core.pause, core.cancel, core.pin))(ticket.id, now)
