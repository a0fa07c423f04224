"""The kinds of files that are kept. Others are refused: a site may offer a program as its video."""

from __future__ import annotations

from pathlib import PurePosixPath

# Sound alone counts too.
VIDEOS = frozenset(
    {
        ".3gp", ".aac", ".avi", ".f4v", ".flac", ".flv", ".m2ts", ".m4a", ".m4v", ".mka", ".mkv",
        ".mov", ".mp3", ".mp4", ".mpeg", ".mpg", ".mts", ".oga", ".ogg", ".ogv", ".opus", ".ts",
        ".vob", ".wav", ".weba", ".webm", ".wma", ".wmv",
    }
)  # fmt: skip
IMAGES = frozenset({".avif", ".gif", ".jpeg", ".jpg", ".png", ".webp"})
INFO = ".info.json"
NFO = ".nfo"
SUFFIXES = (*VIDEOS, *IMAGES, NFO, INFO)

# What yt-dlp calls a file whose kind it cannot tell. Players look at the content anyway.
_UNTOLD = {".unknown_video": ".mp4", ".unknown_audio": ".m4a"}


def suffix_of(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def video_suffix(name: str) -> str | None:
    """The extension that a downloaded file gets; None: it is no media file."""
    suffix = suffix_of(name)
    suffix = _UNTOLD.get(suffix, suffix)
    return suffix if suffix in VIDEOS else None
