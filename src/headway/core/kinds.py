"""Kinds of gates that many upstreams share, and which of them a ticket needs.

To add a kind of gate: write a class like the ones below in a file of its own and add one line to
`KINDS`. Its gates then have pools, paces, pauses, closures, policies and explanations like all
others. (Upstreams, tenants at them, and keys are part of the structure; see `lines`.)
"""

from __future__ import annotations

from typing import Protocol

from headway.core.ticket import Ticket

EVERYTHING = "everything"
TYPE = "type"
LANE = "lane"
TOOL = "tool"
UPSTREAM = "upstream"
TENANT = "tenant"
KEY = "key"


class GateKind(Protocol):
    name: str

    def names(self, ticket: Ticket) -> tuple[str, ...]:
        """The gates of this kind that the ticket must pass. May read only what was asked for."""


class Everything:
    name = EVERYTHING

    def names(self, ticket: Ticket) -> tuple[str, ...]:
        return ("",)


class Type:
    name = TYPE

    def names(self, ticket: Ticket) -> tuple[str, ...]:
        return (ticket.type,)


class Lane:
    name = LANE

    def names(self, ticket: Ticket) -> tuple[str, ...]:
        return (ticket.lane,)


class Tool:
    name = TOOL

    def names(self, ticket: Ticket) -> tuple[str, ...]:
        return ticket.tools


KINDS: tuple[GateKind, ...] = (
    Everything(),
    Type(),
    Lane(),
    Tool(),
)
