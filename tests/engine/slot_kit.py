"""Clients of the slot desk, who know nothing but their tokens, and a world with hosts."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from unittest.mock import patch

from headway import App
from headway.core import Outcome
from headway.engine.brain import Brain
from headway.engine.recovery import load
from headway.engine.slots import FAIRQUEUE, Answer, Session, SlotDesk, Terms, Wish
from headway.engine.slots.session import new_secret
from headway.testing import World
from headway.testing import world as worlds
from headway.testing.world import VirtualEngine

INF = float("inf")
HOST = "files.example.com"
WINDOW_S = 6.0  # how long a poll waits for its answer
TERMS = frozenset(Terms.__struct_fields__)
BAD = Outcome.failed("no", status=429, upstream_fault=True)

Profile = dict[str, Any]
Profiles = Callable[[str], Profile]


def per_ip(limit: int = 1, **more: Any) -> Profile:
    """What each IP may use."""
    return {"limit": limit, "only": "ip:", **more}


class SlotWorld(World):
    """A world whose hosts have profiles. They hold from the first moment of each engine."""

    def __init__(self, app: App, profile: Profile | Profiles, **options: Any) -> None:
        super().__init__(app, **options)
        self.profile_of: Profiles = profile if callable(profile) else lambda _: profile

    def __enter__(self) -> SlotWorld:
        super().__enter__()
        return self

    def _profile(self, host: str) -> Profile:
        return self.profile_of(host)

    def _start(self) -> VirtualEngine:
        def load_with_profiles(brain: Brain) -> None:
            brain.policies.hosts.profile_of = self._profile  # as it is at any time
            load(brain)

        with patch.object(worlds, "load", load_with_profiles):
            return super()._start()

    @property
    def brain(self) -> Brain:
        assert self.app.engine is not None
        return self.app.engine.brain

    @property
    def desk(self) -> SlotDesk:
        return self.brain.slots

    def do(self, call: Callable[[float], Any]) -> Any:
        """Something that is done in the brain's turn."""
        assert self.app.engine is not None
        future = self.app.engine.ask(call)
        assert future.done(), "the turn has been, and nobody was answered"
        return future.result()

    def client(self, tenant: str = "ip:1", host: str = HOST, **said: Any) -> Client:
        """Somebody who has not asked yet. `said` are fields of its wish, or of its terms."""
        terms = Terms(**{name: value for name, value in said.items() if name in TERMS})
        rest = {name: value for name, value in said.items() if name not in TERMS}
        rest.setdefault("kind", FAIRQUEUE)
        rest.setdefault("secret", new_secret())
        return Client(self, Wish(upstreams=(host,), tenant=tenant, terms=terms, **rest))

    def asks(self, tenant: str = "ip:1", host: str = HOST, **said: Any) -> Client:
        """Somebody who asks now, and waits."""
        window_s = said.pop("window_s", WINDOW_S)
        return self.client(tenant, host, **said).ask(window_s)

    def gate(self, host: str = HOST) -> Any:
        return self.brain.core.admission.atlas.gates[("upstream", host)]

    def held(self, host: str = HOST) -> int:
        """Valid leases at a host, those included that are given back and still take a place."""
        gates = self.brain.core.admission.atlas.gates
        return len(gates[("upstream", host)].leases) if ("upstream", host) in gates else 0

    def settings(self, value: Profile | None, host: str = HOST) -> None:
        """What an operator sets for a host, or resets."""
        self.do(lambda now: self.brain.controls.set("upstream", host, value, now))

    def report(self, outcome: Outcome, times: int = 1, host: str = HOST) -> None:
        """Somebody without a slot says how the host has answered."""

        self.do(lambda now: self.desk.hosts.use(host, now))
        self.report_only(outcome, times, host)

    def report_only(self, outcome: Outcome | None, times: int = 1, host: str = HOST) -> None:
        """The same for an upstream that is declared; nobody of the fair queue has been there."""
        gates = self.brain.core.gates
        for _ in range(times):
            self.do(lambda now: gates.report(host, outcome or Outcome.ok(), now))


class Client:
    """Its requests, one after the other; it finds its session again by its token only."""

    def __init__(self, world: SlotWorld, wish: Wish) -> None:
        self.world = world
        self.wish = wish
        self.query_token = ""
        self.slot_token = ""
        self.requests: list[Future[Answer]] = []
        self.asked_at = self.granted_at = 0.0
        self.number = 0

    # ------------------------------------------------------------------ asking

    def ask(self, window_s: float = WINDOW_S) -> Client:
        return self._request(lambda waiter, now: self._open(waiter, now + window_s, now))

    def ask_now(self, now: float, window_s: float = WINDOW_S) -> Future[Answer]:
        """The same in the middle of a turn, with whatever else happens there."""
        waiter = self._new_request()
        self._open(waiter, now + window_s, now)
        return waiter

    def poll(self, window_s: float = WINDOW_S) -> Client:
        def poll(waiter: Future[Answer], now: float) -> None:
            desk = self.world.desk
            desk.poll(desk.by_token(self.query_token), waiter, now + window_s, now)

        return self._request(poll)

    def _open(self, waiter: Future[Answer], until: float, now: float) -> None:
        session = self.world.desk.open(self.wish, waiter, until, now)
        if session is not None:
            self.query_token, self.number = session.query_token, session.number
            self.asked_at = now

    def _request(self, call: Callable[[Future[Answer], float], None]) -> Client:
        waiter = self._new_request()
        assert self.world.app.engine is not None
        self.world.app.engine.ask_for(waiter, lambda now: call(waiter, now), later=True)
        return self

    def _new_request(self) -> Future[Answer]:
        waiter: Future[Answer] = Future()
        waiter.add_done_callback(self._hear)
        self.requests.append(waiter)
        return waiter

    def _hear(self, waiter: Future[Answer]) -> None:
        """A token is written down when it is told: what it names may be over later."""
        if waiter.cancelled() or waiter.exception() is not None:
            return
        answer = waiter.result()
        if answer.what == "granted" and answer.session is not None:
            self.slot_token = answer.session.slot_token
            self.granted_at = answer.session.granted_at

    def hang_up(self) -> Client:
        """The connection of its last request is gone."""
        waiter = self.requests[-1]
        waiter.cancel()
        session = self.session
        self.world.do(lambda now: self.world.desk.hang_up(session, waiter, now))
        return self

    # ------------------------------------------------------------------ holding

    def release(self, outcome: Outcome | None = None) -> bool:
        """False: nothing was given back."""

        def give_back(now: float) -> bool:
            session, fence = self.world.desk.by_slot_token(self.slot_token)
            result = outcome or Outcome.ok()
            return session is not None and self.world.desk.release(session, fence, result, now)

        return bool(self.world.do(give_back))

    def renew(self, lease_s: float | None = None) -> float | None:
        def renew(now: float) -> float | None:
            session, fence = self.world.desk.by_slot_token(self.slot_token)
            return None if session is None else self.world.desk.renew(session, fence, lease_s, now)

        ends_at: float | None = self.world.do(renew)
        return ends_at

    def leave(self) -> str:
        session = self.session
        return str(self.world.do(lambda now: self.world.desk.leave(session, now)))

    # ------------------------------------------------------------------ looking

    @property
    def session(self) -> Session:
        session = self.world.desk.by_token(self.query_token)
        assert session is not None, "it is forgotten"
        return session

    @property
    def known(self) -> bool:
        return self.world.desk.by_token(self.query_token) is not None

    @property
    def answer(self) -> Answer:
        """To its last request."""
        waiter = self.requests[-1]
        assert waiter.done(), "it waits"
        return waiter.result()

    @property
    def waits(self) -> bool:
        return not self.requests[-1].done()

    @property
    def said(self) -> str:
        """What it was told last; `waits` as long as its request does."""
        return "waits" if self.waits else self.answer.what

    @property
    def holds(self) -> bool:
        """Whether what it was granted is valid now."""
        session, fence = self.world.desk.by_slot_token(self.slot_token)
        permit = None if session is None else session.permit
        leases = self.world.brain.core.leases.permits
        return permit is not None and leases.get(fence) is permit


def said(*clients: Client) -> list[str]:
    return [client.said for client in clients]
