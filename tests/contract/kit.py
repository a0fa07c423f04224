"""A plain HTTP client that believes nothing, and a worker that speaks to /api/work."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx2

from tests.contract.document import PROBLEM, document_of
from tests.hands.kit import eventually

JSON = dict[str, Any]
PATIENCE_S = 20.0  # for what comes at once, unless something is broken


class Api:
    """Calls a server, and holds every answer against its document."""

    def __init__(self, url: str, token: str = "", **options: Any) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url
        self.document = document_of(url)
        # Nothing here has a certificate, and to read those of the system takes long.
        self.http = httpx2.Client(
            base_url=url, headers=headers, timeout=PATIENCE_S, verify=False, **options
        )

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def send(self, method: str, path: str, **more: Any) -> httpx2.Response:
        answer = self.http.request(method, path, **more)
        self.document.judge(answer)
        return answer

    def ok(self, method: str, path: str, status: int = 200, **more: Any) -> JSON:
        answer = self.send(method, path, **more)
        assert answer.status_code == status, answer.text
        found: JSON = answer.json() if answer.content else {}
        return found

    def get(self, path: str, **params: Any) -> JSON:
        return self.ok("GET", path, params=params)

    def post(self, path: str, body: Any = None, status: int = 200, **params: Any) -> JSON:
        sent = {} if body is None else {"json": body}
        return self.ok("POST", path, status, params=params, **sent)

    def problem(self, status: int, method: str, path: str, kind: str = "", **more: Any) -> JSON:
        """It is refused, in the shape of RFC 9457, and the text says what is wrong."""
        answer = self.send(method, path, **more)
        assert answer.status_code == status, answer.text
        return problem_in(answer, kind)

    # ------------------------------------------------------------------ what tests do all the time

    def enqueue(self, type: str, **more: Any) -> int:
        id = self.post("/api/jobs", {"type": type, **more}, 202)["id"]
        assert isinstance(id, int)
        return id

    def request(self, type: str, **more: Any) -> JSON:
        """As clients of the request queue do it."""
        return self.post("/api/requests/enqueue", {"type": type, "requires_cookie": False, **more},
                         202)  # fmt: skip

    def job(self, id: int) -> JSON:
        return self.get(f"/api/jobs/{id}")

    def waiting(self, id: int) -> JSON:
        """Once the engine has looked at it."""
        job: JSON = eventually(lambda: (seen := self.job(id))["wait_reason"] and seen)
        return job


def problem_in(answer: httpx2.Response, kind: str = "") -> JSON:
    assert answer.headers["content-type"] == PROBLEM
    problem: JSON = answer.json()
    assert {"type", "title", "status", "detail"} <= set(problem)
    assert problem["status"] == answer.status_code
    assert problem["title"]
    assert problem["detail"]
    if kind:
        assert problem["type"] == kind
    return problem


def new_name(word: str = "t") -> str:
    """Nobody else uses it."""
    return f"{word}-{uuid4().hex[:10]}"


class Worker:
    """Takes jobs of its own types over HTTP, and does what the test says."""

    def __init__(self, api: Api, *types: str) -> None:
        self.name = new_name("worker")
        self._api = api
        self._types = types
        self.held: dict[int, JSON] = {}

    def ask(self, size: int = 1, wait_ms: int = 10_000) -> JSON:
        asked = {"types": list(self._types), "size": size, "wait_ms": wait_ms, "worker": self.name}
        return self._api.post("/api/work/take", asked)

    def take(self, size: int = 1, wait_ms: int = 10_000) -> list[JSON]:
        works: list[JSON] = self.ask(size, wait_ms)["jobs"]
        self.held |= {work["id"]: work for work in works}
        return works

    def take_one(self) -> JSON:
        (work,) = self.take()
        return work

    def finds_nothing(self) -> bool:
        """Not even after a moment."""
        return not self.take(wait_ms=150)

    def complete(self, work: JSON, **said: Any) -> JSON:
        del self.held[work["id"]]
        path = f"/api/work/{work['id']}/complete"
        return self._api.post(path, {"fence": work["fence"], **(said or {"status_code": 200})})

    def beat(self, work: JSON, **said: Any) -> JSON:
        path = f"/api/work/{work['id']}/heartbeat"
        return self._api.post(path, {"fence": work["fence"], **said})

    def run_all(self, many: int) -> list[int]:
        """One after the other, in the order in which they come."""
        order = []
        for _ in range(many):
            work = self.take_one()
            order.append(work["id"])
            self.complete(work)
        return order


@contextmanager
def worker_of(api: Api, *types: str) -> Iterator[Worker]:
    worker = Worker(api, *types)
    try:
        yield worker
    finally:
        for work in list(worker.held.values()):
            worker.complete(work, outcome={"kind": "cancelled"})


@contextmanager
def asking(api: Api, type: str) -> Iterator[None]:
    """Somebody waits for jobs of this type, so it is something else that they wait for."""
    over = threading.Event()

    def ask() -> None:
        with Api(api.url) as own:
            idle = Worker(own, type)
            while not over.is_set():
                assert not idle.take(wait_ms=200)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            yield
        finally:
            over.set()
            asked.result()


class Stream:
    """Server-sent events, one at a time."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def block(self) -> dict[str, str]:
        """Everything up to the next empty line."""
        found: dict[str, str] = {}
        for line in self._lines:
            if not line:
                return found
            name, _, value = line.partition(":")
            found[name] = value.removeprefix(" ")
        raise AssertionError("the stream has ended")

    def event(self) -> dict[str, Any]:
        """The next one with data; its `data` is read."""
        while "data" not in (found := self.block()):
            pass
        return {**found, "id": int(found["id"]), "data": json.loads(found["data"])}

    def of(self, type: str) -> dict[str, Any]:
        """The next one about a job of this type; other tests may have left some behind."""
        while (found := self.event())["data"]["type"] != type:
            pass
        return found


@contextmanager
def listening(api: Api, path: str, last: int | None = None, **params: Any) -> Iterator[Stream]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    with api.http.stream("GET", path, headers=headers, params=params) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
        stream = Stream(answer.iter_lines())
        assert "retry" in stream.block()  # it is connected, and hears what comes from now on
        yield stream
