"""Addresses as people write them: one way of writing each, and the host that it counts for."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx2

MAX_URL = 2_000  # characters of an address


def plain_url(url: str) -> str:
    """The same address in one way of writing it, so that two tenants share what they both read.

    ValueError: it is none.
    """
    try:
        parsed = httpx2.URL(url.strip()).copy_with(fragment=None)
    except httpx2.InvalidURL as error:
        raise ValueError("this is no address; write it as https://host/path") from error
    text = str(parsed)
    named = all(parsed.host.removesuffix(".").split("."))  # each part of the name has letters
    if parsed.scheme not in ("http", "https") or not named or len(text) > MAX_URL:
        raise ValueError(
            f"write the address as https://host/path, with at most {MAX_URL} characters"
        )
    return text


def host_of(url: str) -> str:
    """The domain that a request to this address counts for. `www.` in front of it is the same."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".").removeprefix("www.")
    default = {"http": 80, "https": 443}.get(parts.scheme)
    return host if parts.port in (None, default) else f"{host}:{parts.port}"
