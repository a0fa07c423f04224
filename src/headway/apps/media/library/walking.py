"""Going through a library file by file: no symlinks, nothing hidden, nothing unfinished.

It is a generator over open directories, so a hundred thousand files cost no memory. What cannot be
read is reported, not skipped in silence: it must not be taken for empty.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from headway.apps.media.library.kinds import VIDEOS, suffix_of

MAX_DEPTH = 32
# What yt-dlp leaves while it works: one stream of two, or a file it is just rewriting.
_UNFINISHED = re.compile(r"\.(?:temp|f\d{2,4}(?:-\w+)?)$")

Unreadable = Callable[[str], None]


class Video(NamedTuple):
    path: str  # relative to the root, with slashes
    size_bytes: int


def videos(root: Path, unreadable: Unreadable | None = None) -> Iterator[Video]:
    """Every finished media file below the root. Directories that cannot be read are told."""
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        inner: list[str] = []
        try:
            with os.scandir(root / directory) as entries:
                yield from _videos_in(directory, entries, inner)
        except OSError:
            if not directory:
                raise
            if unreadable is not None:
                unreadable(directory)
        if directory.count("/") + bool(directory) < MAX_DEPTH:
            waiting.extend(sorted(inner, reverse=True))


def _videos_in(
    directory: str, entries: Iterator[os.DirEntry[str]], inner: list[str]
) -> Iterator[Video]:
    for entry in entries:
        if entry.name.startswith("."):
            continue
        path = f"{directory}/{entry.name}" if directory else entry.name
        if entry.is_dir(follow_symlinks=False):
            inner.append(path)
        elif is_video(entry.name) and entry.is_file(follow_symlinks=False):
            try:
                size = entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:  # it was just deleted
                continue
            yield Video(path, size)


def is_video(name: str) -> bool:
    suffix = suffix_of(name)
    return suffix in VIDEOS and not _UNFINISHED.search(name[: -len(suffix)])


def is_below(path: str, directories: set[str]) -> bool:
    return any(str(parent) in directories for parent in PurePosixPath(path).parents)
