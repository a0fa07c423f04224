"""The stores that every feature is tested on. A new store is one line in PLACES.

A test that asks for `new_url`, or for anything that is made with it, runs once on each of them.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from headway.testing import World
from tests.postgres import in_memory, shared_postgres

Place = Callable[[Path], str]


def sqlite_place(directory: Path) -> str:
    return f"sqlite:///{directory / 'jobs.db'}"


def postgres_place(_directory: Path) -> str:
    return shared_postgres().url(schema=f"s{uuid4().hex}")


# From an empty directory to the address of a new and empty store.
PLACES: dict[str, Place] = {"sqlite": sqlite_place, "postgres": postgres_place}


@pytest.fixture(params=PLACES)
def new_url(request: pytest.FixtureRequest) -> Place:
    return PLACES[request.param]


# For tests that take long: on the second kind of store they are part of `make soak`.
SECOND_STORE_IN_THE_SOAK = ("sqlite", pytest.param("postgres", marks=pytest.mark.soak))
second_store_in_the_soak = pytest.mark.parametrize(
    "new_url", SECOND_STORE_IN_THE_SOAK, indirect=True
)


# Decisions on the virtual clock and routes are the same whatever the store, whose own suite shows
# that; on the second kind of store only these of them are part of every run.
WHATEVER_THE_STORE = (
    "contract",
    "engine",
    "feeds",
    "hands",
    "lessons",
    "media",
    "security",
    "bench",
)
ON_BOTH = frozenset({
    "test_archive_items.py", "test_channels.py", "test_jobs.py", "test_requests.py",
    "test_schedules.py", "test_search.py", "test_slot_restarts.py", "test_subscriptions.py",
    "test_tasks.py", "test_with_end.py",
})  # fmt: skip


# Which commands are tried without a server in every run; all of them in the soak.
DIRECTLY = frozenset({"test_jobs.py", "test_where.py", "test_backing.py", "test_doctor.py"})
# What is asked of a server that follows another one in every run; all of it in the soak.
FOLLOWED = frozenset({
    "test_jobs.py", "test_requests.py", "test_fairqueue.py", "test_slots.py", "test_work.py",
    "test_events.py",
})  # fmt: skip


# What each server has of its own: its numbers, its disk.
OF_EACH_SERVER = (
    "test_reconcile.py", "test_system.py", "test_a_worker_takes_the_work_of_a_model",
    "test_a_lease_that_is_over_is_somebody_elses", "test_metrics",
)  # fmt: skip


def is_of_each_server(item: pytest.Item) -> bool:
    followed = "followed" in item.nodeid.partition("[")[2]
    return followed and any(each in item.nodeid for each in OF_EACH_SERVER)


@pytest.hookimpl(tryfirst=True)  # before those of the soak are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [each for each in items if not is_of_each_server(each)]
    for item in items:
        told = item.nodeid.partition("[")[2]
        if "direct" in told and item.path.parent.name == "cli" and item.path.name not in DIRECTLY:
            item.add_marker(pytest.mark.soak)
        is_second = "postgres" in told
        if "followed" in told and item.path.name not in FOLLOWED:
            item.add_marker(pytest.mark.soak)
        is_same = item.path.parent.name in WHATEVER_THE_STORE and item.path.name not in ON_BOTH
        if is_second and is_same:
            item.add_marker(pytest.mark.soak)


@pytest.fixture
def url(new_url: Place, tmp_path: Path) -> str:
    """The address of a store that nobody has opened yet."""
    return new_url(tmp_path)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory: quick, and only a power cut would lose what was written."""
    directory = Path(tempfile.mkdtemp(dir=in_memory() or tmp_path))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def worlds(new_url: Place, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every `World` of the test begins with a new store of this kind."""

    def new_store(_: World) -> str:
        return new_url(Path(tempfile.mkdtemp(dir=memory)))

    monkeypatch.setattr(World, "_new_store", new_store)
