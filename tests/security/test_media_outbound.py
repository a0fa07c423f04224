"""No list, page, file or picture leads a program to where nobody may go."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from tests.contract.kit import Api
from tests.contract.media_kit import SUBSCRIPTIONS
from tests.hands.kit import eventually
from tests.media.video_site import VideoSite
from tests.servers import server_on

LONG_S = 90.0
META = "169.254.169.254"


@dataclass
class Trap:
    """Listens where nobody should come, and notes who does."""

    ports: dict[str, int] = field(default_factory=dict)
    arrivals: list[str] = field(default_factory=list)


@contextmanager
def trap() -> Iterator[Trap]:
    made = Trap()
    with closing(socket.create_server(("127.0.0.1", 0))) as four:
        hosts = {"127.0.0.1": four}
        made.ports["127.0.0.1"] = four.getsockname()[1]
        try:
            six = socket.create_server(("::1", 0), family=socket.AF_INET6)
        except OSError:
            made.ports["::1"] = made.ports["127.0.0.1"]
        else:
            hosts["::1"] = six
            made.ports["::1"] = six.getsockname()[1]

        def listen(name: str, server: socket.socket) -> None:
            while True:
                try:
                    there, _ = server.accept()
                except OSError:
                    return
                made.arrivals.append(name)
                there.close()

        threads = [threading.Thread(target=listen, args=each, daemon=True)
                   for each in hosts.items()]  # fmt: skip
        for thread in threads:
            thread.start()
        try:
            yield made
        finally:
            for server in hosts.values():
                server.shutdown(socket.SHUT_RDWR)
                server.close()
            for thread in threads:
                thread.join(5)


@dataclass
class Town:
    api: Api
    site: VideoSite
    trap: Trap


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    """The site is allowed, and nothing else on this machine."""
    with trap() as made, VideoSite() as site:
        host = f"127.0.0.1:{site.port}"
        file = f'[upstream."{host}"]\nevery = "0.05s"\n'
        with (
            server_on("sqlite", file=file, media_on="yes", media_min_free_mb=0,
                      outbound_allow=host) as server,
            Api(server.url) as api,
        ):  # fmt: skip
            yield Town(api, site, made)
    assert made.arrivals == []


def test_the_trap_works() -> None:
    with trap() as made:
        with closing(socket.create_connection(("127.0.0.1", made.ports["127.0.0.1"]))) as there:
            there.recv(1)
        assert made.arrivals == ["127.0.0.1"]


@pytest.mark.parametrize("host", [
    "127.0.0.1:{port}", "[::1]:{six}", "[::ffff:127.0.0.1]:{port}", "10.0.0.1", "192.168.1.1",
    "172.16.0.1", META, "[fe80::1]", "[fd00::1]", "0.0.0.0:{port}", "100.64.0.1", "224.0.0.1",
    "someone:word@127.0.0.1:{port}", "127.0.0.1:{port}#@a.example",
])  # fmt: skip
def test_private_addresses_are_refused_at_the_door(town: Town, host: str) -> None:
    ports = town.trap.ports
    url = f"http://{host.format(port=ports['127.0.0.1'], six=ports['::1'])}/latest"
    for path, body in (
        (SUBSCRIPTIONS, {"url": url}),
        (f"{SUBSCRIPTIONS}/parse-collection", {"url": url}),
        ("/api/requests/enqueue", {"type": "parse", "url": url, "requires_cookie": False}),
        ("/api/requests/enqueue", {"type": "download", "url": url, "requires_cookie": True}),
        ("/api/archive/accounts", {"name": "x", "site": "127.0.0.1", "cookies": "SESSDATA=0123456",
                                   "check_url": url}),
    ):  # fmt: skip
        answer = town.api.http.post(path, json=body)
        assert answer.status_code == 422, (path, answer.text)
    assert town.api.get(SUBSCRIPTIONS)["items"] == []


@pytest.mark.timeout(300)
def test_nor_does_anything_lead_there(town: Town) -> None:
    api, site, ports = town.api, town.site, town.trap.ports
    bad = f"http://127.0.0.1:{ports['127.0.0.1']}"
    redirects = {name: site.redirect(f"/media/{name}.mp4", to) for name, to in {
        "name": f"http://localhost:{ports['127.0.0.1']}/x.mp4",
    }.items()}  # fmt: skip
    for name in redirects:
        site.video(name, pages=False)
    site.video("page", pages=True, more={"contentUrl": f"{bad}/x.mp4"})
    site.video("picture", pages=True, more={"thumbnailUrl": f"{bad}/x.jpg"})
    site.video("direct", pages=False)
    made = site.collection("c", count=0)
    made.videos += site.videos.values()
    feed = site.answer("/c/c.rss")[2].decode()
    direct = feed.replace(site.media_url("direct"), f"{bad}/direct.mp4")
    site.page("/c/c.rss", direct, kind="application/rss+xml")
    site.redirect("/away", f"{bad}/list.rss")

    # A name may lead anywhere, so only the program can see where. Each kind of request: a count, a
    # look, a list and downloads.
    away = api.post(SUBSCRIPTIONS, {"url": f"{site.url}/away", "start": False}, 201)["id"]
    id = api.post(SUBSCRIPTIONS, {"url": site.collection_url("c"), "interval_s": 0}, 201)["id"]
    asked = [
        api.post(f"{SUBSCRIPTIONS}/parse-collection", {"url": f"{site.url}/away"}, 202)["id"],
        api.post(f"{SUBSCRIPTIONS}/{away}/refresh-list", {}, 202)["id"],
        api.http.get(f"{SUBSCRIPTIONS}/{away}/expected-total").json()["request"]["id"],
    ]

    def over() -> bool:
        counts = api.get(f"{SUBSCRIPTIONS}/{id}")["counts"]
        ended = [api.get(f"/api/requests/{each}")["finished_at"] for each in asked]
        return counts["listed"] == 4 and counts["pending"] == 0 and all(ended)

    eventually(over, LONG_S)
    for each in asked:
        ended = api.get(f"/api/requests/{each}")
        assert ended["status"] == "failed"
        assert "unless the operator allows it" in ended["last_error"]
    items = {each["title"].split()[-1]: each for each in
             api.get(f"{SUBSCRIPTIONS}/{id}/items", size=50)["items"]}  # fmt: skip
    assert items.pop("picture")["state"] == "done"  # without its picture
    for name, each in items.items():
        assert (name, each["state"], each["failure"]) == (name, "failed", "refused"), each["reason"]
    assert town.trap.arrivals == []
