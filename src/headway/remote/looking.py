"""What anybody may read, asked of a server: `store.protocol.Looking`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from headway.core.explain import Explanation
from headway.errors import BadJob, UnknownJob
from headway.remote import wire
from headway.remote.answers import NoResult
from headway.remote.client import Ask, Client
from headway.store.records import (
    BatchRow,
    Event,
    Job,
    Progress,
    Query,
    Result,
    Schedule,
    TrailRow,
    TypeStats,
)

T = TypeVar("T")

MAX_PAGE = 200
MAX_EVENTS = 1_000
INF = float("inf")


class Value(msgspec.Struct):
    """A payload, a result or a checkpoint, as the text that is stored."""

    value: msgspec.Raw
    expires_at: str | None = None

    def text(self) -> str:
        return bytes(self.value).decode()


def path(*parts: object) -> str:
    """`path("jobs", 7)` is /api/jobs/7; names may have any characters."""
    return "/api/" + "/".join(quote(str(part), safe="") for part in parts)


def if_there(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except UnknownJob:
        return None


class RemoteLooker:
    _client: Client

    def _get(self, *parts: object, **query: Any) -> Any:
        return self._client.call(Ask("GET", path(*parts), query=query))

    # ------------------------------------------------------------------ one job

    def job(self, id: int) -> Job | None:
        view = if_there(lambda: self._get("jobs", id))
        return None if view is None else wire.job_row(view)

    def explain(self, id: int) -> Explanation:
        """Why a job waits, since when, in which place, until when."""
        return wire.explanation(self._get("jobs", id, "explain"))

    def payload(self, id: int) -> str | None:
        return self._text(id, "payload")

    def checkpoint(self, id: int) -> str | None:
        return self._text(id, "checkpoint")

    def _text(self, id: int, what: str) -> str | None:
        ask = Ask("GET", path("jobs", id, what))
        kept = if_there(lambda: self._client.call(ask, Value))
        return None if kept is None or kept.text() == "null" else kept.text()

    def result(self, id: int) -> Result | None:
        """ResultExpired: there was one. What has returned nothing has the result `null`."""
        ask = Ask("GET", path("jobs", id, "result"))
        try:
            kept = if_there(lambda: self._client.call(ask, Value))
        except NoResult:
            return None
        if kept is None:
            return None
        ends_at = wire.stamp(kept.expires_at)
        return Result(kept.text(), INF if ends_at is None else ends_at)

    def progress(self, id: int) -> Progress | None:
        view = if_there(lambda: self._get("jobs", id))
        return None if view is None else wire.progress_row(view["progress"])

    def progress_of(self, ids: Iterable[int]) -> dict[int, Progress]:
        found = {id: self.progress(id) for id in ids}
        return {id: progress for id, progress in found.items() if progress is not None}

    def logs(self, id: int) -> list[tuple[float, str, str]]:
        answer = if_there(lambda: self._get("jobs", id, "logs")) or {"items": []}
        return [(wire.stamp_or_0(each["at"]), each["level"], each["line"])
                for each in answer["items"]]  # fmt: skip

    def events_of(self, id: int) -> list[Event]:
        answer = if_there(lambda: self._get("jobs", id, "events")) or {"items": []}
        return [wire.event_row(each) for each in answer["items"]]

    # ------------------------------------------------------------------ many jobs

    def jobs(self, query: Query) -> list[Job]:
        """Newest first. The server gives pages, so what changes meanwhile may be seen twice."""
        size = min(max(query.limit, 1), MAX_PAGE)
        words = wire.search(query)
        number, skip = divmod(query.offset, size)
        found: list[Job] = []
        while len(found) < skip + query.limit:
            number += 1
            page = self._get("jobs", **words, page=number, size=size)
            found += [wire.job_row(view) for view in page["items"]]
            if len(page["items"]) < size:
                break
        return found[skip : skip + query.limit]

    def count(self, query: Query) -> int:
        return int(self._get("jobs", **wire.search(query), size=1)["total"])

    def tally(self, tenant: str | None = None) -> list[tuple[str, str, int]]:
        if tenant is not None:
            raise BadJob("over HTTP the token says whose jobs are counted; name no tenant")
        lanes = self._get("queue", "stats")["lanes"]
        return sorted((lane, state, n) for lane, by in lanes.items() for state, n in by.items())

    def stats(self, since: float, tenant: str | None = None) -> list[TypeStats]:
        if tenant is not None:
            raise BadJob("over HTTP the token says whose jobs are counted; name no tenant")
        hours = None if since <= 0 else max((time.time() - since) / 3_600.0, 1e-6)
        return [wire.stats_row(each) for each in self._get("tasks", "stats", hours=hours)["items"]]

    # ------------------------------------------------------------------ the trail

    def events(self, after: int, limit: int) -> list[Event]:
        return [Event._make(row[: len(Event._fields)]) for row in self.trail(after, limit)]

    def event_range(self) -> tuple[int, int]:
        answer = self._get("trail", limit=1)
        return answer["oldest"], answer["newest"]

    def last_event(self) -> int:
        """Of those that are still there; the server tells of no others."""
        return self.event_range()[1]

    def trail(self, after: int, limit: int, tenant: str | None = None) -> list[TrailRow]:
        found: list[TrailRow] = []
        while len(found) < limit:
            wanted = min(limit - len(found), MAX_EVENTS)
            rows = [wire.trail_row(each)
                    for each in self._get("trail", after=after, limit=wanted)["items"]]  # fmt: skip
            found += [row for row in rows if tenant in (None, row.tenant)]
            if len(rows) < wanted:
                break
            after = rows[-1].id
        return found

    def audit(self, before: int | None, limit: int, tenant: str | None = None) -> list[TrailRow]:
        rows = self._get("audit", before=before, limit=min(max(limit, 1), MAX_EVENTS))["items"]
        found = [wire.trail_row(each) for each in rows]
        return [row for row in found if tenant in (None, row.tenant)][:limit]

    # ------------------------------------------------------------------ batches and schedules

    def batch(self, id: int) -> dict[str, int] | None:
        view = if_there(lambda: self._get("batches", id))
        return None if view is None else dict(view["counts"])

    def batch_row(self, id: int) -> BatchRow | None:
        view = if_there(lambda: self._get("batches", id))
        return None if view is None else wire.batch_row(view)

    def batches(self, tenant: str | None, limit: int, offset: int) -> list[BatchRow]:
        size = min(max(limit, 1), MAX_PAGE)
        number, skip = divmod(offset, size)
        found: list[BatchRow] = []
        while len(found) < skip + limit:
            number += 1
            items = self._get("batches", page=number, size=size)["items"]
            found += [wire.batch_row(each) for each in items]
            if len(items) < size:
                break
        return [row for row in found[skip : skip + limit] if tenant in (None, row.tenant)]

    def count_batches(self, tenant: str | None) -> int:
        if tenant is not None:
            raise BadJob("over HTTP the token says whose batches are counted; name no tenant")
        return int(self._get("batches", size=1)["total"])

    def schedules(self) -> list[Schedule]:
        return sorted(wire.schedule_row(each) for each in self._get("schedules")["items"])

    def settings(self) -> list[tuple[str, str, str, float]]:
        """What operators have set, of all that is there now. When they did is not told."""
        found = {}
        for noun in ("lanes", "upstreams", "tools", "types"):
            for gate in self._get(noun)["items"]:
                said = gate["settings"]
                if said is not None and said["overridden"]:
                    value = {name: said["value"][name] for name, layer in said["from"].items()
                             if layer == "operator"}  # fmt: skip
                    found[gate["kind"], said["declared_as"]] = msgspec.json.encode(value).decode()
        return [(kind, name, value, 0.0) for (kind, name), value in sorted(found.items())]
