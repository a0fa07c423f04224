"""Jobs that come, run and end all the time, so that a page has something to show."""

from __future__ import annotations

import threading
import time

from tests.contract.kit import Api, Worker, new_name

PARCEL_S = 0.25  # how often some come; in between the server works on them
EVENTS_EACH = 3  # a job is put, begins and ends
UPSTREAMS = ("shop.example", "video.example", "mail.example")


class Flood:
    """`with Flood(url, per_minute=5_000) as flood:`; `flood.events()` is what it made so far."""

    def __init__(self, url: str, per_minute: int) -> None:
        self._api = Api(url)
        self._per_second = per_minute / 60 / EVENTS_EACH
        self._type = new_name("drop")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._pour, name="flood")
        self._failed: BaseException | None = None
        self._done = 0

    def __enter__(self) -> Flood:
        for name in UPSTREAMS:
            self._api.ok("PUT", f"/api/upstreams/{name}/settings", json={"limit": 50})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._api.__exit__()
        if self._failed is not None:
            raise self._failed

    def events(self) -> int:
        return self._done * EVENTS_EACH

    def _pour(self) -> None:
        try:
            worker = Worker(self._api, self._type)
            begun, put = time.monotonic(), 0
            while not self._over.wait(PARCEL_S):
                due = int((time.monotonic() - begun) * self._per_second) - put
                if due > 0:
                    put += due
                    self._parcel(worker, put, due)
        except BaseException as error:
            self._failed = error

    def _parcel(self, worker: Worker, begin: int, many: int) -> None:
        jobs = [
            {"type": self._type, "upstream": UPSTREAMS[number % len(UPSTREAMS)], "args": {}}
            for number in range(begin, begin + many)
        ]
        self._api.post("/api/work/put", {"jobs": jobs}, 202)
        left = many
        while left > 0 and not self._over.is_set():
            works = worker.take(min(left, 50), wait_ms=1_000)
            reports = [{"id": each["id"], "fence": each["fence"], "status_code": 200}
                       for each in works]  # fmt: skip
            if reports:
                said = {"worker": worker.name, "jobs": reports}
                self._api.post("/api/work/complete", said)
            left -= len(reports)
            self._done += len(reports)
