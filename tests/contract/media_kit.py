"""A server with the archive, tenants that sign in there, and a site with videos on loopback.

Most tests look at what is asked for and never at a site, so nothing runs unless `desk.run()` says
so: both lanes are paused. Items that a test needs are put where a list would have put them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import time
from typing import Any

from headway.apps.media.model import Item
from headway.apps.media.tables import ADD_ITEM
from headway.store import open_store
from tests.contract.feeds_kit import LOOPBACK, SECRET, signed
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.media.video_site import VideoSite
from tests.servers import Server, server_on

SUBSCRIPTIONS = "/api/subscriptions"
ITEMS = "/api/archive/items"
FAILURES = "/api/archive/failures"
PATIENCE_S = 40.0  # for programs that start on a busy machine


class Archivist(Api):
    """A client of one tenant."""

    tenant: str

    def add(self, url: str = "", **more: Any) -> JSON:
        """A subscription, to an address of its own if none is named."""
        url = url or f"https://{new_name()}.example/list"
        return self.post(SUBSCRIPTIONS, {"url": url, **more}, 201)

    def subscription(self, id: int) -> JSON:
        return self.get(f"{SUBSCRIPTIONS}/{id}")

    def change(self, id: int, **changes: Any) -> JSON:
        return self.ok("PATCH", f"{SUBSCRIPTIONS}/{id}", json=changes)

    def remove(self, id: int, **params: Any) -> JSON:
        return self.ok("DELETE", f"{SUBSCRIPTIONS}/{id}", params=params)

    def item(self, id: int) -> JSON:
        return self.get(f"{ITEMS}/{id}")

    def items(self, subscription: int, **filters: Any) -> list[JSON]:
        found: list[JSON] = self.get(f"{SUBSCRIPTIONS}/{subscription}/items", **filters)["items"]
        return found

    def open_requests(self, subscription: int, type: str = "") -> list[JSON]:
        asked = {"subscription_id": subscription, "size": 200, **({"type": type} if type else {})}
        listed = self.get("/api/requests", **asked)["items"]
        return [each for each in listed if each["finished_at"] is None]


@dataclass
class Desk:
    server: Server
    site: VideoSite
    _open: ExitStack
    _numbers: Iterator[int] = field(default_factory=lambda: count(1_000_000))

    def archivist(self, tenant: str = "", *scopes: str) -> Archivist:
        """Somebody of this tenant, or of a new one."""
        tenant = tenant or new_name("tenant")
        made = Archivist(self.server.url, signed(tenant, *scopes))
        made.tenant = tenant
        self._open.enter_context(made)
        return made

    def keeper(self) -> Archivist:
        """Somebody who is bound to no tenant."""
        made = self.archivist("keeper", "admin")
        made.tenant = ""
        return made

    def pause(self) -> None:
        self.keeper().post("/api/queue/pause", scope="all")

    def run(self) -> None:
        """Without what other tests have left, which would call sites that are not there."""
        for lane in ("no_cookie", "requires_cookie"):
            left = {"action": "cancel", "q": f"status:open lane:{lane}", "dry_run": False}
            self.keeper().post("/api/jobs/bulk", left)
        self.keeper().post("/api/queue/resume", scope="all")

    def put_items(self, who: Archivist, subscription: int, *said: dict[str, Any]) -> list[int]:
        """As if its list had them. Their numbers."""
        rows = [_item(next(self._numbers), who.tenant, subscription, place, each)
                for place, each in enumerate(said)]  # fmt: skip
        where = self.server.dsn or f"sqlite:///{self.server.data / 'headway.db'}"
        with closing(open_store(where)) as store:
            store.write([(ADD_ITEM, rows)])
        return [row.id for row in rows]

    def put_file(self, name: str, content: bytes = b"x") -> str:
        """Into the library."""
        path = self.server.data / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return name


def _item(id: int, tenant: str, subscription: int, place: int, said: dict[str, Any]) -> Item:
    now = time()
    usual: dict[str, Any] = {
        "key": f"key-{id}", "url": f"https://v.example/{id}", "title": f"Video {id}",
        "uploader": None, "published_at": None, "duration_s": None, "views": None, "place": place,
        "state": "found", "reason": None, "failure": None, "failures": 0, "files": None,
        "size_bytes": None, "found_at": now, "listed_at": now, "done_at": None, "gone_at": None,
        "changed_at": now,
    }  # fmt: skip
    if "files" in said:
        said = {**said, "files": json.dumps(said["files"])}
    return Item(id=id, tenant=tenant, subscription=subscription, **(usual | said))


def settled(who: Archivist, id: int, states: Sequence[str] = ("done", "failed", "skipped")) -> JSON:
    """The subscription, once its list is read and all of its items are at their end."""

    def over() -> JSON | None:
        ended = [each["state"] in states for each in who.items(id)]
        seen = who.subscription(id)  # looked at last, so that it is not older than that
        return seen if seen["complete"] and ended and all(ended) else None

    found: JSON = eventually(over, PATIENCE_S)
    return found


@contextmanager
def media_desk(store: str = "sqlite", file: str = "", **settings: object) -> Iterator[Desk]:
    """With `file` more of the settings file."""
    told = {"auth": "required", "jwt_secret": SECRET, "outbound_allow": LOOPBACK,
            "media_on": "yes", "media_min_free_mb": 0, **settings}  # fmt: skip
    with ExitStack() as stack:
        site = stack.enter_context(VideoSite())
        pace = f'[upstream."127.0.0.1:{site.port}"]\nevery = "0.05s"\n{file}'
        server = stack.enter_context(server_on(store, file=pace, **told))
        desk = Desk(server, site, stack.enter_context(ExitStack()))
        desk.pause()
        yield desk
