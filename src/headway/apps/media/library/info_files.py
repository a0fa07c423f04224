"""The info JSON beside a video: all that is known of it, and whose it is.

Other programs write such files too (yt-dlp does), so whatever is read may be large, broken or made
up. One key is ours: `headway`, with the identity of the video and what belongs to it.
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from headway.apps.media.library.metadata import Metadata

MAX_WRITTEN_BYTES = 4 * 1024**2
MAX_READ_BYTES = 16 * 1024**2  # yt-dlp's own files have all formats in them, and perhaps comments
MAX_DEPTH = 16
MAX_IDENTITY = 2_000  # characters
_LARGEST = 10**18
_NEEDED = ("id", "title", "extractor", "extractor_key", "webpage_url", "uploader", "description",
           "timestamp", "upload_date", "duration", "height", "thumbnail")  # fmt: skip
_READ = frozenset(_NEEDED) - {"description", "thumbnail"} | {
    "fulltitle", "channel", "original_url", "release_timestamp", "release_date",
}  # fmt: skip
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True, slots=True)
class InfoFile:
    """What was read. Without an identity it was written by another program."""

    identity: str | None
    extension: str | None  # of the video that belongs to it
    image: str | None  # the extension of the image
    size_bytes: int | None
    metadata: Metadata


def encode(
    info: Mapping[str, Any], *, identity: str, extension: str, image: str | None, size_bytes: int
) -> bytes:
    ours = {"identity": identity, "extension": extension, "image": image, "size_bytes": size_bytes}
    kept = _plain(dict(info), MAX_DEPTH)
    raw = _dumped({**kept, "headway": ours})
    if len(raw) > MAX_WRITTEN_BYTES:
        known = {key: kept[key] for key in _NEEDED if key in kept}
        short = {key: each[:10_000] if isinstance(each, str) else each
                 for key, each in known.items() if not isinstance(each, dict | list)}  # fmt: skip
        raw = _dumped({**short, "headway": ours})
    return raw


def decode(raw: bytes) -> InfoFile | None:
    """None: it is no JSON object."""
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        info = {key: _value(parts[key]) for key in _READ & parts.keys()}
        ours = _value(parts["headway"]) if "headway" in parts else None
    except _BROKEN:
        return None
    ours = ours if isinstance(ours, dict) else {}
    identity, size = ours.get("identity"), ours.get("size_bytes")
    return InfoFile(
        identity if isinstance(identity, str) and 0 < len(identity) <= MAX_IDENTITY else None,
        _text(ours.get("extension")),
        _text(ours.get("image")),
        size if isinstance(size, int) and not isinstance(size, bool) else None,
        Metadata.of(info),
    )


def read(name: str | os.PathLike[str], *, dir_fd: int | None = None) -> InfoFile | None:
    """None: it is not there, no plain file, too large, or no JSON object. Other faults of the disk
    are raised: a file that cannot be read may well be ours.
    """
    try:
        # A pipe of that name must not make us wait for whoever writes to it.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                     dir_fd=dir_fd)  # fmt: skip
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        if _is_plain(name, dir_fd):
            raise
        return None
    with open(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_READ_BYTES:
            return None
        return decode(file.read(MAX_READ_BYTES))


def _is_plain(name: str | os.PathLike[str], dir_fd: int | None) -> bool:
    try:
        return stat.S_ISREG(os.lstat(name, dir_fd=dir_fd).st_mode)
    except FileNotFoundError:
        return False


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _value(raw: msgspec.Raw) -> Any:
    """One strange value, such as a number beyond all bounds, does not spoil the others."""
    try:
        return msgspec.json.decode(raw)
    except _BROKEN:
        return None


def _dumped(info: dict[str, Any]) -> bytes:
    text = json.dumps(info, ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"


def _plain(value: Any, depth: int) -> Any:
    """What JSON has a word for, and every reader understands."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -_LARGEST < value < _LARGEST else None
        case float():
            return value if math.isfinite(value) else None
        case Mapping() if depth:
            return {str(key): _plain(each, depth - 1) for key, each in value.items()}
        case list() | tuple() if depth:
            return [_plain(each, depth - 1) for each in value]
        case _:
            return None
