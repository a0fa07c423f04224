"""A world that does everything to a core that can be done to it, at random but repeatably."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from random import Random

from headway.core import (
    BreakerRule,
    Core,
    GatePolicy,
    IllegalTransition,
    Outcome,
    PaceRule,
    Permit,
    Policies,
    Refused,
    RetryPolicy,
    Scope,
    State,
    Stop,
    Ticket,
    Traffic,
)
from headway.core.order import PINNED
from tests.sim import checks
from tests.sim.model import Held, Model

LANES, TOOLS, TYPES = ("cookie", "plain"), ("ffmpeg", "yt-dlp"), ("download", "check")
UPSTREAMS, TENANTS, KEYS = ("a.example", "b.example", "c.example"), "wxyz", ("k1", "k2", "k3")
CROWD = 40  # above so many open tickets the world prefers to finish what it has


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.now = 1_000.0
        self.model = Model()
        self.core = Core(
            self._declare_all(),
            rng=Random(seed + 1),
            retry={"download": RetryPolicy(retries=2, delay_s=5, growth=2)},
            lease_s=20.0,
            max_key_hold_s=45.0,
            age_s=60.0,
            patience_s=self.rng.choice((1.0, 10.0)),
        )
        self.dead: list[tuple[object, int]] = []  # permits that are over: their fences are stale
        self.numbers = 0
        self.history = blake2b(digest_size=16)
        self.steps = 0
        self.actions = self._actions()

    def _declare_all(self) -> Policies:
        policies = Policies()
        rng = self.rng
        declared: dict[tuple[str, str], GatePolicy] = {}
        for lane in LANES:
            declared["lane", lane] = GatePolicy(cap=rng.randint(1, 4))
        for tool in TOOLS:
            declared["tool", tool] = GatePolicy(cap=rng.randint(1, 3))
        for upstream in UPSTREAMS:
            declared["upstream", upstream] = self._upstream_policy()
        if rng.random() < 0.3:
            declared["type", "check"] = GatePolicy(cap=2)
        for (kind, name), policy in declared.items():
            policies.declare(kind, name, policy)
        self.model.policies = declared
        return policies

    def _upstream_policy(self) -> GatePolicy:
        rng = self.rng
        cap = rng.choice((None, 2, 3, 4))
        tenant = None
        if rng.random() < 0.6:
            tenant = GatePolicy(cap=rng.randint(1, 2), cooldown_s=rng.choice((0.0, 0.0, 3.0)))
        return GatePolicy(
            cap=cap,
            reserve=rng.choice((0, 0, 1)),
            pace=rng.choice(
                (None, PaceRule(1.0), PaceRule(2.0, burst=3), PaceRule(1.0, jitter=0.5))
            ),
            cooldown_s=rng.choice((0.0, 0.0, 2.0)),
            min_hold_s=rng.choice((0.0, 0.0, 4.0)),
            breaker=rng.choice((None, None, BreakerRule(open_s=20.0))),
            tenant=tenant,
        )

    # ------------------------------------------------------------------ one step

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()
        self.drain()

    def step(self) -> None:
        self.steps += 1
        self.now += self.rng.expovariate(2.0)
        self._let_time_pass()
        action = self._crowded() if len(self.model.tickets) > CROWD else self._any()
        action()
        self.settle()

    def _any(self) -> Callable[[], None]:
        return self.rng.choices(*self.actions)[0]

    def _crowded(self) -> Callable[[], None]:
        return self.finish if self.rng.random() < 0.7 else self._any()

    def _let_time_pass(self) -> None:
        self.core.advance(self.now)
        self.hear()
        self.model.time_passes(self.now)

    def hear(self) -> None:
        """Take note of what the core has changed."""
        for change in self.core.changes:
            checks.check_change(self.model, change)
            self.model.changed(change)
            before = "" if change.before is None else change.before.value
            line = f"{change.ticket.id} {before} {change.after.value} {change.at!r} {change.fence}"
            self.history.update(line.encode())
            if before == "running" and change.fence in self.model.held:
                self._over(change.fence, Outcome.lost())  # only leases that ran out end unasked
        self.core.changes.clear()

    def _over(self, fence: int, outcome: Outcome) -> None:
        self.dead.append((self.model.held[fence].ticket.id, fence))
        del self.dead[:-20]
        self.model.given_back(fence, outcome, self.now)

    def settle(self) -> None:
        """Let everybody go who may, and look at everything."""
        self.hear()
        self.model.time_passes(self.now)
        permits = self.core.admit(self.now)
        for permit in permits:
            held = self.model.granted(permit, self.now)
            checks.check_grant(self.model, held, self.now)
            self.model.states[permit.ticket.id] = State.RUNNING
        for change in self.core.changes:
            if change.after is State.RUNNING and change.before is State.QUEUED:
                self.history.update(f"{change.ticket.id} granted {change.fence}".encode())
                self.model.tickets[change.ticket.id] = change.ticket
        self.core.changes.clear()
        self.core.stops.clear()
        checks.check_work_conserving(self.model, self.core, self.now)
        checks.check_reservations(self.model, self.core, self.now)
        checks.check_leases(self.model, self.core)
        if self.steps % 16 == 0:
            checks.check_running(self.model)
            checks.check_counts(self.model, self.core)

    # ------------------------------------------------------------------ actions

    def _actions(self) -> tuple[list[Callable[[], None]], list[int]]:
        weights: dict[Callable[[], None], int] = {
            self.submit: 30,
            self.finish: 30,
            self.heartbeat: 6,
            self.crash: 2,
            self.late: 2,
            self.call: 3,
            self.cancel: 3,
            self.pause: 2,
            self.resume: 4,
            self.pin: 1,
            self.unpin: 1,
            self.prioritise: 1,
            self.pause_gate: 1,
            self.resume_gate: 3,
            self.close_gate: 1,
            self.open_gate: 1,
            self.change_cap: 2,
            self.retry: 2,
            self.reschedule: 1,
            self.jump_back: 1,
            self.jump_ahead: 1,
            self.sweep: 1,
            self.report: 1,
        }
        return list(weights), list(weights.values())

    def ticket(self) -> Ticket:
        rng = self.rng
        self.numbers += 1
        upstreams: tuple[str, ...] = (rng.choice(UPSTREAMS),)
        if rng.random() < 0.15:
            upstreams = ()
        elif rng.random() < 0.2:
            upstreams = tuple(rng.sample(UPSTREAMS, 2))
        key = rng.choice(KEYS) if rng.random() < 0.35 else None
        tenant = rng.choice(TENANTS)
        return Ticket(
            self.numbers,
            type=rng.choice(TYPES),
            lane=rng.choice(LANES),
            tools=tuple(rng.sample(TOOLS, rng.choice((0, 0, 1, 2)))),
            upstreams=upstreams,
            key=key,
            ordered=rng.choice((None, "pass", "hold")) if key else None,
            tenant=tenant,
            weight=1.0 + TENANTS.index(tenant),
            traffic=Traffic.LEFTOVER if rng.random() < 0.2 else Traffic.NORMAL,
            priority=rng.randint(1, 10),
            not_before=self.now + rng.choice((0, 0, 0, 5)),
            deadline=self.now + 300 if rng.random() < 0.1 else float("inf"),
        )

    def submit(self) -> None:
        with suppress(Refused):
            self.core.submit(self.ticket(), self.now)

    def call(self) -> None:
        ticket = self.ticket()
        ticket.traffic, ticket.key, ticket.ordered = Traffic.ONLINE, None, None
        answer = self.core.call(ticket, self.now)
        if isinstance(answer, Permit):
            held = self.model.granted(answer, self.now)
            if any(self.model.shut(name, self.now) for name in held.names):
                raise checks.Violation("nobody enters a closed gate", f"online {ticket}")

    def _some_held(self) -> Held | None:
        alive = [
            held
            for held in self.model.held.values()
            if held.alive and held.permit.expires_at > self.now
        ]
        return self.rng.choice(alive) if alive else None

    def _outcome(self, held: Held) -> Outcome:
        kind = self.rng.choices(
            ("ok", "failed", "fatal", "fault", "pushback", "tenant", "cancelled", "returned"),
            (60, 8, 3, 6, 6, 2, 4, 4),
        )[0]
        if kind == "failed":
            return Outcome.failed("no luck")
        if kind == "fatal":
            return Outcome.failed("never", fatal=True)
        if kind == "fault":
            return Outcome.failed("500", status=500, upstream_fault=True)
        if kind == "pushback":
            return Outcome.pushback(retry_after_s=self.rng.choice((3.0, 15.0)))
        if kind == "tenant":
            return Outcome.pushback(retry_after_s=6.0, scope=Scope.TENANT)
        if kind == "cancelled":
            return Outcome.cancelled()
        if kind == "returned":
            return Outcome.returned(after_s=self.rng.choice((0.0, 2.0)))
        return Outcome.ok(hit_at=held.granted_at + self.rng.uniform(-5, 5))

    def finish(self) -> None:
        held = self._some_held()
        if held is not None:
            self.give_back(held, self._outcome(held))

    def give_back(self, held: Held, outcome: Outcome) -> None:
        ticket, fence = held.ticket, held.permit.fence
        to_cancel = ticket.asked is Stop.CANCEL
        if outcome.kind.value == "pushback" and held.upstream is not None:
            name = ("upstream", held.upstream)
            if outcome.scope is Scope.TENANT:
                name = ("tenant", f"{ticket.tenant}@{held.upstream}")
            until = self.now + (outcome.retry_after_s or 0.0)
            self.model.closed[name] = max(self.model.closed.get(name, 0.0), until)
        self._over(fence, outcome)
        change = self.core.finish(ticket.id, fence, outcome, self.now)
        checks.check_finish(change, to_cancel, outcome)

    def heartbeat(self) -> None:
        for held in self.model.held.values():
            if held.alive:
                over = held.permit.expires_at <= self.now
                end = self.core.heartbeat(held.ticket.id, held.permit.fence, self.now)
                if over is not (end is None):
                    raise checks.Violation("leases end to the moment", f"{held} until {end}")

    def crash(self) -> None:
        held = self._some_held()
        if held is not None:
            held.alive = False

    def late(self) -> None:
        """A holder whose lease is over comes back."""
        if self.dead:
            id, fence = self.rng.choice(self.dead)
            before = len(self.core.changes)
            change = self.core.finish(id, fence, Outcome.ok(), self.now)
            checks.check_stale(self.core, change, before)
            assert self.core.heartbeat(id, fence, self.now) is None

    def _some_ticket(self) -> Ticket | None:
        tickets = list(self.model.tickets.values())
        return self.rng.choice(tickets) if tickets else None

    def _operate(self, do: Callable[[object], object]) -> None:
        ticket = self._some_ticket()
        if ticket is None:
            return
        before = len(self.core.changes), ticket.state
        try:
            do(ticket.id)
        except IllegalTransition:
            assert (len(self.core.changes), ticket.state) == before, "refused, but changed"

    def cancel(self) -> None:
        self._operate(lambda id: self.core.cancel(id, self.now))

    def pause(self) -> None:
        self._operate(lambda id: self.core.pause(id, self.now))

    def resume(self) -> None:
        self._operate(lambda id: self.core.resume(id, self.now))

    def pin(self) -> None:
        self._operate(lambda id: self.core.pin(id, self.now))

    def unpin(self) -> None:
        """Whatever is pinned, so that it is not nobody most of the time."""
        pinned = [each for each in self.model.tickets.values() if each.rank <= PINNED]
        if pinned:
            self.core.unpin(self.rng.choice(pinned).id, self.now)

    def prioritise(self) -> None:
        priority = self.rng.randint(1, 10)
        self._operate(lambda id: self.core.prioritise(id, priority, self.now))

    def reschedule(self) -> None:
        at = self.now + self.rng.choice((-1.0, 10.0))
        self._operate(lambda id: self.core.reschedule(id, at, self.now))

    def _some_gate(self) -> tuple[str, str]:
        names = [("everything", ""), *(("lane", n) for n in LANES), *(("type", n) for n in TYPES)]
        names += [*(("tool", n) for n in TOOLS), *(("upstream", n) for n in UPSTREAMS)]
        return self.rng.choice(names)

    def pause_gate(self) -> None:
        name = self._some_gate()
        self.core.gates.pause(*name, self.now)
        self.model.paused.add(name)

    def resume_gate(self) -> None:
        if self.model.paused:
            name = self.rng.choice(sorted(self.model.paused))
            self.core.gates.resume(*name, self.now)
            self.model.paused.discard(name)

    def close_gate(self) -> None:
        name, until = self._some_gate(), self.now + self.rng.uniform(1, 20)
        self.core.gates.close(*name, self.now, until=until, why="told to")
        self.model.closed[name] = max(self.model.closed.get(name, 0.0), until)

    def open_gate(self) -> None:
        name = self._some_gate()
        self.core.gates.open(*name, self.now)
        self.model.closed.pop(name, None)

    def change_cap(self) -> None:
        kind, name = self.rng.choice(sorted(self.model.policies))
        policy = self.model.policies[kind, name]
        cap = self.rng.randint(policy.reserve + 1, 4)
        if policy.min_hold_s:
            return  # the smoothing would change with it; the model keeps that simple
        self.model.policies[kind, name] = policy = replace(policy, cap=cap)
        self.core.gates.declare(kind, name, policy, self.now)

    def retry(self) -> None:
        candidates = [t for t in self.model.ended.values() if t.state is not State.COMPLETED]
        if not candidates or len(self.model.tickets) > CROWD:
            return
        ticket = self.rng.choice(candidates)
        if ticket.deadline > self.now and ticket.retries:
            self.core.retry(ticket, self.now)

    def jump_back(self) -> None:
        """The caller's clock is behind: the core must not follow it."""
        self.core.advance(self.now - 100.0)
        assert self.core.now == self.now

    def jump_ahead(self) -> None:
        if self.rng.random() < 0.2:
            self.now += 60.0
            self._let_time_pass()

    def sweep(self) -> None:
        self.core.sweep(self.now)

    def report(self) -> None:
        self.core.gates.report(self.rng.choice(UPSTREAMS), Outcome.ok(), self.now)

    # ------------------------------------------------------------------ the end

    def drain(self) -> None:
        """Open everything, do all work well: then nobody may be left."""
        for name in sorted(self.model.paused):
            self.core.gates.resume(*name, self.now)
        self.model.paused.clear()
        self.settle()
        for _ in range(20_000):
            if not self.model.tickets:
                break
            for ticket in list(self.model.tickets.values()):
                if ticket.state is State.PAUSED:
                    self.core.resume(ticket.id, self.now)
            self.settle()
            held = self._some_held()
            if held is not None:
                self.now += 0.1
            else:
                self._sleep()
            self._let_time_pass()
            if held is not None and held.permit.fence in self.model.held:
                self.give_back(held, Outcome.ok())
            self.settle()
        else:
            left = sorted(map(str, self.model.tickets.values()))
            raise checks.Violation("nobody starves", f"{left} are left at the end")
        self._leave_nothing_behind()

    def _sleep(self) -> None:
        """Nobody works: only time can bring anything."""
        wakeup = self.core.next_wakeup()
        if wakeup == float("inf"):
            left = sorted(map(str, self.model.tickets.values()))
            raise checks.Violation("somebody sets the clock", f"{left} sleep for ever")
        self.now = max(self.now, wakeup)

    def _leave_nothing_behind(self) -> None:
        self.now += 10_000.0
        self._let_time_pass()
        self.settle()
        self.core.sweep(self.now)
        atlas = self.core.admission.atlas
        left = [
            *atlas.routes,
            *atlas.tracks,
            *atlas.keys,
            *self.core.leases.permits,
            *(gate.label for gate in atlas.gates.values() if not gate.idle(self.now)),
            *(g.label for g in atlas.all_gates() if g.kind == "tenant"),
        ]
        if left or self.core.tickets:
            raise checks.Violation("nothing is left behind", f"{left} {self.core.tickets}")
