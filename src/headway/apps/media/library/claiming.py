"""Whose name it is: a video keeps the one it has, and takes none that another has.

Names count as the same when any file system would say so, so that a library can be shared.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from headway.apps.media.library import info_files
from headway.apps.media.library.kinds import INFO, SUFFIXES
from headway.apps.media.library.legal_names import folded

MAX_NUMBER = 99


class Name(NamedTuple):
    stem: str  # of the last component
    is_ours: bool


class Listing(NamedTuple):
    """What is in a directory. Names that some file system takes for one are one here."""

    fd: int
    names: dict[str, list[str]]  # folded -> as they are

    @classmethod
    def of(cls, fd: int) -> Listing:
        found: dict[str, list[str]] = {}
        for name in os.listdir(fd):
            found.setdefault(folded(name), []).append(name)
        return cls(fd, found)

    def infos(self, stem: str) -> list[str]:
        return self.names.get(folded(stem + INFO), [])

    def is_free(self, stem: str, extension: str) -> bool:
        return not self._taken(stem, extension)

    def is_abandoned(self, stem: str, extension: str) -> bool:
        """Where there are no links, a name is taken by an empty file first; a power cut may leave
        it so.
        """
        name = stem + INFO
        return self._taken(stem, extension) == {folded(name)} and size_of(name, self.fd) == 0

    def _taken(self, stem: str, extension: str) -> set[str]:
        beginning = folded(stem)
        return {beginning + each for each in (*SUFFIXES, extension)} & self.names.keys()


def _candidates(stem: str, identity: str) -> Iterator[str]:
    yield stem
    for number in range(2, MAX_NUMBER + 1):
        yield f"{stem} ({number})"
    # A hundred videos of one name: from here on nobody counts.
    yield f"{stem} {digest_of(identity)[:12]}"


def owned(listing: Listing, stem: str, identity: str) -> str | None:
    """The name under which this identity is in the directory already, as it is spelt there."""
    for candidate in _candidates(stem, identity):
        for name in listing.infos(candidate):
            found = info_files.read(name, dir_fd=listing.fd)
            if found is not None and found.identity == identity:
                return name[: -len(INFO)]
    return None


def names(listing: Listing, stem: str, extension: str, identity: str) -> Iterator[Name]:
    """Where the set may go, the best place first."""
    ours = owned(listing, stem, identity)
    if ours is not None:
        yield Name(ours, is_ours=True)
        return
    for candidate in _candidates(stem, identity):
        if listing.is_free(candidate, extension):
            yield Name(candidate, is_ours=False)
        elif listing.is_abandoned(candidate, extension):
            yield Name(candidate, is_ours=True)


def size_of(name: str, fd: int) -> int | None:
    """None: there is no such plain file."""
    try:
        about = os.lstat(name, dir_fd=fd)
    except FileNotFoundError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None


def checked(identity: str) -> str:
    """As it can be written and read again."""
    if not 0 < len(identity) <= info_files.MAX_IDENTITY:
        raise ValueError(f"An identity has 1 to {info_files.MAX_IDENTITY} characters.")
    return identity.encode("utf-8", "replace").decode()


def digest_of(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()
