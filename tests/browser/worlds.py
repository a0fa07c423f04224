"""What a server has in it when a page is tried: something of everything, and all of it at rest.

No site is ever called: the lanes of feeds and of the archive are paused.
"""

from __future__ import annotations

from tests.contract.kit import Api, Worker
from tests.servers import Server

UPSTREAM = "video.example"
CHANNEL = "assistant"
FEED = "https://blog.example/feed.xml"
COLLECTION = "https://video.example/list/7"
# The archive is on, but its program is one that does nothing.
SETTINGS = {"media_on": "yes", "media_python": "/bin/false"}


def fill(server: Server) -> None:
    with Api(server.url) as api:
        for lane in ("feeds", "no_cookie", "requires_cookie"):
            api.post(f"/api/lanes/{lane}/pause")
        _jobs(api)
        _slots(api)
        api.post("/api/schedules",
                 {"name": "nightly report", "cron": "0 3 * * *", "zone": "Europe/Berlin",
                  "job": {"type": "report", "lane": "reports"}}, 201)  # fmt: skip
        api.post("/api/channels",
                 {"code": CHANNEL, "model": "small-1", "base_url": "https://llm.example/v1",
                  "rpm": 60, "price": {"input_per_1k": 0.5}}, 201)  # fmt: skip
        api.send("POST", "/api/backend/feeds", json={"url": FEED, "folder": "Reading"})
        api.send("POST", "/api/subscriptions", json={"url": COLLECTION, "title": "Lectures"})


def _jobs(api: Api) -> None:
    """Some are done, one has failed, one runs for as long as the tests do, the others wait."""
    api.ok("PUT", f"/api/upstreams/{UPSTREAM}/settings", json={"limit": 4})
    worker = Worker(api, "fetch")
    for number in range(6):
        api.enqueue("fetch", upstream=UPSTREAM, key=f"page-{number}", args={"page": number})
    for outcome in ({"kind": "ok"}, {"kind": "ok"}, {"kind": "failed"}):
        (work,) = worker.take()
        worker.complete(work, outcome=outcome)
    worker.take()
    for number in range(3):
        api.enqueue("transcode", upstream=UPSTREAM, lane="media", args={"file": f"{number}.mkv"})


def _slots(api: Api) -> None:
    """Two tenants share the one place of a host."""
    host = "slots.example"
    api.ok("PUT", f"/api/upstreams/{host}/settings", json={"limit": 1})
    ask = {"upstream": host, "wait_ms": 0, "lease_s": 600}
    api.send("POST", "/api/slots", json={**ask, "tenant": "first"})
    api.send("POST", "/api/slots", json={**ask, "tenant": "second"})
