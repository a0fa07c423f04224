"""The archive from a subscription to files, on the virtual clock."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from headway.apps.media.blocking import try_again
from headway.apps.media.fetcher.protocol import FailureKind
from tests.media.media_world import MediaWorld, failure
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

URL = "https://videos.example/list"


def ids(count: int, first: int = 0) -> list[str]:
    return [f"v{number:04}" for number in range(first, first + count)]


def test_a_subscription_is_listed_and_downloaded() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(5)})
        subscription = world.subscribe(URL)
        world.download_now(subscription)
        world.run_for("10m")
        assert world.states() == {"done": 5}
        assert len(world.on_disk()) == 5
        assert sorted(world.web.got) == site.lists["/list"]
        files = world.files(world.items()[0])
        assert set(files) == {"video", "info", "nfo"}
        row = world.row(subscription)
        assert (row.is_complete, row.found_title, row.wanted) == (1, "List /list", 0)
        assert not world.media.library.leftovers()


@pytest.mark.parametrize("many", [299, pytest.param(999, marks=pytest.mark.soak)])
def test_a_long_list_is_read_in_parts_and_each_thing_once(many: int) -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(many)}, download_s=1.0)
        subscription = world.subscribe(URL)
        world.download_now(subscription)
        world.run_for("5h")
        assert world.states() == {"done": many}
        assert [each.start for each in world.web.of("list")] == [*range(0, many, 100)]
        assert len(world.web.got) == len(set(world.web.got)) == many


def test_one_program_at_a_time_and_a_pace_at_the_site() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(30), "/more": ids(30, 100)})
        for path in ("/list", "/more"):
            world.download_now(world.subscribe(f"https://videos.example{path}"))
        world.run_for("2h")
        assert world.states() == {"done": 60}
        assert world.web.most_at_once == 1
        starts = [each.at for each in world.web.calls]
        assert min(after - before for before, after in pairwise(starts)) >= 2.0


def test_a_backlog_does_not_hold_up_a_count() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(300)})
        subscription = world.subscribe(URL)
        world.download_now(subscription)
        world.run_for("10m")
        assert world.states()["queued"] > 250
        asked_at = world.now
        world.count_now(subscription)
        world.run_for("1m")
        (count,) = world.web.of("count")
        assert count.at - asked_at < 25.0  # as long as one download
        assert world.row(subscription).total == 300


def test_new_videos_are_found_at_the_head() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(250)}, download_s=1.0)
        subscription = world.subscribe(URL, interval_s=3_600.0)
        world.run_for("6h10m")
        listed = len(world.web.of("list"))
        site.lists["/list"][:0] = ["new1", "new2"]
        world.run_for("1h")
        assert len(world.web.of("list")) == listed + 1  # the head is enough
        assert {"new1", "new2"} <= set(world.web.got)
        assert world.states(subscription) == {"done": 252}


def test_more_news_than_one_part_are_all_found() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(100)}, download_s=1.0)
        subscription = world.subscribe(URL)
        world.download_now(subscription)
        world.run_for("2h")
        site.lists["/list"][:0] = ids(150, 5_000)
        world.download_now(subscription)
        world.run_for("3h")
        assert world.states(subscription) == {"done": 250}


def test_412_leaves_the_site_alone_and_burns_no_attempt() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(10)})
        other = world.site("other.example", lists={"/list": ids(10, 50)})
        subscription = world.subscribe(URL)
        world.download_now(subscription)
        world.run_for("1m")
        site.failures.append(failure(FailureKind.PUSHBACK, 412))
        world.run_for("1m")
        assert not site.failures
        pushed_at = max(each.ended_at for each in world.web.calls)
        world.download_now(world.subscribe("https://other.example/list"))
        world.run_for("1h")
        after = [each.at for each in world.web.calls if each.at > pushed_at]
        there = [each.at for each in world.web.calls
                 if each.at > pushed_at and each.site == "videos.example"]  # fmt: skip
        assert min(there) - pushed_at >= 300.0
        assert min(after) - pushed_at < 60.0  # others go on
        assert world.states() == {"done": 20}
        assert {each.failures for each in world.items()} == {0}
        assert other.lists


def test_a_cookie_is_used_for_downloads_and_not_for_lists() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(3)}, good_tokens={"secret-token-1"})
        world.account("ann", "videos.example", "secret-token-1")
        world.download_now(world.subscribe(URL))
        world.run_for("10m")
        assert world.states() == {"done": 3}
        assert {each.cookie for each in world.web.of("download")} == {"secret-token-1"}
        assert {each.cookie for each in world.web.of("list")} == {None}
        assert len({each.agent for each in world.web.of("download")}) == 1


def test_a_list_that_strangers_may_not_see_is_read_with_a_cookie() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(3)}, good_tokens={"secret-token-1"},
                   lists_need_cookie=True)  # fmt: skip
        world.account("ann", "videos.example", "secret-token-1")
        subscription = world.subscribe(URL)
        world.count_now(subscription)
        world.download_now(subscription)
        world.run_for("10m")
        assert world.states() == {"done": 3}
        assert world.row(subscription).total == 3
        assert [each.cookie for each in world.web.of("count")] == [None, "secret-token-1"]


def test_three_refusals_disable_an_account_and_another_one_goes_on() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(6)}, good_tokens={"secret-token-2"})
        world.account("old", "videos.example", "secret-token-1")
        world.account("new", "videos.example", "secret-token-2")
        world.download_now(world.subscribe(URL))
        world.run_for("1h")
        assert world.states() == {"done": 6}
        statuses = {each.name: each.status for each in world.media.accounts.list()}
        assert statuses["new"] == "healthy"
        assert len([each for each in world.web.calls if each.cookie == "secret-token-1"]) <= 3


def test_without_a_usable_account_downloads_wait_and_say_why() -> None:
    with MediaWorld() as world:
        world.site("www.bilibili.com", lists={"/list": ids(2)}, good_tokens={"secret-token-1"})
        subscription = world.subscribe("https://www.bilibili.com/list")
        job = world.download_now(subscription)
        world.run_for("1h")
        assert world.state_of(job) == "completed"
        assert world.states() == {"queued": 2}
        assert not world.web.of("download")
        engine = world.app.engine
        assert engine is not None
        waiting = [number for number in engine.brain.core.tickets if isinstance(number, int)
                   and engine.brain.core.tickets[number].type == "download"]  # fmt: skip
        why = world.turn(lambda now: engine.brain.controls.explain(waiting[0], now))
        assert why.gate == "tool:account:bilibili.com"
        assert "add a cookie" in why.detail
        world.account("ann", "bilibili.com", "secret-token-1")
        world.run_for("10m")
        assert world.states() == {"done": 2}


def test_what_fails_for_good_is_in_the_ledger() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(3)})
        site.broken["v0001"] = failure(FailureKind.GONE, 404)
        site.broken["v0002"] = failure(FailureKind.SERVER, 500)
        world.download_now(world.subscribe(URL))
        world.run_for("1h")
        found = {each.key: (each.state, each.failure, each.failures) for each in world.items()}
        assert found == {
            "x:v0000": ("done", None, 0),
            "x:v0001": ("failed", "gone", 1),
            "x:v0002": ("failed", "server", 4),
        }
        assert len([each for each in world.web.of("download") if "v0001" in each.url]) == 1


def test_filters_and_depth() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(200)}, download_s=1.0)
        site.facts["v0003"] = {"title": "A trailer"}
        site.facts["v0004"] = {"duration_s": 5.0}
        filters = '{"title_none": ["TRAILER"], "min_duration_s": 10}'
        subscription = world.subscribe(URL, filters=filters, depth=10)
        world.download_now(subscription)
        world.run_for("1h")
        states = {each.key: (each.state, each.failure) for each in world.items()}
        assert states["x:v0003"] == ("skipped", "filter")
        assert states["x:v0004"] == ("skipped", "filter")
        assert states["x:v0010"] == ("skipped", "depth")
        assert len(world.web.got) == 8
        assert len(world.web.of("list")) == 1


def test_who_asks_for_one_that_is_filtered_has_it() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(2)})
        subscription = world.subscribe(URL, filters='{"title_any": ["0001"]}')
        world.download_now(subscription)
        world.run_for("10m")
        assert world.states() == {"done": 1, "skipped": 1}
        skipped = [each for each in world.items() if each.state == "skipped"]
        world.turn(lambda now: try_again(world.media.register, skipped, now))
        world.run_for("10m")
        assert world.states() == {"done": 2}


def test_a_full_disk_stops_downloads_and_not_the_rest() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(3)})
        subscription = world.subscribe(URL)
        world.media.library.min_free_bytes = 1 << 60
        world.download_now(subscription)
        world.run_for("30m")
        assert world.states() == {"queued": 3}
        assert not world.web.of("download")
        world.count_now(subscription)
        world.run_for("1m")
        assert world.row(subscription).total == 3
        world.media.library.min_free_bytes = 0
        world.run_for("10m")
        assert world.states() == {"done": 3}


@pytest.mark.parametrize("many", [40, pytest.param(120, marks=pytest.mark.soak)])
def test_a_crash_at_any_moment_loses_nothing_and_gets_nothing_twice(many: int) -> None:
    for after_s in range(1, 40, 5):
        with MediaWorld() as world:
            world.site("videos.example", lists={"/list": ids(many)}, download_s=0.5, takes_s=1.5)
            subscription = world.subscribe(URL)
            world.download_now(subscription)
            for _ in range(4):
                world.run_for(after_s)
                world.restart()
            world.run_for("3h")
            assert world.states() == {"done": many}, after_s
            assert len(world.on_disk()) == many
            assert len(world.items()) == many


def test_a_single_video() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={})
        job = world.video("https://videos.example/v/abc", tenant="ann")
        world.run_for("5m")
        assert world.state_of(job) == "completed"
        (item,) = world.items()
        assert (item.tenant, item.subscription, item.state) == ("ann", 0, "done")
        assert world.on_disk()[0].startswith("tenants/ann/single videos/")


def test_a_very_long_list_in_one_piece_is_taken_in_bit_by_bit() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(3_500)}, whole=True)
        subscription = world.subscribe(URL)
        world.list_now(subscription)
        world.run_for("3s")
        world.restart()
        world.run_for("10m")
        row = world.row(subscription)
        assert (row.is_complete, row.cursor, row.walk_at) == (1, 0, None)
        assert world.states() == {"found": 3_500}
        assert len({each.id for each in world.items()}) == 3_500


def test_what_a_list_has_no_more_is_marked_and_kept() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(230)}, download_s=1.0)
        subscription = world.subscribe(URL)
        world.download_now(subscription)
        world.run_for("3h")
        del site.lists["/list"][150:155]
        world.list_now(subscription, full=True)
        world.run_for("10m")
        gone = [each.key for each in world.items() if each.gone_at is not None]
        assert gone == [f"x:v{number:04}" for number in range(150, 155)]
        assert world.states() == {"done": 230}
        site.lists["/list"][150:150] = ids(5, 150)
        world.list_now(subscription, full=True)
        world.run_for("10m")
        assert not [each for each in world.items() if each.gone_at is not None]


def test_a_list_that_has_more_than_we_know_is_read_to_its_end_again() -> None:
    with MediaWorld() as world:
        site = world.site("videos.example", lists={"/list": ids(230)})
        subscription = world.subscribe(URL)
        world.list_now(subscription)
        world.run_for("10m")
        site.lists["/list"] += ["at-the-end"]
        world.list_now(subscription)
        world.run_for("10m")
        assert len(world.items()) == 230
        world.count_now(subscription)
        world.run_for("1m")
        world.list_now(subscription)
        world.run_for("10m")
        assert len(world.items()) == 231


def test_a_list_longer_than_allowed_ends_there() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(900)})
        world.media.lister._settings = replace(world.media.settings, list_max_chunks=3)
        subscription = world.subscribe(URL)
        world.list_now(subscription)
        world.run_for("10m")
        assert len(world.items()) == 300
        assert world.row(subscription).is_complete


def test_looks_by_the_clock_are_an_interval_apart_from_the_beginning() -> None:
    with MediaWorld() as world:
        world.site("videos.example", lists={"/list": ids(3)})
        began_at = world.now
        subscription = world.subscribe(URL, interval_s=36_000.0)
        world.run_for("35h")
        looks = [each.at - began_at for each in world.web.of("list")]
        assert [round(each / 36_000.0, 1) for each in looks] == [1.0, 2.0, 3.0]
        world.turn(
            lambda now: world.media.register.change(subscription.id, now, interval_s=3_600.0)
        )
        world.run_for("5h")
        looks = [each.at - began_at for each in world.web.of("list")][3:]
        assert 4 <= len(looks) <= 5
