"""Everything that a run needs to know, as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headway.core import Policies
from headway.core.outcome import Kind
from headway.engine.settings import Settings, policy_of
from headway.simulation.limiters import INF
from headway.simulation.load import Arrival, Load, TenantLoad
from headway.simulation.replay import Recording
from headway.simulation.upstream import Latency, UpstreamModel

START_AT = 1_767_225_600.0  # 2026-01-01 00:00 UTC: a day begins at midnight
EXAMPLE = "example"


@dataclass(frozen=True, slots=True)
class Models:
    """Upstreams by name or pattern; a name beats a pattern, a longer one a shorter."""

    found: dict[str, UpstreamModel]
    name: str = ""

    def of(self, upstream: str) -> UpstreamModel | None:
        exact = self.found.get(upstream)
        if exact is not None:
            return exact
        for start in range(len(upstream) + 1):
            model = self.found.get("*" + upstream[start:])
            if model is not None:
                return model
        return None


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a run ends that would not end by itself."""

    calls: int = 5_000_000
    after_s: float = INF  # virtual time after the last arrival; infinity: as long again


@dataclass(slots=True)
class Scenario:
    name: str
    policies: Policies
    models: Models
    load: Load
    gates: tuple[tuple[str, str], ...] = ()  # (kind, name) that are watched
    replayed: Sequence[Arrival] | None = None  # instead of the arrivals of the load
    start_at: float = START_AT
    seed: int = 1
    fair: bool = True  # False: as if all tenants were one, so that the first come is served first
    holds_s: Mapping[str, float] = field(default_factory=dict)  # as recorded, by upstream: the mean
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def tenants(self) -> int:
        if self.replayed is not None:
            return max(1, len({each.tenant for each in self.replayed}))
        return sum(tenant.count for tenant in self.load.tenants)

    def upstreams(self) -> list[str]:
        """All that are called."""
        if self.replayed is not None:
            named = (name for each in self.replayed for name in each.upstreams)
        else:
            named = (name for tenant in self.load.tenants for name in tenant.upstreams)
        return list(dict.fromkeys(named))

    def limit_per_minute(self, start: float, end: float) -> float:
        """What all upstreams that are called bear together, on average over a span. 0: there is a
        limit, and it is 0.
        """
        names, total = self.upstreams(), 0.0
        for name in names:
            model = self.models.of(name)
            if model is None:
                return INF
            total += model.per_minute(
                start, end, tenants=self.tenants, hold_s=self._hold_s(name, model)
            )
        return total if names else INF

    def _hold_s(self, name: str, model: UpstreamModel) -> float:
        """How long a call of this load takes there, on average."""
        if name in self.holds_s:
            return self.holds_s[name]
        holds = [
            each.hold.mean_s
            for each in self.load.tenants
            if each.hold is not None and name in each.upstreams
        ]
        return sum(holds) / len(holds) if holds else model.latency.mean_s


def scenario(
    name: str,
    settings: Settings,
    models: Models,
    load: Load,
    *,
    target: tuple[str, str] | None = None,
    seed: int = 1,
    fair: bool = True,
    bounds: Bounds | None = None,
) -> Scenario:
    """A load that names no upstreams calls those of the policy, or the one that is asked about, or
    one of which nothing is declared if it is a lane that is asked about.
    """
    policies = policies_of(settings, fair=fair)
    aimed = replace(load, tenants=tuple(_aimed(load, settings, target)))
    made = Scenario(name, policies, models, aimed, seed=seed, fair=fair, bounds=bounds or Bounds())
    rate = made.limit_per_minute(0.0, aimed.duration_s)
    made.load = aimed.at_rate(rate if rate < INF else _usual_rate(made))
    made.gates = watched(settings, made)
    return made


def policies_of(settings: Settings, *, fair: bool = True) -> Policies:
    """Where all are one tenant, what each tenant may use means nothing."""
    policies = Policies()
    settings.declare_all(policies)
    for row in settings.shown() if not fair else ():
        if row["value"].pop("tenant", None) is not None:
            policy = policy_of(row["kind"], row["value"], row["name"])
            policies.declare(row["kind"], row["name"], policy)
    return policies


def _usual_rate(made: Scenario) -> float:
    """Where nothing is limited, as many calls a minute as eight at once make."""
    model = made.models.of((made.upstreams() or [EXAMPLE])[0])
    latency = Latency() if model is None else model.latency
    return 8 * 60.0 / max(latency.mean_s, 0.001)


def _aimed(load: Load, settings: Settings, target: tuple[str, str] | None) -> Iterator[TenantLoad]:
    declared = [name for kind, name in settings.names() if kind == "upstream"]
    names = tuple(_example(name) for name in declared) or (EXAMPLE,)
    lane = target[1] if target is not None and target[0] == "lane" else None
    if target is not None and target[0] == "upstream":
        names = (_example(target[1]),)
    elif lane is not None:
        names = (EXAMPLE,)  # what one upstream bears, however many there are
    for tenant in load.tenants:
        aimed = tenant if tenant.upstreams else replace(tenant, upstreams=names)
        yield aimed if lane is None else replace(aimed, lane=_example(lane))


def _example(name: str) -> str:
    """A name that a pattern holds for."""
    if name == "*":
        return EXAMPLE
    return name.replace("*.", "www.").replace("*", "www") if "*" in name else name


def watched(settings: Settings, made: Scenario) -> tuple[tuple[str, str], ...]:
    """The gates that work passes and that anything is declared for."""
    used = [("upstream", name) for name in made.upstreams()]
    if made.replayed is not None:
        places = [(each.lane, each.type, each.tools) for each in made.replayed]
    else:
        places = [(each.lane, each.type, each.tools) for each in made.load.tenants]
    for lane, type_, tools in dict.fromkeys(places):
        used += [("lane", lane), ("type", type_), *(("tool", tool) for tool in tools)]
    used.append(("everything", ""))
    return tuple(
        each
        for each in dict.fromkeys(used)
        if each[0] == "upstream" or settings.behind(*each) is not None
    )


def replayed(
    name: str,
    settings: Settings,
    models: Models,
    recording: Recording,
    *,
    seed: int = 1,
    fair: bool = True,
    bounds: Bounds | None = None,
) -> Scenario:
    """What was recorded, under these settings."""
    policies = policies_of(settings, fair=fair)
    made = Scenario(
        name,
        policies,
        models,
        Load("recording", (), recording.duration_s),
        replayed=recording.arrivals,
        start_at=recording.start_at,
        seed=seed,
        fair=fair,
        holds_s=_recorded_holds(recording.arrivals),
        bounds=bounds or Bounds(),
    )
    made.gates = watched(settings, made)
    return made


def _recorded_holds(arrivals: Sequence[Arrival]) -> dict[str, float]:
    """How long calls took that the upstream did take, on average."""
    sums: dict[str, tuple[float, int]] = {}
    for arrival in arrivals:
        for attempt in arrival.attempts:
            if attempt.outcome.kind is Kind.PUSHBACK:
                continue
            for name in arrival.upstreams:
                total_s, many = sums.get(name, (0.0, 0))
                sums[name] = (total_s + attempt.hold_s, many + 1)
    return {name: max(total_s / many, 0.001) for name, (total_s, many) in sums.items()}
