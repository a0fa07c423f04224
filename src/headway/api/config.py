"""What a server is told when it starts: the command line, then the environment, then its file."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from headway.api.fairqueue.config import is_fairqueue_config, load
from headway.api.settings_table import SettingsTable
from headway.engine.engine import LEADER_LEASE_S
from headway.errors import BadSettings
from headway.net.addresses import Allowed

MIN_SECRET = 32  # characters of a secret that signs; a shorter one can be guessed
PREFIX = "HEADWAY_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything a server can be told. The same names stand in [server] of its file, and in
    capitals behind HEADWAY_ in the environment.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    data: str = "headway-data"
    dsn: str = ""  # a PostgreSQL address; empty: SQLite in `data`
    fairqueue: str = ""  # a config.json of the fair queue
    auth: str = "auto"  # "auto": loopback needs no token; "required": everybody does
    allowed_hosts: tuple[str, ...] = ()  # names besides localhost by which it may be called
    allowed_origins: tuple[str, ...] = ()  # pages of other servers that may call it
    outbound_allow: tuple[str, ...] = ()  # own networks and hosts that users may have called
    advertise: str = ""  # where the other servers of its store reach it; empty: where it listens
    leader_lease_s: float = LEADER_LEASE_S  # how long it leads without a word to the store
    trusted_proxies: str = ""  # addresses whose X-Forwarded-* headers are believed
    jwt_secret: str = ""
    jwks: str = ""  # where the keys of signed tokens are: an https address or a file
    jwt_audience: str = ""
    jwt_issuer: str = ""
    log_format: str = "auto"
    log_level: str = "info"
    lease_s: float = 90.0
    drain_s: float = 30.0
    max_body: int = 8_388_608
    max_file: int = 209_715_200  # bytes of an upload, which is read as it comes
    max_headers: int = 32_768
    max_depth: int = 64  # of JSON
    max_payload: int = 1_048_576
    max_clients: int = 1_000  # that listen to events
    slow_client_s: float = 20.0  # a client that does not take a message for so long is dropped
    max_takers: int = 1_000  # workers that wait for work
    max_slot_waiters: int = 5_000  # requests that wait for a slot
    max_connections: int = 10_000
    request_s: float = 60.0  # for a client to send a whole request
    max_requests: int = 2_000  # that are answered at the same time, apart from these
    max_open_per_tenant: int = 1_000_000  # jobs that have not ended
    threads: int = 16
    celery_broker: str = ""  # its address; empty: no Celery fleet works for this server
    celery_claim_s: float = 30.0  # for a Celery worker to begin what was sent to it
    completed_days: float = 7.0
    failed_days: float = 30.0

    @property
    def url(self) -> str:
        """Of the store."""
        return self.dsn or f"sqlite:///{Path(self.data) / 'headway.db'}"

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def open(self) -> bool:
        """Whether whoever reaches the server may use it. Through a proxy, anybody could."""
        return self.on_loopback and self.auth != "required" and not self.trusted_proxies

    @property
    def signed_tokens(self) -> bool:
        return bool(self.jwt_secret or self.jwks)

    def check(self) -> None:
        """Refuse what cannot work, or would not be safe."""
        if self.auth not in ("auto", "required"):
            raise BadSettings(f"auth is auto or required, not {self.auth!r}")
        if self.log_format not in ("auto", "json", "text"):
            raise BadSettings(f"log_format is auto, json or text, not {self.log_format!r}")
        if self.log_level.lower() not in ("debug", "info", "warning", "error"):
            raise BadSettings(f"log_level is debug, info, warning or error, not {self.log_level!r}")
        if not 0 <= self.port < 65_536:
            raise BadSettings(f"{self.port} is no port; name one from 1 to 65535, or 0 for any")
        if self.jwt_secret and len(self.jwt_secret) < MIN_SECRET:
            raise BadSettings(f"jwt_secret needs at least {MIN_SECRET} characters")
        if self.jwt_secret and self.jwks:
            raise BadSettings("jwt_secret and jwks say the same thing; set one of them")
        if self.jwks.startswith("http://") and not is_loopback(_host_of(self.jwks)):
            raise BadSettings("jwks must be an https address: whoever can change the keys gets in")
        Allowed(self.outbound_allow)
        if not self.lease_s >= 1:
            raise BadSettings(f"lease_s is at least 1 second, not {self.lease_s!r}")
        if not 0.5 <= self.leader_lease_s <= 60:
            raise BadSettings("leader_lease_s is from 0.5 to 60 seconds, not "
                              f"{self.leader_lease_s!r}")  # fmt: skip
        if self.advertise and not re.fullmatch(r"https?://[^/\s?#@]+", self.advertise):
            raise BadSettings("advertise is the address of this server alone, such as "
                              f"http://10.0.0.5:8000, not {self.advertise!r}")  # fmt: skip
        if not self.request_s > 0:
            raise BadSettings(f"request_s is a time above 0 seconds, not {self.request_s!r}")
        if not self.celery_claim_s > 0:
            raise BadSettings(f"celery_claim_s is a time above 0 s, not {self.celery_claim_s!r}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.startswith("max_") and not value >= 1:
                raise BadSettings(f"{field.name} must be 1 or more, not {value!r}")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _host_of(url: str) -> str:
    return url.partition("://")[2].partition("/")[0].partition(":")[0]


SETTINGS = SettingsTable("server", PREFIX, Config())


def read(file: str | None, environment: Mapping[str, str] = os.environ, **said: Any) -> Config:
    """`said` is what the command line names; None: it does not."""
    named = {
        name: SETTINGS.typed(name, value, f"{name} on the command line")
        for name, value in said.items()
        if value is not None
    }
    return SETTINGS.filled(_from_file(file) | SETTINGS.in_environment(environment) | named)


def said_by(name: str, file: str | None, environment: Mapping[str, str]) -> str:
    """Which layer a setting comes from that the command line cannot name."""
    if PREFIX + name.upper() in environment:
        return "environment"
    return "file" if name in _from_file(file) else "code"


def _from_file(file: str | None) -> dict[str, Any]:
    if file is not None and is_fairqueue_config(file):
        return _from_fairqueue(file)
    return SETTINGS.in_file(file)


def _from_fairqueue(file: str) -> dict[str, Any]:
    """The config.json of a slot handler says where to listen, too."""
    found = load(file)
    said = {"host": found.host, "port": found.port, "log_level": found.log_level, "dsn": found.dsn}
    return {"fairqueue": file, **{name: value for name, value in said.items() if value is not None}}
