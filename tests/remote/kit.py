"""A server that is not there: it answers in the worker's own process, and fails when it is told."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

import httpx2

from headway import App
from headway.remote.client import Client
from headway.remote.worker import Worker
from tests.hands.kit import WAIT_S, eventually

URL = "http://headway.example"

__all__ = ["URL", "WAIT_S", "FakeServer", "eventually", "problem", "sync_client"]


def problem(status: int, kind: str, detail: str = "no", **more: Any) -> httpx2.Response:
    return httpx2.Response(status, json={"type": kind, "detail": detail, "status": status, **more})


def sync_client(
    answer: Callable[[httpx2.Request], httpx2.Response], *, patience_s: float = 0.5
) -> Client:
    return Client(URL, "hw_secret", patience_s=patience_s, transport=httpx2.MockTransport(answer))


class FakeServer:
    """`troubles["complete"]` is what goes wrong with the next completions, one each: "refused" (not
    reached), "lost" (done, but the answer does not arrive), "hang" (until `let_go`), or an answer.
    """

    def __init__(self, lease_s: float = 90.0) -> None:
        self.boot = "first"
        self.lease_s = lease_s
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.troubles: dict[str, deque[Any]] = {
            name: deque() for name in ("hello", "take", "heartbeat", "complete")
        }
        self.queue: deque[dict[str, Any]] = deque()
        self.stops: deque[dict[str, Any]] = deque()
        self.gone: set[int] = set()  # fences whose lease is over here
        self.orders: dict[int, str] = {}  # what a heartbeat is answered: fence, why
        self.ended: dict[int, dict[str, Any]] = {}  # the first report of each fence
        self.taking = 0  # polls that wait
        self.max_given = 0
        self.away = False
        self._fence = 0
        self._released = threading.Event()
        self._news: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    # ------------------------------------------------------------------ what tests do

    def put(self, type: str, args: dict[str, Any] | None = None, **more: Any) -> int:
        """The fence of a new job, whose number is the same."""
        self._fence += 1
        self.queue.append({
            "id": self._fence, "fence": self._fence, "type": type, "args": args or {},
            "attempt": 1, "timeout_s": 60.0, "upstream": None, "tenant": "", "key": None,
            "lane": "default", "checkpoint": None, **more,
        })  # fmt: skip
        self.ring()
        return self._fence

    def order(self, fence: int, why: str) -> None:
        self.stops.append({"id": fence, "fence": fence, "why": why})
        self.ring()

    def restart(self) -> None:
        self.boot += "+"
        self.away = False

    def let_go(self) -> None:
        self._released.set()

    def ring(self) -> None:
        for loop, event in list(self._news):
            loop.call_soon_threadsafe(event.set)

    def said(self, what: str) -> list[dict[str, Any]]:
        return [body for name, body in list(self.calls) if name == what]

    def has_ended(self, fence: int) -> dict[str, Any]:
        """How, once it has."""
        found: dict[str, Any] = eventually(lambda: self.ended.get(fence))
        return found

    def worker(self, app: App, **options: Any) -> Worker:
        client = Client(URL, "hw_secret", async_transport=httpx2.MockTransport(self.answer))
        return Worker(app, URL, client=client, **options)

    # ------------------------------------------------------------------ answering

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        what = request.url.path.rpartition("/")[2]
        body = json.loads(request.content)
        trouble = self.troubles[what].popleft() if self.troubles[what] else None
        if self.away or trouble == "refused":
            self.calls.append((f"{what} refused", body))
            raise httpx2.ConnectError("nobody is there")
        self.calls.append((what, body))
        if isinstance(trouble, httpx2.Response):
            return trouble
        if trouble == "hang":
            await asyncio.to_thread(self._released.wait, WAIT_S)
        answer = await getattr(self, f"_{what}")(body)
        if trouble == "lost":
            raise httpx2.ReadError("the line is cut")
        return httpx2.Response(200, json={"server": self.boot, **answer})

    async def _hello(self, _body: dict[str, Any]) -> dict[str, Any]:
        return {"lease_s": self.lease_s, "heartbeat_s": self.lease_s / 3}

    async def _take(self, body: dict[str, Any]) -> dict[str, Any]:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        until = loop.time() + body["wait_ms"] / 1000
        self._news.append((loop, event))
        self.taking += 1
        try:
            while True:
                event.clear()
                jobs = self._deal(body)
                stops = [self.stops.popleft() for _ in range(len(self.stops))]
                left_s = until - loop.time()
                if jobs or stops or left_s <= 0 or self.away:
                    self.max_given = max(self.max_given, len(jobs))
                    return {"jobs": jobs, "stops": stops}
                try:
                    async with asyncio.timeout(left_s):
                        await event.wait()
                except TimeoutError:
                    continue
        finally:
            self.taking -= 1
            self._news.remove((loop, event))

    def _deal(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        dealt: list[dict[str, Any]] = []
        for job in list(self.queue):
            if len(dealt) < body["size"] and job["type"] in body["types"]:
                self.queue.remove(job)
                dealt.append({**job, "lease_s": self.lease_s})
        return dealt

    async def _heartbeat(self, body: dict[str, Any]) -> dict[str, Any]:
        beats = []
        for job in body["jobs"]:
            over = job["fence"] in self.gone or job["fence"] in self.ended
            stop = "lost" if over else self.orders.get(job["fence"])
            beats.append({"id": job["id"], "fence": job["fence"], "stop": stop,
                          "lease_s": None if over else self.lease_s})  # fmt: skip
        return {"jobs": beats}

    async def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        answers = []
        for job in body["jobs"]:
            accepted = job["fence"] not in self.gone
            if accepted:
                self.ended.setdefault(job["fence"], job)
            answers.append({"id": job["id"], "fence": job["fence"], "accepted": accepted,
                            "state": "completed"})  # fmt: skip
        return {"jobs": answers}
