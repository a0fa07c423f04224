"""Refreshing feeds reaches the public Internet and what the operator has named, on every hop; and a
feed that is a bomb harms nobody but itself.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from headway import App
from headway.api.config import Config
from headway.apps.feeds import visiting
from headway.apps.feeds.application import Feeds
from headway.apps.feeds.fetching import Fetcher
from headway.apps.feeds.model import Source
from headway.apps.feeds.register import wanted_feed
from tests.contract.feeds_kit import (
    FEEDS,
    SECRET,
    LoopbackSite,
    Reader,
    answers,
    feeds_desk,
    loopback_site,
    signed,
)
from tests.contract.kit import JSON
from tests.feeds.documents import item, rss
from tests.feeds.strange_site import feed, redirects
from tests.hands.kit import eventually
from tests.net.kit import Names
from tests.servers import server_on

PUBLIC = "93.184.216.34"
# What is said of it. Not everything that some programs take for an address is one.
REFUSALS = (
    "may not be called from here", "user name or password", "no address", "cannot be looked up",
)  # fmt: skip
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))
# Where nobody may go, in all ways of writing it. Port 9 stands for one where somebody listens.
CLOSED = [
    "127.0.0.1:9", "127.0.0.2:9", "127.1:9", "2130706433:9", "0x7f000001:9", "0x7f.1:9",
    "017700000001:9", "0177.0.0.1:9", "127.0.0.1.:9", "localhost:9", "localhost.:9", "0:9",
    "0.0.0.0:9", "[::]:9", "[::1]:9", "[::ffff:127.0.0.1]:9", "[::ffff:7f00:1]:9",
    "[::127.0.0.1]:9", "[64:ff9b::7f00:1]:9", "[2002:7f00:1::]:9", "user:pass@127.0.0.1:9",
    "user@a.example", "\uff11\uff12\uff17.0.0.1:9", "127\u30020\u30020\u30021:9",
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "198.18.0.1",
    "192.0.0.1", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[fd00::1]", "[ff02::1]",
    "[64:ff9b::a00:1]", "[::ffff:169.254.169.254]", "[2001:db8::1]",
]  # fmt: skip


@contextmanager
def listening() -> Iterator[tuple[int, list[Any]]]:
    """A port of this machine in both families, and who came."""
    came: list[Any] = []
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:

        def accept() -> None:
            try:
                while True:
                    connection, who = server.accept()
                    came.append(who)
                    connection.close()
            except OSError:
                return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@dataclass
class Outside:
    """A server that may call one address of this machine: that of a site."""

    reader: Reader
    site: LoopbackSite
    here: str
    port: int  # of somebody whom nobody may call
    came: list[Any] = field(default_factory=list)

    def places(self) -> list[str]:
        return [f"http://{each.replace(':9', f':{self.port}')}/x" for each in CLOSED]


@pytest.fixture(scope="module")
def outside() -> Iterator[Outside]:
    with loopback_site() as site, listening() as (port, came):
        here = f"http://127.0.0.1:{site.port}"
        told = {"auth": "required", "jwt_secret": SECRET, "file": QUICK,
                "outbound_allow": f"127.0.0.1:{site.port}"}  # fmt: skip
        with server_on("sqlite", **told) as server, Reader(server.url, signed("eve")) as reader:
            assert isinstance(reader, Reader)
            yield Outside(reader, site, here, port, came)


def settled(reader: Reader, ids: list[str]) -> dict[str, JSON]:
    def look() -> dict[str, JSON] | None:
        shown = {each["id"]: each for each in reader.feeds()}
        found = {id: shown[id] for id in ids}
        return found if all(each["last_tried"] for each in found.values()) else None

    found: dict[str, JSON] = eventually(look, 60)
    return found


# ---------------------------------------------------------------------- hops


def test_no_redirect_leads_inside(outside: Outside) -> None:
    """Not even if it is the second one, or one that has moved for good."""
    reader, site = outside.reader, outside.site
    wanted = []
    for number, place in enumerate(outside.places()):
        last = site.page(path=f"/last/{number}", host=outside.here)
        as_bytes = place.encode().decode("latin-1")  # which is how headers are written
        last.says = redirects((301, 302, 303, 307, 308)[number % 5], as_bytes)
        page = site.page(path=f"/first/{number}", host=outside.here)
        page.says = redirects(302, last.url) if number % 2 else last.says
        wanted.append({"id": f"r{number}", "url": page.url})
    reader.post(FEEDS, wanted, 201)
    for id, now in settled(reader, [each["id"] for each in wanted]).items():
        place = CLOSED[int(id[1:])]
        assert now["status"] == "error", place
        assert is_refusal(now["error"]), (place, now["error"])
        assert now["url"] == wanted[int(id[1:])]["url"]
    assert outside.came == []


def is_refusal(error: str) -> bool:
    return any(said in error for said in REFUSALS)


def test_nor_does_any_address_that_somebody_names(outside: Outside) -> None:
    """What can be refused at once is; a name is looked up when it is called."""
    reader = outside.reader
    later: dict[str, str] = {}
    for number, place in enumerate(outside.places()):
        answer = reader.http.post(FEEDS, json={"id": f"n{number}", "url": place})
        if answer.status_code == 201:
            later[f"n{number}"] = place
        else:
            assert answer.status_code == 422, place
            assert is_refusal(answer.json()["detail"]), place
    assert 1 <= len(later) <= 12
    for id, now in settled(reader, list(later)).items():
        assert (now["status"], is_refusal(now["error"])) == ("error", True), (later[id], now)
    assert outside.came == []


def test_what_is_allowed_is_open_and_nothing_beside_it(outside: Outside) -> None:
    reader, site = outside.reader, outside.site
    page = site.page("one", path="/allowed", host=outside.here)
    beside = site.page("one", path="/allowed", host=f"http://127.0.0.2:{site.port}")
    assert reader.settled(reader.add(page)["id"])["status"] == "ok"
    reader.problem(422, "POST", FEEDS, "bad-feed", json={"url": beside.url})
    elsewhere = reader.add(f"http://localhost:{outside.port}/beside")
    assert is_refusal(reader.settled(elsewhere["id"])["error"])
    assert (beside.visits, outside.came) == ([], [])


# ---------------------------------------------------------------------- names that change


@dataclass
class Home:
    """Feeds without a server, whose names lead where a test says."""

    feeds: Feeds
    app: App
    names: Names
    connected: list[tuple[str, int]]

    def visit(self, url: str) -> Source:
        register, engine = self.feeds.register, self.app.engine
        assert engine is not None
        wanted = [wanted_feed("it", url)]
        if register.source_at(url) is None:
            engine.ask(lambda now: register.subscribe("ann", wanted, now)).result()
        else:
            engine.ask(lambda now: register.refresh_now(("ann", "it"), now)).result()
        before = register.source_at(url)
        assert before is not None
        found: Source = eventually(
            lambda: (row := register.source_at(url)) and row.tried_at != before.tried_at and row
        )
        return found


@contextmanager
def home(
    monkeypatch: pytest.MonkeyPatch, directory: Path, allowed: str, names: Names
) -> Iterator[Home]:
    connected: list[tuple[str, int]] = []
    really = httpcore2.AnyIOBackend.connect_tcp

    async def connect(self: Any, host: str, port: int, *more: Any, **named: Any) -> Any:
        connected.append((host, port))
        if not host.startswith("127."):
            raise httpcore2.ConnectError("nobody goes out of this test")
        return await really(self, host, port, *more, **named)

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    monkeypatch.setattr(visiting, "Fetcher", partial(Fetcher, resolve=names))
    app, feeds = App(f"sqlite:///{directory / 'headway.db'}"), Feeds()
    feeds.prepare(app, Config(data=str(directory), outbound_allow=(allowed,)), None)
    with app.running():
        try:
            yield Home(feeds, app, names, connected)
        finally:
            asyncio.run(feeds.stop())
    app.close()


def test_a_name_is_called_at_the_very_address_that_was_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with loopback_site() as site:
        page = site.page("stolen", host=f"http://rebind.example:{site.port}")
        names = Names(rebind_example=[[PUBLIC], ["127.0.0.1"]])
        with home(monkeypatch, tmp_path, "10.9.9.9", names) as here:
            first = here.visit(page.url)
            assert here.connected == [(PUBLIC, site.port)]
            assert names.asked == ["rebind.example"]  # once, and not again to connect
            assert (first.status, "cannot be reached" in (first.error or "")) == ("error", True)
            second = here.visit(page.url)
            assert is_refusal(second.error or "")
            assert "127.0.0.1" not in (second.error or "")  # where it leads is nobody's business
            assert here.connected == [(PUBLIC, site.port)]
        assert page.visits == []


def test_of_several_addresses_only_those_are_called_that_may_be(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    both = Names(both_example=[["127.0.0.1", "10.0.0.1", PUBLIC, "::1", "::ffff:10.0.0.1"]])
    with home(monkeypatch, tmp_path, "10.9.9.9", both) as here:
        assert here.visit("http://both.example:81/feed").status == "error"
        assert here.connected == [(PUBLIC, 81)]


def test_nor_is_a_hop_followed_to_a_name_that_leads_inside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with loopback_site() as site, loopback_site() as other:
        stolen = other.page("stolen", host=f"http://inside.example:{other.port}")
        page = site.page(host=f"http://127.0.0.1:{site.port}")
        page.says = redirects(302, stolen.url)
        names = Names(inside_example=[[PUBLIC], ["127.0.0.1"]])
        with home(monkeypatch, tmp_path, f"127.0.0.1:{site.port}", names) as here:
            here.visit(page.url)
            assert here.connected == [("127.0.0.1", site.port), (PUBLIC, other.port)]
            assert is_refusal(here.visit(page.url).error or "")
        assert (len(page.visits), stolen.visits) == (2, [])


# ---------------------------------------------------------------------- bombs

# feedparser looks for a mail address in it, and tries each place where one might begin.
SLOW = rss(item(f"<author>{'a' * 1_000_000}</author>")).encode()
LARGE = rss("<item><title/></item>" * 400_000).encode()


@pytest.mark.soak
def test_a_feed_that_is_a_bomb_harms_no_other() -> None:
    with feeds_desk(file="[feeds]\nparsers = 2\n") as desk:
        eve, ann = desk.reader(), desk.reader()
        for body in (SLOW, LARGE, SLOW):
            page = desk.site.page()
            page.says = answers(body)
            eve.add(page)
        pages = []
        for number in range(20):
            pages.append(desk.site.page())
            pages[-1].says = feed(f"Article {number}")
        ids = [ann.add(page)["id"] for page in pages]
        assert {each["status"] for each in settled(ann, ids).values()} == {"ok"}
        bombs = settled(eve, [each["id"] for each in eve.feeds()])
        for each in bombs.values():
            assert each["status"] == "error"
            assert "Reading the feed took too much" in each["error"]
        for id in ids:
            ann.force(id)
        eventually(lambda: all(len(page.visits) == 2 for page in pages))
