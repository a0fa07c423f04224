"""The library itself: it is made once, known by its marker, and never taken for empty when it is
only away.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.media.library.errors import (
    LibraryFull,
    LibraryGone,
    LibraryReadOnly,
    UnsafePath,
)
from headway.apps.media.library.legal_names import legal_name
from headway.apps.media.library.root import MARKER, Library


def library(root: Path, identity: str | None = None, min_free_bytes: int = 0) -> Library:
    return Library(root, min_free_bytes=min_free_bytes, identity=identity)


# ---------------------------------------------------------------------- beginning


def test_a_library_is_made_with_a_marker(tmp_path: Path) -> None:
    root = tmp_path / "a" / "library"
    identity = library(root).begin()

    assert json.loads((root / MARKER).read_text())["library"] == identity
    assert stat.S_IMODE(root.stat().st_mode) & 0o700 == 0o700
    assert os.listdir(root) == [MARKER]
    library(root, identity).check()


def test_two_libraries_are_never_the_same(tmp_path: Path) -> None:
    assert library(tmp_path / "a").begin() != library(tmp_path / "b").begin()


def test_an_existing_collection_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").write_bytes(b"x")
    identity = library(tmp_path).begin()

    assert library(tmp_path, identity).begin() == identity
    assert (tmp_path / "film.mp4").read_bytes() == b"x"


def test_a_library_whose_store_was_lost_keeps_its_id(tmp_path: Path) -> None:
    assert library(tmp_path).begin() == library(tmp_path).begin()


def test_processes_that_begin_at_once_agree(tmp_path: Path) -> None:
    ready = threading.Barrier(8)
    told: list[str] = []

    def run() -> None:
        ready.wait()
        told.append(library(tmp_path / "x").begin())

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 8
    assert len(set(told)) == 1
    assert os.listdir(tmp_path / "x") == [MARKER]


def test_a_known_library_that_is_away_is_not_made_anew(tmp_path: Path) -> None:
    with pytest.raises(LibraryGone, match="mount is probably away"):
        library(tmp_path / "x", "known").begin()
    assert not (tmp_path / "x").exists()


# ---------------------------------------------------------------------- being there


def test_an_empty_mount_point_is_no_library(tmp_path: Path) -> None:
    known = library(tmp_path / "x")
    known.begin()
    (tmp_path / "x").rename(tmp_path / "away")
    for make in (lambda: None, (tmp_path / "x").mkdir):
        make()
        with pytest.raises(LibraryGone, match="mount is probably away"):
            known.check()
        with pytest.raises(LibraryGone):
            known.work(1)
        with pytest.raises(LibraryGone):
            known.leftovers()
    assert list((tmp_path / "x").iterdir()) == []


def test_another_disk_in_its_place_is_noticed(tmp_path: Path) -> None:
    known = library(tmp_path / "x")
    known.begin()
    library(tmp_path / "y").begin()
    shutil.rmtree(tmp_path / "x")
    (tmp_path / "y").rename(tmp_path / "x")
    with pytest.raises(LibraryGone, match="another library"):
        known.check()


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"library": 3}', b'{"library": ""}', b"\xff"]
)
def test_a_broken_marker_is_no_marker(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARKER).write_bytes(content)
    for identity in (None, "known"):
        with pytest.raises(LibraryGone, match=r"Restore it"):
            library(tmp_path, identity).begin()
    assert (tmp_path / MARKER).read_bytes() == content


def test_a_file_is_no_library(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    for identity in (None, "known"):
        with pytest.raises(LibraryGone):
            library(tmp_path / "x", identity).begin()


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_too_little_space_is_told_with_both_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = library(tmp_path, min_free_bytes=5000)
    known.begin()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10_000, 5000, 5000))
    known.check()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10_000, 5001, 4999))
    with pytest.raises(LibraryFull, match="4999 bytes free, and 5000 must stay free"):
        known.check()


def test_free_space_is_what_the_disk_says(tmp_path: Path) -> None:
    known = library(tmp_path, min_free_bytes=2**62)
    known.begin()
    assert 0 < known.free_bytes() < 2**62
    with pytest.raises(LibraryFull):
        known.check()


def test_a_library_that_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = library(tmp_path)
    known.begin()

    def refuse(path: Any, mode: int, **_: Any) -> bool:
        return Path(path) != tmp_path or not mode & os.W_OK

    monkeypatch.setattr(os, "access", refuse)
    with pytest.raises(LibraryReadOnly, match="Mount it writable"):
        known.check()


# ---------------------------------------------------------------------- unfinished work


def test_work_is_private_and_kept_until_it_is_dropped(tmp_path: Path) -> None:
    known = library(tmp_path)
    known.begin()
    place = known.work(17)
    (place / "media.mp4.part").write_bytes(b"half")

    assert place == tmp_path / ".headway" / "work" / "17"
    for directory in (place, place.parent, place.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert os.listdir(known.work(17)) == ["media.mp4.part"]
    known.work("18")
    assert known.leftovers() == ["17", "18"]
    known.drop_work(17)
    known.drop_work(17)
    assert known.leftovers() == ["18"]


@pytest.mark.parametrize("item", ["", "..", ".", "a/b", "../x", "-x", "x\n", "\0", "x" * 101])
def test_an_item_is_no_path(tmp_path: Path, item: str) -> None:
    known = library(tmp_path)
    known.begin()
    with pytest.raises(UnsafePath):
        known.work(item)
    with pytest.raises(UnsafePath):
        known.drop_work(item)


def test_dropping_work_follows_no_symlink(tmp_path: Path) -> None:
    known = library(tmp_path / "x")
    known.begin()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    known.work(1)
    (tmp_path / "x" / ".headway" / "work" / "2").symlink_to(tmp_path / "precious")

    with pytest.raises(UnsafePath, match="symlink"):
        known.work(2)
    known.drop_work(2)
    assert known.leftovers() == ["1"]
    assert (tmp_path / "precious" / "file").exists()


# ---------------------------------------------------------------------- tenants


def test_tenants_have_directories_of_their_own() -> None:
    assert Library.of("") == PurePosixPath()
    assert Library.of("alice") == PurePosixPath("tenants/alice")
    assert str(Library.of("Alice")).startswith("tenants/alice~")


tenants = st.text(min_size=1, max_size=60) | st.sampled_from(
    [
        "alice",
        "Alice",
        "ALICE",
        "a/b",
        "a\\b",
        "a-b",
        "..",
        ".",
        "con",
        "é",
        "e\u0301",
        "alice ",
        "~",
    ]
)


@given(tenants, tenants)
def test_two_tenants_never_share_a_directory(one: str, other: str) -> None:
    first, second = Library.of(one), Library.of(other)

    assert len(first.parts) == 2
    assert legal_name(first.name) == first.name
    assert (str(first).casefold() == str(second).casefold()) == (one == other)


@given(tenants)
def test_no_tenant_can_take_the_name_of_anothers_directory(tenant: str) -> None:
    place = Library.of(tenant).name
    assert Library.of(place).name == place if place == tenant else Library.of(place).name != place
