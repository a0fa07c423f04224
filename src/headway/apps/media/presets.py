"""What is known about sites: how they want to be treated, and what they are called.

All hosts of a site are one upstream, so its pace and its cool-downs hold for all of them. A site
that nobody has written down here is treated carefully.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from headway.net.urls import host_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    name: str
    domains: tuple[str, ...] = ()
    pace: dict[str, Any] = field(default_factory=dict)  # settings of its upstream
    referer: str | None = None
    sleep_s: float = 0.5  # between the requests of one extraction
    needs_account: bool = False  # to download; without one, downloads wait for it
    check_url: str | None = None  # where a cookie can be tried


GENERIC = Preset(name="generic", pace={"every": "2s", "jitter": 0.5, "ban": "5m"})

# 412 is its risk control: the address is left alone for ten minutes. Anonymous callers see little,
# and soon nothing.
BILIBILI = Preset(
    name="bilibili",
    domains=("bilibili.com", "b23.tv", "biliapi.net"),
    pace={"every": "5s", "jitter": 0.5, "hold": "30s", "max_hold": "30m", "ban": "10m"},
    referer="https://www.bilibili.com/",
    sleep_s=1.0,
    needs_account=True,
    check_url="https://api.bilibili.com/x/web-interface/nav",
)

PRESETS = (BILIBILI, GENERIC)


def preset_for(url: str) -> Preset:
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    for preset in PRESETS:
        if any(is_of(host, domain) for domain in preset.domains):
            return preset
    return GENERIC


def preset_of_site(site: str) -> Preset:
    """The one that a site is called after, or was found by."""
    return next((each for each in PRESETS if site in each.domains), GENERIC)


def site_of(url: str) -> str:
    """The name of the upstream that a request to this address counts for."""
    preset = preset_for(url)
    return preset.domains[0] if preset.domains else host_of(url)


def is_of(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def account_site(site: str) -> str:
    """Cookies know no ports."""
    host, _, port = site.rpartition(":")
    return host if host and port.isdecimal() else site
