"""Videos that come in pieces: fragments of a stream, and picture and sound that are merged."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.apps.media.fetcher.protocol import FailureKind
from tests.media.fetcher_kit import download
from tests.media.video_site import VideoSite

# Reads its inputs and writes them one after the other. It says of itself what yt-dlp asks for.
FFMPEG = f"""#!{sys.executable}
import sys
words = sys.argv[1:]
print("ffmpeg version 7.1 Copyright (c) 2000-2024 the FFmpeg developers")
inputs = [words[n + 1] for n, word in enumerate(words) if word == "-i"]
if inputs:
    with open(words[-1].removeprefix("file:"), "wb") as merged:
        for each in inputs:
            merged.write(open(each.removeprefix("file:"), "rb").read())
"""

MPD = """<MPD type="static" mediaPresentationDuration="PT9S"
 xmlns="urn:mpeg:dash:schema:mpd:2011"><Period>
<AdaptationSet mimeType="video/mp4"><Representation id="../../v" bandwidth="900000" height="720"
 codecs="avc1.4d401f"><BaseURL>/parts/picture.mp4</BaseURL></Representation></AdaptationSet>
<AdaptationSet mimeType="audio/mp4"><Representation id="a" bandwidth="90000" codecs="mp4a.40.2">
<BaseURL>/parts/sound.m4a</BaseURL></Representation></AdaptationSet></Period></MPD>"""


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite() as site:
        yield site


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def stream(site: VideoSite, count: int = 5) -> str:
    for number in range(count):
        site.page(f"/part/{number}.ts", bytes([number]) * 1_000, kind="video/mp2t")
    parts = "".join(f"#EXTINF:2,\n/part/{number}.ts\n" for number in range(count))
    text = f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n{parts}#EXT-X-ENDLIST\n"
    return site.page("/stream.m3u8", text, kind="application/vnd.apple.mpegurl")


def test_a_stream_is_put_together_from_its_fragments(site: VideoSite, work: Path) -> None:
    result = download(site, stream(site), work).result
    assert (work / result["file"]).read_bytes() == b"".join(bytes([n]) * 1_000 for n in range(5))


def test_a_stream_stops_at_the_first_fragment_that_is_pushed_back(
    site: VideoSite, work: Path
) -> None:
    url = stream(site)
    site.push_back(429, until=lambda: False, paths="/part/2", retry_after=5)
    failure = download(site, url, work, retries=5).failure
    assert (failure.kind, failure.at, failure.retry_after_s) == (FailureKind.PUSHBACK, "media", 5)
    assert [each.path for each in site.asked("/part/")] == [f"/part/{n}.ts" for n in range(3)]


def test_a_stream_with_a_hole_is_no_video(site: VideoSite, work: Path) -> None:
    url = stream(site)
    site.fail("/part/2", 404)
    assert download(site, url, work).failure.kind is FailureKind.GONE
    assert not list(work.glob("*.mp4"))


def parts(site: VideoSite) -> str:
    site.page("/parts/picture.mp4", b"picture" * 1_000, kind="video/mp4")
    site.page("/parts/sound.m4a", b"sound" * 1_000, kind="audio/mp4")
    return site.page("/manifest.mpd", MPD, kind="application/dash+xml")


def test_picture_and_sound_are_merged_with_ffmpeg(
    site: VideoSite, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ffmpeg = tmp_path / "bin" / "ffmpeg"
    ffmpeg.parent.mkdir()
    ffmpeg.write_text(FFMPEG)
    ffmpeg.chmod(0o755)
    monkeypatch.setenv("PATH", str(ffmpeg.parent), prepend=":")
    ran = download(site, parts(site), work, formats=("bv*+ba", "b"))
    merged = (work / ran.result["file"]).read_bytes()
    assert merged == b"picture" * 1_000 + b"sound" * 1_000
    assert "part 2 of 2" in ran.progress[-1][2]
    assert {file.name for file in work.iterdir()} == {"media.mp4", "media.choice"}


def test_without_ffmpeg_parts_that_need_it_are_not_asked_for(
    site: VideoSite, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    failure = download(site, parts(site), work, formats=("bv*+ba", "b")).failure
    assert failure.kind is FailureKind.FORMAT
    assert not site.asked("/parts/")
