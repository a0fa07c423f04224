"""One video: its page, the choice of a format, the file, the thumbnail."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from .choosing import Choosing, Wanted, facts, parts_of, size_of, tag_of
from .failures import Verdict, classify
from .opening import Info, first_entries, is_list, opened
from .picturing import thumbnail
from .progressing import Progress, Room
from .protocol import FailureKind, Order
from .values import one_line, plain, whole
from .watching import MEDIA, Changed, Exchange, Watch

CHOICE = "media.choice"  # says what the files in the directory are of
# A file that is not there or cannot be served may be there in another format. What a person has to
# mend, or what the site asks us to stop, is no reason to ask for more.
NEXT_FORMAT_AFTER = frozenset({FailureKind.GONE, FailureKind.SERVER})
# Addresses, which may carry signatures, and what is only of use inside yt-dlp.
LEFT_OUT = frozenset({
    "app", "automatic_captions", "comments", "cookies", "downloader_options", "entries",
    "extra_param_to_key_url", "extra_param_to_segment_url", "filename", "filepath", "formats",
    "fragment_base_url", "fragments", "heatmap", "hls_aes", "hls_media_playlist_data",
    "http_headers", "manifest_url", "page_url", "play_path", "player_url", "request_data",
    "subtitles", "tc_url", "thumbnails", "url",
})  # fmt: skip


def download(
    ydl: Any, order: Order, watch: Watch, wanted: Wanted, choosing: Choosing, progress: Progress
) -> dict[str, Any]:
    raw = _one_video(ydl, opened(ydl, order.url))
    info = ydl.process_ie_result(raw, download=False)
    wanted.check()
    if not choosing.candidates:
        raise Verdict(FailureKind.FORMAT, "there is nothing to download at this address")
    done = _first_that_comes(ydl, info, order, watch, choosing, progress)
    directory = Path(str(order.directory))
    picture = thumbnail(ydl, info, directory, watch) if order.thumbnail else None
    return _result(ydl, done, order, watch) | {
        "thumbnail": picture,
        "pushback": _told(watch.pushback),
    }


def _one_video(ydl: Any, raw: Info) -> Info:
    """A page may be a list of one."""
    if not is_list(raw):
        return raw
    heads = first_entries(raw, 2)
    if len(heads) != 1 or not isinstance(heads[0], dict):
        raise Verdict(FailureKind.UNSUPPORTED, "this is a list and no video; subscribe to it")
    only = heads[0]
    if only.get("_type", "video") in ("url", "url_transparent"):
        inner = opened(ydl, str(only.get("url")), only.get("ie_key"))
        if is_list(inner):
            raise Verdict(FailureKind.UNSUPPORTED, "this is a list of lists and no video")
        return inner
    ydl.add_extra_info(only, {name: raw.get(name) for name in (
        "extractor", "extractor_key", "webpage_url", "original_url")})  # fmt: skip
    return dict(only)


def _first_that_comes(
    ydl: Any, info: Info, order: Order, watch: Watch, choosing: Choosing, progress: Progress
) -> Info:
    *others, last = choosing.candidates
    for chosen in others:
        try:
            return _fetched(ydl, info, chosen, order, watch, progress)
        except Exception as error:
            if classify(error, watch).kind not in NEXT_FORMAT_AFTER:
                raise
    return _fetched(ydl, info, last, order, watch, progress)


def _fetched(
    ydl: Any, info: Info, chosen: Info, order: Order, watch: Watch, progress: Progress
) -> Info:
    directory = Path(str(order.directory))
    begun = Begun(directory, tag_of(chosen))
    begun.forget_another()
    Room(order).check(_on_disk(directory), size_of(chosen))
    watch.goes_to(MEDIA)
    of_formats = ydl._format_fields | {"requested_formats"}
    made = {name: value for name, value in info.items() if name not in of_formats}
    made = dict(ydl._copy_infodict(made | dict(chosen)))
    parts = parts_of(chosen)
    if len(parts) > 1:  # the names of the parts are made of these, and a site may choose any
        made["requested_formats"] = [
            {**part, "format_id": f"part{n}"} for n, part in enumerate(parts, 1)
        ]
    progress.parts = len(parts)
    if len(parts) == 1:
        watch.begun_of_bytes, progress.on_size = begun.size(), begun.keep_size
    try:
        ydl.process_info(again := dict(made))
    except Changed:
        begun.forget()
        watch.begun_of_bytes = None
        ydl.process_info(again := dict(made))
    made = again
    file = made.get("filepath")
    if not isinstance(file, str) or not Path(file).is_file():
        raise Verdict(FailureKind.BROKEN, "yt-dlp has ended without a file")
    return made


class Begun:
    """What is here from an earlier attempt. The rest of one file must not be appended to the
    beginning of another: neither of another format, nor of one that the site has replaced.
    """

    def __init__(self, directory: Path, tag: str) -> None:
        self._directory = directory
        self._note = directory / CHOICE
        self._tag = tag

    def forget_another(self) -> None:
        if not self._note.is_file() or self._note.read_text().split()[:1] != [self._tag]:
            self.forget()

    def forget(self) -> None:
        for file in self._directory.glob("media.*"):
            file.unlink()
        self._note.write_text(self._tag)

    def size(self) -> int | None:
        """Of the whole file, as far as it was known when it began to come."""
        _, *size = self._note.read_text().split()
        return int(size[0]) if size and size[0].isdigit() else None

    def keep_size(self, size: int) -> None:
        if self.size() is None:
            self._note.write_text(f"{self._tag} {size}")


def _on_disk(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.glob("media.*") if file.is_file())


def _result(ydl: Any, done: Info, order: Order, watch: Watch) -> dict[str, Any]:
    file = Path(done["filepath"])
    title, published_at, duration_s, views = facts(done, order)
    return {
        "file": file.name,
        "ext": file.suffix.removeprefix("."),
        "size_bytes": file.stat().st_size,
        "resumed_from_bytes": watch.resumed_from_bytes,
        "format": one_line(done.get("format")),
        "width": whole(done.get("width")),
        "height": whole(done.get("height")),
        "info": _kept(ydl.sanitize_info(done, remove_private_keys=True))
        | {
            "title": title,
            "timestamp": published_at,
            "duration": duration_s,
            "view_count": views,
        },
    }


def _kept(info: Info) -> dict[str, Any]:
    kept: dict[str, Any] = plain(
        {
            name: value
            for name, value in info.items()
            if name not in LEFT_OUT and not str(name).startswith(("_", "requested_"))
        }
    )
    return kept


def _told(pushback: Exchange | None) -> dict[str, Any] | None:
    if pushback is None:
        return None
    told = dataclasses.asdict(dataclasses.replace(pushback, error=None))
    return {name: told[name] for name in ("host", "status", "retry_after")}
