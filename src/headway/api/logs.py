"""Structured logs on stderr: one line for each record, and no secret in any of them.

Lines are JSON objects for programs, or text for people at a terminal. Both go through redaction as
a whole, and no value can end its line and forge another. A record that cannot be written is never
the reason why something else fails.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from headway.errors import BadSettings
from headway.net.redaction import MASK, redact, redact_query, redact_value

FORMATS = ("auto", "json", "text")
LEVELS = ("debug", "info", "warning", "error", "critical")
UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
CLIENTS = ("httpx2", "httpcore2")

MAX_TEXT = 16_000  # characters of one message, value or traceback
MAX_ITEMS = 100  # of one list or object
MAX_DEPTH = 6

_OWN_NAMES = frozenset({"error", "level", "logger", "msg", "stack", "ts"})
# What moves a terminal's cursor, ends a line somewhere, turns text around, or is half a character.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_PLAIN_VALUE = re.compile(r"[^\s\"'=\\\[\]{}]+")

_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

logger = logging.getLogger("headway")


# ---------------------------------------------------------------------- setting up


def set_up(format: str = "auto", level: str | int = "info", stream: TextIO | None = None) -> None:
    """Let everything that is logged in this process come out here, uvicorn's records included.
    Run uvicorn with `log_config=None`, or it sets up its own.
    """
    stream = sys.stderr if stream is None else stream
    if format not in FORMATS:
        raise BadSettings(f"log format {format!r} is none of {', '.join(FORMATS)}")
    as_text = format == "text" or (format == "auto" and _is_terminal(stream))
    handler = Lines(stream, TextLine() if as_text else JsonLine())
    root = logging.getLogger()
    root.setLevel(_level(level))
    for other in list(root.handlers):
        # Whatever else writes to the same place would write it without redaction.
        if isinstance(other, Lines) or getattr(other, "stream", None) in (stream, sys.stderr):
            root.removeHandler(other)
    root.addHandler(handler)
    for name in UVICORN:
        its = logging.getLogger(name)
        its.handlers.clear()
        its.setLevel(logging.NOTSET)
        its.propagate = True
    for name in CLIENTS:  # they log the whole address of every call, and there may be secrets in it
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    threading.excepthook = _thread_died


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def _level(level: str | int) -> int:
    if isinstance(level, int):
        return level
    if level.lower() not in LEVELS:
        raise BadSettings(f"log level {level!r} is none of {', '.join(LEVELS)}")
    return logging.getLevelNamesMapping()[level.upper()]


def _thread_died(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = "?" if args.thread is None else args.thread.name
        logger.critical("the thread %s has died", name, exc_info=args.exc_value)


# ---------------------------------------------------------------------- access


class Clean(dict[str, Any]):
    """Fields, and with them a message, that are plain and have no secrets: for what is logged so
    often that looking for them twice would be felt.
    """


def access(
    logger: logging.Logger, method: str, path: str, status: int, ms: float, who: str, client: str
) -> None:
    """One request that was answered. `path` may have a query; its secrets are left out."""
    level = logging.INFO if status < 500 else logging.WARNING
    if not logger.isEnabledFor(level):
        return
    method, path, who, client = redact(method), shown_path(path), redact(who), redact(client)
    fields = Clean(method=method, path=path, status=status, ms=round(ms, 3), who=who, client=client)
    said = ("method", "path", "status")
    logger.log(level, "%s %s %s", method, path, status, extra={"fields": fields, "said": said})


_private: list[str] = []


def keep_private(beginning: str) -> None:
    """In paths that begin so, what follows up to the next slash is a secret."""
    _private.append(beginning)


def shown_path(path: str) -> str:
    """A path with its query, without what is secret in them."""
    bare, mark, query = path.partition("?")
    for beginning in _private:
        if bare.startswith(beginning):
            secret, slash, rest = bare.removeprefix(beginning).partition("/")
            bare = f"{beginning}{MASK if secret else ''}{slash}{rest}"
    return f"{redact(bare)}{mark}{redact_query(query)}"


# ---------------------------------------------------------------------- writing


class Lines(logging.Handler):
    """Writes each record as one line. Fails in silence: there is no other place to complain."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter) -> None:
        super().__init__()
        self.stream = stream
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(Exception):
            line = self.format(record) + "\n"
            try:
                self.stream.write(line)
            except UnicodeEncodeError:
                self.stream.write(line.encode("ascii", "backslashreplace").decode())
            self.stream.flush()


class JsonLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        try:
            line = _json(_entry(record))
        except Exception as error:
            line = _json(_bare_entry(record, error))
        if line.isprintable():
            return line
        # JSON escapes what is below a space. What is left of these stands in strings only.
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


class TextLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        try:
            entry = _entry(record)
            for name in getattr(record, "said", ()):  # its message says it already
                entry.pop(name, None)
        except Exception as error:
            entry = _bare_entry(record, error)
        at, level, logger = entry.pop("ts"), entry.pop("level"), entry.pop("logger")
        parts = [at.replace("T", " ").rstrip("Z"), f"{level.upper():8}", f"{logger}:"]
        parts.append(_on_one_line(entry.pop("msg")))
        below = [entry.pop(name) for name in ("error", "stack") if name in entry]
        parts += (f"{_on_one_line(name)}={_short(value)}" for name, value in entry.items())
        # A traceback is only readable as it is; its lines cannot be taken for the log's.
        lines = [f"    | {_on_one_line(line)}" for text in below for line in text.split("\n")]
        return "\n".join((" ".join(parts), *lines))


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else _UNPRINTABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def _short(value: Any) -> str:
    if isinstance(value, str) and _PLAIN_VALUE.fullmatch(value):
        return _on_one_line(value)
    return _on_one_line(_json(value))


# ---------------------------------------------------------------------- what a record says


def _entry(record: logging.LogRecord) -> dict[str, Any]:
    """A record as plain data that is safe to show."""
    fields = getattr(record, "fields", None)
    clean = isinstance(fields, Clean)
    entry: dict[str, Any] = {
        "ts": _time(record.created),
        "level": record.levelname.lower(),
        "logger": record.name,
        "msg": _shortened(record.getMessage()) if clean else _shown(_message(record)),
    }
    if isinstance(fields, Clean):
        entry |= {name: _cut(value) for name, value in fields.items()}
    elif fields is not None:
        if not isinstance(fields, Mapping):
            fields = {"fields": fields}
        for name, value in _cut(redact_value(_plain(fields))).items():
            entry[f"{name}_" if name in _OWN_NAMES else name] = value
    if record.exc_info and record.exc_info[1] is not None:
        entry["error"] = _shown("".join(traceback.format_exception(record.exc_info[1])))
    elif record.exc_text:  # from another process, or another handler
        entry["error"] = _shown(record.exc_text)
    if record.stack_info:
        entry["stack"] = _shown(record.stack_info)
    return entry


def _bare_entry(record: logging.LogRecord, error: Exception) -> dict[str, Any]:
    """What can be said of a record that cannot be formatted."""
    return {
        "ts": _time(record.created),
        "level": record.levelname.lower(),
        "logger": record.name,
        "msg": _shown(_described(record.msg)),
        "error": _shown(f"this record cannot be formatted: {_described(error)}"),
    }


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def _message(record: logging.LogRecord) -> str:
    args = record.args
    if record.name == "uvicorn.access" and isinstance(args, tuple) and len(args) == 5:
        path = shown_path(_described(args[2]))
        return str(record.msg) % (*args[:2], path, *args[3:])
    return record.getMessage()


def _shown(text: str) -> str:
    return _shortened(redact(text.rstrip("\n")))


def _shortened(text: str) -> str:
    # After redaction, so that no half of a secret is left.
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    return f"{text[:half]} … {len(text) - MAX_TEXT} characters … {text[-half:]}"


def _cut(value: Any) -> Any:
    match value:
        case str():
            return _shortened(value)
        case dict():
            return {_shortened(name): _cut(each) for name, each in value.items()}
        case list():
            return [_cut(each) for each in value]
    return value


def _plain(value: Any, depth: int = 0) -> Any:
    """Whatever it is, as JSON can say it."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if value.bit_length() < 1_000 else hex(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes() | bytearray():
            return bytes(value).decode("utf-8", "replace")
    if depth >= MAX_DEPTH:
        return _described(value)
    if isinstance(value, Mapping):
        pairs = list(value.items())[:MAX_ITEMS]
        return {_described(name): _plain(each, depth + 1) for name, each in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each, depth + 1) for each in list(value)[:MAX_ITEMS]]
    return _described(value)


def _described(value: Any) -> str:
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"
