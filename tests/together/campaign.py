"""A campaign: servers, workers and producers at work while everything around them breaks, and what
must be true of it afterwards.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from headway.store.records import Event
from tests.faults.history import (
    RULES,
    Asked,
    Began,
    Ended,
    Entry,
    History,
    Journal,
    Row,
    the_pool_is_never_exceeded,
)
from tests.faults.proxy import TAKE_TURN, Do, Proxy
from tests.forked import Forked
from tests.hands.kit import eventually
from tests.postgres import Postgres
from tests.servers import Server
from tests.together.group import Group, ask, role_of
from tests.together.upstream import Upstream, Visit

POOL = 4
WORKERS = 4
LEASE_S = 4.0  # of a job
LEADER_S = 1.5
ROOT = Path(__file__).parents[2]


class Fleet:
    """Worker processes that know all servers."""

    def __init__(self, urls: list[str], log: Path) -> None:
        self._servers = ",".join(urls)
        self._log = log
        self.alive: list[Forked] = []

    def start_one(self) -> None:
        arguments = ["-m", "headway", "worker", "--server", self._servers,
                     "--app", "tests.together.fleet_app:app", "--concurrency", "4"]  # fmt: skip
        with open(self._log, "ab") as log, open(os.devnull) as nothing:
            self.alive.append(Forked(
                arguments, stdin=nothing.fileno(), stdout=log.fileno(), stderr=log.fileno(),
                environment=os.environ, cwd=ROOT,
            ))  # fmt: skip

    def end(self) -> None:
        for each in self.alive:
            each.send_signal(signal.SIGCONT)
            each.kill()
            each.wait()


class Producers:
    """Threads that put jobs through any server, and write down what they were told."""

    def __init__(self, urls: list[str], port: int, jobs: int, seed: int) -> None:
        self.journal = Journal()
        self._urls = urls
        self._port = port
        self._left = jobs
        self._lock = threading.Lock()
        self._pause = threading.Event()  # never set
        self._threads = [threading.Thread(target=self._put_all, args=(Random(seed + n), n))
                         for n in range(3)]  # fmt: skip

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def join(self) -> None:
        for each in self._threads:
            each.join(300)

    def stored(self) -> int:
        return sum(len(each.ids) for each in self.journal.asked("stored"))

    def _put_all(self, random: Random, number: int) -> None:
        tried = 0
        while True:
            with self._lock:
                if self._left <= 0:
                    return
            tried += 1
            names = tuple(f"{number}-{tried}-{n}" for n in range(random.choice((1, 1, 3))))
            answer, ids = self._put(names, random)
            self.journal.write(Asked(names, answer, ids))
            if answer == "stored":
                with self._lock:
                    self._left -= len(names)
            self._pause.wait(random.uniform(0.0, 0.05) if answer == "stored" else 0.2)

    def _put(self, names: tuple[str, ...], random: Random) -> tuple[str, tuple[int, ...]]:
        jobs = [{"type": "visit", "tools": ["pool"], "args": {
            "name": name, "port": self._port, "calls": random.choice((1, 2, 3)),
            "hold_ms": random.randrange(5, 60),
        }} for name in names]  # fmt: skip
        try:
            status, said = ask(random.choice(self._urls), "POST", "/api/work/put", {"jobs": jobs})
        except ConnectionRefusedError:
            return "refused", ()
        except OSError as error:
            refused = isinstance(getattr(error, "reason", None), ConnectionRefusedError)
            return ("refused" if refused else "unknown"), ()
        if status == 202:
            return "stored", tuple(each["id"] for each in said["jobs"])
        return ("unknown" if said["type"] == "outcome-unknown" else "refused"), ()


class Campaign:
    """What is broken, one thing after the other. Each fault leaves everything whole again."""

    def __init__(self, group: Group, fleet: Fleet, postgres: Postgres, proxy: Proxy,
                 upstream: Upstream, random: Random) -> None:  # fmt: skip
        self.group, self.fleet, self.postgres, self.proxy = group, fleet, postgres, proxy
        self.upstream, self.random = upstream, random
        self.took_over_s: list[float] = []
        self.pause = threading.Event()  # never set: a campaign is made of waits

    def work_goes_on(self, more: int = 12, within_s: float = 60.0) -> None:
        there = len(self.upstream.visits)
        eventually(lambda: len(self.upstream.visits) >= there + more or self.is_over(), within_s)

    def is_over(self) -> bool:
        return not open_jobs(self.group)

    def leader_is_killed(self) -> None:
        leader = self.group.the_leader()
        if self.random.random() < 0.7:
            self.group.as_if_elsewhere()
        leader.kill()
        self._another_leads(leader)
        leader.start()

    def leader_is_stopped(self) -> None:
        """Longer than its lease; and it believes that nothing has happened."""
        leader = self.group.the_leader()
        os.kill(leader.pid, signal.SIGSTOP)
        try:
            self._another_leads(leader)
            self.work_goes_on(4)
        finally:
            os.kill(leader.pid, signal.SIGCONT)
        eventually(lambda: role_of(leader.url) == "elsewhere", 30.0)

    def _another_leads(self, than: Server) -> None:
        began = time.monotonic()
        others = [each for each in self.group.servers if each is not than]
        eventually(lambda: any(role_of(each.url) == "running" for each in others), 30.0)
        self.took_over_s.append(time.monotonic() - began)

    def sessions_are_cut(self) -> None:
        """By whoever looks after the database."""
        for _ in range(3):
            with psycopg.connect(self.postgres.url(), autocommit=True) as db:
                for (pid,) in db.execute(
                    "select pid from pg_stat_activity where backend_type = 'client backend' "
                    "and pid <> pg_backend_pid()"
                ).fetchall():
                    if self.random.random() < 0.4:
                        db.execute("select pg_terminate_backend(%s)", (pid,))
            self.pause.wait(self.random.uniform(0.05, 0.3))

    def database_crashes(self) -> None:
        self.postgres.stop("immediate")
        self.pause.wait(self.random.uniform(0.0, 0.5))
        self.postgres.start()

    def answers_to_commits_are_lost(self) -> None:
        for _ in range(3):
            struck = self.proxy.next(TAKE_TURN, Do.LOSE_ANSWER)
            eventually(lambda struck=struck: struck.is_set() or self.is_over(), 30.0)

    def worker_is_killed(self) -> None:
        victim = self.fleet.alive.pop(self.random.randrange(len(self.fleet.alive)))
        victim.kill()
        victim.wait()
        self.fleet.start_one()

    def worker_is_stopped(self) -> None:
        """Until all that it held, if it held anything, is somebody else's."""
        victim = self.random.choice(self.fleet.alive)
        victim.send_signal(signal.SIGSTOP)
        lost, until = count_events(self.group, "lost"), time.monotonic() + 1.5 * LEASE_S
        while time.monotonic() < until and count_events(self.group, "lost") == lost:
            self.pause.wait(0.1)
        victim.send_signal(signal.SIGCONT)


FAULTS: tuple[Callable[[Campaign], None], ...] = (
    Campaign.answers_to_commits_are_lost,
    Campaign.worker_is_killed,
    Campaign.leader_is_killed,
    Campaign.worker_is_stopped,
    Campaign.sessions_are_cut,
    Campaign.leader_is_stopped,
    Campaign.database_crashes,
)


# ---------------------------------------------------------------------- what must be true


def rows(group: Group, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(group.direct, autocommit=True) as db:
        return db.execute(query.replace("@", f"{group.schema}.").encode()).fetchall()


def open_jobs(group: Group) -> int:
    return int(rows(group, "select count(*) from @jobs where finished_at is null")[0][0])


def count_events(group: Group, name: str) -> int:
    return int(rows(group, f"select count(*) from @events where event = '{name}'")[0][0])


def history_of(group: Group, journal: Journal, visits: list[Visit]) -> History:
    jobs = [Row(id, json.loads(args)["name"], state, fence) for id, args, state, fence in rows(
        group, "select id, args, state, fence from @jobs order by id")]  # fmt: skip
    events = [Event(*row) for row in rows(
        group, "select id, at, job, event, before, after, fence, detail, subject from @events "
        "order by id")]  # fmt: skip
    return History([*journal.entries, *attempts(visits)], jobs, events, POOL)


def attempts(visits: list[Visit]) -> list[Entry]:
    """From the first call of each attempt to the end of its last, as the upstream saw them."""
    spans: dict[tuple[int, int], tuple[float, float, str]] = {}
    for each in visits:
        began, ended, process = spans.get((each.job, each.fence), (each.began_at, 0.0, ""))
        spans[each.job, each.fence] = (began, max(ended, each.ended_at), process or each.process)
    moments: list[tuple[float, int, Entry]] = []
    for (job, fence), (began, ended, process) in spans.items():
        moments.append((began, 1, Began(job, fence, process)))
        moments.append((ended, 0, Ended(job, fence, process)))
    return [entry for _, _, entry in sorted(moments, key=lambda each: each[:2])]


def pool_as_the_upstream_saw_it(visits: list[Visit], events: list[Event]) -> tuple[int, list[str]]:
    """Never more calls at once than places, apart from calls of those whose lease we have counted
    as lost by then. How many calls those were, and complaints.
    """
    over_at = {(event.job, event.fence): event.at for event in events
               if event.before == "running" and event.event == "lost"}  # fmt: skip
    overshoot = {id(each) for each in visits
                 if each.ended_at > over_at.get((each.job, each.fence), float("inf"))}  # fmt: skip
    complaints = []
    begins_and_ends = [(each.began_at, 1, each) for each in visits]
    begins_and_ends += [(each.ended_at, 0, each) for each in visits]
    moments = sorted(begins_and_ends, key=lambda moment: moment[:2])
    inside: set[tuple[int, int]] = set()
    for at, begins, each in moments:
        if not begins:
            inside.discard((each.job, each.fence))
            continue
        if id(each) in overshoot and at > over_at[each.job, each.fence]:
            continue
        inside.add((each.job, each.fence))
        valid = [key for key in inside if at <= over_at.get(key, float("inf"))]
        if len(valid) > POOL:
            complaints.append(f"{len(valid)} are at the upstream at {at}: {valid}")
    return len(overshoot), complaints


def check(group: Group, journal: Journal, visits: list[Visit]) -> int:
    """How many calls were of holders that had lost their lease."""
    history = history_of(group, journal, visits)
    overshoot, complaints = pool_as_the_upstream_saw_it(visits, history.events)
    for rule in RULES:
        if rule is not the_pool_is_never_exceeded:
            complaints += rule(history)
    shown = "\n".join(complaints[:20])
    assert not complaints, f"{len(complaints)} complaints:\n{shown}"
    return overshoot


def some_faults(random: Random, seconds: float) -> Iterator[Callable[[Campaign], None]]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield random.choice(FAULTS)
