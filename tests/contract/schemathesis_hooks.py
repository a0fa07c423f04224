"""Loaded by schemathesis: keeps its requests from waiting, and from closing the shop."""

from __future__ import annotations

from typing import Any

import schemathesis

LONGEST_WAIT_MS = 20
LONGEST_WAIT_S = 0.02
WAITS_LONG = {"/api/slots", "/api/slots/{id}/poll"}  # if nothing else is said

CHANNELS = {"/api/channels", "/api/channels/{code}"}
SIMULATES, SHORTEST_S = "/api/simulate", 60.0  # of what it may be asked for
LOOKS = "/api/backend/rss/"  # which ask the site that they are told


@schemathesis.hook
def before_call(_context: Any, case: Any, _kwargs: dict[str, Any]) -> None:
    """A long poll answers in any case; here it answers at once."""
    if case.operation.path in WAITS_LONG and isinstance(case.body, dict):
        case.body.setdefault("wait_ms", LONGEST_WAIT_MS)
    if case.operation.path in CHANNELS and isinstance(case.body, dict):
        _switch_off(case.body)
    if case.operation.path.startswith(LOOKS) and isinstance(case.body, dict):
        _keep_at_home(case.body)
    if case.operation.path == SIMULATES and isinstance(case.body, dict):
        case.body.setdefault("duration_s", SHORTEST_S)
        _shorten(case.body, "duration_s", SHORTEST_S)
    _shorten(case.body, "wait_ms", LONGEST_WAIT_MS)
    _shorten(case.query, "wait_s", LONGEST_WAIT_S)


def _shorten(values: Any, name: str, longest: float) -> None:
    if isinstance(values, dict) and isinstance(values.get(name), int | float):
        values[name] = min(values[name], longest)


def _switch_off(channel: dict[str, Any]) -> None:
    """Nobody is called at an address that was made up."""
    if isinstance(channel.get("enabled", True), bool):
        channel["enabled"] = False


def _keep_at_home(body: dict[str, Any]) -> None:
    """No name is looked up, and no site asked, that was made up: this one is refused at once."""
    url = body.get("url")
    if isinstance(url, str) and 0 < len(url) <= 2_000 and "\0" not in url:
        body["url"] = "http://127.0.0.1/"
