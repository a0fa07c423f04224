"""Slots beside other leases, on one machine, in one run.

    python -m bench.slots                        everything, about ten minutes
    python -m bench.slots --quick                a smoke run: the figures mean little
    python -m bench.slots --only redis,pg-rows --rounds 5 --seconds 4 --no-http

64 clients loop over acquire and release at a random key with 4 places, on 1 key and on 100 keys;
a pair is both of them, answered. In process, Headway stands beside leases on Redis and PostgreSQL
(`peers/leases.py`); over HTTP (`slots_http.py`), `headway serve` beside a bare exchange of two
requests. All take turns, each measurement in a process of its own, and what others do on the
machine meanwhile is kept with the figures. A figure is the median of its rounds, a ratio the median
of the ratios within each round. `CPU` is what a pair costs the process with the clients (over HTTP:
the server's). It is less noisy than the clock, but leaves out what a Redis or a PostgreSQL does.
Compare only figures of one run. The last line is JSON.

The environment of `make bench` has the clients of Redis; without them, name other stores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench import slots_http, slots_report
from bench.peers import raw, surroundings, tables
from bench.peers.figures import is_loaded
from bench.peers.leases import CAP, CLIENTS, OURS, Contender, chosen
from bench.peers.load import Patience, Watch
from bench.peers.postgres_server import PostgresServer, postgres_server
from bench.peers.products import POSTGRES, REDIS
from bench.peers.redis_server import redis_server
from bench.peers.servers import Servers
from bench.slots_drive import LOOPS, Run, warm_up_s
from bench.slots_http import Served
from bench.slots_report import HTTP, KEYS, Results

ROOT = Path(__file__).resolve().parents[1]
SECONDS, ROUNDS = 3.0, 3
QUICK_S = 0.3
LIMIT_S = 120.0  # for one measurement
PATIENCE_S = 60.0
SAMPLE_S = 0.4  # for one look at a limit of the machine

Measure = Callable[[str, int], Run]


@dataclass(slots=True)
class Session:
    """One run of the benchmark."""

    directory: Path
    servers: Servers
    seconds: float
    loop: str
    patience: Patience
    served: dict[str, Served] = field(default_factory=dict)
    results: Results = field(default_factory=Results)

    def round(self, number: int, rounds: int, contenders: Sequence[Contender]) -> None:
        """Each round somebody else begins, since each leaves the machine as it used it."""
        self.sample_limits()
        turns: list[tuple[str, Measure]] = [(each.name, self.in_process) for each in contenders]
        turns += [(f"{HTTP}{name}", self.over_http) for name in self.served]
        first = number * len(turns) // rounds
        for keys in KEYS:
            for name, measure in [*turns[first:], *turns[:first]]:
                self._take_turn(number, keys, name, measure)

    def _take_turn(self, number: int, keys: int, name: str, measure: Measure) -> None:
        """Nobody is measured again who could not be."""
        runs = self.results.runs[keys, name]
        if any("error" in run for run in runs):
            return
        busy_before = self.patience.wait_for_quiet()
        watch = Watch((*self.servers.pids(), *(each.pid for each in self.served.values())))
        run = measure(name, keys) | watch.shares()
        runs.append(run | {"turn": number, "busy_before": round(busy_before, 3)})
        figure = tables.number(run["figure"]) if "figure" in run else run["error"]
        mark = tables.LOADED if is_loaded(runs[-1]) else ""
        print(f"{keys:>4} {name:20} {figure}{mark}", file=sys.stderr, flush=True)

    def in_process(self, name: str, keys: int) -> Run:
        return self._measured("bench.slots_drive", name, str(keys), str(self.seconds), self.loop)

    def over_http(self, name: str, keys: int) -> Run:
        server = self.served[name.removeprefix(HTTP)]
        before_s = server.cpu_s()
        words = (server.address, str(keys), str(self.seconds))
        run = self._measured("bench.slots_http", "drive", *words)
        if "figure" in run:
            pairs = run["jobs"] * (1 + warm_up_s(self.seconds) / self.seconds)
            run["cpu_us"] = (server.cpu_s() - before_s) / pairs * 1e6
        return run

    def _measured(self, module: str, *words: str) -> Run:
        """In a process of its own, so that nobody inherits anybody's threads or imports."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        environment = {"PYTHONPATH": path, surroundings.DIRECTORY: str(self.directory)}
        try:
            done = subprocess.run(
                [sys.executable, "-m", module, *words], cwd=self.directory, check=False,
                env=os.environ | environment | self.servers.environment(),
                capture_output=True, text=True, timeout=LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"jobs": 0, "error": f"took more than {LIMIT_S:.0f} s"}
        try:
            run: Run = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError):
            return {"jobs": 0, "error": (done.stderr.strip() or "said nothing")[-300:]}
        return run

    def sample_limits(self) -> None:
        """Again in each round: a disk that others use too is not equally fast all the time."""
        os.environ[surroundings.DIRECTORY] = str(self.directory)
        for name, look in raw.MACHINE.items():
            watch = Watch()
            self.results.samples[name].append({"figure": look(SAMPLE_S)} | watch.shares())

    def failed(self) -> bool:
        """Headway could not be measured where it was asked to be."""
        ours = {each.name for each in OURS} | {f"{HTTP}{name}" for name in self.served}
        return any(name in ours for _, name in self.results.errors())


def served_by(
    ends: ExitStack, directory: Path, postgres: PostgresServer | None
) -> dict[str, Served]:
    """What takes turns over HTTP: the one on PostgreSQL, too, if there is one."""
    found = {"bare": ends.enter_context(slots_http.bare_server())}
    found["headway"] = ends.enter_context(slots_http.headway_server(directory))
    if postgres is not None:
        with psycopg.connect(postgres.url, autocommit=True) as db:
            db.execute("create database served")
        dsn = f"{postgres.url.rpartition('/')[0]}/served"
        found["headway-pg"] = ends.enter_context(slots_http.headway_server(directory, dsn))
    return found


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.slots", description="Slots beside leases.")
    parser.add_argument("--only", default="", help="contenders or stores: redis,pg-rows")
    parser.add_argument("--seconds", type=float, help=f"of each measurement: {SECONDS:g}")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS}, or 1 with --quick")
    parser.add_argument("--loop", choices=LOOPS, default=LOOPS[0], help="of all in process")
    parser.add_argument("--http", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--quick", action="store_true", help="short, to see that all works")
    given = parser.parse_args(words)
    given.seconds = given.seconds or (QUICK_S if given.quick else SECONDS)
    given.rounds = given.rounds or (1 if given.quick else ROUNDS)
    try:
        given.contenders = chosen(filter(None, given.only.split(",")))
    except ValueError as error:
        parser.error(str(error))
    return given


def main(words: Sequence[str] | None = None) -> int:
    given = arguments(words)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # so that everything started is ended
    with ExitStack() as ends:
        # Beside the project, not in /tmp: that may be memory, which syncs in no time.
        place = tempfile.TemporaryDirectory(prefix=".bench-", dir=ROOT, ignore_cleanup_errors=True)
        directory = Path(ends.enter_context(place))
        stores = {each.store for each in given.contenders}
        redis = ends.enter_context(redis_server(directory)) if REDIS in stores else None
        postgres = ends.enter_context(postgres_server(directory)) if POSTGRES in stores else None
        session = Session(
            directory, Servers(redis, postgres), given.seconds, given.loop,
            Patience(0.0 if given.quick else PATIENCE_S),
        )  # fmt: skip
        if given.http:
            session.served = served_by(ends, directory, postgres)
        for number in range(given.rounds):
            session.round(number, given.rounds, given.contenders)
    print("\n".join(slots_report.report(session.results, quick=given.quick)))
    about = {"clients": CLIENTS, "cap": CAP, "cpus": os.cpu_count(), "quick": given.quick}
    about |= {"seconds": given.seconds, "rounds": given.rounds, "loop": given.loop}
    about["versions"] = {"python": platform.python_version()} | session.servers.versions()
    print(json.dumps(slots_report.summary(session.results, about)))
    return 1 if session.failed() else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted; everything that was started has ended")
