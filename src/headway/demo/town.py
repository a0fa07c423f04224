"""The sites of the demo: one small web server with a port on loopback for each of them."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable

import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

HOST = "127.0.0.1"
BACKLOG = 128

Answering = Callable[[Request], Awaitable[Response]]


class Town:
    """Sites can be opened as long as it does not serve; then all of them answer."""

    def __init__(self) -> None:
        self._sites: dict[int, Answering] = {}
        self._doors: list[socket.socket] = []
        self._server: uvicorn.Server | None = None

    def open(self, site: Answering) -> str:
        """Where it is, such as 127.0.0.1:40001."""
        door = socket.socket()
        door.bind((HOST, 0))
        door.listen(BACKLOG)
        self._doors.append(door)
        port = int(door.getsockname()[1])
        self._sites[port] = site
        return f"{HOST}:{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        site = self._sites[scope["server"][1]]
        answer = await site(Request(scope, receive))
        await answer(scope, receive, send)

    async def serve(self) -> None:
        """Until it is closed."""
        # Visitors that hang up in the middle are what it is there for.
        logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
        self._server = uvicorn.Server(
            uvicorn.Config(
                self, lifespan="off", ws="none", log_config=None, access_log=False,
                server_header=False, timeout_graceful_shutdown=1,
            )
        )  # fmt: skip
        await self._server.serve(sockets=self._doors)

    def close(self) -> None:
        if self._server is not None:
            self._server.should_exit = self._server.force_exit = True
        for door in self._doors:
            door.close()
