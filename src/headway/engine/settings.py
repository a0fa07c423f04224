"""Settings of gates, in layers: code < file < environment < what an operator set at run time.

A layer names only what it changes; the rest comes from the layers below it. What an operator has
set is durable, shown as overridden, and can be reset.
"""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from headway.core import BreakerRule, GatePolicy, PaceRule, Policies, PushbackRule, QuietRule
from headway.core.learning import LearnRule
from headway.core.recurrence import duration_s
from headway.errors import BadSettings

LAYERS = ("code", "file", "environment", "operator")
PACES = frozenset({"every", "per_minute", "per_second"})
WHOLE = frozenset({"limit", "reserve", "burst", "max_waiters"})
KINDS = ("everything", "lane", "upstream", "tool", "type", "key")
MOST = 1_000_000_000
LEAST_RATE = 0.001  # per minute: less than two calls a day
PREFIX = "HEADWAY_"

Value = dict[str, Any]

logger = logging.getLogger("headway")

DURATIONS = frozenset(
    {"every", "cooldown", "min_hold", "hold", "max_hold", "ban", "window", "open_for"}
)
FIELDS = DURATIONS - {"window", "open_for"} | {
    "limit", "reserve", "per_minute", "per_second", "burst", "jitter", "by_cost", "quiet", "zone",
    "breaker", "max_waiters", "tenant", "only", "learn",
}  # fmt: skip
# What can be said about learning, and what the rule calls it.
LEARN = {
    "rpm": "hint_rpm", "tpm": "hint_tpm", "concurrency": "hint_concurrency",
    **{name: name for name in ("min_rpm", "max_rpm", "min_concurrency", "max_concurrency",
                               "pin_rpm", "pin_tpm", "pin_concurrency", "remaining_threshold")},
}  # fmt: skip


class Settings:
    def __init__(self) -> None:
        self._layers: dict[tuple[str, str], dict[str, Value]] = {}
        self.foreign = {"server"}  # tables of the same file that are not about gates

    def copy(self) -> Settings:
        """To try out what would follow from a change, where nobody sees it."""
        other = Settings()
        other._layers = dict(self._layers)  # `put` replaces what it changes
        return other

    def declare(self, layer: str, kind: str, name: str, value: Value) -> None:
        """Add to a layer; wrong settings are refused here, before anything has changed."""
        layers = {**self._layers.get((kind, name), {})}
        layers[layer] = {**layers.get(layer, {}), **value}
        policy_of(kind, merged(layers), name)
        self._layers[kind, name] = layers

    def put(self, kind: str, name: str, value: Value | None) -> GatePolicy | None:
        """What an operator sets, or resets with None. None: nothing is declared any more."""
        layers = {**self._layers.get((kind, name), {})}
        layers.pop("operator", None)
        if value is not None:
            layers["operator"] = value
        policy = policy_of(kind, merged(layers), name) if layers else None
        if layers:
            self._layers[kind, name] = layers
        else:
            self._layers.pop((kind, name), None)
        return policy

    def undeclare(self, layer: str, kind: str, name: str) -> GatePolicy | None:
        """Take back what a layer says. None: nothing is declared any more."""
        layers = self._layers.get((kind, name), {})
        layers.pop(layer, None)
        if not layers:
            self._layers.pop((kind, name), None)
        return policy_of(kind, merged(layers), name) if layers else None

    def said_by_operator(self, kind: str, name: str) -> Value | None:
        return self._layers.get((kind, name), {}).get("operator")

    def said_below(self, kind: str, name: str) -> Value:
        """What code, file and environment say about exactly this name."""
        layers = self._layers.get((kind, name), {})
        return merged({layer: said for layer, said in layers.items() if layer != "operator"})

    def load(self, rows: Iterable[tuple[str, str, str]]) -> None:
        """What operators have set, from the store. What does not fit the code any more is left
        out: it must not keep an engine from starting.
        """
        for (kind, name), layers in list(self._layers.items()):
            layers.pop("operator", None)
            if not layers:
                del self._layers[kind, name]
        for kind, name, value in rows:
            try:
                self.declare("operator", kind, name, msgspec.json.decode(value))
            except ValueError as error:
                logger.warning("what was set for %s:%s is left out: %s", kind, name, error)

    def declare_all(self, policies: Policies) -> None:
        for (kind, name), layers in self._layers.items():
            policies.declare(kind, name, policy_of(kind, merged(layers), name))

    def shown(self) -> list[dict[str, Any]]:
        """What holds for each name, and which layer said so."""
        rows = []
        for (kind, name), layers in sorted(self._layers.items()):
            value = merged(layers)
            rows.append(
                {
                    "kind": kind,
                    "name": name,
                    "value": value,
                    "from": _said_by(layers, value),
                    "overridden": "operator" in layers,
                }
            )
        return rows

    def names(self) -> list[tuple[str, str]]:
        """(kind, name or pattern) of all that is declared."""
        return list(self._layers)

    def behind(self, kind: str, name: str, *, own: bool = True) -> dict[str, Any] | None:
        """The declaration that holds for a name: its own, or the longest pattern that fits."""
        best = name
        layers = self._layers.get((kind, name)) if own else None
        start = 0  # longest suffix first, and `*` at the end
        while layers is None and start <= len(name):
            best = "*" + name[start:]
            layers = self._layers.get((kind, best))
            start += 1
        if layers is None:
            return None
        value = merged(layers)
        return {
            "value": value,
            "from": _said_by(layers, value),
            "overridden": "operator" in layers,
            "declared_as": best,
        }

    def read_file(self, path: str) -> None:
        """A TOML file: [lane.NAME], [upstream."*.example.com"], [tool.NAME], …"""
        try:
            tables = tomllib.loads(Path(path).read_text("utf-8"))
        except OSError as error:
            raise BadSettings(f"the settings in {path} cannot be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadSettings(f"{path} is not a TOML file: {error}") from error
        for kind, names in tables.items():
            if kind in self.foreign:
                continue
            if kind not in KINDS:
                raise BadSettings(f"{path} has a table [{kind}]; known are {', '.join(KINDS)}")
            if not isinstance(names, dict):
                raise BadSettings(f"{kind} in {path} is a table for each name: [{kind}.NAME]")
            for name, value in names.items():
                self._declare_from("file", kind, name, value, f'[{kind}."{name}"] in {path}')

    def _declare_from(self, layer: str, kind: str, name: str, value: Value, where: str) -> None:
        """What is wrong is said with the place where people find it."""
        try:
            self.declare(layer, kind, name, value)
        except ValueError as error:
            raise BadSettings(f"{where}: {error}") from error

    def read_environment(self, environment: Mapping[str, str] = os.environ) -> None:
        """HEADWAY_LANE__default__limit=4, HEADWAY_UPSTREAM__api.example.com__every=2s."""
        for variable, text in environment.items():
            parts = variable.removeprefix(PREFIX).split("__")
            if not variable.startswith(PREFIX) or len(parts) != 3:
                continue
            kind, name, field = parts[0].lower(), parts[1], parts[2].lower()
            if kind in KINDS:
                try:
                    value = msgspec.json.decode(text)
                except (msgspec.DecodeError, UnicodeError, RecursionError):
                    value = text
                self._declare_from("environment", kind, name, {field: value}, variable)


def _said_by(layers: Mapping[str, Value], value: Value) -> dict[str, str]:
    """Which layer each field comes from."""
    return {
        field: next(layer for layer in reversed(LAYERS) if field in layers.get(layer, {}))
        for field in value
    }


def merged(layers: Mapping[str, Value]) -> Value:
    value: Value = {}
    for layer in LAYERS:
        said = layers.get(layer, {})
        if not PACES.isdisjoint(said):  # one way to say it takes the place of another
            value = {field: kept for field, kept in value.items() if field not in PACES}
        learn = _merged_learn(value.get("learn"), said.get("learn"))
        value.update(said)
        if "learn" in value:
            value["learn"] = learn
    return value


def _merged_learn(below: Any, said: Any) -> Any:
    """A table adds to the one below it; `true` leaves that as it is, `false` ends it."""
    if said is None or (said is True and isinstance(below, dict)):
        return below
    if isinstance(said, dict) and isinstance(below, dict):
        return {**below, **said}
    return said


def policy_of(kind: str, value: Value, name: str = "*") -> GatePolicy:
    """A policy from plain data; ValueError says what is wrong."""
    try:
        policy = _policy(kind, value)
    except (TypeError, KeyError) as error:
        raise ValueError(f"these settings make no sense: {error}") from error
    Policies().declare(kind, name, policy)  # which refuses what the core would refuse
    return policy


def _policy(kind: str, value: Value) -> GatePolicy:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of gate; known are {', '.join(KINDS)}")
    unknown = set(value) - FIELDS
    if unknown:
        raise ValueError(
            f"{', '.join(sorted(unknown))} cannot be set; known are {', '.join(sorted(FIELDS))}"
        )
    for field in WHOLE & set(value):
        if value[field] is not None and type(value[field]) is not int:
            raise ValueError(f"{field} must be a whole number, not {value[field]!r}")
        if value[field] is not None and abs(value[field]) > MOST:
            raise ValueError(f"{field} is at most {MOST}; leave it out to have no limit")
    if "learn" in value and kind != "upstream":
        raise ValueError(f"learn can be set for an upstream, not for a {kind}")
    tenant = value.get("tenant")
    return GatePolicy(
        cap=value.get("limit"),
        reserve=value.get("reserve", 0),
        pace=_pace(value),
        cooldown_s=_seconds(value.get("cooldown", 0)),
        min_hold_s=_seconds(value.get("min_hold", 0)),
        quiet=_quiet(value),
        breaker=_breaker(value.get("breaker")),
        learn=_learn(value.get("learn")),
        pushback=_pushback(value),
        max_waiters=value.get("max_waiters"),
        tenant=None if tenant is None else _policy(kind, tenant),
        only=str(value.get("only", "")),
    )


def _seconds(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and value == 0:
        return 0.0
    return duration_s(value)


def _pace(value: Value) -> PaceRule | None:
    ways = sorted(each for each in PACES if value.get(each) is not None)
    if not ways:
        return None
    if len(ways) > 1:
        raise ValueError(f"{' and '.join(ways)} say the same thing; set one of them")
    if ways[0] == "every":
        interval_s = duration_s(value["every"])
    else:
        rate = value[ways[0]]
        if not isinstance(rate, int | float) or not rate > 0:
            raise ValueError(f"{ways[0]} must be a number above 0, not {rate!r}")
        interval_s = (60.0 if ways[0] == "per_minute" else 1.0) / rate
    return PaceRule(
        interval_s,
        burst=value.get("burst", 1),
        jitter=value.get("jitter", 0.0),
        by_cost=value.get("by_cost", False),
    )


def _quiet(value: Value) -> QuietRule | None:
    windows = value.get("quiet")
    if not windows:
        return None
    zone = ZoneInfo(value.get("zone", "UTC"))

    def offset_s(now: float) -> float:
        offset = datetime.fromtimestamp(now, zone).utcoffset()
        return 0.0 if offset is None else offset.total_seconds()

    return QuietRule(tuple((_time_s(start), _time_s(end)) for start, end in windows), offset_s)


def _time_s(text: Any) -> float:
    hours, separator, minutes = str(text).partition(":")
    if not separator or not hours.isdigit() or not minutes.isdigit() or int(minutes) > 59:
        raise ValueError(f"{text!r} is no time of day; write it like 23:00")
    return int(hours) * 3600.0 + int(minutes) * 60.0


def _breaker(value: Any) -> BreakerRule | None:
    if not value:
        return None
    if value is True:
        return BreakerRule()
    known = {
        "window": "window_s", "open_for": "open_s", "share": "share", "at_least": "at_least",
        "burst_share": "burst_share", "burst_at_least": "burst_at_least", "in_a_row": "in_a_row",
    }  # fmt: skip
    unknown = set(value) - set(known)
    if unknown:
        raise ValueError(
            f"a breaker has no {', '.join(sorted(unknown))}; known: {', '.join(known)}"
        )
    settings: dict[str, Any] = {
        known[k]: duration_s(v) if k in DURATIONS else v for k, v in value.items()
    }
    return BreakerRule(**settings)


def _learn(value: Any) -> LearnRule | None:
    """`true`, or a table of hints, bounds and pins. A field that is null is not set."""
    if value is None or value is False:
        return None
    if value is True:
        return LearnRule()
    if not isinstance(value, dict):
        raise ValueError(f"learn is true, false or a table such as {{rpm = 600}}, not {value!r}")
    unknown = set(value) - set(LEARN)
    if unknown:
        raise ValueError(f"learn has no {', '.join(sorted(unknown))}; known: {', '.join(LEARN)}")
    said = {field: each for field, each in value.items() if each is not None}
    for field, each in said.items():
        if isinstance(each, bool) or not isinstance(each, int | float):
            raise ValueError(f"{field} of learn must be a number, not {each!r}")
        if "concurrency" in field and type(each) is not int:
            raise ValueError(f"{field} of learn must be a whole number, not {each!r}")
        if not each <= MOST:
            raise ValueError(f"{field} of learn is at most {MOST}; leave it out to have no limit")
        if 0 < each < LEAST_RATE and field.endswith("pm"):
            raise ValueError(f"{field} of learn is at least {LEAST_RATE}, not {each!r}")
    try:
        settings: dict[str, Any] = {LEARN[field]: each for field, each in said.items()}
        return LearnRule(**settings)
    except ValueError as error:
        raise ValueError(f"learn: {str(error).removeprefix('hint_')}") from None


def _pushback(value: Value) -> PushbackRule:
    settings = {f"{name}_s": duration_s(value[name]) for name in ("hold", "max_hold", "ban")
                if name in value}  # fmt: skip
    return PushbackRule(**settings)
