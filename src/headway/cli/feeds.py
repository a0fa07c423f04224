"""`headway feeds`: what one subscribes to. Articles, rounds and rules are in files of their own."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from time import monotonic, sleep
from typing import Annotated, Any

import typer

from headway.cli import feed_layouts as layouts
from headway.cli.asking import Call, asks, lists_by_default, named
from headway.cli.client import Client, CommandFailed, Refused, part
from headway.cli.feed_names import the_one
from headway.cli.printing import count
from headway.cli.times import seconds_of
from headway.errors import ENGINE_ELSEWHERE

app = typer.Typer(name="feeds", help="Subscribe to sites, refresh them, read them.")

FEEDS = "/api/backend/feeds"
QUEUE = "/api/backend/queue"
STATES = ("new", "ok", "error", "gone", "moved", "paused")
FIRST_S = 10.0  # for the first articles of a new feed
LOOK_S = 0.2
MINUTE_S = 60.0

FeedName = Annotated[
    str,
    typer.Argument(metavar="FEED", help="Its id, the beginning of one, its title or address."),
]
Url = Annotated[str, typer.Argument(metavar="URL", help="Of a site or of a feed.")]
FolderOf = Annotated[
    str | None,
    typer.Option("--folder", metavar="FOLDER", help="Only in it or below it; empty: in none."),
]
IntoFolder = Annotated[
    str | None, typer.Option("--folder", metavar="FOLDER", help="Such as News or News/World.")
]
Every = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Between two visits: 15m, 2h, 1d, …")
]


def folder_said(folder: str | None) -> str | None:
    """For a query, where an empty one would be left out: this is none, too."""
    return "/" if folder == "" else folder


def complete_state(incomplete: str) -> list[str]:
    return [each for each in STATES if each.startswith(incomplete)]


def minutes_of(every: str) -> int:
    """`30m` as the API takes it: whole minutes."""
    minutes, rest_s = divmod(seconds_of(every), MINUTE_S)
    if rest_s or not 1 <= minutes <= 10_080:
        raise typer.BadParameter(f"{every!r} is no interval; write whole minutes, from 1m to 7d")
    return int(minutes)


def reached(call: Call) -> Client:
    """CommandFailed: only the engine knows who subscribes to what, and it runs somewhere else."""
    client = call.client
    if client.direct and not client.idle:
        raise CommandFailed(ENGINE_ELSEWHERE)
    return client


def all_feeds(client: Client, **filters: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(FEEDS, **filters)["feeds"]
    return found


def feed_meant(client: Client, said: str) -> dict[str, Any]:
    """The one feed that somebody means."""
    try:
        found: dict[str, Any] = client.get(f"{FEEDS}/{part(said)}")
        return found
    except Refused as error:
        if error.status != 404:
            raise
    return the_one("feed", said, all_feeds(client), ("title", "url"))


def asks_sites(client: Client) -> None:
    """CommandFailed: nobody is there who could."""
    if client.idle:
        raise CommandFailed(
            f"no server runs on {client.name}, and only a server asks sites; start one with "
            "`headway serve`, or name one with --server"
        )


# ---------------------------------------------------------------------- looking


@asks
def list_(
    call: Call,
    folder: FolderOf = None,
    status: Annotated[
        str | None,
        typer.Option(metavar="|".join(STATES), autocompletion=complete_state,
                     help="Only those whose last visit went like this."),
    ] = None,
) -> None:  # fmt: skip
    """What you subscribe to: what is unread, how the last visit went, when the next one is."""
    shown = everything = all_feeds(reached(call))
    if folder is not None or status:
        shown = all_feeds(reached(call), folder=folder_said(folder), status=status)
    width = call.out.console.width
    call.out.show(
        {"feeds": shown}, lambda answer: layouts.feed_table(answer["feeds"], everything, width)
    )


lists_by_default(app, list_)


@app.command("show")
@asks
def show(call: Call, feed: FeedName) -> None:
    """Everything about a feed, and why it waits if it is due."""
    found = feed_meant(reached(call), feed)
    found["task"] = _task(reached(call), found)
    call.out.show(found, layouts.feed_facts)


def _task(client: Client, feed: dict[str, Any]) -> dict[str, Any] | None:
    """The refresh that is due, and has not started."""
    if client.idle or not layouts.is_due(feed):
        return None
    try:
        said = client.post(f"{QUEUE}/schedule-feed", {"feed_id": feed["id"]})
        if said["task_id"] is None:
            return None
        task: dict[str, Any] = client.get(f"{QUEUE}/task/{said['task_id']}")
    except Refused:
        return None  # whoever may only look is not told more
    return task


@app.command("discover")
@asks
def discover(call: Call, url: Url) -> None:
    """Which feeds a site has, the best first. Nothing is stored."""
    asks_sites(reached(call))
    answer = reached(call).post("/api/backend/rss/discover", {"url": url})
    call.out.show(answer, layouts.candidate_table)


# ---------------------------------------------------------------------- subscribing


@app.command("add")
@asks
def add(
    call: Call,
    url: Url,
    folder: IntoFolder = None,
    every: Every = None,
    adaptive: Annotated[
        bool, typer.Option("--adaptive", help="Follow how often it really changes.")
    ] = False,
    title: Annotated[str | None, typer.Option(help="Instead of what it calls itself.")] = None,
    id: Annotated[str | None, typer.Option(help="What you call it, in commands.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="It is the feed itself; do not look for others.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for its first articles.")
    ] = False,
) -> None:
    """Subscribe to a site, or to a feed: `headway feeds add example.com --folder News`."""
    body: dict[str, Any] = {"url": url, "adaptive": adaptive}
    said = {"folder": folder, "title": title, "id": id}
    body |= {name: value for name, value in said.items() if value is not None}
    if every is not None:
        body["refresh_interval"] = minutes_of(every)
    client = reached(call)
    if client.idle and not exact:
        raise CommandFailed(
            f"no server runs on {client.name}, so nobody can look what is there; start one with "
            "`headway serve`, or name the feed itself with --exact"
        )
    made = client.post(FEEDS if exact else "/api/backend/rss/subscribe", body)
    if not (no_wait or client.idle):
        made = _first_visit(client, made)
    if call.out.as_json:
        call.out.line(made, indent=2)
    else:
        call.out.say(layouts.added_words(made, served=not client.idle))


def _first_visit(client: Client, feed: dict[str, Any]) -> dict[str, Any]:
    """The feed when somebody was there, or after some seconds."""
    ends = monotonic() + FIRST_S
    while feed["status"] == "new" and monotonic() < ends:
        sleep(LOOK_S)
        feed = client.get(f"{FEEDS}/{part(feed['id'])}")
    return feed


# ---------------------------------------------------------------------- changing


@app.command("edit")
@asks
def edit(
    call: Call,
    feed: FeedName,
    title: Annotated[
        str | None, typer.Option(help="An empty one: what it calls itself.")
    ] = None,
    folder: Annotated[str | None, typer.Option(help="An empty one: in none.")] = None,
    every: Every = None,
    adaptive: Annotated[
        bool | None,
        typer.Option("--adaptive/--no-adaptive", help="Follow how often it really changes."),
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Another address; what was read stays read.")
    ] = None,
) -> None:  # fmt: skip
    """Change a feed. What is not named stays; the next visit follows it at once."""
    said = {"title": title, "folder": folder, "adaptive": adaptive, "url": url,
            "refresh_interval": None if every is None else minutes_of(every)}  # fmt: skip
    changes: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if not changes:
        raise typer.BadParameter("say what to change: --title, --folder, --every, --adaptive, …")
    for name in ("title", "folder"):
        if changes.get(name) == "":
            changes[name] = None
    _change(call, feed, changes)


@app.command("pause")
@asks
def pause(call: Call, feed: FeedName) -> None:
    """Leave a feed alone for now. Its articles stay."""
    _change(call, feed, {"paused": True})


@app.command("resume")
@asks
def resume(call: Call, feed: FeedName) -> None:
    """Visit a feed again."""
    _change(call, feed, {"paused": False})


def _change(call: Call, feed: str, changes: dict[str, Any]) -> None:
    id = feed_meant(reached(call), feed)["id"]
    call.out.show(reached(call).patch(f"{FEEDS}/{part(id)}", changes), layouts.feed_facts)


@named(app, "rm", "remove")
@asks
def remove(
    call: Call,
    feed: FeedName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a feed with its articles and marks. Those of other people stay."""
    found = feed_meant(reached(call), feed)
    what = f"{found['title']} with {count(found['article_count'], 'article')}"
    if not yes:
        _confirm(call, what)
    answer = reached(call).delete(f"{FEEDS}/{part(found['id'])}")
    if call.out.as_json:
        call.out.line({"id": found["id"], **answer}, indent=2)
    else:
        articles = count(answer["articles_deleted"], "article")
        call.out.say(f"{found['title']} is removed, with {articles}")


def _confirm(call: Call, what: str) -> None:
    if call.out.as_json or not sys.stdin.isatty():
        raise CommandFailed(f"this would remove {what}; say --yes")
    if not typer.confirm(f"remove {what}?", err=True):
        raise CommandFailed("nothing was done")


def ids_meant(client: Client, said: Iterable[str]) -> list[str]:
    """The ids of several feeds."""
    return [feed_meant(client, each)["id"] for each in said]
