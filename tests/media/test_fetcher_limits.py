"""What the program does not download, and how soon it knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.apps.media.fetcher.filters import Filters
from headway.apps.media.fetcher.protocol import FailureKind
from tests.media.fetcher_kit import download
from tests.media.video_site import VideoSite


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite() as site:
        yield site


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def test_nothing_is_asked_for_that_is_not_wanted(site: VideoSite, work: Path) -> None:
    site.video("one", title="An Advert", views=3)
    unwanted = Filters(title_none=("ADVERT",))
    ran = download(site, site.watch_url("one"), work, filters=unwanted, formats=("b[height=1]",))
    assert ran.failure.kind is FailureKind.FILTERED
    assert "advert" in ran.failure.message.lower()
    assert [each.path for each in site.log] == ["/watch/one"]


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"max_bytes": 50_000}, FailureKind.TOO_LARGE),
        ({"min_free_bytes": 10**16}, FailureKind.DISK),
        ({"formats": ("b[height>=4000]", "ba")}, FailureKind.FORMAT),
    ],
)
def test_a_file_that_must_not_come_is_left(
    site: VideoSite, work: Path, more: dict[str, Any], kind: FailureKind
) -> None:
    site.video("one", heights=(720,), size=5_000_000)
    ran = download(site, site.watch_url("one"), work, **more)
    assert ran.failure.kind is kind
    assert all(each.sent_bytes < 5_000_000 for each in site.asked("/media/"))
    assert not (work / "media.mp4").exists()
    assert not site.asked("/thumb/")


def test_a_live_stream_is_not_recorded(site: VideoSite, work: Path) -> None:
    url = site.page(
        "/live.mpd",
        '<MPD type="dynamic" xmlns="urn:mpeg:dash:schema:mpd:2011"><Period><AdaptationSet '
        'mimeType="video/mp4"><Representation id="1" bandwidth="1"><BaseURL>/media/x.mp4</BaseURL>'
        "</Representation></AdaptationSet></Period></MPD>",
        kind="application/dash+xml",
    )
    assert download(site, url, work).failure.kind is FailureKind.LIVE
    assert not site.asked("/media/")


def test_a_list_is_no_video(site: VideoSite, work: Path) -> None:
    site.collection("some", 2)
    assert download(site, site.collection_url("some"), work).failure.kind is FailureKind.UNSUPPORTED
    assert not site.asked("/media/")


def test_a_video_without_its_thumbnail_is_still_a_video(site: VideoSite, work: Path) -> None:
    site.video("one")
    site.page("/thumb/one.jpg", "<html>no picture</html>", kind="image/jpeg")
    ran = download(site, site.watch_url("one"), work)
    assert (ran.result["thumbnail"], ran.result["pushback"]) == (None, None)
    assert (work / "media.mp4").exists()
