"""What yt-dlp is told, all of it in one place and made from an order alone.

yt-dlp used as a library reads no configuration file. Whatever is not named here stays off: no
programs, no browser's cookies, no netrc, no proxy, no plugin, no cache, no component from the net.
"""

from __future__ import annotations

import os
from typing import Any

from .protocol import Order, Task

FILE = "media.%(ext)s"  # nothing that a site says becomes part of a path
MAX_RETRY_PAUSE_S = 8.0


class Silent:
    """yt-dlp's messages. What matters comes as exceptions."""

    def debug(self, message: str) -> None: ...

    def info(self, message: str) -> None: ...

    def warning(self, message: str) -> None: ...

    def error(self, message: str) -> None: ...


def parameters(order: Order, ffmpeg: str | None) -> dict[str, Any]:
    return _quiet() | _closed() | _requests(order) | _files(order, ffmpeg)


def _quiet() -> dict[str, Any]:
    return {
        "quiet": True,
        "noprogress": True,
        "no_warnings": True,
        "color": "never",
        "logger": Silent(),
        "ignoreerrors": False,
        "warn_when_outdated": False,
    }


def _closed() -> dict[str, Any]:
    """What could run or read something of this machine, or bring code from elsewhere."""
    return {
        "usenetrc": False,
        "netrc_cmd": None,
        "cookiesfrombrowser": None,
        "enable_file_urls": False,
        "cachedir": False,
        "js_runtimes": {},
        "remote_components": (),
        "external_downloader": {"default": "native"},
        "hls_prefer_native": True,
        "postprocessors": [],
        "fixup": "never",
        "wait_for_video": None,
        "mark_watched": False,
        "default_search": "error",
        "nocheckcertificate": False,
        "allow_unplayable_formats": False,
    }


def _requests(order: Order) -> dict[str, Any]:
    headers = {"User-Agent": order.user_agent}
    if order.referer is not None:
        headers["Referer"] = order.referer
    pause = dict.fromkeys(("http", "fragment", "extractor"), _pause_s)
    return {
        "http_headers": headers,
        "cookiefile": order.cookie_file,
        "proxy": "",  # none, whatever the environment says
        "geo_bypass": False,
        "socket_timeout": order.socket_timeout_s,
        "sleep_interval_requests": order.sleep_s,
        "retries": order.retries,
        "fragment_retries": order.retries,
        "extractor_retries": order.retries,
        "file_access_retries": 0,
        "retry_sleep_functions": pause,
        "extractor_args": {
            name: {key: list(values) for key, values in args.items()}
            for name, args in order.extractor_args.items()
        },
        "ignore_no_formats_error": order.task is not Task.DOWNLOAD,
    }


def _pause_s(n: int) -> float:
    return float(min(MAX_RETRY_PAUSE_S, 0.5 * 2**n))


def _files(order: Order, ffmpeg: str | None) -> dict[str, Any]:
    if order.directory is None:
        return {"simulate": True, "skip_download": True}
    return {
        "paths": {"home": order.directory, "temp": order.directory},
        "outtmpl": {"default": FILE},
        "noplaylist": True,
        "continuedl": True,
        "nopart": False,
        "overwrites": None,
        "skip_unavailable_fragments": False,  # a video with holes is no video
        "concurrent_fragment_downloads": 1,
        "check_formats": False,  # it would ask for media before anything is decided
        "updatetime": False,
        "writethumbnail": False,  # it comes after the video; see `downloading`
        "writeinfojson": False,
        "ratelimit": order.limit_bytes_per_s,
        "ffmpeg_location": ffmpeg or os.path.join(order.directory, "no-ffmpeg"),
    }
