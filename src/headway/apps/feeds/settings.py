"""What can be set for the feeds: `[feeds]` in the settings file, or HEADWAY_FEEDS_… ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from headway.api.settings_table import SettingsTable
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


SETTINGS = SettingsTable(TABLE, PREFIX, FeedSettings())


def feed_settings(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> FeedSettings:  # fmt: skip
    return SETTINGS.read(file, environment)
