"""kill -9 of a real server while people add, force, change and remove feeds: each source that is
wanted has one open job afterwards, and each reader has each article once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any

import httpx2
import pytest

from headway.store import Store, open_store
from tests.contract.feeds_kit import FEEDS, LOOPBACK, SECRET, LoopbackSite, loopback_site, signed
from tests.feeds.strange_site import feed
from tests.hands.kit import eventually
from tests.security.kit import store_of
from tests.servers import NewServer, Server

HOSTS, FEEDS_OF_ONE = 12, 5
PEOPLE = ("ann", "bob", "eve")
IN_DOCUMENT = 6  # articles; each visit finds two more, and loses two
# Nobody waits for a second between two requests: as much as possible should happen.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.01s"' for digit in range(10))
OPEN = "state not in ('completed', 'failed', 'cancelled')"


class Papers:
    """Sites that have something new for everybody who comes."""

    def __init__(self, site: LoopbackSite) -> None:
        self.visits = 0
        self.published: dict[str, int] = {}
        self._lock = threading.Lock()
        hosts = [site.host() for _ in range(HOSTS)]
        self.urls = [f"{host}/{number}" for host in hosts for number in range(FEEDS_OF_ONE)]
        for url in self.urls:
            host, _, path = url.rpartition("/")
            site.page(path=f"/{path}", host=host).says = self._paper(url)

    def _paper(self, url: str) -> Callable[[BaseHTTPRequestHandler], None]:
        def answer(handler: BaseHTTPRequestHandler) -> None:
            with self._lock:
                self.visits += 1
                last = self.published[url] = self.published.get(url, 0) + 2
            feed(*(str(number) for number in range(max(0, last - IN_DOCUMENT), last)))(handler)

        return answer


class Person:
    """Does whatever comes to mind to feeds of his own, whether the server is there or not."""

    def __init__(self, tenant: str, server: Server, papers: Papers, seed: int) -> None:
        self.tenant = tenant
        self._random = Random(seed)
        self._papers = papers
        said = {"Authorization": f"Bearer {signed(tenant)}"}
        self.http = httpx2.Client(base_url=server.url, headers=said, timeout=20, verify=False)
        self.known: dict[str, bool | None] = {}  # whether a feed is there; None: nobody knows
        self.wrong: list[str] = []
        self.did: Counter[str] = Counter()

    def live(self, over: threading.Event) -> None:
        with self.http:
            while not over.is_set():
                act = self._random.choice(
                    ("add", "add", "add", "remove", "force", "force", "interval", "pause", "all")
                )
                try:
                    getattr(self, f"_{act}")()
                    self.did[act] += 1
                except httpx2.TransportError:
                    over.wait(0.02)  # the server is dead

    def _say(self, method: str, path: str, body: Any, *good: int) -> int:
        status = self.http.request(method, path, json=body).status_code
        if status not in good:
            self.wrong.append(f"{method} {path}: {status}")
        return status

    def _change(self, id: str, there: bool, method: str, path: str, body: Any, *good: int) -> None:
        """What was answered holds; of what was not, nobody knows."""
        self.known[id] = None
        self._say(method, path, body, *good)
        self.known[id] = there

    def _some(self) -> str | None:
        there = [id for id, known in self.known.items() if known]
        return self._random.choice(there) if there else None

    def _add(self) -> None:
        """Several at once, all or none of them."""
        chosen = self._random.sample(range(len(self._papers.urls)), 4)
        some = [each for each in chosen if self.known.get(str(each), False) is False]
        if not some:
            return
        body = [{"id": str(each), "url": self._papers.urls[each]} for each in some]
        self.known |= dict.fromkeys(map(str, some))
        self._say("POST", FEEDS, body, 201)
        self.known |= dict.fromkeys(map(str, some), True)

    def _remove(self) -> None:
        if (id := self._some()) is not None:
            self._change(id, False, "DELETE", f"{FEEDS}/{id}", None, 200)

    def _force(self) -> None:
        if (id := self._some()) is not None:
            body = {"feed_id": id, "force_immediate": True}
            self._say("POST", "/api/backend/queue/schedule-feed", body, 200)

    def _interval(self) -> None:
        if (id := self._some()) is not None:
            body = {"refresh_interval": self._random.choice((1, 30, 10_080))}
            self._say("PATCH", f"{FEEDS}/{id}", body, 200)

    def _pause(self) -> None:
        if (id := self._some()) is not None:
            body = {"paused": self._random.random() < 0.4}
            self._say("PATCH", f"{FEEDS}/{id}", body, 200)

    def _all(self) -> None:
        self._say("POST", "/api/backend/queue/schedule-all", {}, 202, 429)


def rounds_of(server: Server, tenant: str) -> list[dict[str, Any]]:
    with httpx2.Client(base_url=server.url, verify=False) as http:
        said = {"Authorization": f"Bearer {signed(tenant)}"}
        found = http.get("/api/backend/queue/rounds", headers=said, params={"limit": 100}).json()
    items: list[dict[str, Any]] = found["items"]
    return items


def is_quiet(server: Server) -> bool:
    """All rounds have ended, and nobody is at work for a feed."""
    with httpx2.Client(base_url=server.url, verify=False) as http:
        said = {"Authorization": f"Bearer {signed('chief', 'admin')}"}
        busy = [
            http.get("/api/requests", headers=said, params={"status": status, "type": type}).json()
            for status, type in (("running", "feeds.refresh"), ("queued", "feeds.fill"),
                                 ("running", "feeds.fill"))
        ]  # fmt: skip
    ended = all(each["finished_at"] for tenant in PEOPLE for each in rounds_of(server, tenant))
    return ended and not any(each["items"] for each in busy)


# ---------------------------------------------------------------------- afterwards


def check(store: Store, people: list[Person]) -> None:
    check_schedules(store)
    check_subscriptions(store, people)
    check_articles(store)


def check_schedules(store: Store) -> None:
    wanted = store.rows(
        "select 'feed:' || s.id from feed_sources s where s.status not in ('gone', 'moved') and "
        "exists (select 1 from feed_subscriptions f where f.source = s.id and f.paused = 0)"
    )
    rows = store.rows(f"select key, state from jobs where type = 'feeds.refresh' and {OPEN}")
    assert sorted(key for key, _ in rows) == sorted(key for (key,) in wanted)
    assert {state for _, state in rows} <= {"pending", "queued"}
    assert len(wanted) > 10


def check_subscriptions(store: Store, people: list[Person]) -> None:
    rows = store.rows("select tenant, id, source from feed_subscriptions")
    there = {(tenant, id) for tenant, id, _ in rows}
    sources = {id for (id,) in store.rows("select id from feed_sources")}
    assert {source for _, _, source in rows} == sources
    for each in people:
        assert each.wrong == []
        for id, known in each.known.items():
            if known is not None:
                assert ((each.tenant, id) in there) == known, f"feed {id} of {each.tenant}"


def check_articles(store: Store) -> None:
    """Each reader has what was found for his feed, and has it once. Who has paused misses some."""
    published = store.rows(
        "select f.tenant, f.id, a.id, a.title from feed_subscriptions f join feed_articles a "
        "on a.source = f.source and a.announced = 1 where f.paused = 0"
    )
    seen = store.rows(
        "select f.tenant, f.id, e.article, a.title from feed_subscriptions f "
        "join feed_entries e on e.tenant = f.tenant and e.feed = f.id "
        "left join feed_articles a on a.id = e.article where f.paused = 0"
    )
    assert Counter(seen) == Counter(published)
    assert len(seen) > 100
    found = Counter((tenant, id, title) for tenant, id, _, title in seen)
    assert set(found.values()) == {1}
    lost = store.rows(
        "select e.id from feed_entries e where not exists (select 1 from feed_subscriptions f "
        "where f.tenant = e.tenant and f.id = e.feed)"
    )
    assert lost == []


def killed(server: Server, site: LoopbackSite, kills: int, seed: int) -> None:
    random, papers, over = Random(seed), Papers(site), threading.Event()
    people = [Person(name, server, papers, seed + place) for place, name in enumerate(PEOPLE)]
    with ThreadPoolExecutor(len(people)) as pool:
        lives = [pool.submit(each.live, over) for each in people]
        try:
            for _ in range(kills):
                until = papers.visits + random.randint(1, 60)
                eventually(lambda limit=until: papers.visits >= limit)
                server.kill()
                server.start()
        finally:
            over.set()
        for each in lives:
            each.result()
    eventually(lambda: is_quiet(server), 60)
    assert server.stop() == 0
    with closing(open_store(store_of(server))) as store:
        check(store, people)
    assert all(each.did[act] for each in people for act in ("add", "remove", "force", "all"))


@pytest.fixture
def site() -> Iterator[LoopbackSite]:
    with loopback_site() as running:
        yield running


@pytest.fixture
def server(new_server: NewServer) -> Server:
    return new_server(auth="required", jwt_secret=SECRET, outbound_allow=LOOPBACK, file=QUICK)


def test_one_schedule_for_each_feed_whenever_the_server_dies(
    server: Server, site: LoopbackSite
) -> None:
    killed(server, site, kills=3, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(4))
def test_the_same_for_longer(server: Server, site: LoopbackSite, seed: int) -> None:
    killed(server, site, kills=30, seed=100 * seed)
