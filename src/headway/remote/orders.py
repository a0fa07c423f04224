"""What operators and programs ask a server to do. The answer comes when it is done and stored."""

from __future__ import annotations

from typing import Any

from headway.errors import BadJob
from headway.remote.client import Ask, Client
from headway.remote.looking import path
from headway.remote.wire import schedule_body
from headway.store.records import Purged, Schedule

NOUNS = {"lane": "lanes", "upstream": "upstreams", "tool": "tools", "type": "types"}
# What each of these is told besides the job.
WITH = {"prioritise": "priority", "reschedule": "at"}


class RemoteOrders:
    _client: Client

    def _post(self, *parts: object, body: Any = None, verb: str = "", **query: Any) -> Any:
        return self._client.call(Ask("POST", path(*parts), body, verb=verb, query=query))

    def steer(self, verb: str, job: int, value: Any = None) -> str:
        """The state that the job is in then."""
        body = {WITH[verb]: value} if verb in WITH else None
        return str(self._post("jobs", job, verb, body=body, verb=verb)["status"])

    def command(
        self, verb: str, target: str, args: Any, now: float, who: str | None = None
    ) -> None:
        """As a store takes it, but done when this returns. The token says who asks."""
        match verb:
            case "gate":
                self._gate(args)
            case "set":
                self._set(target, args)
            case "schedule":
                self._post("schedules", body=schedule_body(Schedule._make(args)))
            case "unschedule":
                self._client.call(Ask("DELETE", path("schedules", target)))
            case "pause_schedule" | "resume_schedule":
                self._post("schedules", target, verb.partition("_")[0])
            case _:
                self.steer(verb, int(target), args)

    def _gate(self, what: dict[str, Any]) -> None:
        do, kind, name = what["do"], what["kind"], what["name"]
        if do in ("pause", "resume"):
            scope = "all" if kind == "everything" else f"{kind}:{name}"
            self._post("queue", do, scope=scope)
        elif do == "close":
            body = {"until": what["until"], "why": what.get("why", "")}
            self._post(_noun(kind), name, "close", body=body)
        else:
            self._post(_noun(kind), name, do)

    def _set(self, target: str, value: dict[str, Any] | None) -> None:
        kind, _, name = target.partition(":")
        method = "DELETE" if value is None else "PUT"
        if kind == "retention":
            self._client.call(Ask(method, path("retention"), value))
            return
        self._client.call(Ask(method, path(_noun(kind), name, "settings"), value))

    def purge(self, completed_days: float | None, failed_days: float | None) -> Purged:
        """Remove what is older than this; None: than the server's own settings say."""
        body = {"completed_days": completed_days, "failed_days": failed_days}
        answer = self._post("tasks", "cleanup", body=body)
        return Purged(answer["jobs"], answer["events"], answer["results"])


def _noun(kind: str) -> str:
    noun = NOUNS.get(kind)
    if noun is None:
        raise BadJob(f"{kind!r} cannot be opened, closed or set over HTTP; known are "
                     f"{', '.join(NOUNS)}")  # fmt: skip
    return noun
