"""The states of a job and every legal way between them, as data. Nothing else is legal.

pending ──due──▶ queued ──grant──▶ running ──ok──▶ completed
   ▲                                  │  ├──fatal, exhausted, …──▶ failed
   └── retry, pushback, lost, return ─┘  └──cancel──▶ cancelled
pending, queued, running ──pause──▶ paused ──resume──▶ pending
"""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    __hash__ = str.__hash__  # Enum's own is written in Python, and these are hashed at every step

    PENDING = "pending"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Event(StrEnum):
    __hash__ = str.__hash__

    DUE = "due"
    GRANT = "grant"
    OK = "ok"
    RETRY = "retry"
    PUSHBACK = "pushback"
    LOST = "lost"
    RETURN = "return"
    FATAL = "fatal"
    EXHAUSTED = "exhausted"
    LOST_TOO_OFTEN = "lost_too_often"
    PUSHED_BACK_TOO_LONG = "pushed_back_too_long"
    DEADLINE = "deadline"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    POSTPONE = "postpone"
    RETRY_BY_OPERATOR = "retry_by_operator"


class IllegalTransition(Exception):
    """This state does not allow that event. Nothing was changed."""

    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"a {state.value} job cannot take the event '{event.value}'")
        self.state = state
        self.event = event


TERMINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED})

TRANSITIONS: dict[State, dict[Event, State]] = {
    State.PENDING: {
        Event.DUE: State.QUEUED,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.CANCELLED,
        Event.DEADLINE: State.FAILED,
    },
    State.QUEUED: {
        Event.GRANT: State.RUNNING,
        Event.POSTPONE: State.PENDING,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.CANCELLED,
        Event.DEADLINE: State.FAILED,
    },
    State.RUNNING: {
        Event.OK: State.COMPLETED,
        Event.RETRY: State.PENDING,
        Event.PUSHBACK: State.PENDING,
        Event.LOST: State.PENDING,
        Event.RETURN: State.PENDING,
        Event.FATAL: State.FAILED,
        Event.EXHAUSTED: State.FAILED,
        Event.LOST_TOO_OFTEN: State.FAILED,
        Event.PUSHED_BACK_TOO_LONG: State.FAILED,
        Event.DEADLINE: State.FAILED,
        Event.PAUSE: State.PAUSED,
        Event.CANCEL: State.CANCELLED,
    },
    State.PAUSED: {
        Event.RESUME: State.PENDING,
        Event.CANCEL: State.CANCELLED,
        Event.DEADLINE: State.FAILED,
    },
    State.COMPLETED: {},
    # Terminal states are final; only an operator may ask for a new round of attempts.
    State.FAILED: {Event.RETRY_BY_OPERATOR: State.PENDING},
    State.CANCELLED: {Event.RETRY_BY_OPERATOR: State.PENDING},
}


def after(state: State, event: Event) -> State:
    """The state that follows, or IllegalTransition."""
    try:
        return TRANSITIONS[state][event]
    except KeyError:
        raise IllegalTransition(state, event) from None
