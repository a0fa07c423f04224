"""A line to the server that can be cut, stalled, or lose one message: a small TCP proxy.

It reads the messages of the protocol, so that a test can say which one is to be lost. Sessions
must not be encrypted; `Proxy.url` asks for that.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import threading
from collections.abc import Iterator
from enum import Enum
from random import Random
from typing import NamedTuple

COMMIT = re.compile(rb"\AQ....commit[;\x00]", re.DOTALL | re.IGNORECASE)  # of somebody's own
# A prepared statement is run.
TAKE_TURN = re.compile(rb"\AB....\x00take_turn\x00", re.DOTALL)
PUT = re.compile(rb"\AB....\x00put\x00", re.DOTALL)
RING = re.compile(rb"\AB....\x00ring\x00", re.DOTALL)
READY = b"Z"
CHUNK = 1 << 16
DELIVER_S = 20.0


class Do(Enum):
    LOSE_REQUEST = "the server never sees it"
    LOSE_ANSWER = "the server does it, and its answer is lost"
    LEAVE_BUSY = "the client is cut at once, the server goes on with it"
    KEEP_BACK = "the client is cut at once, the server sees it late, when it is delivered"


class Fault(NamedTuple):
    message: re.Pattern[bytes]
    do: Do
    struck: threading.Event


class Proxy:
    """Listens on loopback as long as the block does: `with Proxy(port) as proxy:`."""

    def __init__(self, port: int) -> None:
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._links: set[Link] = set()
        self._threads: list[threading.Thread] = []
        self._open = True
        self.flowing = threading.Event()
        self.flowing.set()
        self.refusing = False  # nobody gets through any more
        self._late = threading.Event()
        self._kept: list[Link] = []
        self.connected = 0

    def __enter__(self) -> Proxy:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        self.flowing.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self._late.set()
        for thread in list(self._threads):
            thread.join(10)

    def url(self, url: str) -> str:
        """The same address, through this proxy."""
        rest = url.partition("@")[2].partition("/")[2]
        mark = "&" if "?" in rest else "?"
        plain = "sslmode=disable&gssencmode=disable"
        return f"postgresql://postgres@127.0.0.1:{self.port}/{rest}{mark}{plain}"

    def next(self, message: re.Pattern[bytes], do: Do) -> threading.Event:
        """Do it to the next message of this kind. The event says that it has happened."""
        fault = Fault(message, do, threading.Event())
        with self._lock:
            self._faults.append(fault)
        return fault.struck

    def stall(self) -> None:
        """No answer comes through any more. Nothing is lost."""
        self.flowing.clear()

    def flow(self) -> None:
        self.flowing.set()

    def cut(self, random: Random | None = None, share: float = 1.0) -> int:
        """Cut sessions both ways; with `random` only a share of them. How many."""
        with self._lock:
            links = sorted(self._links, key=lambda each: each.number)
        chosen = [each for each in links if random is None or random.random() < share]
        for link in chosen:
            link.cut()
        return len(chosen)

    def fault_for(self, message: bytes) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.message.search(message):
                    self._faults.remove(fault)
                    return fault
        return None

    def keep(self, link: Link) -> threading.Event:
        """What to wait for."""
        with self._lock:
            self._kept.append(link)
            return self._late

    def deliver(self) -> int:
        """The server gets what was kept back, and has answered. How many messages it were."""
        with self._lock:
            late, kept = self._late, self._kept
            self._late, self._kept = threading.Event(), []
        late.set()
        for link in kept:
            assert link.over.wait(DELIVER_S)
        return sum(link.answered for link in kept)

    def forget(self, link: Link) -> None:
        with self._lock:
            self._links.discard(link)

    def _accept(self) -> None:
        while self._open:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if self.refusing:
                    raise ConnectionRefusedError
                server = socket.create_connection(self._server, timeout=5)
            except OSError:  # the server is away
                client.close()
                continue
            server.settimeout(None)
            for each in (client, server):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connected += 1
            link = Link(self, self.connected, client, server)
            with self._lock:
                self._links.add(link)
            self._start(link.forward)
            self._start(link.backward)
            if self.refusing:  # since this one came in, so that `cut` may not have seen it
                link.cut()

    def _start(self, target: object) -> None:
        thread = threading.Thread(target=target, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()


class Link:
    """One session through the proxy."""

    def __init__(
        self, proxy: Proxy, number: int, client: socket.socket, server: socket.socket
    ) -> None:
        self.number = number
        self._proxy = proxy
        self._client, self._server = client, server
        self._fault: Fault | None = None  # whose answer is waited for, and thrown away
        self._left = 2
        self.answered = False  # what was thrown away has come
        self.over = threading.Event()

    def cut(self) -> None:
        for each in (self._client, self._server):
            _shut(each)

    def forward(self) -> None:
        messages = Messages(begun=False)
        try:
            while data := self._client.recv(CHUNK):
                kept = b""
                for message in messages.split(data):
                    fault = self._proxy.fault_for(message)
                    if fault is not None and fault.do is Do.LOSE_REQUEST:
                        fault.struck.set()
                        self.cut()
                        return
                    self._fault = fault or self._fault
                    if self._fault is not None and self._fault.do is Do.KEEP_BACK:
                        kept += message
                    else:
                        self._server.sendall(message)
                if self._fault is not None and self._fault.do in (Do.LEAVE_BUSY, Do.KEEP_BACK):
                    self._leave(self._fault, kept)
                    return
        except OSError:
            pass
        finally:
            if self._fault is None:
                self.cut()
            self._end()

    def _leave(self, fault: Fault, kept: bytes) -> None:
        late = self._proxy.keep(self) if kept else None
        fault.struck.set()
        _shut(self._client)
        if late is not None:
            late.wait()
            self._server.sendall(kept)

    def backward(self) -> None:
        """What was asked for by somebody who was cut is read until the server ends it."""
        messages = Messages(begun=True)
        try:
            while data := self._server.recv(CHUNK):
                self._proxy.flowing.wait()
                whole = list(messages.split(data))
                if self._fault is None:
                    self._client.sendall(data)
                elif any(message[:1] == READY for message in whole):
                    self.answered = True
                    return
        except OSError:
            pass
        finally:
            if self._fault is not None:
                self._fault.struck.set()
            self.over.set()
            self.cut()
            self._end()

    def _end(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._proxy.forget(self)
            self._client.close()
            self._server.close()


class Messages:
    """Cuts a stream into messages: a letter, a length and a body; the very first has no letter."""

    def __init__(self, *, begun: bool) -> None:
        self._letter = 1 if begun else 0
        self._rest = b""

    def split(self, data: bytes) -> Iterator[bytes]:
        self._rest += data
        while len(self._rest) >= self._letter + 4:
            (length,) = struct.unpack_from("!I", self._rest, self._letter)
            end = self._letter + length
            if len(self._rest) < end:
                return
            message, self._rest = self._rest[:end], self._rest[end:]
            self._letter = 1
            yield message


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
