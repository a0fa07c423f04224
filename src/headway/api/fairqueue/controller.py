"""The controller: where settings may come from, and where it is told how things go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import httpx2

from headway import __version__
from headway.api.fairqueue.parts import ControllerSettings
from headway.errors import HeadwayError
from headway.remote.address import on_loopback

SOURCE = "slot-handler"
ANSWER_S = 10.0  # for the whole of an answer
MAX_ANSWER = 1_048_576  # bytes
NOT_OURS = "check that controller.url names a controller"
SLOW = "check controller.url, and that the controller is well"


class ControllerError(HeadwayError):
    """The controller has not done what it was asked for; the message says what to check."""


class Controller:
    """Used in one event loop, and closed there."""

    def __init__(self, settings: ControllerSettings, *, answer_s: float = ANSWER_S) -> None:
        self.settings = settings
        self._answer_s = answer_s
        self._client: httpx2.AsyncClient | None = None

    async def bootstrap(self) -> tuple[str, dict[str, Any]]:
        """The version of the settings, and those that are for us (`slotHandler`)."""
        settings = self.settings
        body = {
            "role": settings.role,
            "env": settings.env,
            "instance_id": settings.instance_id,
        }
        url, answer = await self._post("bootstrap", body)
        try:
            said = json.loads(answer)
        except (ValueError, RecursionError):
            raise ControllerError(f"{url} answers with something that is not JSON; {NOT_OURS}"
                                  ) from None  # fmt: skip
        found = said.get("slotHandler") if isinstance(said, dict) else None
        if not isinstance(found, dict):
            raise ControllerError(f"{url} sends no object as slotHandler; check that its settings "
                                  "have one for controller.env and controller.role")  # fmt: skip
        version = said.get("configVersion")
        return str(version) if isinstance(version, str | int | float) else "", found

    async def push(self, snapshot: Mapping[str, Any]) -> None:
        """One event of metrics."""
        settings = self.settings
        body = {
            "source": SOURCE,
            "env": settings.env,
            "instance_id": settings.instance_id,
            "events": [snapshot],
        }
        await self._post("metrics", body)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    # ------------------------------------------------------------------ asking

    async def _post(self, route: str, body: Mapping[str, Any]) -> tuple[str, bytes]:
        url = f"{self.settings.url}{self.settings.prefix}/{route}"
        try:
            async with (
                asyncio.timeout(self._answer_s),
                self._connected().stream("POST", url, json=body) as response,
            ):
                _check(response.status_code, url)
                return url, await _content(response, url)
        # What went wrong is never quoted: there are headers in it, and they have the token.
        except TimeoutError:
            raise ControllerError(
                f"{url} has not answered within {self._answer_s:g} s; {SLOW}"
            ) from None
        except httpx2.ConnectError:
            raise ControllerError(f"{url} cannot be reached; {SLOW}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise ControllerError(
                f"{url} does not answer as it should ({type(error).__name__}); {NOT_OURS}"
            ) from None

    def _connected(self) -> httpx2.AsyncClient:
        if self._client is None:
            url = self.settings.url
            self._client = httpx2.AsyncClient(
                headers={
                    "Authorization": f"Bearer {self.settings.token}",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",  # so that the bytes that come are all there are
                    "User-Agent": f"headway/{__version__}",
                },
                timeout=None,  # there is one for the whole
                follow_redirects=False,  # the token is for this address only
                trust_env=not on_loopback(url),
                verify=url.startswith("https:"),  # else there is nothing to verify
            )
        return self._client


def _check(status: int, url: str) -> None:
    if 200 <= status < 300:
        return
    if status in (401, 403):
        why = "check controller.token (apiToken): it does not take ours"
    elif 300 <= status < 400:
        why = "put the address that it leads to into controller.url"
    elif status >= 500:
        why = "look into its log"
    else:
        why = "check controller.url, controller.env and controller.role"
    raise ControllerError(f"{url} answered {status}; {why}")


async def _content(response: httpx2.Response, url: str) -> bytes:
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > MAX_ANSWER:
            raise ControllerError(f"{url} answers with more than {MAX_ANSWER} bytes; {NOT_OURS}")
    return bytes(content)
