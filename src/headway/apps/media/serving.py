"""Files of the library, handed out. Only what is inside of it, whatever somebody has put there: no
path leads through a symlink, and what was looked at is what is read.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PurePosixPath

from starlette.datastructures import MutableHeaders
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from headway.api.problems import Problem, answer
from headway.apps.media.library import moving
from headway.apps.media.library.errors import LibraryError, UnsafePath
from headway.apps.media.library.kinds import IMAGES, INFO, NFO, suffix_of

# What browsers and players know. All others are handed out as what they are for: bytes.
TYPES = {
    ".3gp": "video/3gpp", ".aac": "audio/aac", ".avi": "video/x-msvideo", ".flac": "audio/flac",
    ".flv": "video/x-flv", ".m2ts": "video/mp2t", ".m4a": "audio/mp4", ".m4v": "video/x-m4v",
    ".mka": "audio/x-matroska", ".mkv": "video/x-matroska", ".mov": "video/quicktime",
    ".mp3": "audio/mpeg", ".mp4": "video/mp4", ".mpeg": "video/mpeg", ".mpg": "video/mpeg",
    ".mts": "video/mp2t", ".oga": "audio/ogg", ".ogg": "audio/ogg", ".ogv": "video/ogg",
    ".opus": "audio/ogg", ".ts": "video/mp2t", ".wav": "audio/wav", ".weba": "audio/webm",
    ".webm": "video/webm", ".wma": "audio/x-ms-wma", ".wmv": "video/x-ms-wmv",
    ".avif": "image/avif", ".gif": "image/gif", ".jpeg": "image/jpeg", ".jpg": "image/jpeg",
    ".png": "image/png", ".webp": "image/webp", ".json": "application/json",
    NFO: "application/xml",
}  # fmt: skip
BYTES = "application/octet-stream"
# One stretch of a file. Of anything else nobody need take notice.
_RANGE = re.compile(r"bytes=(?:(\d{1,18})-(\d{0,18})|-(\d{1,18}))")


class NotThere(Exception):
    """The library has no such file."""


def content_type(path: str) -> str:
    return TYPES.get(suffix_of(path), BYTES)


class LibraryFile(FileResponse):
    """A file that is open already, and closed when it was sent."""

    def __init__(self, fd: int, path: str) -> None:
        name = PurePosixPath(path).name
        is_shown = suffix_of(path) not in (NFO, suffix_of(INFO))
        super().__init__(
            f"/dev/fd/{fd}", stat_result=os.fstat(fd), media_type=content_type(path),
            filename=name, content_disposition_type="inline" if is_shown else "attachment",
            headers={"Cache-Control": "private, no-cache"},
        )  # fmt: skip
        self._fd = fd
        self._size = os.fstat(fd).st_size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = MutableHeaders(scope=scope)
            wanted = _first_byte(headers.get("range", ""), self._size)
            if wanted is None:
                del headers["range"]
            elif wanted >= self._size and "if-range" not in headers:
                await _no_such_part(self._size)(scope, receive, send)
                return
            await super().__call__(scope, receive, send)
        finally:
            os.close(self._fd)


def _first_byte(asked: str, size: int) -> int | None:
    """Of what Range asks for. None: for nothing that makes sense, so for all of it."""
    found = _RANGE.fullmatch(asked.strip())
    if found is None:
        return None
    first, last, tail = found.groups()
    if tail is not None:
        return max(size - int(tail), 0)
    return None if last and int(first) > int(last) else int(first)


def _no_such_part(size: int) -> Response:
    return answer(
        Problem(416, f"it has {size} bytes; ask for a part of those", kind="no-such-part",
                headers={"Content-Range": f"bytes */{size}"})
    )  # fmt: skip


def open_file(root: Path, path: str) -> LibraryFile:
    """`path` is relative to the library, as an item has it. NotThere: there is no plain file.
    Raises LibraryError when the library is away. Blocking.
    """
    place = PurePosixPath(path)
    if not place.name or any(part.startswith(".") for part in place.parts):
        raise NotThere
    try:
        with moving.open_root(root) as root_fd, moving.open_below(root_fd, place.parent) as fd:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(place.name, flags, dir_fd=fd)
    except UnsafePath:
        raise NotThere from None
    except LibraryError:
        raise
    except (OSError, ValueError):
        raise NotThere from None
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise NotThere
        return LibraryFile(file, path)
    except BaseException:
        os.close(file)
        raise


assert set(TYPES) >= IMAGES  # a page shows them
