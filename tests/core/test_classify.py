"""The table of what an answer means, row by row, and exceptions by what they are."""

import errno
import socket
import urllib.error
from email.message import Message
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core import Kind, Scope
from headway.core.classify import (
    MAX_RETRY_AFTER_S,
    STATUS_MEANINGS,
    Answer,
    Meaning,
    classify_exception,
    classify_status,
    outcome_of,
    parse_retry_after,
)

NOW = 784_111_717.0  # Sun, 06 Nov 1994 08:48:37 GMT, a minute before the dates below

FATAL = [400, 401, 403, 404, 410, 402, 405, 408, 409, 418, 422, 451, 499]
UNWELL = [500, 502, 504, 501, 505, 507, 520, 599]


# --- the table


def test_429_is_pushback() -> None:
    assert classify_status(429, retry_after_s=30) == Answer(Meaning.PUSHBACK, 429, 30.0)
    assert classify_status(429).retry_after_s is None


@pytest.mark.parametrize("retry_after_s", [None, 0.0, 30.0, 3600.0])
def test_any_503_is_pushback_that_counts_for_the_breaker(retry_after_s: float | None) -> None:
    assert classify_status(503, retry_after_s=retry_after_s) == Answer(
        Meaning.PUSHBACK, 503, retry_after_s, counts_for_breaker=True
    )


def test_412_is_a_ban() -> None:
    assert classify_status(412) == Answer(Meaning.BAN, 412)


def test_a_long_retry_after_is_a_ban() -> None:
    assert classify_status(429, retry_after_s=300) == Answer(Meaning.BAN, 429, 300.0)
    assert classify_status(429, retry_after_s=299.9).meaning is Meaning.PUSHBACK


@pytest.mark.parametrize("status", UNWELL)
def test_a_server_error_is_retried_and_counts_for_the_breaker(status: int) -> None:
    assert classify_status(status) == Answer(Meaning.RETRY, status, counts_for_breaker=True)


@pytest.mark.parametrize("status", FATAL)
def test_refusals_and_other_client_errors_are_fatal(status: int) -> None:
    assert classify_status(status) == Answer(Meaning.FATAL, status)


@pytest.mark.parametrize("status", [200, 201, 204, 206, 301, 304, 307])
def test_success_and_redirection_are_ok(status: int) -> None:
    assert classify_status(status) == Answer(Meaning.OK, status)


@pytest.mark.parametrize("status", [-1, 0, 100, 600, 999])
def test_a_status_nobody_knows_is_retried(status: int) -> None:
    assert classify_status(status).meaning is Meaning.RETRY


@given(st.integers(-1000, 1999), st.none() | st.floats())
def test_every_status_has_a_sensible_answer(status: int, retry_after_s: float | None) -> None:
    answer = classify_status(status, retry_after_s=retry_after_s)
    assert answer.status == status
    assert answer.retry_after_s is None or 0 <= answer.retry_after_s <= MAX_RETRY_AFTER_S
    if answer.meaning in (Meaning.OK, Meaning.FATAL):
        assert answer == Answer(answer.meaning, status, answer.retry_after_s)


def test_the_tables_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        STATUS_MEANINGS[429] = Meaning.FATAL  # type: ignore[index]


# --- exceptions


class StatusError(Exception):
    def __init__(self, text: str, status: object, retry_after_s: object = None) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after_s = retry_after_s


class Response:
    """Like the one of `requests`, it is false when it brings bad news."""

    def __init__(self, status_code: int) -> None:
        self.status_code = status_code

    def __bool__(self) -> bool:
        return self.status_code < 400


class ResponseError(Exception):
    def __init__(self, response: Response | None) -> None:
        super().__init__("bad answer")
        self.response = response


class BadPayloadError(ValueError):
    pass


def test_lesson_12_a_503_page_that_says_unavailable_is_pushback() -> None:
    page = "<h1>Video unavailable</h1> This video has been removed. 404 Not Found"
    for status in (503, HTTPStatus.SERVICE_UNAVAILABLE):
        answer = classify_exception(StatusError(page, status))
        assert answer == classify_status(503)
        assert answer.meaning is Meaning.PUSHBACK


@given(st.sampled_from(["unavailable", "404", "removed", "banned", "429"]), st.integers(100, 999))
def test_lesson_12_no_text_changes_what_an_answer_means(text: str, status: int) -> None:
    assert classify_exception(StatusError(text, status)) == classify_exception(
        StatusError("", status)
    )
    assert classify_exception(RuntimeError(text)) == Answer(Meaning.RETRY)


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionError(),
        ConnectionResetError(),
        BrokenPipeError(),
        OSError(errno.ECONNREFUSED, "refused"),
        OSError(errno.ETIMEDOUT, "timed out"),
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError(errno.ENETUNREACH, "no network"),
        socket.gaierror(-2, "name not known"),
    ],
)
def test_network_errors_are_retried_and_count_for_the_breaker(error: Exception) -> None:
    assert classify_exception(error) == Answer(Meaning.RETRY, counts_for_breaker=True)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "full"), OSError(errno.EDQUOT, "quota"), MemoryError()]
)
def test_a_full_disk_or_memory_is_fatal(error: Exception) -> None:
    assert classify_exception(error) == Answer(Meaning.FATAL)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        TypeError("x"),
        KeyError("x"),
        OSError("no errno"),
        FileNotFoundError(errno.ENOENT, "gone"),
        ExceptionGroup("several", [ValueError()]),
        KeyboardInterrupt(),
    ],
)
def test_an_unknown_exception_is_retried_and_blames_no_upstream(error: BaseException) -> None:
    assert classify_exception(error) == Answer(Meaning.RETRY)


def test_an_exception_that_carries_a_status_means_what_the_status_means() -> None:
    assert classify_exception(StatusError("", 404)) == classify_status(404)
    assert classify_exception(StatusError("", 429, 45)) == classify_status(429, retry_after_s=45)
    assert classify_exception(StatusError("", 429, 900)).meaning is Meaning.BAN
    assert classify_exception(ResponseError(Response(410))) == classify_status(410)
    gone = urllib.error.HTTPError("http://upstream.test", 410, "Gone", Message(), None)
    assert classify_exception(gone) == classify_status(410)


@pytest.mark.parametrize("status", [200, 204, 302])
def test_an_exception_after_a_good_answer_is_never_ok(status: int) -> None:
    assert classify_exception(ResponseError(Response(status))) == Answer(Meaning.RETRY, status)


@pytest.mark.parametrize("status", [None, "503", True, 14, 0, -1, 1000, 4.04])
def test_what_is_no_http_status_is_ignored(status: object) -> None:
    assert classify_exception(StatusError("", status)) == Answer(Meaning.RETRY)


@pytest.mark.parametrize("wait", ["soon", float("nan"), -1, None])
def test_a_wait_that_makes_no_sense_is_ignored(wait: object) -> None:
    assert classify_exception(StatusError("", 429, wait)) == classify_status(429)


def test_an_exception_whose_attributes_fail_is_still_classified() -> None:
    class Hostile(TimeoutError):
        @property
        def response(self) -> object:
            raise RuntimeError("no response was set")

    assert classify_exception(Hostile()) == Answer(Meaning.RETRY, counts_for_breaker=True)
    assert classify_exception(ResponseError(None)) == Answer(Meaning.RETRY)


def test_an_app_may_give_its_exceptions_a_meaning() -> None:
    types: dict[type[BaseException], Meaning]
    types = {BadPayloadError: Meaning.FATAL, StatusError: Meaning.PUSHBACK}
    assert classify_exception(BadPayloadError(), types=types) == Answer(Meaning.FATAL)
    assert classify_exception(ValueError(), types=types).meaning is Meaning.RETRY
    assert classify_exception(StatusError("", 404, 5), types=types) == Answer(
        Meaning.PUSHBACK, 404, 5.0
    )


def test_the_nearest_class_decides() -> None:
    class SlowDisk(TimeoutError):
        pass

    types: dict[type[BaseException], Meaning]
    types = {SlowDisk: Meaning.FATAL, Exception: Meaning.PUSHBACK}
    assert classify_exception(SlowDisk(), types=types).meaning is Meaning.FATAL
    assert classify_exception(TimeoutError(), types=types).meaning is Meaning.PUSHBACK
    assert classify_exception(SlowDisk()).meaning is Meaning.RETRY


# --- Retry-After


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 120 ", 120.0),
        ("1.5", 1.5),
        ("604801", MAX_RETRY_AFTER_S),
        ("9" * 90, MAX_RETRY_AFTER_S),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 60.0),
        ("Sun Nov  6 08:49:37 1994", 60.0),
        ("Sun, 06 Nov 1994 08:48:37 GMT", 0.0),
        ("Sun, 06 Nov 2094 08:49:37 GMT", MAX_RETRY_AFTER_S),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str, wait_s: float) -> None:
    assert parse_retry_after(value, NOW) == wait_s


@pytest.mark.parametrize(
    "value",
    [
        "Sun, 06 Nov 1994 08:47:37 GMT",  # past
        "Sun, 99 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994",
        "12:00",
        "soon",
        "",
        "-5",
        "+5",
        "1e3",
        "0x10",
        "5s",
        "NaN",
        "inf",
        "\u0663",  # a digit, but not of HTTP
        "9" * 5000,
    ],
)
def test_a_retry_after_that_names_no_time_to_come_is_none(value: str) -> None:
    assert parse_retry_after(value, NOW) is None


@given(
    st.text() | st.text(alphabet="0123456789:,- +.SunNovGMT", max_size=40), st.floats(-1e10, 1e10)
)
def test_no_header_can_break_the_parser(value: str, now: float) -> None:
    wait_s = parse_retry_after(value, now)
    assert wait_s is None or 0 <= wait_s <= MAX_RETRY_AFTER_S


@pytest.mark.parametrize(
    ("status", "kind", "fatal", "fault"),
    [
        (200, Kind.OK, False, False),
        (429, Kind.PUSHBACK, False, False),
        (503, Kind.PUSHBACK, False, True),
        (412, Kind.PUSHBACK, False, False),
        (500, Kind.FAILED, False, True),
        (404, Kind.FAILED, True, False),
        (403, Kind.FAILED, True, False),
    ],
)
def test_an_answer_becomes_the_outcome_of_an_attempt(
    status: int, kind: Kind, fatal: bool, fault: bool
) -> None:
    outcome = outcome_of(classify_status(status), error="said the site")
    assert (outcome.kind, outcome.fatal, outcome.upstream_fault) == (kind, fatal, fault)
    assert outcome.status == status
    assert outcome.ban == (status == 412)


def test_the_time_that_a_pushback_names_is_kept() -> None:
    answer = classify_status(429, retry_after_s=17.0)
    assert outcome_of(answer, scope=Scope.TENANT).retry_after_s == 17.0
    assert outcome_of(answer, scope=Scope.TENANT).scope is Scope.TENANT
