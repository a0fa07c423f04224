"""A worker as it stands in front of download hosts. It speaks the protocol of the slot
handler that the fair queue takes the place of, and knows nothing of Headway.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import Request, urlopen

TIMEOUT_S = 8.0  # of each request
ATTEMPTS = 3  # requests until a slot is granted, the first one included


class NoSlot(Exception):
    """What the service said last, or that the worker has asked often enough."""


class Slot:
    """The worker sets `hit_upstream_at_ms` when it calls the host."""

    def __init__(self, token: str) -> None:
        self.token = token
        self.hit_upstream_at_ms = 0

    def hits_upstream(self) -> None:
        self.hit_upstream_at_ms = _now_ms()


class SlotHandlerClient:
    def __init__(self, address: str, ip_bucket: str, key: str = "") -> None:
        self._address = f"{address}/api/v0/fairqueue"
        self._ip_bucket = ip_bucket
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["X-FQ-Auth"] = key
        self.requests = 0  # for the last slot
        self.slowest_s = 0.0

    @contextmanager
    def slot(self, hostname: str) -> Iterator[Slot]:
        who = {
            "hostname": hostname,
            "hostnameHash": hashlib.sha256(hostname.encode()).hexdigest(),
            "ipBucket": self._ip_bucket,
        }
        slot = Slot(self._acquire(who))
        try:
            yield slot
        finally:
            said = {**who, "slotToken": slot.token, "hitUpstreamAtMs": slot.hit_upstream_at_ms}
            self._post("release", said)

    def _acquire(self, who: dict[str, str]) -> str:
        self.requests = 0
        asked: dict[str, Any] = who
        for _ in range(ATTEMPTS):
            self.requests += 1
            answer = self._post("acquire", asked)
            match answer["result"]:
                case "granted":
                    token: str = answer["slotToken"]
                    return token
                case "pending":
                    asked = {"queryToken": answer["queryToken"]}
                case ended:
                    raise NoSlot(ended)
        raise NoSlot("asked often enough")

    def _post(self, route: str, said: dict[str, Any]) -> dict[str, Any]:
        content = json.dumps({**said, "now": _now_ms()}).encode()
        request = Request(f"{self._address}/{route}", content, self._headers, method="POST")
        began = time.monotonic()
        with urlopen(request, timeout=TIMEOUT_S) as response:
            answer: dict[str, Any] = json.loads(response.read())
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        return answer


def _now_ms() -> int:
    return int(time.time() * 1000)
