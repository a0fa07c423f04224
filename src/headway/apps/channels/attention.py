"""What needs attention at the channels: keys, and budgets. From memory, and from any thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headway.api.attention import Attention, Level, bundled, on_the_clock
from headway.apps.channels.directory import KEY_REFUSALS, UPSTREAM, Directory, Entry
from headway.apps.channels.money.budgets import Budgets, in_words, span_of
from headway.engine.tickets import FAR

NEARLY = 0.9  # of a budget


def attention(
    directory: Directory, budgets: Budgets, tenant: str | None, now: float
) -> Iterator[Attention]:
    if tenant is None:
        yield from _keys(directory, now)
    tenants = budgets.tenants() if tenant is None else [tenant]
    spent = [item for each in tenants for item in _budgets(budgets, each, now)]
    for kind, many_kind, what in (
        ("budget_used_up", "budgets_used_up", "used up"),
        ("budget_low", "budgets_low", "nearly used up"),
    ):
        some = [item for item in spent if item.kind == kind]

        def say(many: int, names: str, what: str = what) -> str:
            return f"the budgets of {many} tenants are {what}: {names}"

        yield from bundled(many_kind, some, say)


def _keys(directory: Directory, now: float) -> Iterator[Attention]:
    found = [item for entry in directory.entries.values() for item in _key(directory, entry, now)]
    for kind, many_kind, what in (
        ("channel_key_refused", "channels_key_refused", "are refused by their providers"),
        ("channel_key_unreadable", "channels_key_unreadable", "cannot be read here"),
        ("channel_no_key", "channels_no_key", "are missing"),
    ):
        some = [item for item in found if item.kind == kind]

        def say(many: int, names: str, what: str = what) -> str:
            return f"the keys of {many} channels {what}: {names}"

        yield from bundled(many_kind, some, say)


def _key(directory: Directory, entry: Entry, now: float) -> Iterable[Attention]:
    code = entry.channel.code
    about, values = ("channel", code), {"code": code}
    if not entry.channel.enabled:
        return
    if entry.trouble:
        yield Attention(
            "channel_key_unreadable", Level.BAD, about,
            f"the key of channel {code} cannot be read: {entry.trouble}",
            values | {"why": entry.trouble},
        )  # fmt: skip
    elif entry.sealed_key is None:
        yield Attention(
            "channel_no_key", Level.INFO, about,
            f"channel {code} has no key; set one unless its provider asks for none", values,
        )  # fmt: skip
    gate = directory.brain.core.admission.atlas.gates.get((UPSTREAM, code))
    if gate is None:
        return
    why, until = gate.door.closed_why, gate.door.closed_until
    if until > now and why.startswith(KEY_REFUSALS):
        yield Attention(
            "channel_key_refused", Level.BAD, about,
            f"the provider of channel {code} refuses its key ({why}); set another one",
            values | {"why": why, "status": int(why[:3])},
            since=gate.door.closed_since, until=until,
        )  # fmt: skip


def _budgets(budgets: Budgets, tenant: str, now: float) -> Iterator[Attention]:
    for budget, spent_nano in budgets.spent(tenant, now):
        if spent_nano < NEARLY * budget.amount_nano:
            continue
        used_up = spent_nano >= budget.amount_nano
        ends_at = span_of(budget.period, now)[1]
        until = ends_at if ends_at < FAR else None
        percent = int(100 * spent_nano / budget.amount_nano) if budget.amount_nano else 100
        name = tenant or "-"
        how = "is used up" if used_up else f"is used up to {percent} %"
        ends = f" {on_the_clock(until)}" if used_up and until is not None else ""
        yield Attention(
            "budget_used_up" if used_up else "budget_low", Level.WARN, ("budget", name),
            f"the budget of {name}, {in_words(budget, now)}, {how}"
            + (f"; its calls wait{ends}" if used_up else ""),
            {"tenant": tenant, "period": budget.period, "currency": budget.currency,
             "percent": percent},
            until=until,
        )  # fmt: skip
