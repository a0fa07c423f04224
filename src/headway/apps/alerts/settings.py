"""What can be set for alerts: `[alerts]` in the settings file, HEADWAY_ALERTS_… in the
environment, which goes before it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from headway.api.attention import ORDER, Level
from headway.api.settings_table import SettingsTable
from headway.core.recurrence import duration_s
from headway.errors import BadSettings
from headway.net.addresses import Allowed
from headway.net.outbound import Refused, check_url
from headway.net.redaction import SECRETS
from headway.net.webhooks import check_secret

TABLE = "alerts"
PREFIX = "HEADWAY_ALERTS_"
MOST_RECEIVERS = 10
ANYWHERE = Allowed(("0.0.0.0/0", "::/0"))
LONG = 12  # characters of a path that may have a token in it


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings:
    url: tuple[str, ...] = ()  # who is told; one, or several
    secret: str = ""  # with which messages are signed; empty: they are not
    kinds: tuple[str, ...] = ()  # such as upstream_closed, or disk_*; empty: all
    min_level: str = "warn"  # bad, warn or info
    repeat_after: str = "1d"  # what goes on for so long is told again; "off": once is enough
    per_minute: int = 10  # messages to one receiver; more are one summary
    look_every: str = "5s"
    calm_after: str = "30s"  # what was not seen for so long has ended

    def wants(self, kind: str, level: str, of: Sequence[str] = ()) -> bool:
        """`of`: the kinds of those that it stands for; who wants one of them wants all at once."""
        loud = ORDER.index(Level(level)) <= ORDER.index(Level(self.min_level))
        named = any(fnmatchcase(one, each) for one in (kind, *of) for each in self.kinds)
        return loud and (not self.kinds or named)

    @property
    def repeat_s(self) -> float:
        return float("inf") if self.repeat_after == "off" else duration_s(self.repeat_after)

    @property
    def look_s(self) -> float:
        return duration_s(self.look_every)

    @property
    def calm_s(self) -> float:
        return duration_s(self.calm_after)

    def check(self) -> None:
        """Whether a receiver may be called is seen when it is: a command that only looks at the
        store does not know what a server is allowed.
        """
        if self.min_level not in tuple(Level):
            raise BadSettings(f"min_level of [alerts] is bad, warn or info, not {self.min_level!r}")
        if not 1 <= self.per_minute <= 1_000:
            raise BadSettings(f"per_minute of [alerts] is from 1 to 1000, not {self.per_minute!r}")
        for name in ("repeat_after", "look_every", "calm_after"):
            value = getattr(self, name)
            try:
                known = (name == "repeat_after" and value == "off") or duration_s(value) > 0
            except (ValueError, TypeError):
                known = False
            if not known:
                raise BadSettings(f"{name} of [alerts] is a time such as 30s or 1d, not {value!r}")
        if len(self.url) > MOST_RECEIVERS:
            raise BadSettings(f"[alerts] tells {MOST_RECEIVERS} receivers at most")
        for number, url in enumerate(self.url, start=1):
            try:
                check_url(url, ANYWHERE)
            except Refused as error:
                raise BadSettings(f"url {number} of [alerts]: {error}") from None
        try:
            if self.secret:
                check_secret(self.secret)
        except ValueError as error:
            raise BadSettings(f"secret of [alerts] cannot be used: {error}") from None


SETTINGS = SettingsTable(TABLE, PREFIX, AlertSettings())


def alert_settings(
    file: str | None, environment: Mapping[str, str] = os.environ
) -> AlertSettings:  # fmt: skip
    settings = SETTINGS.read(file, environment)
    SECRETS.add(settings.secret)
    for url in settings.url:  # a token may be in it; a short word would be hidden everywhere
        path = url.partition("://")[2].partition("/")[2]
        if len(path) >= LONG:
            SECRETS.add(path)
    return settings
