"""The hosts that feeds are at. Each keeps a pace, whoever asks there and for whatever. All of this
happens in the brain's turn.
"""

from __future__ import annotations

from headway.apps.feeds.tables import APP
from headway.engine.brain import Brain

PACE = {"every": "1s", "jitter": 0.2}  # where nobody has said anything else
GUEST_S = 86_400.0
MOST_GUESTS = 10_000


class HostPaces:
    def __init__(self) -> None:
        self._brain: Brain  # from the moment that an engine is about to start
        self._sources: dict[str, int] = {}  # how many are there
        # Other hosts that were asked, and when. Who was asked last comes last.
        self._guests: dict[str, float] = {}

    def meet(self, brain: Brain) -> None:
        self._brain = brain
        self._sources = {}
        self._guests = {}

    def count(self, host: str, more: int, now: float) -> None:
        """Hosts of feeds keep a pace for as long as there are any, and for a day after that."""
        before = self._sources.get(host, 0)
        self._sources[host] = before + more
        if not before:
            self._brain.policies.hosts.give(host, PACE, now, by=APP)
        elif not before + more:
            del self._sources[host]
            self._welcome(host, now)  # it was asked a moment ago, perhaps

    def lend(self, host: str, now: float) -> None:
        """Somebody is led to a host that no source is at: it has the same pace, for a day."""
        if host not in self._guests and host not in self._sources:
            self._brain.policies.hosts.give(host, PACE, now, by=APP)
        self._welcome(host, now)

    def _welcome(self, host: str, now: float) -> None:
        self._guests.pop(host, None)
        self._guests[host] = now
        self.forget_guests(now)

    def forget_guests(self, now: float) -> None:
        """Those who were not asked for a day, and those who are too many."""
        while self._guests:
            host, at = next(iter(self._guests.items()))
            if now - at <= GUEST_S and len(self._guests) <= MOST_GUESTS:
                return
            del self._guests[host]
            if host not in self._sources:
                self._brain.policies.hosts.take_back(host, now, by=APP)
