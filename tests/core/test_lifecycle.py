"""The states of a job: what is legal, that nothing else is, and that refusals change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from headway.core import Core, Event, IllegalTransition, Outcome, State, Ticket, UnknownTicket
from headway.core.lifecycle import TERMINAL, after
from tests.core.kit import X, ask, core_with, end, going, start

# Written out from the design, not derived from the code: state, event, state that follows.
TABLE = """
pending    due                   queued
pending    pause                 paused
pending    cancel                cancelled
pending    deadline              failed

queued     grant                 running
queued     postpone              pending
queued     pause                 paused
queued     cancel                cancelled
queued     deadline              failed

running    ok                    completed
running    retry                 pending
running    pushback              pending
running    lost                  pending
running    return                pending
running    fatal                 failed
running    exhausted             failed
running    lost_too_often        failed
running    pushed_back_too_long  failed
running    deadline              failed
running    pause                 paused
running    cancel                cancelled

paused     resume                pending
paused     cancel                cancelled
paused     deadline              failed

failed     retry_by_operator     pending
cancelled  retry_by_operator     pending
"""

LEGAL = {
    (State(state), Event(event)): State(follows)
    for state, event, follows in (line.split() for line in TABLE.splitlines() if line)
}
ENDED = [State.COMPLETED, State.FAILED, State.CANCELLED]


# --- the table


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_every_pair_is_legal_exactly_if_the_table_says_so(state: State, event: Event) -> None:
    if (state, event) in LEGAL:
        assert after(state, event) is LEGAL[state, event]
    else:
        with pytest.raises(IllegalTransition) as caught:
            after(state, event)
        assert (caught.value.state, caught.value.event) == (state, event)
        assert state.value in str(caught.value)
        assert event.value in str(caught.value)


def test_exactly_three_states_are_terminal() -> None:
    assert frozenset(ENDED) == TERMINAL


@pytest.mark.parametrize("state", ENDED)
def test_only_an_operator_leads_out_of_a_terminal_state(state: State) -> None:
    ways_out = {event for source, event in LEGAL if source is state}
    assert ways_out <= {Event.RETRY_BY_OPERATOR}


def test_what_is_completed_stays_completed() -> None:
    assert not any(source is State.COMPLETED for source, _ in LEGAL)


# --- the same through the core


def in_state(core: Core, state: State) -> Ticket:
    """A ticket that came to this state in the usual way, at some time before 10."""
    if state is State.PENDING:
        return ask(core, "t", not_before=100.0)
    if state is State.QUEUED:
        core.gates.pause("upstream", "x.com", 0.0)
        return ask(core, "t")
    if state is State.PAUSED:
        ticket = ask(core, "t")
        core.pause("t", 1.0)
        return ticket
    if state is State.CANCELLED:
        ticket = ask(core, "t")
        core.cancel("t", 1.0)
        return ticket
    ticket = start(core, "t")
    if state is State.COMPLETED:
        end(core, ticket, 2.0)
    elif state is State.FAILED:
        end(core, ticket, 2.0, Outcome.failed(fatal=True))
    return ticket


def do(core: Core, operation: str, ticket: Ticket) -> Any:
    if operation == "retry":
        return core.retry(ticket, 10.0)
    if operation == "postpone":
        return core.reschedule(ticket.id, 500.0, 10.0)
    return getattr(core, operation)(ticket.id, 10.0)


def everything_about(core: Core, ticket: Ticket) -> tuple[object, ...]:
    fields = tuple(getattr(ticket, name) for name in Ticket.__slots__)
    return fields, tuple(core.changes), tuple(core.stops), dict(core.tickets)


# What each operation leads to; states that are not named refuse it.
OPERATIONS = {
    "cancel": {
        State.PENDING: State.CANCELLED,
        State.QUEUED: State.CANCELLED,
        State.PAUSED: State.CANCELLED,
        State.RUNNING: State.RUNNING,  # asked to stop
    },
    "pause": {
        State.PENDING: State.PAUSED,
        State.QUEUED: State.PAUSED,
        State.RUNNING: State.RUNNING,  # asked to stop
    },
    "resume": {State.PAUSED: State.QUEUED},
    "retry": {State.FAILED: State.QUEUED, State.CANCELLED: State.QUEUED},
    "postpone": {
        State.PENDING: State.PENDING,
        State.QUEUED: State.PENDING,
        State.PAUSED: State.PAUSED,
    },
}
ALLOWED = [(op, state, then) for op, states in OPERATIONS.items() for state, then in states.items()]
REFUSED = [(op, state) for op in OPERATIONS for state in State if state not in OPERATIONS[op]]


@pytest.mark.parametrize(("operation", "state", "then"), ALLOWED)
def test_an_operation_that_a_state_allows(operation: str, state: State, then: State) -> None:
    core = core_with()
    ticket = in_state(core, state)
    assert ticket.state is state
    do(core, operation, ticket)
    assert ticket.state is then


@pytest.mark.parametrize(("operation", "state"), REFUSED)
def test_an_operation_that_a_state_refuses_changes_nothing(operation: str, state: State) -> None:
    core = core_with()
    ticket = in_state(core, state)
    core.advance(10.0)
    before = everything_about(core, ticket)
    # An ended ticket is no longer the core's: only `retry`, which brings it along, can name it.
    gone = state in ENDED and operation != "retry"
    with pytest.raises(UnknownTicket if gone else IllegalTransition):
        do(core, operation, ticket)
    assert everything_about(core, ticket) == before
    assert ticket.state is state


@pytest.mark.parametrize("state", [s for s in State if s is not State.RUNNING])
def test_who_holds_no_permit_cannot_finish(state: State) -> None:
    core = core_with()
    ticket = in_state(core, state)
    core.advance(10.0)
    before = everything_about(core, ticket)
    for fence in (0, 1, 2):
        assert core.finish(ticket.id, fence, Outcome.ok(), 10.0) is None
        assert core.heartbeat(ticket.id, fence, 10.0) is None
    assert everything_about(core, ticket) == before


def test_every_step_of_a_life_is_one_change() -> None:
    core = core_with()
    ticket = ask(core, "t", 0.0, not_before=5.0)
    core.advance(5.0)
    going(core, 6.0)
    end(core, ticket, 7.0)
    told = [(c.before, c.event, c.after, c.at) for c in core.changes]
    assert told == [
        (None, None, State.PENDING, 0.0),
        (State.PENDING, Event.DUE, State.QUEUED, 5.0),
        (State.QUEUED, Event.GRANT, State.RUNNING, 6.0),
        (State.RUNNING, Event.OK, State.COMPLETED, 7.0),
    ]


def test_a_ticket_that_is_due_is_queued_at_once() -> None:
    core = core_with()
    ask(core, "t", 3.0)
    (change,) = core.changes
    assert (change.before, change.event, change.after) == (None, None, State.QUEUED)


def test_a_paused_ticket_that_is_not_due_yet_resumes_as_pending() -> None:
    core = core_with()
    ticket = ask(core, "t", not_before=100.0)
    core.pause("t", 1.0)
    assert core.resume("t", 2.0) is State.PENDING
    core.advance(100.0)
    assert ticket.state is State.QUEUED


def test_a_paused_ticket_does_not_become_due() -> None:
    core = core_with()
    ticket = ask(core, "t", not_before=100.0)
    core.pause("t", 1.0)
    assert going(core, 200.0) == []
    assert ticket.state is State.PAUSED


def test_an_operators_retry_is_a_new_round_with_the_same_id() -> None:
    core = core_with(retry={})
    ticket = start(core, "t")
    end(core, ticket, 1.0, Outcome.failed(fatal=True))
    core.retry(ticket, 2.0)
    assert core.changes[-1].event is Event.RETRY_BY_OPERATOR
    assert core.tickets["t"] is ticket
    assert ticket.tries is None
    assert going(core, 2.0) == ["t"]


def test_an_id_is_open_once() -> None:
    core = core_with()
    ask(core, "t")
    before = list(core.changes)
    with pytest.raises(ValueError, match="unique"):
        core.submit(Ticket("t", upstreams=X), 1.0)
    with pytest.raises(ValueError, match="unique"):
        core.call(Ticket("t", upstreams=X), 1.0)
    assert core.changes == before
    assert going(core, 1.0) == ["t"]


@pytest.mark.parametrize(
    "fields",
    [
        {"weight": 0.0},
        {"weight": float("inf")},
        {"weight": float("nan")},
        {"cost": -1.0},
        {"cost": float("inf")},
        {"ordered": "pass"},
        {"key": "k", "ordered": "sometimes"},
        {"tools": ("ffmpeg", "ffmpeg")},
        {"upstreams": ("x.com", "x.com")},
        {"not_before": float("inf")},
        {"not_before": float("nan")},
        {"deadline": float("nan")},
        {"deadline": 0.0},
        {"priority": 10**9},
    ],
)
def test_a_ticket_that_could_never_work_is_refused_whole(fields: dict[str, Any]) -> None:
    core = core_with()
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        ask(core, "t", 0.0, **fields)
    assert (core.tickets, core.changes) == ({}, [])
    assert ask(core, "t").seq == 1
