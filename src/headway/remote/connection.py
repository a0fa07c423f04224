"""What a worker knows of its server: whether it is there, which start of it, and how long leases
last.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from headway.remote.protocol import Hello, Line

logger = logging.getLogger("headway.worker")


class Connection:
    def __init__(self, line: Line) -> None:
        self.line = line
        self.trouble = ""  # why the server is not there
        self.lease_s = 90.0
        self.greeted = False  # the server that is there now knows what this worker can do
        self.ever_greeted = False
        self._server = ""
        self.changed: Callable[[], None] = lambda: None  # another server, or another start of it

    def welcomed(self, hello: Hello) -> None:
        self._server = hello.server
        self.lease_s = hello.lease_s
        self.greeted = self.ever_greeted = True
        self.heard(hello.server)

    def heard(self, server: str) -> None:
        """An answer has come. Another name than before: the server was started anew."""
        if self.trouble:
            logger.warning("%s is back", self.line.url)
            self.trouble = ""
        if self.greeted and server != self._server:
            self.greeted = False
            self.changed()

    def lost(self, error: Exception) -> None:
        """It may be another one when it is back."""
        if not self.trouble:
            logger.warning("%s; going on with what is here, and trying again", error)
        self.trouble = str(error)
