"""What is different between two runs, as facts that a page can say in its own language, and as
sentences. A difference that nobody would notice is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headway.simulation.report import Report
from headway.simulation.wording import duration, percent, whole

NOTICED = 0.02  # of the larger of both
NOTICED_S = 1.0
CUT_SHORT = frozenset({"calls", "asked"})


class Fact(msgspec.Struct):
    """One figure of both. `better`: whether the second one is; None: nobody can say."""

    what: str
    before: float | None
    after: float | None
    better: bool | None


def facts(one: Report, other: Report) -> list[Fact]:
    """What is worth saying about the second beside the first, in the order of its weight. Runs that
    saw different times cannot be compared.
    """
    if CUT_SHORT & {one.stopped, other.stopped}:
        return []
    found = [
        _fact("finish", one.finished_after_s, other.finished_after_s, less=True, least=NOTICED_S),
        _fact(
            "refused", one.refused + one.banned, other.refused + other.banned, less=True, least=1
        ),
        _fact("banned", one.banned, other.banned, less=True, least=1),
        _fact("completed", one.completed, other.completed, less=False, least=1),
        _fact("left", one.left, other.left, less=True, least=1),
        _fact("p50", one.waits.p50_s, other.waits.p50_s, less=True, least=NOTICED_S),
        _fact("p95", one.waits.p95_s, other.waits.p95_s, less=True, least=NOTICED_S),
        _fact("longest", one.waits.longest_s, other.waits.longest_s, less=True, least=NOTICED_S),
        _fact("use", one.use, other.use, less=False, least=0.01),
        _fact("fairness", one.fairness, other.fairness, less=False, least=0.01),
        _fact("online_failed", one.online_failed, other.online_failed, less=True, least=1),
        _fact("turned_away", one.turned_away, other.turned_away, less=True, least=1),
    ]
    return [each for each in found if each is not None]


def _fact(
    what: str, before: float | None, after: float | None, *, less: bool, least: float
) -> Fact | None:
    if before is None or after is None:
        ends = what == "finish" and before != after
        return Fact(what, before, after, before is None) if ends else None
    noticed = max(least, NOTICED * max(abs(before), abs(after)))
    if abs(before - after) < noticed:
        return None
    return Fact(what, before, after, (after < before) if less else (after > before))


def verdict(one: Report, other: Report) -> list[str]:
    """Sentences about the second: how much sooner, at which price, then the rest."""
    name = other.name
    found = {each.what: each for each in facts(one, other)}
    if CUT_SHORT & {one.stopped, other.stopped}:
        return ["They were stopped at different times, so they cannot be compared."]
    if not found:
        return [f"{name} does the same as {one.name}: no figure differs by more than 2 %."]
    lines: list[str] = []
    finish, refused = found.pop("finish", None), found.pop("refused", None)
    instead = ""
    if refused is not None:
        many = count(int(refused.after or 0), "refusal")
        instead = f"{many} instead of {whole(refused.before or 0)}"
    if finish is not None:
        lines.append(f"{name} {_finish(finish)}{', with ' + instead if instead else ''}.")
    elif instead:
        lines.append(f"{name} gets {instead}.")
    for what, fact in found.items():
        lines.append(_SAID[what](name, fact))
    return lines


def count(many: int, noun: str) -> str:
    return f"{whole(many)} {noun if many == 1 else noun + 's'}"


def _finish(fact: Fact) -> str:
    if fact.before is None:
        return f"finishes after {duration(fact.after or 0.0)}, while the other does not finish"
    if fact.after is None:
        return f"does not finish, while the other does after {duration(fact.before)}"
    change = abs(fact.after - fact.before) / max(fact.before, 1e-9)
    word = "sooner" if fact.after < fact.before else "later"
    return (
        f"finishes {percent(change)} {word} ({duration(fact.after)}, not {duration(fact.before)})"
    )


def _times(noun: str) -> Callable[[str, Fact], str]:
    def say(name: str, fact: Fact) -> str:
        after, before = fact.after or 0.0, fact.before or 0.0
        word = "shorter" if after < before else "longer"
        return f"{noun} is {word} with {name}: {duration(after)} instead of {duration(before)}."

    return say


def _share(noun: str) -> Callable[[str, Fact], str]:
    def say(name: str, fact: Fact) -> str:
        before, after = fact.before or 0.0, fact.after or 0.0
        word = "more" if after > before else "less"
        return f"{name} uses {word} of {noun}: {percent(after)} instead of {percent(before)}."

    return say


def _many(noun: str) -> Callable[[str, Fact], str]:
    def say(name: str, fact: Fact) -> str:
        return f"{name}: {whole(fact.after or 0)} {noun} instead of {whole(fact.before or 0)}."

    return say


def _fair(name: str, fact: Fact) -> str:
    word = "fairer" if fact.better else "less fair"
    return f"{name} is {word}: an index of {fact.after:.2f} instead of {fact.before:.2f}."


_SAID: dict[str, Callable[[str, Fact], str]] = {
    "banned": _many("calls while it was banned"),
    "completed": _many("completed"),
    "left": _many("not done"),
    "p50": _times("The median wait"),
    "p95": _times("The wait at 95 %"),
    "longest": _times("The longest wait"),
    "use": _share("the limit while work waits"),
    "fairness": _fair,
    "online_failed": _many("online calls that fail"),
    "turned_away": _many("turned away by Headway"),
}


def comparison(reports: list[Report]) -> dict[str, Any]:
    """All runs, and what each of the others is beside the first."""
    first = reports[0]
    return {
        "runs": [each.plain() for each in reports],
        "facts": [
            [msgspec.to_builtins(fact) for fact in facts(first, other)] for other in reports[1:]
        ],
        "verdict": [line for other in reports[1:] for line in verdict(first, other)],
    }
