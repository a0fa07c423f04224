"""What a crash leaves of slots: who waits, who holds, whose lease is over, and what hosts knew."""

from __future__ import annotations

from typing import Any

import pytest

from headway import App
from headway.engine.slots import FAIRQUEUE, LEASE, OWN, Phase
from headway.engine.slots.counts import Overshoot
from tests.engine.slot_kit import BAD, HOST, SlotWorld, per_ip, said

ONE = {"limit": 1}


def crash(world: SlotWorld, away_s: float = 0.0) -> None:
    """The engine is gone, and another one comes after so long."""
    world.crash()
    world.clock.at += away_s
    world.restart()
    world.run_for(0)


def numbers(world: SlotWorld) -> list[int]:
    return [row.number for row in world.app.store.slots()]


# --- who waits


def test_whoever_waits_comes_back_with_its_token_and_waits_on(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder, client = world.asks("ip:1"), world.asks("ip:2")
        crash(world, 5)
        assert client.session.phase is Phase.WAITING
        assert client.session.ticket is None, "nobody is waited for who is not there"
        client.poll()
        assert client.waits
        holder.release()
        assert client.said == "granted"
        assert client.granted_at == world.now


@pytest.mark.parametrize("kind", [FAIRQUEUE, LEASE])
def test_places_in_time_survive(app: App, kind: str) -> None:
    with SlotWorld(app, ONE) as world:
        world.settings(ONE)
        holder = world.asks("ip:1", kind=kind)
        early = [world.asks("ip:2", kind=kind), world.asks("ip:2", kind=kind)]
        world.run_for(1)
        crash(world)
        late = world.asks("ip:2", window_s=60.0, kind=kind)
        for client in reversed(early):
            client.poll(window_s=60.0)
        holder.release()
        assert said(*early, late) == ["granted", "waits", "waits"]
        early[0].release()
        assert said(*early, late) == ["granted", "granted", "waits"]


def test_the_longest_wait_goes_on_counting_while_nobody_is_there(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder = world.asks("ip:1")
        client = world.asks("ip:2", max_wait_s=20.0)
        other = world.asks("ip:3", max_wait_s=200.0)
        crash(world, 30)
        assert client.poll().said == "unknown"
        assert other.poll().waits
        assert numbers(world) == [holder.number, other.number]


def test_whoever_does_not_come_back_after_a_restart_is_forgotten(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder = world.asks("ip:1", lease_s=300.0)
        client = world.asks("ip:2", idle_s=30.0)
        crash(world, 100)
        world.run_for(29)
        assert client.known, "it could not be heard while the service was away"
        world.run_for(2)
        assert not client.known
        assert numbers(world) == [holder.number]


def test_a_session_that_ended_does_not_come_back(app: App) -> None:
    with SlotWorld(app, {"limit": 2}) as world:
        released, left, held = (world.asks(f"ip:{n}") for n in range(3))
        released.release()
        left.leave()
        crash(world)
        assert [each.known for each in (released, left, held)] == [False, False, True]
        assert numbers(world) == [held.number]


# --- who holds


def test_whoever_holds_a_slot_gives_it_back_to_the_next_engine(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder, client = world.asks("ip:1", lease_s=60.0), world.asks("ip:2")
        crash(world, 10)
        assert holder.holds
        client.poll()
        assert client.waits, "there is one slot, and it is taken"
        assert holder.release()
        assert client.said == "granted"
        assert not holder.release()
        assert client.holds


@pytest.mark.parametrize("cap", [1, 3])
def test_no_cap_is_exceeded_across_crashes(app: App, cap: int) -> None:
    with SlotWorld(app, {"limit": cap}) as world:
        clients = [world.asks(f"ip:{n}", lease_s=60.0) for n in range(8)]
        for _ in range(4):
            crash(world, 1)
            clients += [world.asks(f"ip:{len(clients)}", lease_s=60.0)]
            for client in clients:
                if not client.slot_token:
                    client.poll(window_s=0.0)
            world.run_for(0)
            assert sum(client.holds for client in clients if client.slot_token) == cap
            assert world.held() == cap
            next(each for each in clients if each.slot_token and each.holds).release()


def test_a_client_that_never_renews_keeps_the_end_of_its_lease(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder = world.asks("ip:1", lease_s=30.0)
        ends_at = world.now + 30.0
        crash(world, 20)
        assert holder.session.lease_end == ends_at
        world.run_for(9.9)
        assert holder.holds
        world.run_for(0.2)
        assert not holder.holds
        assert world.desk.overshoot[HOST].reclaimed == 1


def test_a_lease_that_ended_while_nobody_was_there_is_over_at_the_start(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder, client = world.asks("ip:1", lease_s=30.0), world.asks("ip:2", idle_s=500.0)
        crash(world, 100)
        assert not holder.holds
        client.poll()
        world.run_for(0)
        assert client.said == "granted"
        assert not holder.release()
        assert world.desk.overshoot[HOST] == Overshoot(1, 1, 70.0)


def test_whoever_renews_gets_a_whole_lease_to_find_the_next_engine(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        world.settings(ONE)
        holder = world.asks("ip:1", kind=LEASE, lease_s=30.0)
        other = world.asks("ip:2", kind=LEASE, idle_s=500.0)
        crash(world, 100)
        assert holder.session.lease_end == pytest.approx(world.now + 30.0)
        assert other.poll(window_s=60.0).waits
        world.run_for(29)
        assert holder.renew() == world.now + 30.0
        world.run_for(29)
        assert (holder.holds, other.waits) == (True, True)


def test_the_length_of_a_lease_that_was_renewed_survives(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder = world.asks("ip:1", kind=LEASE, lease_s=30.0)
        holder.renew(lease_s=300.0)
        crash(world, 100)
        assert holder.session.lease_end == pytest.approx(world.now + 300.0)


def test_slots_of_the_engine_itself_went_with_it(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        world.asks("ip:9").release()
        own, client = world.asks("", kind=OWN), world.asks("ip:2")
        waiting_own = world.asks("", kind=OWN)
        assert said(own, client, waiting_own) == ["granted", "waits", "waits"]
        crash(world)
        assert client.poll().said == "granted"
        assert numbers(world) == [client.number]


# --- who has not claimed


def test_a_claim_window_survives(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder = world.asks("ip:1")
        client = world.asks("ip:2", window_s=0.0, claim_s=10.0, lease_s=30.0)
        world.run_for(1)
        holder.release()
        crash(world, 5)
        assert client.session.phase is Phase.GRANTED
        assert client.poll().said == "granted"
        assert client.session.lease_end == world.now + 30.0
        crash(world, 20)
        assert client.holds, "a claim that was heard of is stored"


def test_a_grant_that_nobody_claimed_is_the_next_ones_after_a_restart(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        holder = world.asks("ip:1")
        client = world.asks("ip:2", window_s=0.0, claim_s=5.0)
        other = world.asks("ip:3", window_s=300.0)
        world.run_for(1)
        holder.release()
        crash(world, 10)
        world.run_for(0)
        assert client.session.phase is Phase.WAITING
        assert other.poll().said == "granted"
        assert world.desk.overshoot == {}, "it was held by nobody"
        crash(world)
        assert client.session.phase is Phase.WAITING


def test_a_grant_that_was_not_heard_is_not_held_for_a_whole_lease_after_a_restart(
    app: App,
) -> None:
    with SlotWorld(app, ONE) as world:
        client = world.asks("ip:1", claim_s=2.0, lease_s=300.0)
        client.hang_up()
        crash(world, 10)
        assert world.asks("ip:2").said == "granted"


# --- whose lease is over


def test_whoever_outlived_its_lease_is_recognised_by_the_next_engine(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        zombie = world.asks("ip:1", lease_s=10.0)
        world.run_for(10)
        crash(world, 5)
        other = world.asks("ip:2")
        assert other.said == "granted"
        assert not zombie.release()
        assert not zombie.release()
        assert other.holds
        assert world.desk.overshoot[HOST] == Overshoot(1, 1, 5.0)
        assert numbers(world) == [other.number]


def test_whoever_was_counted_for_a_late_renewal_is_not_counted_again(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        zombie = world.asks("ip:1", kind=LEASE, lease_s=10.0)
        world.run_for(12)
        assert zombie.renew() is None
        crash(world)
        assert not zombie.release()
        assert world.desk.overshoot[HOST] == Overshoot(1, 1, 2.0)


def test_overshoot_is_counted_since_ever(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        for round in range(3):
            zombie = world.asks("ip:1", lease_s=10.0)
            world.run_for(12)
            assert not zombie.release()
            assert world.desk.overshoot == {HOST: Overshoot(round + 1, round + 1, 2.0 * round + 2)}
            crash(world)
        assert world.desk.overshoot == {HOST: Overshoot(3, 3, 6.0)}
        assert world.app.store.slot_totals() == [(HOST, 3, 3, 6.0)]
        assert world.desk.counts.outlived == 0, "this one is of one process"


def test_holders_that_nobody_hears_of_are_forgotten_after_a_restart_too(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        world.asks("ip:1", lease_s=10.0)
        world.run_for(20)
        crash(world)
        assert len(world.desk.reclaimed) == 1
        world.run_for("65m")
        assert (world.desk.reclaimed, numbers(world)) == ({}, [])


def test_numbers_and_fences_are_never_used_twice(app: App) -> None:
    with SlotWorld(app, ONE) as world:
        seen: list[int] = []
        for _ in range(3):
            client = world.asks("ip:1")
            seen += [client.number, client.session.fence]
            client.release()
            crash(world)
        assert seen == sorted(set(seen))


# --- what hosts knew

TRIPS = {"limit": 2, "breaker": {"in_a_row": 2, "open_for": "10m"}}


def test_an_open_breaker_is_open_for_whoever_comes_first_after_a_restart(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.asks("ip:1").release()
        world.report(BAD, times=2)
        opens_at = world.now + 600.0
        crash(world, 60)
        client = world.asks("ip:1")
        assert (client.said, client.answer.until, client.answer.status) == (
            "throttled", opens_at, 429)  # fmt: skip
        world.run_until(opens_at)
        probe, other = world.asks("ip:1"), world.asks("ip:2", window_s=60.0)
        assert said(probe, other) == ["granted", "waits"]


def test_an_open_breaker_sends_away_whoever_waited_before_the_restart(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        for tenant in ("ip:1", "ip:2"):
            world.asks(tenant, lease_s=600.0)
        away = world.asks("ip:3", window_s=0.0)
        world.run_for(0)
        world.report(BAD, times=2)
        crash(world)
        assert away.poll().said == "throttled"


def test_what_a_caller_said_about_the_breaker_survives(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.report(BAD, times=2)
        bad_at = world.now
        gates = world.brain.core.gates
        world.do(lambda now: gates.keep_breaker_open(HOST, 1_800.0, now))
        crash(world, 60)
        assert world.asks("ip:1").answer.until == bad_at + 1_800.0
        world.report(BAD)
        assert world.asks("ip:1").answer.until == world.now + 1_800.0


def test_a_resting_ip_rests_on(app: App) -> None:
    with SlotWorld(app, {"limit": 5, "tenant": per_ip(1, cooldown="60s")}) as world:
        world.asks("ip:1").release()
        rests_until = world.now + 60.0
        crash(world, 10)
        client, other = world.asks("ip:1", window_s=300.0), world.asks("ip:2")
        assert said(client, other) == ["waits", "granted"]
        world.run_for(300)
        assert client.granted_at == rests_until


def test_places_that_come_free_later_do_so_after_a_restart_too(app: App) -> None:
    with SlotWorld(app, {"limit": 2, "min_hold": "10s"}) as world:
        began_at = world.now
        holders = [world.asks("ip:1"), world.asks("ip:2")]
        for holder in holders:
            holder.release()
        crash(world, 3)
        clients = [world.asks(f"ip:{n}", window_s=300.0) for n in range(3, 6)]
        world.run_for(1)
        assert said(*clients) == ["waits"] * 3
        world.run_for(11)
        assert said(*clients) == ["granted", "granted", "waits"]
        assert [each.granted_at - began_at for each in clients[:2]] == [10.0, 15.0]
        world.run_for(1)
        clients[0].release()
        world.run_for(60)
        assert clients[2].granted_at - began_at == 20.0, "they are kept apart as before"


@pytest.mark.parametrize("pause_s", [0, 3_600])
def test_what_hosts_knew_waits_for_them_until_somebody_comes(app: App, pause_s: float) -> None:
    profile = {"limit": 2, "breaker": {"in_a_row": 2, "open_for": "3h"}}
    with SlotWorld(app, profile) as world:
        world.report(BAD, times=2)
        crash(world)
        world.run_for(pause_s)
        assert world.asks("ip:1").said == "throttled"


def test_a_host_that_is_declared_goes_on_with_what_it_has_learned_since(app: App) -> None:
    """What the last engine knew is older than what this one has heard."""
    app.upstream(HOST, breaker={"in_a_row": 2, "open_for": "30s"})
    with SlotWorld(app, {"limit": 5}) as world:
        world.report_only(BAD, times=2)
        crash(world, 10)
        breaker = world.brain.core.gates.breaker_of(HOST)
        assert breaker is not None
        assert breaker.state == "open"
        world.run_for(60)
        world.report_only(None)
        assert breaker.state == "closed"
        assert said(*(world.asks(f"ip:{n}") for n in range(3))) == ["granted"] * 3


def test_other_settings_than_before_the_restart_win(app: App) -> None:
    with SlotWorld(app, {"limit": 3}) as world:
        holders = [world.asks(f"ip:{n}") for n in range(3)]
        client = world.asks("ip:9", idle_s=300.0)
        world.profile_of = lambda _: ONE
        crash(world)
        client.poll(window_s=60.0)
        for holder in holders[:2]:
            holder.release()
            assert client.waits, "there are others above the cap"
        holders[2].release()
        assert client.said == "granted"


def test_profiles_that_are_known_only_later_hold_from_then_on(app: App) -> None:
    profiles: dict[str, Any] = {}
    with SlotWorld(app, lambda _: dict(profiles)) as world:
        profiles |= ONE
        holder, client = world.asks("ip:1"), world.asks("ip:2")
        profiles.clear()
        crash(world)
        profiles |= ONE
        world.do(world.desk.hosts.look_again)
        client.poll()
        assert (client.waits, holder.holds) == (True, True)
