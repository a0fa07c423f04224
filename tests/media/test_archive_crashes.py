"""The server dies just before or just after a commit, whichever it is: in the end everything is
here, nothing was got twice, and nothing waits for ever.
"""

from __future__ import annotations

import json

import pytest

from headway.apps.media.fetcher.protocol import FailureKind
from headway.apps.media.jobs import DOWNLOAD
from headway.apps.media.model import Subscription
from headway.apps.media.register import Duplicate
from tests.engine.fragile import Fragile
from tests.media.archive_checks import check_cursor, check_line, jobs_of, payload, permits
from tests.media.media_world import MediaWorld, failure
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

HOST = "videos.example"
URL = f"https://{HOST}/list"
TOKEN = "secret-token-1"
LISTED, WANTED = 230, 15  # the others are left out by a filter
FILTERS = json.dumps({"title_none": ["trailer"]})


class FragileArchive(Fragile, MediaWorld):
    forgives = (Duplicate,)

    def restart(self) -> None:
        """What only a process knows is not known any more."""
        self.media.downloader._of_job.clear()
        self.media.downloader._blamed.clear()
        self.media.library.identity = None
        super().restart()


def check(world: MediaWorld) -> None:
    """At every moment."""
    check_line(world)
    for row in list(world.media.register.subscriptions.values()):
        check_cursor(world, row)
        under_way = world.row(row).walk_at is not None or world.row(row).wanted
        assert not under_way or jobs_of(world, "list_fetch", "media.start"), "nobody goes on"


def story(world: FragileArchive) -> None:
    """All that happens to a subscription in a day."""
    site = world.site(HOST, takes_s=1.0, download_s=0.5, good_tokens={TOKEN})
    names = [f"v{number:04}" for number in range(LISTED)]
    site.lists["/list"] = list(names)
    for number, id in enumerate(names):
        if number % (LISTED // WANTED):
            site.facts[id] = {"title": f"Trailer {number}"}
    site.broken["v0030"] = failure(FailureKind.GONE, 404)
    site.broken["v0045"] = failure(FailureKind.SERVER, 500)

    def wait(duration: str) -> None:
        world.alive(lambda: world.run_for(duration))
        world.alive(lambda: check(world))

    def row() -> Subscription:
        (found,) = world.media.register.subscriptions.values()
        return found

    world.alive(lambda: world.account("ann", HOST, TOKEN) if not world.media.accounts.list() else 0)
    world.alive(lambda: world.subscribe(URL, filters=FILTERS, interval_s=21_600.0))
    wait("0s")
    world.alive(lambda: world.count_now(row()))
    wait("5s")
    world.alive(lambda: world.download_now(row()))
    for _ in range(4):
        wait("3s")
    site.failures.append(failure(FailureKind.PUSHBACK, 412))
    wait("20m")
    site.lists["/list"].insert(0, "new")
    wait("12h")  # the clock has looked again, and found what is new


def finished(commit: int, after: bool) -> bool:
    """Whether the story has so many commits."""
    with FragileArchive(commit, after) as world:
        story(world)
        check(world)
        (row,) = world.media.register.subscriptions.values()
        states = {each.key.removeprefix("x:"): each.state for each in world.items()}
        assert len(states) == len(world.items()) == LISTED + 1
        assert (row.total, row.is_complete, row.cursor, row.walk_at, row.wanted) == (
            LISTED, 1, 0, None, 0)  # fmt: skip
        assert [id for id, state in states.items() if state == "failed"] == ["v0030", "v0045"]
        done = [id for id, state in states.items() if state == "done"]
        assert len(done) == len(world.on_disk()) == LISTED // (LISTED // WANTED) + 1 - 2 + 1
        assert set(states.values()) == {"done", "failed", "skipped"}
        # What was got is not got again, though nobody had written down that it was there.
        assert sorted(world.web.got) == sorted(done)
        assert world.web.most_at_once == 1
        assert not jobs_of(world)
        assert not permits(world)
        assert not list((world.data / "cookies").iterdir())
        swept(world)
        return world.died


def swept(world: FragileArchive) -> None:
    """The next download finds nothing but what may be gone on with."""
    world.alive(lambda: world.video(f"https://{HOST}/v/last"))
    world.alive(lambda: world.run_for("1m"))
    (last,) = [each for each in world.items() if not each.subscription]
    assert last.state == "done"
    left = {int(name) for name in world.media.library.leftovers()}
    failed = {each.id for each in world.items() if each.state == "failed"}
    assert left <= {last.id, *failed}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("first", [1, 8])
def test_it_goes_on_whichever_commit_is_the_last(first: int, after: bool) -> None:
    for commit in range(first, 101, 14):
        assert finished(commit, after), commit


@pytest.mark.soak
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("first", range(1, 11))
def test_whichever_it_is(first: int, after: bool) -> None:
    commit = first
    while finished(commit, after):
        commit += 10


def test_somebody_cancels_and_retries_while_it_dies() -> None:
    """An item that is tried again is in line, or as it was; never in between."""
    for commit in range(1, 12):
        with FragileArchive(10_000, after=False) as world:
            site = world.site(HOST, lists={"/list": ["a", "b"]})
            site.broken = {id: failure(FailureKind.GONE, 404) for id in ("a", "b")}
            row = world.subscribe(URL)
            world.download_now(row)
            world.run_for("10m")
            assert world.states() == {"failed": 2}
            site.broken.clear()
            world._left = commit
            failed = world.items()
            starter = world.media.starter
            world.alive(lambda: world.turn(lambda now: starter.queue(world.row(row), failed, now)))  # noqa: B023
            check_line(world)
            for each in jobs_of(world, DOWNLOAD):
                if payload(world, each.id)["item"] == failed[0].id:
                    world.alive(lambda: world.app.cancel(each.id))  # noqa: B023
            world.alive(lambda: world.run_for("10m"))
            check_line(world)
            states = {each.key: each.state for each in world.items()}
            assert states["x:b"] == "done"
            assert states["x:a"] in ("skipped", "done")
            assert not jobs_of(world)
