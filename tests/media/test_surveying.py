"""Surveys: what is missing is told, and a library that is away is never taken for an empty one."""

from __future__ import annotations

import json
import os
import shutil
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway.apps.media.library import surveying, walking
from headway.apps.media.library.errors import LibraryGone
from headway.apps.media.library.publishing import publish
from headway.apps.media.library.root import MARKER, Library
from headway.apps.media.library.surveying import Found, Record, Survey, found_files, survey


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "library"
    Library(place, min_free_bytes=0).begin()
    return place


def put(root: Path, path: str, size_bytes: int = 3) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(b"x" * size_bytes)


def record(item: int, path: str, size_bytes: int | None = 3) -> Record:
    return Record(item, f"generic:{item}", path, size_bytes)


# ---------------------------------------------------------------------- what a survey says


def test_a_survey_tells_what_is_there_missing_changed_and_unknown(root: Path) -> None:
    for path in ("a/1.mp4", "a/2.webm", "b/orphan.mkv", "b/orphan.nfo", "b/cover.jpg"):
        put(root, path)
    put(root, "a/4.mp4", 50)
    library = Library(root, min_free_bytes=0)
    library.work(9)

    wanted = [record(1, "a/1.mp4"), record(2, "a/2.webm", None), record(3, "a/3.mp4")]
    found = survey(root, [*wanted, record(4, "a/4.mp4")])

    assert found.there == [1, 2]
    assert [each.item for each in found.missing] == [3]
    assert [(each.record.item, each.size_bytes) for each in found.resized] == [(4, 50)]
    assert (found.orphans, found.orphan_count, found.orphan_bytes) == (["b/orphan.mkv"], 1, 3)
    assert found.work == ["9"]
    assert (found.files, found.expected) == (4, 4)
    assert not found.is_suspicious()


def test_what_is_hidden_unfinished_or_elsewhere_is_no_orphan(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/film.mp4")
    (root / "linked").symlink_to(tmp_path / "elsewhere")
    (root / "film.mp4").symlink_to(tmp_path / "elsewhere" / "film.mp4")
    for path in [
        ".trash/x.mp4",
        ".x.mp4",
        "x.mp4.part",
        "x.mp4.ytdl",
        "x.f137.mp4",
        "x.temp.mp4",
        "x.f616-drc.webm",
        "x.mp4.part-Frag3",
        "x.txt",
        ".headway/work/1/media.mp4",
    ]:
        put(root, path)
    os.mkfifo(root / "pipe.mp4")

    assert survey(root, []).files == 0
    assert list(found_files(root)) == []


def test_a_video_that_the_user_moved_and_linked_is_not_missing(root: Path, tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/film.mp4")
    (root / "film.mp4").symlink_to(tmp_path / "elsewhere" / "film.mp4")
    assert survey(root, [record(1, "film.mp4")]).there == [1]


def test_two_records_of_one_video_are_both_there(root: Path) -> None:
    put(root, "1.mp4")
    assert survey(root, [record(1, "1.mp4"), record(2, "1.mp4")]).there == [1, 2]


def test_a_name_that_the_disk_writes_in_another_form_is_the_same(root: Path) -> None:
    put(root, "cafe\u0301.mp4")  # as some file systems give it back
    found = survey(root, [record(1, "caf\u00e9.mp4")])
    assert (found.there, found.orphan_count) == ([1], 0)


@pytest.mark.parametrize("path", ["../secret.mp4", "/etc/hostname", "a/../../secret.mp4", "\0"])
def test_a_record_that_leads_elsewhere_is_missing(root: Path, path: str) -> None:
    put(root.parent, "secret.mp4")
    assert survey(root, [record(1, path)]).missing


def test_orphans_are_counted_but_not_all_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "MAX_ORPHANS", 3)
    for number in range(10):
        put(root, f"{number}.mp4")
    found = survey(root, [])
    assert (len(found.orphans), found.orphan_count, found.orphan_bytes) == (3, 10, 30)


def test_progress_is_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surveying, "PROGRESS_EVERY", 2)
    for number in range(5):
        put(root, f"{number}.mp4")
    told: list[int] = []
    survey(root, [], told.append)
    assert told == [2, 4, 5]


# ---------------------------------------------------------------------- when it must not judge


def test_lesson_15_a_vanished_mount_stops_the_survey(root: Path, tmp_path: Path) -> None:
    put(root, "1.mp4")
    root.rename(tmp_path / "away")
    with pytest.raises(LibraryGone):
        survey(root, [record(1, "1.mp4")])
    root.mkdir()
    with pytest.raises(LibraryGone, match="mount is probably away"):
        survey(root, [record(1, "1.mp4")])


@pytest.mark.parametrize("leaves", ["nothing", "empty", "another"])
def test_lesson_15_a_mount_that_vanishes_in_the_middle_stops_it_too(
    root: Path, tmp_path: Path, leaves: str
) -> None:
    put(root, "1.mp4")

    def records() -> Iterator[Record]:
        yield record(1, "1.mp4")
        root.rename(tmp_path / "away")
        if leaves != "nothing":
            root.mkdir()
        if leaves == "another":
            Library(root, min_free_bytes=0).begin()
        yield record(2, "2.mp4")

    with pytest.raises(LibraryGone):
        survey(root, records())


def test_another_library_in_its_place_is_not_judged(root: Path) -> None:
    with pytest.raises(LibraryGone, match="another library"):
        survey(root, [], identity="known")
    identity = json.loads((root / MARKER).read_text())["library"]
    assert survey(root, [], identity=identity).expected == 0


def test_what_cannot_be_read_is_not_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "good/1.mp4")
    put(root, "bad/2.mp4")
    scandir, stat = os.scandir, os.stat

    def broken_scandir(path: Path) -> object:
        if Path(path).name == "bad":
            raise OSError(5, "the disk is broken")
        return scandir(path)

    def broken_stat(path: Path, **more: object) -> object:
        if "2.mp4" in str(path):
            raise OSError(5, "the disk is broken")
        return stat(path, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", broken_scandir)
    records = [record(1, "good/1.mp4"), record(3, "bad/3.mp4")]
    found = survey(root, records)
    assert (found.there, [each.item for each in found.unreadable]) == ([1], [3])
    assert found.unreadable_directories == ["bad"]
    monkeypatch.setattr(os, "stat", broken_stat)
    found = survey(root, [*records, record(2, "bad/2.mp4")])
    assert [each.item for each in found.unreadable] == [3, 2]
    assert found.missing == []


@example(there=5, missing=10, unreadable=0)
@example(there=5, missing=9, unreadable=0)
@given(there=st.integers(0, 60), missing=st.integers(0, 60), unreadable=st.integers(0, 20))
def test_lesson_15_much_that_is_missing_is_suspicious(
    there: int, missing: int, unreadable: int
) -> None:
    found = Survey(
        there=list(range(there)),
        missing=[record(n, "x") for n in range(missing)],
        unreadable=[record(n, "x") for n in range(unreadable)],
    )
    absent = missing + unreadable
    assert found.is_suspicious() == (absent >= 10 and 5 * absent > there + absent)
    assert found.is_suspicious(max_share=0, at_least=1) == (absent > 0)


def test_lesson_15_the_threshold_is_a_fifth(root: Path) -> None:
    for number in range(40):
        put(root, f"{number}.mp4")
    records = [record(number, f"{number}.mp4") for number in range(50)]
    assert not survey(root, records).is_suspicious()
    (root / "0.mp4").unlink()
    assert survey(root, records).is_suspicious()


# ---------------------------------------------------------------------- files for an import


def found(root: Path) -> list[Found]:
    return sorted(found_files(root))


def test_our_own_files_are_known_by_their_info(root: Path) -> None:
    work = Library(root, min_free_bytes=0).work(1)
    (work / "media.mp4").write_bytes(b"video")
    published = publish(
        root, PurePosixPath("a/b"), work=work, media=work / "media.mp4", thumbnail=None,
        info={"id": "x1", "title": "Title", "extractor_key": "Generic", "timestamp": 5,
              "webpage_url": "https://video.example/x1"},
        identity="generic:x1",
    )  # fmt: skip

    assert found(root) == [
        Found(published.files["video"], 5, "generic:x1", "Title", "x1", "Generic", 5,
              "https://video.example/x1")
    ]  # fmt: skip


def test_files_of_yt_dlp_are_known_by_theirs(root: Path) -> None:
    put(root, "Film [abc].mkv")
    (root / "Film [abc].info.json").write_text(
        json.dumps(
            {"id": "abcdef", "fulltitle": "Film!", "extractor": "site", "upload_date": "20240102"}
        )
    )
    assert found(root) == [
        Found("Film [abc].mkv", 3, None, "Film!", "abcdef", "site", 1_704_153_600, None)
    ]


@pytest.mark.parametrize(
    ("name", "title", "key", "published_at"),
    [
        ("A film [dQw4w9WgXcQ].mp4", "A film", "dQw4w9WgXcQ", None),
        ("2024-01-02 A film [BV1x_-].webm", "A film", "BV1x_-", 1_704_153_600),
        ("20240102 - A film [BV1x].webm", "A film", "BV1x", 1_704_153_600),
        ("A film [BV1x] (2).mkv", "A film", "BV1x", None),
        ("A film [1080p].mp4", "A film [1080p]", None, None),
        ("A film [Official Video].mp4", "A film [Official Video]", None, None),
        ("A film.mp4", "A film", None, None),
        ("2024-13-02 x.mp4", "2024-13-02 x", None, None),
        ("[BV1x].mp4", "[BV1x]", "BV1x", None),
        ("Film.OPUS", "Film", None, None),
    ],
)
def test_without_an_info_the_name_is_read(
    root: Path, name: str, title: str, key: str | None, published_at: int | None
) -> None:
    put(root, name)
    assert found(root) == [Found(name, 3, None, title, key, None, published_at, None)]


@pytest.mark.parametrize(
    "content",
    [b"", b"[" * 100_000, b"null", b"\xff\xfe", b'{"id": {"a": 1}, "title": 3.5}',
     b'{"headway": {"identity": ["x"]}}', b'{"webpage_url": "file:' + b'//host/share"}'],
)  # fmt: skip
def test_a_strange_info_does_no_harm(root: Path, content: bytes) -> None:
    put(root, "x [abc].mp4")
    (root / "x [abc].info.json").write_bytes(content)
    assert found(root) == [Found("x [abc].mp4", 3, None, "x", "abc")]


def test_an_info_that_is_no_plain_file_is_not_opened(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(json.dumps({"id": "secret"}))
    put(root, "a.mp4")
    (root / "a.info.json").symlink_to(tmp_path / "secret")
    put(root, "b.mp4")
    os.mkfifo(root / "b.info.json")
    put(root, "c.mp4")
    (root / "c.info.json").mkdir()
    assert [each.id for each in found(root)] == [None, None, None]


def test_a_name_that_is_no_text_is_found(root: Path) -> None:
    put(root, os.fsdecode(b"caf\xe9 [abc].mp4"))
    (only,) = found(root)
    assert (only.title, only.id) == ("caf?", "abc")
    assert (root / only.path).exists()
    assert survey(root, []).orphan_count == 1


def test_a_library_that_is_away_has_no_files_to_tell_of(root: Path) -> None:
    shutil.rmtree(root)
    with pytest.raises(LibraryGone):
        list(found_files(root))


def test_depth_is_bounded(root: Path) -> None:
    deep = "/".join(["d"] * walking.MAX_DEPTH)
    put(root, f"{deep}/seen.mp4")
    put(root, f"{deep}/d/not seen.mp4")
    assert [Path(each.path).name for each in found(root)] == ["seen.mp4"]


def test_many_files_take_little_time_and_memory(root: Path) -> None:
    count = 3000  # of which a hundred thousand are some thirty times as much
    for number in range(count):
        (root / f"{number} [id{number}].mp4").touch()
    began = time.perf_counter()
    assert sum(1 for _ in found_files(root)) == count
    assert time.perf_counter() - began < 10
    assert min(peak_bytes(root, count) for _ in range(3)) < 1_000_000  # others are at work, too


def peak_bytes(root: Path, count: int) -> int:
    tracemalloc.start()
    try:
        assert sum(1 for _ in found_files(root)) == count
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
