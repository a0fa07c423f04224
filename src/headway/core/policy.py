"""What an operator declares about gates, and which declaration holds for which name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from headway.core.gate import Limit
from headway.core.learning import Learning, LearnRule
from headway.core.limits import (
    Breaker,
    BreakerRule,
    Cooldown,
    MinHold,
    Pace,
    PaceRule,
    QuietHours,
    QuietRule,
)


@dataclass(frozen=True, slots=True)
class PushbackRule:
    """How long a gate closes after a pushback that names no time, and after a ban."""

    hold_s: float = 2.0
    growth: float = 2.0
    max_hold_s: float = 300.0
    ban_s: float = 600.0

    def hold_for(self, streak: int) -> float:
        return float(min(self.hold_s * self.growth ** min(streak - 1, 60), self.max_hold_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePolicy:
    """Everything that can be declared about one gate. The default limits nothing."""

    cap: int | None = None
    reserve: int = 0  # places that leftover work may not use
    pace: PaceRule | None = None
    cooldown_s: float = 0.0
    min_hold_s: float = 0.0
    quiet: QuietRule | None = None
    breaker: BreakerRule | None = None
    learn: LearnRule | None = None  # find out what the upstream bears
    pushback: PushbackRule = field(default_factory=PushbackRule)
    max_waiters: int | None = None
    tenant: GatePolicy | None = None  # what each tenant may use here
    only: str = ""  # of a tenant's policy: it is for those whose name starts so
    more: tuple[Callable[[Random], Limit], ...] = ()  # any other limits
    places: float = field(init=False, compare=False, repr=False)  # the cap as a number
    plain: bool = field(init=False, compare=False, repr=False)  # a pool at most: no limits to build
    limits_waiters: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.cap is not None and self.cap < 0:
            raise ValueError(f"cap must be 0 or more, not {self.cap!r}")
        if self.reserve < 0 or (self.cap and self.reserve >= self.cap):
            raise ValueError(
                f"reserve must be at least 0 and below the cap, not {self.reserve!r}: "
                "otherwise leftover work could never run"
            )
        if self.cooldown_s < 0 or self.min_hold_s < 0:
            raise ValueError("cooldown_s and min_hold_s must be 0 or more seconds")
        if self.max_waiters is not None and self.max_waiters < 0:
            raise ValueError("max_waiters must be 0 or more; None switches the limit off")
        if self.tenant is not None:
            self.tenant.check_small("a tenant at an upstream")
        object.__setattr__(self, "places", float("inf") if self.cap is None else self.cap)
        limited = self.pace or self.cooldown_s or self.min_hold_s or self.quiet or self.breaker
        object.__setattr__(self, "plain", not (limited or self.learn or self.more))
        waiters = self.max_waiters, None if self.tenant is None else self.tenant.max_waiters
        object.__setattr__(self, "limits_waiters", waiters != (None, None))

    def for_tenant(self, tenant: str) -> GatePolicy:
        """What this one may use here."""
        policy = self.tenant
        return policy if policy is not None and tenant.startswith(policy.only) else OPEN

    def check_small(self, what: str) -> None:
        """Gates that come and go with their tickets cannot be closed before anybody was there."""
        if self.quiet is not None:
            raise ValueError(f"{what} cannot have quiet hours; declare them for the upstream")
        if self.cap == 0:
            raise ValueError(f"{what} cannot have a cap of 0; pause it instead")
        if self.learn is not None:
            raise ValueError(f"{what} cannot learn; declare that for the upstream")

    def build_limits(self, rng: Random) -> tuple[Limit, ...]:
        if self.plain:
            return ()
        limits: list[Limit] = []
        if self.pace is not None:
            limits.append(Pace(self.pace, rng))
        if self.cooldown_s:
            limits.append(Cooldown(self.cooldown_s))
        if self.min_hold_s:
            limits.append(MinHold(self.min_hold_s, self.min_hold_s / (self.cap or 1)))
        if self.quiet is not None:
            limits.append(QuietHours(self.quiet))
        if self.breaker is not None:
            limits.append(Breaker(self.breaker))
        if self.learn is not None:
            limits.append(Learning(self.learn))
        limits.extend(make(rng) for make in self.more)
        return tuple(limits)


OPEN = GatePolicy()


class Policies:
    """Declarations by kind and name. `*.example.com` holds for every name that ends so; an exact
    name beats a pattern, a longer pattern a shorter one, and `*` is the default of its kind.
    """

    def __init__(self) -> None:
        self._exact: dict[tuple[str, str], GatePolicy] = {}
        self._suffix: dict[tuple[str, str], GatePolicy] = {}
        self._default: dict[str, GatePolicy] = {}
        self.kinds: set[str] = set()  # that anything was ever declared for
        self.limits_waiters = False  # whether anything declared so far does

    def declare(self, kind: str, name: str, policy: GatePolicy) -> None:
        if kind == "key":
            policy.check_small("a key")
        if kind != "upstream" and policy.tenant is not None:
            raise ValueError(f"a policy per tenant belongs to an upstream, not to a {kind}")
        self.kinds.add(kind)
        self.limits_waiters = self.limits_waiters or policy.limits_waiters
        if name == "*":
            self._default[kind] = policy
        elif name.startswith("*"):
            if "*" in name[1:]:
                raise ValueError(f"a pattern has one * at its start, not {name!r}")
            self._suffix[kind, name[1:]] = policy
        else:
            self._exact[kind, name] = policy

    def withdraw(self, kind: str, name: str) -> None:
        """Forget a declaration; what is behind it holds again."""
        if name == "*":
            self._default.pop(kind, None)
        elif name.startswith("*"):
            self._suffix.pop((kind, name[1:]), None)
        else:
            self._exact.pop((kind, name), None)

    def of(self, kind: str, name: str) -> GatePolicy:
        found = self._exact.get((kind, name))
        if found is not None:
            return found
        if self._suffix:
            for start in range(len(name)):  # longest suffix first: the most specific wins
                found = self._suffix.get((kind, name[start:]))
                if found is not None:
                    return found
        return self._default.get(kind, OPEN)
