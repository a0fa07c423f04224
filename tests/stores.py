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


@pytest.hookimpl(tryfirst=True)  # before those of the soak are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        is_second = "postgres" in item.nodeid.partition("[")[2]
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
