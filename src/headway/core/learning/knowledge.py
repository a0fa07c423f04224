"""What is known about an upstream: the parts, what they believe, and what a restart keeps of it."""

from __future__ import annotations

from typing import Any

from headway.core.learning.beliefs import Beliefs, Diary
from headway.core.learning.ceiling import Shape
from headway.core.learning.concurrency import Cap
from headway.core.learning.counting import WINDOW_S, Peak
from headway.core.learning.history import History
from headway.core.learning.holding import Hold
from headway.core.learning.latency import Guard
from headway.core.learning.online import Online
from headway.core.learning.rate import Rate
from headway.core.learning.rule import LearnRule

INF = float("inf")


class Knowledge:
    def __init__(self, rule: LearnRule | None = None) -> None:
        self.rule = rule or LearnRule()
        self.online = Online()
        self.in_flight = 0
        self.diary = Diary()
        self._begin()
        self.diary.accept(self.beliefs())

    def _begin(self) -> None:
        """Know only what the rule says."""
        rule = self.rule
        self.requests = Rate(
            pinned=_per_s(rule.pin_rpm),
            least=rule.min_rpm / WINDOW_S,
            most=_per_s(rule.max_rpm) or INF,
            spared=rule.remaining_threshold,
        )
        if rule.hint_rpm is not None:
            self.requests.ceiling.begin_at(rule.hint_rpm / WINDOW_S)
        self.tokens: Rate | None = None  # until somebody names that unit
        hint_tpm = rule.pin_tpm or rule.hint_tpm
        if hint_tpm is not None:
            self._tokens(1.0).ceiling.begin_at(hint_tpm / WINDOW_S)
        self.cap = Cap(
            least=rule.min_concurrency,
            most=rule.max_concurrency or INF,
            pinned=rule.pin_concurrency,
        )
        if rule.hint_concurrency is not None:
            self.cap.begin_at(rule.hint_concurrency)
        self.hold = Hold()
        self.guard = Guard()
        self.history = History()
        self._accepted = Peak()  # the most others in flight with which a call was accepted
        self._bound = False  # the cap is what holds queued work back

    def _tokens(self, piece: float) -> Rate:
        if self.tokens is None:
            rule = self.rule
            self.tokens = Rate(
                max(piece, 1.0), pinned=_per_s(rule.pin_tpm), spared=rule.remaining_threshold
            )
        return self.tokens

    def _units(self, cost: float) -> tuple[tuple[Rate, float], ...]:
        """Each unit that is limited, and what a call of this cost takes of it."""
        if self.tokens is None:
            return ((self.requests, 1.0),)
        return (self.requests, 1.0), (self.tokens, cost)

    def beliefs(self) -> Beliefs:
        rpm, tokens = self.requests.believed, self.tokens
        tpm = None if tokens is None else tokens.believed
        shape = self.requests.ceiling.shape
        return Beliefs(
            rpm=None if rpm is None else rpm * WINDOW_S,
            tpm=None if tpm is None else tpm * WINDOW_S,
            concurrency=self.cap.believed,
            limit_kind=None if shape is Shape.UNKNOWN else shape.value,
        )

    def dump(self) -> dict[str, Any] | None:
        parts = {
            "requests": self.requests.ceiling.dump(),
            "tokens": None if self.tokens is None else self.tokens.ceiling.dump(),
            "piece": None if self.tokens is None else float(f"{self.tokens.piece:.2g}"),
            "cap": self.cap.dump(),
            "hold": self.hold.dump(),
            "history": self.history.dump(),
        }
        return {name: part for name, part in parts.items() if part is not None} or None

    def load(self, state: dict[str, Any]) -> None:
        if "requests" in state:
            self.requests.ceiling.load(state["requests"])
        if "tokens" in state:
            self._tokens(float(state.get("piece", 1.0))).ceiling.load(state["tokens"])
        if "cap" in state:
            self.cap.load(state["cap"])
        if "hold" in state:
            self.hold.load(state["hold"])
        if "history" in state:
            self.history.load(state["history"])
        self.diary.accept(self.beliefs())


def _per_s(per_minute: float | None) -> float | None:
    return None if per_minute is None else per_minute / WINDOW_S
