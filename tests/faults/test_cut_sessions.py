"""Sessions die at random under load, and nothing is lost or doubled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

import psycopg
import pytest

from tests.faults.conftest import Maker
from tests.faults.kit import Load, check_all, is_over
from tests.faults.proxy import COMMIT, PUT, RING, TAKE_TURN, Do, Proxy

TERMINATE = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and random() < {share}
"""


def run_load(
    seed: int, url: str, direct: str, works: Maker, harm: Callable[[Random], None], *,
    producers: int, each: int, pause_s: float, at_last: Callable[[], object] = lambda: None,
) -> None:  # fmt: skip
    """Producers and an engine, and harm every now and then until the producers are done."""
    engine, other = works(url), works(url, "elsewhere")
    assert other.app.store  # it is there before all begins
    random, between = Random(seed), threading.Event()
    load = Load(seed, engine, other, url, producers=producers, each=each)
    with engine.app.running():
        load.start()
        try:
            while not load.is_done():
                harm(random)
                between.wait(random.uniform(0.2, 1.8) * pause_s)
            load.join()
        finally:
            load.stop()
        at_last()
        is_over(direct, 60)
    history = check_all(direct, engine.journal)
    away = sum(event.event == "store_back" for event in history.events)
    unknown = len(engine.journal.asked("unknown"))
    print(
        f"seed {seed}: {len(history.rows)} jobs, {unknown} unknown, the store was away {away} times"
    )


def terminating(direct: str, share: float) -> Callable[[Random], None]:
    def harm(_: Random) -> None:
        with psycopg.connect(direct, autocommit=True) as db:
            db.execute(TERMINATE.format(share=share).encode())

    return harm


def cutting(proxy: Proxy, share: float) -> Callable[[Random], None]:
    """Cut a share of the sessions, or lose a message, or stall for a moment. What was kept back
    comes with the next harm.
    """
    between = threading.Event()

    def harm(random: Random) -> None:
        proxy.deliver()
        what = random.randrange(4)
        if what == 0:
            proxy.stall()
            between.wait(random.uniform(0, 0.1))
            proxy.flow()
        elif what == 1:
            proxy.cut(random, share)
        else:
            proxy.next(random.choice((COMMIT, PUT, RING, TAKE_TURN)), random.choice(list(Do)))

    return harm


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_sessions_are_terminated_under_load(direct: str, works: Maker, seed: int) -> None:
    run_load(
        seed, direct, direct, works, terminating(direct, 0.5), producers=6, each=60, pause_s=0.1
    )


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_lines_are_cut_and_messages_lost_under_load(
    proxy: Proxy, direct: str, works: Maker, seed: int
) -> None:
    run_load(
        seed, proxy.url(direct), direct, works, cutting(proxy, 0.5),
        producers=6, each=25, pause_s=0.05, at_last=proxy.deliver,
    )  # fmt: skip


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 106))
def test_sessions_are_terminated_for_long(direct: str, works: Maker, seed: int) -> None:
    run_load(
        seed, direct, direct, works, terminating(direct, 0.3), producers=12, each=200, pause_s=0.1
    )


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(200, 206))
def test_lines_are_cut_for_long(proxy: Proxy, direct: str, works: Maker, seed: int) -> None:
    run_load(
        seed, proxy.url(direct), direct, works, cutting(proxy, 0.3),
        producers=12, each=200, pause_s=0.05, at_last=proxy.deliver,
    )  # fmt: skip
