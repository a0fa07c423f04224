"""What it costs to have the page open: bytes, time, long tasks, memory. Measured by the browser."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from playwright.sync_api import CDPSession, Page

from tests.browser.kit import Visits, wait_until

# Everything is noted in the page itself, from its first moment on.
NOTES = """
  globalThis.notes = { longTasks: [], readyMs: null };
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) {
      notes.longTasks.push({ at: Math.round(task.startTime), ms: Math.round(task.duration) });
    }
  }).observe({ type: "longtask", buffered: true });
  new MutationObserver(() => {
    if (document.documentElement?.dataset.ready && notes.readyMs === null) {
      notes.readyMs = performance.now();
    }
  }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
"""


@dataclass
class Received:
    """Bytes as they came over the wire, headers included; also those of shared workers."""

    total: int = 0
    by_url: dict[str, int] = field(default_factory=dict)
    _urls: dict[str, str] = field(default_factory=dict)
    _finished: dict[str, int] = field(default_factory=dict)

    def hear(self, event: str, said: dict[str, Any]) -> None:
        if event == "Network.responseReceived":
            self._urls[said["requestId"]] = said["response"]["url"]
        elif event == "Network.dataReceived":
            self._add(said["requestId"], said["encodedDataLength"])
        elif event == "Network.loadingFinished":
            before = self._finished.get(said["requestId"], 0)
            self._add(said["requestId"], int(said["encodedDataLength"]) - before)

    def _add(self, id: str, many: int) -> None:
        self._finished[id] = self._finished.get(id, 0) + many
        self.total += many
        url = self._urls.get(id, "a script of a worker")
        self.by_url[url] = self.by_url.get(url, 0) + many

    def told(self) -> str:
        rows = sorted(self.by_url.items(), key=lambda row: -row[1])
        return "\n".join(f"{many:8,d}  {url}" for url, many in rows)


def counting(page: Page, visits: Visits) -> Received:
    """From now on."""
    received = Received()
    session = page.context.new_cdp_session(page)
    for event in ("responseReceived", "dataReceived", "loadingFinished"):
        name = f"Network.{event}"
        session.on(name, lambda said, name=name: received.hear(name, said))
    session.send("Network.enable")
    visits.chromium.workers.hearers.append(received.hear)
    return received


def ready_ms(page: Page) -> float:
    """From the start of the navigation to the first data on the screen."""
    found: float = wait_until(page, "() => globalThis.notes.readyMs")
    return found


@dataclass
class Weight:
    heap: int  # bytes
    nodes: int
    listeners: int


class Scales:
    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)
        self.weights: list[Weight] = []

    def weigh(self) -> None:
        """After a collection: what is left is really held."""
        self._session.send("HeapProfiler.collectGarbage")
        heap = self._session.send("Runtime.getHeapUsage")
        counters = self._session.send("Memory.getDOMCounters")
        self.weights.append(
            Weight(int(heap["usedSize"]), counters["nodes"], counters["jsEventListeners"])
        )

    def thirds(self, what: str) -> tuple[float, float]:
        """The mean of the middle third and of the last: the first has things to learn."""
        values = [getattr(weight, what) for weight in self.weights]
        third = max(1, len(values) // 3)
        return mean(values[-2 * third : -third] or values[:1]), mean(values[-third:])
