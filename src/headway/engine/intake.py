"""What is new in the store: jobs and commands, from any process."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import msgspec

from headway.core import Change, Refused, State, Ticket
from headway.core.lifecycle import TERMINAL
from headway.engine.ledger import Extra
from headway.engine.tickets import FAR, PLAIN, Spec
from headway.errors import StoreError
from headway.store.records import Command, OpenJob, Schedule

if TYPE_CHECKING:
    from headway.engine.brain import Brain

CHUNK = 2_000  # jobs taken in during one turn, so that nobody waits long for a permit

_spec = msgspec.json.Decoder(Spec)


def take_in(brain: Brain, now: float) -> bool:
    """Submit the jobs that came since the last time. False: there were none."""
    rows, brain.mark, orders = brain.insist(lambda: brain.store.load_new(brain.mark, CHUNK))
    brain.orders = brain.orders or orders
    if not rows:
        return False
    if len(rows) == CHUNK:
        brain.news = True
    held = holders(brain, [row.id for row in rows if row.waits])
    over = _just_ended(brain)
    for row in rows:
        if row.id in brain.core.tickets or row.id in over or row.state in TERMINAL:
            continue
        try:
            _submit(brain, row, held.get(row.id), now)
        except (TypeError, ValueError, KeyError) as error:
            _turn_away(brain, row, error, now)
    return True


def _just_ended(brain: Brain) -> set[Hashable]:
    """After a lost session some jobs come again, and these still look open in the store."""
    over = {change.ticket.id for change in brain.core.changes if change.after in TERMINAL}
    under_way = brain.under_way
    if under_way is not None:
        over.update(row[0] for row in under_way.completed)
        over.update(row[0] for row in under_way.ended)
    return over


def _turn_away(brain: Brain, row: OpenJob, error: Exception, now: float) -> None:
    """A row that makes no sense here, from another version or another program: it must not stop
    all the others.
    """
    brain.extras.pop(row.id, None)
    brain.waits.forget(row.id)
    if row.id not in brain.core.tickets:
        brain.core.submit(Ticket(row.id, type=row.type, seq=row.id), now)
    brain.core.cancel(row.id, now, f"this engine cannot take the job: {error}")


def _submit(brain: Brain, row: OpenJob, others: list[int] | None, now: float) -> None:
    wanted = remember(brain, row)
    not_before = None
    if others is not None:
        not_before = hold_back(brain, row, others)
    ticket = brain.tickets.make(row, not_before=not_before)
    if now >= ticket.deadline:  # it came too late already, and must not run
        ticket.not_before, ticket.deadline = FAR, now + 0.001
    _enter(brain, ticket, row, now)
    if not wanted:
        brain.core.cancel(row.id, now, "its schedule has changed")
    elif others is not None and not others:
        brain.waits.forget(row.id)
        brain.release(row.id, now)
    announce(brain, ticket, now)


def announce(brain: Brain, ticket: Ticket, now: float) -> None:
    """Tell whoever made this type that one of its jobs is here."""
    known = brain.registry.types.get(ticket.type)
    if known is not None and known.arrived is not None:
        known.arrived(ticket, now)


def _enter(brain: Brain, ticket: Ticket, row: OpenJob, now: float) -> None:
    try:
        brain.core.submit(ticket, now)
    except Refused:
        # It was accepted when it was stored, so it waits, however many do already.
        brain.core.replay(ticket, State.QUEUED, now, since=now)
        brain.core.changes.append(Change(ticket, None, None, State.QUEUED, now, "", 0))
    if ticket.state == row.state:
        brain.fresh.add(row.id)
    if row.args is not None and row.unique_scope is None:  # nobody can replace it any more
        brain.at_hand.keep(row.id, row.args)


def remember(brain: Brain, row: OpenJob, *, known: bool = False) -> bool:
    """Keep what the core does not know, for the few jobs that need it. False: it is an occurrence
    that its schedule does not want. `known`: the job was taken in before.
    """
    batch = _watched_batch(brain, row)
    if row.spec is None and row.unique_scope is None and row.schedule is None and batch is None:
        return True
    spec = PLAIN if row.spec is None else _spec.decode(row.spec)
    plain = row.unique_scope is None and row.schedule is None and spec.keep_result_s is None
    if plain and batch is None:
        return True
    brain.extras[row.id] = extra = Extra()
    extra.batch = batch
    extra.unique = row.unique_scope
    extra.keep_result_s = spec.keep_result_s
    if row.schedule is None:
        return True
    if known:  # but it may be an old one that an operator retries
        wanted = brain.schedules.jobs.get(row.schedule) == row.id
    else:
        wanted = brain.schedules.arrive(row.schedule, row.id)
    extra.schedule = row.schedule if wanted else None
    return wanted


def _watched_batch(brain: Brain, row: OpenJob) -> int | None:
    if row.batch is None:
        return None
    known = brain.registry.types.get(row.type)
    return None if known is None or known.ended is None else row.batch


def hold_back(brain: Brain, row: OpenJob, others: list[int]) -> float:
    """A job that waits for others is due when they are done."""
    extra = brain.extras.setdefault(row.id, Extra())
    extra.not_before = row.not_before
    brain.waits.add(row.id, others)
    return FAR


def holders(brain: Brain, ids: list[int]) -> dict[int, list[int]]:
    """For each of these jobs, the jobs it must still wait for. One that waits for a job that has
    failed, or was never there, is cancelled as soon as it is in.
    """
    if not ids:
        return {}
    brain.arrive()  # what has just completed must not be waited for
    pairs = brain.insist(lambda: brain.store.waits(ids))
    states = brain.insist(lambda: brain.store.states({other for _, other in pairs}))
    held: dict[int, list[int]] = {number: [] for number in ids}
    for number, other in pairs:
        state = states.get(other) if other < number else None  # nobody follows the future
        if state != State.COMPLETED.value:
            held[number].append(other)
            if state is None or state in TERMINAL:
                brain.broken.append((number, other, state or "is not there"))
    return held


# ---------------------------------------------------------------------- commands


def obey_commands(brain: Brain, now: float) -> None:
    for number, other, state in brain.broken:
        if number in brain.core.tickets:
            brain.waits.forget(number)
            brain.batch.released.append(number)
            brain.core.cancel(number, now, f"job {other}, which it was to follow, {state}")
    brain.broken.clear()
    if not brain.orders:
        return
    brain.arrive()  # those that were obeyed are gone then
    commands = brain.insist(lambda: brain.store.commands(CHUNK))
    brain.orders = False
    if len(commands) == CHUNK:
        brain.news = True
    for command in commands:
        brain.batch.obeyed.append(command.id)
        try:
            with brain.controls.acting(command.who):
                _obey(brain, command, now)
        except StoreError:
            raise
        except Exception as error:  # whatever it is, it must not stop this engine and the next
            subject = f"{command.verb} {command.target}"
            brain.record(now, "command_refused", detail=str(error), subject=subject)


def _obey(brain: Brain, command: Command, now: float) -> None:
    args = msgspec.json.decode(command.args)
    controls = brain.controls
    match command.verb:
        case "cancel" | "pause" | "resume" | "retry" | "pin" | "unpin":
            controls.steer(command.verb, int(command.target), (), now, command.who)
        case "prioritise" | "reschedule":
            controls.steer(command.verb, int(command.target), (args,), now, command.who)
        case "replace":
            not_before, priority = args
            controls.replace(int(command.target), not_before, priority, now)
        case "schedule":
            controls.schedule(msgspec.convert(args, Schedule), now)
        case "unschedule":
            controls.unschedule(command.target, now)
        case "pause_schedule" | "resume_schedule":
            controls.pause_schedule(command.target, command.verb == "pause_schedule", now)
        case "gate":
            controls.gate(args, now)
        case "set":
            kind, _, name = command.target.partition(":")
            controls.set(kind, name, args, now)
        case _:
            raise ValueError(f"this engine knows no command {command.verb!r}; upgrade it")
