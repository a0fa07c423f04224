"""What can go wrong with the library. Each message says what to do about it."""

from __future__ import annotations

from headway.errors import HeadwayError


class LibraryError(HeadwayError):
    """The library cannot do this."""


class LibraryGone(LibraryError):
    """The library is not where it was: its mount is probably away. Nothing there can be judged."""


class LibraryFull(LibraryError):
    """There is less free space than must stay free. Free some, or lower the limit."""


class LibraryReadOnly(LibraryError):
    """The library cannot be written. Mount it writable, or give this process the right to."""


class UnsafePath(LibraryError, ValueError):
    """A path would lead out of the library, or is no name for a file in it."""


class BadDownload(LibraryError):
    """What the download has left is no media file."""
