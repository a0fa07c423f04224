"""Sessions of slot clients: asked, polled, granted, given back, left alone and forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from headway import App
from headway.core import Outcome
from headway.engine.slots import LEASE, Answer, Phase
from headway.engine.slots.counts import Overshoot
from tests.engine.slot_kit import BAD, HOST, Client, SlotWorld, per_ip, said
from tests.stores import PLACES, SECOND_STORE_IN_THE_SOAK, Place


@pytest.fixture(params=SECOND_STORE_IN_THE_SOAK)
def new_url(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param]


ONE = {"limit": 1}


@pytest.fixture
def world(app: App) -> Iterator[SlotWorld]:
    with SlotWorld(app, ONE) as world:
        yield world


def stored(world: SlotWorld) -> list[tuple[int, str]]:
    return [(row.number, row.phase) for row in world.app.store.slots()]


def nothing_is_left(world: SlotWorld) -> None:
    desk = world.desk
    assert (desk.sessions, desk.reclaimed, stored(world)) == ({}, {}, [])
    assert (world.brain.core.tickets, world.held()) == ({}, 0)
    assert [host for host in desk.hosts.waiting.values() if host.waiting] == []


# --- asking


def test_a_free_slot_is_granted_at_once(world: SlotWorld) -> None:
    client = world.asks("ip:1", lease_s=30.0)
    assert client.said == "granted"
    assert client.answer.permit is not None
    assert client.answer.permit.expires_at == world.now + 30.0
    assert client.holds
    assert stored(world) == [(client.session.number, "granted")]


def test_whoever_cannot_go_hears_so_at_the_end_of_its_window(world: SlotWorld) -> None:
    world.asks("ip:1")
    second = world.asks("ip:2", window_s=6.0)
    assert stored(world)[1] == (second.session.number, "waiting"), "it is stored before it hears"
    world.run_for(5.9)
    assert second.waits
    world.run_for(0.2)
    assert second.said == "pending"
    assert second.answer.session is not None
    assert second.answer.session.query_token == second.query_token


def test_a_released_slot_goes_to_the_poll_that_waits_for_it(world: SlotWorld) -> None:
    first, second, third = (world.asks(f"ip:{n}") for n in range(3))
    world.run_for(3)
    assert first.release()
    assert said(second, third) == ["granted", "waits"]
    assert second.granted_at == world.now
    assert second.release()
    assert third.said == "granted"
    assert third.release()
    nothing_is_left(world)


def test_of_two_polls_of_a_session_the_last_one_waits(world: SlotWorld) -> None:
    holder, client = world.asks("ip:1"), world.asks("ip:2")
    older = client.requests[-1]
    world.run_for(1)
    client.poll()
    assert older.result().what == "pending", "it is not left without an answer"
    assert client.waits
    holder.release()
    assert client.said == "granted"
    assert len(world.desk.sessions) == 1


@pytest.mark.parametrize("token", ["", "1", "1.", "1.wrong", "zzz.a", "-1.a", "f" * 16 + ".a"])
def test_a_token_that_nobody_gave_out_is_unknown(world: SlotWorld, token: str) -> None:
    client = world.asks("ip:1")
    client.query_token = token
    assert client.poll().said == "unknown"


def test_a_secret_that_is_no_text_is_unknown_too(world: SlotWorld) -> None:
    client = world.asks("ip:1")
    number = client.query_token.partition(".")[0]
    assert world.desk.by_token(f"{number}.\ud800") is None
    assert world.desk.by_slot_token(f"{number}.{client.session.fence:x}.\ud800")[0] is None


def test_a_session_is_found_by_nobody_who_lacks_its_secret(world: SlotWorld) -> None:
    client = world.asks("ip:1", secret="")
    assert world.desk.by_token(client.query_token) is None


def test_waiting_ends_after_the_longest_wait(world: SlotWorld) -> None:
    world.asks("ip:1")
    client = world.asks("ip:2", max_wait_s=20.0, window_s=60.0)
    world.run_for(19.9)
    assert client.waits
    world.run_for(0.2)
    assert client.said == "timeout"
    assert not client.known
    assert client.poll().said == "unknown"


def test_polling_does_not_prolong_the_longest_wait(world: SlotWorld) -> None:
    world.asks("ip:1")
    client = world.asks("ip:2", max_wait_s=20.0, window_s=6.0)
    while client.said in ("waits", "pending"):
        world.run_for(1)
        if client.said == "pending":
            client.poll(window_s=6.0)
    assert client.said == "timeout"
    assert world.now - client.asked_at == 20.0


def test_the_longest_wait_is_over_also_for_somebody_who_is_away(world: SlotWorld) -> None:
    world.asks("ip:1")
    client = world.asks("ip:2", max_wait_s=20.0, idle_s=90.0, window_s=6.0)
    world.run_for(19.9)
    assert client.known
    world.run_for(0.2)
    assert not client.known
    assert world.desk.counts.timed_out == 1


def test_a_client_that_does_not_come_back_is_forgotten(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = world.asks("ip:2", window_s=6.0, idle_s=30.0)
    world.run_for(35.9)
    assert client.known
    world.run_for(0.2)
    assert not client.known, "nothing was heard of it for 30 s"
    holder.release()
    nothing_is_left(world)


def test_a_client_that_comes_back_is_not_forgotten(world: SlotWorld) -> None:
    world.asks("ip:1", lease_s=300.0)
    client = world.asks("ip:2", window_s=0.0, idle_s=30.0)
    for _ in range(5):
        world.run_for(29)
        assert client.poll(window_s=0.0).known
    world.run_for(0)
    assert client.said == "pending"


def test_beyond_the_limit_of_sessions_everybody_is_overloaded(world: SlotWorld) -> None:
    world.desk.max_sessions = 3
    first, *others = [world.asks(f"ip:{n}") for n in range(5)]
    assert said(first, *others) == ["granted", "waits", "waits", "overloaded", "overloaded"]
    assert len(world.desk.sessions) == 3
    first.release()
    assert world.asks("ip:9").said == "waits", "there is room for one again"


def test_whoever_wants_no_slot_any_more_leaves_the_line(world: SlotWorld) -> None:
    holder, second, third = (world.asks(f"ip:{n}") for n in range(3))
    assert second.leave() == "cancelled"
    assert said(second, third) == ["cancelled", "waits"]
    assert not second.known
    holder.release()
    assert third.said == "granted"


def test_leaving_frees_what_was_granted(world: SlotWorld) -> None:
    first, second = world.asks("ip:1"), world.asks("ip:2")
    session = first.session
    assert first.leave() == "cancelled"
    assert second.said == "granted"
    assert world.do(lambda now: world.desk.leave(session, now)) == "gone"


def test_a_reset_answers_all_who_wait_and_leaves_holders_alone(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    waiting = [world.asks(f"ip:{n}", max_waiters=2) for n in range(2, 8)]
    absent = world.asks("ip:9", window_s=0.0)
    other = world.asks("ip:10", kind=LEASE)
    world.run_for(1)
    assert world.do(lambda now: world.desk.reset("fairqueue", now)) == 7
    assert said(*waiting) == ["timeout"] * 6
    assert not absent.known
    assert holder.holds
    assert other.waits, "it was asked for in another way"
    other.leave()
    holder.release()
    nothing_is_left(world)


def test_when_the_service_stops_requests_are_answered_and_sessions_wait_on(
    world: SlotWorld,
) -> None:
    holder, client = world.asks("ip:1"), world.asks("ip:2")
    world.do(world.desk.send_home)
    assert client.said == "pending"
    assert client.poll().waits
    holder.release()
    assert client.said == "granted"


# --- away


def away(world: SlotWorld, tenant: str, **said: Any) -> Client:
    """Somebody who has asked, heard that it must wait, and is not back yet."""
    client = world.asks(tenant, window_s=0.0, **said)
    world.run_for(0)
    assert client.said == "pending"
    return client


def test_a_grant_is_kept_for_a_client_that_is_just_between_two_polls(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = away(world, "ip:2", claim_s=2.0, lease_s=30.0)
    world.run_for(1)
    holder.release()
    assert client.session.phase is Phase.GRANTED
    assert not client.session.claimed
    world.run_for(1.5)
    assert client.poll().said == "granted"
    assert client.holds


def test_a_claim_prolongs_the_lease_to_its_whole_length_from_then_on(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = away(world, "ip:2", claim_s=2.0, lease_s=30.0)
    holder.release()
    granted_at = world.now
    assert client.session.lease_end == granted_at + 2.0
    world.run_for(1.5)
    client.poll()
    assert client.session.lease_end == granted_at + 1.5 + 30.0
    [row] = world.app.store.slots()
    assert (row.lease_end, row.claimed) == (client.session.lease_end, 1)
    world.run_for(29.9)
    assert client.holds
    world.run_for(1.2)
    assert not client.holds


def test_after_the_claim_window_the_grant_goes_to_the_next(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = away(world, "ip:2", claim_s=2.0)
    other = world.asks("ip:3", window_s=60.0)
    holder.release()
    assert other.waits, "the grant is kept for the one that was first"
    world.run_for(1.9)
    assert other.waits
    world.run_for(0.2)
    assert other.said == "granted"
    assert client.session.phase is Phase.WAITING
    assert world.desk.counts.reclaimed == 0, "nobody held it"


def test_whoever_missed_its_grant_goes_before_later_ones_of_its_tenant(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = away(world, "ip:2", claim_s=2.0)
    world.run_for(1)
    later = [world.asks("ip:2", window_s=60.0) for _ in range(3)]
    holder.release()
    world.run_for(5)
    assert said(*later) == ["granted", "waits", "waits"]
    client.poll()
    later[0].release()
    assert said(client, *later[1:]) == ["granted", "waits", "waits"]


@pytest.mark.parametrize("after_s", [2.31, 2.5, 3.0, 3.01])
@pytest.mark.parametrize("same_turn", [False, True])
def test_whoever_comes_just_after_its_claim_window_waits_on(
    world: SlotWorld, after_s: float, same_turn: bool
) -> None:
    """The end of a lease is looked at now and then; a poll may come before that, or with it."""
    holder = world.asks("ip:1")
    client = away(world, "ip:2", claim_s=2.3)
    holder.release()
    if same_turn:
        world.clock.at += after_s
    else:
        world.run_for(after_s)
    client.poll()
    world.run_for(0)
    assert client.said == "granted", "nobody else wants it"
    assert client.granted_at == world.now
    assert client.release()
    nothing_is_left(world)


def test_whoever_comes_just_after_its_claim_window_stands_behind_who_was_faster(
    world: SlotWorld,
) -> None:
    holder = world.asks("ip:1")
    client, other = away(world, "ip:2", claim_s=2.3), world.asks("ip:3", window_s=60.0)
    holder.release()
    world.run_for(2.5)
    client.poll()
    world.run_for(0)
    assert sorted(said(client, other)) == ["granted", "waits"]


def test_whoever_wants_no_grant_that_it_has_missed_is_gone(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = away(world, "ip:2", claim_s=2.3)
    holder.release()
    world.run_for(2.5)
    client.leave()
    world.run_for(5)
    nothing_is_left(world)


def test_what_nobody_took_was_not_used(app: App) -> None:
    """Nobody has called the host, so neither it nor the IP needs a rest."""
    profile = {"limit": 1, "min_hold": "30s", "tenant": per_ip(1, cooldown="60s")}
    with SlotWorld(app, profile) as world:
        client = world.asks("ip:1", claim_s=2.0)
        client.hang_up()
        world.run_for(2)
        client.poll()
        world.run_for(0)
        assert client.said == "granted"
        client.release()
        again = world.asks("ip:1", window_s=0.0)
        world.run_for(0)
        assert again.said == "pending", "this time it was"


def test_nobody_waits_for_a_client_that_is_away_for_longer(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    gone = [away(world, f"ip:{n}", claim_s=2.0) for n in range(2, 7)]
    other = world.asks("ip:9", window_s=60.0)
    world.run_for(3)
    assert [each.session.ticket for each in gone] == [None] * 5
    holder.release()
    assert other.said == "granted", "at once, although five have asked before"


def test_a_request_that_is_hung_up_leaves_its_client_away(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client = world.asks("ip:2", window_s=60.0, claim_s=2.0, max_wait_s=90.0)
    world.run_for(5)
    client.hang_up()
    world.run_for(1.9)
    assert client.session.ticket is not None
    world.run_for(0.2)
    assert client.session.ticket is None
    holder.release()
    assert client.poll().session.ticket is not None
    world.run_for(0)
    assert client.said == "granted"


def test_a_grant_that_was_not_heard_is_kept_for_the_claim_window_only(world: SlotWorld) -> None:
    holder = world.asks("ip:1")
    client, other = world.asks("ip:2", claim_s=2.0, lease_s=30.0), world.asks("ip:3", window_s=60)
    holder.release()
    assert client.said == "granted"
    client.hang_up()
    session = client.session
    [row] = [each for each in world.app.store.slots() if each.number == session.number]
    assert (row.claimed, row.lease_end) == (0, world.now + 2.0), "a restart knows it, too"
    world.run_for(2)
    assert other.said == "granted"
    assert session.phase is Phase.WAITING


def test_a_grant_that_was_not_heard_can_still_be_claimed(world: SlotWorld) -> None:
    client = world.asks("ip:2", claim_s=2.0, lease_s=30.0)
    client.hang_up()
    world.run_for(1.5)
    assert client.poll().said == "granted"
    world.run_for(29)
    assert client.holds
    assert client.release()


def test_hanging_up_an_older_request_takes_nothing_back(world: SlotWorld) -> None:
    client = world.asks("ip:1", lease_s=30.0)
    older = client.requests[-1]
    client.poll()
    world.do(lambda now: world.desk.hang_up(client.session, older, now))
    assert client.session.claimed
    world.run_for(20)
    assert client.holds


def test_the_name_of_a_wait_is_good_for_a_moment_after_its_grant(world: SlotWorld) -> None:
    client = world.asks("ip:1", keep_s=5.0, lease_s=30.0)
    world.run_for(4)
    assert client.poll().said == "granted", "the answer may have been lost"
    world.run_for(2)
    assert client.poll().said == "unknown"
    assert client.holds, "what it holds it holds"


def test_a_slot_that_was_given_back_is_not_told_again(world: SlotWorld) -> None:
    client = world.asks("ip:1")
    session = client.session
    waiter: Future[Answer] = Future()

    def give_back_and_ask(now: float) -> None:
        assert world.desk.leave(session, now) == "cancelled"
        world.desk.poll(session, waiter, now + 6, now)

    world.do(give_back_and_ask)
    assert waiter.result().what == "unknown"
    nothing_is_left(world)


# --- giving back


def test_a_slot_that_is_given_back_twice_is_given_back_once(world: SlotWorld) -> None:
    first, second = world.asks("ip:1"), world.asks("ip:2")
    assert first.release()
    assert not first.release()
    assert second.holds
    assert world.desk.counts.released == 1


def test_a_late_release_never_frees_the_slot_of_the_next(world: SlotWorld) -> None:
    zombie, other = world.asks("ip:1", lease_s=10.0), world.asks("ip:2", window_s=60.0)
    third = world.asks("ip:3", window_s=60.0)
    world.run_for(10)
    assert other.said == "granted"
    world.run_for(5)
    assert not zombie.release()
    assert (other.holds, third.said) == (True, "waits")


def test_a_holder_that_outlives_its_lease_is_counted_once_with_its_time(world: SlotWorld) -> None:
    zombie = world.asks("ip:1", lease_s=10.0)
    world.run_for(10)
    assert world.desk.overshoot == {HOST: Overshoot(reclaimed=1)}
    assert stored(world) == [(zombie.number, "reclaimed")]
    world.run_for(5.5)
    assert not zombie.release()
    assert not zombie.release()
    assert world.desk.overshoot == {HOST: Overshoot(reclaimed=1, outlived=1, outlived_s=5.5)}
    assert (world.desk.counts.reclaimed, world.desk.counts.outlived) == (1, 1)
    assert world.app.store.slot_totals() == [(HOST, 1, 1, 5.5)]
    nothing_is_left(world)


def test_a_release_in_the_very_moment_the_lease_ends_is_late(world: SlotWorld) -> None:
    zombie = world.asks("ip:1", lease_s=10.5)
    world.clock.at += 10.75
    assert not zombie.release(), "nobody has looked since, but the lease is over"
    assert world.desk.overshoot == {HOST: Overshoot(reclaimed=1, outlived=1, outlived_s=0.25)}


def test_overshoot_is_counted_by_upstream(world: SlotWorld) -> None:
    holders = [world.asks("ip:1", host, lease_s=10.0) for host in ("a.com", "b.com", "b.com")]
    world.run_for(10)
    world.run_for(0)
    for holder in holders:
        holder.release()
    assert {name: each.reclaimed for name, each in world.desk.overshoot.items()} == {
        "a.com": 1,
        "b.com": 1,
    }


def test_holders_that_were_never_heard_of_again_are_forgotten(world: SlotWorld) -> None:
    zombie = world.asks("ip:1", lease_s=10.0)
    world.run_for("59m")
    assert len(world.desk.reclaimed) == 1
    world.run_for("5m")
    assert not zombie.release()
    assert world.desk.overshoot[HOST].outlived == 0
    nothing_is_left(world)


def test_the_trail_tells_of_reclaimed_and_outlived_slots_and_of_no_secret(
    world: SlotWorld,
) -> None:
    zombie = world.asks("ip:1", lease_s=10.0)
    world.run_for(15)
    zombie.release()
    events = world.app.store.events(0, 100)
    assert [(each.event, each.subject) for each in events] == [
        ("slot_reclaimed", f"upstream:{HOST}"),
        ("slot_outlived", f"upstream:{HOST}"),
    ]
    assert "of ip:1" in events[0].detail
    assert "by 5.0 s" in events[1].detail
    assert not any(zombie.wish.secret in each.detail for each in events)


def test_fences_rise_with_every_grant_and_a_wrong_one_changes_nothing(world: SlotWorld) -> None:
    first = world.asks("ip:1")
    session, fence = first.session, first.session.fence
    assert not world.do(lambda now: world.desk.release(session, fence - 1, Outcome.ok(), now))
    assert world.do(lambda now: world.desk.renew(session, fence - 1, None, now)) is None
    assert first.holds
    second = world.asks("ip:2")
    first.release()
    assert second.session.fence > fence


# --- renewing


def test_a_lease_is_held_as_long_as_it_is_renewed(world: SlotWorld) -> None:
    client = world.asks("ip:1", kind=LEASE, lease_s=10.0)
    for _ in range(10):
        world.run_for(9)
        assert client.renew() == world.now + 10.0
    assert client.renew(lease_s=60.0) == world.now + 60.0
    world.run_for(59)
    assert client.holds
    world.run_for(2)
    assert not client.holds
    assert world.desk.overshoot == {HOST: Overshoot(reclaimed=1)}


def test_whoever_renews_too_late_went_on_too_long_and_is_counted_once(world: SlotWorld) -> None:
    zombie = world.asks("ip:1", kind=LEASE, lease_s=10.0)
    world.run_for(13)
    assert zombie.renew() is None
    counted = {HOST: Overshoot(reclaimed=1, outlived=1, outlived_s=3.0)}
    assert world.desk.overshoot == counted
    world.run_for(10)
    assert zombie.renew() is None
    assert not zombie.release()
    assert world.desk.overshoot == counted
    nothing_is_left(world)


def test_whoever_renews_has_heard_of_its_grant(world: SlotWorld) -> None:
    client = world.asks("ip:1", kind=LEASE, lease_s=10.0, claim_s=2.0)
    client.hang_up()
    world.run_for(1)
    assert client.renew() == world.now + 10.0
    [row] = world.app.store.slots()
    assert (row.claimed, row.lease_end) == (1, world.now + 10.0)


def test_whoever_wants_to_know_hears_its_place_when_it_must_wait(world: SlotWorld) -> None:
    world.settings({"limit": 1})
    world.asks("ip:1", kind=LEASE)
    second, third = (world.asks("ip:2", kind=LEASE, window_s=1.0) for _ in range(2))
    world.run_for(1)
    places = [client.answer.place for client in (second, third)]
    assert [place.position for place in places if place is not None] == [1, 2]


def test_many_who_want_to_know_their_place_at_once_are_all_told(world: SlotWorld) -> None:
    world.settings({"limit": 1})
    world.asks("ip:0", kind=LEASE)
    crowd = [world.asks(f"ip:{n}", kind=LEASE, window_s=5.0) for n in range(100)]
    world.run_for(5)
    assert said(*crowd) == ["pending"] * 100
    assert None not in [client.answer.place for client in crowd]


def test_whoever_holds_a_slot_may_say_what_the_upstream_answers_meanwhile(app: App) -> None:
    with SlotWorld(app, {}) as world:
        world.settings({"breaker": {"in_a_row": 2, "open_for": "60s"}})
        holder = world.asks("ip:1", kind=LEASE, lease_s=10.0)
        session, fence = holder.session, holder.session.fence

        def report(fence: int = fence) -> bool:
            return bool(world.do(lambda now: world.desk.report(session, fence, BAD, now)))

        assert not report(fence - 1)
        assert report()
        assert world.asks("ip:2").said == "granted"
        assert report()
        assert holder.holds
        assert world.asks("ip:3").said == "throttled"
        world.run_for(11)
        assert not report(), "it does not hold it any more"


def test_leases_do_not_hear_of_a_closed_upstream_but_wait_for_it(world: SlotWorld) -> None:
    world.do(lambda now: world.brain.core.gates.close(
        "upstream", HOST, now, until=now + 60, why="429 pushback"))  # fmt: skip
    client = world.asks("ip:1", kind=LEASE, max_wait_s=30.0, window_s=20.0)
    assert client.waits
    world.run_for(31)
    assert client.said == "pending"
