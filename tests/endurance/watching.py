"""Watching a process for an hour: what it uses, and how soon it answers."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

import httpx2
import psutil

ASKED = ("/healthz", "/api/queue/stats", "/api/jobs?size=20", "/api/upstreams?size=20",
         "/api/attention")  # fmt: skip


@dataclass(slots=True)
class Sample:
    at: float  # seconds since the beginning
    rss_mb: float
    files: int
    threads: int
    programs: int
    latencies_ms: list[float] = field(default_factory=list)
    failed: int = 0


class Watcher:
    """Samples one process every few seconds, until it is told to end."""

    def __init__(self, url: str, pid: int, every_s: float = 5.0) -> None:
        self._url = url
        self._process = psutil.Process(pid)
        self._every_s = every_s
        self._end = threading.Event()
        self._began = time.monotonic()
        self.samples: list[Sample] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._end.set()
        self._thread.join(30)

    def _watch(self) -> None:
        with httpx2.Client(base_url=self._url, timeout=30.0, trust_env=False) as http:
            while not self._end.wait(self._every_s):
                self.samples.append(self._sample(http))

    def _sample(self, http: httpx2.Client) -> Sample:
        process = self._process
        with process.oneshot():
            sample = Sample(
                time.monotonic() - self._began, process.memory_info().rss / 1e6,
                process.num_fds(), process.num_threads(), len(process.children(recursive=True)),
            )  # fmt: skip
        for path in ASKED:
            began = time.perf_counter()
            try:
                answer = http.get(path)
                sample.failed += answer.status_code != 200
            except httpx2.HTTPError:
                sample.failed += 1
            sample.latencies_ms.append((time.perf_counter() - began) * 1000)
        return sample


@dataclass(frozen=True, slots=True)
class Third:
    """One third of the time, as one line."""

    rss_mb: float
    files: int
    threads: int
    p50_ms: float
    p99_ms: float
    failed: int

    @classmethod
    def of(cls, samples: list[Sample]) -> Third:
        latencies = sorted(ms for each in samples for ms in each.latencies_ms)
        return cls(
            round(statistics.median(each.rss_mb for each in samples), 1),
            int(statistics.median(each.files for each in samples)),
            int(statistics.median(each.threads for each in samples)),
            round(latencies[len(latencies) // 2], 1),
            round(latencies[int(len(latencies) * 0.99)], 1),
            sum(each.failed for each in samples),
        )


def thirds(samples: list[Sample]) -> list[Third]:
    many = len(samples) // 3
    return [Third.of(samples[n * many : (n + 1) * many]) for n in range(3)]


def complaints(parts: list[Third]) -> Iterable[str]:
    """The first third is for caches that fill; what grows from the second to the last goes on
    growing.
    """
    _, middle, last = parts
    if last.rss_mb > middle.rss_mb * 1.08 + 5:
        yield f"memory grows: {middle.rss_mb} MB, then {last.rss_mb} MB"
    if last.files > middle.files + 12:
        yield f"open files grow: {middle.files}, then {last.files}"
    if last.threads > middle.threads + 4:
        yield f"threads grow: {middle.threads}, then {last.threads}"
    if last.p50_ms > middle.p50_ms * 2 + 5:
        yield f"answers get slower: {middle.p50_ms} ms, then {last.p50_ms} ms"
