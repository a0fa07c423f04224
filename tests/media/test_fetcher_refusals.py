"""A site that says no is heard: what each answer means, and that nothing more is asked."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from yt_dlp.networking.exceptions import TransportError
from yt_dlp.utils import DownloadError, ExtractorError, GeoRestrictedError, UserNotLive

from headway.apps.media.fetcher.failures import by_exchange, classify
from headway.apps.media.fetcher.guard import Refused
from headway.apps.media.fetcher.hiding import Hiding
from headway.apps.media.fetcher.protocol import FailureKind as Kind
from headway.apps.media.fetcher.protocol import Task
from headway.apps.media.fetcher.watching import MEDIA, PAGE, Exchange, Watch
from tests.media.fetcher_kit import cookie_file, download, visit
from tests.media.video_site import VideoSite

SECRET = "good-cookie-0123456789"


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite() as site:
        yield site


@pytest.fixture
def work(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


# --- pushback: not one request more


def test_a_list_that_is_pushed_back_is_asked_for_once(site: VideoSite) -> None:
    site.collection("c", 3)
    site.push_back(412, until=lambda: False, retry_after=77)
    failure = visit(site, Task.LIST, site.collection_url("c"), retries=5).failure
    assert (failure.kind, failure.status, failure.retry_after_s) == (Kind.PUSHBACK, 412, 77)
    assert (failure.at, failure.host) == ("page", "127.0.0.1")
    assert len(site.log) == 1


@pytest.mark.parametrize("status", [429, pytest.param(503, marks=pytest.mark.soak)])
def test_media_that_is_pushed_back_is_asked_for_once_in_one_format_without_a_thumbnail(
    site: VideoSite, work: Path, status: int
) -> None:
    site.video("two", heights=(1080, 720, 480))
    site.push_back(status, until=lambda: False, paths="/media/", retry_after="soon")
    formats = ("b[height<=?1080]", "b[height<=?720]", "w")
    failure = download(site, site.watch_url("two"), work, formats=formats, retries=5).failure
    assert (failure.kind, failure.status, failure.at) == (Kind.PUSHBACK, status, "media")
    assert failure.retry_after_s is None
    assert [each.path for each in site.log] == ["/watch/two", "/media/two_1080.mp4"]


def test_pushback_at_the_thumbnail_is_said_and_the_video_kept(site: VideoSite, work: Path) -> None:
    site.video("one")
    site.push_back(429, paths="/thumb/", retry_after=9)
    result = download(site, site.watch_url("one"), work).result
    assert result["pushback"] == {"host": "127.0.0.1", "status": 429, "retry_after": "9"}
    assert (work / result["file"]).stat().st_size == 200_000
    assert result["thumbnail"] is None
    assert len(site.asked("/thumb/")) == 1


# --- other answers


@pytest.mark.parametrize(
    ("status", "kind"), [(403, Kind.CREDENTIAL), (410, Kind.GONE), (500, Kind.SERVER)]
)
def test_a_page_is_judged_by_its_status_and_not_by_its_words(
    site: VideoSite, status: int, kind: Kind
) -> None:
    site.fail("/watch/", status)
    failure = visit(site, Task.LOOK, site.watch_url("x")).failure
    assert (failure.kind, failure.status, failure.at) == (kind, status, "page")
    assert str(status) in failure.message


def test_a_site_that_is_down_is_no_fault_of_the_video(site: VideoSite) -> None:
    gone = VideoSite()
    with gone:
        pass
    made = {"allowed": gone.allowed, "socket_timeout_s": 5}
    assert visit(site, Task.COUNT, gone.url + "/c/x.rss", **made).failure.kind is Kind.NETWORK


# --- cookies


def test_a_cookie_opens_the_media_and_is_never_told_nor_written(
    site: VideoSite, work: Path, tmp_path: Path
) -> None:
    site.needs_cookie = True
    site.video("one", title=f"Hello {SECRET}!", more={"description": f"x={SECRET}&y"})
    site.page("/thumb/one.jpg", "no", headers={"Set-Cookie": "session=a-new-secret-value; Path=/"})
    file = cookie_file(tmp_path, SECRET)
    before = file.read_bytes(), file.stat().st_mtime_ns
    ran = download(site, site.watch_url("one"), work, cookie_file=str(file))
    assert ran.result["info"]["title"] == "Hello [redacted]!"
    assert SECRET not in ran.said
    assert all(f"SESSDATA={SECRET}" in each.headers["Cookie"] for each in site.log)
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before
    assert not any(SECRET in word for command in ran.job.commands for word in command)


def test_a_cookie_that_is_not_good_any_more_is_told_apart_from_a_bad_page(
    site: VideoSite, work: Path, tmp_path: Path
) -> None:
    site.needs_cookie, site.cookie_status = True, 401
    site.video("one")
    file = cookie_file(tmp_path, "an-old-cookie-9876543210")
    failure = download(site, site.watch_url("one"), work, cookie_file=str(file)).failure
    assert (failure.kind, failure.status, failure.at) == (Kind.CREDENTIAL, 401, "media")


def test_a_file_of_cookies_that_cannot_be_read_is_nobodys_fault_but_ours(
    site: VideoSite, tmp_path: Path
) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(f"127.0.0.1\tFALSE\t/\tFALSE\t0\tSESSDATA\t{SECRET}\n")
    ran = visit(site, Task.COUNT, site.url + "/x", cookie_file=str(file))
    assert ran.failure.kind is Kind.BROKEN
    assert "cookies" in ran.failure.message
    assert SECRET not in ran.said
    assert not site.log


@pytest.mark.parametrize(
    "text", ["a=s3cret/+=ü!", "?q=s3cret%2F%2B%3D%C3%BC%21", "s3cret/%2B%3D%C3%BC%21"]
)
def test_a_secret_is_hidden_in_every_form(text: str) -> None:
    assert "s3cret" not in Hiding(["s3cret/+=ü!"]).text(text)


def test_what_is_no_secret_is_left_alone() -> None:
    hiding = Hiding(["1", "", "english", "x" * 30])
    assert hiding.text("1 English video") == "1 English video"
    assert hiding.address("http://a.test/english/1") == "http://a.test/english/1"
    assert hiding.everywhere({"a": ["english", 3, {"b": "x" * 30}]}) == {
        "a": ["[redacted]", 3, {"b": "[redacted]"}]
    }


# --- exceptions, by their types


def judged(error: BaseException, at: str = PAGE, last: Exchange | None = None) -> Kind:
    watch = Watch()
    watch.at = at
    watch.last = last or Exchange(at, "site.test", 200)
    return classify(error, watch).kind


def raised(inner: BaseException) -> DownloadError:
    return DownloadError("ERROR: HTTP Error 404: private, unavailable", (type(inner), inner, None))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (GeoRestrictedError("not here", countries=["DE"]), Kind.GEO),
        (UserNotLive(), Kind.LIVE),
        (ExtractorError("private: 404", expected=True), Kind.REFUSED_BY_SITE),
        (ExtractorError("cannot parse"), Kind.EXTRACTOR),
        (ExtractorError("x", cause=TransportError("reset")), Kind.NETWORK),
        (TransportError(cause=Refused("10.0.0.1 is private")), Kind.REFUSED),
        (OSError(errno.ENOSPC, "full"), Kind.DISK),
        (KeyError("id"), Kind.BROKEN),
    ],
)
def test_an_exception_is_judged_by_its_type(error: Exception, kind: Kind) -> None:
    assert judged(raised(error)) is kind


def test_a_failure_without_a_cause_is_what_the_last_request_was() -> None:
    given_up = DownloadError("ERROR: Giving up after 2 retries", (None, None, None))
    assert judged(given_up, at=MEDIA) is Kind.NETWORK
    reset = Exchange(MEDIA, "site.test", error=TransportError("reset"))
    assert judged(given_up, at=MEDIA, last=reset) is Kind.NETWORK
    assert judged(given_up) is Kind.BROKEN


def test_what_went_wrong_before_is_not_the_reason() -> None:
    error = ExtractorError("members only", expected=True)
    error.__context__ = TransportError("the first way")
    assert judged(raised(error)) is Kind.REFUSED_BY_SITE


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Kind.REFUSED_BY_SITE), (401, Kind.CREDENTIAL), (404, Kind.GONE), (408, Kind.NETWORK),
        (412, Kind.PUSHBACK), (429, Kind.PUSHBACK), (451, Kind.GEO), (502, Kind.SERVER),
        (503, Kind.PUSHBACK), (504, Kind.SERVER),
    ],
)  # fmt: skip
def test_each_status_has_one_meaning(status: int, kind: Kind) -> None:
    assert by_exchange(Exchange(PAGE, "site.test", status)).kind is kind


def test_a_message_is_one_short_line() -> None:
    long: Any = ExtractorError("a\nb\x1b[2J" + "x" * 2_000, expected=True)
    message = classify(raised(long), Watch()).message
    assert len(message) <= 500
    assert message.isprintable()
