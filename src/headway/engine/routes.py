"""Names that stand for several upstreams: a job names what it needs, and who serves that may change
while it waits.

`model:large` may lead to three channels today and to two tomorrow. Jobs are stored with the name;
their tickets stand at the upstreams behind it, and move over when those change.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from headway.core.kinds import UPSTREAM
from headway.core.lifecycle import State
from headway.core.ticket import Ticket
from headway.engine.tickets import names_text

if TYPE_CHECKING:
    from headway.engine.brain import Brain

INF = float("inf")
AT_ONCE = 500  # tickets that move over in one turn, so that nobody waits long
Names = tuple[str, ...]


class Routes:
    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self._leads: dict[str, Names] = {}
        self._routed: dict[str, tuple[Names, Names]] = {}  # what jobs say, and where they stand
        self._moving: deque[tuple[Ticket, Names]] = deque()
        self._afterwards: list[Callable[[float], None]] = []
        self._stand_for: dict[str, str] = {}  # how such names begin, and what to say of the rest
        brain.tickets.route = self._route

    def lead(self, name: str, upstreams: Names, now: float, *, why: str = "") -> None:
        """From now on this name stands for these upstreams. For none: whoever named it waits, and
        is told why.
        """
        known = self._leads.get(name)
        self._leads[name] = upstreams
        gates = self._brain.core.gates
        if upstreams:
            gates.open(UPSTREAM, name, now)
        else:
            gates.close(UPSTREAM, name, now, until=INF, why=why or f"nothing serves {name}")
        if known is None:
            self._take_over(name)
        if known != upstreams:
            self._move_over(name)

    def begin(self, leads: dict[str, Names], **stand_for: str) -> None:
        """Before anything is loaded: where the jobs that are stored shall stand. `stand_for`: what
        begins with this word and a colon leads nowhere as long as nobody says more, and this is
        told to those who wait there, before the rest of the name.
        """
        self._leads.update(leads)
        self._stand_for.update(stand_for)

    def _take_over(self, name: str) -> None:
        """Jobs that named it before it led anywhere stand at an upstream of that name."""
        self._brain.tickets.forget_names()
        stands: dict[Names, Names] = {}
        for ticket in self._brain.core.tickets.values():
            names = ticket.upstreams
            if name in names:
                ticket.upstreams = stands.setdefault(names, names)
        for names in stands.values():
            self._routed[str(names_text(names))] = names, names

    def _move_over(self, name: str) -> None:
        moves: dict[int, Names] = {}  # by identity: each text has a tuple of its own
        for text, (names, stand) in list(self._routed.items()):
            if name in names:
                led = self._led(names)
                self._routed[text] = names, led
                moves[id(stand)] = led
        if moves:
            # Some are still on their way to where the name led until now.
            under_way = ((ticket, moves.get(id(to), to)) for ticket, to in self._moving)
            self._moving = deque(under_way)
            for ticket in self._brain.core.tickets.values():
                led_to = moves.get(id(ticket.upstreams))
                if led_to is not None:
                    self._moving.append((ticket, led_to))
            self._brain.look_again = True

    def afterwards(self, call: Callable[[float], None], now: float) -> None:
        """Do this when all tickets stand where their names lead to: at once, or in a later turn."""
        self._afterwards.append(call)
        if not self._moving:
            self._arrived(now)

    def _arrived(self, now: float) -> None:
        calls, self._afterwards = self._afterwards, []
        for call in calls:
            call(now)

    def go_on(self, now: float) -> bool:
        """Let some more tickets move over. True: there are others."""
        if not self._moving:
            return False
        core = self._brain.core
        for _ in range(min(AT_ONCE, len(self._moving))):
            ticket, upstreams = self._moving.popleft()
            if core.tickets.get(ticket.id) is ticket:
                core.reroute(ticket.id, upstreams, now)
                if ticket.state is State.QUEUED:
                    ticket.passes = 0  # what it was passed over for is not its way any more
        if not self._moving:
            self._arrived(now)
        return bool(self._moving)

    def _route(self, text: str, names: Names) -> Names | None:
        """Where a job stands that names these; None: nothing leads anywhere else."""
        known = self._routed.get(text)
        if known is not None:
            return known[1]
        for name in names:
            self._wait_at(name)
        if not any(name in self._leads for name in names):
            return None
        led = self._led(names)
        self._routed[text] = names, led
        return led

    def _wait_at(self, name: str) -> None:
        """Nobody goes through a name that stands for others and leads to none of them."""
        word, _, rest = name.partition(":")
        if word in self._stand_for and not self._leads.get(name):
            self._leads[name] = ()
            core = self._brain.core
            why = self._stand_for[word] + rest
            core.gates.close(UPSTREAM, name, core.now, until=INF, why=why)

    def _led(self, names: Names) -> Names:
        found: dict[str, None] = {}
        for name in names:
            for upstream in self._leads.get(name) or (name,):
                found[upstream] = None
        return tuple(found)
