"""What is sent about feeds."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
)

from headway.api.bodies import NO_NUL, WHOLE
from headway.apps.feeds.parsing.text import MAX_NAME
from headway.net.urls import MAX_URL

AT_ONCE = 1_000  # feeds that one request adds
LEAST, MOST = 1, 10_080  # minutes

# It stands in addresses, so there is nothing in it that would have to be written otherwise there.
PLAIN = r"^[A-Za-z0-9_-][A-Za-z0-9._~:@-]*$"


def _plain(said: str) -> str:
    if not re.fullmatch(PLAIN, said):
        raise ValueError("an id has letters, digits, and . _ ~ : @ - between them")
    return said


Name = Annotated[
    str,
    StringConstraints(max_length=200),
    AfterValidator(_plain),
    Field(json_schema_extra={"pattern": PLAIN}),
]
Number = Annotated[int, Field(ge=0, lt=2**53), WHOLE]
FeedId = Annotated[
    Annotated[Name, Tag("name")] | Annotated[Number, Tag("number")],
    Discriminator(lambda value: "number" if isinstance(value, int | float) else "name"),
]
Address = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL, pattern=NO_NUL)]
Title = Annotated[str, StringConstraints(max_length=MAX_NAME, pattern=NO_NUL)]
Folder = Annotated[str, StringConstraints(max_length=1_000, pattern=NO_NUL)]
Minutes = Annotated[int, Field(ge=LEAST, le=MOST), WHOLE]


class Lenient(BaseModel):
    """Clients send more than we know, which is left alone; what we know has to be right."""

    model_config = ConfigDict(extra="ignore", strict=True)


class FeedBody(Lenient):
    """A feed to subscribe to. Only its address is needed."""

    id: FeedId | None = Field(None, description="What you call it; null: a new name is made up.")
    url: Address = Field(description="Of the feed itself: http or https.")
    title: Title | None = Field(None, description="Null: what the feed calls itself.")
    folder: Folder | None = Field(
        None, description="Names that lead to it, with a slash between; null: in none."
    )
    refresh_interval: Minutes = Field(30, description="Minutes between two visits.")
    adaptive: bool = Field(False, description="Let the interval follow how often it changes.")
    paused: bool = Field(False, description="Do not fetch it yet.")


def _one_or_more(value: Any) -> str:
    return "list" if isinstance(value, list) else "feed"


Feeds = Annotated[
    Annotated[FeedBody, Tag("feed")]
    | Annotated[list[FeedBody], Tag("list"), Field(min_length=1, max_length=AT_ONCE)],
    Discriminator(_one_or_more),
]


class FeedChangeBody(Lenient):
    """What changes. All that is left out stays."""

    url: Address = Field("", description="Another address; what was read stays read.")
    title: Title | None = Field(None, description="Null: what the feed calls itself.")
    folder: Folder | None = Field(None, description="Null: in none.")
    refresh_interval: Minutes = Field(30, description="Minutes between two visits.")
    adaptive: bool = Field(False, description="Let the interval follow how often it changes.")
    paused: bool = Field(False, description="Leave it alone for now.")


class NamedFeedChangeBody(FeedChangeBody):
    """What changes of which feed. All that is left out stays."""

    id: FeedId = Field(description="The feed.")
