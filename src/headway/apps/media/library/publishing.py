"""A finished download becomes four files of one name: video, information, image and NFO.

The info JSON goes first. It says whose the name is, so after it everything of that name belongs to
that video: a publish that was cut off is taken up where it ended, under the same name. The video
goes last: whoever sees it sees a complete set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from headway.apps.media.library import info_files, moving
from headway.apps.media.library.claiming import (
    Listing,
    Name,
    checked,
    digest_of,
    names,
    owned,
    size_of,
)
from headway.apps.media.library.errors import BadDownload, LibraryGone, UnsafePath
from headway.apps.media.library.kinds import IMAGES, INFO, NFO, VIDEOS, suffix_of, video_suffix
from headway.apps.media.library.nfo import Kind, nfo

_WRITTEN_INFO, _WRITTEN_NFO = "headway.info.json", "headway.nfo"  # in the work directory


@dataclass(frozen=True, slots=True)
class Published:
    """What is in the library now; paths are relative to its root."""

    stem: str
    files: Mapping[str, str]  # video, info, nfo and, if there is one, thumbnail
    size_bytes: int  # of the video


def publish(
    root: Path,
    stem: PurePosixPath,
    *,
    work: Path,
    media: Path,
    thumbnail: Path | None,
    info: Mapping[str, Any],
    identity: str,
    nfo_kind: Kind = "movie",
    show: str | None = None,
    index_in_day: int | None = None,
) -> Published:
    """Moves a download into the library. Asked again for the same identity it completes or
    replaces what is there; what belongs to another is never touched.
    """
    extension = _extension(media)
    identity = checked(identity)
    _check_stem(stem)
    _check_inside(media, work)
    if not (work / media).exists():
        # It may have been moved by an attempt that could not say so any more.
        earlier = find_published(root, stem, identity)
        if earlier is None:
            raise BadDownload(f"The download has left no {media.name}; it must be made again.")
        return earlier
    with moving.open_root(root) as root_fd, _work(work) as work_fd:
        image = _image(thumbnail, work, work_fd)
        written = nfo(info, kind=nfo_kind, show=show, index_in_day=index_in_day,
                      with_thumb=image is None)  # fmt: skip
        mode = moving.write_new(_WRITTEN_NFO, written, work_fd)
        size = moving.settle(media.name, mode, work_fd)
        text = info_files.encode(info, identity=identity, extension=extension, size_bytes=size,
                                 image=None if image is None else suffix_of(image))  # fmt: skip
        moving.write_new(_WRITTEN_INFO, text, work_fd)
        sources = {INFO: _WRITTEN_INFO, NFO: _WRITTEN_NFO}
        if image is not None:
            moving.settle(image, mode, work_fd)
            sources[suffix_of(image)] = image
        sources[extension] = media.name  # the last: a dict keeps its order
        with (
            moving.locked(root_fd),
            moving.open_below(root_fd, stem.parent, make=True) as fd,
        ):
            name = _place_all(fd, stem.name, sources, work_fd, identity)
            published = _complete(fd, stem.parent, name)
    if published is None:
        raise LibraryGone(f"{str(stem)!r} was changed by somebody else while it was published.")
    return published


def find_published(root: Path, stem: PurePosixPath, identity: str) -> Published | None:
    """A complete set of that identity, under this name or a numbered one."""
    _check_stem(stem)
    with moving.open_root(root) as root_fd:
        try:
            with moving.open_below(root_fd, stem.parent) as fd:
                ours = owned(Listing.of(fd), stem.name, checked(identity))
                return None if ours is None else _complete(fd, stem.parent, ours)
        except (FileNotFoundError, NotADirectoryError):
            return None


def remove(root: Path, files: Iterable[str]) -> int:
    """Deletes the files of an item, and directories that are empty then. Returns how many files
    there were.
    """
    paths = [PurePosixPath(each) for each in files]
    for path in paths:
        _check_stem(path)
    count = 0
    with moving.open_root(root) as root_fd, moving.locked(root_fd):
        # Without its video a set is incomplete, so that it is not taken for one if we end here.
        for path in sorted(paths, key=lambda each: suffix_of(each.name) not in VIDEOS):
            with (
                suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError),
                moving.open_below(root_fd, path.parent) as fd,
            ):
                os.unlink(path.name, dir_fd=fd)
                moving.sync(fd)
                count += 1
        for directory in {path.parent for path in paths}:
            _remove_empty(root_fd, directory)
    return count


# ---------------------------------------------------------------------- the moves


def _place_all(fd: int, stem: str, sources: Mapping[str, str], work_fd: int, identity: str) -> str:
    *_, extension = sources
    for name in names(Listing.of(fd), stem, extension, identity):
        try:
            _place(fd, name, sources, work_fd, identity)
        except FileExistsError:  # somebody else has put a file there at this moment
            continue
        moving.sync(fd)
        return name.stem
    raise UnsafePath(f"Every name for {stem!r} is taken; put {{id}} into the name template.")


def _place(fd: int, name: Name, sources: Mapping[str, str], work_fd: int, identity: str) -> None:
    spare = f".headway-{digest_of(identity)[:16]}.tmp"
    *_, extension = sources
    moved: list[tuple[str, str]] = []
    if name.is_ours:
        _remove_earlier(fd, name.stem, sources)
    try:
        for suffix, source in sources.items():
            if suffix == extension:
                moving.sync(fd)  # the video must not survive a power cut alone
            final = name.stem + suffix
            moving.place(source, work_fd, final, fd, spare=spare, replace=name.is_ours)
            moved.append((final, source))
    except OSError:
        if not name.is_ours:
            _take_back(moved, fd, work_fd)
        raise
    finally:
        moving.remove(spare, fd)


def _take_back(moved: list[tuple[str, str]], fd: int, work_fd: int) -> None:
    """As far as the disk lets us: what stays behind is taken up by the next attempt."""
    with suppress(OSError):
        for final, source in reversed(moved):  # the claim to the name is the last to go
            moving.place(final, fd, source, work_fd, spare=f"{source}.back", replace=True)


def _remove_earlier(fd: int, stem: str, sources: Mapping[str, str]) -> None:
    """What an earlier set of this identity had under other extensions, as it says itself. The new
    video is safe in the work directory until it takes this one's place.
    """
    earlier = info_files.read(stem + INFO, dir_fd=fd)
    if earlier is None:
        return
    if earlier.extension in VIDEOS - sources.keys():
        moving.remove(stem + earlier.extension, fd)
    if earlier.image in IMAGES - sources.keys() and IMAGES & sources.keys():
        moving.remove(stem + earlier.image, fd)


def _complete(fd: int, directory: PurePosixPath, stem: str) -> Published | None:
    info = info_files.read(stem + INFO, dir_fd=fd)
    if info is None or info.extension is None:
        return None
    if info.extension not in VIDEOS or size_of(stem + info.extension, fd) != info.size_bytes:
        return None
    there = [each for each in (INFO, NFO, *sorted(IMAGES), info.extension)
             if size_of(stem + each, fd) is not None]  # fmt: skip
    return _published(directory, stem, there, info.size_bytes or 0)


def _published(
    directory: PurePosixPath, stem: str, suffixes: Iterable[str], size_bytes: int
) -> Published:
    files: dict[str, str] = {}
    for suffix in suffixes:
        path = str(directory / (stem + suffix))
        if suffix in IMAGES:
            files.setdefault("thumbnail", path)
        else:
            files[{INFO: "info", NFO: "nfo"}.get(suffix, "video")] = path
    return Published(str(directory / stem), files, size_bytes)


def _remove_empty(root_fd: int, directory: PurePosixPath) -> None:
    while directory.parts:
        try:
            with moving.open_below(root_fd, directory.parent) as fd:
                os.rmdir(directory.name, dir_fd=fd)
        except OSError:  # it is not empty, or gone
            return
        directory = directory.parent


# ---------------------------------------------------------------------- what was downloaded


@contextmanager
def _work(work: Path) -> Iterator[int]:
    try:
        fd = os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise BadDownload("The work directory is gone; the download must be made again.") from error
    try:
        yield fd
    finally:
        os.close(fd)


def _image(thumbnail: Path | None, work: Path, work_fd: int) -> str | None:
    """An image is nice to have: one that is missing or of a strange kind is no failure."""
    if thumbnail is None or suffix_of(thumbnail.name) not in IMAGES:
        return None
    _check_inside(thumbnail, work)
    return None if size_of(thumbnail.name, work_fd) is None else thumbnail.name


def _check_inside(file: Path, work: Path) -> None:
    if (work / file).parent != work:
        raise UnsafePath(f"{file.name!r} is not in the work directory.")


def _check_stem(stem: PurePosixPath) -> None:
    moving.check_relative(stem)
    if not stem.name or any(part.startswith(".") for part in stem.parts):
        raise UnsafePath(f"{str(stem)!r} is no name for a file of the library.")


def _extension(media: Path) -> str:
    suffix = video_suffix(media.name)
    if suffix is None:
        raise BadDownload(f"{media.name!r} is no kind of media file that is kept.")
    return suffix
