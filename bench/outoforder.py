"""How soon an idle engine sees a job whose transaction has committed, in whatever order.

    python -m bench.outoforder [--producers 64] [--jobs 1000] [--url postgresql://...]

Producers with connections of their own enqueue inside transactions that stay open for up to 200 ms,
so that transactions commit in another order than they began. `seen` is the time from the moment
their commit has returned until the engine submits the job, `ran` until its handler runs. A job that
is seen before its producer hears of the commit counts as 0. The target is 50 ms at p99. Without
--url a server of our own runs on loopback, with its files on the disk.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import psycopg

from headway import App, Job
from tests.postgres import postgres

ON_THE_DISK = Path("/var/tmp")  # unlike /tmp never in memory, which syncs in no time
LONGEST_S = 0.2
RATE = 100.0  # jobs a second, all together: the engine is idle most of the time
WAIT_S = 30.0


@contextmanager
def server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    with postgres(ON_THE_DISK) as ours:
        yield ours.new_database()


class Bench:
    def __init__(self, url: str, producers: int, jobs: int) -> None:
        self._url, self._producers, self._jobs = url, producers, jobs
        self.committed: dict[int, float] = {}
        self.ran: dict[int, float] = {}
        self.all_ran = threading.Event()
        self.app = App(url)

        @self.app.job()
        async def note(number: int) -> None:
            self.ran[number] = time.time()
            if len(self.ran) == jobs:
                self.all_ran.set()

        self._note: Job[[int], None] = note

    def run(self) -> tuple[list[float], list[float]]:
        """Both waits of each job, sorted."""
        threads = [
            threading.Thread(target=self._produce, args=(number,))
            for number in range(self._producers)
        ]
        with self.app.running():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert self.all_ran.wait(WAIT_S), f"{len(self.ran)} of {self._jobs} jobs ran"
        ran = [self.ran[number] - at for number, at in self.committed.items()]
        seen = [at - self.committed[number] for number, at in self._submitted()]
        self.app.close()
        return _sorted(seen), _sorted(ran)

    def _produce(self, first: int) -> None:
        random = Random(first)
        pause_s = self._producers / RATE
        with psycopg.connect(self._url) as conn:
            for number in range(first, self._jobs, self._producers):
                open_s = random.random() * LONGEST_S
                self.app.enqueue(self._note.call(number), conn=conn)
                time.sleep(open_s)
                conn.commit()
                self.committed[number] = time.time()
                time.sleep(max(random.random() * 2 * pause_s - open_s, 0.0))

    def _submitted(self) -> list[tuple[int, float]]:
        with psycopg.connect(self._url) as db:
            rows = db.execute(
                "select j.args, e.at from headway.events as e "
                "join headway.jobs as j on j.id = e.job where e.event = 'submit'"
            ).fetchall()
        return [(_number(args), at) for args, at in rows]


def _number(args: str) -> int:
    value = json.loads(args)
    return int(value["number"] if isinstance(value, dict) else value[0])


def _sorted(waits: list[float]) -> list[float]:
    return sorted(max(each, 0.0) for each in waits)


def _line(name: str, waits: list[float]) -> str:
    at = {"p50": len(waits) // 2, "p99": int(len(waits) * 0.99), "max": -1}
    figures = (f"{each} {waits[place] * 1e3:6.1f} ms" for each, place in at.items())
    return f"{name:6} {'   '.join(figures)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--producers", type=int, default=64)
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--url", help="a new and empty database; without it, a server of our own")
    asked = parser.parse_args()
    with server(asked.url) as url:
        seen, ran = Bench(url, asked.producers, asked.jobs).run()
    print(f"{len(ran)} jobs of {asked.producers} producers, after their commit had returned")
    print(_line("seen", seen))
    print(_line("ran", ran))


if __name__ == "__main__":
    main()
