"""The NFO file beside a video: what Kodi, Jellyfin and Emby show of it.

They all read `<movie>`; `<episodedetails>` is for libraries of shows, where a year is a season.
Jellyfin 10.11 reads title, plot, premiered or aired, year, runtime, studio, genre, tag, uniqueid,
thumb, season, episode and showtitle; `<website>` is read by Emby, and skipped by the others.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any, Literal

from headway.apps.media.library.metadata import Metadata, line
from headway.apps.media.library.naming import day_of

Kind = Literal["movie", "episode"]

MAX_INDEX_IN_DAY = 99
_ROOTS: dict[Kind, str] = {"movie": "movie", "episode": "episodedetails"}
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def nfo(
    info: Mapping[str, Any],
    *,
    kind: Kind = "movie",
    show: str | None = None,
    index_in_day: int | None = None,
    with_thumb: bool = True,
) -> bytes:
    """Well-formed XML whatever the info has. `with_thumb=False`: there is an image beside the
    video, so that nobody needs to ask the site for it.
    """
    known = Metadata.of(info)
    root = ET.Element(_ROOTS[kind])
    _add(root, "title", known.title or known.id or "unknown")
    if kind == "episode":
        _add(root, "showtitle", line(show) or known.uploader)
        _add_numbers(root, known, index_in_day)
    _add(root, "plot", known.description)
    _add_dates(root, known, kind)
    if known.duration_s:
        _add(root, "runtime", str(max(1, round(known.duration_s / 60))))
    _add(root, "studio", known.uploader)
    for category in known.categories:
        _add(root, "genre", category)
    for tag in known.tags:
        _add(root, "tag", tag)
    if known.id:
        # Without a source Jellyfin would not keep the id.
        source = _NOT_XML.sub("", known.extractor or "unknown")
        _add(root, "uniqueid", known.id, {"type": source, "default": "true"})
    if with_thumb:
        _add(root, "thumb", known.thumbnail_url, {"aspect": "thumb"})
    _add(root, "website", known.url)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _add(
    root: ET.Element, name: str, text: str | None, attributes: dict[str, str] | None = None
) -> None:
    legal = _NOT_XML.sub("", text or "").strip()
    if legal:
        ET.SubElement(root, name, attributes or {}).text = legal


def _add_dates(root: ET.Element, known: Metadata, kind: Kind) -> None:
    day = day_of(known.published_at)
    if day is None:
        return
    tag = "premiered" if kind == "movie" else "aired"
    _add(root, tag, f"{day.year:04}-{day.month:02}-{day.day:02}")
    _add(root, "year", str(day.year))


def _add_numbers(root: ET.Element, known: Metadata, index_in_day: int | None) -> None:
    """A year is a season, the day is the episode: its number stays the same for ever, whatever
    else is found later.
    """
    day = day_of(known.published_at)
    if day is None:
        return
    number = day.month * 100 + day.day
    if index_in_day is not None:
        number = number * 100 + max(0, min(index_in_day, MAX_INDEX_IN_DAY))
    _add(root, "season", str(day.year))
    _add(root, "episode", str(number))
