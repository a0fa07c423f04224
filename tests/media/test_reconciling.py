"""Comparing the archive with the disk: what is gone, what is back, what was there all the time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headway.apps.media.covering import Part, is_of_tenant
from headway.apps.media.jobs import LANE
from headway.apps.media.library.moving import MARKER
from headway.apps.media.model import Subscription
from headway.apps.media.reconciling import RECONCILE
from headway.apps.media.tables import KEEP_ITEM
from headway.store.records import NewJob
from headway.testing.world import VirtualEngine
from tests.media.media_world import MediaWorld, here
from tests.stores import second_store_in_the_soak

pytestmark = [pytest.mark.usefixtures("worlds"), second_store_in_the_soak]

URL = "https://videos.example/list"


class DiskWorld(MediaWorld):
    def _start(self) -> VirtualEngine:
        started = super()._start()
        self.media.reconciler.in_thread = self.media.reconciler.adopter.in_thread = here
        return started

    @property
    def root(self) -> Path:
        return self.media.library.root

    def look(self, **asked: Any) -> dict[str, Any]:
        """The result of one look."""
        payload = json.dumps(asked)
        id = self.put(NewJob(RECONCILE, payload, created_at=self.now, lane=LANE, key=RECONCILE))
        assert self.app.engine is not None
        self.app.engine.brain.heard()
        self.run_for("1m")
        assert self.state_of(id) == "completed"
        kept = self.app.store.result(id)
        assert kept is not None
        found: dict[str, Any] = json.loads(kept[0])
        return found

    def archived(self, count: int, path: str = "/list", tenant: str = "") -> Subscription:
        """A subscription of which everything is on disk."""
        site = self.site("videos.example")
        site.download_s = 0.5
        site.lists[path] = [f"{path.strip('/')}{tenant}{number:03}" for number in range(count)]
        subscription = self.subscribe(f"https://videos.example{path}", tenant=tenant)
        self.download_now(subscription)
        self.run_for("1h")
        assert self.states(subscription) == {"done": count}
        return subscription

    def videos(self, subscription: Subscription) -> list[Path]:
        return [self.root / self.files(each)["video"] for each in self.items(subscription)]

    def unlisted(self, name: str, info: dict[str, Any] | None = None, size: int = 10) -> Path:
        """A file that somebody else has put there."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        if info is not None:
            path.with_suffix(".info.json").write_text(json.dumps(info))
        return path


@pytest.fixture
def world() -> Iterator[DiskWorld]:
    with DiskWorld() as made:
        assert isinstance(made, DiskWorld)
        yield made


# ---------------------------------------------------------------------- gone, and back


def test_what_is_gone_is_missing_and_what_is_back_is_done(world: DiskWorld) -> None:
    subscription = world.archived(12)
    first, second, *_ = world.videos(subscription)
    first.rename(first.with_suffix(".away"))
    second.unlink()
    report = world.look()
    assert (report["refused"], report["changed"], report["lost"]["count"]) == (None, 2, 2)
    assert (report["on_disk"], report["missing"], report["listed"]) == (10, 2, 12)
    assert world.states() == {"done": 10, "missing": 2}
    gone = next(each for each in world.items() if each.state == "missing")
    assert gone.files is not None  # where it was is not forgotten
    assert gone.reason == "it is not on disk any more"
    first.with_suffix(".away").rename(first)
    report = world.look()
    assert (report["changed"], report["found_again"]["count"], report["missing"]) == (1, 1, 1)
    assert world.states() == {"done": 11, "missing": 1}
    assert world.look()["changed"] == 0


def test_a_dry_run_changes_nothing(world: DiskWorld) -> None:
    subscription = world.archived(3)
    world.videos(subscription)[0].unlink()
    report = world.look(dry_run=True)
    assert (report["dry_run"], report["changed"], report["lost"]["count"]) == (True, 0, 1)
    assert world.states() == {"done": 3}


def test_another_size_is_told_and_left_alone(world: DiskWorld) -> None:
    subscription = world.archived(2)
    video = world.videos(subscription)[0]
    video.write_bytes(b"shorter")
    report = world.look()
    assert report["resized"]["count"] == 1
    (found,) = report["resized"]["items"]
    assert (found["size_bytes"], found["was_bytes"]) == (7, 1_000)
    assert (report["changed"], world.states()) == (0, {"done": 2})


# ---------------------------------------------------------------------- too bad to be true


def test_lesson_15_a_vanished_mount_erases_nothing(world: DiskWorld) -> None:
    subscription = world.archived(15)
    shutil.move(world.root, world.root.with_name("unmounted"))
    world.root.mkdir()  # an empty mount point
    for force in (False, True):  # nothing can be judged, whoever insists
        report = world.look(force=force)
        assert "mount" in report["refused"]
        assert (report["changed"], report["missing"], report["on_disk"]) == (0, 0, 15)
    assert world.states() == {"done": 15}
    world.root.rmdir()
    assert "mount" in world.look()["refused"]
    shutil.move(world.root.with_name("unmounted"), world.root)
    assert world.look()["refused"] is None
    assert world.states(subscription) == {"done": 15}


def test_lesson_15_another_library_in_its_place_erases_nothing(world: DiskWorld) -> None:
    world.archived(3)
    shutil.move(world.root, world.root.with_name("unmounted"))
    world.root.mkdir()
    (world.root / MARKER).write_text('{"library": "another one"}')
    assert "another library" in world.look(force=True)["refused"]
    assert world.states() == {"done": 3}


def test_lesson_15_when_too_much_is_gone_nothing_is_changed_unless_somebody_insists(
    world: DiskWorld,
) -> None:
    subscription = world.archived(40)
    for video in world.videos(subscription)[:10]:
        video.unlink()
    report = world.look()
    assert "10 of 40 videos are not there" in report["refused"]
    assert (report["changed"], report["lost"]["count"]) == (0, 10)
    assert world.states() == {"done": 40}
    report = world.look(force=True)
    assert (report["refused"], report["changed"], report["forced"]) == (None, 10, True)
    assert world.states() == {"done": 30, "missing": 10}


def test_what_is_known_to_be_missing_makes_nobody_suspicious(world: DiskWorld) -> None:
    subscription = world.archived(40)
    for video in world.videos(subscription)[:10]:
        video.unlink()
    world.look(force=True)
    left = next(each for each in world.items() if each.state == "done")
    (world.root / world.files(left)["video"]).unlink()
    report = world.look()
    assert (report["refused"], report["changed"]) == (None, 1)


def test_a_directory_that_cannot_be_read_is_not_empty(
    world: DiskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.archived(3)

    def closed(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headway.apps.media.reconciling.stat", closed)
    for video in world.root.rglob("*.mp4"):
        video.unlink()
    report = world.look()
    assert (report["lost"]["count"], report["changed"]) == (3, 0)
    assert world.states() == {"done": 3}


def test_what_was_got_again_meanwhile_is_not_lost(
    world: DiskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A survey of a large library takes an hour, and the archive goes on."""
    subscription = world.archived(2)
    video = world.videos(subscription)[0]
    content = video.read_bytes()
    video.unlink()
    reconciler = world.media.reconciler
    before = reconciler._look

    def look(part: Part) -> Any:
        found = before(part)
        video.write_bytes(content)
        return found

    monkeypatch.setattr(reconciler, "_look", look)
    report = world.look()
    assert (report["lost"]["count"], report["changed"]) == (1, 0)
    assert world.states() == {"done": 2}


def test_what_has_another_file_meanwhile_is_not_lost(
    world: DiskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = world.archived(2)
    item, *_ = world.items(subscription)
    video = world.root / world.files(item)["video"]
    video.rename(moved := video.with_name("better.mp4"))
    files = json.dumps({"video": str(moved.relative_to(world.root))})
    reconciler = world.media.reconciler
    before = reconciler._look

    def look(part: Part) -> Any:
        found = before(part)
        row = (item.id, "done", None, None, 0, None, None, None, None, None, files, 1_000, 1.0, 1.0)
        world.app.store.write([(KEEP_ITEM, [row])])
        return found

    monkeypatch.setattr(reconciler, "_look", look)
    report = world.look()
    assert (report["lost"]["count"], report["changed"]) == (1, 0)
    assert world.states() == {"done": 2}


# ---------------------------------------------------------------------- whose


def test_a_tenant_looks_at_its_own_and_sees_nothing_else(world: DiskWorld) -> None:
    ours, theirs = world.archived(3, "/a", "ours"), world.archived(3, "/b", "theirs")
    nobodys = world.archived(2, "/c")
    for subscription in (ours, theirs, nobodys):
        world.videos(subscription)[0].unlink()
    world.unlisted("tenants/ours/one.mp4")
    world.unlisted("tenants/theirs/two.mp4")
    world.unlisted("three.mp4")
    report = world.look(tenant="ours")
    assert (report["changed"], report["listed"]) == (1, 3)
    assert report["orphans"] == {"count": 1, "items": ["tenants/ours/one.mp4"]}
    assert world.states(theirs) == {"done": 3}
    report = world.look(tenant="")
    assert (report["changed"], report["listed"]) == (1, 2)
    assert report["orphans"] == {"count": 1, "items": ["three.mp4"]}
    report = world.look()
    assert (report["changed"], report["listed"], report["orphans"]["count"]) == (1, 8, 3)


def test_where_the_library_is_is_not_for_tenants(world: DiskWorld) -> None:
    world.archived(1, tenant="ours")
    shutil.rmtree(world.root)
    assert str(world.root) not in world.look(tenant="ours")["refused"]
    assert str(world.root) in world.look()["refused"]


def test_one_subscription_is_looked_at_alone(world: DiskWorld) -> None:
    one, other = world.archived(2, "/a"), world.archived(2, "/b")
    for subscription in (one, other):
        world.videos(subscription)[0].unlink()
    report = world.look(tenant="", subscription=one.id)
    assert (report["subscription"], report["changed"], report["listed"]) == (one.id, 1, 2)
    assert world.states(other) == {"done": 2}
    assert report["orphans"]["count"] == 0  # what others have is no orphan


def test_the_last_report_is_kept(world: DiskWorld) -> None:
    world.archived(2)
    report = world.look(tenant="")
    ((kept,),) = world.app.store.rows("select value from media_facts where name = 'reconciled:'")
    assert msgspec.json.decode(kept) == report
    assert report["bytes"] == 2_000
    assert report["free_bytes"] > 0
    assert report["expected"] == 0


@pytest.mark.parametrize(("path", "tenant", "is_its"), [
    ("a/b.mp4", "", True), ("tenants/x/b.mp4", "", False), ("tenants/x/b.mp4", "x", True),
    ("tenants/xy/b.mp4", "x", False), ("a/b.mp4", "x", False), ("tenants", "", False),
])  # fmt: skip
def test_whose_a_place_is(path: str, tenant: str, is_its: bool) -> None:
    assert is_of_tenant(path, tenant) is is_its


# ---------------------------------------------------------------------- taking over


def test_files_that_are_wanted_are_taken_over_where_they_are(world: DiskWorld) -> None:
    world.archived(1)  # there is a library
    site = world.site("videos.example")
    site.lists["/more"] = ["by-info", "by-url", "by-name", "not-there"]
    subscription = world.subscribe("https://videos.example/more")
    world.list_now(subscription)
    world.run_for("5m")
    world.unlisted("old/one.mkv", {"id": "by-info", "extractor_key": "X", "title": "One"})
    world.unlisted("old/two.mp4", {"webpage_url": "https://videos.example/v/by-url"})
    image = world.unlisted("2020-02-03 Three [by-name].webm", size=77).with_suffix(".jpg")
    image.write_bytes(b"picture")
    world.unlisted("holiday.mp4")
    dry = world.look(adopt=True, dry_run=True)
    assert (dry["imported"]["matched"], world.states(subscription)) == (3, {"found": 4})
    report = world.look(adopt=True)
    assert report["imported"]["matched"] == 3
    assert report["imported"]["left"] == {"count": 1, "items": ["holiday.mp4"]}
    assert world.states(subscription) == {"done": 3, "found": 1}
    by_key = {each.key: each for each in world.items(subscription)}
    assert world.files(by_key["x:by-info"]) == {
        "video": "old/one.mkv", "info": "old/one.info.json",
    }  # fmt: skip
    named = by_key["x:by-name"]
    assert world.files(named)["thumbnail"] == "2020-02-03 Three [by-name].jpg"
    assert named.size_bytes == 77
    calls = len(world.web.of("download"))
    world.download_now(subscription)
    world.run_for("1h")
    assert len(world.web.of("download")) == calls + 1  # only what was not there
    assert world.look(adopt=True)["imported"]["matched"] == 0


def test_a_file_that_was_moved_is_found_again(world: DiskWorld) -> None:
    subscription = world.archived(2)
    video = world.videos(subscription)[0]
    elsewhere = world.root / "elsewhere"
    elsewhere.mkdir()
    for each in video.parent.glob(f"{video.stem[:30]}*"):
        each.rename(elsewhere / each.name)
    report = world.look(adopt=True)
    assert (report["changed"], report["imported"]["matched"]) == (1, 1)
    assert world.states() == {"done": 2}
    assert (elsewhere / video.name) in world.videos(subscription)


def test_with_a_subscription_what_nobody_knows_becomes_its_own(world: DiskWorld) -> None:
    world.archived(1)
    subscription = world.subscribe("https://videos.example/new")
    info = {"id": "old1", "extractor_key": "X", "webpage_url": "https://videos.example/v/old1",
            "title": "An old one"}  # fmt: skip
    world.unlisted("a.mp4", info)
    world.unlisted("copy of a.mp4", info)
    elsewhere = {**info, "id": "old2", "webpage_url": "https://elsewhere.example/v/old2"}
    world.unlisted("b.mp4", elsewhere)
    world.unlisted("c.mp4")
    report = world.look(tenant="", subscription=subscription.id, adopt=True, foreign=True)
    assert report["imported"]["added"] == 1
    assert report["imported"]["left"]["count"] == 3
    (made,) = world.items(subscription)
    assert (made.key, made.state, made.title) == ("x:old1", "done", "An old one")
    world.site("videos.example").lists["/new"] = ["old1", "new1"]
    world.download_now(subscription)
    world.run_for("1h")
    assert world.states(subscription) == {"done": 2}
    assert "old1" not in world.web.got
    again = world.look(tenant="", subscription=subscription.id, adopt=True, foreign=True)
    assert again["imported"]["added"] == 0


def test_nobody_gets_the_files_of_another_tenant(world: DiskWorld) -> None:
    world.archived(1)
    site = world.site("videos.example")
    site.lists["/t"] = ["vid"]
    subscription = world.subscribe("https://videos.example/t", tenant="ours")
    world.list_now(subscription)
    world.run_for("5m")
    info = {"id": "vid", "extractor_key": "X", "webpage_url": "https://videos.example/v/vid"}
    world.unlisted("tenants/theirs/a.mp4", info)
    world.unlisted("a.mp4", info)
    report = world.look(tenant="ours", subscription=subscription.id, adopt=True)
    assert report["imported"] == {"matched": 0, "added": 0, "left": {"count": 0, "items": []}}
    assert world.look(adopt=True)["imported"]["matched"] == 0
    report = world.look(tenant="ours", subscription=subscription.id, adopt=True, foreign=True)
    assert report["imported"]["matched"] == 1
    assert world.files(world.items(subscription)[0])["video"] == "a.mp4"


def test_a_name_that_is_no_text_is_told_and_left(world: DiskWorld) -> None:
    world.archived(1)
    world.site("videos.example").lists["/odd"] = ["strange"]
    subscription = world.subscribe("https://videos.example/odd")
    world.list_now(subscription)
    world.run_for("5m")
    world.unlisted("A \udcff film [strange].mp4")
    report = world.look(adopt=True)
    assert report["imported"]["left"] == {"count": 1, "items": ["A ? film [strange].mp4"]}
    assert report["orphans"]["count"] == 1
    assert world.states(subscription) == {"found": 1}


def test_a_crash_in_the_middle_does_no_harm(world: DiskWorld) -> None:
    subscription = world.archived(12)
    for video in world.videos(subscription)[:2]:
        video.unlink()
    reconciler = world.media.reconciler
    before = reconciler._still
    crashed = []

    def still(rows: Any, is_there: bool) -> Any:
        if not crashed:
            crashed.append(1)
            raise RuntimeError("the disk is on fire")
        return before(rows, is_there)

    reconciler._still = still  # type: ignore[method-assign]
    assert world.look()["changed"] == 2  # the second attempt
    assert crashed
    assert world.states() == {"done": 10, "missing": 2}
