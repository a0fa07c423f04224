"""What is sent about subscriptions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from headway.api.bodies import NO_NUL, WHOLE, Body, Moment, stamp
from headway.api.problems import Problem
from headway.apps.media.fetcher.filters import MAX_WORD, MAX_WORDS, Filters
from headway.apps.media.library.naming import MAX_TEMPLATE, Template
from headway.apps.media.model import (
    HOUR_S,
    LEAST_INTERVAL_S,
    MAX_TITLE,
    MOST_INTERVAL_S,
    QUALITIES,
)
from headway.engine.ledger import clean
from headway.errors import BadJob
from headway.net.urls import MAX_URL

MOST_DEPTH = 1_000_000
USUAL_INTERVAL_S = 6 * HOUR_S

Quality = Literal["best", "2160p", "1440p", "1080p", "720p", "480p", "360p", "audio"]
assert set(QUALITIES) == set(Quality.__args__)  # type: ignore[attr-defined]


def _interval(said: float) -> float:
    if said and not LEAST_INTERVAL_S <= said <= MOST_INTERVAL_S:
        raise ValueError(
            f"between two looks are {LEAST_INTERVAL_S:g} to {MOST_INTERVAL_S:g} seconds; "
            "0: only when somebody asks"
        )
    return said


Address = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL, pattern=NO_NUL)]
Title = Annotated[str, StringConstraints(max_length=MAX_TITLE, pattern=NO_NUL)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD, pattern=NO_NUL)]
Words = Annotated[list[Word], Field(max_length=MAX_WORDS)]
TemplateText = Annotated[str, StringConstraints(max_length=MAX_TEMPLATE, pattern=NO_NUL)]
Depth = Annotated[int, Field(ge=0, le=MOST_DEPTH), WHOLE]
Interval = Annotated[
    float, Field(ge=0, le=MOST_INTERVAL_S, allow_inf_nan=False), AfterValidator(_interval)
]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Views = Annotated[int, Field(ge=0, le=2**53 - 1), WHOLE]


class FiltersBody(Body):
    """Which videos are wanted. What is left out, or null, excludes nothing."""

    title_any: Words = Field(
        default_factory=list, description="The title has at least one of them, in any case."
    )
    title_none: Words = Field(
        default_factory=list, description="The title has none of them, in any case."
    )
    after: Moment | None = Field(None, description="Published then or later.")
    before: Moment | None = Field(None, description="Published earlier than that.")
    min_duration_s: Seconds | None = Field(None, description="Not shorter than this.")
    max_duration_s: Seconds | None = Field(None, description="Not longer than this.")
    min_views: Views | None = Field(None, description="Seen at least so often.")
    max_views: Views | None = Field(None, description="Seen at most so often.")


class SubscriptionBody(Body):
    """A collection, an uploader, or whatever else yt-dlp reads as a list. Only its address is
    needed.
    """

    url: Address = Field(description="Of the list: http or https.")
    title: Title | None = Field(None, description="Null: what the site calls it.")
    quality: Quality = Field("best", description="The best that is not above this.")
    filters: FiltersBody = Field(
        default_factory=FiltersBody,  # type: ignore[arg-type]
        description="Which videos are wanted.",
    )
    template: TemplateText = Field(
        "",
        description="How files are called, such as `{uploader}/{title} [{id}]`; empty: as usual.",
    )
    nfo: Literal["movie", "episode"] = Field(
        "movie", description="What media servers take each video for."
    )
    depth: Depth = Field(0, description="How many of the newest are wanted; 0: all.")
    interval_s: Interval = Field(
        USUAL_INTERVAL_S, description="Between two looks at the list; 0: only when somebody asks."
    )
    download: bool = Field(True, description="Whether what is found by itself is downloaded, too.")
    paused: bool = Field(False, description="Nothing is done for it.")
    start: bool = Field(True, description="Read the list at once.")


class SubscriptionChangeBody(Body):
    """What changes. All that is left out stays."""

    url: Address | None = Field(
        None, description="Only as it is: another address is another subscription."
    )
    title: Title | None = Field(None, description="Null: what the site calls it.")
    quality: Quality = Field("best", description="Of what is downloaded from now on.")
    filters: FiltersBody = Field(
        default_factory=FiltersBody,  # type: ignore[arg-type]
        description="All of them: they take the place of those that are there.",
    )
    template: TemplateText = Field("", description="For what is downloaded from now on.")
    nfo: Literal["movie", "episode"] = Field(
        "movie", description="What media servers take each video for."
    )
    depth: Depth = Field(
        0, description="How many of the newest are wanted; further back from the next look on."
    )
    interval_s: Interval = Field(USUAL_INTERVAL_S, description="Between two looks at the list.")
    download: bool = Field(True, description="Whether what is found by itself is downloaded, too.")
    paused: bool = Field(False, description="Nothing is done for it; what runs goes on to its end.")


class Lenient(BaseModel):
    """Clients of older servers send more than we know, which is left alone."""

    model_config = ConfigDict(extra="ignore", strict=True)


class RefreshBody(Lenient):
    """How to read the list."""

    full: bool = Field(False, description="To its end, and not only until something is known.")


class DownloadBody(Lenient):
    """What to download."""

    use_cache_only: bool = Field(
        False, description="What was found earlier, without looking at the list again."
    )


class CollectionBody(Lenient):
    """An address that somebody thinks of subscribing to."""

    url: Address = Field(description="http or https.")
    requires_cookie: bool = Field(False, description="Look as somebody who is known there.")
    sync: bool = Field(False, description="Wait for the answer.")


# ---------------------------------------------------------------------- as it is kept


def kept(body: SubscriptionBody | SubscriptionChangeBody, only: set[str]) -> dict[str, Any]:
    """Columns of what was sent. Problem: says what is wrong with it."""
    found: dict[str, Any] = {}
    for name in only:
        said = getattr(body, name)
        match name:
            case "title":
                said = " ".join(clean(said or "").split())[:MAX_TITLE] or None
            case "filters":
                said = filters_text(said)
            case "template":
                said = _template(said)
            case "download" | "paused":
                said = int(said)
            case "interval_s":
                said = float(said)
        found[name] = said
    return found


def filters_text(body: FiltersBody) -> str:
    said = {name: value for name in body.model_fields_set
            if (value := getattr(body, name)) is not None}  # fmt: skip
    try:
        for name in ("after", "before"):
            if name in said:
                said[name] = stamp(said[name])
        return msgspec.json.encode(Filters.from_dict(said).to_dict()).decode()
    except (BadJob, ValueError) as error:
        raise wrong("filters", str(error)) from error


def _template(text: str) -> str:
    if text:
        try:
            Template.parse(text)
        except ValueError as error:
            raise wrong("template", str(error)) from error
    return text


def wrong(where: str, what: str) -> Problem:
    errors = [{"where": f"body.{where}", "what": what}]
    return Problem(422, f"body.{where}: {what}", kind="bad-subscription", errors=errors)
