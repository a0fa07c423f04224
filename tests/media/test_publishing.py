"""Publishing: four files of one name, never somebody else's, complete after any crash."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from headway.apps.media.library import info_files, moving
from headway.apps.media.library.claiming import MAX_NUMBER
from headway.apps.media.library.errors import (
    BadDownload,
    LibraryFull,
    LibraryGone,
    LibraryReadOnly,
    UnsafePath,
)
from headway.apps.media.library.publishing import Published, find_published, publish, remove
from headway.apps.media.library.root import Library

INFO = {
    "id": "a1",
    "title": "A walk — 走",
    "extractor_key": "Generic",
    "webpage_url": "https://video.example/a1",
    "timestamp": 1_794_787_200,
}
STEM = PurePosixPath("Walks/A walk [a1]")
ALL = {".mp4", ".info.json", ".jpg", ".nfo"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "library"
    Library(place, min_free_bytes=0).begin()
    return place


def download(
    root: Path, item: str = "1", content: bytes = b"a video", image: str | None = "media.jpg",
    extension: str = "mp4",
) -> Path:  # fmt: skip
    work = Library(root, min_free_bytes=0).work(item)
    (work / f"media.{extension}").write_bytes(content)
    if image is not None:
        (work / image).write_bytes(b"an image")
    return work


def put(
    root: Path, identity: str = "generic:a1", stem: PurePosixPath = STEM, item: str = "1",
    info: dict[str, Any] | None = None, work: Path | None = None, extension: str = "mp4",
    image: str | None = "media.jpg", **more: Any,
) -> Published:  # fmt: skip
    if work is None:
        work = download(root, item, extension=extension, image=image, **more)
    return publish(
        root, stem, work=work, media=work / f"media.{extension}",
        thumbnail=None if image is None else work / image,
        info=info or INFO, identity=identity, nfo_kind="movie",
    )  # fmt: skip


def names(root: Path) -> list[str]:
    """Everything that a person would see."""
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(root).parts)
    )


def set_of(stem: str, *, video: str = ".mp4", image: str = ".jpg") -> list[str]:
    return sorted(stem + suffix for suffix in (video, ".info.json", image, ".nfo"))


# ---------------------------------------------------------------------- four files of one name


def test_a_download_becomes_four_files_of_one_name(root: Path) -> None:
    published = put(root)

    assert names(root) == set_of("Walks/A walk [a1]")
    assert published == Published(
        "Walks/A walk [a1]",
        {
            "info": "Walks/A walk [a1].info.json",
            "nfo": "Walks/A walk [a1].nfo",
            "thumbnail": "Walks/A walk [a1].jpg",
            "video": "Walks/A walk [a1].mp4",
        },
        7,
    )
    assert (root / published.files["video"]).read_bytes() == b"a video"
    assert list(Library(root, min_free_bytes=0).work("1").iterdir()) == []


def test_the_info_is_plain_json_that_says_whose_it_is(root: Path) -> None:
    raw = (root / put(root).files["info"]).read_bytes()

    assert "走".encode() in raw
    assert b"\n  " in raw
    told = json.loads(raw)
    assert told["headway"]["identity"] == "generic:a1"
    assert {key: told[key] for key in INFO} == INFO


def test_an_info_that_json_has_no_words_for_is_written_all_the_same(root: Path) -> None:
    endless: dict[str, Any] = {}
    for _ in range(100):
        endless = {"in": endless}
    strange: dict[str, Any] = {
        **INFO, "a": float("nan"), "b": 10**5000, "c": {1: object()}, "d": "\ud800", "e": endless,
    }  # fmt: skip

    published = put(root, info=strange)

    told = json.loads((root / published.files["info"]).read_text())
    assert (told["a"], told["b"], told["c"], told["d"]) == (None, None, {"1": None}, "?")
    assert find_published(root, STEM, "generic:a1") == published


def test_an_endless_info_is_cut_to_what_is_needed(root: Path) -> None:
    large = {**INFO, "comments": ["x" * 1000] * 10_000, "description": "d" * 10**6}
    path = root / put(root, info=large).files["info"]

    assert path.stat().st_size < 20_000
    assert json.loads(path.read_text())["id"] == "a1"
    assert find_published(root, STEM, "generic:a1")


def test_a_download_without_an_image_is_complete_too(root: Path) -> None:
    published = put(root, image=None)

    assert "thumbnail" not in published.files
    assert find_published(root, STEM, "generic:a1") == published


def test_files_can_be_read_by_others_as_far_as_the_umask_says(root: Path) -> None:
    before = os.umask(0o027)
    try:
        work = download(root)
        (work / "media.mp4").chmod(0o600)
        published = put(root, work=work)
    finally:
        os.umask(before)

    modes = {stat.S_IMODE((root / path).stat().st_mode) for path in published.files.values()}
    assert modes == {0o640}
    assert stat.S_IMODE((root / "Walks").stat().st_mode) == 0o750


@pytest.mark.parametrize("name", ["media.exe", "media.html", "media", "media.part", "media.json"])
def test_what_is_no_media_file_is_refused(root: Path, name: str) -> None:
    work = download(root)
    (work / name).write_bytes(b"MZ")
    with pytest.raises(BadDownload, match="no kind of media file"):
        publish(root, STEM, work=work, media=work / name, thumbnail=None, info=INFO, identity="x")
    assert names(root) == []


def test_a_file_of_untold_kind_gets_a_name_that_players_know(root: Path) -> None:
    published = put(root, extension="unknown_video")
    assert published.files["video"].endswith(".mp4")


def test_a_download_that_left_nothing_says_so(root: Path) -> None:
    work = Library(root, min_free_bytes=0).work("1")
    with pytest.raises(BadDownload, match=r"has left no media\.mp4"):
        put(root, work=work)


# ---------------------------------------------------------------------- names that are taken


def test_another_video_of_that_name_gets_a_number(root: Path) -> None:
    stems = [put(root, identity=f"generic:{n}").stem for n in range(3)]

    assert stems == [str(STEM), f"{STEM} (2)", f"{STEM} (3)"]
    assert len(names(root)) == 12


def test_the_same_video_is_replaced_and_never_doubled(root: Path) -> None:
    put(root, identity="generic:other")
    first = put(root, content=b"first")

    second = put(root, content=b"second one")

    assert first.stem == second.stem == f"{STEM} (2)"
    assert (root / second.files["video"]).read_bytes() == b"second one"
    assert second.size_bytes == 10
    assert len(names(root)) == 8


def test_it_stays_under_its_number_when_a_better_name_becomes_free(root: Path) -> None:
    other = put(root, identity="generic:other")
    first = put(root)
    remove(root, other.files.values())

    assert put(root).stem == first.stem
    assert names(root) == set_of(f"{STEM} (2)")


def test_a_new_container_takes_the_place_of_the_old_one(root: Path) -> None:
    put(root, extension="webm", image="media.webp")
    (root / f"{STEM}.mp3").write_bytes(b"made by the user")

    published = put(root, extension="mp4", image="media.jpg")

    assert names(root) == sorted([*set_of(str(STEM)), f"{STEM}.mp3"])
    assert find_published(root, STEM, "generic:a1") == published


@pytest.mark.parametrize(
    "taken",
    ["A walk [a1].mp4", "A walk [a1].webm", "A walk [a1].nfo", "A walk [a1].info.json",
     "A walk [a1].png", "A WALK [a1].MKV", "a walk [a1].Info.JSON"],
)  # fmt: skip
def test_a_name_of_a_strangers_file_is_left_to_it(root: Path, taken: str) -> None:
    (root / "Walks").mkdir()
    (root / "Walks" / taken).write_bytes(b"not ours")

    assert put(root).stem == f"{STEM} (2)"
    assert (root / "Walks" / taken).read_bytes() == b"not ours"


def test_composed_or_not_is_the_same_name(root: Path) -> None:
    stem = PurePosixPath("Café [a1]")
    (root / unicodedata.normalize("NFD", "CAFÉ [a1].mp4")).write_bytes(b"not ours")

    assert put(root, stem=stem).stem == "Café [a1] (2)"


def test_a_video_whose_title_changed_its_capitals_keeps_its_name(root: Path) -> None:
    put(root, stem=PurePosixPath("a walk"))
    assert put(root, stem=PurePosixPath("A Walk")).stem == "a walk"
    assert names(root) == set_of("a walk")


def test_an_info_json_of_another_program_is_somebody_elses(root: Path) -> None:
    (root / "Walks").mkdir()
    (root / f"{STEM}.info.json").write_text(json.dumps({"id": "a1", "headway": "generic:a1"}))
    assert put(root).stem == f"{STEM} (2)"


def test_a_pipe_or_a_symlink_of_that_name_is_not_opened(root: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.info.json"
    secret.write_text(json.dumps({"headway": {"identity": "generic:a1"}}))
    (root / "Walks").mkdir()
    os.mkfifo(root / f"{STEM}.info.json")
    (root / f"{STEM} (2).info.json").symlink_to(secret)

    assert put(root).stem == f"{STEM} (3)"
    assert json.loads(secret.read_text()) == {"headway": {"identity": "generic:a1"}}


def test_after_a_hundred_of_one_name_there_is_still_one(root: Path) -> None:
    for number in ["", *(f" ({n})" for n in range(2, MAX_NUMBER + 1))]:
        (root / f"x{number}.mp4").touch()

    first = put(root, stem=PurePosixPath("x"))
    second = put(root, stem=PurePosixPath("x"), identity="generic:b2")

    assert first.stem != second.stem
    assert find_published(root, PurePosixPath("x"), "generic:a1") == first


def test_publishers_of_one_name_at_once_all_get_their_own(root: Path) -> None:
    works = [download(root, str(n), content=b"%d" % n) for n in range(8)]
    ready = threading.Barrier(len(works))
    done: dict[int, Published] = {}

    def run(number: int) -> None:
        ready.wait()
        done[number] = put(root, identity=f"generic:{number}", work=works[number])

    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({each.stem for each in done.values()}) == len(works)
    for number, published in done.items():
        assert (root / published.files["video"]).read_bytes() == b"%d" % number
        told = json.loads((root / published.files["info"]).read_text())
        assert told["headway"]["identity"] == f"generic:{number}"
    assert len(names(root)) == 4 * len(works)


def test_where_the_disk_cannot_lock_this_process_still_does(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    entered = threading.Event()

    def second() -> None:
        with moving.open_root(root) as fd, moving.locked(fd):
            entered.set()

    thread = threading.Thread(target=second)
    with moving.open_root(root) as fd, moving.locked(fd):
        thread.start()
        assert not entered.wait(0.1)
    thread.join()
    assert entered.is_set()


@pytest.mark.parametrize("disk", ["plain", "other_disk"])
@pytest.mark.parametrize("suffix", sorted(ALL))
def test_a_file_that_appears_in_the_middle_is_not_overwritten(
    root: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, suffix: str,
    disk: str,
) -> None:  # fmt: skip
    if disk != "plain":
        request.getfixturevalue(disk)
    really = os.link
    final = f"{STEM.name}{suffix}"

    def link(source: str, name: str, **more: Any) -> None:
        if name == final:  # somebody copies a file there, just before we get to it
            (root / "Walks" / name).write_bytes(b"not ours")
        really(source, name, **more)

    monkeypatch.setattr(os, "link", link)
    published = put(root)

    assert published.stem == f"{STEM} (2)"
    assert (root / f"{STEM}{suffix}").read_bytes() == b"not ours"
    assert names(root) == sorted([*set_of(f"{STEM} (2)"), f"{STEM}{suffix}"])


# ---------------------------------------------------------------------- disks of other kinds


@pytest.fixture
def no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)


@pytest.fixture
def other_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work and library on two disks: nothing can be moved from one directory to another."""

    def far(function: Callable[..., None]) -> Callable[..., None]:
        def call(*names: str, src_dir_fd: int, dst_dir_fd: int, **more: Any) -> None:
            if os.fstat(src_dir_fd).st_ino != os.fstat(dst_dir_fd).st_ino:
                raise OSError(errno.EXDEV, "another disk")
            function(*names, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd, **more)

        return call

    monkeypatch.setattr(os, "link", far(os.link))
    monkeypatch.setattr(os, "rename", far(os.rename))


@pytest.mark.usefixtures("no_links")
def test_a_disk_without_links_keeps_the_same_promises(root: Path) -> None:
    (root / "Walks").mkdir()
    (root / f"{STEM}.mp4").write_bytes(b"not ours")
    (root / f"{STEM} (2).info.json").touch()  # a name that was taken, and a power cut then

    assert put(root).stem == f"{STEM} (2)"
    assert put(root, identity="generic:b2").stem == f"{STEM} (3)"
    assert (root / f"{STEM}.mp4").read_bytes() == b"not ours"


@pytest.mark.usefixtures("other_disk")
def test_from_another_disk_it_is_copied(root: Path) -> None:
    put(root, identity="generic:b2")
    put(root)
    published = put(root, content=b"once more")

    assert published.stem == f"{STEM} (2)"
    assert (root / published.files["video"]).read_bytes() == b"once more"
    assert not [name for name in os.listdir(root / "Walks") if name.startswith(".")]
    assert list(Library(root, min_free_bytes=0).work("1").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "error"),
    [(errno.ENOSPC, LibraryFull), (errno.EROFS, LibraryReadOnly), (errno.ESTALE, LibraryGone)],
)
def test_what_the_disk_says_is_told_in_words(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    work = download(root)
    really = os.link

    def link(source: str, name: str, **more: Any) -> None:
        if name.endswith(".mp4"):
            raise OSError(number, "so says the disk")
        really(source, name, **more)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(error, match=str(root)):
            put(root, work=work)
    assert names(root) == []
    assert put(root, work=work).files.keys() == {"video", "info", "nfo", "thumbnail"}


# ---------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    "stem", ["../x", "a/../../x", "/etc/x", ".hidden", ".headway/x", "a/.b/x", "a\0b", "."]
)
def test_no_stem_leads_out_of_the_library(root: Path, stem: str) -> None:
    with pytest.raises(UnsafePath):
        put(root, stem=PurePosixPath(stem))
    with pytest.raises(UnsafePath):
        find_published(root, PurePosixPath(stem), "x")
    with pytest.raises(UnsafePath):
        remove(root, [stem])


def test_a_symlink_to_elsewhere_is_refused(root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "inner").mkdir(parents=True)
    (elsewhere / "inner" / "x.mp4").touch()
    (root / "Walks").symlink_to(elsewhere)

    for stem in ("Walks/x", "Walks/inner/x"):
        with pytest.raises(UnsafePath, match=r"'Walks' in .* is a symlink"):
            put(root, stem=PurePosixPath(stem))
        with pytest.raises(UnsafePath, match="is a symlink"):
            remove(root, [f"{stem}.mp4"])
    assert [path.name for path in elsewhere.rglob("*")] == ["inner", "x.mp4"]


def test_the_root_itself_may_be_a_symlink(root: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(root)
    assert put(tmp_path / "linked").stem == str(STEM)
    assert names(root) == set_of(str(STEM))


def test_a_download_that_is_a_symlink_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    work = download(root)
    (work / "media.mp4").unlink()
    (work / "media.mp4").symlink_to(tmp_path / "secret")
    with pytest.raises(UnsafePath, match="no plain file"):
        put(root, work=work)
    assert names(root) == []


def test_files_outside_of_the_work_directory_are_refused(root: Path, tmp_path: Path) -> None:
    work = download(root)
    (tmp_path / "x.mp4").touch()
    with pytest.raises(UnsafePath, match="not in the work directory"):
        publish(root, STEM, work=work, media=tmp_path / "x.mp4", thumbnail=None, info=INFO,
                identity="x")  # fmt: skip


def test_nothing_is_written_below_an_empty_mount_point(root: Path, tmp_path: Path) -> None:
    work = download(root)
    root.rename(tmp_path / "away")
    root.mkdir()
    kept = tmp_path / "away" / work.relative_to(root)
    with pytest.raises(LibraryGone, match="mount is probably away"):
        put(root, work=kept)
    assert list(root.iterdir()) == []


# ---------------------------------------------------------------------- finding and removing


def test_only_a_complete_set_of_that_identity_is_found(root: Path) -> None:
    assert find_published(root, STEM, "generic:a1") is None
    put(root, identity="generic:other")
    published = put(root)

    assert find_published(root, STEM, "generic:a1") == published
    assert find_published(root, STEM, "generic:none") is None
    (root / published.files["video"]).write_bytes(b"half")
    assert find_published(root, STEM, "generic:a1") is None


def test_removing_takes_empty_directories_along(root: Path) -> None:
    deep = put(root, stem=PurePosixPath("a/b/c/x"))
    near = put(root, stem=PurePosixPath("a/y"), identity="generic:y")

    assert remove(root, deep.files.values()) == 4
    assert names(root) == set_of("a/y")
    assert not (root / "a" / "b").exists()
    assert remove(root, deep.files.values()) == 0
    assert remove(root, near.files.values()) == 4
    assert [path.name for path in root.iterdir() if not path.name.startswith(".")] == []
    assert Library(root, min_free_bytes=0).begin()


# ---------------------------------------------------------------------- crashes

CRASHED = 77
STEPS = ("link", "rename", "unlink", "mkdir", "fsync", "open")


def crashes_at(step: int, after: bool, act: Callable[[], object]) -> bool:
    """Runs it in a process that dies at one of its steps, without a chance to tidy up. False: it
    has fewer steps, and ended well.
    """
    pid = os.fork()
    if pid == 0:
        try:
            _die_at(step, after)
            act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, CRASHED)
    return code == CRASHED


def _die_at(step: int, after: bool) -> None:
    left = iter(range(step, -1, -1))

    def wrapped(really: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            now = next(left) == 0
            if now and not after:
                os._exit(CRASHED)
            try:
                return really(*args, **kwargs)
            finally:
                if now:
                    os._exit(CRASHED)

        return call

    for name in STEPS:
        setattr(os, name, wrapped(getattr(os, name)))


def all_steps(act: Callable[[], object], after: bool) -> Iterator[int]:
    step = 0
    while crashes_at(step, after, act):
        yield step
        step += 1
    assert step > 20, "the steps are not seen"


@pytest.mark.parametrize(("disk", "after"), [
    ("plain", False),
    ("other_disk", True),
    *(pytest.param(*each, marks=pytest.mark.soak) for each in (
        ("plain", True), ("no_links", False), ("no_links", True), ("other_disk", False),
    )),
])  # fmt: skip
def test_after_a_crash_at_any_step_the_next_publish_completes_it(
    tmp_path: Path, after: bool, disk: str, request: pytest.FixtureRequest
) -> None:
    if disk != "plain":
        request.getfixturevalue(disk)
    places: list[tuple[Path, Path]] = []

    def begin() -> None:
        root = tmp_path / f"library-{len(places)}"
        Library(root, min_free_bytes=0).begin()
        (root / "Walks").mkdir()
        (root / f"{STEM}.mkv").write_bytes(b"not ours")
        places.append((root, download(root)))

    def act() -> Published:
        root, work = places[-1]
        return put(root, work=work)

    begin()
    for _ in all_steps(act, after):
        root, work = places[-1]
        seen = names(root)
        video = root / f"{STEM} (2).mp4"
        # Without links a name is taken by an empty file first.
        if f"{STEM} (2).mp4" in seen and (disk != "no_links" or video.stat().st_size):
            assert find_published(root, STEM, "generic:a1"), "a video is there, but no complete set"
        published = put(root, work=work)
        assert published.stem == f"{STEM} (2)"
        assert names(root) == sorted([*set_of(f"{STEM} (2)"), f"{STEM}.mkv"])
        assert (root / published.files["video"]).read_bytes() == b"a video"
        assert (root / f"{STEM}.mkv").read_bytes() == b"not ours"
        assert find_published(root, STEM, "generic:a1") == published
        assert not [name for name in os.listdir(root / "Walks") if name.startswith(".")]
        begin()


@pytest.mark.parametrize("after", [False, True])
def test_after_a_crash_while_replacing_the_next_publish_completes_it(
    tmp_path: Path, after: bool
) -> None:
    places: list[tuple[Path, Path]] = []

    def begin() -> None:
        root = tmp_path / f"library-{len(places)}"
        Library(root, min_free_bytes=0).begin()
        put(root, extension="webm", image="media.png", content=b"old")
        places.append((root, download(root, content=b"the new one")))

    def act() -> Published:
        root, work = places[-1]
        return put(root, work=work)

    begin()
    for _ in all_steps(act, after):
        root, work = places[-1]
        published = put(root, work=work)
        assert names(root) == set_of(str(STEM))
        assert (root / published.files["video"]).read_bytes() == b"the new one"
        begin()


# ---------------------------------------------------------------------- safe against a power cut


def test_all_is_on_disk_before_it_is_said_to_be_there(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    link, sync = os.link, moving.sync

    def seen_link(source: str, name: str, **more: Any) -> None:
        link(source, name, **more)
        done.append(("link", name))

    def seen_sync(fd: int) -> None:
        sync(fd)
        done.append(("sync", Path(os.readlink(f"/proc/self/fd/{fd}")).name))

    monkeypatch.setattr(os, "link", seen_link)
    monkeypatch.setattr(moving, "sync", seen_sync)
    put(root)

    first = done.index(("link", f"{STEM.name}.info.json"))
    for name in ("media.mp4", "media.jpg", "headway.info.json", "headway.nfo"):
        assert done.index(("sync", name)) < first
    video = done.index(("link", f"{STEM.name}.mp4"))
    assert done[video - 1] == ("sync", "Walks")
    assert done[video + 1] == ("sync", "Walks")
    assert ("sync", root.name) in done  # which has a new directory


# ---------------------------------------------------------------------- reading infos of strangers


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"[]", b"{", b'{"id": 1', b"\xff\xfe", b'{"id": "\xff"}', b"[" * 10**5,
     b'{"headway": ' + b"[" * 10**5 + b"]" * 10**5 + b"}", b'{"a":' * 10**5],
)  # fmt: skip
def test_a_broken_info_is_nobodys(raw: bytes) -> None:
    found = info_files.decode(raw)
    assert found is None or found.identity is None


def test_an_info_of_strange_types_is_read_as_far_as_it_makes_sense() -> None:
    found = info_files.decode(
        b'{"id": 5, "title": ["x"], "timestamp": 1e400, "upload_date": "20241301", "headway": 3}'
    )
    assert found is not None
    assert (found.identity, found.metadata.id, found.metadata.title) == (None, "5", None)
    assert found.metadata.published_at is None


def test_an_info_that_is_too_large_is_not_read(root: Path) -> None:
    path = root / "x.info.json"
    path.write_bytes(b'{"id": "x"}'.ljust(info_files.MAX_READ_BYTES))
    assert info_files.read(path) is not None
    path.write_bytes(b'{"id": "x"}'.ljust(info_files.MAX_READ_BYTES + 1))
    assert info_files.read(path) is None
