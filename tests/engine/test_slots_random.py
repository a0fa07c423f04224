"""Clients of every kind ask, come back, hold on too long and go as they like, through crashes: what
must hold whatever happens.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from random import Random
from typing import Any

import pytest

from headway import App
from headway.core import Outcome, State
from headway.engine.slots import FAIRQUEUE, LEASE, OWN, Answer, Phase, Session, Weighting
from tests.engine.slot_kit import BAD, INF, Client, SlotWorld, per_ip

PROFILES: dict[str, dict[str, Any]] = {
    "a.com": {"limit": 2, "tenant": per_ip(1, cooldown="3s")},
    "b.com": {"limit": 1, "min_hold": "2s", "breaker": {"in_a_row": 3, "open_for": "20s"}},
    "c.com": {"limit": 3, "tenant": per_ip(2)},
}
DECLARED = "c.com"  # where others come, too: a profile holds where somebody of the queue is
STEPS = 250


class Visitor:
    """What one client believes, from nothing but what it was told."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.host = client.wish.upstreams[0]
        self.ends_at = 0.0  # of its lease, as it was told last
        self.holding = False
        self.heard: Future[Answer] | None = None  # the request that told it so
        self.given_back = False


class Turmoil:
    def __init__(self, world: SlotWorld, seed: int) -> None:
        self.world = world
        self.rng = Random(seed)
        self.visitors: list[Visitor] = []
        self.told: Counter[Future[Answer]] = Counter()
        self.caps: dict[str, int] = {host: each["limit"] for host, each in PROFILES.items()}
        self.fences: set[int] = set()
        self.outlived = 0
        self.crashes = 0

    # ------------------------------------------------------------------ what happens

    def ask(self) -> None:
        rng = self.rng
        kind = rng.choice([FAIRQUEUE] * 6 + [LEASE] * 2 + [OWN])
        host = rng.choice(list(PROFILES)) if kind == FAIRQUEUE else DECLARED
        tenant = f"ip:{rng.randint(1, 4)}"
        limits = rng.choice([(None, None), (3, None), (3, 1), (4, 2)])
        client = self.world.client(
            tenant, host, kind=kind, lease_s=rng.choice([3.0, 8.5, 20.0]),
            max_wait_s=None if kind == OWN else rng.choice([15.0, 40.0]),
            idle_s=rng.choice([6.0, 12.5]), claim_s=rng.choice([0.5, 2.0]),
            max_waiters=limits[0], max_waiters_per_tenant=limits[1],
            weighting=rng.choice([None, Weighting()]),
        )  # fmt: skip
        visitor = Visitor(client)
        self.visitors.append(visitor)
        client.ask(INF if kind == OWN else rng.choice([0.0, 3.0, 6.0]))
        self.listen(visitor)

    def listen(self, visitor: Visitor) -> None:
        """It hears each answer once, whenever it comes."""
        waiter = visitor.client.requests[-1]

        def hear(waiter: Future[Answer]) -> None:
            if waiter.cancelled():
                return
            self.told[waiter] += 1
            answer = waiter.result()
            if answer.what == "granted":
                assert answer.permit is not None
                assert not visitor.given_back, "it has given that back"
                visitor.holding, visitor.heard = True, waiter
                visitor.ends_at = answer.permit.expires_at

        waiter.add_done_callback(hear)

    def any_visitor(self) -> Visitor | None:
        return self.rng.choice(self.visitors[-40:]) if self.visitors else None

    def poll(self) -> None:
        visitor = self.any_visitor()
        if visitor is not None and visitor.client.wish.kind != OWN and visitor.client.query_token:
            visitor.client.poll(self.rng.choice([0.0, 3.0, 6.0]))
            self.listen(visitor)

    def hang_up(self) -> None:
        visitor = self.any_visitor()
        if visitor is None or visitor.client.wish.kind == OWN or not visitor.client.known:
            return
        client = visitor.client
        session, waiter = client.session, client.requests[-1]
        if visitor.heard is waiter:
            if self.rng.random() < 0.7:
                return
            visitor.holding = False  # the answer never reached it
        waiter.cancel()
        self.world.do(lambda now: self.world.desk.hang_up(session, waiter, now))

    def release(self) -> None:
        holders = [each for each in self.visitors if each.holding]
        if holders:
            self.give_back(self.rng.choice(holders))

    def give_back(self, visitor: Visitor) -> None:
        now = self.world.now
        over = visitor.ends_at <= now and visitor.client.wish.kind != OWN
        done = visitor.client.release(self.rng.choice([Outcome.ok(), Outcome.ok(), BAD]))
        assert done != over, f"{visitor.client.wish} until {visitor.ends_at}, at {now}"
        self.outlived += over
        visitor.holding, visitor.given_back = False, True
        if self.rng.random() < 0.3:
            assert not visitor.client.release(), "twice"

    def leave(self) -> None:
        visitor = self.any_visitor()
        if visitor is not None and visitor.client.known:
            mine = visitor.client.session.phase is Phase.GRANTED
            over = visitor.ends_at <= self.world.now
            visitor.client.leave()
            if visitor.holding and mine:
                self.outlived += over
                visitor.holding = False
            visitor.given_back = True

    def renew(self) -> None:
        leases = [each for each in self.visitors
                  if each.holding and each.client.wish.kind == LEASE]  # fmt: skip
        if leases:
            visitor = self.rng.choice(leases)
            ends_at = visitor.client.renew(self.rng.choice([None, None, 5.0]))
            assert (ends_at is None) == (visitor.ends_at <= self.world.now)
            if ends_at is not None:
                visitor.ends_at = ends_at

    def report(self) -> None:
        outcome, times = self.rng.choice([(Outcome.ok(status=200), 1), (BAD, 1), (BAD, 3)])
        self.world.report(outcome, times, self.rng.choice(list(PROFILES)))

    def set_limit(self) -> None:
        host = self.rng.choice(list(PROFILES))
        limit = self.rng.choice([None, 1, 2, 4])
        self.world.settings(None if limit is None else {"limit": limit}, host)
        self.caps[host] = limit or PROFILES[host]["limit"]

    def reset(self) -> None:
        if self.rng.random() < 0.2:
            self.world.do(lambda now: self.world.desk.reset(FAIRQUEUE, now))
        elif self.rng.random() < 0.3:
            self.world.do(self.world.desk.send_home)

    def crash(self) -> None:
        """All requests are cut off; slots of the engine itself go with it."""
        if self.rng.random() > 0.2:
            return
        self.crashes += 1
        self.world.crash()
        for visitor in self.visitors:
            visitor.client.requests[-1].cancel()
            visitor.heard = None
            visitor.holding &= visitor.client.wish.kind != OWN
        self.world.clock.at += self.rng.choice([0.0, 0.7, 5.0])
        self.world.restart()
        for visitor in self.visitors:
            if visitor.holding and visitor.client.wish.kind == LEASE and visitor.client.known:
                visitor.ends_at = visitor.client.session.lease_end  # a whole one

    def wait(self) -> None:
        if self.rng.random() < 0.2:
            self.world.clock.at += self.rng.choice([0.1, 1.3, 2.0])  # the engine is late itself
        else:
            self.world.run_for(self.rng.choice([0.0, 0.25, 1.0, 2.5]))

    # ------------------------------------------------------------------ what must hold

    def check(self) -> None:
        self.world.run_for(0)
        self.check_caps()
        self.check_sessions()
        self.check_hosts()
        assert all(count == 1 for count in self.told.values()), "answered twice"

    def check_caps(self) -> None:
        """By the engine's own count, and by what those outside have been told."""
        world, now = self.world, self.world.now
        for host, cap in self.caps.items():
            gate = world.brain.core.admission.atlas.gates.get(("upstream", host))
            new = set() if gate is None else {each for each in gate.leases if each > 0}
            if gate is not None and new - self.fences:
                assert len(gate.leases) <= cap
                believers = [each for each in self.visitors
                             if each.holding and each.host == host
                             and (each.ends_at > now or each.client.wish.kind == OWN)]  # fmt: skip
                assert len(believers) <= cap
            self.fences |= new

    def check_sessions(self) -> None:
        desk, core = self.world.desk, self.world.brain.core
        for session in desk.sessions.values():
            if session.phase is Phase.WAITING:
                assert (session.permit, session.fence) == (None, 0)
                assert session.waiter is None or session.lined_up, "attached, and not in line"
                assert session.ticket is None or session.lined_up
                if session.ticket is not None:
                    assert core.tickets[session] is session.ticket
                    assert session.ticket.state is State.QUEUED
                    if min(self.world.gate(session.wish.upstreams[0]).leases, default=0) >= 0:
                        reason = core.explain(session, core.now).reason
                        assert reason != "behind", f"{session} waits for nothing"
            else:
                assert session.phase is Phase.GRANTED
                assert session.permit is core.leases.permits[session.fence]
                assert (session.waiter, session.host, session.lined_up) == (None, None, False)
                assert core.tickets[session] is session.ticket
        assert {each for each in core.tickets if isinstance(each, Session)} == {
            each for each in desk.sessions.values() if each.ticket is not None
        }
        assert {session.phase for session in desk.reclaimed.values()} <= {Phase.RECLAIMED}
        assert not desk.sessions.keys() & desk.reclaimed.keys()
        stored = {row.number: row.phase for row in self.world.app.store.slots()}
        assert stored == {
            each.number: each.phase for each in (*desk.sessions.values(), *desk.reclaimed.values())
            if each.wish.kind != OWN or each.phase is Phase.GRANTED
        }  # fmt: skip

    def check_hosts(self) -> None:
        desk = self.world.desk
        waiting: dict[str, set[Session]] = {host: set() for host in PROFILES}
        for session in desk.sessions.values():
            if session.phase is Phase.WAITING and session.wish.kind == FAIRQUEUE:
                waiting[session.wish.upstreams[0]].add(session)
        for name, sessions in waiting.items():
            host = desk.hosts.waiting.get(name)
            if host is None:
                assert not sessions
                continue
            assert set(host.waiting) == sessions
            assert host._counts == Counter(each.wish.tenant for each in sessions)
            standing = {each for each in sessions if each.ticket is not None}
            lined_up = {each for each in sessions if each.lined_up}
            if host.lobby is None:
                assert standing == lined_up
                continue
            inside = {each for some in host.lobby._inside.values() for each in some}
            outside = {each for some in host.lobby._outside.values() for each in some}
            assert (inside, outside) == (standing, lined_up - standing)
            assert host.lobby.size == len(inside)

    # ------------------------------------------------------------------ the end

    def end(self) -> None:
        """Everybody gives back what it holds and comes no more."""
        world = self.world
        for visitor in self.visitors:
            if visitor.holding:
                self.give_back(visitor)
                self.check()
        for visitor in self.visitors:
            if visitor.client.wish.kind == OWN and visitor.client.known:
                visitor.client.leave()
        world.run_for(120)
        self.check()
        assert all(each.done() for visitor in self.visitors for each in visitor.client.requests)
        assert world.desk.sessions == {}
        assert sum(each.outlived for each in world.desk.overshoot.values()) == self.outlived
        world.run_for("70m")
        assert (world.desk.reclaimed, world.app.store.slots()) == ({}, [])
        assert world.desk.hosts.waiting == {}
        assert world.brain.core.leases.permits == {}
        assert world.desk._calendar == []


@pytest.mark.parametrize("seed", range(12))
def test_whatever_clients_do_nobody_gets_too_much_and_nothing_is_left(app: App, seed: int) -> None:
    app.upstream(DECLARED, **PROFILES[DECLARED])
    with SlotWorld(app, PROFILES.__getitem__, seed=seed) as world:
        it = Turmoil(world, seed)
        happenings = [
            *[it.ask] * 7, *[it.poll] * 8, *[it.wait] * 6, *[it.release] * 3, it.hang_up, it.leave,
            it.renew, it.report, it.set_limit, it.reset, it.crash,
        ]  # fmt: skip
        for _ in range(STEPS):
            it.rng.choice(happenings)()
            it.check()
        it.end()
