"""What can be set for the feeds: `[feeds]` in the settings file, or HEADWAY_FEEDS_… ."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from headway.apps.feeds.fetching_answers import Introduction
from headway.errors import BadSettings

TABLE = "feeds"
PREFIX = "HEADWAY_FEEDS_"


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSettings:
    home: str = ""  # a page about this reader, for the User-Agent
    contact: str = ""  # somebody to write to, likewise
    at_once: int = 32  # visits under way
    parsers: int = 3  # processes
    keep_days: float = 90.0  # what is read and not starred; 0: for ever
    max_feeds: int = 10_000  # subscriptions of one tenant

    def introduction(self) -> Introduction:
        return Introduction(self.home, self.contact)

    def check(self) -> None:
        self.introduction()
        for name in ("at_once", "parsers", "max_feeds"):
            if getattr(self, name) < 1:
                raise BadSettings(f"{name} of [feeds] must be 1 or more")
        if not 0 <= self.keep_days < 36_500:
            raise BadSettings("keep_days of [feeds] is a number of days; 0 keeps all for ever")


def feed_settings(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> FeedSettings:  # fmt: skip
    """The environment goes before the file."""
    known = {field.name for field in fields(FeedSettings)}
    said: dict[str, Any] = {}
    if file is not None:
        try:
            said = dict(tomllib.loads(Path(file).read_text("utf-8")).get(TABLE, {}))
        except (OSError, tomllib.TOMLDecodeError, TypeError, ValueError) as error:
            raise BadSettings(f"[feeds] in {file} cannot be read: {error}") from error
    unknown = sorted(set(said) - known)
    if unknown:
        raise BadSettings(
            f"[feeds] has no {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    for name in known:
        if PREFIX + name.upper() in environment:
            said[name] = environment[PREFIX + name.upper()]
    settings = FeedSettings()
    for name, value in said.items():
        kind = type(getattr(settings, name))
        try:
            settings = replace(settings, **{name: kind(value)})
        except (TypeError, ValueError):
            raise BadSettings(f"{name} of [feeds] is a {kind.__name__}, not {value!r}") from None
    settings.check()
    return settings
