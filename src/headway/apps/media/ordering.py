"""What goes into an order beside its address: who we say we are, which formats, which arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence

# One for each kind of visitor. With a cookie it is always the first: a browser does not change
# while somebody is logged in.
USER_AGENTS = {
    "desktop": (
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/142.0.0.0 Safari/537.36"
    ),
    "mobile": (
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 "
        "(KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1"
    ),
    "alt": "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
}
WITH_A_COOKIE = "desktop"

HEIGHTS = (2160, 1440, 1080, 720, 480, 360)
QUALITIES = ("best", *(f"{height}p" for height in HEIGHTS), "audio")

ARGUMENTS = re.compile(r"[A-Za-z0-9_+:.-]+:[^\s]+")
KEY = re.compile(r"[A-Za-z0-9_-]+")


class UserAgents:
    """Chooses one for a job. `profiles` are those that strangers go round by."""

    def __init__(self, profiles: Sequence[str] = ("desktop", "mobile")) -> None:
        named = [profile.strip() for profile in profiles if profile.strip()]
        for profile in named:
            _check_profile(profile)
        self._profiles = tuple(dict.fromkeys(named)) or (WITH_A_COOKIE,)

    def choose(self, *, with_cookie: bool, profile: str | None = None, number: int = 0) -> str:
        """`profile` is the job's own wish, `number` anything that differs between jobs."""
        if with_cookie:
            return USER_AGENTS[WITH_A_COOKIE]
        if profile is None:
            profile = self._profiles[number % len(self._profiles)]
        _check_profile(profile)
        return USER_AGENTS[profile]


def _check_profile(profile: str) -> None:
    if profile not in USER_AGENTS:
        raise ValueError(f"there is no profile {profile!r}; choose from {', '.join(USER_AGENTS)}")


def formats_for(quality: str, has_ffmpeg: bool) -> tuple[str, ...]:
    """yt-dlp's selectors for a quality: the highest that is not above it, then the nearest above.
    Without ffmpeg only files that need no merging; a picture without its sound is never taken.
    """
    if quality not in QUALITIES:
        raise ValueError(f"there is no quality {quality!r}; choose from {', '.join(QUALITIES)}")
    if quality == "audio":
        return ("ba", "b")
    if quality == "best":
        return ("bv*+ba", "b") if has_ffmpeg else ("b",)
    # The question mark lets files pass of which the site does not say how high they are. If all are
    # higher, the lowest is the nearest.
    most = f"[height<=?{quality.removesuffix('p')}]"
    if has_ffmpeg:
        return (f"bv*{most}+ba", f"b{most}", "wv*+ba", "w", "b")
    return (f"b{most}", "w", "b")


def parse_extractor_args(text: str) -> dict[str, dict[str, list[str]]]:
    """Arguments for extractors in yt-dlp's own notation, `youtube:lang=en,de;skip=dash`, several of
    them with spaces between.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for word in text.split():
        if ARGUMENTS.fullmatch(word) is None:
            raise ValueError(
                f"{word!r} is no argument for an extractor; write EXTRACTOR:KEY=VALUE,VALUE;KEY=…"
            )
        name, _, rest = word.partition(":")
        args = found.setdefault(name.lower(), {})
        for each in filter(None, rest.split(";")):
            key, equals, values = each.partition("=")
            if KEY.fullmatch(key) is None:
                raise ValueError(f"{each!r} in {word!r} has no key; write KEY=VALUE,VALUE")
            args[key.lower().replace("-", "_")] = values.split(",") if equals else [""]
    return found
