"""`headway events` and `headway audit`: what happens, and who did what."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from headway.cli import layouts, recording
from headway.cli.asking import Call, asks
from headway.cli.client import Client, Refused, Unreachable
from headway.cli.times import seconds_of

AGAIN_S = 1.0  # between two tries to reach a server
LOOK_S = 2.0  # between two looks at a store that nobody serves
MOST = 1_000  # events that the API gives at once

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="How many at most.")]


@asks
def events(
    call: Call,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on; with --json one object on each line.")
    ] = False,
    after: Annotated[
        int | None, typer.Option(min=0, metavar="ID", help="Those after this event.")
    ] = None,
    limit: Limit = 20,
    record_to: Annotated[
        str | None,
        typer.Option(
            "--record",
            metavar="FILE",
            help="Write what happened and what the jobs asked for, for `headway simulate`.",
        ),
    ] = None,
    since: Annotated[
        str, typer.Option(metavar="DURATION", help="How far back --record goes.")
    ] = "1d",
) -> None:
    """What happened last, or with --follow what happens, without a gap or a repeat."""
    if record_to is not None:
        if follow or after is not None:
            raise typer.BadParameter("--record writes what has happened; leave out the others")
        recording.record(call, record_to, seconds_of(since))
        return
    if follow:
        _follow(call, after, limit)
        return
    call.out.show(_last(call.client, after, limit), layouts.event_lines)


def _last(client: Client, after: int | None, limit: int) -> dict[str, Any]:
    start = _before_the_last(client, limit) if after is None else after
    answer: dict[str, Any] = client.get("/api/trail", after=start, limit=limit)
    return answer


def _before_the_last(client: Client, many: int) -> int:
    """The event after which so many come."""
    trail = client.get("/api/trail", limit=1)
    return max(0, int(trail["oldest"]) - 1, int(trail["newest"]) - many)


def _follow(call: Call, after: int | None, limit: int) -> None:
    """Until Ctrl-C. Numbers tell what was seen, whoever answers and however often."""
    try:
        start = _before_the_last(call.client, limit) if after is None else after
        for event in _all_after(call, start):
            _print(call, event)
    except KeyboardInterrupt:
        pass


def _print(call: Call, event: dict[str, Any]) -> None:
    if call.out.as_json:
        call.out.line(event)
    else:
        call.out.console.print(layouts.event_row(event), soft_wrap=True)


def _all_after(call: Call, cursor: int) -> Iterator[dict[str, Any]]:
    """From a server's stream, or by looking at the store again and again."""
    away = False
    while True:
        try:
            client = call.client
            if away:
                call.out.aside("connected again")
                away = False
            source = (
                _looked_up(client, cursor) if client.direct else _streamed(call, client, cursor)
            )
            for event in source:
                cursor = event["id"]
                if "event" in event:
                    yield event
            pause_s = LOOK_S if client.direct else 0.0
        except (Unreachable, Refused) as error:
            if isinstance(error, Refused) and error.status != 503:
                raise
            if not away:
                call.out.aside(f"{error} Trying again until it is back.")
            away, pause_s = True, AGAIN_S
        call.close()  # a store that stays open would keep a server from starting
        time.sleep(pause_s)


def _streamed(call: Call, client: Client, cursor: int) -> Iterator[dict[str, Any]]:
    for id, name, data in client.follow(cursor):
        if name == "reset":
            call.out.aside("some events were purged before they could be shown")
            yield {"id": id}
        else:
            yield data


def _looked_up(client: Client, cursor: int) -> Iterator[dict[str, Any]]:
    while True:
        found = client.get("/api/trail", after=cursor, limit=MOST)["items"]
        yield from found
        if len(found) < MOST:
            return
        cursor = found[-1]["id"]


@asks
def audit(
    call: Call,
    before: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Further back than this event.")
    ] = None,
    limit: Limit = 50,
) -> None:
    """Who did what, newest first."""
    call.out.show(call.client.get("/api/audit", before=before, limit=limit), layouts.event_lines)
