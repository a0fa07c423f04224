"""Calls that wait, a provider on loopback, and somebody who wants to be told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually

CHAT = "/v1/chat/completions"
PRICE = {"input_per_1k": 1.0, "output_per_1k": 2.0}
OWN = "127.0.0.1"  # what a server must allow, so that it may tell somebody on loopback


@contextmanager
def provider(**more: Any) -> Iterator[LlmUpstream]:
    with LlmUpstream(**{"latency_ms": 1, "jitter_ms": 0, **more}) as upstream:
        yield upstream


def channel(api: Api, upstream: LlmUpstream, **more: Any) -> tuple[str, str]:
    """A new one: its code, and its model."""
    code, model = new_name("channel"), new_name("model")
    said = {"code": code, "model": model, "base_url": upstream.url, "price": PRICE, "rpm": 60_000}
    api.post("/api/channels", {**said, **more}, 201)
    return code, model


def chat(model: str, text: str = "hello there", **more: Any) -> JSON:
    """What is sent to ask for a call."""
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    return {"endpoint": CHAT, "body": body, **more}


def ask(api: Api, model: str, **more: Any) -> int:
    id: int = api.post("/api/channels/calls", chat(model, **more), 202)["id"]
    return id


def answered(api: Api, id: int, status: str = "completed") -> JSON:
    call = api.get(f"/api/channels/calls/{id}", wait_s=20)
    assert call["status"] == status, call
    return call


@dataclass
class Message:
    headers: dict[str, str]
    content: bytes

    @property
    def said(self) -> JSON:
        found: JSON = json.loads(self.content)
        return found


@dataclass
class Receiver:
    """Hears callbacks, and answers what it was told to, one after the other; then 204."""

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    heard: list[Message] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://{OWN}:{self.port}/hook"

    def about(self, id: int) -> list[Message]:
        return [each for each in self.heard if each.said["id"] == id]

    def wait_for(self, id: int, many: int = 1) -> list[Message]:
        found: list[Message] = eventually(
            lambda: (heard := self.about(id)) if len(self.about(id)) >= many else None
        )
        return found


@contextmanager
def receiver(*answers: int | tuple[int, dict[str, str]]) -> Iterator[Receiver]:
    made = Receiver([each if isinstance(each, tuple) else (each, {}) for each in answers])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            made.heard.append(Message({k.lower(): v for k, v in self.headers.items()}, content))
            status, headers = made.answers.pop(0) if made.answers else (204, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    serving = ThreadingHTTPServer((OWN, 0), Handler)
    made.port = serving.server_port
    thread = threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        serving.shutdown()
        serving.server_close()
        thread.join()
