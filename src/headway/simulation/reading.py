"""From files and tables to policies, upstreams and loads. Nothing else here opens a file."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.engine.settings import Settings
from headway.simulation import arrivals, limiters
from headway.simulation.arrivals import DAY_S, HOUR_S, Process
from headway.simulation.errors import BadModel
from headway.simulation.limiters import LimitModel
from headway.simulation.load import Arrival, Load, TenantLoad
from headway.simulation.presets import LOADS, UPSTREAMS
from headway.simulation.scenario import Models
from headway.simulation.tables import MOST, Table
from headway.simulation.upstream import BanModel, Latency, UpstreamModel

MOST_DAYS = 31


# Tables of the same file that say nothing about gates.
OF_APPLICATIONS = ("channel", "feeds", "media", "alerts")


def read_policy(path: str) -> Settings:
    """Settings of gates, exactly as `headway serve --config` would read them."""
    settings = Settings()
    settings.foreign.update(OF_APPLICATIONS)
    try:
        settings.read_file(path)
    except ValueError as error:
        raise BadModel(str(error) if path in str(error) else f"{path}: {error}") from error
    return settings


def read_toml(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BadModel(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadModel(f"{path} is not a TOML file: {error}") from error


def _is_file(name: str) -> bool:
    return name.endswith(".toml") or "/" in name


# ---------------------------------------------------------------------- upstreams


def models_named(name: str) -> Models:
    """A preset, or a file that says what is behind which name."""
    if not _is_file(name):
        if name not in UPSTREAMS:
            known = ", ".join(UPSTREAMS)
            raise BadModel(
                f"there is no upstream model {name!r}; known are {known}, or a .toml file"
            )
        return Models({"*": UPSTREAMS[name]}, name)
    return models_in(read_toml(name), name)


def models_in(tables: dict[str, Any], file: str) -> Models:
    """`[upstream."*.example.com"]`, or (of a file about one only) its fields at the top."""
    root = Table(file, tables)
    if not root.has("upstream"):
        return Models({"*": _upstream(root)}, Path(file).stem)
    named = root.table("upstream")
    found: dict[str, UpstreamModel] = {}
    for name in [] if named is None else named.names():
        table = Table(file, named.take(name) if named else {}, f'upstream."{name}"')
        found[name] = _upstream(table)
    if not root.has("load"):  # one file may say both
        root.end()
    return Models(found, Path(file).stem)


def _upstream(table: Table) -> UpstreamModel:
    if table.has("like"):
        base = UPSTREAMS[table.text("like", "", tuple(UPSTREAMS))]
    else:
        base = UpstreamModel()
    ban = table.table("ban")
    slow = table.table("slowdown")
    latency = table.table("latency")
    limits = tuple(_limit(each) for each in table.tables("limit"))
    outages = tuple(_outage(each) for each in table.tables("outage"))
    model = UpstreamModel(
        name=base.name,
        limits=limits or base.limits,
        latency=base.latency if latency is None else _latency(latency),
        refusal_s=table.seconds("refusal_takes", base.refusal_s),
        refusal=table.whole("refusal", base.refusal, least=400, most=599),
        retry_after=table.flag("retry_after", base.retry_after),
        headers=table.flag("headers", base.headers),
        ban=base.ban if ban is None else _ban(ban),
        knee=base.knee if slow is None else slow.number("above", 1),
        slower_by=base.slower_by if slow is None else slow.number("by", 0.1),
        errors=table.number("errors", base.errors, most=1.0),
        outages=outages or base.outages,
        about=base.about,
    )
    if slow is not None:
        slow.end()
    table.end()
    return model


def _limit(table: Table) -> LimitModel:
    kind = table.text("kind", "sliding-window", limiters.KINDS)
    value = table.take("limit")
    if isinstance(value, list):
        steps = tuple(_step(Table(table.file, each, table.key("limit"))) for each in value)
    else:
        steps = ((0.0, value),)
    for _, each in steps:
        if isinstance(each, bool) or not isinstance(each, int | float) or not 0 <= each <= MOST:
            raise table.wrong("limit", f"must be a number from 0 to {MOST:g}, not {each!r}")
    if not steps or steps[0][0] != 0.0 or list(steps) != sorted(steps, key=lambda step: step[0]):
        raise table.wrong("limit", "must begin at 0 and go on in order: [{at = 0, to = 60}, …]")
    window_s = table.seconds("window", limiters.MINUTE_S)
    if not window_s > 0:
        raise table.wrong("window", "must be longer than 0")
    burst = table.number("burst", max(1.0, float(steps[0][1]) / 6), least=1)
    per = table.text("per", "all", ("all", "tenant"))
    table.end()
    return LimitModel(kind, steps, window_s, burst, per_tenant=per == "tenant")


def _step(table: Table) -> tuple[float, Any]:
    found = table.seconds("at", 0.0), table.take("to")
    table.end()
    return found


def _latency(table: Table) -> Latency:
    found = Latency(table.seconds("median", 1.0), table.number("spread", 0.5, most=3.0))
    if not found.median_s > 0:
        raise table.wrong("median", "must be longer than 0")
    table.end()
    return found


def _ban(table: Table) -> BanModel:
    found = BanModel(
        after=table.whole("after", 5, least=1),
        within_s=table.seconds("within", 60.0),
        lasts_s=table.seconds("for", 600.0),
        status=table.whole("status", 412, least=400, most=599),
    )
    table.end()
    return found


def _outage(table: Table) -> tuple[float, float]:
    start = table.seconds("at", 0.0)
    end = start + table.seconds("for", 600.0)
    table.end()
    return start, end


# ---------------------------------------------------------------------- loads


def load_named(name: str) -> Load:
    if not _is_file(name):
        if name not in LOADS:
            known = ", ".join(LOADS)
            raise BadModel(f"there is no load {name!r}; known are {known}, or a .toml file")
        return LOADS[name]
    return load_in(read_toml(name), name)


def load_in(tables: dict[str, Any], file: str) -> Load:
    """`duration` and `[[tenant]]`, at the top or below `[load]`."""
    root = Table(file, tables)
    table = root.table("load") or root
    most_s = MOST_DAYS * DAY_S
    duration_s = table.seconds("duration", DAY_S)
    if not 0 < duration_s <= most_s:
        raise table.wrong("duration", f"must be from 1s to {MOST_DAYS}d")
    tenants = tuple(_tenant(each) for each in table.tables("tenant"))
    if not tenants:
        raise table.wrong("tenant", "is missing: say who asks for what, [[tenant]] name = …")
    if table is not root:
        root.take("upstream")
        root.end()
    table.end()
    return Load(Path(file).stem, tenants, duration_s)


def _tenant(table: Table) -> TenantLoad:
    process_table = table.table("arrivals")
    hold = table.table("hold")
    share = table.number("share_of_limit", 0.0, most=1_000) or None
    found = TenantLoad(
        name=table.text("name", ""),
        process=Process() if process_table is None else _process(process_table),
        count=table.whole("count", 1, least=1, most=10_000),
        weight=table.number("weight", 1.0, least=0.001),
        upstreams=table.names_in("upstream"),
        candidates=table.flag("any_of_them"),
        lane=table.text("lane", "default"),
        type=table.text("type", "job"),
        tools=table.names_in("tools"),
        priorities=_priorities(table),
        keys=table.whole("keys", 0),
        hold=None if hold is None else _latency(hold),
        cost=table.number("cost", 1.0),
        online=table.number("online", 0.0, most=1.0),
        leftover=table.flag("leftover"),
        share=share,
    )
    table.end()
    _try(found, table)
    return found


def _try(tenant: TenantLoad, table: Table) -> None:
    """What no job could be made of is refused here, not in the middle of a run."""
    try:
        for priority, _ in tenant.priorities:
            example = Arrival(
                0.0, tenant.name, tenant.upstreams, tenant.weight, tenant.lane, tenant.type,
                tenant.tools, priority, cost=tenant.cost,
            )  # fmt: skip
            example.ticket(1, tenant.name)
    except ValueError as error:
        raise table.wrong("upstream", f"or what else it asks for makes no job: {error}") from None


def _priorities(table: Table) -> tuple[tuple[int, float], ...]:
    """A number, or shares: `{1 = 0.1, 5 = 0.9}`."""
    value = table.take("priority", 5)
    if type(value) is int:
        return ((value, 1.0),)
    try:
        found = tuple((int(each), float(share)) for each, share in value.items())
        if found and all(share > 0 for _, share in found):
            return found
    except (AttributeError, TypeError, ValueError):
        pass
    raise table.wrong("priority", f"must be a number or {{1 = 0.1, 5 = 0.9}}, not {value!r}")


def _process(table: Table) -> Process:
    kind = table.text("kind", "poisson", arrivals.KINDS)
    per_hour = table.number("per_hour", 60.0, least=1e-6, most=10_000_000)
    if table.has("every"):
        every_s = table.seconds("every", 60.0)
        if not every_s > 0:
            raise table.wrong("every", "must be longer than 0")
        per_hour = HOUR_S / every_s
    size = table.whole("size", 1, least=1, most=10_000_000)
    found = Process(
        kind=kind,
        per_hour=per_hour * size if kind == "bursts" else per_hour,
        size=size,
        at_s=table.seconds("at", 0.0),
        until_s=table.seconds("until", float("inf")),
        peak_s=table.seconds("peak", 14 * HOUR_S),
        swing=table.number("swing", 0.8, most=1.0),
    )
    table.end()
    return found


def lasting(load: Load, seconds: float) -> Load:
    """The same for another time."""
    if not 0 < seconds <= MOST_DAYS * DAY_S:
        raise BadModel(f"the duration must be from 1s to {MOST_DAYS}d")
    return replace(load, duration_s=seconds)
