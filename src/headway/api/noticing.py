"""What the server itself notices: pauses and closed upstreams, failures, lost leases, types without
a worker, schedules that are late, a store or a disk in trouble.

The engine is asked in small portions, and the store only for what an index answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

import psutil

from headway.api import sights
from headway.api.attention import Attention, Level, bundled, several
from headway.api.sights import Sight
from headway.core.kinds import UPSTREAM
from headway.engine.brain import Brain
from headway.errors import EngineStopped, StoreError
from headway.store.records import Failures

if TYPE_CHECKING:
    from headway.api.site import Site

T = TypeVar("T")

SILENT = ("store_trouble", "engine_stopped", "engine_silent")  # nobody can be asked then
HOUR_S = 3_600.0
ANSWER_S = 3.0  # for the engine; who takes longer is in trouble
AT_ONCE = 1_000  # gates or schedules that are looked at in one turn
LITTLE, TOO_LITTLE = 10.0, 3.0  # percent of a disk that are free
FRESH_S = 1.0  # how old a look at the engine may be
FAILED_S = 5.0  # how old the failures may be
MANY = 1_000  # tenants whose failures are kept
NOTED_S = 300.0  # between two notes
MOST_NOTES = 100
MOST_ERROR = 200  # characters


class Note(NamedTuple):
    """What was counted until then."""

    at: float
    lost_leases: int  # since the start of this process
    outlived: dict[str, int]  # by upstream, since ever


class Kept(NamedTuple, Generic[T]):
    """What was seen a moment ago. It is good until then, unless somebody has acted since."""

    seen: T
    until: float
    acts: int  # those that were known before the look

    def fresh(self, now: float, acts: int) -> T | None:
        return self.seen if now < self.until and acts == self.acts else None


class Noticer:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._failures: dict[str | None, tuple[float, list[Failures]]] = {}
        self._sight: Kept[Sight] | None = None
        self._notes: deque[Note] = deque(maxlen=MOST_NOTES)
        self.note()

    @property
    def acts(self) -> int:
        """How often somebody has changed something: what was seen before is no longer so."""
        engine = self._site.app.engine
        return 0 if engine is None else engine.brain.acts

    def note(self) -> None:
        """Write down what is only ever counted up, so that it is known what the last hour brought.
        Call it at the start, and from time to time; it waits for nothing.
        """
        engine = self._site.app.engine
        if engine is None:
            return
        brain = engine.brain

        def write_down(now: float) -> None:
            self._notes.append(Note(now, brain.meters.read().lost_leases, sights.outlived(brain)))

        with suppress(EngineStopped):
            engine.ask(write_down)

    def _an_hour_ago(self, now: float) -> Note | None:
        """The last note that is so old, or the first of all. None: there is none yet."""
        notes = self._notes
        while len(notes) > 1 and notes[1].at <= now - HOUR_S:
            notes.popleft()
        return notes[0] if notes else None

    def all(self, tenant: str | None, now: float) -> list[Attention]:
        found = list(self._trouble(tenant))
        if tenant is None:
            found += self._disk()
        if found and found[0].kind in SILENT:
            return found  # who could be asked does not answer
        try:
            found += self._engine(tenant, now)
        except (TimeoutError, EngineStopped):
            found.insert(0, Attention("engine_silent", Level.BAD, ("engine", ""),
                                   "the engine does not answer; the server's log may say "
                                   "why"))  # fmt: skip
            return found
        found += self._failed(tenant, now)
        return found

    # ------------------------------------------------------------------ the server

    def _trouble(self, tenant: str | None) -> Iterator[Attention]:
        app = self._site.app
        engine = app.engine
        if engine is None:
            return  # it runs elsewhere, and this is a command
        if engine.done.is_set():
            yield Attention("engine_stopped", Level.BAD, ("engine", ""),
                            "the engine has stopped, and nothing starts; the server's log says "
                            "why")  # fmt: skip
        elif app.trouble:
            why = app.trouble if tenant is None else ""
            text = "the store cannot be used, and nothing starts" + (f": {why}" if why else "")
            yield Attention("store_trouble", Level.BAD, ("store", ""), text, {"why": why})

    def _disk(self) -> Iterator[Attention]:
        path = self._site.disk
        try:
            disk = psutil.disk_usage(path)
        except OSError as error:
            yield Attention("disk_gone", Level.BAD, ("disk", str(path)),
                            f"the disk of {path} cannot be read: {error.strerror}",
                            {"path": str(path)})  # fmt: skip
            return
        free = 100.0 * disk.free / disk.total if disk.total else 100.0
        if free < LITTLE:
            yield Attention(
                "disk_low", Level.BAD if free < TOO_LITTLE else Level.WARN, ("disk", str(path)),
                f"the disk of {path} is nearly full: {free:.1f} % are free; make room",
                {"path": str(path), "free_percent": round(free, 1), "free_bytes": disk.free},
            )  # fmt: skip

    # ------------------------------------------------------------------ the engine

    def _ask(self, call: Callable[[float], T]) -> T:
        return self._site.engine.ask(call).result(ANSWER_S)

    def _portions(self, things: Sequence[T], look: Callable[[Sequence[T], float], None]) -> None:
        for start in range(0, len(things), AT_ONCE):
            self._ask(partial(look, things[start : start + AT_ONCE]))

    def _engine(self, tenant: str | None, now: float) -> list[Attention]:
        engine = self._site.app.engine
        if engine is None:
            return []
        brain = engine.brain
        sight = self._looked_at(brain)
        found = list(sights.of_unknown_types(sight.unknown, tenant))
        found += sights.of_schedules(
            [item for whose, item in sight.schedules if tenant in (None, whose)]
        )
        if tenant is not None:
            return found + [item for item in sight.gates if item.kind == "queue_paused"]
        found += sights.of_gates(sight.gates)
        before = self._an_hour_ago(now)
        if before is None:
            return found
        lost = brain.meters.read().lost_leases - before.lost_leases
        if lost > 0:
            found.append(Attention(
                "leases_lost", Level.WARN, ("leases", ""), f"{several(lost, 'lease')} ended in the "
                "last hour because nobody renewed them; look at the workers that held them",
                {"count": lost},
            ))  # fmt: skip
        return found + _overshoot(sight.outlived, before.outlived)

    def _looked_at(self, brain: Brain) -> Sight:
        """The same for all who ask within a moment."""
        acts = self.acts
        known = self._sight and self._sight.fresh(monotonic(), acts)
        if known is not None:
            return known
        sight = Sight([], {}, [], self._ask(lambda _: sights.outlived(brain)))
        gates = self._ask(lambda _: list(brain.core.admission.atlas.gates.values()))
        self._portions(gates, partial(sights.look_at_gates, sight))
        if sight.unknown:
            self._ask(lambda _: sights.count_unknown(brain, sight.unknown))
        rows = self._ask(lambda _: list(brain.schedules.rows.values()))
        self._portions(rows, partial(sights.look_at_schedules, brain, sight))
        self._sight = Kept(sight, monotonic() + FRESH_S, acts)
        return sight

    # ------------------------------------------------------------------ the store

    def _failed(self, tenant: str | None, now: float) -> Iterable[Attention]:
        try:
            rows = self._failures_of(tenant, now)
        except StoreError:
            return [Attention("store_trouble", Level.BAD, ("store", ""),
                              "the store cannot be read", {"why": ""})]  # fmt: skip
        items = [_of_type(row) for row in rows]
        total = sum(row.many for row in rows)
        return bundled("jobs_failed_widely", items, lambda many, names: f"{total} jobs of {many} "
                       f"types failed in the last hour: {names}")  # fmt: skip

    def _failures_of(self, tenant: str | None, now: float) -> list[Failures]:
        """Some seconds old, and older while it takes long to count them."""
        until, rows = self._failures.get(tenant, (0.0, []))
        began = monotonic()
        if began >= until:
            rows = self._site.store.failures(now - HOUR_S, tenant)
            if len(self._failures) >= MANY:
                self._failures.clear()
            took_s = monotonic() - began
            self._failures[tenant] = (monotonic() + max(FAILED_S, 20.0 * took_s), rows)
        return rows


def _of_type(row: Failures) -> Attention:
    error = (row.error or "")[:MOST_ERROR]
    return Attention(
        "jobs_failed", Level.WARN, ("type", row.type),
        f"{several(row.many, 'job')} of type {row.type} failed in the last hour"
        + (f"; the newest: {error}" if error else ""),
        {"type": row.type, "count": row.many, "error": error, "job": row.last},
        since=row.first_at,
    )  # fmt: skip


def _overshoot(outlived: dict[str, int], before: dict[str, int]) -> list[Attention]:
    more = {name: count - before.get(name, 0) for name, count in outlived.items()}
    items = [
        Attention(
            "slots_outlived", Level.WARN, (UPSTREAM, name),
            f"{several(count, 'holder')} of slots went on at {name} after the end of their "
            "lease in the last hour, beside those who had their places",
            {"name": name, "count": count},
        )
        for name, count in sorted(more.items(), key=lambda each: -each[1]) if count > 0
    ]  # fmt: skip
    return list(bundled("slots_outlived_widely", items, lambda many, names: f"holders of slots "
                        f"went on after their lease at {many} upstreams: {names}"))  # fmt: skip
