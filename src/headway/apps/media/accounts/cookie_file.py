"""Cookies in a file, for as long as a program needs them there. Nobody else can read it, and it is
gone afterwards, whatever happens; what a killed process has left, the next start removes.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from headway.apps.media.accounts.cookies import Cookie, netscape_file
from headway.errors import BadSettings

PREFIX, SUFFIX = "cookies-", ".txt"


class CookieFile:
    """`with CookieFile(directory, cookies) as path:`, for one program."""

    def __init__(self, directory: str | os.PathLike[str], cookies: Iterable[Cookie]) -> None:
        self._directory = Path(directory)
        self._cookies = tuple(cookies)
        self.path = self._directory / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"

    def __enter__(self) -> Path:
        private_directory(self._directory)
        # Never in the place of another, nor where a link leads to.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        handle = os.open(self.path, flags, 0o600)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(netscape_file(self._cookies))
        except BaseException:
            self._remove()
            raise
        return self.path

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _remove(self) -> None:
        with suppress(FileNotFoundError):
            self.path.unlink()


def private_directory(directory: Path) -> None:
    """Made if it is not there, and closed to others."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = directory.lstat()
    if not stat.S_ISDIR(about.st_mode):
        raise BadSettings(f"{directory} is a link, where cookies would be; name a directory itself")
    if os.name == "posix" and stat.S_IMODE(about.st_mode) & 0o077:
        directory.chmod(0o700)


def sweep(directory: str | os.PathLike[str]) -> int:
    """Remove what a killed process has left; how many there were. For a start only: then no
    program has a file of ours.
    """
    removed = 0
    for path in Path(directory).glob(f"{PREFIX}*{SUFFIX}"):
        with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            path.unlink()
            removed += 1
    return removed
