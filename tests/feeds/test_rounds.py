"""Many feeds refreshed together: each is counted once, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from headway.api.turns import in_turn
from headway.apps.feeds import importing
from headway.apps.feeds.fetching_answers import Kind
from headway.apps.feeds.importing import entry_of, export, folder_path
from headway.apps.feeds.opml import Subscription as Listed
from headway.apps.feeds.opml import SubscriptionList, read_opml
from headway.apps.feeds.round_rows import REFRESH, WAITING, ItemRow, Report, RoundRow
from headway.apps.feeds.rounds import KEPT, MOST_OPEN, Asked, Rounds, TooManyRounds
from headway.apps.feeds.routes.rounds import in_short
from tests.engine.kit import takes
from tests.feeds.feeds_world import FeedsWorld, Site, entry, failed

both_stores = pytest.mark.usefixtures("worlds")


def url(number: int) -> str:
    return f"https://site{number}.example/feed"


class Together(FeedsWorld):
    """With feeds that were all fetched once, and are due in half an hour."""

    @property
    def rounds(self) -> Rounds:
        return self.feeds.rounds

    def with_feeds(self, many: int, tenant: str = "ann") -> None:
        for number in range(many):
            self.web.sites.setdefault(url(number), Site([entry(1)]))
        self.subscribe_all([(url(number), f"f{number}", {}) for number in range(many)], tenant)
        self.run_for("1m")
        self.web.visits.clear()

    def refresh(self, *feeds: str, tenant: str = "ann") -> tuple[str, Asked]:
        """As the route does it."""
        id = self.turn(lambda now: self.rounds.begin(tenant, REFRESH, now)).id
        chosen = feeds or tuple(each.id for each in self.feeds.register.of_tenant(tenant))
        asked = self.turn(lambda now: self.rounds.refresh(id, chosen, bool(feeds), now))
        self.turn(lambda now: self.rounds.grown(id, now))
        return id, asked

    def round(self, id: str, tenant: str = "ann") -> RoundRow:
        found = self.rounds.row(tenant, id)
        assert found is not None
        return found

    def counts(self, id: str) -> tuple[int, int, int, int]:
        row = self.round(id)
        return row.total, row.done, row.failed, row.skipped

    def errors(self, id: str, state: str) -> dict[str, str | None]:
        return {each.feed: each.error for each in self.rounds.items(id, state, 1_000)}


@pytest.fixture
def world() -> Iterator[Together]:
    with Together() as world:
        assert isinstance(world, Together)
        yield world


def remove(world: Together, feed: str, tenant: str = "ann") -> None:
    world.turn(lambda now: world.feeds.register.unsubscribe((tenant, feed), now))


def pause(world: Together, feed: str) -> None:
    world.turn(lambda now: world.feeds.register.change(("ann", feed), now, paused=1))


# ---------------------------------------------------------------------- how it should be


@both_stores
def test_all_feeds_are_refreshed_now_and_counted(world: Together) -> None:
    world.with_feeds(40)
    for number in range(12):
        world.web.sites[url(number)].entries.append(entry(2))
    id, asked = world.refresh()
    assert asked == Asked(scheduled=40)
    assert world.counts(id) == (40, 0, 0, 0)
    world.run_for("5s")
    row = world.round(id)
    assert world.counts(id) == (40, 40, 0, 0)
    assert row.new_count == 12
    assert in_short(row, Report()) == "40 of 40, 12 new"
    assert row.finished_at is not None
    assert len(world.web.visits) == 40
    assert world.rounds.open == {}


def test_feeds_of_one_site_come_at_its_pace(world: Together) -> None:
    together = [f"https://one.example/{number}" for number in range(5)]
    for each in together:
        world.web.sites[each] = Site([entry(1)])
        world.subscribe(each)
    world.run_for("1m")
    world.web.visits.clear()
    id, _ = world.refresh()
    world.run_for("2s")
    assert 1 <= world.round(id).done <= 3
    assert world.round(id).finished_at is None
    world.run_for("10s")
    assert world.counts(id) == (5, 5, 0, 0)
    times = sorted(each.at for each in world.web.visits)
    assert all(b - a >= 0.8 for a, b in pairwise(times))


@both_stores
def test_one_failing_feed_does_not_fail_the_round(world: Together) -> None:
    world.with_feeds(4)
    world.web.sites[url(1)].failure = failed(Kind.NOT_FOUND, 404)
    world.web.sites[url(2)].unreadable = "it is no feed"
    id, _ = world.refresh()
    world.run_for("5s")
    assert world.counts(id) == (4, 2, 2, 0)
    assert world.round(id).finished_at is not None
    assert world.errors(id, "failed") == {"f1": "it answered 404", "f2": "it is no feed"}
    assert in_short(world.round(id), Report()) == "4 of 4, 0 new, 2 failed"


def test_what_is_tried_again_counts_when_it_has_ended(world: Together) -> None:
    world.with_feeds(2)
    world.web.sites[url(1)].failure = failed(Kind.SERVER_ERROR, 500)
    id, _ = world.refresh()
    world.run_for("30s")
    assert world.counts(id) == (2, 1, 0, 0)
    world.web.sites[url(1)].failure = None
    world.run_for("2m")
    assert world.counts(id) == (2, 2, 0, 0)


def test_what_runs_already_counts_for_the_round(world: Together) -> None:
    world.with_feeds(2)
    world.web.sites[url(0)].takes_s = 20
    world.force(url(0))
    world.run_for("1s")
    id, asked = world.refresh()
    assert asked == Asked(scheduled=1, already_running=1)
    world.run_for("30s")
    assert world.counts(id) == (2, 2, 0, 0)
    assert len(world.web.times(url(0))) == 1


def test_paused_and_ended_feeds_are_skipped_and_it_says_why(world: Together) -> None:
    world.with_feeds(3)
    pause(world, "f0")
    world.web.sites[url(1)].failure = failed(Kind.GONE, 410)
    world.force(url(1))
    world.run_for("5s")
    world.web.visits.clear()
    id, asked = world.refresh()
    assert (asked.scheduled, dict(asked.skipped)["f0"]) == (1, "it is paused; resume it first")
    assert dict(asked.skipped)["f1"].startswith("it has ended: ")
    world.run_for("5s")
    assert world.counts(id) == (3, 1, 0, 2)
    assert [each.url for each in world.web.visits] == [url(2)]


def test_a_feed_that_has_ended_is_tried_again_by_whoever_names_it(world: Together) -> None:
    world.with_feeds(1)
    world.web.sites[url(0)].failure = failed(Kind.GONE, 410)
    world.force(url(0))
    world.run_for("5s")
    world.web.sites[url(0)].failure = None
    id, asked = world.refresh("f0")
    assert asked == Asked(scheduled=1)
    world.run_for("5s")
    assert world.counts(id) == (1, 1, 0, 0)
    assert world.open_jobs() == {url(0): 1}


def test_a_round_of_nothing_is_over_at_once(world: Together) -> None:
    id, asked = world.refresh()
    assert asked == Asked()
    assert world.round(id).finished_at is not None


def test_rounds_of_two_tenants_share_the_visit(world: Together) -> None:
    world.with_feeds(3)
    world.with_feeds(3, tenant="bob")
    first, _ = world.refresh()
    second, _ = world.refresh(tenant="bob")
    world.run_for("5s")
    assert world.counts(first) == (3, 3, 0, 0)
    assert world.round(second, "bob").done == 3
    assert len(world.web.visits) == 3
    assert world.rounds.row("bob", first) is None


def test_two_feeds_that_lead_to_one_source_count_both(world: Together) -> None:
    world.with_feeds(1)
    source = world.source(url(0)).id

    def both(now: float) -> str:
        register = world.feeds.register
        twin = register.subscriptions["ann", "f0"]._replace(id="twin")
        register.subscriptions[twin.name] = twin
        round = world.rounds.begin("ann", REFRESH, now, total=2)
        items = [ItemRow(round.id, feed, source, WAITING, 0, None) for feed in ("f0", "twin")]
        world.rounds.add(round, items)
        world.rounds.grown(round.id, now)
        register.schedule.want(register.sources[source], now)
        return round.id

    id = world.turn(both)
    world.run_for("5s")
    assert world.counts(id) == (2, 2, 0, 0)


# ---------------------------------------------------------------------- what happens meanwhile


@pytest.mark.parametrize("after_s", [0.0, 0.2, 0.7, 3.0, 10.0])
def test_a_feed_that_is_removed_is_skipped_at_any_moment(world: Together, after_s: float) -> None:
    world.with_feeds(3)
    world.web.sites[url(0)].takes_s = 5
    id, _ = world.refresh()
    world.run_for(after_s)
    remove(world, "f0")
    world.run_for("10s")
    ended(world, id)
    assert world.counts(id) == ((3, 3, 0, 0) if after_s > 5 else (3, 2, 0, 1))
    if after_s < 5:
        assert world.errors(id, "skipped") == {"f0": "it was removed"}


@pytest.mark.parametrize("after_s", [0.0, 0.2, 70.0])
def test_a_feed_that_is_paused_is_skipped_unless_it_runs(world: Together, after_s: float) -> None:
    world.with_feeds(2)
    world.web.sites[url(0)].failure = failed(Kind.SERVER_ERROR, 500)
    id, _ = world.refresh()
    world.run_for(after_s)
    pause(world, "f0")
    world.run_for("1h")
    ended(world, id)
    assert world.round(id).done + world.round(id).failed + world.round(id).skipped == 2


def test_a_feed_that_others_read_too_is_skipped_all_the_same(world: Together) -> None:
    world.with_feeds(1)
    world.with_feeds(1, tenant="bob")
    id, _ = world.refresh()
    remove(world, "f0")
    world.run_for("5s")
    assert world.counts(id) == (1, 0, 0, 1)


def test_pausing_one_that_is_not_in_line_yet_ends_the_round(world: Together) -> None:
    world.with_feeds(1)
    pause(world, "f0")

    def at_once(now: float) -> str:
        register = world.feeds.register
        register.change(("ann", "f0"), now, paused=0)
        id = world.rounds.begin("ann", REFRESH, now).id
        world.rounds.refresh(id, ["f0"], False, now)
        register.change(("ann", "f0"), now, paused=1)
        world.rounds.grown(id, now)
        return id

    id = world.turn(at_once)
    world.run_for("10s")
    ended(world, id)
    assert world.errors(id, "skipped") == {"f0": "it is paused; resume it first"}


def test_removing_all_while_none_is_in_line_yet_ends_the_round(world: Together) -> None:
    """Their jobs are given up before they are taken in."""
    world.with_feeds(3)
    for number in range(3):
        pause(world, f"f{number}")

    def at_once(now: float) -> str:
        register = world.feeds.register
        for number in range(3):
            register.change(("ann", f"f{number}"), now, paused=0)
        id = world.rounds.begin("ann", REFRESH, now).id
        world.rounds.refresh(id, ["f0", "f1", "f2"], False, now)
        for number in range(3):
            register.unsubscribe(("ann", f"f{number}"), now)
        world.rounds.grown(id, now)
        return id

    id = world.turn(at_once)
    world.run_for("10s")
    ended(world, id)
    assert world.counts(id) == (3, 0, 0, 3)


def test_a_feed_that_moves_to_another_of_ours_is_counted_once(world: Together) -> None:
    world.with_feeds(2)
    world.with_feeds(1, tenant="bob")
    remove(world, "f1")
    world.subscribe(url(1), tenant="bob", id="other")
    world.run_for("10s")
    world.web.sites[url(0)] = replace(
        world.web.sites[url(0)], moved_to=url(1), entries=[entry(1), entry(5)]
    )
    id, _ = world.refresh()
    world.run_for("10s")
    ended(world, id)
    row = world.round(id)
    assert (row.total, row.done + row.skipped, row.failed) == (1, 1, 0)


def test_a_job_that_an_operator_cancels_is_skipped(world: Together) -> None:
    world.with_feeds(2)
    world.web.sites[url(0)].takes_s = 20
    id, _ = world.refresh()
    world.run_for("1s")
    number = world.feeds.register.schedule.jobs[world.source(url(0)).id]
    world.turn(lambda now: world.feeds.refresher.brain.core.cancel(number, now, "stop it"))
    world.run_for("10s")
    assert world.counts(id) == (2, 1, 0, 1)
    assert world.errors(id, "skipped") == {"f0": "its refresh was cancelled"}


def test_a_round_does_not_wait_for_ever(world: Together) -> None:
    world.with_feeds(2)
    number = world.feeds.register.schedule.jobs[world.source(url(0)).id]
    world.turn(lambda now: world.feeds.refresher.brain.controls.pause(number, now))
    id, _ = world.refresh()
    world.run_for("1d")
    assert world.counts(id) == (2, 1, 0, 0)
    world.run_for("2d")
    ended(world, id)
    assert world.errors(id, "skipped") == {"f0": "it was not refreshed within two days"}


def ended(world: Together, id: str) -> None:
    """As whoever looks sees it."""
    open_one = world.rounds.open.get(id)
    if open_one is not None:
        world.turn(lambda now: world.rounds.mend(open_one, now))
    assert world.round(id).finished_at is not None
    assert world.rounds.open == {}


# ---------------------------------------------------------------------- restarts


@both_stores
@pytest.mark.parametrize("crash_after_s", [0.0, 0.55, 1.2])
def test_a_restart_in_the_middle_goes_on_and_counts_nothing_twice(
    world: Together, crash_after_s: float
) -> None:
    world.with_feeds(6)
    for number in range(6):
        world.web.sites[url(number)].takes_s = 0.5 * (number + 1)
        world.web.sites[url(number)].entries.append(entry(2))
    world.web.sites[url(3)].failure = failed(Kind.FORBIDDEN, 403)
    id, _ = world.refresh()
    for _ in range(3):
        world.run_for(crash_after_s)
        before = world.counts(id)
        world.crash()
        world.restart()
        assert world.counts(id) == before
    world.run_for("30s")
    assert world.counts(id) == (6, 5, 1, 0)
    assert world.round(id).new_count == 5
    assert world.round(id).finished_at is not None
    assert set(world.open_jobs().values()) == {1}


def test_what_was_waited_for_goes_on_at_once_after_hours(world: Together) -> None:
    """Others that have missed their turn are spread over the next hour."""
    world.with_feeds(5)
    for number in range(5):
        world.web.sites[url(number)].takes_s = 20
    while not world.web.visits:
        world.run_for("5s")
    first = world.source(world.web.visits[0].url)
    (subscription,) = world.feeds.register.subscribers(first.id)
    id, asked = world.refresh(subscription.id)
    assert asked == Asked(already_running=1)
    world.crash()
    world.clock.at += 7_200
    world.restart()
    world.run_for("60s")
    assert world.counts(id) == (1, 1, 0, 0)


def test_a_request_that_died_while_it_asked_leaves_a_round_that_ends(world: Together) -> None:
    world.with_feeds(4)
    id = world.turn(lambda now: world.rounds.begin("ann", REFRESH, now)).id
    world.turn(lambda now: world.rounds.refresh(id, ["f0", "f1"], False, now))
    world.crash()
    world.restart()
    world.run_for("10s")
    assert world.counts(id) == (2, 2, 0, 0)
    assert world.round(id).finished_at is not None


def test_so_does_one_whose_feeds_were_all_done_by_then(world: Together) -> None:
    world.with_feeds(1)
    id = world.turn(lambda now: world.rounds.begin("ann", REFRESH, now)).id
    world.turn(lambda now: world.rounds.refresh(id, ["f0"], False, now))
    world.run_for("5s")
    assert world.round(id).finished_at is None
    world.crash()
    world.restart()
    world.run_for("1s")
    assert world.counts(id) == (1, 1, 0, 0)
    assert world.round(id).finished_at is not None


# ---------------------------------------------------------------------- limits


@both_stores
def test_old_rounds_are_forgotten_with_all_that_was_in_them(world: Together) -> None:
    world.with_feeds(2)
    ids = []
    for _ in range(KEPT + 3):
        ids.append(world.refresh()[0])
        world.run_for("5s")
    assert [row.id for row in world.rounds.last("ann", 100)] == ids[:2:-1]
    assert world.rows("select count(distinct round) from feed_round_items") == [(KEPT,)]
    world.crash()
    world.restart()
    world.refresh()
    world.run_for("5s")
    assert world.rows("select count(*) from feed_rounds") == [(KEPT,)]


def test_a_tenant_has_only_so_many_at_once(world: Together) -> None:
    world.with_feeds(1)
    world.web.sites[url(0)].takes_s = 30
    for _ in range(MOST_OPEN):
        world.refresh()
    with pytest.raises(TooManyRounds, match="wait until one of them has ended"):
        world.refresh()
    world.refresh(tenant="bob")
    world.run_for("1m")
    assert world.rounds.open == {}


# ---------------------------------------------------------------------- lists


def listed(many: int, **more: Any) -> SubscriptionList:
    feeds = tuple(Listed(url(number), f"Feed {number}") for number in range(many))
    return SubscriptionList(feeds, **more)


def begin_import(world: Together, said: SubscriptionList, tenant: str = "ann", **more: Any) -> str:
    return world.turn(lambda now: world.feeds.importer.begin(tenant, said, now, **more)).id


@both_stores
def test_a_list_is_taken_in_and_counts_its_first_fetches(
    world: Together, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "AT_ONCE", 10)
    for number in range(25):
        world.web.sites[url(number)] = Site([entry(number)])
    world.web.sites[url(7)].failure = failed(Kind.NOT_FOUND, 404)
    world.subscribe(url(3))
    world.run_for("5s")
    id = begin_import(world, listed(25, duplicates=2, skipped=("nothing",)), folder="New")
    world.run_for("1m")
    row = world.round(id)
    assert world.counts(id) == (28, 23, 1, 4)
    assert row.finished_at is not None
    assert in_short(row, world_report(world, id)) == (
        "28 feeds, 23 fetched, 1 failed, 3 there already, 1 not added"
    )
    report = world_report(world, id)
    assert (report.added, report.duplicates, report.invalid) == (24, 3, 1)
    assert report.duplicate_feeds == [{"url": url(3), "feed_id": url(3)}]
    assert report.invalid_feeds == [{"url": "nothing", "why": "this is no address of the web"}]
    folders = {each.folder for each in world.feeds.register.of_tenant("ann")}
    assert folders == {"", "New"}


def world_report(world: Together, id: str) -> Report:
    return msgspec.json.decode(world.round(id).report, type=Report)


@both_stores
@pytest.mark.parametrize("crash_after_s", [0.0, 1.5, 4.5])
def test_a_restart_in_the_middle_of_a_list_adds_each_once(
    world: Together, crash_after_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def in_slow_turn(*asked: Any) -> Any:
        came = await in_turn(*asked)
        await takes(1.0)
        return came

    monkeypatch.setattr(importing, "AT_ONCE", 10)
    monkeypatch.setattr(importing, "in_turn", in_slow_turn)
    for number in range(35):
        world.web.sites[url(number)] = Site([entry(number)])
    id = begin_import(world, listed(35))
    for _ in range(2):
        world.run_for(crash_after_s)
        before = world_report(world, id)
        assert before.position == min(35, before.added)
        world.crash()
        world.restart()
        assert world_report(world, id) == before
    world.run_for("3m")
    assert world.counts(id) == (35, 35, 0, 0)
    report = world_report(world, id)
    assert (report.added, report.duplicates, report.position) == (35, 0, 35)
    assert len(world.feeds.register.of_tenant("ann")) == 35
    assert set(world.open_jobs().values()) == {1}


def test_what_others_read_already_needs_no_visit(world: Together) -> None:
    world.with_feeds(3, tenant="bob")
    id = begin_import(world, listed(3))
    world.run_for("5s")
    assert world.counts(id) == (3, 3, 0, 0)
    assert world.web.visits == []
    assert len(world.titles()) == 3


def test_a_source_that_has_failed_is_tried_now(world: Together) -> None:
    world.web.sites[url(0)] = Site([entry(1)], failure=failed(Kind.FORBIDDEN, 403))
    world.subscribe(url(0), tenant="bob")
    world.run_for("1m")
    world.web.sites[url(0)].failure = None
    id = begin_import(world, listed(1))
    world.run_for("5s")
    assert world.counts(id) == (1, 1, 0, 0)


def test_more_feeds_than_are_allowed_are_not_added(world: Together) -> None:
    world.feeds.importer._settings = replace(world.feeds.settings, max_feeds=3)
    id = begin_import(world, listed(5))
    world.run_for("1m")
    report = world_report(world, id)
    assert (report.added, report.invalid) == (3, 2)
    assert report.invalid_feeds[0]["url"] == url(3)
    assert "3 feeds" in report.invalid_feeds[0]["why"]
    assert len(world.feeds.register.of_tenant("ann")) == 3


def test_a_list_whose_job_is_cancelled_ends(world: Together) -> None:
    id = begin_import(world, listed(5))
    brain = world.feeds.refresher.brain
    number = next(id for (id,) in world.rows("select id from jobs where type = 'feeds.import'"))
    world.turn(lambda now: brain.controls.cancel(number, now))
    world.run_for("2m")
    assert world.round(id).finished_at is not None
    assert world.round(id).handled == 5


def test_an_empty_list_is_over_at_once(world: Together) -> None:
    id = begin_import(world, SubscriptionList((), skipped=("a", "b")))
    assert world.counts(id) == (2, 0, 0, 2)
    assert world.round(id).finished_at is not None


def test_the_order_and_the_folders_of_a_list_survive(world: Together) -> None:
    said = SubscriptionList((
        Listed(url(2), "B", None, ("x", "y/z")), Listed(url(0), "A"), Listed(url(1), url(1)),
    ))  # fmt: skip
    begin_import(world, said)
    world.run_for("1m")
    for _ in range(2):
        found = read_opml(export(world.feeds.register, "ann", world.now)).subscriptions
        assert [(each.url, each.title, each.folders) for each in found] == [
            (url(2), "B", ("x", "y-z")), (url(0), "A", ()), (url(1), url(1), ()),
        ]  # fmt: skip
        world.crash()
        world.restart()


def test_folders_have_one_way_of_writing_them() -> None:
    assert folder_path(" a /  b//c  d/") == "a/b/c d"
    assert entry_of(Listed("https://x/", "t", None, ("a/b", "c")), "Top") == (
        "https://x/", "t", "Top/a-b/c",
    )  # fmt: skip
