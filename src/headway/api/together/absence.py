"""What the clients of the fair queue hear while no server leads: what they would hear of any other
passing fault. They know no errors, and come again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from headway.api.fairqueue.acquiring import OVERLOADED

ACQUIRE = "/api/v0/fairqueue/acquire"
SAID = frozenset({"/api/v0/fairqueue/release", "/api/v0/fairqueue/report"})
CANCEL = "/api/v0/fairqueue/cancel"


def reply_at(path: str, body: bytes) -> dict[str, Any] | None:
    """None: whoever asks there can be told the truth."""
    if path == ACQUIRE:
        token = _token(body)
        return {"result": "pending", "queryToken": token} if token else OVERLOADED
    if path in SAID:
        return {"result": "ok"}
    return {"result": "noop"} if path == CANCEL else None


def _token(body: bytes) -> str:
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    token = said.get("queryToken") if isinstance(said, dict) else None
    return token if isinstance(token, str) else ""
