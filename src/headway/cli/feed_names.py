"""Short names for what has long ids: as they are shown, and what people type for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from headway.cli.client import CommandFailed

LONG = 12  # characters of an id that is shown as it is
BEGINNING, ENDING = 8, 5  # characters of one that is not, at least
TYPED = 4  # characters of an id that somebody types, at least
NAMED = 3  # of those that could be meant


def short_names(ids: Iterable[str]) -> dict[str, str]:
    """For each id the shortest beginning or ending that no other has; ids of one import differ only
    in how they end.
    """
    everything = list(ids)
    seen: Counter[str] = Counter()
    for id in everything:
        seen.update({id, *_parts(id)})
    return {
        id: next((each for each in _parts(id) if seen[each] == 1), id) if len(id) > LONG else id
        for id in everything
    }


def _parts(id: str) -> list[str]:
    parts = [id[:many] for many in range(BEGINNING, LONG + 1)]
    parts += [id[-many:] for many in range(ENDING, LONG + 1)]
    return [each for each in parts if not each.startswith("-")]  # which would be an option


def the_one(
    noun: str, said: str, found: Sequence[dict[str, Any]], names: Sequence[str]
) -> dict[str, Any]:
    """What is meant by its id, part of that, or one of these names. CommandFailed: none, or several
    of them.
    """
    wanted = said.strip()
    for each in found:
        if each["id"] == wanted:
            return each
    folded = wanted.casefold()
    named = [each for each in found if folded in (str(each[name]).casefold() for name in names)]
    meant = named or [each for each in found if _is_part(wanted, each["id"])]
    if not meant:
        raise CommandFailed(
            f"there is no {noun} {said!r}; `headway feeds{_group(noun)}` lists them"
        )
    if len(meant) > 1:
        listed = ", ".join(f"{each['id']} ({each[names[0]]})" for each in meant[:NAMED])
        more = f" and {len(meant) - NAMED} more" if len(meant) > NAMED else ""
        raise CommandFailed(f"{said!r} could be {listed}{more}; write more of its id")
    return meant[0]


def _is_part(said: str, id: str) -> bool:
    return len(said) >= TYPED and (id.startswith(said) or id.endswith(said))


def _group(noun: str) -> str:
    return "" if noun == "feed" else f" {noun}s"
