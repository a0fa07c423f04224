"""Who may use the fair queue: its clients share a key, its controller knows another."""

from __future__ import annotations

from hmac import compare_digest

from headway.api.auth import Principal
from headway.api.fairqueue.service import FairQueue
from headway.api.problems import Problem

PREFIX = "/api/v0/"
CONTROL = frozenset({"/api/v0/health", "/api/v0/refresh", "/api/v0/flush"})
MAX_BODY = 1_048_576
CLIENT = frozenset({"submit"})
CONTROLLER = frozenset({"operate"})


class Door:
    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue

    def principal(self, path: str, headers: dict[bytes, bytes], client: str) -> Principal | None:
        """None: whoever may use the rest of the API may use this, too."""
        config = self._queue.config
        if path in CONTROL:
            token = config.internal_api_token
            shown = headers.get(b"authorization", b"")
            if not token or not _same(shown, b"Bearer " + token.encode()):
                raise Problem(404, "there is nothing here", kind="not-found")
            return Principal("controller", CONTROLLER, None, client)
        auth = config.auth
        if auth.enabled:
            if not _same(headers.get(auth.header.lower().encode(), b""), auth.token.encode()):
                raise Problem(401, f"send the shared key in the header {auth.header}",
                              kind="no-token")  # fmt: skip
            return Principal("fairqueue", CLIENT, None, client)
        if self._queue.configured:
            return Principal("fairqueue", CLIENT, None, client, by_cookie=True)
        return None


def _same(shown: bytes, wanted: bytes) -> bool:
    return compare_digest(shown, wanted)
