"""NFO files: what media servers read, and well-formed whatever the site has said."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.media.library.metadata import MAX_LINE, MAX_TEXT, MAX_WORDS, Metadata
from headway.apps.media.library.nfo import nfo

INFO: dict[str, Any] = {
    "id": "BV1x",
    "title": "Fish & <Chips>",
    "description": "Line one\r\nLine two",
    "uploader": "Somebody",
    "extractor_key": "BiliBili",
    "timestamp": 1_794_787_200,
    "duration": 754.2,
    "categories": ["Food", "Food", "Travel"],
    "tags": ["sea", 7, None, "  "],
    "webpage_url": "https://video.example/BV1x?a=1&b=2",
    "thumbnail": "https://img.example/1.jpg",
}

LOCAL = "file:" + "//"

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
infos = st.fixed_dictionaries(
    {}, optional=dict.fromkeys([*INFO, "upload_date", "channel", "release_timestamp"], anything)
)


def read(content: bytes) -> ET.Element:
    return ET.fromstring(content)


def test_a_movie_has_what_media_servers_read() -> None:
    root = read(nfo(INFO))

    assert root.tag == "movie"
    assert {each.tag: each.text for each in root} == {
        "title": "Fish & <Chips>",
        "plot": "Line one\nLine two",
        "premiered": "2026-11-16",
        "year": "2026",
        "runtime": "13",
        "studio": "Somebody",
        "genre": "Travel",
        "tag": "7",
        "uniqueid": "BV1x",
        "thumb": "https://img.example/1.jpg",
        "website": "https://video.example/BV1x?a=1&b=2",
    }
    assert [each.text for each in root.iter("genre")] == ["Food", "Travel"]
    unique = root.find("uniqueid")
    assert unique is not None
    assert unique.attrib == {"type": "BiliBili", "default": "true"}


def test_it_begins_as_xml_in_utf_8() -> None:
    assert nfo({"title": "走"}).startswith(b"<?xml version='1.0' encoding='utf-8'?>\n<movie>")
    assert "走".encode() in nfo({"title": "走"})


@pytest.mark.parametrize(("index", "episode"), [(None, "1116"), (2, "111602"), (1000, "111699")])
def test_an_episode_is_a_day_of_a_year(index: int | None, episode: str) -> None:
    root = read(nfo(INFO, kind="episode", show="Walks", index_in_day=index))

    assert root.tag == "episodedetails"
    assert root.findtext("season") == "2026"
    assert root.findtext("episode") == episode
    assert root.findtext("aired") == "2026-11-16"
    assert root.findtext("showtitle") == "Walks"


def test_a_day_is_enough_for_a_date() -> None:
    assert read(nfo({"upload_date": "20240229"})).findtext("premiered") == "2024-02-29"
    assert read(nfo({"upload_date": "20230229"})).find("premiered") is None


def test_with_an_image_beside_the_video_nobody_asks_the_site_for_it() -> None:
    assert read(nfo(INFO, with_thumb=False)).find("thumb") is None


@pytest.mark.parametrize(
    "address",
    [LOCAL + "/etc/passwd", LOCAL + "host/share", "/etc/passwd", "javascript:x", "http:", 7],
)
def test_only_addresses_of_the_web_are_told(address: Any) -> None:
    root = read(nfo({"id": "1", "thumbnail": address, "webpage_url": address}))
    assert root.find("thumb") is None
    assert root.find("website") is None


def test_lengths_are_bounded() -> None:
    root = read(nfo({
        "title": "t" * 10**6, "description": "d" * 10**6, "tags": [str(n) for n in range(10**4)],
    }))  # fmt: skip
    assert len(root.findtext("title", "")) == MAX_LINE
    assert len(root.findtext("plot", "")) == MAX_TEXT
    assert len(root.findall("tag")) == MAX_WORDS


def test_signs_that_xml_does_not_know_are_left_out() -> None:
    assert read(nfo({"title": "a\0b\x1bc\ufffe\ud800d"})).findtext("title") == "abcd"


@given(infos, st.sampled_from(["movie", "episode"]), anything)
def test_it_is_well_formed_whatever_the_info_has(
    info: dict[str, Any], kind: Literal["movie", "episode"], show: Any
) -> None:
    root = read(nfo(info, kind=kind, show=show))
    assert root.findtext("title")
    assert len(list(root.iter())) == len(list(root)) + 1  # nothing has opened an element of its own


@given(st.text(max_size=60))
def test_every_text_comes_back_as_text(text: str) -> None:
    root = read(nfo({"title": "x", "description": text, "uploader": f"]]>{text}<!--"}))
    assert {each.tag for each in root} <= {"title", "plot", "studio"}


@given(infos)
def test_metadata_is_bounded_whatever_the_info_has(info: dict[str, Any]) -> None:
    known = Metadata.of(info)
    for text in (known.id, known.title, known.uploader, known.extractor):
        assert text is None or 0 < len(text) <= MAX_LINE
    assert known.published_at is None or abs(known.published_at) < 10**12
