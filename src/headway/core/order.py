"""Who is next: fair share between tenants by slot-seconds, then rank within a tenant.

Start-time fair queueing, charged while a place is held. A tenant's tag is the slot-seconds it has
used divided by its weight; places it holds now keep counting. The smallest tag goes first. A tenant
that comes back from idling starts at the tag of the last grant: no credit, no penalty.

Every heap here is lazy: an item keeps its one live entry in `.entry`, all others are stale and are
skipped when they surface. An entry's key is never above the true key (tags only grow), so the head
is right after it has been compared with the truth once.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING, Any

from headway.core.gate import NOBODY, UNTOUCHED, Gate, Holds, Limit

if TYPE_CHECKING:
    from headway.core.policy import GatePolicy

INF = float("inf")

# Ranks below BOOSTED go before every tenant's fair turn: an operator's pins, and before them the
# few that starved until openings were kept for them (nobody else could use those anyway).
BOOSTED = -5e11
PINNED = -1e12
RESERVED = -2e12


MEMORY = 150  # grants
FEW = 256  # accounts and debts: not worth a sweep
LATELY_S = 90.0  # one place held all the time counts as so many slot-seconds of late
HALF_S = 60.0  # after which what was used counts half
MANY = 1_000  # tenants of whom it is known what they used of late


class Tempo:
    """How fast grants follow each other while somebody waits for them. For estimates only."""

    __slots__ = ("gap_s", "grants", "last_at", "waiting")

    def __init__(self) -> None:
        self.grants = 0  # that followed another one without a pause in demand
        self.gap_s = 0.0
        self.last_at = -INF
        self.waiting = False

    def beat(self, now: float, waiting: int) -> None:
        """A grant was made, and so many still wait."""
        if self.waiting:
            self.grants = grants = self.grants + 1
            # Long, because holding times have long tails: a few grants say little about the next.
            share = 1.0 / min(grants, MEMORY)
            self.gap_s += share * (now - self.last_at - self.gap_s)
        self.last_at = now
        self.waiting = waiting > 0


class Account(Gate):
    """A tenant at an upstream (or at a lane): its pool and pace there, and its use of it."""

    __slots__ = (
        "counted_at",
        "hold_s",
        "shares",
        "tempo",
        "used",
        "weight",
    )
    holds = Holds.GROUPS

    def __init__(
        self, shares: Shares, tenant: str, policy: GatePolicy, limits: tuple[Limit, ...]
    ) -> None:
        # Gate's own constructor, written out: accounts come and go with every grant.
        self.kind = "tenant"
        self.name = tenant
        self.policy = policy
        self.limits = limits
        self.leases = {}
        self.waiters = NOBODY
        self.reserved_for = None
        self.door = UNTOUCHED
        self.armed_at = INF
        self.cap = self.room = policy.places
        self.spare = policy.places - policy.reserve
        self.opens_at = -INF
        if limits:
            self.refresh()
        self.shares = shares
        self.used = shares.start  # slot-seconds / weight, up to counted_at
        self.counted_at = 0.0
        self.weight = 1.0
        self.tempo: Tempo | None = None
        self.hold_s = 0.0  # how long it holds a place, on average of late; 0: not known yet

    @property
    def label(self) -> str:
        return f"tenant:{self.name}@{self.shares.name}"

    def count(self, now: float) -> None:
        """Charge what was held until now. Call it before the set of leases changes."""
        if self.leases:
            self.used += len(self.leases) * (now - self.counted_at) / self.weight
        self.counted_at = now

    def tag(self, now: float) -> float:
        if self.leases:
            return self.used + len(self.leases) * (now - self.counted_at) / self.weight
        return self.used


class Shares:
    """The accounts of one upstream or lane. At an upstream, a tenant that neither holds nor waits
    has none; at a lane, where the same tenants come again and again, idle ones go with the next
    sweep. What a tenant has used beyond the start of newcomers is remembered as a debt.
    """

    __slots__ = (
        "accounts",
        "debts",
        "faded_at",
        "hold_s",
        "keeps_idle",
        "lately",
        "name",
        "queues",
        "start",
        "sweep_above",
        "tempo",
        "weight",
    )

    def __init__(self, name: str, *, keeps_idle: bool) -> None:
        self.name = name
        self.keeps_idle = keeps_idle
        self.accounts: dict[str, Account] = {}
        self.debts: dict[str, tuple[float, float]] = {}  # (used, how long it usually holds)
        self.start = 0.0  # the tag of the last tenant that was granted
        self.queues: list[FairQueue] = []
        self.sweep_above = FEW
        self.tempo = Tempo()
        self.hold_s = 0.0  # how long a place is held, on average of late
        self.weight = 1.0  # the weight of those who hold them, likewise
        # Slot-seconds that tenants used of late and have given back; for people, no order in it.
        self.lately: dict[str, float] = {}
        self.faded_at = -INF

    def waits(self, tenant: str) -> bool:
        for queue in self.queues:  # noqa: SIM110  (a generator costs more than the search)
            if tenant in queue.groups:
                return True
        return False

    def served(self, tenant: str, held_s: float, weight: float) -> None:
        """A place was held for so long. Newcomers start a little later for it: at a quarter of the
        pace at which the tags of all who are here rise, so that a stream of ever new tenants, each
        at its first turn, cannot keep out those who have had theirs.
        """
        self.hold_s += 0.05 * (held_s - self.hold_s)
        here = 1
        for queue in self.queues:
            here += len(queue.groups)
        self.weight += 0.05 * (weight - self.weight)
        self.start += 0.25 * held_s / (self.weight * here)
        lately = self.lately
        if tenant in lately:
            lately[tenant] += held_s if held_s < LATELY_S else LATELY_S
        elif len(lately) < MANY:
            lately[tenant] = held_s if held_s < LATELY_S else LATELY_S

    def open(self, account: Account, now: float) -> None:
        """Keep a new account, with what its tenant owes. Sweep first: it holds nothing yet."""
        if self.keeps_idle or account.limits:
            self._sweep_if_many(now)
        self.accounts[account.name] = account
        account.counted_at = now
        debt = self.debts.pop(account.name, None)
        if debt is not None:
            account.used, account.hold_s = max(account.used, debt[0]), debt[1]
        for queue in self.queues:
            group = queue.groups.get(account.name)
            if group is not None:
                group.account = account
                account.used = group.floor

    def retire(self, account: Account) -> None:
        """Close the account of a tenant that holds nothing any more, if it does not wait either and
        has no limits to remember.
        """
        if self.keeps_idle or account.limits or account.waiters:
            return
        if account.door is not UNTOUCHED or self.waits(account.name):
            return
        del self.accounts[account.name]
        if account.used > self.start:
            self.debts[account.name] = (account.used, account.hold_s)
            self._sweep_if_many(-INF)

    def _sweep_if_many(self, now: float) -> None:
        """A sweep whenever many have come since the last costs little."""
        if len(self.accounts) + len(self.debts) > self.sweep_above:
            self.sweep(now)
            self.sweep_above = 3 * (len(self.accounts) + len(self.debts)) + FEW

    def sweep(self, now: float) -> None:
        """Close the accounts of tenants that neither hold nor wait; remember what they owe."""
        self._fade(now)
        accounts = self.accounts
        waiting = any(queue.groups for queue in self.queues)
        if not waiting and not any(account.leases for account in accounts.values()):
            # The busy period is over: everybody starts the next one as equals.
            self.start = max([self.start, *(account.used for account in accounts.values())])
            self.debts.clear()
        for tenant, account in list(accounts.items()):
            if not account.leases and account.idle(now) and not self.waits(tenant):
                del accounts[tenant]
                self.debts[tenant] = (account.used, account.hold_s)
        self.debts = {t: debt for t, debt in self.debts.items() if debt[0] > self.start}

    def _fade(self, now: float) -> None:
        """What was used long ago counts little, and who used next to nothing is forgotten."""
        since_s = now - self.faded_at
        if since_s >= HALF_S:
            least = sum(self.lately.values()) / MANY
            part = 1.0 if since_s == INF else 0.5 ** (since_s / HALF_S)
            self.lately = {t: part * used for t, used in self.lately.items() if used > least}
            self.faded_at = now


class Peer:
    """Lets equal keys tie in a heap; which of two equals is first does not matter."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False


class Group(Peer):
    """The items of one tenant in one queue, by rank."""

    __slots__ = (
        "account",
        "entry",
        "floor",
        "heap",
        "queue",
        "size",
        "stands_at",
        "tenant",
        "waiting",
    )

    def __init__(
        self, queue: FairQueue, tenant: str, floor: float, account: Account | None
    ) -> None:
        self.queue = queue
        self.tenant = tenant
        self.account = account
        self.floor = floor  # its tag as long as it has no account
        self.heap: list[Any] = []
        self.size = 0  # live entries in the heap
        self.waiting = 0  # tickets, those behind others of the same key included
        self.entry: Any = None
        self.stands_at: Gate | None = None

    def head(self) -> Any:
        """The live entry with the smallest rank. Only for groups that are not empty."""
        heap = self.heap
        entry = heap[0]
        while entry[2].entry is not entry:
            heappop(heap)
            entry = heap[0]
        return entry

    def tidy(self) -> None:
        """Throw the stale entries away."""
        self.heap = [entry for entry in self.heap if entry[2].entry is entry]
        heapify(self.heap)


class FairQueue:
    """Items of many tenants. `first` is the best item of the tenant with the smallest tag."""

    __slots__ = ("groups", "heap", "owner", "shares")

    def __init__(self, shares: Shares, owner: Any) -> None:
        self.shares = shares
        self.owner = owner  # the Line or Track that this is the inside of
        self.groups: dict[str, Group] = {}
        self.heap: list[Any] = []
        shares.queues.append(self)

    def group(self, tenant: str) -> Group:
        group = self.groups.get(tenant)
        if group is None:
            shares = self.shares
            start = shares.start
            account = shares.accounts.get(tenant)
            if account is None:
                debt = shares.debts.get(tenant)
                if debt is not None and debt[0] > start:
                    start = debt[0]
            elif account.used < start and not account.leases and not shares.waits(tenant):
                account.used = start  # back from idling
            self.groups[tenant] = group = Group(self, tenant, start, account)
        return group

    def put(self, group: Group, item: Any, rank: float, seq: int, now: float) -> bool:
        """Add an item, or move it. True if it is now the first of its group."""
        if item.entry is None:
            group.size += 1
        item.entry = entry = (rank, seq, item)
        heap = group.heap
        heappush(heap, entry)
        if heap[0] is not entry and group.head() is not entry:
            return False
        if group.stands_at is None:
            self.enter(group, rank, seq, now)
        return True

    def enter(self, group: Group, rank: float, seq: int, now: float) -> None:
        """Let a group compete under its present head."""
        tag = -INF if rank < BOOSTED else self.tag(group, now)
        group.entry = entry = (tag, rank, seq, group)
        heap = self.heap
        if heap and heap[0][3].entry is not heap[0]:
            heapreplace(heap, entry)  # takes a stale head away in the same go
        else:
            heappush(heap, entry)
        if len(heap) > 2 * len(self.groups) + 16:
            self.heap = [e for e in heap if e[3].entry is e]
            heapify(self.heap)

    def tag(self, group: Group, now: float) -> float:
        account = group.account
        return group.floor if account is None else account.tag(now)

    def drop(self, group: Group, item: Any) -> None:
        """Take an item out."""
        if item.entry is None:
            return
        item.entry = None
        group.size -= 1
        if not group.size:
            group.entry = None
            group.heap.clear()
            if not group.waiting:
                del self.groups[group.tenant]
        elif len(group.heap) > 2 * group.size + 16:
            group.tidy()

    def stand_aside(self, group: Group, gate: Gate) -> None:
        """The tenant may not go here for now; its items stay in order."""
        group.entry = None
        group.stands_at = gate
        gate.hold_up(group)

    def first(self, now: float) -> Any:
        """The live entry (tag, rank, seq, group) of the group whose turn it is, or None."""
        heap = self.heap
        while heap:
            entry = heap[0]
            group = entry[3]
            if group.entry is not entry:
                heappop(heap)
                continue
            head = group.heap[0]
            if head[2].entry is not head:
                head = group.head()
            rank = head[0]
            if rank < BOOSTED:
                tag = -INF
            else:
                account = group.account
                if account is None:
                    tag = group.floor
                else:
                    tag = account.used
                    if account.leases:
                        tag += len(account.leases) * (now - account.counted_at) / account.weight
            if tag != entry[0] or rank != entry[1] or head[1] != entry[2]:
                group.entry = entry = (tag, rank, head[1], group)
                heapreplace(heap, entry)
                continue
            return entry
        return None
