"""How sessions stand in line: with a ticket in the core while it makes sense, without one else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway.core import State
from headway.core.change import Refused
from headway.engine.slots.hosts import Hosts
from headway.engine.slots.keeping import Keeping
from headway.engine.slots.session import FAIRQUEUE, Session

if TYPE_CHECKING:
    from headway.engine.brain import Brain


class Standing(Keeping):
    def __init__(self, brain: Brain, hosts: Hosts) -> None:
        super().__init__(brain)
        self.hosts = hosts

    def line_up(self, session: Session, now: float) -> None:
        session.lined_up = True
        lobby = None if session.host is None else session.host.lobby
        if lobby is None:
            self._stand(session, now)
            return
        stepped_in, stepped_out = lobby.enter(session, session.wish.tenant)
        for each in stepped_out:
            self.step_out(each, now)
        for each in stepped_in:
            self._stand(each, now)

    def _stand(self, session: Session, now: float) -> None:
        session.ticket = ticket = session.wish.ticket(session)
        if session.host is not None:
            session.seq = session.seq or session.number  # its limits are the lobby's, and quiet
        if session.seq:  # it stood here before, or might have
            ticket.seq = session.seq
            self.core.replay(ticket, State.QUEUED, now, since=session.created_at)
        else:
            try:
                self.core.submit(ticket, now)
            except (Refused, ValueError, TypeError):
                session.ticket = None
                raise
            session.seq = ticket.seq
        self.brain.look_again = True

    def step_out(self, session: Session, now: float) -> None:
        ticket, session.ticket = session.ticket, None
        if ticket is not None and ticket.state is not State.RUNNING:
            self.core.cancel(session, now)

    def enter_host(self, session: Session, now: float) -> None:
        if session.wish.kind == FAIRQUEUE:
            session.host = host = self.hosts.at(session.wish.upstreams[0])
            for each in host.enter(session, now):
                self._stand(each, now)

    def leave_host(self, session: Session, now: float) -> None:
        session.lined_up = False
        if session.host is not None:
            self.leave_lobby(session, now)
            session.host.leave(session)
            session.host = None

    def leave_lobby(self, session: Session, now: float) -> None:
        """Its place in line is somebody else's."""
        session.lined_up = False
        lobby = None if session.host is None else session.host.lobby
        if lobby is not None:
            for each in lobby.leave(session, session.wish.tenant):
                self._stand(each, now)
