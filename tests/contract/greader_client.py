"""A reader app without a screen: it speaks the API of Google Reader as its public notes describe
it (mihaip/google-reader-api, FreshRSS, The Old Reader), and nothing else. It knows nothing of this
server but its address, and believes only what it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

JSON = dict[str, Any]
READING_LIST = "user/-/state/com.google/reading-list"
READ = "user/-/state/com.google/read"
STARRED = "user/-/state/com.google/starred"
LABEL = "user/-/label/"
ITEM = "tag:google.com,2005:reader/item/"
TIMEOUT_S = 30.0


class Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


class ReaderClient:
    """Each call once, as it goes over the wire."""

    def __init__(self, server: str) -> None:
        # Nothing here has a certificate, and to read those of the system takes long.
        self._http = httpx2.Client(timeout=TIMEOUT_S, verify=False)
        self._server = server.rstrip("/")
        self._auth = ""
        self._action_token = ""

    def __enter__(self) -> ReaderClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def log_in(self, email: str, password: str) -> None:
        form = {"Email": email, "Passwd": password, "service": "reader", "accountType": "GOOGLE"}
        text = self.send("POST", "/accounts/ClientLogin", data=form).text
        said = dict(line.split("=", 1) for line in text.splitlines() if line)
        self._auth = said["Auth"]
        self._action_token = ""

    # ------------------------------------------------------------------ looking

    def user(self) -> JSON:
        return self.get("user-info")

    def subscriptions(self) -> list[JSON]:
        found: list[JSON] = self.get("subscription/list")["subscriptions"]
        return found

    def labels(self) -> set[str]:
        tags = self.get("tag/list")["tags"]
        return {each["id"].partition("/label/")[2] for each in tags if "/label/" in each["id"]}

    def unread_counts(self) -> dict[str, int]:
        return {each["id"]: each["count"] for each in self.get("unread-count")["unreadcounts"]}

    def id_pages(self, stream: str, size: int = 1_000, **more: Any) -> Iterator[list[JSON]]:
        """Pages of `itemRefs`, for as long as the server says how to go on."""
        asked = {"s": stream, "n": size, **more}
        while True:
            page = self.get("stream/items/ids", **asked)
            yield page["itemRefs"]
            if not page.get("continuation"):
                return
            asked["c"] = page["continuation"]

    def ids(self, stream: str, size: int = 1_000, **more: Any) -> list[str]:
        return [each["id"] for page in self.id_pages(stream, size, **more) for each in page]

    def items(self, ids: Sequence[str]) -> list[JSON]:
        form = {"i": list(ids), "T": self._token()}
        answer = self._call("POST", "stream/items/contents", params={"output": "json"}, data=form)
        found: list[JSON] = answer.json()["items"]
        return found

    def stream(self, stream: str = "", **more: Any) -> JSON:
        return self.get(f"stream/contents/{stream}" if stream else "stream/contents", **more)

    def opml(self) -> str:
        return self._call("GET", "subscription/export").text

    # ------------------------------------------------------------------ changing

    def edit_tag(self, ids: Sequence[str], *, add: str = "", remove: str = "") -> None:
        self.post("edit-tag", i=list(ids), a=add, r=remove)

    def mark_all_as_read(self, stream: str, **more: Any) -> None:
        self.post("mark-all-as-read", s=stream, **more)

    def subscribe(self, url: str, *, title: str = "", label: str = "") -> None:
        self._edit("subscribe", f"feed/{url}", t=title, a=LABEL + label if label else "")

    def edit(self, stream: str, *, title: str = "", into: str = "", out_of: str = "") -> None:
        self._edit(
            "edit", stream, t=title, a=LABEL + into if into else "",
            r=LABEL + out_of if out_of else "",
        )  # fmt: skip

    def unsubscribe(self, stream: str) -> None:
        self._edit("unsubscribe", stream)

    def quick_add(self, address: str) -> JSON:
        form = {"quickadd": address, "T": self._token()}
        found: JSON = self._call("POST", "subscription/quickadd", data=form).json()
        return found

    def rename_label(self, before: str, after: str) -> None:
        self.post("rename-tag", s=LABEL + before, dest=LABEL + after)

    def drop_label(self, label: str) -> None:
        self.post("disable-tag", s=LABEL + label)

    def import_opml(self, document: bytes) -> str:
        headers = {"Content-Type": "text/xml"}
        return self._call("POST", "subscription/import", content=document, headers=headers).text

    # ------------------------------------------------------------------ how

    def get(self, path: str, **params: Any) -> JSON:
        found: JSON = self._call("GET", path, params={"output": "json", **params}).json()
        return found

    def post(self, path: str, **form: Any) -> None:
        said = {name: value for name, value in form.items() if value != ""}
        answer = self._call("POST", path, data={**said, "T": self._token()})
        assert answer.text == "OK", answer.text

    def send_form(self, path: str, query: str, **form: Any) -> httpx2.Response:
        """With the same in the address, as it is."""
        return self._call("POST", f"{path}?{query}", data=form)

    def _edit(self, action: str, stream: str, **more: Any) -> None:
        self.post("subscription/edit", ac=action, s=stream, **more)

    def _token(self) -> str:
        if not self._action_token:
            self._action_token = self._call("GET", "token").text
        return self._action_token

    def _call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"GoogleLogin auth={self._auth}", **more.pop("headers", {})}
        return self.send(method, f"/reader/api/0/{path}", headers=headers, **more)

    def send(self, method: str, path: str, **more: Any) -> httpx2.Response:
        answer = self._http.request(method, self._server + path, **more)
        if answer.status_code != 200:
            raise Refused(answer.status_code, answer.text)
        return answer


@dataclass
class Account:
    """What an app keeps of an account, and how it comes to know the rest."""

    client: ReaderClient
    page: int = 1_000  # ids of one page
    batch: int = 150  # items of one request
    feeds: dict[str, JSON] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    items: dict[str, JSON] = field(default_factory=dict)  # by decimal id
    unread: set[str] = field(default_factory=set)
    starred: set[str] = field(default_factory=set)
    after_page: Callable[[], None] = lambda: None
    fetched: int = 0  # items that were asked for
    _newest: int = 0  # seconds, of the newest item that is known
    _to_send: list[tuple[str, bool, str]] = field(default_factory=list)

    def mark(self, id: str, state: str, on: bool) -> None:
        """Here and now; the server hears of it with the next sync."""
        kept, there = (self.starred, on) if state == STARRED else (self.unread, not on)
        (kept.add if there else kept.discard)(id)
        self._to_send.append((state, on, id))

    def sync(self) -> None:
        """What was marked here goes first, so that it is not undone by what comes."""
        self._send_marks()
        self.feeds = {each["id"]: each for each in self.client.subscriptions()}
        self.labels = self.client.labels()
        since = {"ot": self._newest} if self._newest else {}
        found = self._all(READING_LIST, **since)
        self.unread = set(self._all(READING_LIST, xt=READ))
        self.starred = set(self._all(STARRED))
        wanted = {*found, *self.unread, *self.starred} - set(self.items)
        self._fetch(sorted(wanted, key=int))

    def titles(self, ids: set[str] | None = None) -> list[str]:
        chosen = self.items if ids is None else ids
        return sorted(self.items[id]["title"] for id in chosen)

    def _all(self, stream: str, **more: Any) -> list[str]:
        found: list[str] = []
        for page in self.client.id_pages(stream, self.page, **more):
            found += [each["id"] for each in page]
            self.after_page()
        return found

    def _fetch(self, ids: list[str]) -> None:
        for start in range(0, len(ids), self.batch):
            some = ids[start : start + self.batch]
            self.fetched += len(some)
            for item in self.client.items(some):
                # Ids come back in the long form, and are asked for in the short one.
                id = str(int(item["id"].removeprefix(ITEM), 16))
                self.items[id] = item
                self._newest = max(self._newest, int(item["crawlTimeMsec"]) // 1_000)

    def _send_marks(self) -> None:
        for state in (READ, STARRED):
            for on in (True, False):
                ids = [id for named, added, id in self._to_send if (named, added) == (state, on)]
                if ids:
                    tags = {"add": state} if on else {"remove": state}
                    self.client.edit_tag(ids, **tags)
        self._to_send.clear()
