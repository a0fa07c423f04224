"""The thumbnail, which comes last: a video without one is still a video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from yt_dlp.networking import Request  # type: ignore[import-untyped]

from .failures import Verdict
from .watching import PICTURE, Watch

MAX_BYTES = 10_000_000
TRIES = 3  # of those that a page names, the best first
NAME = "media"
# By what the file begins with; what the site calls it is not asked.
BEGINNINGS = ((b"\xff\xd8\xff", "jpg"), (b"\x89PNG\r\n\x1a\n", "png"), (b"GIF8", "gif"))


def thumbnail(ydl: Any, info: dict[str, Any], directory: Path, watch: Watch) -> str | None:
    """Its file. Whatever goes wrong: none. Whether the site pushed back is in `watch`."""
    there = next(filter(Path.is_file, _possible(directory)), None)
    if there is not None:
        return there.name
    watch.goes_to(PICTURE)
    named = [each for each in info.get("thumbnails") or [] if isinstance(each, dict)]
    for each in named[: -TRIES - 1 : -1]:
        try:
            content = _fetched(ydl, each)
        except Verdict:
            raise
        except Exception:
            content = b""
        ext = extension(content)
        if ext is not None:
            file = directory / f"{NAME}.{ext}"
            file.write_bytes(content)
            return file.name
        if watch.pushback is not None:
            break
    return None


def _possible(directory: Path) -> list[Path]:
    return [directory / f"{NAME}.{ext}" for ext in ("jpg", "png", "gif", "webp", "avif")]


def _fetched(ydl: Any, named: dict[str, Any]) -> bytes:
    response = ydl.urlopen(Request(named["url"], headers=named.get("http_headers") or {}))
    try:
        content: bytes = response.read(MAX_BYTES + 1)
    finally:
        response.close()
    return content if len(content) <= MAX_BYTES else b""


def extension(content: bytes) -> str | None:
    """None: it is no picture that we know."""
    for beginning, ext in BEGINNINGS:
        if content.startswith(beginning):
            return ext
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "webp"
    return "avif" if content[4:12] == b"ftypavif" else None
