"""What can be set for the archive: `[media]` in the settings file, HEADWAY_MEDIA_… in the
environment, and the variables that its predecessors had.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Any

from headway.api.settings_table import SettingsTable
from headway.errors import BadSettings

TABLE = "media"
PREFIX = "HEADWAY_MEDIA_"
MB = 1_000_000

# The variables of the predecessors, and what they are called here.
KNOWN_AS = {
    "UA_PROFILES": "ua_profiles",
    "YT_DLP_EXTRACTOR_ARGS": "extractor_args",
    "LIST_MAX_CHUNKS": "list_max_chunks",
    "LIST_FETCH_CMD_TIMEOUT": "list_timeout_s",
    "DOWNLOAD_CMD_TIMEOUT": "download_timeout_s",
    "META_CMD_TIMEOUT": "meta_timeout_s",
    "EXPECTED_TOTAL_TIMEOUT": "count_timeout_s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaSettings:
    on: str = "auto"  # yes, no, or auto: if yt-dlp is installed
    library: str = ""  # where the files go; empty: `archive` in the data directory
    template: str = ""  # names of files; empty: the usual one
    min_free_mb: int = 1_024  # that stay free where the library is
    python: str = ""  # an interpreter with another yt-dlp; empty: that of the server
    at_once: int = 1  # programs of yt-dlp that run at the same time
    memory_mb: int = 1_000  # that one of them may use
    rate_kb: int = 0  # a second that one of them downloads at most; 0: as fast as it comes
    ua_profiles: str = "desktop,mobile"  # which take turns without a cookie
    extractor_args: str = ""  # as yt-dlp takes them: "youtube:lang=de other:key=value"
    list_max_chunks: int = 200  # pages of a hundred that a list may have
    list_timeout_s: float = 120.0
    download_timeout_s: float = 1_800.0
    meta_timeout_s: float = 60.0
    count_timeout_s: float = 30.0
    count_fresh_s: float = 3_600.0  # for how long a count is as good as new
    full_every_days: float = 7.0  # after which a list is read to its end again
    max_subscriptions: int = 1_000  # of one tenant
    notify_url: str = ""  # who is told that a cookie has expired
    notify_secret: str = ""  # with which that is signed

    @property
    def is_on(self) -> bool:
        if self.on == "auto":
            return bool(self.python) or find_spec("yt_dlp") is not None
        return self.on == "yes"

    def check(self) -> None:
        if self.on not in ("auto", "yes", "no"):
            raise BadSettings(f"on of [media] is auto, yes or no, not {self.on!r}")
        least = {"min_free_mb": 0, "rate_kb": 0, "full_every_days": 0.04}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, str):
                continue
            bound = least.get(field.name, 1)
            if not bound <= value < 1e9:
                raise BadSettings(f"{field.name} of [media] must be {bound} or more, not {value!r}")


def _on(value: Any) -> str:
    """Words for yes and no that other programs take, besides our own."""
    said = str(value).lower()
    return {"true": "yes", "1": "yes", "false": "no", "0": "no"}.get(said, str(value))


SETTINGS = SettingsTable(TABLE, PREFIX, MediaSettings(), own={"on": _on})


def media_settings(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> MediaSettings:  # fmt: skip
    """The environment goes before the file, and our own variables before those of others."""
    from_others = {
        name: SETTINGS.typed(name, environment[variable], variable)
        for variable, name in KNOWN_AS.items()
        if environment.get(variable)
    }
    return SETTINGS.filled(
        SETTINGS.in_file(file) | from_others | SETTINGS.in_environment(environment)
    )
