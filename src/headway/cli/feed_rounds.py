"""`headway feeds refresh|rounds|import|export`: many feeds at once, and watching how far they are.

A round goes on in the server, whoever watches it or leaves.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli import feed_layouts as layouts
from headway.cli.asking import Call, asks
from headway.cli.client import Client, CommandFailed, part
from headway.cli.feeds import (
    QUEUE,
    Every,
    FolderOf,
    IntoFolder,
    app,
    ids_meant,
    minutes_of,
    reached,
)
from headway.cli.printing import count
from headway.cli.progressing import progress_bar

ROUNDS = f"{QUEUE}/rounds"
OPML = "/api/backend/opml"
STEP_S, LONG_S = 0.5, 30.0  # how long a server is asked to wait, with somebody looking on or not
INTERRUPTED = 130  # as shells say it

NoWait = Annotated[
    bool, typer.Option("--no-wait", help="Do not wait until it is done; it goes on by itself.")
]
File = Annotated[str, typer.Argument(metavar="FILE", help="An OPML file, or - for stdin.")]


# ---------------------------------------------------------------------- refreshing


@app.command("refresh")
@asks
def refresh(
    call: Call,
    feeds: Annotated[
        list[str] | None, typer.Argument(metavar="[FEED]...", help="As `show` takes them.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All that are not paused.")] = False,
    folder: FolderOf = None,
    no_wait: NoWait = False,
) -> None:
    """Refresh feeds now, each site at its own pace. Fails (1) if one could not be."""
    if [bool(feeds), all, folder is not None].count(True) != 1:
        raise typer.BadParameter("name feeds, or say --folder or --all")
    body: dict[str, Any] = {}
    if feeds:
        body["feed_ids"] = ids_meant(reached(call), feeds)
    elif folder is not None:
        body["folder"] = folder
    asked = reached(call).post(f"{QUEUE}/schedule-all", body)
    if no_wait or reached(call).idle:
        call.out.show(asked, layouts.asked_words)
        _goes_on(call, asked["round_id"])
        return
    _watch(call, asked["round_id"])


@app.command("rounds")
@asks
def rounds(
    call: Call,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Watch this one until it is done.")
    ] = None,
    no_wait: NoWait = False,
) -> None:
    """The last refreshes of many feeds and imports, or how far one of them is."""
    if id is None:
        call.out.show(reached(call).get(ROUNDS), layouts.round_table)
    elif no_wait or reached(call).idle:
        call.out.show(reached(call).get(f"{ROUNDS}/{part(id)}"), layouts.round_facts)
    else:
        _watch(call, id)


def _goes_on(call: Call, id: str) -> None:
    if reached(call).idle:
        call.out.aside("nothing is fetched while no server runs; it goes on when one does")
    else:
        call.out.aside(f"it goes on; `headway feeds rounds {id}` says how far it is")


def _watch(call: Call, id: str) -> None:
    """Until it is done. Fails if not all of it could be."""
    try:
        round = _followed(reached(call), id)
    except KeyboardInterrupt:
        _goes_on(call, id)
        sys.exit(INTERRUPTED)
    call.out.show(round, layouts.round_facts)
    if round["invalid"] if round["kind"] == "import" else round["failed"]:
        sys.exit(1)


def _followed(client: Client, id: str) -> dict[str, Any]:
    with progress_bar() as tell:
        while True:
            wait_s = LONG_S if tell is None else STEP_S
            round: dict[str, Any] = client.get(f"{ROUNDS}/{part(id)}", wait_s=wait_s)
            if round["status"] == "finished":
                return round
            if tell is not None:
                done = round["total"] - round["waiting"]
                tell(layouts.round_words(round), done, round["total"] or None)


# ---------------------------------------------------------------------- lists


@app.command("import")
@asks
def import_(
    call: Call,
    file: File,
    folder: IntoFolder = None,
    every: Every = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Follow how often each of them really changes.")
    ] = False,
    no_wait: NoWait = False,
) -> None:
    """Subscribe to all that a list of another reader has (OPML). What you have already stays.

    Fails (1) if something of it could not be added. Feeds that do not answer are added, too.
    """
    round = reached(call).send(
        OPML, _read(file), "text/x-opml", folder=folder, adaptive=adaptive or None,
        refresh_interval=None if every is None else minutes_of(every),
    )  # fmt: skip
    if no_wait or reached(call).idle:
        call.out.show(round, layouts.round_facts)
        _goes_on(call, round["id"])
        return
    _watch(call, round["id"])


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise CommandFailed(f"{file} cannot be read: {error.strerror}") from error


@app.command("export")
@asks
def export(
    call: Call,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A file, or - for stdout.")
    ] = "-",
) -> None:  # fmt: skip
    """Write all that you subscribe to as a list that any reader takes (OPML)."""
    document = reached(call).fetch(OPML)
    if file == "-" and call.out.as_json:
        call.out.line({"opml": document.decode()}, indent=2)
    elif file == "-":
        sys.stdout.write(document.decode())
    else:
        _write(Path(file), document)
        feeds = document.count(b"xmlUrl=")
        if call.out.as_json:
            call.out.line({"file": file, "feeds": feeds}, indent=2)
        else:
            call.out.say(f"exported {count(feeds, 'feed')} to {file}")


def _write(path: Path, document: bytes) -> None:
    """All of it or nothing. An address may have a secret in it, so nobody else may read it."""
    partial = path.with_name(f"{path.name}.part")
    try:
        with open(partial, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as out:
            out.write(document)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CommandFailed(f"{path} cannot be written: {error.strerror}") from error
