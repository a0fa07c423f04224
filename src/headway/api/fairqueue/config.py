"""The `config.json` of the slot handler that this service takes the place of, as it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headway.api.fairqueue import parts
from headway.api.fairqueue.keys import Section, kind_of
from headway.api.fairqueue.merging import OURS, laid_over, lifted
from headway.api.fairqueue.parts import Auth, Cleanup, ControllerSettings
from headway.api.fairqueue.profiles import (
    BUILT_IN,
    WAKES,
    Profile,
    behind,
    profile_of,
    read_knobs,
    read_profiles,
)
from headway.errors import BadSettings

MAX_SESSIONS = 10_000
SNIFFED = 4_096  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FairQueueConfig:
    host: str | None = None  # None: the server's own default holds
    port: int | None = None
    log_level: str | None = None
    dsn: str | None = field(default=None, repr=False)  # None: the server's own store
    auth: Auth = field(default_factory=Auth)
    internal_api_token: str = field(default="", repr=False)  # empty: there is no internal API
    controller: ControllerSettings = field(default_factory=ControllerSettings)
    config_version: str = "local"
    max_sessions: int = MAX_SESSIONS  # beyond it the answer is `overloaded`
    cleanup: Cleanup = field(default_factory=Cleanup)
    base: Profile  # for all hosts that no pattern names
    profiles: Mapping[str, Profile] = field(default_factory=dict)  # by pattern
    notes: tuple[str, ...] = ()  # what had no effect, a sentence each
    document: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def profile(self, hostname: str) -> Profile:
        return behind(self.profiles, hostname) or self.base

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be hidden wherever it would appear."""
        found = (self.auth.token, self.internal_api_token, self.controller.token)
        return tuple(secret for secret in found if secret)

    def updated(self, slot_handler: Mapping[str, Any], version: str) -> FairQueueConfig:
        """With what a controller has sent. What it has not sent keeps its value."""
        if not isinstance(slot_handler, Mapping):
            raise BadSettings(f"slotHandler must be an object, not {kind_of(slot_handler)}; "
                              "check what the controller sends")  # fmt: skip
        config = parse(laid_over(self.document, lifted(slot_handler)))
        refused = (f"{key} was sent by the controller and has no effect: it is read from "
                   "config.json only." for key in OURS if key in slot_handler)  # fmt: skip
        return replace(
            config,
            config_version=parts.header_text(version) or self.config_version,
            notes=(*refused, *config.notes),
        )


def is_fairqueue_config(path: str | Path) -> bool:
    """Whether a file of settings is such a document, and not a TOML file."""
    if str(path).lower().endswith(".json"):
        return True
    try:
        with open(path, "rb") as file:
            start = file.read(SNIFFED)
    except (OSError, ValueError):
        return False  # whoever reads it says what is wrong
    return start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def load(path: str | Path) -> FairQueueConfig:
    try:
        document = json.loads(Path(path).read_text("utf-8-sig"))
    except OSError as error:
        raise BadSettings(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadSettings(f"{path} is not a JSON file: {error}") from error
    try:
        return parse(document)
    except BadSettings as error:
        raise BadSettings(f"{path}: {error}") from None


def parse(document: Mapping[str, Any]) -> FairQueueConfig:
    if not isinstance(document, Mapping):
        raise BadSettings(f"the settings must be an object, not {kind_of(document)}")
    notes: list[str] = []
    top = Section(document, "", notes)
    host, port = parts.listen(top)
    log_level = parts.log_level(top)
    auth = parts.auth(top.section("auth"))
    dsn = parts.dsn(top.section("backend"))
    controller = parts.controller(top)
    token = top.text("internalApiToken")
    queue = top.section("fairQueue")
    top.not_needed("rpc", "no function of a database is called")
    top.end()

    cleanup = parts.cleanup(queue.section("cleanup"))
    knobs = read_knobs(queue, BUILT_IN)
    by_pattern = read_profiles(queue.section("profiles"), knobs)
    sessions = queue.whole("globalMaxWaiters", MAX_SESSIONS, below_one=MAX_SESSIONS)
    sessions = queue.whole("maxSessions", sessions, below_one=MAX_SESSIONS)
    if not any(each.weighted for each in (knobs, *by_pattern.values())):
        queue.not_needed("pollIntervalMs", WAKES)
    queue.end()
    return FairQueueConfig(
        host=host, port=port, log_level=log_level, dsn=dsn, auth=auth, internal_api_token=token,
        controller=controller, max_sessions=sessions, cleanup=cleanup,
        base=profile_of("", knobs, cleanup.ttl_s),
        profiles={
            pattern: profile_of(pattern, each, cleanup.ttl_s)
            for pattern, each in by_pattern.items()
        },
        notes=tuple(notes), document=document,
    )  # fmt: skip
