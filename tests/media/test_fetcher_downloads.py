"""The program downloads videos: whole, again from where it was, or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.apps.media.fetcher.choosing import Choosing, facts
from headway.apps.media.fetcher.downloading import Begun
from headway.apps.media.fetcher.failures import Verdict
from headway.apps.media.fetcher.filters import Filters
from headway.apps.media.fetcher.picturing import extension
from headway.apps.media.fetcher.progressing import Progress, Room
from headway.apps.media.fetcher.protocol import FailureKind, Known, Order, Task
from tests.media.fetcher_kit import download
from tests.media.video_site import JPEG, NEWEST, VideoSite


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite() as site:
        yield site


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def files_in(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


def test_a_video_comes_with_its_thumbnail_and_what_is_known(site: VideoSite, work: Path) -> None:
    video = site.video("one", title="../../One: /etc/x", size=3_000_000, views=77)
    ran = download(site, site.watch_url("one"), work)
    result, info = ran.result, ran.result["info"]
    assert result["file"] == "media.mp4"
    assert sha256(work / "media.mp4") == video.sha256()
    assert (result["size_bytes"], result["resumed_from_bytes"]) == (3_000_000, 0)
    assert result["thumbnail"] == "media.jpg"
    assert (work / "media.jpg").read_bytes() == JPEG
    assert (info["title"], info["view_count"]) == ("../../One: /etc/x", 77)
    assert (info["timestamp"], info["duration"]) == (NEWEST, 90)
    assert not any(name.startswith(("_", "requested_", "http_", "formats")) for name in info)
    assert "/media/" not in json.dumps(info)
    assert files_in(work) == {"media.mp4", "media.jpg", "media.choice"}
    assert [each.path for each in site.log] == ["/watch/one", "/media/one.mp4", "/thumb/one.jpg"]
    assert ran.progress[-1][:2] == (3_000_000, 3_000_000)
    assert "3.0 MB of 3.0 MB" in ran.progress[-1][2]


def test_progress_is_told_while_the_file_comes(site: VideoSite, work: Path) -> None:
    site.video("one")
    site.slow(200_000)
    ran = download(site, site.watch_url("one"), work, thumbnail=False)
    assert 3 <= len(ran.progress) <= 8  # in one second
    assert all(total == 200_000 for _, total, _ in ran.progress)
    done = [done for done, *_ in ran.progress]
    assert done == sorted(done)
    assert any("kB/s" in note and "left" in note for *_, note in ran.progress)


def test_a_plain_file_is_asked_for_once_and_judged_by_what_the_list_said(
    site: VideoSite, work: Path
) -> None:
    video = site.video("v1", size=2_000_000, pages=False)
    known = Known(title="A cat", published_at=NEWEST, duration_s=60)
    wanted = Filters(title_any=("CAT",), min_duration_s=30, min_views=5)
    ran = download(site, site.media_url("v1"), work, known=known, filters=wanted)
    assert sha256(work / "media.mp4") == video.sha256()
    assert ran.result["info"]["title"] == "A cat"
    assert len(site.log) == 1


def test_a_file_that_was_cut_off_is_continued(site: VideoSite, work: Path) -> None:
    video = site.video("one", size=1_000_000)
    site.fail("/media/", "cut", count=1)
    cut = download(site, site.watch_url("one"), work)
    assert (cut.failure.kind, cut.failure.at) == (FailureKind.NETWORK, "media")
    begun = (work / "media.mp4.part").stat().st_size
    assert 400_000 < begun < 600_000

    ran = download(site, site.watch_url("one"), work)
    assert ran.result["resumed_from_bytes"] == begun
    assert site.asked("/media/")[-1].headers["Range"] == f"bytes={begun}-"
    assert site.asked("/media/")[-1].status == 206
    assert sha256(work / "media.mp4") == video.sha256()


def test_a_file_that_was_replaced_is_not_continued(site: VideoSite, work: Path) -> None:
    video = site.video("one", size=1_000_000)
    site.fail("/media/", "cut", count=1)
    assert download(site, site.watch_url("one"), work).failure.kind is FailureKind.NETWORK
    video.size, video.edition = 1_000_001, "second"
    result = download(site, site.watch_url("one"), work).result
    assert sha256(work / result["file"]) == video.sha256()
    assert result["resumed_from_bytes"] == 0


def test_a_network_error_is_tried_again_inside(site: VideoSite, work: Path) -> None:
    video = site.video("one", size=1_000_000)
    site.fail("/media/", "cut", count=1)
    download(site, site.watch_url("one"), work, retries=1).result  # noqa: B018
    assert sha256(work / "media.mp4") == video.sha256()
    assert [each.status for each in site.asked("/media/")] == [200, 206]


def test_a_file_that_is_gone_in_one_format_comes_in_another(site: VideoSite, work: Path) -> None:
    video = site.video("two", heights=(1080, 480))
    site.fail("/media/two_1080", 404)
    formats = ("b[height<=?1080]", "w", "b")
    ran = download(site, site.watch_url("two"), work, formats=formats)
    assert ran.result["height"] == 480
    assert sha256(work / "media.mp4") == video.sha256("two_480")
    assert [each.path for each in site.asked("/media/")] == [
        "/media/two_1080.mp4", "/media/two_480.mp4",
    ]  # fmt: skip


# --- parts of it, without a program


def test_what_is_left_of_another_format_is_not_continued(tmp_path: Path) -> None:
    Begun(tmp_path, "one").forget_another()
    (tmp_path / "media.mp4.part").write_text("half")
    (tmp_path / "kept.txt").write_text("somebody else's")
    Begun(tmp_path, "one").keep_size(8)
    Begun(tmp_path, "one").forget_another()
    assert (tmp_path / "media.mp4.part").exists()
    assert Begun(tmp_path, "one").size() == 8
    Begun(tmp_path, "two").forget_another()
    assert files_in(tmp_path) == {"kept.txt", "media.choice"}
    assert Begun(tmp_path, "two").size() is None


def made(**more: Any) -> Order:
    return Order(task=Task.DOWNLOAD, url="http://a.test", user_agent="x", directory=".", **more)


def test_formats_that_need_merging_are_passed_over_without_ffmpeg() -> None:
    merged = {"requested_formats": [{"format_id": "v"}, {"format_id": "a"}], "format_id": "v+a"}
    single = {"format_id": "s"}

    class Selects:
        def build_format_selector(self, spec: str) -> Any:
            return lambda _: iter({"merged": [merged], "single": [single], "none": []}[spec])

    for can_merge, expected in ((False, [single]), (True, [merged, single])):
        choosing = Choosing(made(formats=("none", "merged", "single")), can_merge=can_merge)
        choosing.ydl = Selects()
        assert choosing({}) == expected[:1]
        assert choosing.candidates == expected
    choosing = Choosing(made(formats=("none", "merged")), can_merge=False)
    choosing.ydl = Selects()
    with pytest.raises(Verdict) as caught:
        choosing({})
    assert caught.value.kind is FailureKind.FORMAT


def test_the_page_knows_better_than_the_list_and_the_list_better_than_a_file() -> None:
    order = made(known=Known(title="Listed", views=5))
    assert facts({"title": "Read"}, order) == ("Read", None, None, 5)
    assert facts({"title": "v1", "direct": True}, order) == ("Listed", None, None, 5)


def test_progress_is_told_four_times_a_second_at_most_and_counts_parts() -> None:
    now, told = 0.0, []
    progress = Progress(Room(made(max_bytes=1_000)), told.append, lambda: now)
    progress.parts = 2
    for block in range(100):
        now = block / 100
        progress({"status": "downloading", "filename": "v", "downloaded_bytes": block})
    progress({"status": "finished", "filename": "v", "downloaded_bytes": 100, "total_bytes": 100})
    assert 4 <= len(told) <= 5
    progress({"status": "downloading", "filename": "a", "downloaded_bytes": 1, "total_bytes": 9})
    assert (told[-1]["part"], told[-1]["parts"], told[-1]["done_bytes"]) == (2, 2, 1)
    with pytest.raises(Verdict) as caught:
        progress({"status": "downloading", "filename": "a", "downloaded_bytes": 901})
    assert caught.value.kind is FailureKind.TOO_LARGE


@pytest.mark.parametrize(
    ("content", "ext"),
    [
        (JPEG, "jpg"), (b"\x89PNG\r\n\x1a\n..", "png"), (b"GIF89a", "gif"),
        (b"RIFF....WEBPVP8", "webp"), (b"....ftypavif", "avif"), (b"<html>", None), (b"", None),
    ],
)  # fmt: skip
def test_a_picture_is_known_by_how_it_begins(content: bytes, ext: str | None) -> None:
    assert extension(content) == ext
