"""The archive in a world with a clock of its own: sites do as they are told, weeks take a moment.

Only the program is replaced: queue, register, accounts and library are the real ones.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from headway import App
from headway.api.config import Config
from headway.apps.media import items
from headway.apps.media.application import Media
from headway.apps.media.fetcher.filters import reason_to_skip
from headway.apps.media.fetcher.protocol import FailureKind, Order, Task
from headway.apps.media.jobs import BY_HAND, COUNT, DOWNLOAD, LIST, new_request
from headway.apps.media.model import Item, State, Subscription
from headway.apps.media.presets import site_of
from headway.apps.media.running import Answer, Failure
from headway.store.records import NewJob
from headway.testing import World
from headway.testing.world import VirtualEngine
from tests.engine.kit import takes

T = TypeVar("T")
COOKIES = "SESSDATA={token}"
SIZE = 1_000


@dataclass
class Called:
    """One program that ran."""

    at: float
    ended_at: float
    task: str
    url: str
    site: str
    cookie: str | None
    start: int
    subscription: str
    agent: str


@dataclass
class Site:
    """Lists of videos, newest first, and how the site feels about being asked."""

    lists: dict[str, list[str]] = field(default_factory=dict)  # path: ids
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)  # of a video
    good_tokens: set[str] = field(default_factory=set)  # empty: no cookie is needed
    lists_need_cookie: bool = False
    failures: list[Failure] = field(default_factory=list)  # for the next ones that ask
    broken: dict[str, Failure] = field(default_factory=dict)  # by id of a video
    whole: bool = False  # whether a list comes as one piece
    count_known: bool = True
    takes_s: float = 2.0
    download_s: float = 20.0


class Web:
    """All sites, and who was there when."""

    def __init__(self, world: MediaWorld) -> None:
        self._world = world
        self.sites: dict[str, Site] = {}
        self.calls: list[Called] = []
        self.got: list[str] = []  # videos that came to their end
        self.under_way: list[Called] = []
        self.most_at_once = 0
        self.pushed: list[tuple[str, float]] = []  # which site pushed back, and when

    def of(self, task: str) -> list[Called]:
        return [each for each in self.calls if each.task == task]

    async def fetch(
        self, order: Order, *, timeout_s: float, on_entry: Any = None, on_progress: Any = None
    ) -> Answer:
        site = self.sites[urlsplit(order.url).hostname or ""]
        token = None
        if order.cookie_file is not None:
            text = Path(order.cookie_file).read_text()
            assert text.startswith("# Netscape HTTP Cookie File")
            token = text.strip().rpartition("\t")[2]
        call = Called(
            self._world.now, float("inf"), order.task.value, order.url, site_of(order.url), token,
            order.start, "", order.user_agent,
        )  # fmt: skip
        self.calls.append(call)
        self.under_way.append(call)
        self.most_at_once = max(self.most_at_once, len(self.under_way))
        try:
            await takes(site.takes_s if order.task is not Task.DOWNLOAD else site.download_s)
        finally:
            call.ended_at = self._world.now
            self.under_way.remove(call)
        return self._answer(site, order, token, on_entry, on_progress)

    def _answer(
        self, site: Site, order: Order, token: str | None, on_entry: Any, on_progress: Any
    ) -> Answer:
        if site.failures:
            said = site.failures.pop(0)
            if said.kind is FailureKind.PUSHBACK:
                self.pushed.append((site_of(order.url), self._world.now))
            return Answer(failure=said)
        needs = order.task is Task.DOWNLOAD or site.lists_need_cookie
        if needs and site.good_tokens and token not in site.good_tokens:
            return Answer(failure=Failure(kind=FailureKind.CREDENTIAL, status=403, message="no"))
        path = urlsplit(order.url).path
        if order.task is Task.DOWNLOAD:
            return self._download(site, order, path.rpartition("/")[2], on_progress)
        ids = site.lists.get(path)
        if ids is None:
            return Answer(failure=Failure(kind=FailureKind.GONE, status=404, message="not found"))
        if order.task is Task.COUNT:
            total = len(ids) if site.count_known else None
            return Answer(result={"total": total, "how": "field", "title": path, "exact": True})
        if order.task is Task.LOOK:
            return Answer(result={"kind": "playlist", "title": path, "total": len(ids)})
        return self._list(site, order, path, ids, on_entry)

    def _list(self, site: Site, order: Order, path: str, ids: list[str], on_entry: Any) -> Answer:
        end = len(ids) if site.whole else order.start + order.most
        host = urlsplit(order.url).netloc
        for place, id in list(enumerate(ids))[order.start : end]:
            facts = site.facts.get(id, {})
            on_entry({"key": f"x:{id}", "url": f"https://{host}/v/{id}", "title": f"Video {id}",
                      "position": place, **facts})  # fmt: skip
        following = end if end < len(ids) else None
        return Answer(result={"count": len(ids), "next": following, "title": f"List {path}"})

    def _download(self, site: Site, order: Order, id: str, on_progress: Any) -> Answer:
        if id in site.broken:
            return Answer(failure=site.broken[id])
        facts = {"title": f"Video {id}", **site.facts.get(id, {})}
        reason = reason_to_skip(
            order.filters, title=str(facts["title"]), published_at=facts.get("published_at"),
            duration_s=facts.get("duration_s"), views=facts.get("views"),
        )  # fmt: skip
        if reason is not None:
            return Answer(failure=Failure(kind=FailureKind.FILTERED, message=reason))
        assert order.directory is not None
        file = Path(order.directory) / "media.mp4"
        file.write_bytes(id.encode().ljust(SIZE, b"."))
        on_progress(SIZE, SIZE, "all of it")
        self.got.append(id)
        info = {"id": id, "extractor": "x", **facts}
        return Answer(result={"file": "media.mp4", "ext": "mp4", "size_bytes": SIZE, "info": info})


def failure(kind: FailureKind, status: int | None = None, **more: Any) -> Failure:
    return Failure(kind=kind, status=status, message=f"it answered {status or kind}", **more)


async def here(call: Callable[..., T], /, *args: Any) -> T:
    """In the place of a thread, which would let the clock run on."""
    return call(*args)


class MediaWorld(World):
    def __init__(self, app: App | None = None, **more: Any) -> None:
        super().__init__(App() if app is None else app, **more)
        self.media = Media()
        self.web = Web(self)
        self._prepared = False
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.data = Path(tempfile.mkdtemp(prefix="headway-media-", dir=memory))

    def __exit__(self, *_: object) -> None:
        super().__exit__(*_)
        shutil.rmtree(self.data, ignore_errors=True)

    def _start(self) -> VirtualEngine:
        if not self._prepared:
            self._prepared = True
            self.app.settings.declare("code", "lane", "requires_cookie", {"limit": 1})
            self.app.settings.declare("code", "lane", "no_cookie", {"limit": 2})
            self.media.prepare(self.app, Config(data=str(self.data)), None)
            self.media.visitor.fetch = self.web.fetch
            self.media.downloader.apart = lambda call: call()
            for part in (self.media.lister, self.media.counter, self.media.starter,
                         self.media.downloader):  # fmt: skip
                part.in_thread = here
        return super()._start()

    # ------------------------------------------------------------------ what tests do

    def turn(self, call: Callable[[float], T]) -> T:
        engine = self.app.engine
        assert engine is not None
        return engine.ask(call).result()

    def site(self, host: str, **more: Any) -> Site:
        return self.web.sites.setdefault(host, Site(**more))

    def subscribe(self, url: str, tenant: str = "", **more: Any) -> Subscription:
        return self.turn(lambda now: self.media.register.add(tenant, url, now, **more))

    def row(self, subscription: Subscription) -> Subscription:
        return self.media.register.subscriptions[subscription.id]

    def put(self, job: NewJob) -> int:
        return self.app.store.insert([job])[0].id

    def ask(self, type: str, subscription: Subscription, **more: Any) -> int:
        row = self.row(subscription)
        job = new_request(type, row.url, self.now, subscription=row, priority=BY_HAND, **more)
        id = self.put(job)
        engine = self.app.engine
        assert engine is not None
        engine.brain.heard()
        return id

    def list_now(self, subscription: Subscription, **more: Any) -> int:
        return self.ask(LIST, subscription, **more)

    def count_now(self, subscription: Subscription) -> int:
        return self.ask(COUNT, subscription)

    def download_now(self, subscription: Subscription) -> int:
        """As the route does it."""
        register = self.media.register
        self.turn(lambda _: register.put(self.row(subscription)._replace(wanted=1)))
        return self.list_now(subscription)

    def video(self, url: str, tenant: str = "") -> int:
        id = self.put(new_request(DOWNLOAD, url, self.now, tenant=tenant))
        assert self.app.engine is not None
        self.app.engine.brain.heard()
        return id

    def account(self, name: str, site: str, token: str) -> int:
        text = COOKIES.format(token=token)
        accounts = self.media.accounts
        return self.turn(lambda now: accounts.add(name, site, text, "", now)).id

    def items(self, subscription: Subscription | None = None) -> list[Item]:
        rows = self.app.store.rows(f"select {items.COLUMNS} from media_items order by id")
        found = [Item(*each) for each in rows]
        if subscription is None:
            return found
        return [each for each in found if each.subscription == subscription.id]

    def states(self, subscription: Subscription | None = None) -> dict[str, int]:
        counted: dict[str, int] = {}
        for each in self.items(subscription):
            counted[each.state] = counted.get(each.state, 0) + 1
        return counted

    def on_disk(self) -> list[str]:
        root = self.media.library.root
        return sorted(str(each.relative_to(root)) for each in root.rglob("*.mp4")
                      if ".headway" not in each.parts)  # fmt: skip

    def files(self, item: Item) -> dict[str, str]:
        assert item.state == State.DONE, item
        assert item.files is not None
        found: dict[str, str] = json.loads(item.files)
        return found

    def state_of(self, job: int) -> str:
        row = self.app.store.job(job)
        assert row is not None
        return row.state
