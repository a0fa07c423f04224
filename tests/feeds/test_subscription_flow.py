"""The data flow of a new subscription, step by step, on the virtual clock:
feed 111 at example.com, every 30 minutes, for a week.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest

from headway.core import State
from tests.feeds.feeds_world import FeedsWorld, Site, entry
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

FEED = "https://example.com/rss.xml"
OTHER = "https://www.example.com/comments.xml"  # of the same domain
HALF_HOUR = 1_800.0


@pytest.fixture
def world() -> Iterator[FeedsWorld]:
    with FeedsWorld() as world:
        world.web.sites[FEED] = Site([entry(number) for number in range(15)], takes_s=2.34)
        world.web.sites[OTHER] = Site([entry(1)])
        yield world


def test_the_whole_flow_for_a_week(world: FeedsWorld) -> None:
    register = world.feeds.register
    schedule = register.schedule
    began = world.now

    # 1 to 3: the feed is saved, and its first refresh is due at once.
    world.subscribe(FEED, tenant="user-abc-123", id="111")
    (subscription,) = register.of_tenant("user-abc-123")
    assert (subscription.id, subscription.interval_s) == ("111", HALF_HOUR)
    row = world.source(FEED)
    assert (row.status, row.due_at, row.fetched_at) == ("new", began, None)

    # 4 to 12: a worker has taken it; whoever asks now is told that it runs.
    world.run_for("1s")
    assert world.web.times(FEED) == [began]
    job = world.app.handle(schedule.jobs[row.id])
    assert job.state == "running"
    assert world.turn(lambda now: schedule.want(row, now)) is State.RUNNING
    assert world.open_jobs() == {FEED: 1}

    # 13: another feed of the same domain waits for its second.
    world.subscribe(OTHER, tenant="user-abc-123", id="112")
    world.run_for("4s")
    assert 1.0 <= world.web.times(OTHER)[0] - began <= 2.3

    # 14 to 16: what was found is there, and the feed says so.
    assert job.state == "completed"
    result = msgspec.json.decode((world.app.store.result(job.id)).value)
    assert (result["success"], result["article_count"], result["new_count"]) == (True, 15, 15)
    assert len(world.titles("user-abc-123")) == 16
    row = world.source(FEED)
    assert row.status == "ok"
    assert row.fetched_at == pytest.approx(began + 2.34)

    # 17 and 18: the next run was planned by the commit that ended this one.
    following = world.app.handle(schedule.jobs[row.id])
    assert following.state == "pending"
    assert following.id != job.id
    assert row.due_at - began == pytest.approx(HALF_HOUR, rel=0.05)
    assert world.open_jobs() == {FEED: 1, OTHER: 1}

    # 19: and again, for ever.
    for day in range(7):
        world.web.sites[FEED].entries.append(entry(100 + day))
        world.run_for("1d")
        assert world.open_jobs() == {FEED: 1, OTHER: 1}
    times = world.web.times(FEED)
    assert len(times) == pytest.approx(7 * 48, abs=4)
    assert all(1_700 <= after - before <= 1_900 for before, after in pairwise(times))
    assert len(world.titles("user-abc-123")) == 16 + 7
    every = sorted(times + world.web.times(OTHER))
    assert min(after - before for before, after in pairwise(every)) >= 0.999

    # Until it is deleted.
    world.turn(lambda now: register.unsubscribe(("user-abc-123", "111"), now))
    assert world.open_jobs() == {OTHER: 1}
    visits = len(world.web.times(FEED))
    world.run_for("1d")
    assert len(world.web.times(FEED)) == visits


def test_what_a_person_asks_for_goes_first(world: FeedsWorld) -> None:
    """ "Refresh" is high priority: it waits for the domain's second, but for nothing else."""
    urls = [f"https://example.com/{number}.xml" for number in range(30)]
    for url in urls:
        world.web.sites[url] = Site([entry(1)])
    world.subscribe(FEED, id="111")
    world.run_for("10s")
    world.subscribe_all([(url, url, {}) for url in urls])  # all of them due at once
    world.run_for("5s")
    world.force(FEED)
    asked_at = world.now
    world.run_for("1m")
    assert world.web.times(FEED)[-1] - asked_at <= 1.3
    assert len(world.web.times(FEED)) == 2
