"""`headway archive check|status`: whether the disk has what it should, and whether all is well."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.archive import app
from headway.cli.archive_layouts import grey, size_words
from headway.cli.archive_names import subscription_meant
from headway.cli.archive_watching import result_of, watch_job
from headway.cli.asking import Call, asks
from headway.cli.client import CommandFailed
from headway.cli.feeds import reached
from headway.cli.printing import count, facts, plain
from headway.cli.times import at_and_ago

RECONCILE = "/api/archive/reconcile"
SHOWN = 10  # of each kind, one by one


@app.command("check")
@asks
def check(
    call: Call,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only this subscription.")
    ] = None,
    take_over: Annotated[
        bool,
        typer.Option("--import", help="Take over files that are there already: they are not "
                     "downloaded again."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only look, and say what would be changed.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Believe it, however much is gone.")
    ] = False,
    last: Annotated[
        bool, typer.Option("--last", help="What the last look has found; do not look again.")
    ] = False,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for it.")] = False,
) -> None:  # fmt: skip
    """Compare the archive with the disk. Fails (1) if it refuses to believe what it has seen."""
    if last and (id is not None or take_over or dry_run or force or no_wait):
        raise typer.BadParameter("--last goes with nothing else")
    client = reached(call)
    if last:
        answer = client.get(RECONCILE)
        if answer["report"] is None:
            raise CommandFailed("nobody has looked yet; do it with `headway archive check`")
        call.out.show(answer["report"], report_view)
        return
    body: dict[str, Any] = {"import": take_over, "dry_run": dry_run, "force": force}
    if id is not None:
        body["subscription"] = subscription_meant(client, id)["id"]
    if client.idle:
        raise CommandFailed(
            f"no server runs on {client.name}, and only a server looks at its disk; start one with "
            "`headway serve`, or name one with --server"
        )
    asked = client.post(RECONCILE, body)
    if no_wait:
        call.out.show(asked, lambda _: f"it is looked at, as job {asked['id']}")
        call.out.aside("`headway archive check --last` says what came of it")
        return
    job = watch_job(call, asked["id"])
    report = result_of(client, job["id"]) if job["status"] == "completed" else None
    report = report or _kept(call, job)
    call.out.show(report, report_view)
    if report["refused"]:
        sys.exit(1)


def _kept(call: Call, job: dict[str, Any]) -> dict[str, Any]:
    """The report of a look that has ended; CommandFailed: there is none."""
    kept: dict[str, Any] | None = reached(call).get(RECONCILE)["report"]
    if job["status"] != "completed" or kept is None:
        why = job["last_error"] or "it was stopped"
        raise CommandFailed(f"the look (job {job['id']}) has {job['status']}: {why}")
    return kept


@app.command("status")
@asks
def status(call: Call) -> None:
    """The archive at a glance: library, tools and accounts. Fails (1) if it cannot work."""
    answer = reached(call).get("/api/archive")
    call.out.show(answer, status_facts)
    if answer["library"]["status"] != "ok" or not answer["yt_dlp"]["is_installed"]:
        sys.exit(1)


# ---------------------------------------------------------------------- how it looks


def report_view(report: dict[str, Any]) -> RenderableType:
    would = "would be changed" if report["dry_run"] else "changed"
    changes = report["changed"] or (
        report["lost"]["count"] + report["found_again"]["count"] if report["dry_run"] else 0
    )
    imported = report["imported"]
    parts: list[RenderableType] = [facts((
        ("looked at", at_and_ago(report["at"])), ("only", _only(report["subscription"])),
        ("refused", Text(plain(report["refused"]), "red") if report["refused"] else None),
        ("expected", report["expected"] or None), ("listed", report["listed"]),
        ("on disk", f"{report['on_disk']:,} ({size_words(report['bytes'])})"),
        ("pending", report["pending"] or None), ("failed", report["failed"] or None),
        ("missing", report["missing"] or None), ("skipped", report["skipped"] or None),
        ("free", size_words(report["free_bytes"])),
        (would, f"{changes:,}"),
        ("taken over", _taken(imported)),
        ("cannot be read", report["unreadable"] or None),
    ))]  # fmt: skip
    for title, found, in_words in (
        ("not on disk any more", report["lost"], _path),
        ("there again", report["found_again"], _path),
        ("of another size", report["resized"], _resized),
        ("videos that nobody knows", report["orphans"], str),
        ("files of which nobody could say what they are", imported["left"], str),
        ("items with a file that is not complete", report["unfinished"], str),
    ):
        parts += _named(title, found["count"], [in_words(each) for each in found["items"]])
    return Group(*parts)


def _path(each: dict[str, Any]) -> str:
    return str(each["path"])


def _only(subscription: int | None) -> str | None:
    return None if subscription is None else f"subscription {subscription}"


def _taken(imported: dict[str, Any]) -> str | None:
    if not imported["matched"] and not imported["added"]:
        return None
    return f"{imported['matched']:,} that were wanted, {imported['added']:,} new"


def _resized(each: dict[str, Any]) -> str:
    return f"{each['path']} ({size_words(each['size_bytes'])}, not {size_words(each['was_bytes'])})"


def _named(title: str, many: int, found: Sequence[str]) -> list[RenderableType]:
    if not found:
        return []
    lines: list[RenderableType] = [Text(""), Text(f"{title}:", "bold")]
    lines += [Text(f"  {plain(each)}") for each in found[:SHOWN]]
    more = many - min(len(found), SHOWN)
    return [*lines, grey(f"  and {more:,} more; --json names a hundred")] if more > 0 else lines


def status_facts(answer: dict[str, Any]) -> RenderableType:
    library, tool, queue = answer["library"], answer["yt_dlp"], answer["queue"]
    states = ", ".join(f"{many:,} {name}" for name, many in answer["items"].items() if many)
    free = f"{size_words(library['free_bytes'])} free" if library["free_bytes"] is not None else ""
    least = f"downloads wait below {size_words(library['min_free_bytes'])}"
    sites = answer["accounts"] or {}
    return facts((
        ("subscriptions", answer["subscriptions"]), ("videos", states or "none"),
        ("on disk", size_words(answer["bytes"])),
        ("library", library["path"]), ("state", _library_state(library)),
        ("room", f"{free}, {least}" if free else None),
        ("yt-dlp", tool["version"] or Text("not installed: `pip install headway[media]`", "red")),
        ("runs with", tool["python"]),
        ("ffmpeg", "yes" if answer["ffmpeg"] else Text(
            "no: picture and sound that come apart cannot be put together", "yellow")),
        ("in line", f"{count(queue['waiting'], 'job')}, {queue['running']} running"),
        *((f"accounts at {plain(site)}", _statuses(found)) for site, found in sites.items()),
        ("accounts", "none" if answer["accounts"] == {} else None),
    ))  # fmt: skip


def _library_state(library: dict[str, Any]) -> Text:
    if library["status"] == "ok":
        return Text("ok", "green")
    why = plain(library["reason"]) if library["reason"] else ""
    return Text(f"{library['status']}: {why}".removesuffix(": "), "red")


def _statuses(found: dict[str, int]) -> str:
    return ", ".join(f"{many} {name}" for name, many in found.items() if many)
