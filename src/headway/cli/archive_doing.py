"""`headway archive look|count|refresh|download|get`: what is asked of sites, through the queue."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from headway.cli import archive_layouts as layouts
from headway.cli import archive_words as words
from headway.cli.archive import app
from headway.cli.archive_names import SUBSCRIPTIONS, all_subscriptions, subscription_meant
from headway.cli.archive_watching import job_words, result_of, watch_downloads, watch_job
from headway.cli.asking import Call, asks
from headway.cli.client import Client, CommandFailed
from headway.cli.feeds import asks_sites, reached
from headway.cli.printing import count

OneOrAll = Annotated[
    str | None,
    typer.Argument(metavar="[ID]", help="The number of a subscription, or how its title begins."),
]
All = Annotated[bool, typer.Option("--all", help="All that are not paused.")]


# ---------------------------------------------------------------------- questions


@app.command("look")
@asks
def look(
    call: Call,
    url: Annotated[str, typer.Argument(metavar="URL", help="Of a list or a video.")],
    cookie: Annotated[
        bool, typer.Option("--cookie", help="As somebody who is known there.")
    ] = False,
) -> None:
    """What is behind an address, before you subscribe to it. Nothing is stored."""
    asks_sites(reached(call))
    body = {"url": url, "requires_cookie": cookie, "sync": True}
    answer = reached(call).post(f"{SUBSCRIPTIONS}/parse-collection", body)
    if "kind" not in answer:
        raise _not_yet(reached(call), answer)
    call.out.show(answer, layouts.collection_view)


@app.command("count")
@asks
def count_(
    call: Call,
    id: words.SubscriptionName,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Ask the site, even if that was done just now.")
    ] = False,
) -> None:
    """How many videos a subscription should have, as its site says."""
    client = reached(call)
    found = subscription_meant(client, id)
    if refresh or not found["expected_total"]["is_fresh"]:
        asks_sites(client)
    answer = client.get(
        f"{SUBSCRIPTIONS}/{found['id']}/expected-total", sync=True, refresh=refresh or None
    )
    if answer["request"] is not None:
        raise _not_yet(client, answer["request"])
    if call.out.as_json:
        call.out.line(answer, indent=2)
    elif answer["expected_total"] is None:
        call.out.say("the site does not say how many there are")
    else:
        call.out.say(layouts.total_words(answer, found["name"]))


def _not_yet(client: Client, request: dict[str, Any]) -> CommandFailed:
    """The site has not been asked in the time that one waits for."""
    job = client.get(f"/api/jobs/{request['id']}")
    return CommandFailed(
        f"there is no answer yet: {job_words(job)}; ask again later, or look at it with `headway "
        f"jobs show {request['id']}`"
    )


# ---------------------------------------------------------------------- lists and downloads


@app.command("refresh")
@asks
def refresh(
    call: Call,
    id: OneOrAll = None,
    all: All = False,
    full: Annotated[
        bool, typer.Option("--full", help="To its end, and not only until something is known.")
    ] = False,
    wait: words.Wait = False,
) -> None:
    """Read a list now. What is under way already is joined."""
    found = _meant(call, id, all, wait)
    client = reached(call)
    asked = [
        client.post(f"{SUBSCRIPTIONS}/{each['id']}/refresh-list", {"full": full}) for each in found
    ]
    if wait:
        _watch(call, found, all=all, listing_only=True)
    else:
        _said(call, asked, [each["joined"] for each in asked], "list")


@app.command("download")
@asks
def download(
    call: Call,
    id: OneOrAll = None,
    all: All = False,
    listed_only: Annotated[
        bool, typer.Option("--listed-only", help="Only what is listed, without looking again.")
    ] = False,
    wait: words.Wait = False,
) -> None:
    """Download all that is wanted and not here. With --wait it fails (1) if one of them does."""
    found = _meant(call, id, all, wait)
    client = reached(call)
    body = {"use_cache_only": listed_only}
    asked = [client.post(f"{SUBSCRIPTIONS}/{each['id']}/download", body) for each in found]
    if wait:
        _watch(call, found, all=all)
    elif listed_only and not call.out.as_json:
        call.out.say(f"{count(sum(each['queued'] for each in asked), 'download')} put into line")
        _idle(call)
    else:
        joined = [bool(each["request"] and each["request"]["joined"]) for each in asked]
        _said(call, asked, joined, "list")


def _meant(call: Call, id: str | None, all: bool, wait: bool) -> list[dict[str, Any]]:
    if (id is not None) == all:
        raise typer.BadParameter("name a subscription, or say --all")
    if wait:
        asks_sites(reached(call))
    if id is not None:
        return [subscription_meant(reached(call), id)]
    return [each for each in all_subscriptions(reached(call)) if not each["paused"]]


def _watch(
    call: Call, found: list[dict[str, Any]], *, all: bool, listing_only: bool = False
) -> None:
    watch_downloads(call, None if all else found[0]["id"], listing_only=listing_only)


def _said(call: Call, asked: list[dict[str, Any]], joined: list[bool], noun: str) -> None:
    if call.out.as_json:
        call.out.line({"items": asked}, indent=2)
    else:
        begun = f", {sum(joined)} of them under way already" if any(joined) else ""
        call.out.say(f"{count(len(asked), noun)} to be read{begun}")
    _idle(call)


def _idle(call: Call) -> None:
    if reached(call).idle:
        call.out.aside("nothing is fetched while no server runs; it goes on when one does")


# ---------------------------------------------------------------------- one video


@app.command("get")
@asks
def get(
    call: Call,
    url: Annotated[str, typer.Argument(metavar="URL", help="Of one video.")],
    wait: words.Wait = False,
) -> None:
    """Download a single video, without a subscription."""
    if wait:
        asks_sites(reached(call))
    body = {"type": "download", "url": url, "requires_cookie": True}
    asked = reached(call).post("/api/requests/enqueue", body)
    if not wait:
        there = "is in line already" if asked["joined"] else "is in line"
        call.out.show(asked, lambda _: f"it {there}, as job {asked['id']}")
        _idle(call)
        return
    job = watch_job(call, asked["id"])
    result = result_of(reached(call), job["id"]) if job["status"] == "completed" else None
    if call.out.as_json:
        call.out.line({"job": job, "result": result}, indent=2)
    elif job["status"] != "completed":
        call.out.aside(f"job {job['id']} has {job['status']}: {job['last_error'] or 'stopped'}")
    else:
        call.out.console.print(layouts.got_words(result))
    if job["status"] != "completed":
        sys.exit(1)
