"""When a job that was claimed may begin.

Admission spaces permits, but a broker delays messages unevenly: two that were let go a second apart
may arrive together. So claims have a pace of their own, by the rule of each paced gate that the
permit holds, and a worker waits as long as it is told.

A worker cannot begin at the exact moment it is told, since the answer takes a while. It promises to
begin within `slack_s` after that moment, or to ask again; the next one is told to come so much
later. Hence two of them never begin closer than the pace, however long answers take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.core import Permit
from headway.core.gate import Gate
from headway.core.limits import Pace, PaceRule

INF = float("inf")
MAX_WAIT_S = 10.0  # a job that could not begin within this time is let go again later instead
UNSURE_S = 5.0  # after a restart: what began shortly before it is not known any more
MAX_KEPT = 10_000

Key = tuple[str, str, str]


def longest_wait_s(within_s: float) -> float:
    """For who is ended within this time, begun or not: half of it is for the body."""
    return min(MAX_WAIT_S, within_s / 2)


class Starts:
    def __init__(self) -> None:
        self._due_at: dict[Key, float] = {}
        self._booked: dict[int, list[tuple[Key, float, float]]] = {}  # by fence
        self._since = -INF  # before this nothing is known

    def restarted(self, gates: Iterable[Gate], held: Iterable[Permit], now: float) -> None:
        """As if somebody had begun just now wherever that is possible, and somebody who was told to
        wait begins as late as he may.
        """
        self._since = now
        self._due_at.clear()
        self._booked.clear()
        for gate in gates:
            for key, rule, pace in _paces(gate):
                if pace.due_at > now:
                    self._due_at[key] = now + rule.interval_s * rule.burst
        for permit in held:
            for gate in permit.gates:
                for key, rule, _ in _paces(gate):
                    self._due_at[key] = now + MAX_WAIT_S + rule.interval_s * rule.burst

    def next_at(
        self, permit: Permit, slack_s: float, now: float, most_s: float = MAX_WAIT_S
    ) -> float | None:
        """When this one may begin, which is booked; infinite: it would wait longer than `most_s`,
        and nothing is booked. None: nothing is paced here. Who asks again has not begun, and gives
        back what was booked for him, unless others have booked after him.
        """
        for key, before, after in self._booked.pop(permit.fence, ()):
            if self._due_at.get(key) == after:
                self._due_at[key] = before
        paced = [each for gate in permit.gates for each in _paces(gate)]
        if not paced:
            return None
        at = now
        for key, rule, _ in paced:
            at = max(at, self._due(key, rule) - rule.interval_s * (rule.burst - 1))
        if at - now > most_s:
            return INF
        booked = []
        for key, rule, _ in paced:
            before = self._due(key, rule)
            gap_s = rule.interval_s * (permit.ticket.cost if rule.by_cost else 1.0)
            after = self._due_at[key] = max(before, at) + gap_s + slack_s
            booked.append((key, before, after))
        self._booked[permit.fence] = booked
        if len(self._due_at) > MAX_KEPT:
            self._forget(now)
        return at

    def ended(self, fence: int) -> None:
        self._booked.pop(fence, None)

    def _due(self, key: Key, rule: PaceRule) -> float:
        due_at = self._due_at.get(key)
        if due_at is not None:
            return due_at
        return self._since + min(rule.interval_s, UNSURE_S) * rule.burst

    def _forget(self, now: float) -> None:
        self._due_at = {key: at for key, at in self._due_at.items() if at > now}


def _paces(gate: Gate) -> Iterator[tuple[Key, PaceRule, Pace]]:
    for limit in gate.limits:
        if isinstance(limit, Pace):
            shares = getattr(gate, "shares", None)  # of a tenant's account: whose it is
            yield (gate.kind, gate.name, "" if shares is None else shares.name), limit.rule, limit
