"""The parts of the document beside `fairQueue`: who may come in, where the store is, who asks for
newer settings and where.
"""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from headway import __version__
from headway.api.fairqueue.keys import MAX_TEXT, Section, shown
from headway.errors import BadSettings

LISTEN = re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([^\s:/\[\]]*)):([0-9]{1,5})")
LEVELS = {"debug": "debug", "info": "info", "warn": "warning", "warning": "warning",
          "error": "error"}  # fmt: skip
HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PREFIX = re.compile(r"[\w./~-]*", re.ASCII)
OWN_STORE = "slots are kept in the store of this server"
CLEANUP_S = 1_800
TTL_S = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """The key that all clients share."""

    enabled: bool = False
    header: str = "X-FQ-Auth"
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    enabled: bool = True
    interval_s: float = CLEANUP_S
    ttl_s: float = TTL_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Where a controller is, and who we are: that is shown even if there is none."""

    url: str = ""
    prefix: str = "/api/v0"
    token: str = field(default="", repr=False)
    env: str = ""
    role: str = "slot-handler"
    instance_id: str = ""
    app_name: str = "slot-handler"
    app_version: str = __version__

    @property
    def enabled(self) -> bool:
        return bool(self.url and self.token)


def listen(top: Section) -> tuple[str | None, int | None]:
    text = top.text("listen")
    if not text:
        return None, None
    found = LISTEN.fullmatch(text)
    if found is None or int(found[3]) > 65_535:
        raise BadSettings(
            f'listen must be an address like ":8080", "127.0.0.1:8080" or "[::1]:8080", not '
            f"{shown(text)}"
        )
    return found[1] or found[2] or "0.0.0.0", int(found[3])


def log_level(top: Section) -> str | None:
    text = top.text("logLevel")
    if text and text.lower() not in LEVELS:
        top.note("logLevel", f"is debug, info, warn or error, not {shown(text)}; info is taken")
    return LEVELS.get(text.lower(), "info") if text else None


def auth(section: Section) -> Auth:
    found = Auth(
        enabled=section.flag("enabled", False),
        header=section.text("header", "X-FQ-Auth"),
        token=section.text("token"),
    )
    section.end()
    if found.enabled and not found.token:
        raise BadSettings("auth.token is empty while auth.enabled is true; set a token that the "
                          "clients send, or auth.enabled to false")  # fmt: skip
    if not HEADER.fullmatch(found.header):
        raise BadSettings(f"auth.header must be the name of a header, not {shown(found.header)}")
    return found


def dsn(section: Section) -> str | None:
    """The store, where the slot handler would have its tables."""
    mode = section.text("mode").lower()
    if mode not in ("", "postgrest", "postgres"):
        raise BadSettings(f"backend.mode must be postgrest or postgres, not {shown(mode)}")
    section.not_needed("postgrest", OWN_STORE)
    postgres = section.section("postgres")
    address = postgres.text("dsn")
    postgres.end()
    section.end()
    if mode != "postgres":
        section.not_needed("mode", OWN_STORE)
        if address:
            postgres.note("dsn", "is not used, since backend.mode is not postgres")
        return None
    if not address.startswith(("postgres://", "postgresql://")):
        raise BadSettings("backend.postgres.dsn must be an address like "
                          "postgresql://user:password@host:5432/database")  # fmt: skip
    return address


def cleanup(section: Section) -> Cleanup:
    interval_s = section.whole("intervalSeconds", CLEANUP_S, below_one=0)
    found = Cleanup(
        enabled=section.flag("enabled", True) and interval_s > 0,
        interval_s=float(interval_s or CLEANUP_S),
        ttl_s=float(section.whole("queueDepthZombieTtlSeconds", TTL_S, below_one=TTL_S)),
    )
    section.end()
    return found


# ---------------------------------------------------------------------- the controller


def controller(top: Section) -> ControllerSettings:
    """Its keys stand in `controller`, or flat at the top."""
    inner = top.section("controller")

    def name(key: str, missing: str = "") -> str:
        flat = top.name(key)  # each is asked for, so that both are known
        return inner.name(key) or flat or missing

    flat_url, flat_token = _url(top, "controllerUrl"), _token(top, "controllerToken",
                                                              "controllerApiToken")  # fmt: skip
    found = ControllerSettings(
        url=_url(inner, "url") or flat_url,
        prefix=_prefix(inner),
        token=_token(inner, "token", "apiToken") or flat_token,
        env=name("env"),
        role=name("role", "slot-handler"),
        instance_id=name("instanceId", header_text(f"{socket.gethostname()}-{os.getpid()}")),
        app_name=name("appName", "slot-handler"),
        app_version=name("appVersion", __version__),
    )
    inner.end()
    if found.url and not found.token:
        inner.note("token", "is not set, so no controller is asked")
    elif found.enabled and not found.env:
        inner.note("env", "is not set; most controllers need it")
    return found


def _url(section: Section, key: str) -> str:
    text = section.text(key)
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if text and (not good or set("@?#\\ ") & set(text) or not text.isprintable()):
        raise BadSettings(f"{section.path_of(key)} must be an address like "
                          "https://controller.example.com, without a password")  # fmt: skip
    return text.rstrip("/")


def _token(section: Section, key: str, other: str) -> str:
    first, second = section.name(key), section.name(other)
    return first or second


def _prefix(section: Section) -> str:
    text = section.text("apiPrefix", "/api/v0")
    if not PREFIX.fullmatch(text):
        raise BadSettings("controller.apiPrefix must be a path like /api/v0")
    return "/" + text.strip("/") if text.strip("/") else "/api/v0"


def header_text(text: str) -> str:
    """Text of others that will stand in a header."""
    return "".join(each if " " <= each <= "~" else "?" for each in text.strip()[:MAX_TEXT])
