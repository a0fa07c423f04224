"""Where a server is, and with which token to come."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

from headway.errors import StoreError

TOKEN = "HEADWAY_TOKEN"  # where it is in the environment


def is_server(url: str) -> bool:
    """Whether an address names a server, and not a store."""
    return url.lower().startswith(("http://", "https://"))


def checked_address(url: str) -> str:
    """`http://host:8000`, `https://host/path`. Without a slash at its end."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise StoreError(f"{url!r} is no address of a server; {EXAMPLE}") from None
    if "@" in parts.netloc:  # it may have a password in it, which is not shown
        raise StoreError(f"a server's address has no user and no password; {EXAMPLE}")
    if not is_server(url) or not host or parts.query or parts.fragment:
        raise StoreError(f"{url!r} is no address of a server; {EXAMPLE}")
    return url.rstrip("/")


def checked_addresses(urls: str) -> tuple[str, ...]:
    """Of one server, or of several that share a store: `http://a:8000,http://b:8000`."""
    found = tuple(checked_address(each.strip()) for each in urls.split(","))
    if len({each.lower().startswith("https:") for each in found}) > 1:
        raise StoreError(f"all servers are called with https, or none; {EXAMPLE}")
    return found


EXAMPLE = (
    "write http://host:8000, or several with commas between, and give the token as token=… or in "
    f"{TOKEN}"
)


def checked_token(token: str | None) -> str:
    """The token that was given, or that of the environment; empty: none."""
    found = (token if token is not None else os.environ.get(TOKEN, "")).strip()
    if not all("!" <= each <= "~" for each in found):
        raise StoreError(f"the token is damaged; {EXAMPLE}")
    return found


def on_loopback(url: str) -> bool:
    """Whether it is on this machine, so that no proxy leads there."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
