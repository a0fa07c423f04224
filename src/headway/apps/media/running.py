"""Runs the fetcher for a job, and reads what it says.

The program is started without anything of our own environment: no proxy, no home, no configuration.
What went wrong on the site is an answer; only what stops the job (cancelled, paused, out of time)
comes as an exception, after the program is gone.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any, Protocol

from headway.apps.media.fetcher.protocol import MAX_LINE, FailureKind, Line, Order
from headway.core.classify import parse_retry_after
from headway.engine.hands.processes import Completed
from headway.net.redaction import redact

BOOT = str(Path(__file__).with_name("fetcher") / "boot.py")
MEMORY_MB = 1_000.0
MAX_MESSAGE = 500
KB = 1_000
UNITS = ("B", "kB", "MB", "GB", "TB")
MOST = 1e15  # bytes or seconds; more is a mistake of the site

OnEntry = Callable[[dict[str, Any]], None]
OnProgress = Callable[[float, float | None, str], None]


class Runs(Protocol):
    """The part of a job that is needed here."""

    async def arun(self, command: list[str], **options: Any) -> Completed: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    kind: FailureKind
    message: str = ""
    status: int | None = None
    retry_after_s: float | None = None
    at: str | None = None  # "page" or "media"
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One of the two."""

    result: dict[str, Any] | None = None
    failure: Failure | None = None


class Malformed(ValueError):
    """The program said something that cannot be read. The runner says so with a ValueError too."""


async def fetch(
    job: Runs,
    order: Order,
    *,
    timeout_s: float,
    python: str = sys.executable,
    on_entry: OnEntry | None = None,
    on_progress: OnProgress | None = None,
    memory_mb: float = MEMORY_MB,
) -> Answer:
    """Raises what stops a job: Stopped, ProgramTimeout, ProgramTooLarge; and whatever `on_entry` or
    `on_progress` raise. In each case the program is gone.
    """
    reading = _Reading(on_entry, on_progress)
    try:
        completed = await job.arun(
            [python, "-I", "-B", BOOT],
            stdin=order.to_json(), on_line=reading.line, timeout=timeout_s, check=False,
            env=_environment(order), memory_mb=memory_mb,
        )  # fmt: skip
    except ValueError as error:
        if reading.is_handing_on:  # not the program, but whoever heard it
            raise
        return _broken(f"the program that calls yt-dlp said something else: {error}")
    if reading.answer is None or completed.code != 0:
        last = (completed.stderr.strip().splitlines() or ["and said nothing"])[-1]
        return _broken(
            f"the program that calls yt-dlp ended with code {completed.code}: {redact(last)}"
        )
    return reading.answer


def _environment(order: Order) -> dict[str, str]:
    place = order.directory or tempfile.gettempdir()
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "HOME": place,
        "TMPDIR": place,
        "YTDLP_NO_PLUGINS": "1",
    }


def _broken(message: str) -> Answer:
    return Answer(failure=Failure(kind=FailureKind.BROKEN, message=message[:MAX_MESSAGE]))


class _Reading:
    """Takes the lines as they come."""

    def __init__(self, on_entry: OnEntry | None, on_progress: OnProgress | None) -> None:
        self._on_entry = on_entry
        self._on_progress = on_progress
        self.is_handing_on = False  # and stays so if somebody cannot take it
        self.answer: Answer | None = None

    def line(self, text: str) -> None:
        if not text.strip():
            return
        if len(text) > 2 * MAX_LINE:
            raise Malformed("a line without an end")
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            raise Malformed("a line that is no JSON") from None
        if not isinstance(said, dict) or self.answer is not None:
            raise Malformed("a line that is not expected")
        match said.pop("kind", None):
            case Line.ENTRY:
                self._hand_on(self._on_entry, said)
            case Line.PROGRESS:
                said = {name: _number(value) for name, value in said.items()}
                done, total = said.get("done_bytes"), said.get("total_bytes")
                if done is None:
                    raise Malformed("progress without a number")
                self._hand_on(self._on_progress, done, total, progress_note(said))
            case Line.END:
                self.answer = _answer(said)
            case kind:
                raise Malformed(f"a line of the kind {str(kind)[:20]!r}")

    def _hand_on(self, to: Callable[..., None] | None, *said: Any) -> None:
        if to is not None:
            self.is_handing_on = True
            to(*said)
            self.is_handing_on = False


def _number(value: Any) -> float | None:
    """None: it is none that can be counted with."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < MOST:
        return None
    return value


def _answer(said: dict[str, Any]) -> Answer:
    result, failure = said.get("result"), said.get("failure")
    if said.get("ok") is True and isinstance(result, dict):
        return Answer(result=result)
    if not isinstance(failure, dict):
        raise Malformed("an end without a result")
    try:
        kind = FailureKind(str(failure.get("kind")))
    except ValueError:
        raise Malformed("a failure of an unknown kind") from None
    status, at, host = failure.get("status"), failure.get("at"), failure.get("host")
    return Answer(
        failure=Failure(
            kind=kind,
            message=str(failure.get("message") or "")[:MAX_MESSAGE],
            status=status if isinstance(status, int) else None,
            retry_after_s=parse_retry_after(str(failure.get("retry_after") or ""), time()),
            at=at if at in ("page", "media") else None,
            host=host if isinstance(host, str) else None,
        )
    )


# ---------------------------------------------------------------------- progress in words


def progress_note(said: dict[str, Any]) -> str:
    """Such as "12.3 MB of 80.0 MB, 1.2 MB/s, 56 s left"."""
    done, total = said["done_bytes"], said.get("total_bytes")
    words = [in_bytes(done) if total is None else f"{in_bytes(done)} of {in_bytes(total)}"]
    if said.get("speed"):
        words.append(f"{in_bytes(said['speed'])}/s")
    if said.get("eta_s") is not None and done != total:
        words.append(f"{in_time(said['eta_s'])} left")
    if (said.get("parts") or 1) > 1:
        words.append(f"part {said.get('part')} of {said['parts']}")
    return ", ".join(words)


def in_bytes(size: float) -> str:
    for unit in UNITS:
        if size < KB or unit == UNITS[-1]:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= KB
    raise AssertionError("the last unit takes everything")


def in_time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
