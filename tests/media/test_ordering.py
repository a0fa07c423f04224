"""What goes into an order: who we say we are, which formats, which arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yt_dlp import YoutubeDL

from headway.apps.media.fetcher.filters import Filters
from headway.apps.media.fetcher.protocol import Known, Order, Task
from headway.apps.media.ordering import (
    QUALITIES,
    USER_AGENTS,
    UserAgents,
    formats_for,
    parse_extractor_args,
)

# --- who we say we are


@given(st.integers(0, 10**9), st.sampled_from([None, "mobile", "alt"]))
def test_with_a_cookie_it_is_always_the_same(number: int, profile: str | None) -> None:
    chosen = UserAgents().choose(with_cookie=True, profile=profile, number=number)
    assert chosen == USER_AGENTS["desktop"]


def test_without_a_cookie_it_goes_round() -> None:
    agents = UserAgents(["desktop", " mobile ", "desktop"])
    seen = [agents.choose(with_cookie=False, number=number) for number in range(4)]
    assert seen == [USER_AGENTS["desktop"], USER_AGENTS["mobile"]] * 2


def test_the_wish_of_a_job_wins_also_for_a_profile_that_is_off() -> None:
    agents = UserAgents(("desktop",))
    assert agents.choose(with_cookie=False, profile="alt") == USER_AGENTS["alt"]


def test_a_profile_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"tablet.*desktop, mobile, alt"):
        UserAgents(("tablet",))
    with pytest.raises(ValueError, match="tablet"):
        UserAgents().choose(with_cookie=False, profile="tablet")


# --- formats, chosen by yt-dlp itself


def offered(*heights: int, separate: bool = False) -> dict[str, Any]:
    """As yt-dlp sorts them: the worst first."""
    found = [
        {"format_id": f"{height}", "height": height, "ext": "mp4", "url": "http://a.test",
         "vcodec": "avc1", "acodec": "none" if separate else "aac", "protocol": "http"}
        for height in sorted(heights)
    ]  # fmt: skip
    if separate:
        found.insert(0, {"format_id": "sound", "ext": "m4a", "url": "http://a.test",
                         "vcodec": "none", "acodec": "aac", "protocol": "http"})  # fmt: skip
    return {"formats": found, "has_merged_format": not separate, "incomplete_formats": False}


def chosen(quality: str, has_ffmpeg: bool, formats: dict[str, Any]) -> str | None:
    with YoutubeDL({"quiet": True}, auto_init=False) as ydl:
        for selector in formats_for(quality, has_ffmpeg):
            for found in ydl.build_format_selector(selector)(formats):
                return str(found["format_id"])
    return None


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("has_ffmpeg", [True, False])
def test_every_quality_is_understood_and_gets_something(quality: str, has_ffmpeg: bool) -> None:
    assert chosen(quality, has_ffmpeg, offered(360, 1080, 2160)) is not None


@pytest.mark.parametrize("has_ffmpeg", [True, False])
@pytest.mark.parametrize(
    ("quality", "height"),
    [("best", "2160"), ("2160p", "2160"), ("1440p", "1080"), ("1080p", "1080"), ("720p", "480"),
     ("480p", "480"), ("360p", "480")],
)  # fmt: skip
def test_the_nearest_from_below_is_taken_or_else_the_lowest(
    quality: str, height: str, has_ffmpeg: bool
) -> None:
    assert chosen(quality, has_ffmpeg, offered(480, 1080, 2160)) == height


def test_picture_and_sound_are_merged_only_with_ffmpeg() -> None:
    separate = offered(480, 1080, separate=True)
    assert chosen("720p", True, separate) == "480+sound"
    assert chosen("360p", True, separate) == "480+sound"
    assert chosen("720p", False, separate) is None
    assert chosen("audio", False, separate) == "sound"
    assert chosen("audio", False, offered(480)) == "480"


def test_a_quality_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"8k.*best, 2160p"):
        formats_for("8k", True)


# --- arguments for extractors


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("", {}),
        ("youtube:lang=en,de", {"youtube": {"lang": ["en", "de"]}}),
        ("youtube:lang=en;skip=dash bilibili:try-look=1",
         {"youtube": {"lang": ["en"], "skip": ["dash"]}, "bilibili": {"try_look": ["1"]}}),
        ("Generic:impersonate", {"generic": {"impersonate": [""]}}),
        ("a:x=1 a:y=2", {"a": {"x": ["1"], "y": ["2"]}}),
    ],
)  # fmt: skip
def test_arguments_are_read_in_the_notation_of_yt_dlp(text: str, args: object) -> None:
    assert parse_extractor_args(text) == args


@pytest.mark.parametrize("text", ["youtube", "youtube:", ":a=b", "a:=b", "a:b c=1=2", "--exec rm"])
def test_arguments_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_extractor_args(text)


# --- orders


def test_an_order_survives_its_way_to_the_program() -> None:
    made = Order(
        task=Task.DOWNLOAD, url="https://a.test/\u00e9\ud800", user_agent="x", directory="d",
        extractor_args={"a": {"b": ["c"]}}, allowed=("10.0.0.0/8",), formats=("b", "w"),
        filters=Filters(title_any=("x",), after=3), known=Known(title="t", views=4),
    )  # fmt: skip
    assert Order.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    "more",
    [
        {"url": "file:" + "//localhost/etc/passwd"}, {"url": "ytsearch:cats"}, {"url": "-x"},
        {"url": "https:///x"}, {"url": "https://a.test/" + "x" * 5_000}, {"most": 0},
        {"start": -1}, {"sleep_s": float("nan")}, {"task": "format"}, {"task": Task.DOWNLOAD},
    ],
)  # fmt: skip
def test_an_order_that_makes_no_sense_cannot_be_made(more: dict[str, Any]) -> None:
    usual = {"task": Task.LIST, "url": "https://a.test", "user_agent": "x"}
    with pytest.raises(ValueError):  # noqa: PT011
        Order(**usual | more)
