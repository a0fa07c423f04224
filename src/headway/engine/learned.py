"""What was learned about upstreams, for people: to look at, to pin, to reset, to take elsewhere.

Everything here runs in the brain's turn. Pins and hints are settings of an operator: they are kept,
shown as overridden, and go when the settings are reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from headway.core.gate import Gate
from headway.core.kinds import UPSTREAM
from headway.core.learning import Learning
from headway.engine.settings import Value, policy_of

if TYPE_CHECKING:
    from headway.engine.brain import Brain

UNITS = ("rpm", "tpm", "concurrency")


class NotLearning(ValueError):
    """Nothing is learned about this upstream."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"upstream {name!r} does not learn; switch it on with "
            f"`headway upstreams set {name} learn=true`, or with `learn = true` in its settings"
        )


# ---------------------------------------------------------------------- looking


def picture_of(limit: Learning, now: float) -> dict[str, Any]:
    """What the learner believes and does, as plain data."""
    capacity, sent, flying = limit.capacity(now), limit.per_minute(now), limit.in_flight
    rule, hold = limit.rule, limit.learner.hold
    believed = limit.beliefs
    phase = limit.phase(now)
    return {
        "limit_rpm": _rounded(capacity.rpm),
        "source": capacity.source.value,
        "remaining": round(capacity.remaining, 4),
        "threshold": rule.remaining_threshold,
        "believed": {
            **{unit: _rounded(getattr(believed, unit)) for unit in UNITS},
            "limit_kind": believed.limit_kind,
        },
        "pins": {unit: getattr(rule, f"pin_{unit}") for unit in UNITS},
        "phase": phase,
        "holding_why": hold.why.value if phase in ("holding", "testing") else None,
        "online": {"concurrent": int(flying.online), "rpm": round(sent.online)},
        "queued": {"concurrent": int(flying.queued), "rpm": round(sent.queued)},
        "history": [
            {"at": point.at, "rpm": round(point.rpm), "response_ms": round(point.response_ms)}
            for point in limit.learner.history.points
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def learning_at(brain: Brain, name: str) -> tuple[Gate, Learning]:
    """The gate and its learner. One where nobody was yet knows what its settings say."""
    atlas = brain.core.admission.atlas
    gate = atlas.gates.get((UPSTREAM, name))
    if gate is None:
        policy = atlas.policy(UPSTREAM, name)
        gate = Gate(UPSTREAM, name, policy, policy.build_limits(atlas.rng))
    for limit in gate.limits:
        if isinstance(limit, Learning):
            return gate, limit
    raise NotLearning(name)


def look_at(brain: Brain, name: str, now: float) -> dict[str, Any]:
    gate, limit = learning_at(brain, name)
    until = gate.door.closed_until
    return {
        "name": name,
        **picture_of(limit, now),
        "opens_at": limit.opens_at if now < limit.opens_at < float("inf") else None,
        "closed_until": until if now < until < float("inf") else None,
    }


def look_at_some(brain: Brain, names: Iterable[str], now: float) -> list[dict[str, Any]]:
    """Of those that learn."""
    found = []
    for name in names:
        with suppress(NotLearning):
            found.append(look_at(brain, name, now))
    return found


def names_that_learn(brain: Brain) -> list[str]:
    """Upstreams that were called or are declared by name, and learn."""
    atlas = brain.core.admission.atlas
    names = {name for kind, name in atlas.gates if kind == UPSTREAM}
    names |= {name for kind, name in brain.settings.names() if kind == UPSTREAM and "*" not in name}
    return sorted(name for name in names if atlas.policy(UPSTREAM, name).learn is not None)


# ---------------------------------------------------------------------- steering


def reset(brain: Brain, name: str, now: float) -> None:
    """Forget what was learned; hints and pins stay."""
    gate, limit = learning_at(brain, name)
    admission = brain.core.admission
    limit.reset(now)
    gate.refresh()
    if admission.atlas.gates.get((UPSTREAM, name)) is gate:
        admission.touched.add(gate)
        admission.moved(gate, now)
    brain.record(now, "learned_reset", subject=f"{UPSTREAM}:{name}")


def pin(brain: Brain, name: str, pins: Mapping[str, float | None], now: float) -> None:
    """Believe these and nothing else, from now on; None takes a pin off."""
    learning_at(brain, name)
    said = {f"pin_{unit}": value for unit, value in pins.items()}
    brain.controls.set(UPSTREAM, name, _with_learn(brain, name, said), now)


def hint(
    brain: Brain, found: Mapping[str, Mapping[str, float]], now: float
) -> tuple[list[str], dict[str, str]]:
    """Start from what was learned elsewhere, where nothing is known yet. Which of them do, and why
    the others do not.
    """
    values: dict[str, Value | None] = {}
    left_out: dict[str, str] = {}
    for name, hints in found.items():
        try:
            believed = learning_at(brain, name)[1].beliefs
        except NotLearning as error:
            left_out[name] = str(error)
            continue
        if any(getattr(believed, unit) is not None for unit in UNITS):
            left_out[name] = "more is known about it here than a hint could say"
        elif not hints:
            left_out[name] = "nothing was learned about it there"
        else:
            values[name] = value = _with_learn(brain, name, hints)
            policy_of(UPSTREAM, value or {}, name)  # all of them, before any is set
    for name, value in values.items():
        brain.controls.set(UPSTREAM, name, value, now)
    return list(values), left_out


def _with_learn(brain: Brain, name: str, said: Mapping[str, float | None]) -> Value | None:
    """The operator's settings with this in their `learn` table. None: nothing is left of them."""
    before = brain.settings.said_by_operator(UPSTREAM, name)
    below = brain.settings.said_below(UPSTREAM, name)
    pattern = {} if below else _pattern(brain, name)
    value = dict(pattern if before is None else before)
    told = _table(below.get("learn"))
    table = {
        field: each
        for field, each in {**_table(value.get("learn")), **said}.items()
        if each is not None or told.get(field) is not None  # null where a lower layer says more
    }
    value["learn"] = table or True
    if value == pattern:
        return None
    if not table and _learns(below.get("learn")):
        del value["learn"]
    return value or None


def _pattern(brain: Brain, name: str) -> Value:
    """What a pattern says about a name. A declaration of its own takes the pattern's place, and
    must not lose the rest of it.
    """
    behind = brain.settings.behind(UPSTREAM, name, own=False)
    if behind is None:
        return {}
    profile = brain.policies.hosts.profiles.get(name, {}) if behind["declared_as"] == "*" else {}
    return {field: value for field, value in behind["value"].items() if field not in profile}


def _table(learn: Any) -> Value:
    return learn if isinstance(learn, dict) else {}


def _learns(learn: Any) -> bool:
    return learn is not None and learn is not False
