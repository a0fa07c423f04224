"""The keys of `fairQueue`, for all hosts and per host, and what they are in the engine's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.api.fairqueue.keys import Section, shown
from headway.engine.slots.terms import Terms, Weighting
from headway.errors import BadSettings

IP = "ip:"  # how the names of tenants begin that are IP buckets
MAX_WINDOW_S = 7.5  # of a poll: clients give up after 8 s
MAX_PATTERN = 255  # characters
WAKES = "a grant wakes its waiter, so nobody has to probe"
PROBING = ("hotPendingFactor", "hotPendingMin", "coldAvgWaitMs", "hotAvgWaitMs",
           "maxProbesPerCycle")  # fmt: skip
FOR_ALL = ("profiles", "cleanup", "maxSessions", "globalMaxWaiters")  # never in a profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """The values of the keys, by the names and units of the document."""

    max_wait_ms: int = 20_000
    poll_interval_ms: int = 500
    poll_window_ms: int = 6_000
    min_slot_hold_ms: int = 0
    session_idle_seconds: int = 90
    max_slot_per_host: int = 5
    max_slot_per_ip: int = 1
    max_waiters_per_host: int = 50
    max_waiters_per_ip: int = 0
    zombie_timeout_seconds: int = 30
    ip_cooldown_seconds: int = 0
    default_granted_cleanup_delay: int = 5
    claim_window_ms: int = 2_000
    throttle_time_window_seconds: int | None = None  # None: as long as every breaker stays open
    weighted: bool = False
    base_weight: float = 1.0
    weight_per_wait: float = 1.0


BUILT_IN = Knobs()
# Key by key. Where the second is True, 0 and less switches it off; elsewhere it means the default.
WHOLE = {
    "maxWaitMs": ("max_wait_ms", False),
    "pollIntervalMs": ("poll_interval_ms", False),
    "pollWindowMs": ("poll_window_ms", False),
    "minSlotHoldMs": ("min_slot_hold_ms", True),
    "sessionIdleSeconds": ("session_idle_seconds", False),
    "maxSlotPerHost": ("max_slot_per_host", False),
    "maxSlotPerIp": ("max_slot_per_ip", False),
    "maxWaitersPerHost": ("max_waiters_per_host", True),
    "maxWaitersPerIp": ("max_waiters_per_ip", True),
    "zombieTimeoutSeconds": ("zombie_timeout_seconds", False),
    "ipCooldownSeconds": ("ip_cooldown_seconds", True),
    "defaultGrantedCleanupDelay": ("default_granted_cleanup_delay", False),
    "claimWindowMs": ("claim_window_ms", False),
    "throttleTimeWindowSeconds": ("throttle_time_window_seconds", False),
}
KEYS = frozenset(
    {*WHOLE, *FOR_ALL, "weightedScheduler", "smoothReleaseIntervalMs", "rpc"}
)  # of fairQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What holds for the hosts that a pattern names. It is shared: nothing in it may be changed."""

    pattern: str
    terms: Terms
    window_s: float  # how long a poll waits for its answer
    settings: dict[str, Any]  # of the upstream, as `headway.engine.settings` reads them


def read_knobs(section: Section, below: Knobs) -> Knobs:
    """What is said here, over what holds `below` it."""
    said: dict[str, Any] = {}
    for key, (field, may_be_off) in WHOLE.items():
        below_one = 0 if may_be_off else getattr(BUILT_IN, field)
        said[field] = section.whole(key, getattr(below, field), below_one=below_one)
    weighted = section.section("weightedScheduler")
    said["weighted"] = weighted.flag("enabled", below.weighted)
    said["base_weight"] = weighted.number("baseWeight", below.base_weight, otherwise=1.0)
    said["weight_per_wait"] = weighted.number("weightPerWait", below.weight_per_wait, otherwise=1.0)
    for key in PROBING:
        weighted.not_needed(key, WAKES)
    weighted.end()
    section.not_needed("smoothReleaseIntervalMs",
                       "slots of a host open minSlotHoldMs / maxSlotPerHost apart")  # fmt: skip
    section.not_needed("rpc", "no function of a database is called")
    return Knobs(**said)


def read_profiles(section: Section, below: Knobs) -> dict[str, Knobs]:
    """By pattern, in small letters."""
    found: dict[str, Knobs] = {}
    for key in section:
        pattern = _checked(section, key)
        profile = section.section(key)
        for each in FOR_ALL:
            if profile.take(each) is not None:
                profile.note(each, "has no effect: it is for all hosts; set it in fairQueue itself")
        found[pattern] = knobs = read_knobs(profile, found.get(pattern, below))
        profile.end()
        if not knobs.weighted:
            profile.not_needed("pollIntervalMs", WAKES)
    return found


def _checked(section: Section, key: str) -> str:
    pattern = str(key).strip().lower()
    rest = "" if pattern == "*" else pattern.removeprefix("*.")
    good = pattern == "*" or (rest and "*" not in rest and not any(map(str.isspace, rest)))
    if not good or len(pattern) > MAX_PATTERN:
        raise BadSettings(f"{section.path} has {shown(key)}, which names no hosts; write "
                          "files.example.com, *.example.com or *")  # fmt: skip
    return pattern


def profile_of(pattern: str, knobs: Knobs, ttl_s: float) -> Profile:
    weighting = Weighting(
        base=knobs.base_weight,
        per_wait=knobs.weight_per_wait,
        wait_s=knobs.poll_interval_ms / 1000,
    )
    terms = Terms(
        lease_s=float(knobs.zombie_timeout_seconds),
        max_wait_s=knobs.max_wait_ms / 1000,
        idle_s=float(knobs.session_idle_seconds),
        claim_s=min(knobs.claim_window_ms / 1000, ttl_s),
        keep_s=float(knobs.default_granted_cleanup_delay),
        max_waiters=knobs.max_waiters_per_host or None,
        max_waiters_per_tenant=knobs.max_waiters_per_ip or None,
        weighting=weighting if knobs.weighted else None,
    )
    return Profile(
        pattern=pattern,
        terms=terms,
        window_s=min(knobs.poll_window_ms / 1000, MAX_WINDOW_S),
        settings=_settings(knobs),
    )


def _settings(knobs: Knobs) -> dict[str, Any]:
    tenant: dict[str, Any] = {"limit": knobs.max_slot_per_ip, "only": IP}
    if knobs.ip_cooldown_seconds:
        tenant["cooldown"] = f"{knobs.ip_cooldown_seconds}s"
    open_s = knobs.throttle_time_window_seconds
    settings: dict[str, Any] = {
        "limit": knobs.max_slot_per_host,
        "breaker": {"open_for": f"{open_s}s"} if open_s else True,
        "tenant": tenant,
    }
    if knobs.min_slot_hold_ms:
        settings["min_hold"] = f"{knobs.min_slot_hold_ms / 1000:.3f}s"
    return settings


def behind(profiles: Mapping[str, Profile], hostname: str) -> Profile | None:
    """The profile that names the host best: itself, then the longest end of it, then `*`."""
    name = hostname.lower()
    found = profiles.get(name)
    while found is None and name and len(name) <= MAX_PATTERN:
        name = name.partition(".")[2]
        found = profiles.get(f"*.{name}") if name else None
    return found or profiles.get("*")
