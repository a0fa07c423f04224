"""What is on disk: compared with what should be there, and read for an import.

A survey only looks. It does not judge at all when the library is away, neither before nor after
the walk, and it says when what it has seen is too bad to be true: then nothing may be erased.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from headway.apps.media.library import info_files, moving
from headway.apps.media.library.errors import LibraryGone
from headway.apps.media.library.kinds import INFO
from headway.apps.media.library.metadata import day_in
from headway.apps.media.library.root import marker_of, work_directories
from headway.apps.media.library.walking import Video, is_below, videos

MAX_ORPHANS = 1000  # that are named; all are counted
PROGRESS_EVERY = 1000  # files
_ID_AT_END = re.compile(r"\s*\[([\w.=~:-]{3,100})\](?: \(\d{1,2}\))?$", re.ASCII)
_QUALITY = re.compile(r"\d{3,4}[pi]\d*")
_DATE_AT_START = re.compile(r"(\d{4}-\d{2}-\d{2}|\d{8})[ _.-]+(?=\S)")


class Record(NamedTuple):
    """What the store says of one video."""

    item: int
    identity: str
    path: str  # of the video, relative to the root
    size_bytes: int | None = None  # None: not known


class Resized(NamedTuple):
    record: Record
    size_bytes: int  # on disk


@dataclass(slots=True)
class Survey:
    """Records whose directory could not be read are in `unreadable`: of them nothing is known."""

    there: list[int] = field(default_factory=list)  # items
    missing: list[Record] = field(default_factory=list)
    resized: list[Resized] = field(default_factory=list)
    unreadable: list[Record] = field(default_factory=list)
    unreadable_directories: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)  # the first of them
    orphan_count: int = 0
    orphan_bytes: int = 0
    files: int = 0
    work: list[str] = field(default_factory=list)  # items with unfinished files

    @property
    def expected(self) -> int:
        seen = len(self.there) + len(self.resized)
        return seen + len(self.missing) + len(self.unreadable)

    def is_suspicious(self, max_share: float = 0.2, at_least: int = 10) -> bool:
        """So much is missing that a fault is likelier than a deletion: erase nothing."""
        absent = len(self.missing) + len(self.unreadable)
        return absent >= at_least and absent > max_share * self.expected


def survey(
    root: Path,
    records: Iterable[Record],
    progress: Callable[[int], None] | None = None,
    *,
    identity: str | None = None,
    within: Callable[[str], bool] | None = None,
) -> Survey:
    """Looks at all of the library. `progress` hears how many files were seen so far. `within`:
    whether a path that nobody knows is worth telling. Raises LibraryGone when the library is away,
    is another one than `identity`, or has changed meanwhile.
    """
    before = _look(root, identity)
    result = Survey()
    try:
        sizes = _sizes(root, result, progress)
        known = _compare(root, records, sizes, result)
        result.work = work_directories(root)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise LibraryGone(f"{root} went away while it was looked at.") from error
    if _look(root, identity) != before:
        raise LibraryGone(f"{root} became another library while it was looked at.")
    for path, video in sizes.items():
        if path not in known and (within is None or within(video.path)):
            _add_orphan(result, video)
    return result


class Found(NamedTuple):
    """A video that is there, and what can be told of it."""

    path: str
    size_bytes: int
    identity: str | None = None  # only if it was published by us
    title: str | None = None
    id: str | None = None
    extractor: str | None = None
    published_at: int | None = None
    url: str | None = None


def found_files(root: Path, known: Container[str] = ()) -> Iterator[Found]:
    """Videos for an import. An info JSON beside it tells most; else its name is read. Those that
    are `known`, by their plain paths, are left out.
    """
    try:
        with moving.plain_errors(root):
            for video in videos(root):
                if plain_path(video.path) not in known:
                    yield _found(root, video)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise LibraryGone(f"{root} is not there; its mount is probably away.") from error


# ---------------------------------------------------------------------- comparing


def _look(root: Path, identity: str | None) -> tuple[str, int]:
    marker = marker_of(root)
    if identity is not None and marker != identity:
        raise LibraryGone(f"{root} holds another library than before. Mount the right one there.")
    return marker, os.stat(root).st_dev


def _sizes(root: Path, result: Survey, progress: Callable[[int], None] | None) -> dict[str, Video]:
    sizes: dict[str, Video] = {}
    with moving.plain_errors(root):
        for video in videos(root, result.unreadable_directories.append):
            sizes[plain_path(video.path)] = video
            result.files += 1
            if progress is not None and result.files % PROGRESS_EVERY == 0:
                progress(result.files)
    if progress is not None:
        progress(result.files)
    return sizes


def _compare(
    root: Path, records: Iterable[Record], sizes: dict[str, Video], result: Survey
) -> set[str]:
    """Returns the paths that somebody knows."""
    known: set[str] = set()
    closed = set(result.unreadable_directories)
    for record in records:
        key = plain_path(record.path)
        known.add(key)
        video = sizes.get(key)
        try:
            size = _size(root, record.path) if video is None else video.size_bytes
        except OSError:
            result.unreadable.append(record)
            continue
        if size is None and closed and is_below(record.path, closed):
            result.unreadable.append(record)
        elif size is None:
            result.missing.append(record)
        elif record.size_bytes is not None and size != record.size_bytes:
            result.resized.append(Resized(record, size))
        else:
            result.there.append(record.item)
    return known


def _size(root: Path, path: str) -> int | None:
    """What the walk has not seen may have come since, or is a symlink that somebody has set."""
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\0" in path:
        return None
    try:
        return os.stat(root / path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def plain_path(path: str) -> str:
    """Some file systems give back names in another form than they got them."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def _add_orphan(result: Survey, video: Video) -> None:
    result.orphan_count += 1
    result.orphan_bytes += video.size_bytes
    if len(result.orphans) < MAX_ORPHANS:
        result.orphans.append(video.path)


# ---------------------------------------------------------------------- finding


def _found(root: Path, video: Video) -> Found:
    stem = video.path.rpartition(".")[0]
    try:
        info = info_files.read(root / (stem + INFO))
    except OSError:  # it cannot be read; the name still can
        info = None
    title, key, published_at = _told_by(stem.rpartition("/")[2])
    if info is None:
        return Found(video.path, video.size_bytes, None, title, key, None, published_at)
    told = info.metadata
    return Found(
        video.path, video.size_bytes, info.identity, told.title or title, told.id or key,
        told.extractor, told.published_at if told.published_at is not None else published_at,
        told.url,
    )  # fmt: skip


def _told_by(name: str) -> tuple[str, str | None, int | None]:
    """Title, id and day, as in `2026-11-16 A title [id]`."""
    title, key = name, None
    match = _ID_AT_END.search(name)
    if match is not None and not _QUALITY.fullmatch(match[1]):
        title, key = name[: match.start()], match[1]
    date = _DATE_AT_START.match(title)
    published_at = None if date is None else day_in(date[1])
    if date is not None and published_at is not None:
        title = title[date.end() :]
    return _written(title) or _written(name), key, published_at


def _written(name: str) -> str:
    """A name may have bytes that are no text."""
    return name.encode("utf-8", "replace").decode().strip()
