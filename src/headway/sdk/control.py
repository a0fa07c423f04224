"""Steering: what an app can do to jobs, gates and schedules.

With an engine in this process the answer is exact and comes when it is committed. Without one the
order is left in the store, where the engine finds it, wherever it runs. A server is asked, and its
answer is as exact as that of an engine here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headway.core import IllegalTransition, State
from headway.core.explain import Explanation
from headway.core.lifecycle import TERMINAL, Event
from headway.engine.retention import KIND as RETENTION
from headway.engine.retention import NAME as JOBS
from headway.engine.retention import checked as check_retention
from headway.engine.settings import policy_of
from headway.errors import EngineStopped, UnknownJob
from headway.sdk.scheduling import schedule_row
from headway.store.records import NewJob, Purged, Schedule, TypeStats

if TYPE_CHECKING:
    from headway.engine import Engine
    from headway.engine.retention import Retention
    from headway.remote.store import RemoteStore
    from headway.store import Store

LOOK_S = 0.25  # how often the store is asked for the end of a job that another process runs

_EVENTS = {
    "cancel": Event.CANCEL,
    "pause": Event.PAUSE,
    "resume": Event.RESUME,
    "retry": Event.RETRY_BY_OPERATOR,
}


class Control:
    engine: Engine | None
    retention: Retention
    who: str | None = None  # in whose name it asks, for the audit trail

    if TYPE_CHECKING:

        @property
        def store(self) -> Store: ...

        @property
        def remote(self) -> RemoteStore | None: ...

        def now(self) -> float: ...

    def by(self, who: str) -> Control:
        """The same in somebody's name: `app.by("ci").cancel(7)` is in the audit trail as theirs."""
        return ControlBy(self, who)

    # ------------------------------------------------------------------ jobs and gates

    def cancel(self, job: int) -> str:
        """What waits is cancelled at once, what runs is really stopped first."""
        return self._job("cancel", job)

    def retry(self, job: int) -> str:
        """A new round of attempts for a job that failed or was cancelled."""
        return self._job("retry", job)

    def pause(self, target: int | str) -> str:
        """A job by its number, or "all", "lane:NAME", "upstream:NAME", "type:NAME"."""
        if isinstance(target, int):
            return self._job("pause", target)
        return self._gate("pause", target)

    def resume(self, target: int | str) -> str:
        """End a pause of a job or a gate."""
        if isinstance(target, int):
            return self._job("resume", target)
        return self._gate("resume", target)

    def close_until(self, target: str, until: float, why: str = "") -> None:
        """Close a gate until a time: `app.close_until("upstream:example.com", app.now() + 60)`."""
        self._gate("close", target, until=until, why=why or "closed by an operator")

    def open(self, target: str) -> None:
        """End a closure before its time."""
        self._gate("open", target)

    def pin(self, job: int) -> str:
        """To the front of the line, before everybody."""
        return self._job("pin", job)

    def unpin(self, job: int) -> str:
        """Back to the place that it would have without its pin, if it has one."""
        return self._job("unpin", job)

    def prioritise(self, job: int, priority: int) -> str:
        """Another priority for a job that waits: lower goes first, within its tenant."""
        return self._job("prioritise", job, priority)

    def reschedule(self, job: int, at: float) -> str:
        """Another time for a job that is not running."""
        return self._job("reschedule", job, at)

    def explain(self, job: int) -> Explanation:
        """Why a job waits, since when, in which place, until when."""
        if self.remote is not None:
            return self.remote.explain(job)
        engine = self._engine()
        return engine.ask(lambda now: engine.brain.controls.explain(job, now)).result()

    def _engine(self) -> Engine:
        if self.engine is None:
            raise EngineStopped("no engine runs in this process; start one with app.running()")
        return self.engine

    def _job(self, verb: str, job: int, *args: Any) -> str:
        if self.engine is not None:
            controls, who = self.engine.brain.controls, self.who
            state = self.engine.ask(lambda now: controls.steer(verb, job, args, now, who)).result()
            return state.value
        if self.remote is not None:
            return self.remote.steer(verb, job, *args)
        found = self.store.job(job)
        if found is None:
            raise UnknownJob(f"there is no job {job}; it never existed, or its record was purged")
        if (State(found.state) in TERMINAL) != (verb == "retry"):
            raise IllegalTransition(State(found.state), _EVENTS.get(verb, Event.POSTPONE))
        self.store.command(verb, str(job), args[0] if args else None, self.now(), self.who)
        return found.state

    def _gate(self, do: str, target: str, **more: Any) -> str:
        kind, _, name = target.partition(":")
        if target == "all":
            kind, name = "everything", ""
        elif kind not in ("lane", "upstream", "type", "tool") or not name:
            raise ValueError(f"{target!r} is no gate; write all, lane:NAME, upstream:NAME, "
                             "type:NAME or tool:NAME")  # fmt: skip
        what = {"do": do, "kind": kind, "name": name, **more}
        self._order("gate", target, what, lambda c, now: c.gate(what, now))
        return do

    def _order(self, verb: str, target: str, args: Any, act: Callable[[Any, float], Any]) -> None:
        if self.engine is None:
            self.store.command(verb, target, args, self.now(), self.who)
            return
        controls, who = self.engine.brain.controls, self.who

        def do(now: float) -> None:
            with controls.acting(who):
                act(controls, now)

        self.engine.ask(do).result()

    # ------------------------------------------------------------------ settings

    def set(self, target: str, **settings: Any) -> None:
        """What an operator sets at run time wins over code, file and environment, and is kept:
        `app.set("lane:default", limit=4)`, `app.set("retention:jobs", failed_days=90)`.
        """
        kind, _, name = target.partition(":")
        if target == f"{RETENTION}:{JOBS}":
            check_retention(settings)
        else:
            policy_of(kind, settings, name)
        self._order("set", target, settings, lambda c, now: c.set(kind, name, settings, now))

    def reset(self, target: str) -> None:
        """Back to what code, file and environment say."""
        kind, _, name = target.partition(":")
        self._order("set", target, None, lambda c, now: c.set(kind, name, None, now))

    # ------------------------------------------------------------------ schedules

    def schedule(self, name: str, call: NewJob, every: Any) -> None:
        """Run a job again and again: `app.schedule("feed-7", refresh.call(7), "30m")`."""
        row = schedule_row(name, call, every, self.now(), "operator")
        self._order("schedule", name, row, lambda c, now: c.schedule(row, now))

    def unschedule(self, name: str) -> None:
        """End a schedule. An occurrence that runs may end; one that waits is cancelled."""
        self._order("unschedule", name, None, lambda c, now: c.unschedule(name, now))

    def pause_schedule(self, name: str) -> None:
        """No occurrence starts until it is resumed; the schedule stays."""
        self._order("pause_schedule", name, None, lambda c, now: c.pause_schedule(name, True, now))

    def resume_schedule(self, name: str) -> None:
        """Go on with a paused schedule."""
        self._order(
            "resume_schedule", name, None, lambda c, now: c.pause_schedule(name, False, now)
        )

    def schedules(self) -> list[Schedule]:
        """All schedules, with their rules and when each is due next."""
        return self.store.schedules()

    # ------------------------------------------------------------------ looking after it

    def stats(self, since: float = 0.0) -> list[TypeStats]:
        """For each type: how many ended and how, run times, mean wait."""
        return self.store.stats(since)

    def purge(
        self, completed_days: float | None = None, failed_days: float | None = None
    ) -> Purged:
        """Remove what is older than this now, instead of at 02:00."""
        if self.remote is not None:
            return self.remote.purge(completed_days, failed_days)
        if self.engine is None:
            self.retention.load(self.store.settings())  # an operator may have said so elsewhere
        total = Purged(0, 0, 0)
        while True:
            chunk = self.retention.purge_chunk(
                self.store, self.now(), completed_days=completed_days, failed_days=failed_days
            )
            if not any(chunk):
                self._say_purged(total)
                return total
            total = Purged(*(a + b for a, b in zip(total, chunk, strict=True)))

    def _say_purged(self, total: Purged) -> None:
        if self.engine is not None and self.who is not None:
            brain, who = self.engine.brain, self.who
            detail = f"{total.jobs} jobs, {total.events} events, {total.results} results"

            def say(now: float) -> None:
                with brain.controls.acting(who):
                    brain.record(now, "purge", detail=detail)

            self.engine.ask(say).result()

    @contextmanager
    def watching(self, job: int, tell: Callable[[], None]) -> Iterator[float]:
        """`tell` is called when the job has ended, if an engine runs here. Gives the time after
        which to look by oneself, since it may run elsewhere.
        """
        engine = self.engine
        if engine is None:
            yield LOOK_S
            return
        brain = engine.brain
        engine.ask(lambda _: brain.ended.setdefault(job, []).append(tell)).result()
        try:
            yield 5.0
        finally:
            if not engine.done.is_set():
                engine.ask(lambda _: brain.forget_watcher(job, tell))


class ControlBy(Control):
    """An app as somebody uses it."""

    def __init__(self, app: Control, who: str) -> None:
        self._app = app
        self.engine = app.engine
        self.retention = app.retention
        self.who = who

    @property
    def store(self) -> Store:
        return self._app.store

    @property
    def remote(self) -> RemoteStore | None:
        return self._app.remote

    def now(self) -> float:
        return self._app.now()
