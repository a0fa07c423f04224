"""Puts yt-dlp together for an order, and does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from yt_dlp.cookies import CookieLoadError  # type: ignore[import-untyped]

from .choosing import Choosing, Wanted
from .counting import count, total_of
from .downloading import download
from .failures import Failure, Verdict, classify
from .listing import list_entries, look
from .parameters import parameters
from .progressing import Progress, Room
from .protocol import FailureKind, Order, Task
from .watching import Watch, Watched

Tell = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Outcome:
    result: dict[str, Any] | None = None
    failure: Failure | None = None
    cookies: list[str] = field(default_factory=list)  # those that the site has set, too


def work(order: Order, programs: tuple[str, ...], tell: Tell, tell_entry: Tell) -> Outcome:
    watch, outcome = Watch(), Outcome()
    ydl: Watched | None = None
    try:
        ffmpeg = next((path for path in programs if Path(path).stem == "ffmpeg"), None)
        settings = parameters(order, ffmpeg)
        if order.task is Task.DOWNLOAD:
            outcome.result, ydl = _download(order, settings, ffmpeg, watch, tell)
        else:
            ydl = Watched(settings, watch)
            outcome.result = _read(ydl, order, tell_entry)
            if watch.pushback is not None:  # caught on the way: what came is not all there is
                raise Verdict(FailureKind.PUSHBACK, "the site has pushed back")
    except CookieLoadError:
        outcome.failure = Failure(
            kind=FailureKind.BROKEN, message="the file of cookies cannot be read"
        )
    except Exception as error:
        outcome.failure = classify(error, watch)
    outcome.cookies = _cookies(ydl)
    return outcome


def _read(ydl: Watched, order: Order, tell_entry: Tell) -> dict[str, Any]:
    if order.task is Task.COUNT:
        return count(ydl, order)
    if order.task is Task.LOOK:
        return look(ydl, order, total_of)
    return list_entries(ydl, order, tell_entry)


def _download(
    order: Order, settings: dict[str, Any], ffmpeg: str | None, watch: Watch, tell: Tell
) -> tuple[dict[str, Any], Watched]:
    wanted = Wanted(order)
    choosing = Choosing(order, can_merge=ffmpeg is not None)
    progress = Progress(Room(order), tell)
    ydl = Watched(
        settings | {"match_filter": wanted, "format": choosing, "progress_hooks": [progress]},
        watch,
    )
    choosing.ydl = ydl
    return download(ydl, order, watch, wanted, choosing, progress), ydl


def _cookies(ydl: Watched | None) -> list[str]:
    if ydl is None:
        return []
    try:
        return [str(cookie.value) for cookie in ydl.cookiejar if cookie.value]
    except Exception:  # they could not be read; that is an outcome already
        return []
