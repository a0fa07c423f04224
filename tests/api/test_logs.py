"""What is logged can be read by programs and people, forges nothing and gives nothing away."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.api import logs
from headway.errors import BadSettings
from headway.net.redaction import SECRETS

CANARY = "Canary7f3kQz91"

logger = logging.getLogger("headway.test")


class Out(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def lines(self) -> list[str]:
        return self.getvalue().splitlines()

    def entries(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().split("\n")[:-1]]

    def entry(self) -> dict[str, Any]:
        (only,) = self.entries()
        return only


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, threading.excepthook
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    threading.excepthook = hook
    logging.captureWarnings(False)


def listen(format: str) -> Out:
    """Only our own handler, since others raise when they cannot format a record."""
    stream = Out()
    logging.getLogger().handlers.clear()
    logs.set_up(format, "info", stream)
    return stream


@pytest.fixture
def out() -> Out:
    stream = Out()
    logs.set_up("json", "info", stream)
    return stream


@pytest.fixture
def terminal() -> Out:
    stream = Out(terminal=True)
    logs.set_up("auto", "info", stream)
    return stream


# --- JSON


def test_a_record_is_one_json_object(out: Out) -> None:
    logger.warning("job %d waits", 17, extra={"fields": {"lane": "quick", "waits_s": 1.5}})

    entry = out.entry()

    assert entry.pop("ts").endswith("Z")
    assert entry == {
        "level": "warning", "logger": "headway.test", "msg": "job 17 waits", "lane": "quick",
        "waits_s": 1.5,
    }  # fmt: skip


def test_times_are_utc_with_milliseconds() -> None:
    record = logging.LogRecord("a", logging.INFO, "", 0, "b", (), None)
    record.created = 1_763_294_400.0625

    assert json.loads(logs.JsonLine().format(record))["ts"] == "2025-11-16T12:00:00.062Z"
    assert logs.TextLine().format(record) == "2025-11-16 12:00:00.062 INFO     a: b"


def test_an_exception_is_told_with_its_traceback(out: Out) -> None:
    try:
        raise ConnectionError("no route")
    except ConnectionError:
        logger.exception("cannot connect")

    error = out.entry()["error"]

    assert error.startswith("Traceback")
    assert "test_logs.py" in error
    assert error.endswith("ConnectionError: no route")


def test_fields_do_not_take_the_place_of_what_a_record_always_says(out: Out) -> None:
    logger.info("true", extra={"fields": {"msg": "forged", "level": "debug", "ts": 0}})

    entry = out.entry()

    assert (entry["msg"], entry["level"], entry["msg_"]) == ("true", "info", "forged")


def test_every_value_finds_its_way_into_json(out: Out) -> None:
    class Silent:
        def __str__(self) -> str:
            raise RuntimeError("no")

    endless: list[Any] = []
    endless.append(endless)
    fields = {
        "nan": float("nan"), "huge": 10**5_000, "bytes": b"\xff", "set": {1}, 5: "five",
        "silent": Silent(), "endless": endless, "half": "\ud800", "many": range(3),
        "list": list(range(1_000)),
    }  # fmt: skip

    logger.info("%s", "fine", extra={"fields": fields})

    entry = out.entry()
    assert (entry["nan"], entry["set"], entry["5"]) == ("nan", [1], "five")
    assert entry["huge"].startswith("0x")
    assert entry["silent"] == "<Silent>"
    assert len(entry["list"]) == logs.MAX_ITEMS


def test_what_is_very_long_is_cut(out: Out) -> None:
    logger.info("x" * 1_000_000, extra={"fields": {"note": "y" * 1_000_000}})

    assert len(out.getvalue()) < 3 * logs.MAX_TEXT
    assert "characters" in out.entry()["msg"]


# --- text


def test_at_a_terminal_a_record_is_a_readable_line(terminal: Out) -> None:
    fields = {"lane": "quick", "why": "two words", "n": 5, "none": None}
    logger.info("job %d waits", 17, extra={"fields": fields})

    (line,) = terminal.lines()

    assert line[24:] == (
        'INFO     headway.test: job 17 waits lane=quick why="two words" n=5 none=null'
    )


def test_at_a_terminal_a_traceback_stands_below_its_line(terminal: Out) -> None:
    try:
        raise ConnectionError("no route\n2026-11-16 12:00:00.000 INFO     headway: all is well")
    except ConnectionError:
        logger.exception("cannot connect")

    first, *below = terminal.lines()

    assert first.endswith("headway.test: cannot connect")
    assert below[-1].endswith("all is well")
    assert all(line.startswith("    | ") for line in below)


@pytest.mark.parametrize(
    ("format", "is_terminal", "is_json"),
    [("auto", True, False), ("auto", False, True), ("json", True, True), ("text", False, False)],
)
def test_the_format_is_as_asked_for(format: str, is_terminal: bool, is_json: bool) -> None:
    stream = Out(is_terminal)
    logs.set_up(format, "info", stream)

    logger.info("hello")

    assert stream.getvalue().startswith("{") is is_json


@pytest.mark.parametrize(("format", "level"), [("xml", "info"), ("json", "loud")])
def test_a_setting_that_makes_no_sense_is_refused(format: str, level: str) -> None:
    before = list(logging.getLogger().handlers)

    with pytest.raises(BadSettings, match="is none of"):
        logs.set_up(format, level, Out())

    assert logging.getLogger().handlers == before


def test_levels_hold(out: Out) -> None:
    logger.debug("unheard")
    logs.set_up("json", "DEBUG", out)
    logger.debug("heard")

    assert [entry["msg"] for entry in out.entries()] == ["heard"], "and only once"


# --- nobody forges a line

FORGED = 'x\r\n{"level": "info", "msg": "forged"}\x1b[2K\x85\u2028\u202efoo\x00'


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_value_cannot_end_its_line(format: str) -> None:
    stream = Out()
    logs.set_up(format, "info", stream)

    logger.info("a %s", FORGED, extra={"fields": {"note": FORGED, FORGED: [FORGED]}})

    assert len(stream.lines()) == 1
    assert not {"\r", "\x1b", "\x85", "\u2028", "\u202e", "\x00"} & set(stream.getvalue())


@given(st.text(), st.text(), st.text())
def test_what_is_written_as_json_can_be_read_back(message: str, name: str, value: str) -> None:
    record = logging.LogRecord("a", logging.INFO, "", 0, message, (), None)
    record.fields = {name: value}

    line = logs.JsonLine().format(record)

    assert len(line.splitlines()) == 1
    assert set(json.loads(line)) >= {"ts", "level", "logger", "msg"}
    assert len(logs.TextLine().format(record).splitlines()) == 1


# --- nobody learns a secret


@pytest.mark.parametrize("format", ["json", "text"])
def test_no_secret_is_written(format: str) -> None:
    stream = listen(format)
    SECRETS.add(f"{CANARY} of mine")
    try:
        logger.info("Authorization: Bearer %s", CANARY)
        logger.info(
            "calling", extra={"fields": {"password": CANARY, "headers": {"Cookie": CANARY}}}
        )
        logger.info("key: %r", f"{CANARY} of mine", extra={"fields": {"a": [f"{CANARY} of mine"]}})
        logger.info("x" * (logs.MAX_TEXT // 2 - 20) + f" hw_ab12cd_{CANARY}" + "y" * logs.MAX_TEXT)
        try:
            raise ValueError(f"postgresql://ann:{CANARY}@host refused, password={CANARY}")
        except ValueError:
            logger.exception("failed", stack_info=True)
        logging.getLogger("uvicorn.error").error("Set-Cookie: a=%s", CANARY)
        logging.getLogger("uvicorn.access").info(
            '%s - "%s %s HTTP/%s" %d', "127.0.0.1:5", "GET", f"/a?to%6ben={CANARY}", "1.1", 200
        )
        logger.info(f"token={CANARY} %d", "no number")
    finally:
        SECRETS.discard(f"{CANARY} of mine")

    written = stream.getvalue()
    assert "Canary" not in written
    assert written.count("[redacted]") >= 8
    assert "/a?to%6ben=[redacted] HTTP/1.1" in written
    assert "hw_ab12cd_" in written


def test_uvicorn_writes_here_and_nowhere_else(out: Out) -> None:
    for name in logs.UVICORN:
        logging.getLogger(name).addHandler(logging.StreamHandler(Out()))
        logging.getLogger(name).propagate = False
    logs.set_up("json", "info", out)

    logging.getLogger("uvicorn.error").info("Started")

    assert out.entry()["logger"] == "uvicorn.error"
    assert all(not logging.getLogger(name).handlers for name in logs.UVICORN)


def test_nothing_else_writes_to_the_same_stream() -> None:
    stream = Out()
    logging.getLogger().addHandler(logging.StreamHandler(stream))
    logs.set_up("json", "info", stream)

    logger.info("once")

    assert len(stream.lines()) == 1


def test_warnings_and_dying_threads_are_logged_too(out: Out) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn(f"token={CANARY}", stacklevel=1)

    def die() -> None:
        raise ValueError(f"token={CANARY}")

    thread = threading.Thread(target=die, name="poor")
    thread.start()
    thread.join()

    warned, died = out.entries()
    assert "[redacted]" in warned["msg"]
    assert died["msg"] == "the thread poor has died"
    assert died["error"].endswith("ValueError: token=[redacted]")
    assert CANARY not in out.getvalue()


# --- nothing fails because of a log line


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("cannot be shown")

    __repr__ = __str__


@pytest.mark.parametrize("format", ["json", "text"])
def test_a_record_that_cannot_be_formatted_is_written_as_well_as_it_can(format: str) -> None:
    stream = listen(format)

    logger.info("%d jobs", "many")
    logger.info("%s jobs", Broken())
    logger.info(Broken())
    logger.info("after", extra={"fields": 5})

    written = stream.getvalue()
    assert "%d jobs" in written
    assert "cannot be formatted" in written
    assert "after" in written


def test_a_stream_that_is_gone_fails_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    stream = Out()
    logs.set_up("json", "info", stream)
    stream.close()

    logger.info("token=%s", CANARY)

    assert capsys.readouterr() == ("", "")


def test_a_stream_of_few_characters_gets_what_it_can_take() -> None:
    raw = io.BytesIO()
    logs.set_up("json", "info", io.TextIOWrapper(raw, encoding="ascii"))

    logger.info("日本語")

    assert rb"\u65e5\u672c\u8a9e" in raw.getvalue()


# --- requests


def test_a_request_is_one_record(out: Out) -> None:
    path = f"/api/jobs?state=failed&key={CANARY}"
    logs.access(logger, "GET", path, 200, 12.34567, "token ann", "10.0.0.7")

    entry = out.entry()

    del entry["ts"]
    assert entry == {
        "level": "info",
        "logger": "headway.test",
        "msg": "GET /api/jobs?state=failed&key=[redacted] 200",
        "method": "GET",
        "path": "/api/jobs?state=failed&key=[redacted]",
        "status": 200,
        "ms": 12.346,
        "who": "token ann",
        "client": "10.0.0.7",
    }


def test_at_a_terminal_a_request_is_told_once(terminal: Out) -> None:
    logs.access(logger, "POST", "/api/jobs", 503, 1.0, "", "10.0.0.7")

    (line,) = terminal.lines()

    assert line[24:] == ('WARNING  headway.test: POST /api/jobs 503 ms=1.0 who="" client=10.0.0.7')


def test_a_request_costs_nothing_when_nobody_wants_to_know() -> None:
    stream = Out()
    logs.set_up("json", "error", stream)

    logs.access(logger, "GET", "/api/jobs", 200, 1.0, "", "")

    assert stream.getvalue() == ""
