"""Apps and worlds for tests of the engine, and the few things that they do all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headway import App, JobHandle
from headway.core.lifecycle import TRANSITIONS, Event, State
from headway.testing import World

KNOWN_EVENTS = {event.value for event in Event}


async def takes(seconds: float) -> None:
    """Work that takes this long by the clock of the world."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_later(seconds, over.cancel)
    await asyncio.wait([over])


class Diary:
    """What ran when, in seconds since the world began."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, Any]] = []
        self.world: World | None = None
        self._since = 0.0

    def begin(self, world: World) -> None:
        self.world = world
        self._since = world.now

    def note(self, what: Any = None) -> None:
        self.rows.append((self.now, what))

    @property
    def now(self) -> float:
        assert self.world is not None, "the diary has not begun"
        return round(self.world.now - self._since, 3)

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.rows]

    @property
    def names(self) -> list[Any]:
        return [what for _, what in self.rows]


def states(handles: list[JobHandle[Any]]) -> list[str]:
    return [handle.state for handle in handles]


def trail(handle: JobHandle[Any]) -> list[str]:
    return [event.event for event in handle.events()]


def check_trail(handle: JobHandle[Any]) -> None:
    """Every row follows from the one before by a legal transition, up to the state of the job."""
    state: str | None = None
    for event in handle.events():
        if event.event == "submit":
            assert state is None, "a job is submitted once"
            assert event.before is None
            state = event.after
            assert state in ("pending", "queued")
        elif event.event in KNOWN_EVENTS and event.after is not None:
            assert event.before == state, f"{event} does not follow {state}"
            allowed = TRANSITIONS[State(event.before)][Event(event.event)].value
            # What is due at once goes straight on into `queued`.
            assert event.after in ({allowed, "queued"} if allowed == "pending" else {allowed})
            state = event.after
    assert handle.state == state, "the row and its history agree"


def check_no_gaps(app: App) -> None:
    """The trail has every number from the first to the last."""
    first, last = app.store.event_range()
    ids = [event.id for event in app.store.events(0, 1_000_000)]
    assert ids == list(range(first, last + 1))


def gaps(times: list[float]) -> list[float]:
    return [
        round(after - before, 3)
        for before, after in zip(sorted(times), sorted(times)[1:], strict=False)
    ]


def failing(times: int, error: Callable[[], BaseException]) -> Callable[[], None]:
    """Raises so often, then no more."""
    left = times

    def call() -> None:
        nonlocal left
        if left:
            left -= 1
            raise error()

    return call
