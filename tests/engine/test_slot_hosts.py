"""Hosts of slot clients: their limits, who stands in line, breakers, and what is forgotten."""

from __future__ import annotations

import random
from typing import Any

import pytest

from headway import App
from headway.core import Outcome
from headway.engine.slots import LEASE, Session, Terms, Weighting, Wish
from headway.engine.slots.hosts import Host
from tests.engine.slot_kit import BAD, HOST, Client, SlotWorld, per_ip, said
from tests.stores import PLACES, SECOND_STORE_IN_THE_SOAK, Place, sqlite_place


@pytest.fixture(params=SECOND_STORE_IN_THE_SOAK)
def new_url(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param]


OTHER = "other.example.com"


def release_all(*clients: Client) -> None:
    for client in clients:
        client.release()


# --- how many, and how fast


def test_places_come_free_one_after_the_other_when_their_minimum_hold_is_over(app: App) -> None:
    with SlotWorld(app, {"limit": 4, "min_hold": "8s"}) as world:
        holders = [world.asks(f"ip:{n}") for n in range(4)]
        waiting = [world.asks(f"ip:{n}", window_s=60.0) for n in range(10, 14)]
        world.run_for(1)
        release_all(*holders)
        assert said(*waiting) == ["waits"] * 4, "given back, and still taken"
        world.run_for(20)
        since = [client.granted_at - holders[0].granted_at for client in waiting]
    assert since == [8.0, 10.0, 12.0, 14.0]


def test_the_minimum_hold_counts_from_when_the_host_was_really_called(app: App) -> None:
    with SlotWorld(app, {"limit": 1, "min_hold": "8s"}) as world:
        holder, other = world.asks("ip:1"), world.asks("ip:2", window_s=60.0)
        began_at = world.now
        world.run_for(5)
        holder.release(Outcome.ok(hit_at=began_at + 3))
        world.run_for(60)
        assert other.granted_at - began_at == 11.0


@pytest.mark.parametrize(("hit_at", "after_s"), [(100.0, 13.0), (-100.0, 8.0)])
def test_a_wrong_clock_of_a_client_counts_as_far_as_it_can_be_true(
    app: App, hit_at: float, after_s: float
) -> None:
    with SlotWorld(app, {"limit": 1, "min_hold": "8s"}) as world:
        holder, other = world.asks("ip:1"), world.asks("ip:2", window_s=60.0)
        began_at = world.now
        world.run_for(5)
        holder.release(Outcome.ok(hit_at=began_at + hit_at))
        world.run_for(60)
        assert other.granted_at - began_at == after_s


def test_one_slot_for_each_ip_with_a_rest_after_it(app: App) -> None:
    profile = {"limit": 5, "tenant": per_ip(1, cooldown="30s")}
    with SlotWorld(app, profile) as world:
        began_at = world.now
        first, second = (world.asks("ip:1", window_s=200.0) for _ in range(2))
        other = world.asks("ip:2")
        assert said(first, second, other) == ["granted", "waits", "granted"]
        world.run_for(4)
        first.release()
        assert second.waits, "its IP has none, and rests"
        world.run_for(200)
        assert second.granted_at - began_at == 34.0


def test_tenants_of_another_kind_are_not_limited_like_an_ip(app: App) -> None:
    profile = {"limit": 5, "tenant": per_ip(1, cooldown="30s")}
    with SlotWorld(app, profile) as world:
        jobs = [world.asks("crawler", kind=LEASE) for _ in range(1)]
        ips = [world.asks("ip:1") for _ in range(3)]
        jobs += [world.asks("crawler", kind=LEASE) for _ in range(3)]
        assert said(*ips) == ["granted", "waits", "waits"]
        assert said(*jobs) == ["granted"] * 4


def test_slots_of_our_own_stand_at_the_same_host(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        client = world.asks("ip:1")
        own = world.client("", kind="own").ask()
        assert own.waits
        client.release()
        assert own.said == "granted"


def test_every_host_has_the_profile_that_names_it(app: App) -> None:
    def profile_of(name: str) -> dict[str, Any]:
        return {"limit": 3} if name == HOST else {"limit": 1}

    with SlotWorld(app, profile_of) as world:
        for host, granted in ((HOST, 3), (OTHER, 1)):
            clients = [world.asks(f"ip:{n}", host) for n in range(5)]
            assert said(*clients).count("granted") == granted


def test_new_profiles_hold_at_once_for_hosts_that_are_in_use(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        clients = [world.asks(f"ip:{n}", window_s=60.0) for n in range(5)]
        world.profile_of = lambda _: {"limit": 3}
        world.do(world.desk.hosts.look_again)
        assert said(*clients).count("granted") == 3
        world.profile_of = lambda _: {"limit": 1}
        world.do(world.desk.hosts.look_again)
        assert world.held() == 3, "holders above a lowered cap stay"
        release_all(*clients[:2])
        assert said(*clients).count("granted") == 3, "and nobody comes before they are below it"
        clients[2].release()
        assert said(*clients).count("granted") == 4


@pytest.mark.parametrize("where", [HOST, "*.example.com"])
def test_what_an_operator_sets_goes_before_the_profile_field_by_field(app: App, where: str) -> None:
    profile = {"limit": 1, "min_hold": "5s", "breaker": True}
    with SlotWorld(app, profile) as world:
        clients = [world.asks(f"ip:{n}", window_s=60.0) for n in range(4)]
        world.settings({"limit": 3}, where)
        assert said(*clients).count("granted") == 3
        policy = world.gate().policy
        assert (policy.cap, policy.min_hold_s) == (3, 5.0)
        assert policy.breaker is not None
        world.settings(None, where)
        assert (world.gate().policy.cap, world.gate().policy.min_hold_s) == (1, 5.0)


def test_what_is_set_for_all_upstreams_stands_behind_the_profile(app: App) -> None:
    with SlotWorld(app, {"limit": 2}) as world:
        world.settings({"limit": 7, "min_hold": "5s"}, "*")
        world.asks("ip:1")
        policy = world.gate().policy
        assert (policy.cap, policy.min_hold_s) == (2, 5.0)


def test_what_an_operator_has_set_is_there_after_a_restart(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        world.asks("ip:1").release()
        world.settings({"limit": 2})
        world.restart()
        clients = [world.asks(f"ip:{n}", window_s=60.0) for n in range(4)]
        assert said(*clients).count("granted") == 2


def test_nobody_of_the_fair_queue_is_refused_because_others_wait(app: App) -> None:
    """`max_waiters` refuses whoever asks too much; these clients just wait, by limits of theirs."""
    app.upstream(HOST, limit=1, max_waiters=1)

    @app.job(upstream=HOST, tenant="ip:1", priority=9)
    def fetch() -> None:
        pass

    with SlotWorld(app, {}) as world:
        one_each: dict[str, Any] = {"max_waiters_per_tenant": 1, "window_s": 60.0}
        clients = [world.asks("ip:1", **one_each) for _ in range(3)]
        assert said(*clients) == ["granted", "waits", "waits"]
        for _ in range(3):
            fetch.enqueue()
        world.run_for(1)
        for client in clients:
            assert client.said == "granted"
            client.release()
            world.run_for(0)


# --- who stands in line


def in_line(clients: list[Client]) -> list[int]:
    return [n for n, client in enumerate(clients) if client.session.ticket is not None]


def test_only_so_many_stand_in_line_and_the_others_just_wait(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        holder = world.asks("ip:0", max_waiters=3, window_s=60.0)
        crowd = [world.asks("ip:1", max_waiters=3, window_s=60.0) for _ in range(6)]
        assert said(*crowd) == ["waits"] * 6, "nobody is refused"
        assert in_line(crowd) == [0, 1, 2]
        holder.release()
        world.run_for(0)
        assert crowd[0].said == "granted"
        assert in_line(crowd[1:]) == [0, 1, 2]


def test_of_each_tenant_only_so_many_stand_in_line(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        world.asks("ip:0", window_s=60.0)
        crowd = [world.asks(f"ip:{1 + n % 2}", max_waiters_per_tenant=2, window_s=60.0)
                 for n in range(8)]  # fmt: skip
        assert in_line(crowd) == [0, 1, 2, 3]


def test_a_crowd_of_one_tenant_does_not_keep_others_out(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        holder = world.asks("ip:0", max_waiters=4, window_s=60.0)
        crowd = [world.asks("ip:1", max_waiters=4, window_s=60.0) for _ in range(50)]
        other = world.asks("ip:2", max_waiters=4, window_s=60.0)
        assert other.session.ticket is not None
        assert in_line(crowd) == [0, 1, 2], "the last of the crowd made room, and waits on"
        assert said(*crowd) == ["waits"] * 50
        order: list[str] = []
        last = holder
        for _ in range(3):
            last.release()
            world.run_for(0)
            [last] = [each for each in (*crowd, other) if each.slot_token and each.holds]
            order.append(last.wish.tenant)
            world.run_for(1)
        assert "ip:2" in order[:2]


@pytest.mark.parametrize("how", ["polls", "hangs up", "leaves", "times out", "reset", "granted"])
def test_whatever_becomes_of_waiters_their_places_come_free(app: App, how: str) -> None:
    """Counts of waiters once leaked, one with each poll or refresh, until nobody got in."""
    limits: dict[str, Any] = {"max_waiters": 2, "max_waiters_per_tenant": 1}
    with SlotWorld(app, {"limit": 1, "tenant": per_ip(1)}) as world:
        for round in range(6):
            holder = world.asks("ip:0", **limits, window_s=60.0)
            clients = [world.asks(f"ip:{1 + n % 3}", **limits, window_s=60.0, max_wait_s=20.0)
                       for n in range(8)]  # fmt: skip
            match how:
                case "polls":
                    for client in clients * 3:
                        client.poll()
                    for client in clients:
                        client.leave()
                case "hangs up":
                    for client in clients:
                        client.hang_up()
                    world.run_for(21)
                case "leaves":
                    random.Random(round).shuffle(clients)
                    for client in clients:
                        client.leave()
                case "times out":
                    world.run_for(21)
                case "reset":
                    world.do(lambda now: world.desk.reset("fairqueue", now))
                case "granted":
                    holder.release()
                    for _ in clients:
                        world.run_for(0)
                        for client in clients:
                            client.release()
            world.run_for(0)
            holder.release()
            host = world.desk.hosts.waiting[HOST]
            assert (host.waiting, host._counts) == ({}, {})
            assert host.lobby is not None
            assert (host.lobby.size, bool(host.lobby)) == (0, False)
            assert world.brain.core.tickets == {}
            assert world.desk.sessions == {}


def test_whoever_is_away_for_longer_takes_no_place_in_line_nor_before_it(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        said_all: dict[str, Any] = {"max_waiters": 1, "claim_s": 2.0}
        holder = world.asks("ip:0", **said_all)
        inside = world.asks("ip:1", **said_all, window_s=60.0)
        away = [world.asks(f"ip:{n}", **said_all, window_s=0.0) for n in range(2, 6)]
        world.run_for(3)
        holder.release()
        assert inside.said == "granted"
        world.run_for(0)
        assert in_line(away) == [], "nobody is there to take what is granted"
        newcomer = world.asks("ip:9", **said_all, window_s=60.0)
        inside.release()
        assert newcomer.said == "granted", "at once"
        back = away[2].poll()
        newcomer.release()
        assert back.said == "granted"


def test_other_limits_for_waiters_hold_from_the_next_client_on(app: App) -> None:
    with SlotWorld(app, {"limit": 1}) as world:
        world.asks("ip:0", window_s=60.0)
        crowd = [world.asks(f"ip:{n}", window_s=60.0) for n in range(1, 5)]
        assert in_line(crowd) == [0, 1, 2, 3]
        crowd += [world.asks(f"ip:{n}", window_s=60.0, max_waiters=2) for n in range(5, 7)]
        assert in_line(crowd) == [0, 1, 2, 3], "who stands there stays"
        crowd.append(world.asks("ip:7", window_s=60.0, max_waiters=6))
        assert in_line(crowd) == [0, 1, 2, 3, 4, 5]
        crowd.append(world.asks("ip:8", window_s=60.0))
        assert in_line(crowd) == list(range(8))


# --- whoever waited longer is charged less


def turns_of(tenants: list[str], rounds: int) -> dict[str, int]:
    """How often each tenant has its turn at a host with one slot when all always want it."""
    turns = dict.fromkeys(tenants, 0)
    options: dict[str, Any] = {"weighting": Weighting(wait_s=0.5), "window_s": 1e6, "lease_s": 1e6}
    with SlotWorld(App(), {"limit": 1}) as world:
        clients = [world.asks(tenant, **options) for tenant in tenants]
        for _ in range(rounds):
            world.run_for(1)
            [client] = [each for each in clients if each.said == "granted"]
            turns[client.wish.tenant] += 1
            client.release()
            clients[clients.index(client)] = world.asks(client.wish.tenant, **options)
    return turns


def test_flooding_is_not_rewarded_by_the_weights() -> None:
    loud = turns_of(["ip:loud"] * 20 + ["ip:a"] * 2 + ["ip:b"] * 2, 90)
    assert loud == turns_of(["ip:loud"] * 2 + ["ip:a"] * 2 + ["ip:b"] * 2, 90)
    assert max(loud.values()) - min(loud.values()) <= 6, "what it did before counts for all"


def test_what_counts_is_how_long_a_tenant_had_no_turn_not_how_often_it_asked() -> None:
    rule = Weighting(base=1.0, per_wait=2.0, wait_s=0.5)
    host = Host(HOST)
    first, second = (Session(n, Wish(kind="fairqueue", tenant="ip:1", terms=Terms(weighting=rule)),
                             at) for n, at in ((1, 100.0), (2, 109.0)))  # fmt: skip
    host.enter(first, 100.0)
    host.enter(second, 109.0)
    assert host.weight("ip:1", rule, 110.25) == 1.0 + 2.0 * 20, "20 times half a second"
    host.leave(first)
    assert host.weight("ip:1", rule, 112.25) == 1.0 + 2.0 * (20 / 2 + 4), "that counts half now"
    host.leave(second)
    assert host.weight("ip:9", rule, 112.25) == 1.0
    host.forget()
    assert host.weight("ip:1", rule, 112.25) == 1.0, "whoever waits no more is like anybody else"


def test_a_tenant_that_waited_longer_pays_less_for_its_place() -> None:
    """Its turn comes again sooner. Without the rule everybody pays the same."""

    def order_by(rule: Weighting | None) -> list[str]:
        with SlotWorld(App(), {"limit": 1}) as world:
            holder = world.asks("ip:0", lease_s=1e6)
            options: dict[str, Any] = {"weighting": rule, "window_s": 1e6, "lease_s": 1e6}
            patient = [world.asks("ip:patient", **options) for _ in range(3)]
            world.run_for(10)
            hasty = [world.asks("ip:hasty", **options) for _ in range(3)]
            holder.release()
            order: list[str] = []
            for _ in range(6):
                world.run_for(4)
                [now_on] = [each for each in (*patient, *hasty) if each.slot_token and each.holds]
                order.append(now_on.wish.tenant.removeprefix("ip:"))
                now_on.release()
                world.run_for(0)
            return order

    equal = order_by(None)
    assert equal[:4].count("patient") == 2
    rewarded = order_by(Weighting(base=1.0, per_wait=1.0, wait_s=1.0))
    assert rewarded[:3].count("patient") == 2, rewarded
    assert rewarded != equal


# --- breaker

TRIPS = {"limit": 2, "breaker": {"in_a_row": 2, "open_for": "60s"}}


def test_bad_answers_open_the_breaker_and_send_everybody_away(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        holders = [world.asks("ip:1"), world.asks("ip:2")]
        waiting = [world.asks(f"ip:{n}", window_s=60.0) for n in range(3, 6)]
        holders[0].release(BAD)
        assert said(*waiting) == ["granted", "waits", "waits"], "one is no reason yet"
        world.run_for(1)
        holders[1].release(BAD)
        opens_at = world.now + 60.0
        assert said(*waiting[1:]) == ["throttled", "throttled"]
        assert [(each.answer.status, each.answer.until) for each in waiting[1:]] == [
            (429, opens_at)
        ] * 2
        assert [each.known for each in waiting[1:]] == [False, False]
        newcomer = world.asks("ip:9")
        assert (newcomer.said, newcomer.answer.until) == ("throttled", opens_at)
        assert newcomer.query_token == "", "there is nothing to wait for"
        assert world.desk.counts.throttled == 3


def test_outcomes_reported_without_a_slot_count_too(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        holder = world.asks("ip:1")
        waiting = [world.asks(f"ip:{n}", window_s=60.0) for n in range(2, 5)]
        unwell = Outcome.failed("no", status=503, upstream_fault=True)
        world.report(unwell, times=2)
        assert said(holder, *waiting) == ["granted", "granted", "throttled", "throttled"]
        assert waiting[1].answer.status == 503


def test_somebody_who_is_away_hears_of_it_when_it_comes_back(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.asks("ip:1")
        world.asks("ip:2")
        away, later = (world.asks(f"ip:{n}", window_s=0.0, max_wait_s=200.0) for n in (3, 4))
        world.run_for(1)
        world.report(BAD, times=2)
        assert said(away, later) == ["pending", "pending"]
        assert away.poll().said == "throttled"
        world.run_for(61)
        later.poll()
        assert later.waits, "it is not open any more"


def test_half_open_one_probe_goes_while_others_wait(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.report(BAD, times=2)
        world.run_for(60)
        probe, *others = (world.asks(f"ip:{n}", window_s=10.0, max_wait_s=200.0) for n in range(4))
        assert said(probe, *others) == ["granted", "waits", "waits", "waits"]
        world.run_for(10)
        assert said(*others) == ["pending"] * 3, "they are not sent away"
        for client in others:
            client.poll()
        probe.release()
        assert sorted(said(*others)) == ["granted", "granted", "waits"], "it is closed again"
        assert world.brain.core.gates.breaker_of(HOST).state == "closed"  # type: ignore[union-attr]


def test_a_probe_that_fails_opens_the_breaker_again(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.report(BAD, times=2)
        world.run_for(60)
        probe, other = world.asks("ip:1"), world.asks("ip:2", window_s=60.0)
        world.run_for(3)
        probe.release(BAD)
        assert (other.said, other.answer.until) == ("throttled", world.now + 60.0)


def test_a_probe_that_nobody_took_is_another_ones(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.report(BAD, times=2)
        world.run_for(60)
        probe = world.asks("ip:1", claim_s=2.0)
        probe.hang_up()
        other = world.asks("ip:2", window_s=60.0)
        assert other.waits
        world.run_for(2)
        assert other.said == "granted"


def test_whoever_calls_there_may_say_how_long_the_breaker_stays_open(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.report(BAD, times=2)
        bad_at = world.now
        world.run_for(10)
        gates = world.brain.core.gates
        world.do(lambda now: gates.keep_breaker_open(HOST, 300.0, now))
        assert world.asks("ip:1").answer.until == bad_at + 300.0
        world.run_for(100)
        assert world.asks("ip:1").said == "throttled"
        world.do(lambda now: gates.keep_breaker_open(HOST, 20.0, now))
        assert world.asks("ip:1").said == "granted", "20 s have passed since the last bad one"


def test_a_host_that_is_closed_for_longer_than_a_client_waits_is_not_waited_for(app: App) -> None:
    with SlotWorld(app, {"limit": 2}) as world:
        holder = world.asks("ip:1")
        waits = [world.asks("ip:2", window_s=200.0, max_wait_s=s) for s in (20.0, 200.0)]
        assert said(*waits) == ["granted", "waits"]
        later = world.asks("ip:3", window_s=60.0, max_wait_s=20.0)
        until = world.now + 100.0
        holder.release(Outcome.pushback(status=429, retry_after_s=100.0))
        assert (later.said, later.answer.until, later.answer.status) == ("throttled", until, 429)
        assert "Retry-After 100 s" in later.answer.why
        assert waits[1].waits, "this one waits longer than that"
        world.run_for(100)
        assert waits[1].said == "granted"


def test_a_host_that_is_paused_is_waited_for(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        world.do(lambda now: world.brain.core.gates.pause("upstream", HOST, now))
        client = world.asks("ip:1", window_s=60.0, max_wait_s=20.0)
        assert client.waits
        world.do(lambda now: world.brain.core.gates.resume("upstream", HOST, now))
        assert client.said == "granted"


def test_a_breaker_of_one_host_is_nothing_to_another(app: App) -> None:
    with SlotWorld(app, TRIPS) as world:
        holders = [world.asks(f"ip:{n}", OTHER) for n in range(2)]
        waiting = world.asks("ip:3", OTHER, window_s=60.0)
        world.report(BAD, times=2)
        assert world.asks("ip:1").said == "throttled"
        assert waiting.waits
        release_all(*holders)
        assert waiting.said == "granted"


# --- memory


def check_nothing_is_kept(world: SlotWorld) -> None:
    brain, desk = world.brain, world.desk
    atlas = brain.core.admission.atlas
    assert (desk.sessions, desk.reclaimed, desk.own) == ({}, {}, {})
    assert (desk.hosts.waiting, desk.hosts.profiles, desk.hosts.policies) == ({}, {}, {})
    assert [address for address in atlas.gates if address[0] == "upstream"] == []
    for gate in atlas.gates.values():
        assert list(getattr(getattr(gate, "shares", None), "accounts", ())) == []
        assert list(getattr(getattr(gate, "shares", None), "debts", ())) == []
    assert atlas.routes == {}
    assert [address for address in brain.ledger.kept if address[0] == "upstream"] == []
    assert [row for row in world.app.store.gates() if row[0] == "upstream"] == []
    assert world.app.store.slots() == []
    assert len(desk._calendar) == 0
    assert brain.core.tickets == {}
    assert brain.core.leases.permits == {}


@pytest.mark.parametrize("new_url", [sqlite_place], ids=["sqlite"])
@pytest.mark.parametrize(
    ("tenants", "hosts", "min_hold"),
    [
        pytest.param(5_000, 1, 0, id="ips"),
        pytest.param(20_000, 1, 0, id="many-ips", marks=pytest.mark.soak),
        pytest.param(2_000, 2_000, "1s", id="hosts"),
    ],
)
def test_a_flood_of_tenants_and_hosts_leaves_nothing_behind(
    app: App, tenants: int, hosts: int, min_hold: Any
) -> None:
    crowd = 250
    profile = {"limit": 50, "breaker": True, "tenant": per_ip(1, cooldown="10s"),
               "min_hold": min_hold}  # fmt: skip
    with SlotWorld(app, profile) as world:
        desk = world.desk
        for start in range(0, tenants, crowd):
            clients = [
                world.client(f"ip:{n}", f"h{n % hosts}.com", max_waiters=100, max_wait_s=20.0)
                for n in range(start, start + crowd)
            ]

            def ask(now: float, clients: list[Client] = clients) -> None:
                for client in clients:
                    client.ask_now(now)

            def give_back(now: float, clients: list[Client] = clients) -> None:
                for client in clients:
                    session, fence = desk.by_slot_token(client.slot_token)
                    if session is not None:
                        desk.release(session, fence, Outcome.ok(), now)

            world.do(ask)
            for _ in range(6):
                world.do(give_back)
                world.run_for(1)
        assert desk.counts.created == tenants
        assert desk.counts.released >= 0.8 * tenants, "they did pass through"
        world.run_for("4m")
        check_nothing_is_kept(world)


def test_a_host_whose_limits_still_matter_is_not_forgotten(app: App) -> None:
    with SlotWorld(app, {"limit": 1, "tenant": per_ip(1, cooldown="5m")}) as world:
        world.asks("ip:1").release()
        world.run_for("4m")
        assert world.asks("ip:1", window_s=0.0).waits
        world.run_for("10m")
        assert ("upstream", HOST) not in world.brain.core.admission.atlas.gates
        check_nothing_is_kept(world)
