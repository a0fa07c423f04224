"""The API without a server: the same application in this process, asked without a socket."""

from __future__ import annotations

import asyncio
import getpass
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import httpx2

from headway.cli.client import Client

if TYPE_CHECKING:
    from fastapi import FastAPI

BASE = "http://localhost"


class InProcess(httpx2.BaseTransport):
    """Calls an application as a server would, and waits for the whole answer."""

    def __init__(self, app: FastAPI) -> None:
        self._runner = asyncio.Runner()
        asked_from = (f"the command line of {_user()}", 0)
        self._asgi = httpx2.ASGITransport(app, raise_app_exceptions=False, client=asked_from)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.read()
        return self._runner.run(self._answer(request))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._asgi.handle_async_request(request)
        body = await answer.aread()
        return httpx2.Response(answer.status_code, headers=answer.headers, content=body)

    def close(self) -> None:
        self._runner.close()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"


@contextmanager
def _quiet() -> Iterator[None]:
    """What an engine has to say is for a server's log; a command says only what went wrong."""
    logger = logging.getLogger("headway")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def directly(data: str, dsn: str | None, name: str) -> Client:
    """Work on the store itself. Whoever may open it is its owner, so nothing asks for a token."""
    from headway import apps  # noqa: PLC0415 - most commands need no server's code
    from headway.api.assembly import direct  # noqa: PLC0415
    from headway.api.config import Config  # noqa: PLC0415

    with ExitStack() as opened:
        opened.enter_context(_quiet())
        app = opened.enter_context(direct(Config(data=data, dsn=dsn or ""), apps.all_of_them()))
        http = httpx2.Client(base_url=BASE, transport=InProcess(app), timeout=None)
        idle = app.state.site.app.engine is not None
        return Client(http, name, direct=True, idle=idle, close=opened.pop_all().close)
