"""Corners of the slot desk, each of which something once got lost in."""

from __future__ import annotations

import asyncio
import math

import pytest

from headway import App
from headway.engine.loop_future import LoopFuture
from headway.engine.slots import LEASE
from headway.engine.slots.counts import Overshoot
from tests.core.kit import core_with, permit_of, start
from tests.engine.slot_kit import BAD, HOST, SlotWorld, per_ip
from tests.stores import PLACES, SECOND_STORE_IN_THE_SOAK, Place


@pytest.fixture(params=SECOND_STORE_IN_THE_SOAK)
def new_url(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param]


def test_places_that_come_free_later_do_not_disturb_who_asks_where_it_stands(app: App) -> None:
    app.upstream(HOST, limit=1, min_hold="60s")
    with SlotWorld(app, {}) as world:
        world.asks("a", kind=LEASE).release()
        world.restart()
        client = world.asks("a", kind=LEASE, window_s=1.0)
        world.run_for(2)
        assert client.said == "pending"


@pytest.mark.timeout(10)
def test_the_end_of_a_lease_is_found_whatever_its_last_digit_is() -> None:
    core = core_with()
    now = 1_767_225_600.1
    permit = permit_of(start(core, "a", now - 10.0, lease_s=10.0))
    core.leases.remove(permit)
    permit.expires_at = math.nextafter(now, math.inf)
    core.leases.add(permit)
    core.advance(now)
    assert core.next_wakeup() > now


def test_an_answer_that_nobody_could_take_keeps_no_other_from_its_own() -> None:
    async def play() -> None:
        def refuse(_: object) -> None:
            raise LookupError("the engine has stopped")

        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        first, second = LoopFuture(missed=refuse), LoopFuture()
        first.answer_here("late")
        for future in (first, second):
            assert future.set_running_or_notify_cancel()
            future.set_result("granted")
        async with asyncio.timeout(5):
            assert await second == "granted"

    asyncio.run(play())


def test_a_setting_that_does_not_go_with_the_profile_is_refused_and_changes_nothing(
    app: App,
) -> None:
    with SlotWorld(app, {"limit": 5}) as world:
        client = world.asks("ip:1")
        with pytest.raises(ValueError, match="reserve"):
            world.settings({"reserve": 10})
        client.release()
        world.run_for("10m")
        assert world.asks("ip:1").said == "granted"


def test_a_profile_that_does_not_go_with_a_setting_keeps_no_engine_from_starting(app: App) -> None:
    with SlotWorld(app, {"limit": 20}) as world:
        world.settings({"reserve": 10})
        world.asks("ip:1")
        world.profile_of = lambda _: {"limit": 5}
        world.restart()
        assert world.asks("ip:2").said == "granted"


def test_what_hosts_knew_survives_two_restarts_without_a_client(app: App) -> None:
    with SlotWorld(app, {"limit": 2, "breaker": {"in_a_row": 2, "open_for": "3h"}}) as world:
        world.report(BAD, times=2)
        for _ in range(2):
            world.restart()
            world.run_for("5m")
        assert world.asks("ip:1").said == "throttled"


def test_hosts_that_nobody_visits_again_are_forgotten_even_if_they_were_unwell(app: App) -> None:
    with SlotWorld(app, {"limit": 1, "breaker": True}) as world:
        for n in range(50):
            world.report(BAD, times=4, host=f"h{n}.com")
        world.run_for("2d")
        assert world.desk.hosts.profiles == {}


def test_a_late_renewal_counts_also_in_the_turn_in_which_the_lease_ends(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        zombie = world.asks("a", kind=LEASE, lease_s=5.0)
        world.clock.at += 8
        assert zombie.renew() is None
        assert world.desk.overshoot == {HOST: Overshoot(1, 1, 3.0)}


def test_whoever_gives_back_what_it_was_granted_has_heard_of_it(app: App) -> None:
    with SlotWorld(app, {"limit": 1, "tenant": per_ip(1, cooldown="60s")}) as world:
        client = world.asks("ip:1", claim_s=2.0)
        client.hang_up()
        world.run_for(1)
        assert client.release()
        assert world.asks("ip:1").waits
