"""How much of one feed is kept."""

from __future__ import annotations

from collections.abc import Iterable

from headway.apps.feeds.parsing.model import ParsedEntry

MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 2_000
MAX_ENCLOSURES = 50
MAX_CATEGORIES = 50
MAX_TEXT = 16_000_000  # characters of all summaries and contents


def bounded(entries: Iterable[ParsedEntry]) -> tuple[tuple[ParsedEntry, ...], str | None]:
    """The entries from the first on, as long as their texts are not too long together."""
    kept: list[ParsedEntry] = []
    room = MAX_TEXT
    for entry in entries:
        room -= len(entry.summary or "") + len(entry.content or "")
        if room < 0:
            return tuple(
                kept
            ), f"its texts are too long; only the first {len(kept)} entries are read"
        kept.append(entry)
    return tuple(kept), None
