"""`headway feeds articles|read|star|…`: articles and their marks."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from headway.cli import feed_layouts as layouts
from headway.cli.asking import Call, asks
from headway.cli.client import PAGE, Client
from headway.cli.feeds import FolderOf, all_feeds, app, feed_meant, folder_said, reached
from headway.cli.printing import count

ARTICLES = "/api/backend/articles"
AT_ONCE = 1_000  # articles that one request marks

Feed = Annotated[str | None, typer.Option(metavar="FEED", help="Only those of this feed.")]
ArticleIds = Annotated[
    list[int], typer.Argument(metavar="ID...", min=1, help="The numbers of articles.")
]


@app.command("articles")
@asks
def articles(
    call: Call,
    feed: Feed = None,
    folder: FolderOf = None,
    unread: Annotated[bool, typer.Option("--unread", help="Only what was not read.")] = False,
    starred: Annotated[bool, typer.Option("--starred", help="Only what has a star.")] = False,
    search: Annotated[
        str | None,
        typer.Option("--search", "-s", metavar="TEXT",
                     help='Words that are all there, "a phrase", begin*, -without.'),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 20,
) -> None:  # fmt: skip
    """Articles, the newest first."""
    client = reached(call)
    query: dict[str, Any] = {
        "feed": None if feed is None else feed_meant(client, feed)["id"],
        "folder": folder_said(folder), "q": search,
        "unread": True if unread else None, "starred": True if starred else None,
    }  # fmt: skip
    answer = _found(client, limit, query)
    if call.out.as_json:
        call.out.line(answer, indent=2)
        return
    titles = {each["id"]: each["title"] for each in all_feeds(client)} if answer["items"] else {}
    call.out.console.print(layouts.article_table(answer, titles, call.out.console.width))


def _found(client: Client, limit: int, query: dict[str, Any]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    cursor = None
    while True:
        size = min(PAGE, limit - len(items))
        answer = client.get(ARTICLES, size=size, cursor=cursor, **query)
        items += answer["items"]
        cursor = answer["next"]
        if cursor is None or len(items) >= limit:
            return {"items": items, "count": len(items), "total": answer["total"], "next": cursor}


# ---------------------------------------------------------------------- marks


@app.command("read")
@asks
def read(call: Call, ids: ArticleIds) -> None:
    """Mark articles as read."""
    _mark(call, ids, {"is_read": True}, "read")


@app.command("unread")
@asks
def unread(call: Call, ids: ArticleIds) -> None:
    """Mark articles as not read."""
    _mark(call, ids, {"is_read": False}, "unread")


@app.command("star")
@asks
def star(call: Call, ids: ArticleIds) -> None:
    """Give articles a star, which keeps them for ever."""
    _mark(call, ids, {"is_starred": True}, "starred")


@app.command("unstar")
@asks
def unstar(call: Call, ids: ArticleIds) -> None:
    """Take the star off articles."""
    _mark(call, ids, {"is_starred": False}, "without a star")


def _mark(call: Call, ids: list[int], marks: dict[str, bool], word: str) -> None:
    total = {"changed": 0, "unchanged": 0, "not_found": 0}
    for begin in range(0, len(ids), AT_ONCE):
        answer = reached(call).patch(ARTICLES, {"ids": ids[begin : begin + AT_ONCE], **marks})
        total = {name: total[name] + answer[name] for name in total}
    if call.out.as_json:
        call.out.line(total, indent=2)
    else:
        before = f", {total['unchanged']} were before" if total["unchanged"] else ""
        marked = count(total["changed"], "article")
        call.out.say(f"{marked} {'is' if total['changed'] == 1 else 'are'} {word} now{before}")
    if total["not_found"]:
        call.out.aside(f"there are no such articles: {total['not_found']} of {len(ids)}")
        sys.exit(1)


@app.command("mark-read")
@asks
def mark_read(
    call: Call,
    feed: Feed = None,
    folder: FolderOf = None,
    all: Annotated[bool, typer.Option("--all", help="Everything.")] = False,
    before: Annotated[
        str | None,
        typer.Option(metavar="ID|TIME", help="Only what came up to this article, or until then."),
    ] = None,
) -> None:
    """Mark a feed, a folder or everything as read."""
    if [feed is not None, folder is not None, all].count(True) != 1:
        raise typer.BadParameter("say one of --feed, --folder and --all")
    body: dict[str, Any] = {"all": True} if all else {}
    if feed is not None:
        body["feed"] = feed_meant(reached(call), feed)["id"]
    if folder is not None:
        body["folder"] = folder
    if before is not None:
        body["before"] = int(before) if before.isdecimal() else before
    answer = reached(call).post(f"{ARTICLES}/mark-read", body)
    if call.out.as_json:
        call.out.line(answer, indent=2)
    else:
        many = answer["changed"]
        call.out.say(f"{count(many, 'article')} {'is' if many == 1 else 'are'} read now")
