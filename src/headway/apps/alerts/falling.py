"""Upstreams at which the learner has come down: it believes in half, or less, of what it believed
within the last hour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from headway.api.attention import Attention, Level, bundled
from headway.core.gate import Gate
from headway.core.kinds import UPSTREAM
from headway.core.learning import Learning
from headway.engine.brain import Brain

HOUR_S = 3_600.0
FAR = 0.5  # of what it was
AT_ONCE = 1_000  # gates that are looked at in one turn
UNITS = ("rpm", "concurrency")
MOST_POINTS = 60

Ask = Callable[[Callable[[float], Any]], Any]  # lets the brain do something, and waits for it


class Falls:
    def __init__(self) -> None:
        # By upstream and unit: when it was believed in how much, of the last hour.
        self._points: dict[tuple[str, str], deque[tuple[float, float]]] = {}
        self._has_looked = False  # what was there before may have been learned long ago

    def look(self, brain: Brain, ask: Ask) -> None:
        """Blocking, from any thread; a portion of the gates in each turn."""
        gates: list[Gate] = ask(lambda _: list(brain.core.admission.atlas.gates.values()))
        for start in range(0, len(gates), AT_ONCE):
            ask(partial(self._look_at, gates[start : start + AT_ONCE]))
        self._has_looked = True

    def _look_at(self, gates: Sequence[Gate], now: float) -> None:
        for gate in gates:
            if gate.kind != UPSTREAM:
                continue
            for limit in gate.limits:
                if isinstance(limit, Learning):
                    for unit in UNITS:
                        pinned = getattr(limit.rule, f"pin_{unit}") is not None
                        value = None if pinned else getattr(limit.beliefs, unit)
                        told = getattr(limit.rule, f"hint_{unit}") if self._has_looked else None
                        self.note(gate.name, unit, value, now, told=told)

    def note(
        self, name: str, unit: str, value: float | None, now: float, told: float | None = None
    ) -> None:
        """`told`: what its settings say, which was believed before anybody called."""
        if value is None:
            self._points.pop((name, unit), None)
            return
        points = self._points.setdefault((name, unit), deque(maxlen=MOST_POINTS))
        if not points and told is not None:
            points.append((now, told))
        if not points or points[-1][1] != value:
            points.append((now, value))
        while len(points) > 1 and points[1][0] <= now - HOUR_S:
            points.popleft()

    def attention(self, now: float) -> Sequence[Attention]:
        return bundled("learners_fell", list(self._fallen(now)),
                       lambda many, names: f"what {many} upstreams bear has fallen: "
                       f"{names}")  # fmt: skip

    def _fallen(self, now: float) -> Iterator[Attention]:
        seen = set()
        for (name, unit), points in list(self._points.items()):
            at, is_now = points[-1]
            was = max(value for _, value in points)
            if name not in seen and is_now <= FAR * was and at > now - HOUR_S:
                seen.add(name)
                what = "calls a minute" if unit == "rpm" else "calls at once"
                yield Attention(
                    "learner_fell", Level.WARN, (UPSTREAM, name),
                    f"{name} bears {is_now:g} {what}, as far as can be told; it was {was:g} "
                    "within the last hour",
                    {"name": name, "unit": unit, "was": was, "now": is_now}, since=at,
                )  # fmt: skip
