"""What people type about subscriptions, as the API takes it."""

from __future__ import annotations

import sys
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.client import CommandFailed
from headway.cli.times import seconds_of, stamp

QUALITIES = ("best", "2160p", "1440p", "1080p", "720p", "480p", "360p", "audio")
KINDS = ("movie", "episode")
NEVER = ("never", "0")
MOST_BYTES = 2_000_000  # of a file with cookies; the server takes less
LONGEST_NAME = 200  # characters of a file's name that an error repeats


def complete_quality(incomplete: str) -> list[str]:
    return [each for each in QUALITIES if each.startswith(incomplete)]


def complete_kind(incomplete: str) -> list[str]:
    return [each for each in KINDS if each.startswith(incomplete)]


SubscriptionName = Annotated[
    str,
    typer.Argument(metavar="ID", help="The number of a subscription, or how its title begins."),
]
Title = Annotated[str | None, typer.Option(help="Instead of what the site calls it.")]
Quality = Annotated[
    str | None,
    typer.Option(metavar="|".join(QUALITIES), autocompletion=complete_quality,
                 help="The best that is not above this."),
]  # fmt: skip
Every = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Between two looks: 6h, 1d, … or never.")
]
Depth = Annotated[
    int | None, typer.Option(min=0, help="How many of the newest are wanted; 0: all.")
]
Template = Annotated[
    str | None, typer.Option(help='How files are called: "{uploader}/{date} {title} [{id}]".')
]
Nfo = Annotated[
    str | None,
    typer.Option(metavar="|".join(KINDS), autocompletion=complete_kind,
                 help="What media servers take each video for."),
]  # fmt: skip
TitleHas = Annotated[
    list[str] | None, typer.Option(metavar="WORD", help="Only with one of them in the title.")
]
TitleNot = Annotated[
    list[str] | None, typer.Option(metavar="WORD", help="Not with one of them in the title.")
]
After = Annotated[
    str | None, typer.Option(metavar="DATE", help="Published then or later: 2026-01-01.")
]
Before = Annotated[str | None, typer.Option(metavar="DATE", help="Published earlier than that.")]
MinLength = Annotated[str | None, typer.Option(metavar="DURATION", help="Not shorter: 1m, 90s.")]
MaxLength = Annotated[str | None, typer.Option(metavar="DURATION", help="Not longer: 2h.")]
MinViews = Annotated[str | None, typer.Option(metavar="N", help="Seen at least so often.")]
MaxViews = Annotated[str | None, typer.Option(metavar="N", help="Seen at most so often.")]
Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Look on until it is done; it goes on without you.")
]


# ---------------------------------------------------------------------- values


def interval_s(every: str) -> float:
    """`6h`; `never` is 0, as the API says it."""
    return 0.0 if every.strip().lower() in NEVER else seconds_of(every)


def time_of(text: str) -> str:
    """A date is that day in UTC, as sites date videos; a time is local unless it names a zone."""
    try:
        return date.fromisoformat(text.strip()).isoformat()
    except ValueError:
        pass
    try:
        return stamp(datetime.fromisoformat(text.strip()).timestamp())
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(
            f"{text!r} is no date; write 2026-01-31, or 2026-01-31T12:00"
        ) from None


def views_of(text: str) -> int:
    plain = text.strip().replace(",", "").replace("_", "")
    if not (plain.isdecimal() and plain.isascii()):
        raise typer.BadParameter(f"{text!r} is no number of views; write 1000")
    return int(plain)


def filters_of(**said: Any) -> dict[str, Any]:
    """Those that were named. An empty one excludes nothing any more, so it is None."""
    read = {"after": time_of, "before": time_of, "min_duration_s": seconds_of,
            "max_duration_s": seconds_of, "min_views": views_of,
            "max_views": views_of}  # fmt: skip
    found: dict[str, Any] = {}
    for name, value in said.items():
        if value is None or value == []:
            continue
        if isinstance(value, list):
            found[name] = [each for each in value if each.strip()]
        else:
            found[name] = read[name](value) if value.strip() else None
    return found


def settings_of(**said: Any) -> dict[str, Any]:
    """What was named of everything else. An empty title is that of the site."""
    found = {name: value for name, value in said.items() if value is not None}
    if found.get("title") == "":
        found["title"] = None
    if "interval_s" in found:
        found["interval_s"] = interval_s(found["interval_s"])
    for name, known in (("quality", QUALITIES), ("nfo", KINDS)):
        if name in found and found[name] not in known:
            raise typer.BadParameter(f"{found[name]!r} is no {name}; known are {', '.join(known)}")
    return found


# ---------------------------------------------------------------------- secrets


def cookies_from(file: str) -> str:
    """What a file or stdin has. Others can see what stands on a command line, so cookies that stand
    there are refused, and not said again.
    """
    path = Path(file)
    if file != "-" and ("=" in file or len(file) > LONGEST_NAME) and not _is_file(path):
        raise typer.BadParameter(
            "this looks like the cookies themselves, which others can see on a command line; name "
            "a file, or - for stdin"
        )
    try:
        if file == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with path.open("rb") as opened:
                content = opened.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandFailed(f"{_where(file)} is no text; export the cookies once more") from None
    if len(content) > MOST_BYTES:
        raise CommandFailed(f"{_where(file)} is too large for cookies; export those of one site")
    if not text.strip():
        raise CommandFailed(f"no cookies came from {_where(file)}")
    return text


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def _where(file: str) -> str:
    return "stdin" if file == "-" else file
