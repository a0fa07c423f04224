"""Random people, sites and crashes: whatever happens, nothing is got twice, sites are left alone
when they ask for it, and in the end everything is here.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from headway.apps.media.fetcher.protocol import FailureKind
from headway.apps.media.model import State, Subscription
from tests.media.media_world import Called, MediaWorld, failure
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

HOSTS = ("a.example", "b.example")
STEPS = 60
PACE_S, BAN_S = 2.0, 300.0


class Play:
    def __init__(self, world: MediaWorld, seed: int) -> None:
        self.world = world
        self.random = Random(seed)
        self.rows: list[Subscription] = []
        self.made = 0
        self.crashed_at: list[float] = []
        for host in HOSTS:
            world.site(host, takes_s=1.0, download_s=self.random.choice((1.0, 30.0)))

    def ids(self, count: int) -> list[str]:
        self.made += count
        return [f"n{number:05}" for number in range(self.made - count, self.made)]

    def step(self) -> None:
        acts = (
            self.subscribe, self.publish, self.publish, self.withdraw, self.list_now,
            self.download, self.download, self.count, self.push_back, self.fail, self.crash,
            self.pause, self.resume, self.capacity, self.clicks, self.cancel, self.unwell,
        )  # fmt: skip
        self.random.choice(acts)()
        self.world.run_for(self.random.choice((0.0, 0.5, 3.0, 10.0, 60.0, 600.0)))

    def one(self) -> Subscription | None:
        return self.random.choice(self.rows) if self.rows else None

    # ------------------------------------------------------------------ what may happen

    def subscribe(self) -> None:
        if len(self.rows) < 4:
            host, path = self.random.choice(HOSTS), f"/l{len(self.rows)}"
            site = self.world.web.sites[host]
            site.lists[path] = self.ids(self.random.choice((0, 3, 40, 230)))
            site.whole = self.random.random() < 0.3
            interval_s = self.random.choice((0.0, 3_600.0))
            made = self.world.subscribe(f"https://{host}{path}", interval_s=interval_s)
            self.rows.append(made)

    def publish(self) -> None:
        row = self.one()
        if row is not None:
            self.list_of(row)[:0] = self.ids(self.random.choice((1, 2, 130)))

    def withdraw(self) -> None:
        row = self.one()
        if row is not None and self.list_of(row):
            self.list_of(row).pop(self.random.randrange(len(self.list_of(row))))

    def list_of(self, row: Subscription) -> list[str]:
        host, _, path = row.url.removeprefix("https://").partition("/")
        return self.world.web.sites[host].lists[f"/{path}"]

    def list_now(self) -> None:
        row = self.one()
        if row is not None:
            self.world.list_now(row)

    def download(self) -> None:
        row = self.one()
        if row is not None:
            self.world.download_now(row)

    def count(self) -> None:
        row = self.one()
        if row is not None:
            self.world.count_now(row)

    def clicks(self) -> None:
        """Somebody is impatient: all of them are one."""
        row = self.one()
        if row is not None:
            assert len({self.world.list_now(row) for _ in range(3)}) == 1
            assert len({self.world.count_now(row) for _ in range(3)}) == 1

    def push_back(self) -> None:
        host = self.random.choice(HOSTS)
        self.world.web.sites[host].failures.append(failure(FailureKind.PUSHBACK, 412))

    def fail(self) -> None:
        host = self.random.choice(HOSTS)
        kind, status = self.random.choice(
            ((FailureKind.SERVER, 500), (FailureKind.NETWORK, None), (FailureKind.BROKEN, None))
        )
        self.world.web.sites[host].failures.append(failure(kind, status))

    def unwell(self) -> None:
        """The disk is full for a while."""
        library = self.world.media.library
        library.min_free_bytes = self.random.choice((0, 1 << 60))

    def crash(self) -> None:
        self.crashed_at.append(self.world.now)
        self.world.restart()

    def pause(self) -> None:
        row = self.one()
        if row is not None:
            register = self.world.media.register
            self.world.turn(lambda now: register.change(row.id, now, paused=1))

    def resume(self) -> None:
        row = self.one()
        if row is not None:
            register = self.world.media.register
            self.world.turn(lambda now: register.change(row.id, now, paused=0))

    def capacity(self) -> None:
        engine = self.world.app.engine
        assert engine is not None
        limit = {"limit": self.random.choice((1, 2))}
        for kind, name in (("lane", "requires_cookie"), ("tool", "yt-dlp")):
            self.world.turn(lambda now, kind=kind, name=name:  # type: ignore[misc]
                            engine.brain.controls.set(kind, name, limit, now))  # fmt: skip

    def cancel(self) -> None:
        """Somebody cancels a request, and later wants it after all: it is not lost for ever."""
        engine = self.world.app.engine
        assert engine is not None
        tickets = engine.brain.core.tickets
        numbers = sorted(number for number in tickets if isinstance(number, int)
                         and tickets[number].type in ("list_fetch", "expected_total"))  # fmt: skip
        if numbers:
            number = self.random.choice(numbers)
            self.world.turn(lambda now: engine.brain.controls.cancel(number, now))

    # ------------------------------------------------------------------ the end

    def end(self) -> None:
        self.world.media.library.min_free_bytes = 0
        for site in self.world.web.sites.values():
            site.failures.clear()
        register = self.world.media.register
        for row in self.rows:
            self.world.turn(lambda now, row=row: register.change(row.id, now, paused=0))  # type: ignore[misc]
        for _ in range(3):
            for row in self.rows:
                self.retry_failed(row)
                self.world.list_now(row, full=True)
            self.world.run_for("6h")
            for row in self.rows:
                self.world.download_now(row)
            self.world.run_for("20h")

    def retry_failed(self, row: Subscription) -> None:
        failed = [each for each in self.world.items(row) if each.state == State.FAILED]
        starter = self.world.media.starter
        current = self.world.row(row)
        self.world.turn(lambda now: starter.queue(current, failed, now))


def check(play: Play) -> None:
    world = play.world
    for row in play.rows:
        keys = [each.key for each in world.items(row)]
        assert len(keys) == len(set(keys))
        listed = {f"x:{id}" for id in play.list_of(row)}
        states = {each.key: each.state for each in world.items(row)}
        assert listed <= set(states), "something of the list is not known"
        assert {states[key] for key in listed} <= {"done"}, Counter(states.values())
        assert not [each for each in world.items(row) if each.state == State.QUEUED]
    assert len(world.on_disk()) == sum(each.state == "done" for each in world.items())
    check_site_is_left_alone(play, world.web.calls)
    twice = [id for id, times in Counter(world.web.got).items() if times > 1 + len(play.crashed_at)]
    assert not twice
    if not play.crashed_at:
        assert len(world.web.got) == len(set(world.web.got))


def check_site_is_left_alone(play: Play, calls: list[Called]) -> None:
    for host in HOSTS:
        starts = [each.at for each in calls if each.site == host]
        assert all(after - before >= PACE_S - 0.001 for before, after in pairwise(starts))
    for host, at in play.world.web.pushed:
        early = [each.at for each in calls if each.site == host and at < each.at < at + BAN_S]
        assert not early or at in play.crashed_at, f"{host} was not left alone after {at}"


@pytest.mark.parametrize("seed", range(3))
def test_whatever_happens(seed: int) -> None:
    with MediaWorld(seed=seed) as world:
        play = Play(world, seed)
        for _ in range(STEPS):
            play.step()
        play.end()
        check(play)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 200))
def test_whatever_happens_often(seed: int) -> None:
    test_whatever_happens(seed)
