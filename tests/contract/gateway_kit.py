"""Channels to providers on loopback, and clients that ask a gateway, and hang up on it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import httpx2

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.kit import JSON, PATIENCE_S, Api, new_name
from tests.hands.kit import eventually

KEY = "sk-provider-1"
CHAT = "/v1/chat/completions"
PRICE = {"input_per_1k": 1.0, "output_per_1k": 2.0}


def chat(model: str, text: str = "hello there my friend", **more: Any) -> JSON:
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


@dataclass
class Desk:
    """A server with its gateway, and two providers. Each test has models of its own."""

    api: Api
    first: LlmUpstream
    second: LlmUpstream

    @property
    def url(self) -> str:
        return self.api.url

    def channel(self, model: str, upstream: LlmUpstream | str, *, cost: float = 1.0,
                **more: Any) -> str:  # fmt: skip
        """A new channel to a provider. The cheapest is asked first."""
        code = new_name("channel")
        url = upstream if isinstance(upstream, str) else upstream.url
        price = {name: value * cost for name, value in PRICE.items()}
        said = {"code": code, "model": model, "base_url": url, "api_key": KEY, "price": price}
        self.api.post("/api/channels", {**said, **more}, 201)
        return code

    def one(self, **more: Any) -> tuple[str, str]:
        """A model with one channel, to the first provider."""
        model = new_name("model")
        return model, self.channel(model, self.first, **more)

    def two(self) -> tuple[str, str, str]:
        """A model with two channels; the one to the first provider is asked first."""
        model = new_name("model")
        first, second = self.channel(model, self.first), self.channel(model, self.second, cost=2.0)
        return model, first, second

    def ask(self, body: Any, path: str = CHAT, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.api.send("POST", path, json=body, headers=named)

    def refused(self, status: int, body: Any, path: str = CHAT, **headers: str) -> JSON:
        return error_in(self.ask(body, path, **headers), status)

    def bills(self, model: str) -> list[JSON]:
        found = self.api.get("/api/costs/bills", model=model)["items"]
        return list(reversed(found))

    def leases(self, code: str) -> int:
        return int(self.api.get(f"/api/upstreams/{code}")["running"])

    def close(self, code: str, for_s: float) -> None:
        self.api.post(f"/api/upstreams/{code}/close", {"for_s": for_s, "why": "maintenance"})

    def nobody_waits(self, code: str) -> bool:
        return not self.api.get("/api/slots", upstream=code)["items"]


@contextmanager
def providers() -> Iterator[tuple[LlmUpstream, LlmUpstream]]:
    quick: dict[str, Any] = {"latency_ms": 1, "jitter_ms": 0, "chunk_ms": 1, "keys": (KEY,)}
    with LlmUpstream(**quick) as first, LlmUpstream(**quick) as second:
        yield first, second


def error_in(answer: httpx2.Response, status: int) -> JSON:
    """It is refused in OpenAI's shape."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    error: JSON = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert error["type"]
    return error


# ---------------------------------------------------------------------- clients that hang up


class RawClient:
    """Sends a request, and reads as far as it is told. `body` None: says that one will come."""

    def __init__(self, url: str, body: JSON | None, **headers: str) -> None:
        place = urlsplit(url)
        self._socket = socket.create_connection((place.hostname, place.port), PATIENCE_S)
        content = b"" if body is None else json.dumps(body).encode()
        lines = [f"POST {CHAT} HTTP/1.1", f"Host: {place.netloc}",
                 f"Content-Length: {len(content) or 4_000}",
                 *(f"{name}: {value}" for name, value in headers.items())]  # fmt: skip
        self._socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    def read_until(self, text: bytes) -> bytes:
        got = b""
        while text not in got:
            part = self._socket.recv(65_536)
            assert part, f"it was cut off after {got!r}"
            got += part
        return got

    def hang_up(self) -> None:
        self._socket.close()


# ---------------------------------------------------------------------- a provider by hand


@dataclass
class Provider:
    """Does what the test says, and remembers what it was sent."""

    answer: Callable[[BaseHTTPRequestHandler], None]
    url: str = ""
    bodies: list[JSON] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def provider(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Provider]:
    seen = Provider(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            seen.bodies.append(json.loads(content))
            seen.headers.append({name.lower(): value for name, value in self.headers.items()})
            seen.paths.append(self.path)
            seen.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def says(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def streams(
    *events: bytes, before_each: Callable[[int], None] = lambda _: None, whole: bool = True
) -> Callable[[BaseHTTPRequestHandler], None]:
    """Writes one after the other; if not whole, it breaks off behind them."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for number, event in enumerate(events):
            before_each(number)
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            handler.wfile.flush()
        if whole:
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True

    return answer


def chunk(text: str = "", usage: JSON | None = None) -> bytes:
    choices = [{"index": 0, "delta": {"content": text}}] if usage is None else []
    said = {"id": "c", "object": "chat.completion.chunk", "choices": choices, "usage": usage}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def free_again(desk: Desk, code: str) -> None:
    """Soon: no permit was left behind."""
    eventually(lambda: desk.leases(code) == 0, within_s=5.0)
