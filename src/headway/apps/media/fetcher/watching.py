"""Every request that yt-dlp makes passes here: pages, media, fragments and pictures alike.

A site that pushes back hears from this process not once more. yt-dlp would ask again, try the next
format or the picture; here the first such answer ends the work, and whatever catches that end and
goes on finds that no request is sent any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from yt_dlp import YoutubeDL  # type: ignore[import-untyped]
from yt_dlp.networking import Request  # type: ignore[import-untyped]
from yt_dlp.networking.exceptions import HTTPError  # type: ignore[import-untyped]
from yt_dlp.utils import DownloadCancelled  # type: ignore[import-untyped]

PUSHBACK = frozenset({412, 429, 503})
PAGE, MEDIA, PICTURE = "page", "media", "thumbnail"
PARTIAL = 206
MEDIA_TYPES = ("audio/", "video/")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and how it was answered. No status: it was not."""

    at: str
    host: str
    status: int | None = None
    retry_after: str | None = None
    error: BaseException | None = None


class PushedBack(DownloadCancelled):  # type: ignore[misc]
    """The site wants to be left alone. yt-dlp lets this kind of exception through everywhere."""


class Changed(DownloadCancelled):  # type: ignore[misc]
    """The file is another than the one whose beginning is here."""


class Watch:
    """What was seen so far."""

    def __init__(self) -> None:
        self.at = PAGE
        self.last: Exchange | None = None
        self.pushback: Exchange | None = None
        self.resumed_from_bytes = 0
        self.begun_of_bytes: int | None = None  # the size of the file whose beginning is here
        self._unread: dict[str, Any] = {}

    def goes_to(self, at: str) -> None:
        """What the next requests are for."""
        self.at = at
        if at == PICTURE:
            self.close()

    def check(self) -> None:
        if self.pushback is not None:
            raise PushedBack(f"{self.pushback.host} has pushed back; nothing more is sent to it")

    def answered(self, url: str, response: Any, asked_from: int) -> None:
        self.last = Exchange(self.at, _host(response.url or url), response.status)
        if self.at == MEDIA and asked_from and response.status == PARTIAL:
            self._check_size(response)
            self.resumed_from_bytes = self.resumed_from_bytes or asked_from
        if self.at == PAGE and str(response.get_header("Content-Type")).startswith(MEDIA_TYPES):
            self._unread[url] = response

    def _check_size(self, response: Any) -> None:
        """yt-dlp appends whatever comes. A file of another size is certainly another file."""
        size = str(response.get_header("Content-Range")).rpartition("/")[2]
        begun_of = self.begun_of_bytes
        if begun_of is not None and size.isascii() and size.isdigit() and int(size) != begun_of:
            response.close()
            raise Changed("the file has changed since its beginning came")

    def kept(self, request: Any) -> Any:
        """The answer to the same request, if nothing was read of it. yt-dlp asks for a plain file
        once to see what it is, and then again for its content; the site need not hear it twice.
        """
        if self.at != MEDIA:
            return None
        response = self._unread.pop(request.url, None)
        self.close()
        if response is None or "Range" in request.headers or request.data is not None:
            return None
        left = getattr(response.fp, "length", None)
        is_whole = left is not None and str(left) == response.get_header("Content-Length")
        return response if is_whole else None

    def close(self) -> None:
        """Files that were looked at and are not wanted: the site need not go on sending them."""
        for response in self._unread.values():
            response.close()
        self._unread.clear()

    def failed(self, url: str, error: BaseException) -> None:
        if not isinstance(error, HTTPError):
            self.last = Exchange(self.at, _host(url), error=error)
            return
        self.last = Exchange(
            self.at, _host(error.response.url or url), error.status,
            error.response.get_header("Retry-After"), error,
        )  # fmt: skip
        if error.status in PUSHBACK:
            self.pushback = self.last
            error.close()
        self.check()


class Watched(YoutubeDL):  # type: ignore[misc]
    def __init__(self, params: dict[str, Any], watch: Watch) -> None:
        self.watch = watch
        super().__init__(params)

    def urlopen(self, req: Any) -> Any:
        self.watch.check()
        request = Request(req) if isinstance(req, str) else req
        url = str(request.url)
        kept = self.watch.kept(request)
        if kept is not None:
            return kept
        try:
            response = super().urlopen(request)
        except Exception as error:
            self.watch.failed(url, error)
            raise
        self.watch.answered(url, response, _range_start(request))
        return response

    def build_request_director(self, handlers: Iterable[Any], preferences: Any = None) -> Any:
        """Only Python's own client: the guard sees its connections. Others connect in C."""
        seen = [handler for handler in handlers if handler.RH_KEY == "Urllib"]
        return super().build_request_director(seen, preferences)

    def save_cookies(self) -> None:
        """The file of cookies is the server's."""


def _range_start(request: Any) -> int:
    value = str(request.headers.get("Range") or "")
    start = value.removeprefix("bytes=").partition("-")[0]
    return int(start) if start.isascii() and start.isdigit() else 0


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the site"
    except ValueError:
        return "the site"
