"""The fair queue as it is used: a config.json, clients of it, and a controller beside it."""

from __future__ import annotations

import atexit
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.contract.kit import JSON, PATIENCE_S, Api, new_name
from tests.hands.kit import eventually
from tests.postgres import in_memory
from tests.servers import Server, server_on

QUEUE = "/api/v0/fairqueue"
INTERNAL = "internal-word-of-the-operators"
REPLY_S = 8.0  # by then a client has heard something, or it gives up
SOON_S = 1.5  # what is done at once, on a busy machine
EARLY_S = 0.03  # by which clocks of two programs on one machine may differ

# What holds at the hosts of the shared service: at *.one.test there is one slot, and so on.
WINDOW_S = 0.1
HOLD_S = 0.6
CLAIM_S = 0.3
LONG: JSON = {"pollWindowMs": 6_000}
PROFILES: dict[str, JSON] = {
    "one": {"maxSlotPerHost": 1},
    "two": {"maxSlotPerHost": 2},
    "attached": {"maxSlotPerHost": 1, **LONG},
    "absent": {"maxSlotPerHost": 1, "claimWindowMs": int(CLAIM_S * 1000)},
    "brief": {"maxSlotPerHost": 1, "claimWindowMs": int(CLAIM_S * 1000), "pollWindowMs": 1_000},
    "kept": {"maxSlotPerHost": 1, "defaultGrantedCleanupDelay": 1},
    "hasty": {"maxSlotPerHost": 1, "maxWaitMs": 500, **LONG},
    "idle": {"maxSlotPerHost": 1, "sessionIdleSeconds": 1},
    "shy": {"throttleTimeWindowSeconds": 1},
    "crowd": {"maxSlotPerHost": 1, "maxWaitersPerHost": 2, **LONG},
    "narrow": {"maxSlotPerHost": 1, "maxWaitersPerIp": 1, **LONG},
    "full": {"maxSlotPerHost": 1, "maxWaitersPerHost": 1},
    "held": {"maxSlotPerHost": 2, "minSlotHoldMs": int(HOLD_S * 1000), **LONG},
    "long-held": {"maxSlotPerHost": 1, "minSlotHoldMs": 30_000},
    "cool": {"maxSlotPerIp": 1, "ipCooldownSeconds": 1, **LONG},
    "zombie": {"maxSlotPerHost": 1, "zombieTimeoutSeconds": 1, "ipCooldownSeconds": 1, **LONG},
    "unheard": {"maxSlotPerHost": 1, "minSlotHoldMs": 30_000, "ipCooldownSeconds": 30,
                "claimWindowMs": 500},
    "fair": {"maxSlotPerHost": 1, "maxSlotPerIp": 1, "maxWaitersPerHost": 0, **LONG},
    "weighted": {"maxSlotPerHost": 1, "maxSlotPerIp": 1, "weightedScheduler": {"enabled": True},
                 **LONG},
    "polled": {"maxSlotPerHost": 2, "pollWindowMs": 1_500},
    "endless": {"maxSlotPerHost": 2, "pollWindowMs": 60_000},
}  # fmt: skip


class Reply(NamedTuple):
    """An answer, and when it came."""

    said: Any
    at: float

    @property
    def result(self) -> str:
        result: str = self.said["result"]
        return result


class Queue:
    """Clients of one server. Every answer is held against its document."""

    def __init__(self, url: str, **headers: str) -> None:
        self.url = url
        self.api = Api(url)
        self.api.http.headers.update(headers)
        self._pool = ThreadPoolExecutor(64)

    def close(self) -> None:
        self._pool.shutdown()
        self.api.http.close()

    # ------------------------------------------------------------------ what clients say

    def ask(self, host: str, ip: str = "192.0.2.1/32", **more: Any) -> JSON:
        """The first call."""
        said = {"hostname": host, "hostnameHash": f"hash of {host}", "ipBucket": ip, "now": ms()}
        return self.post("acquire", {**said, **more})

    def poll(self, token: str, **more: Any) -> JSON:
        return self.post("acquire", {"queryToken": token, "now": ms(), **more})

    def wait(self, host: str, ip: str = "192.0.2.1/32", **more: Any) -> JSON:
        """Asked again and again, until there is something to say."""
        return self.wait_on(self.ask(host, ip, **more))

    def wait_on(self, said: JSON) -> JSON:
        while said["result"] == "pending":
            said = self.poll(said["queryToken"])
        return said

    def hold(self, host: str, ip: str = "192.0.2.1/32", **more: Any) -> str:
        """The token of a slot that is free."""
        said = self.ask(host, ip, **more)
        assert said["result"] == "granted", said
        token: str = said["slotToken"]
        return token

    def must_wait(self, host: str, ip: str = "192.0.2.1/32", **more: Any) -> str:
        """The token of somebody who stands in line, and does not wait for an answer any more."""
        said = self.ask(host, ip, **more)
        assert said["result"] == "pending", said
        token: str = said["queryToken"]
        return token

    def release(self, host: str, token: object, **more: Any) -> None:
        said = {"hostname": host, "slotToken": token, "hitUpstreamAtMs": ms(), "now": ms()}
        assert self.post("release", {**said, **more}) == {"result": "ok"}

    def cancel(self, token: str) -> str:
        result: str = self.post("cancel", {"queryToken": token})["result"]
        return result

    def report(self, host: str, status: int, times: int = 1, **more: Any) -> None:
        for _ in range(times):
            said = {"hostname": host, "status": status, **more}
            assert self.post("report", said) == {"result": "ok"}

    def post(self, route: str, body: JSON) -> JSON:
        """It must be answered before a client gives up."""
        began = time.monotonic()
        said = self.api.post(f"{QUEUE}/{route}", body)
        assert time.monotonic() - began < REPLY_S
        return said

    def begin(self, call: Any, *args: Any, **more: Any) -> Future[Reply]:
        """Somebody else says so meanwhile."""

        def run() -> Reply:
            said = call(*args, **more)
            return Reply(said, time.monotonic())

        return self._pool.submit(run)

    def hand_on(
        self, host: str, slot: str, waiting: dict[str, Future[Reply]], hold_s: float = 0.0
    ) -> list[str]:
        """The one slot of a host goes from hand to hand. The order in which they have it."""
        left, order = dict(waiting), []
        while left:
            threading.Event().wait(hold_s)
            self.release(host, slot)
            name = eventually(lambda: next((n for n, each in left.items() if each.done()), None))
            slot = granted(left.pop(name)).said["slotToken"]
            order.append(name)
            assert self.holders(host) == 1
        self.release(host, slot)
        return order

    # ------------------------------------------------------------------ what operators see

    def gate(self, host: str) -> JSON:
        return self.api.get(f"/api/upstreams/{host}")

    def in_line(self, host: str) -> int:
        waiting: int = self.gate(host)["waiting"]
        return waiting

    def holders(self, host: str) -> int:
        running: int = self.gate(host)["running"]
        return running

    def line_is(self, host: str, length: int) -> None:
        eventually(lambda: self.in_line(host) == length)

    def sessions(self, host: str, state: str = "waiting") -> list[JSON]:
        found: list[JSON] = self.api.get("/api/slots", upstream=host, state=state)["items"]
        return found

    def attached(self, host: str, many: int) -> None:
        """So many requests wait for an answer now."""
        eventually(lambda: sum(each["attached"] for each in self.sessions(host)) == many)

    def metric(self, name: str) -> float:
        page = self.api.http.get("/metrics").text
        (line,) = (each for each in page.splitlines() if each.startswith(f"{name} "))
        return float(line.rpartition(" ")[2])


def ms() -> float:
    """The clock of a client."""
    return time.time() * 1000.0


def new_host(profile: str) -> str:
    """A host of this test alone, to which `*.{profile}.test` applies."""
    return f"{new_name('h')}.{profile}.test"


def pending(token: str) -> JSON:
    """What whoever knows this token was told last."""
    return {"result": "pending", "queryToken": token}


def granted(future: Future[Reply]) -> Reply:
    reply = future.result(PATIENCE_S)
    assert reply.result == "granted", reply.said
    return reply


# ---------------------------------------------------------------------- services


class Service:
    """A server with its config.json, and a client of it."""

    def __init__(self, server: Server, file: Path, document: JSON) -> None:
        self.server = server
        self.file = file
        self.document = document
        self.queue = Queue(server.url)

    def reopen(self) -> None:
        """The server has been started again; connections to the last one are dead."""
        self.queue.close()
        self.queue = Queue(self.server.url)

    def write(self, **changed: Any) -> None:
        """Change the file. A part of it that is an object is changed key by key."""
        for key, value in changed.items():
            before = self.document.get(key)
            both = isinstance(value, dict) and isinstance(before, dict)
            self.document[key] = {**before, **value} if both else value
        self.file.write_text(json.dumps(self.document))

    def control(self, method: str, what: str, token: str = INTERNAL, **more: Any) -> Any:
        """As the controller does it."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return self.queue.api.send(method, f"/api/v0/{what}", headers=headers, **more)

    def refresh(self, *targets: str) -> None:
        answer = self.control("POST", "refresh", json={"targets": targets})
        assert answer.status_code == 204, answer.text

    def printed(self, text: str) -> None:
        eventually(lambda: text in self.server.printed())


@contextmanager
def service_on(
    store: str = "sqlite", settings: JSON | None = None, **document: Any
) -> Iterator[Service]:
    """`document` is the config.json; `settings` are those of the server itself."""
    with tempfile.TemporaryDirectory(prefix="headway-fairqueue-", dir=in_memory()) as directory:
        file = Path(directory) / "config.json"
        file.write_text(json.dumps(document))
        with server_on(store, fairqueue=str(file), **(settings or {})) as server:
            service = Service(server, file, document)
            try:
                yield service
            finally:
                service.queue.close()


def shared_service(store: str = "sqlite") -> Service:
    """One for all tests of this process that do no harm to it: each has hosts of its own."""
    return _shared_service(store)


@cache
def _shared_service(store: str) -> Service:
    lasting = ExitStack()
    profiles = {f"*.{name}.test": settings for name, settings in PROFILES.items()}
    queue = {"pollWindowMs": int(WINDOW_S * 1000), "profiles": profiles}
    service = lasting.enter_context(service_on(store, fairQueue=queue))
    atexit.register(lasting.close)  # after that of the template it comes from, so it goes before it
    return service


class Caller:
    """A client that can hang up: one connection, one request."""

    def __init__(self, url: str, route: str, body: JSON, *, at_once: bool = False) -> None:
        """`at_once`: its request and its end arrive together."""
        address = urlsplit(url)
        assert address.hostname is not None
        self._socket = socket.create_connection((address.hostname, address.port), PATIENCE_S)
        if at_once:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
        content = json.dumps(body).encode()
        lines = {"Host": address.netloc, "Content-Length": str(len(content))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._socket.sendall(f"POST {QUEUE}/{route} HTTP/1.1\r\n{head}\r\n".encode() + content)
        if at_once:
            self.hang_up()

    def hang_up(self) -> None:
        self._socket.close()


# ---------------------------------------------------------------------- a controller


class LittleController:
    """It sends the settings that it is told to, and keeps what it hears."""

    TOKEN = "controller-word-of-the-operators"

    def __init__(self) -> None:
        self.status = 200
        self.version: object = "v1"
        self.settings: JSON = {}
        self.heard: list[tuple[str, str, JSON]] = []  # path, who, what
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.heard.append((self.path, self.headers["Authorization"], body))
                said = {"configVersion": outer.version, "slotHandler": outer.settings}
                content = json.dumps(said if self.path.endswith("/bootstrap") else {}).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def of(self, route: str) -> list[JSON]:
        return [body for path, _, body in self.heard if path == f"/api/v0/{route}"]

    def section(self, **more: Any) -> JSON:
        """The part of config.json that leads here."""
        who = {"env": "test", "instanceId": "slots-7", "appName": "slots", "appVersion": "2.5"}
        return {"url": self.url, "apiToken": self.TOKEN, "role": "slot-handler", **who, **more}


@contextmanager
def little_controller() -> Iterator[LittleController]:
    controller = LittleController()
    try:
        yield controller
    finally:
        controller.close()
