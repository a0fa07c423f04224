"""`headway archive`: subscriptions to lists of videos. What is asked of sites, videos, accounts and
checks are in files of their own.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from headway.cli import archive_layouts as layouts
from headway.cli import archive_words as words
from headway.cli.archive_names import SUBSCRIPTIONS, all_subscriptions, subscription_meant
from headway.cli.archive_watching import is_busy, story, watch_downloads
from headway.cli.asking import Call, asks, lists_by_default, named
from headway.cli.client import CommandFailed
from headway.cli.feeds import asks_sites, reached
from headway.cli.printing import count

app = typer.Typer(name="archive", help="Subscribe to lists of videos, download and keep them.")

Url = Annotated[str, typer.Argument(metavar="URL", help="Of a playlist, a channel, an uploader.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(call: Call, what: str, verb: str = "remove") -> None:
    if call.out.as_json or not sys.stdin.isatty():
        raise CommandFailed(f"this would {verb} {what}; say --yes")
    if not typer.confirm(f"{verb} {what}?", err=True):
        raise CommandFailed("nothing was done")


# ---------------------------------------------------------------------- looking


@asks
def list_(
    call: Call,
    search: Annotated[
        str, typer.Option("--search", "-s", metavar="TEXT", help="In the name or the address.")
    ] = "",
) -> None:
    """What you subscribe to: what should be there, what is, and when it is looked at next."""
    found = all_subscriptions(reached(call), q=search)
    width = call.out.console.width
    call.out.show(
        {"items": found, "total": len(found)},
        lambda answer: layouts.subscription_table(answer["items"], width),
    )


lists_by_default(app, list_)


@app.command("show")
@asks
def show(call: Call, id: words.SubscriptionName) -> None:
    """Everything about a subscription, and what its next download waits for."""
    found = subscription_meant(reached(call), id)
    shows = is_busy(found) and not call.out.as_json
    now = story(reached(call), found["id"]) if shows else ""
    call.out.show(found, lambda each: layouts.subscription_facts(each, now))


# ---------------------------------------------------------------------- subscribing


@app.command("add")
@asks
def add(
    call: Call,
    url: Url,
    title: words.Title = None,
    quality: words.Quality = None,
    every: words.Every = None,
    depth: words.Depth = None,
    title_has: words.TitleHas = None,
    title_not: words.TitleNot = None,
    after: words.After = None,
    before: words.Before = None,
    min_length: words.MinLength = None,
    max_length: words.MaxLength = None,
    min_views: words.MinViews = None,
    max_views: words.MaxViews = None,
    template: words.Template = None,
    nfo: words.Nfo = None,
    no_download: Annotated[
        bool, typer.Option("--no-download", help="Only list what there is.")
    ] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Do nothing yet.")] = False,
    wait: words.Wait = False,
) -> None:
    """Subscribe to a list: `headway archive add URL --quality 1080p --every 6h --depth 50`.

    Its list is read at once, and what it has is downloaded.
    """
    body: dict[str, Any] = {"url": url}
    body |= words.settings_of(
        title=title, quality=quality, interval_s=every, depth=depth, template=template, nfo=nfo
    )
    filters = words.filters_of(
        title_any=title_has, title_none=title_not, after=after, before=before,
        min_duration_s=min_length, max_duration_s=max_length, min_views=min_views,
        max_views=max_views,
    )  # fmt: skip
    body |= {"filters": filters} if filters else {}
    body |= {"download": False} if no_download else {}
    body |= {"paused": True} if paused else {}
    if wait and paused:
        raise typer.BadParameter("there is nothing to wait for while it is --paused")
    client = reached(call)
    if wait:
        asks_sites(client)
    made = client.post(SUBSCRIPTIONS, body)
    if wait:
        watch_downloads(call, made["id"], listing_only=no_download)
    elif call.out.as_json:
        call.out.line(made, indent=2)
    else:
        call.out.say(layouts.added_words(made, served=not client.idle))


# ---------------------------------------------------------------------- changing


@app.command("edit")
@asks
def edit(
    call: Call,
    id: words.SubscriptionName,
    title: words.Title = None,
    quality: words.Quality = None,
    every: words.Every = None,
    depth: words.Depth = None,
    title_has: words.TitleHas = None,
    title_not: words.TitleNot = None,
    after: words.After = None,
    before: words.Before = None,
    min_length: words.MinLength = None,
    max_length: words.MaxLength = None,
    min_views: words.MinViews = None,
    max_views: words.MaxViews = None,
    template: words.Template = None,
    nfo: words.Nfo = None,
    download: Annotated[
        bool | None, typer.Option("--download/--no-download", help="What is found by itself.")
    ] = None,
) -> None:
    """Change a subscription. What is not named stays; an empty value takes a filter back.

    Filters and depth are also for what was found earlier, quality and template for what is
    downloaded from now on.
    """
    changes = words.settings_of(
        title=title, quality=quality, interval_s=every, depth=depth, template=template, nfo=nfo,
        download=download,
    )  # fmt: skip
    filters = words.filters_of(
        title_any=title_has, title_none=title_not, after=after, before=before,
        min_duration_s=min_length, max_duration_s=max_length, min_views=min_views,
        max_views=max_views,
    )  # fmt: skip
    if not changes and not filters:
        raise typer.BadParameter("say what to change: --title, --quality, --every, --depth, …")
    found = subscription_meant(reached(call), id)
    if filters:  # the API takes all of them or none
        changes["filters"] = {**found["filters"], **filters}
    _change(call, found, changes)


@app.command("pause")
@asks
def pause(call: Call, id: words.SubscriptionName) -> None:
    """Leave a subscription alone for now. What it has stays, and what runs goes on to its end."""
    _change(call, subscription_meant(reached(call), id), {"paused": True})


@app.command("resume")
@asks
def resume(call: Call, id: words.SubscriptionName) -> None:
    """Look at a subscription again."""
    _change(call, subscription_meant(reached(call), id), {"paused": False})


def _change(call: Call, found: dict[str, Any], changes: dict[str, Any]) -> None:
    changed = reached(call).patch(f"{SUBSCRIPTIONS}/{found['id']}", changes)
    call.out.show(changed, layouts.subscription_facts)


@named(app, "rm", "remove")
@asks
def remove(
    call: Call,
    id: words.SubscriptionName,
    files: Annotated[
        bool, typer.Option("--files", help="Delete what is on disk, too. Nothing brings it back.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove a subscription. What is in line for it is cancelled; files stay, unless --files."""
    found = subscription_meant(reached(call), id)
    counts = found["counts"]
    held = f"{count(counts['on_disk'], 'video')} ({layouts.size_words(counts['bytes'])})"
    if not yes:
        what = f"and delete {held}" if files else "and keep its files"
        confirm(call, f"{found['name']} {what}")
    answer = reached(call).delete(
        f"{SUBSCRIPTIONS}/{found['id']}{'?files=true' if files else ''}"
    )  # fmt: skip
    if call.out.as_json:
        call.out.line({"id": found["id"], **answer}, indent=2)
        return
    said = [count(answer["jobs_cancelled"], "job") + " cancelled"] * bool(answer["jobs_cancelled"])
    said += [count(answer["files_deleted"], "file") + " deleted"] if files else []
    call.out.say(", ".join([f"{found['name']} is removed", *said]))


# ---------------------------------------------------------------------- podcasts


@app.command("podcast")
@asks
def podcast(
    call: Call,
    id: words.SubscriptionName,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="A new address; the old one ends.")
    ] = False,
    off: Annotated[bool, typer.Option("--off", help="End it: the address leads nowhere.")] = False,
) -> None:
    """The address of a podcast of what is on disk. Whoever knows it can listen."""
    if rotate and off:
        raise typer.BadParameter("say either --rotate or --off")
    client = reached(call)
    found = subscription_meant(client, id)
    path = f"{SUBSCRIPTIONS}/{found['id']}/podcast"
    if off:
        client.delete(path)
        call.out.show({"id": found["id"], "url": None}, lambda _: "it has no podcast any more")
        return
    if client.direct:
        raise CommandFailed(
            f"no server runs on {client.name}, so nobody knows its address; start one with "
            "`headway serve`, or name one with --server"
        )
    answer = client.post(path, {"rotate": True} if rotate else {})
    if call.out.as_json:
        call.out.line({"id": found["id"], **answer}, indent=2)
    else:
        call.out.say(answer["url"])
