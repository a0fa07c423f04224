"""Slots for clients outside: sessions that wait, hold and end, on the same core as all jobs.

`desk.SlotDesk` is the way in. `session` is one client's wish and what became of it, `lobby` says
who stands in line when only so many may, `hosts` where the settings of a host come from, `keeping`
what is stored and what a restart takes back.
"""

from headway.engine.slots.desk import SlotDesk
from headway.engine.slots.session import (
    FAIRQUEUE,
    LEASE,
    OWN,
    Answer,
    Phase,
    Session,
    Waiter,
    Wish,
)
from headway.engine.slots.terms import Terms, Weighting

__all__ = [
    "FAIRQUEUE",
    "LEASE",
    "OWN",
    "Answer",
    "Phase",
    "Session",
    "SlotDesk",
    "Terms",
    "Waiter",
    "Weighting",
    "Wish",
]
