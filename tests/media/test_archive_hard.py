"""What people, sites and clocks should not do to an archive, and do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.apps.media.accounts.pool import Heard, Word
from headway.apps.media.fetcher.protocol import FailureKind
from headway.apps.media.jobs import DOWNLOAD, LIST, TYPES, key_of
from headway.apps.media.routes import finding
from headway.apps.media.tables import MOVE_ITEM_FROM
from headway.engine.brain import Brain
from headway.engine.tickets import names_text
from headway.store.records import NewJob
from tests.media.archive_checks import check_line, jobs_of
from tests.media.media_world import MediaWorld, failure
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

HOST = "videos.example"
URL = f"https://{HOST}/list"


def ids(count: int, first: int = 0) -> list[str]:
    return [f"v{number:04}" for number in range(first, first + count)]


def brain_of(world: MediaWorld) -> Brain:
    assert world.app.engine is not None
    return world.app.engine.brain


def raw(world: MediaWorld, type: str, args: dict[str, Any], **more: Any) -> int:
    """A job as anybody may put it through `/api/jobs`."""
    job = NewJob(
        type, json.dumps(args), created_at=world.now, upstreams=names_text((HOST,)),
        **{"lane": "no_cookie", **more},
    )  # fmt: skip
    id = world.put(job)
    brain_of(world).heard()
    return id


def test_a_job_of_somebody_else_blames_no_subscription() -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(5)})
        row = world.subscribe(URL, tenant="ann")
        raw(world, LIST, {"nonsense": 1}, tenant="bob", key=key_of(row.id))
        world.run_for("1h")
        assert (world.row(row).failures, world.row(row).error) == (0, None)


def test_an_old_part_of_a_walk_that_is_tried_again_loses_nothing() -> None:
    with MediaWorld() as world:
        site = world.site(HOST, lists={"/list": ids(500)})
        row = world.subscribe(URL)
        world.list_now(row)
        world.run_for("6s")
        site.failures.extend([failure(FailureKind.SERVER, 500)] * 4)
        world.run_for("20m")
        (failed,) = jobs_of(world, LIST, states=("failed",))
        world.list_now(row)
        world.run_for("10m")
        assert world.row(row).is_complete
        assert len(world.items()) == 500
        world.turn(lambda now: brain_of(world).controls.retry(failed.id, now))
        world.run_for("10m")
        assert not [each for each in world.items() if each.gone_at is not None]


def test_a_head_that_breaks_off_in_the_middle_leaves_no_gap() -> None:
    with MediaWorld() as world:
        site = world.site(HOST, lists={"/list": ids(100)})
        row = world.subscribe(URL)
        world.list_now(row)
        world.run_for("10m")
        site.lists["/list"][:0] = ids(350, 5_000)
        world.list_now(row)
        world.run_for("5s")
        site.failures.extend([failure(FailureKind.SERVER, 500)] * 4)
        world.run_for("20m")
        assert len(world.items()) < 450
        world.list_now(row)
        world.run_for("10m")
        assert len(world.items()) == 450


def test_a_second_job_for_a_video_is_no_second_program() -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(5)})
        row = world.subscribe(URL)
        for kind, name in (("lane", "requires_cookie"), ("tool", "yt-dlp")):
            world.turn(lambda now, kind=kind, name=name:  # type: ignore[misc]
                       brain_of(world).controls.set(kind, name, {"limit": 2}, now))  # fmt: skip
        world.download_now(row)
        world.run_for("8s")
        item = world.items()[0]
        raw(world, DOWNLOAD, {"subscription_id": row.id, "item": item.id})
        raw(world, LIST, {"subscription_id": row.id})
        world.run_for("30m")
        assert world.web.most_at_once == 1
        assert len(world.web.got) == 5


def test_a_clock_that_was_far_ahead_does_not_stop_full_looks() -> None:
    with MediaWorld() as world:
        site = world.site(HOST, lists={"/list": ids(300)})
        row = world.subscribe(URL)
        world.list_now(row)
        world.run_for("10m")
        register = world.media.register
        world.turn(lambda now: register.put(world.row(row)._replace(full_at=now + 1e8)))
        site.lists["/list"].insert(150, "deep")
        world.list_now(row)
        world.run_for("10m")
        assert len(world.items()) == 301


def test_what_was_cancelled_while_the_archive_was_off_is_found_again() -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(10)})
        row = world.subscribe(URL)
        world.download_now(row)
        world.run_for("30s")
        types = world.app.registry.types
        kept = {name: types.pop(name) for name in TYPES}
        world.restart()
        for job in jobs_of(world, DOWNLOAD)[:4]:
            world.app.cancel(job.id)
        world.run_for("1m")
        types.update(kept)
        world.restart()
        world.run_for("1h")
        assert "queued" not in world.states()
        check_line(world)
        world.download_now(row)
        world.run_for("1h")
        assert world.states() == {"done": 10}


def test_a_file_that_is_back_is_not_downloaded_under_another_name() -> None:
    with MediaWorld() as world:
        site = world.site(HOST, lists={"/list": ids(1)})
        row = world.subscribe(URL)
        world.download_now(row)
        world.run_for("5m")
        (item,) = world.items()
        moved = (item.id, "missing", None, None, world.now, "done")
        world.turn(lambda _: brain_of(world).write(MOVE_ITEM_FROM, moved))
        site.facts["v0000"] = {"title": "another name"}
        world.download_now(row)
        world.run_for("5m")
        assert world.states() == {"done": 1}
        assert len(world.on_disk()) == 1
        assert len(world.web.got) == 1


def test_who_cancels_the_listing_has_cancelled_its_downloads() -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(300)})
        row = world.subscribe(URL)
        world.download_now(row)
        world.run_for("6s")
        for job in jobs_of(world, LIST):
            world.app.cancel(job.id)
        world.run_for("1s")
        assert world.row(row).wanted == 0


@pytest.mark.parametrize(
    "args",
    [
        {"start": -5}, {"start": "abc"}, {"start": 10**30}, {"start": 1.5, "mode": "walk"},
        {"mode": ["x"]}, {"start": True, "mode": "walk"},
    ],
)  # fmt: skip
def test_odd_wishes_for_a_list_lose_nothing(args: dict[str, Any]) -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(300)})
        row = world.subscribe(URL)
        world.list_now(row)
        world.run_for("10m")
        raw(world, LIST, {"subscription_id": row.id, **args}, key=key_of(row.id))
        world.run_for("10m")
        assert not [each for each in world.items() if each.gone_at is not None]
        assert len(world.items()) == 300


def test_two_jobs_for_one_video_are_not_at_it_at_once() -> None:
    """A video of no subscription has no key that would keep them apart."""
    with MediaWorld() as world:
        world.site(HOST)
        for kind, name in (("lane", "requires_cookie"), ("tool", "yt-dlp")):
            world.turn(lambda now, kind=kind, name=name:  # type: ignore[misc]
                       brain_of(world).controls.set(kind, name, {"limit": 2}, now))  # fmt: skip
        world.video(f"https://{HOST}/v/one")
        world.run_for("5s")
        second = raw(world, DOWNLOAD, {"url": f"https://{HOST}/v/one"})
        world.run_for("10m")
        assert world.web.got == ["one"]
        assert (len(world.on_disk()), world.state_of(second)) == (1, "completed")


@pytest.mark.parametrize("away", ["resting", "removed"])
def test_who_was_refused_does_not_knock_until_another_account_is_there(away: str) -> None:
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(1)}, good_tokens={"good"})
        tokens = ("cookie-of-one", "cookie-of-two")
        numbers = {token: world.account(token, HOST, token) for token in tokens}
        world.download_now(world.subscribe(URL))
        world.run_for("23s")  # one of them was refused
        (call,) = world.web.of("download")
        assert call.ended_at < world.now
        (other,) = [id for token, id in numbers.items() if token != call.cookie]
        accounts, heard = world.media.accounts, Heard(Word.PUSHBACK, 412, 600.0)
        if away == "resting":
            world.turn(lambda now: accounts.checked(other, heard, now))
        else:
            world.turn(lambda now: accounts.remove(other, now))
        before = brain_of(world).core.admission.fence
        world.run_for("5m")
        assert brain_of(world).core.admission.fence - before <= 3  # turns that it was given
        (item,) = world.items()
        assert item.failure == "credential"
        assert item.state == ("failed" if away == "removed" else "queued")


def test_what_was_begun_goes_when_its_download_is_cancelled() -> None:
    with MediaWorld() as world:
        world.site(HOST)
        id = world.video(f"https://{HOST}/v/one")
        world.run_for("10s")
        assert world.media.library.leftovers()
        world.app.cancel(id)
        world.run_for("10s")
        assert world.states() == {"skipped": 1}
        assert not world.media.library.leftovers()


def test_the_job_of_an_item_is_found_however_many_are_in_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finding, "MOST_JOBS", 3)
    with MediaWorld() as world:
        world.site(HOST, lists={"/list": ids(20)})
        world.download_now(world.subscribe(URL))
        world.run_for("10s")
        queued = [each for each in world.items() if each.state == "queued"]
        jobs = {finding.open_download(world.app.store, each) for each in queued}
        assert None not in jobs
        assert len(jobs) == len(queued) > 10
