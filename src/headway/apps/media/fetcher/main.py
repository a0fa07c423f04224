"""The program: reads one order, does it, and says how it ended.

Its code is 0 also when the order could not be done, since that is an answer. Another code means
that the program itself broke.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .guard import Guard, found_programs
from .hiding import Hiding
from .protocol import MAX_LINE, FailureKind, Line, Order

ADDRESSES = ("url",)  # of entries; they must work when they are asked for


class Speaker:
    """The program's answers. Nothing else can write to its output, and no cookie gets into it."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="ascii")
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        # yt-dlp writes lines of a bad cookie file to stderr, for one.
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        self.hiding = Hiding()

    def say(self, line: dict[str, Any]) -> None:
        text = json.dumps(self.hiding.everywhere(line), allow_nan=False)
        if len(text) > MAX_LINE and isinstance(line.get("result"), dict):
            text = json.dumps(self.hiding.everywhere(_shorter(line)), allow_nan=False)
        self._out.write(text + "\n")
        self._out.flush()

    def entry(self, entry: dict[str, Any]) -> None:
        working = {name: self.hiding.address(entry[name]) for name in ADDRESSES}
        told = self.hiding.everywhere({"kind": Line.ENTRY, **entry}) | working
        self._out.write(json.dumps(told, allow_nan=False) + "\n")
        self._out.flush()

    def result(self, result: dict[str, Any]) -> None:
        self.say({"kind": Line.END, "ok": True, "result": result})

    def failure(self, failure: dict[str, Any]) -> None:
        self.say({"kind": Line.END, "ok": False, "failure": failure})

    def broken(self, message: str) -> None:
        self.failure({"kind": FailureKind.BROKEN, "message": message[:500]})


def _shorter(line: dict[str, Any]) -> dict[str, Any]:
    """What a page says about a video can be endless; the file is there all the same."""
    info = line["result"].get("info") or {}
    kept = {name: value for name, value in info.items() if isinstance(value, (str, int, float))}
    texts = {n: v[:2_000] if isinstance(v, str) else v for n, v in list(kept.items())[:100]}
    return {**line, "result": {**line["result"], "info": texts}}


def main() -> int:
    speaker = Speaker()
    try:
        order = Order.from_json(sys.stdin.buffer.read())
    except (ValueError, TypeError) as error:
        speaker.broken(f"the order cannot be read: {error}")
        return 0
    secrets = _in_file(order.cookie_file)
    speaker.hiding = Hiding(secrets)
    programs = found_programs()
    Guard(order.allowed, directory=order.directory, programs=programs).install()
    try:
        _without_plugins()
        from .working import work  # noqa: PLC0415 - it needs yt-dlp, and the guard before that
    except ImportError as error:
        speaker.broken(f"{sys.executable} has no yt-dlp that can be used here: {error}")
        return 0
    outcome = work(order, programs, speaker.say, speaker.entry)
    speaker.hiding = Hiding([*secrets, *outcome.cookies])
    if outcome.failure is None:
        speaker.result(outcome.result or {})
    else:
        speaker.failure(dataclasses.asdict(outcome.failure))
    return 0


def _without_plugins() -> None:
    """It was also said in the environment; this holds for whatever reads it elsewhere."""
    from yt_dlp.globals import plugin_dirs  # type: ignore[import-untyped]  # noqa: PLC0415

    plugin_dirs.value = []


def _in_file(cookie_file: str | None) -> Iterable[str]:
    """The values in a file of cookies, also where yt-dlp could not read it."""
    if cookie_file is None:
        return []
    try:
        lines = Path(cookie_file).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line.rpartition("\t")[2].strip() for line in lines if "\t" in line]
