"""What is counted at upstreams and in lanes is what the trail says, whatever is done to jobs."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from headway import App, Pushback
from headway.core import IllegalTransition, Outcome
from headway.core.change import UnknownTicket
from headway.engine.meters import MAX_NAMES, OTHER, Meters
from headway.engine.tallies import MAX_PLACES, Reckoning, Tallied
from headway.errors import UnknownJob
from headway.testing import World
from tests.engine.kit import takes
from tests.engine.test_online import PUSH, end, go, went

PASSED_OVER = (UnknownJob, UnknownTicket, IllegalTransition)


def reckoned(app: App) -> Reckoning:
    engine: Any = app.engine
    found: Reckoning = engine.brain.meters.reckon()
    return found


def counts(tallied: Tallied) -> tuple[int, ...]:
    return (tallied.started, tallied.completed, tallied.failed, tallied.pushbacks)


def test_jobs_are_counted_where_they_stood_and_where_they_went(app: App) -> None:
    answers = iter([LookupError("no"), None, Pushback(retry_after=5), None, None])

    @app.job(lane="a", upstream="x.com", retries=1, retry_delay=1)
    async def work() -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    @app.job(lane="b")
    async def other() -> None:
        pass

    with World(app) as world:
        for _ in range(3):
            work.enqueue()
            world.run_for("1m")
        other.enqueue()
        world.run_for(1)
        found = reckoned(app)

    assert found.submitted == 4
    assert counts(found.lanes["a"]) == counts(found.upstreams["x.com"]) == (5, 3, 1, 1)
    assert counts(found.lanes["b"]) == (1, 1, 0, 0)
    assert set(found.upstreams) == {"x.com"}


def test_one_that_never_ran_has_failed_in_its_lane(app: App) -> None:
    @app.job(lane="a", upstream="x.com")
    async def work() -> None:
        pass

    with World(app) as world:
        app.pause("lane:a")
        work.options(deadline=world.now + 10).enqueue()
        world.run_for("1m")
        found = reckoned(app)
    assert counts(found.lanes["a"]) == (0, 0, 1, 0)
    assert found.lanes["a"].waiting == 0
    assert found.upstreams == {}


def test_slots_and_online_calls_are_counted_too(app: App) -> None:
    async def play() -> None:
        for error in (None, Pushback(), LookupError()):
            with suppress(Pushback, LookupError):
                async with app.slot("x.com", lane="s"):
                    if error is not None:
                        raise error

    with World(app) as world:
        end(app, went(app, "x.com"))
        end(app, went(app, "x.com"), PUSH)
        go(app, "x.com")
        world.run_for("10m")
        world.run(play())
        found = reckoned(app)

    upstream, online = found.upstreams["x.com"], found.lanes["online"]
    assert (online.online, online.refused, online.pushbacks) == (2, 1, 1)
    assert (upstream.online, upstream.refused, upstream.pushbacks) == (2, 1, 2)
    assert counts(found.lanes["s"])[:2] == (3, 1)
    assert found.lanes["s"].pushbacks == 1


@pytest.mark.parametrize("seed", range(6))
def test_how_many_wait_is_what_the_store_says(app: App, seed: int) -> None:
    rng = Random(seed)
    app.upstream("x.com", limit=2)

    @app.job(retries=1, retry_delay=3)
    async def work() -> None:
        await takes(rng.choice((0, 1, 5)))
        if rng.random() < 0.4:
            raise rng.choice((LookupError("no"), Pushback(retry_after=2)))

    def act(ids: list[int]) -> None:
        match rng.randrange(8):
            case 0 | 1 | 2:
                said = {"lane": rng.choice("ab"), "upstream": rng.choice(("x.com", ("x.com", "y")))}
                if rng.random() < 0.3:
                    said |= {"key": "k", "ordered": rng.choice((None, "pass", "hold"))}
                if rng.random() < 0.2:
                    said["delay"] = 4
                ids.append(work.options(**said).enqueue().id)
            case 3 if ids:
                with suppress(*PASSED_OVER):
                    getattr(app, rng.choice(("pause", "resume", "cancel", "retry", "pin")))(
                        rng.choice(ids)
                    )
            case 4:
                getattr(app, rng.choice(("pause", "resume")))(f"lane:{rng.choice('ab')}")
            case 5:
                world.restart()
            case _:
                world.run_for(rng.choice((0, 1, 7)))

    ids: list[int] = []
    with World(app) as world:
        for _ in range(80):
            act(ids)
            world.run_for(0.01)
            waiting = {lane: each.waiting for lane, each in reckoned(app).lanes.items()}
            stored = {lane: many for lane, state, many in app.store.tally() if state == "queued"}
            assert {lane: many for lane, many in waiting.items() if many} == stored
    assert ids


def test_names_are_few_and_those_that_nobody_needs_make_room() -> None:
    meters = Meters()
    for number in range(MAX_NAMES + 5):
        meters.granted("lane", 0.1, f"u{number}")
    found = meters.reckon()
    assert len(found.upstreams) == MAX_NAMES + 1
    assert found.upstreams[OTHER].started == 5
    assert found.lanes["lane"].started == MAX_NAMES + 5

    meters.granted("lane", 0.1, "u1")  # since it was read
    stale = {name: found.upstreams[name] for name in ("u0", "u1", "u2", "u3")}
    assert meters.places.forget(stale) == ["u0", "u2", "u3"]
    meters.granted("lane", 0.1, "u2")
    meters.granted("lane", 0.1, "new")

    found = meters.reckon()
    assert found.upstreams["u1"].started == 2, "nothing that was counted is lost"
    assert (found.upstreams["u2"].started, found.upstreams["new"].started) == (1, 1)


def test_pairs_are_found_again_however_many_there_are() -> None:
    meters = Meters()
    for _ in range(2):
        for number in range(MAX_PLACES + 10):
            meters.places.at(f"lane-{number % 40}", f"u{number % 50}-{number}"[:4]).completed()
    found = meters.reckon()
    assert sum(each.completed for each in found.lanes.values()) == 2 * (MAX_PLACES + 10)
    assert sum(each.completed for each in found.upstreams.values()) == 2 * (MAX_PLACES + 10)


def test_a_failed_outcome_of_an_online_call_is_no_pushback(app: App) -> None:
    with World(app):
        end(app, went(app, "x.com"), Outcome.failed("broken"))
        assert reckoned(app).upstreams["x.com"][:4] == (0, 0, 0, 1)
