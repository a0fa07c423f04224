"""The same action for every job that a search finds or that is named, with a dry run before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.search import OPEN
from headway.core import IllegalTransition, State
from headway.core.change import UnknownTicket
from headway.core.lifecycle import TRANSITIONS, Event
from headway.errors import UnknownJob
from headway.store.records import Query

if TYPE_CHECKING:
    from headway.api.site import Site


def _states_for(event: Event) -> tuple[str, ...]:
    return tuple(state.value for state in State if event in TRANSITIONS[state])


# In which states a job can be asked for it.
ACTIONS = {
    "cancel": _states_for(Event.CANCEL),
    "pause": _states_for(Event.PAUSE),
    "resume": _states_for(Event.RESUME),
    "retry": _states_for(Event.RETRY_BY_OPERATOR),
    "pin": OPEN,
    "unpin": OPEN,
    "prioritise": OPEN,
}
MOST = 100_000  # jobs that one call may touch
CHUNK = 200  # jobs that are touched in one turn of the engine
SAMPLE = 10
MOST_NAMED = 10_000  # jobs that can be named by their numbers, and that the answer names


class Bulk:
    def __init__(self, site: Site, principal: Principal) -> None:
        self._site = site
        self._principal = principal

    def run(
        self, action: str, which: str | Sequence[int], dry_run: bool, expected: int | None,
        priority: int | None,
    ) -> dict[str, Any]:  # fmt: skip
        """`which`: a search, or numbers of jobs."""
        if action not in ACTIONS:
            raise Problem(422, f"{action!r} is no action; known are {', '.join(ACTIONS)}",
                          kind="bad-action")  # fmt: skip
        if (priority is None) == (action == "prioritise"):
            raise Problem(422, "priority goes with the action prioritise", kind="bad-action")
        site = self._site
        query = self._meant(which)
        matched = site.store.count(query)
        fitting = self._fitting(query, action)
        possible = 0 if fitting is None else site.store.count(fitting)
        sample = [] if fitting is None else site.store.jobs(replace(fitting, limit=SAMPLE))
        answer = {
            "action": action, "dry_run": dry_run, "matched": matched, "possible": possible,
            "done": 0, "refused": 0, "sample": site.views(sample), "touched": [],
            "touched_complete": True,
        }  # fmt: skip
        if dry_run:
            return answer
        if expected is not None and expected != matched:
            raise Problem(409, f"{matched} jobs match, not {expected}; look again", kind="changed")
        if possible > MOST:
            raise Problem(422, f"{possible} jobs at once are too many; narrow the search to "
                          f"{MOST}", kind="too-many")  # fmt: skip
        if fitting is not None:
            args = () if priority is None else (priority,)
            touched, answer["refused"] = self._act(action, args, fitting)
            answer |= {"done": len(touched), "touched": touched[:MOST_NAMED],
                       "touched_complete": len(touched) <= MOST_NAMED}  # fmt: skip
        return answer

    def _meant(self, which: str | Sequence[int]) -> Query:
        """Never beyond the principal's tenant."""
        if not isinstance(which, str):
            return self._site.narrowed(Query(ids=tuple(which)), "", self._principal)
        if not which.strip():
            raise Problem(422, "name the jobs: q may not be empty; status:open means all of them "
                          "that have not ended", kind="bad-search")  # fmt: skip
        return self._site.narrowed(Query(), which, self._principal)

    def _fitting(self, query: Query, action: str) -> Query | None:
        """Those of the jobs to which it can be done. None: there can be none."""
        states = ACTIONS[action]
        wanted = tuple(state for state in (query.states or states) if state in states)
        pinned = action == "unpin"
        return replace(query, states=wanted, pinned=pinned) if wanted else None

    def _act(self, action: str, args: tuple[Any, ...], query: Query) -> tuple[list[int], int]:
        """From the newest to the oldest. Each is looked at once, whatever becomes of it. Returns
        to which it was done, and how many had moved on.
        """
        site = self._site
        touched: list[int] = []
        refused = 0
        below: int | None = None
        while True:
            rows = site.store.jobs(replace(query, limit=CHUNK, below=below))
            if not rows:
                return touched, refused
            below = rows[-1].id
            ids = [row.id for row in rows]
            done = site.wait(site.engine.ask(partial(self._steer_all, action, ids, args)))
            touched += done
            refused += len(ids) - len(done)

    def _steer_all(
        self, action: str, ids: list[int], args: tuple[Any, ...], now: float
    ) -> list[int]:
        """In the brain's turn. To which of them it could be done."""
        controls = self._site.engine.brain.controls
        done: list[int] = []
        for id in ids:
            try:
                controls.steer(action, id, args, now, self._principal.who)
                done.append(id)
            except (IllegalTransition, UnknownTicket, UnknownJob, ValueError):
                continue  # it has moved on meanwhile
        return done
