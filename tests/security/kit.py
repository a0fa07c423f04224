"""A server that lets nobody in without a token, and clients that keep to no rules."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import urlsplit

from headway.api.tokens import new_token
from headway.store import open_store
from tests.contract.kit import PATIENCE_S, Api
from tests.postgres import in_memory
from tests.servers import Server
from tests.stores import postgres_place

ALL = ("read", "submit", "operate")
# Who has a token: what it may do, and for whom.
HOLDERS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "admin": (("admin",), None),
    "operator": (ALL, None),
    "reader": (("read",), None),
    "submitter": (("submit",), None),
    "alice": (ALL, "alice"),
    "alice-reads": (("read",), "alice"),
    "alice-rules": (("admin",), "alice"),
    "bob": (ALL, "bob"),
    "nobody": (ALL, ""),  # the tenant without a name is one, too
}


@dataclass(frozen=True)
class Guarded:
    """A server that needs a token, and those that it knows."""

    server: Server
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        return self.server.url

    @contextmanager
    def as_(self, holder: str) -> Iterator[Api]:
        with Api(self.url, self.tokens[holder]) as api:
            yield api

    def make(
        self, name: str = "made", scopes: tuple[str, ...] = ALL, **more: Any
    ) -> dict[str, Any]:
        with self.as_("admin") as admin:
            return admin.post("/api/tokens", {"name": name, "scopes": scopes, **more}, 201)


def store_of(server: Server) -> str:
    return server.dsn or f"sqlite:///{server.data / 'headway.db'}"


def add_token(server: Server, name: str, scopes: tuple[str, ...], tenant: str | None = None) -> str:
    """Before there is a server that could be asked."""
    server.data.mkdir(exist_ok=True)
    row, text = new_token(name, scopes, time(), tenant=tenant)
    with closing(open_store(store_of(server))) as store:
        store.add_token(row)
    return text


@contextmanager
def prepared(store: str, **settings: object) -> Iterator[Server]:
    """A server that was not started yet."""
    directory = Path(tempfile.mkdtemp(prefix="headway-security-", dir=in_memory()))
    dsn = postgres_place(directory) if store == "postgres" else ""
    server = Server(directory, dsn, **settings)
    try:
        yield server
    finally:
        server.close()
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def guarded_on(store: str, **settings: object) -> Iterator[Guarded]:
    with ExitStack() as stack:
        server = stack.enter_context(prepared(store, auth="required", **settings))
        tokens = {name: add_token(server, name, *rights) for name, rights in HOLDERS.items()}
        server.start()
        yield Guarded(server, tokens)


# ---------------------------------------------------------------------- without a client


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Wire:
    """A connection that sends what it is told, byte for byte."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        assert address.hostname is not None
        self.host = f"localhost:{address.port}"
        self.socket = socket.create_connection((address.hostname, address.port), PATIENCE_S)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Answer:
        response = HTTPResponse(self.socket)
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, headers, response.read())

    def is_closed(self) -> bool:
        """Wait until the server ends it; what it still says is thrown away."""
        try:
            while self.socket.recv(65_536):
                pass
        except ConnectionResetError:
            pass
        return True

    def head(self, method: str = "GET", path: str = "/healthz", **headers: str) -> bytes:
        """The lines of a request, without the empty one at the end."""
        said = {"host": self.host, **{n.replace("_", "-"): v for n, v in headers.items()}}
        lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}".encode("latin-1")


def ask(url: str, data: bytes) -> Answer:
    """One connection, one request as it stands."""
    with Wire(url) as wire:
        wire.send(data)
        return wire.answer()


def send(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
    """With any headers, also such as no client would send. An underscore means a hyphen."""
    with Wire(url) as wire:
        said = {"content_length": str(len(body)), **headers} if body or method != "GET" else headers
        wire.send(wire.head(method, path, **said) + b"\r\n" + body)
        return wire.answer()
