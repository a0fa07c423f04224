"""What shared workers do. The driver does not look at them, so they are asked by Chromium's own
protocol: each is attached to as soon as it is there, and tells what it had said before.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from typing import Any

from playwright.sync_api import Browser, Error

DOMAINS = ("Runtime.enable", "Network.enable")
Hearer = Callable[[str, dict[str, Any]], None]  # the name of the event, and what it says


class SharedWorkers:
    def __init__(self, browser: Browser) -> None:
        self._session = browser.new_browser_cdp_session()
        self._numbers = count(1)
        self.hearers: list[Hearer] = []
        self.attached = 0  # so many so far
        self._session.on("Target.targetCreated", self._created)
        self._session.on("Target.receivedMessageFromTarget", self._received)
        self._session.send("Target.setDiscoverTargets", {"discover": True})

    def _created(self, said: dict[str, Any]) -> None:
        target = said["targetInfo"]
        if target["type"] != "shared_worker":
            return
        try:
            attached = self._session.send(
                "Target.attachToTarget", {"targetId": target["targetId"], "flatten": False}
            )
            for domain in DOMAINS:
                message = json.dumps({"id": next(self._numbers), "method": domain})
                self._session.send(
                    "Target.sendMessageToTarget",
                    {"sessionId": attached["sessionId"], "message": message},
                )
        except Error:
            return  # it is gone again
        self.attached += 1

    def _received(self, said: dict[str, Any]) -> None:
        message = json.loads(said["message"])
        if "method" in message:
            for hearer in self.hearers:
                hearer(message["method"], message["params"])
