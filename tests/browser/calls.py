"""The page's own table of what it calls: `calls.js`, one operation a line."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

PAGE = Path(str(files("headway.web"))) / "page"
TABLE = PAGE / "calls.js"
ENTRY = re.compile(r"""^\s*(\w+):\s*["']([A-Z]+ /[^"']*)["'],?\s*(?://.*)?$""")


@cache
def table_of_calls() -> dict[str, str]:
    """What each call is named, and its operation."""
    return calls_in(TABLE.read_text(encoding="utf-8"))


def calls_in(text: str) -> dict[str, str]:
    body = text.partition("CALLS = {")[2].partition("\n}")[0]
    assert body, "there is no `export const CALLS = {` with a line for each call"
    lines = [
        line for line in body.splitlines() if line.strip() and not line.lstrip().startswith("//")
    ]
    entries = [ENTRY.match(line) for line in lines]
    odd = [line for line, entry in zip(lines, entries, strict=True) if entry is None]
    assert not odd, f'not `name: "METHOD /path",`: {odd}'
    return {entry.group(1): entry.group(2) for entry in entries if entry is not None}
