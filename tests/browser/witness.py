"""Sees what pages do, and complains about what they should not: whatever they write to the console,
throw, fetch from elsewhere, ask of the API against its document, or are refused unannounced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2
from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Error,
    Request,
    Response,
    WebError,
    WebSocket,
)

from tests.browser.calls import table_of_calls
from tests.contract.document import Document, Operation

# What a page fetches from here is no call of the API.
NOT_THE_API = re.compile(r"/(?:static/.*|openapi\.json|docs|login|favicon\.ico)?")
BY_SCRIPTS = {"fetch", "xhr", "eventsource"}
NOT_GOOD = {"error", "warning", "assert"}  # of what is written to the console


@dataclass
class Witness:
    """Sees what a context's pages do, and complains about what they should not."""

    origin: str
    document: Document
    complaints: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)  # "GET /api/jobs/{id}", one for each call
    expected: dict[int, int] = field(default_factory=dict)  # how often which refusal was announced
    _open: set[Request] = field(default_factory=set)
    _methods: dict[str, str] = field(default_factory=dict)  # of requests by workers
    _gone: bool = False

    def watch(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", self._uncaught)
        context.on("request", self._request)
        context.on("response", self._response)
        context.on("requestfinished", self._finished)
        context.on("requestfailed", self._failed)
        context.on("page", lambda page: page.on("websocket", self._websocket))

    def judge(self) -> None:
        """Call when the test has ended."""
        missing = [status for status, many in self.expected.items() if many > 0]
        if missing:
            self._complain(f"announced, but never came: {missing}")
        assert not self.complaints, "the page did what it should not:\n" + "\n".join(
            f"  - {complaint}" for complaint in self.complaints
        )

    @property
    def is_settled(self) -> bool:
        """The bodies of all answers were read."""
        return not self._open

    def unsettled(self) -> None:
        for request in self._open:
            self._complain(f"never came to an end: {request.method} {request.url}")

    @contextmanager
    def server_may_go(self) -> Iterator[None]:
        """For a while, nobody is to blame for an answer that does not come."""
        self._gone = True
        yield
        self._gone = False

    def worker(self, event: str, said: dict[str, Any]) -> None:
        """What a shared worker of the pages does."""
        if event == "Runtime.consoleAPICalled" and said["type"] in NOT_GOOD:
            words = " ".join(str(each.get("value", "")) for each in said["args"])
            self._complain(f"console {said['type']} of a worker: {words}")
        elif event == "Runtime.exceptionThrown":
            thrown = said["exceptionDetails"]
            words = thrown.get("exception", {}).get("description") or thrown["text"]
            self._complain(f"uncaught in a worker: {words}")
        elif event == "Network.requestWillBeSent":
            self._methods[said["requestId"]] = said["request"]["method"]
            self._asked(said["request"]["method"], said["request"]["url"])
        elif event == "Network.responseReceived":
            method = self._methods.get(said["requestId"], "GET")
            self._answered(method, said["response"]["url"], said["response"]["status"])
            if said["type"].lower() in BY_SCRIPTS:
                self._known(method, said["response"]["url"], ours=True)
        elif event == "Network.loadingFailed" and not said.get("canceled"):
            self._lost("GET", "of a worker", said["errorText"])

    def _complain(self, text: str) -> None:
        if text not in self.complaints:
            self.complaints.append(text)

    def _console(self, message: ConsoleMessage) -> None:
        # A refusal is judged by its status: the text does not show whether it was announced.
        refused = message.text.startswith("Failed to load resource")
        if message.type in NOT_GOOD and not refused:
            self._complain(f"console {message.type}: {message.text}")

    def _uncaught(self, error: WebError) -> None:
        thrown = error.error
        self._complain(f"uncaught: {getattr(thrown, 'stack', None) or thrown}")

    def _request(self, request: Request) -> None:
        self._asked(request.method, request.url)

    def _asked(self, method: str, url: str) -> None:
        if not url.startswith((f"{self.origin}/", "data:", "blob:", "about:")):
            self._complain(f"asks elsewhere: {method} {url}")

    def _websocket(self, socket: WebSocket) -> None:
        self._complain(f"opens a WebSocket: {socket.url}")

    def _failed(self, request: Request) -> None:
        self._open.discard(request)
        self._lost(request.method, request.url, request.failure or "")

    def _lost(self, method: str, url: str, why: str) -> None:
        # The page may end what it has begun: a stream that it leaves, a search out of date.
        if "ERR_ABORTED" not in why and not self._gone:
            self._complain(f"failed: {method} {url}: {why}")

    def _response(self, response: Response) -> None:
        request = response.request
        self._answered(request.method, response.url, response.status)
        if request.resource_type not in BY_SCRIPTS:
            return
        if self._known(request.method, response.url, ours=self._is_ours(request)) is None:
            return
        kind = response.headers.get("content-type", "")
        if request.resource_type == "eventsource" or kind.startswith("text/event-stream"):
            self._judge(response, None)  # it never ends
        else:
            self._open.add(request)

    def _answered(self, method: str, url: str, status: int) -> None:
        if status < 400:
            return
        if self.expected.get(status, 0) > 0:
            self.expected[status] -= 1
        else:
            self._complain(f"refused with {status}: {method} {url}")

    def _known(self, method: str, url: str, *, ours: bool) -> Operation | None:
        """The operation of a call, if it is one."""
        path = urlsplit(url).path
        if NOT_THE_API.fullmatch(path):
            return None
        operation = self.document.operation(method, path)
        if operation is None:
            self._complain(f"calls what the document does not know: {method} {path}")
            return None
        self.calls.append(operation.name)
        if ours and operation.name not in table_of_calls().values():
            self._complain(f"calls what its table of calls does not name: {operation.name}")
        return operation

    @staticmethod
    def _is_ours(request: Request) -> bool:
        """Of the page, and not of the reference, which calls whatever people like to try."""
        try:
            return urlsplit(request.frame.url).path == "/"
        except Error:  # the frame is gone
            return False

    def _finished(self, request: Request) -> None:
        if request not in self._open:
            return
        with suppress(Error):  # the page was left before anybody could read it
            response = request.response()
            if response is not None:
                self._judge(response, response.body())
        self._open.discard(request)

    def _judge(self, response: Response, body: bytes | None) -> None:
        # The body was unpacked on its way here.
        gone = {"content-encoding", "content-length", "transfer-encoding"}
        headers = {name: text for name, text in response.headers.items() if name not in gone}
        answer = httpx2.Response(
            response.status, headers=headers, content=body or b"",
            request=httpx2.Request(response.request.method, response.url),
        )  # fmt: skip
        try:
            self.document.judge(answer)
        except AssertionError as fault:
            self._complain(f"the answer is not what the document says: {fault}")
