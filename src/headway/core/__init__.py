"""Who may go, and when: pure decisions about tickets, gates and permits.

Standard library only. No clock, no I/O, no threads, no randomness of its own. See
docs/architecture.md for the whole in one page, `core.Core` for the way in.
"""

from headway.core.change import Change, Refusal, Refused, StopOrder, UnknownTicket
from headway.core.core import Core
from headway.core.explain import Explanation
from headway.core.lifecycle import Event, IllegalTransition, State
from headway.core.limits import BreakerRule, PaceRule, QuietRule
from headway.core.outcome import Kind, Outcome, Scope
from headway.core.permit import Permit
from headway.core.policy import GatePolicy, Policies, PushbackRule
from headway.core.retry import RetryPolicy
from headway.core.ticket import Stop, Ticket, Traffic

__all__ = [
    "BreakerRule",
    "Change",
    "Core",
    "Event",
    "Explanation",
    "GatePolicy",
    "IllegalTransition",
    "Kind",
    "Outcome",
    "PaceRule",
    "Permit",
    "Policies",
    "PushbackRule",
    "QuietRule",
    "Refusal",
    "Refused",
    "RetryPolicy",
    "Scope",
    "State",
    "Stop",
    "StopOrder",
    "Ticket",
    "Traffic",
    "UnknownTicket",
]
