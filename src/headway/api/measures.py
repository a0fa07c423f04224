"""Where the metrics come from that are asked for at each scrape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headway.api.metrics import GateReading, SlotsReading
from headway.engine.inspection import known_names, picture
from headway.engine.slots.looking import counts, overshoot, tally

if TYPE_CHECKING:
    from headway.api.site import Site

INF = float("inf")
KINDS = ("everything", "lane", "upstream", "tool", "type")
MOST = 2_000  # gates that are shown
UNITS = ("rpm", "tpm")
AT_ONCE = 200  # of them that are looked at in one turn


class Measures:
    def __init__(self, site: Site) -> None:
        self._site = site

    def jobs(self) -> Iterable[tuple[str, str, int]]:
        return self._site.tally(None)

    def gates(self) -> Iterable[GateReading]:
        """Those that are there, and those that are declared by name."""
        site = self._site
        if site.standing is not None:
            return []  # those are the leader's
        brain = site.engine.brain
        there = site.wait(
            site.engine.ask(
                lambda _: [(kind, name) for kind in KINDS for name in known_names(brain, kind)]
            )
        )
        declared = [each for each in site.app.settings.names() if "*" not in each[1]]
        names = [each for each in dict.fromkeys([*declared, *there]) if each[0] in KINDS][:MOST]
        readings: list[GateReading] = []
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]

            def look(now: float, some: list[tuple[str, str]] = some) -> list[GateReading]:
                return [
                    _reading(picture(brain, kind, name, now, whole=False), now)
                    for kind, name in some
                ]

            readings += site.wait(site.engine.ask(look))
        return readings

    def slots(self) -> SlotsReading:
        site = self._site
        if site.standing is not None:
            return SlotsReading({}, {}, {})
        desk = site.engine.brain.slots
        by_kind, events, over = site.wait(
            site.engine.ask(lambda _: (tally(desk), counts(desk), overshoot(desk)))
        )
        sessions = {
            (kind, state): count for kind, states in by_kind.items()
            for state, count in states.items()
        }  # fmt: skip
        return SlotsReading(sessions, events, over)

    def sse_clients(self) -> int:
        return self._site.hub.clients

    def takers_waiting(self) -> int:
        return self._site.takers

    def last_event(self) -> int:
        return self._site.store.last_event()

    def store_up(self) -> bool:
        return not self._site.app.trouble


def _reading(seen: dict[str, Any], now: float) -> GateReading:
    if seen["paused"]:
        closed_s = INF
    else:
        opens_at = seen["opens_at"]
        forever = seen["reason"] == "closed" and opens_at is None
        closed_s = INF if forever else max(0.0, (opens_at or now) - now)
    limits = {} if seen["limit"] is None else {"declared": float(seen["limit"])}
    rates: dict[str, float] = {}
    for limit in seen["limits"]:
        believed = dict(limit.get("believed", {}))
        if believed.get("concurrency") is not None:
            limits["learned"] = believed["concurrency"]
        rates |= {unit: believed[unit] for unit in UNITS if believed.get(unit) is not None}
    return GateReading(seen["kind"], seen["name"], seen["running"], closed_s, limits, rates)
