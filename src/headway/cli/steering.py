"""`headway jobs cancel|retry|pause|…`: one job, several, or all that a search finds."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from headway.cli import jobs, layouts
from headway.cli.asking import Call, asks, named
from headway.cli.client import CommandFailed, Refused
from headway.cli.printing import count
from headway.cli.words import complete_search

Ids = Annotated[list[int] | None, typer.Argument(metavar="[ID]...", help="The numbers of jobs.")]
Match = Annotated[
    str | None,
    typer.Option(metavar="SEARCH", autocompletion=complete_search,
                 help='Instead of numbers: all that this finds, "type:download status:failed".'),
]  # fmt: skip
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before acting on --match.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what --match would do.")]


@jobs.app.command("cancel")
@asks
def cancel(
    call: Call, ids: Ids = None, match: Match = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Cancel jobs: what waits at once, what runs is really stopped first."""
    _steer(call, "cancel", ids, match, yes, dry_run)


@jobs.app.command("retry")
@asks
def retry(
    call: Call, ids: Ids = None, match: Match = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Give jobs that failed or were cancelled a new round of attempts."""
    _steer(call, "retry", ids, match, yes, dry_run)


@jobs.app.command("pause")
@asks
def pause(
    call: Call, ids: Ids = None, match: Match = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Set jobs aside; what runs is asked to stop."""
    _steer(call, "pause", ids, match, yes, dry_run)


@jobs.app.command("resume")
@asks
def resume(
    call: Call, ids: Ids = None, match: Match = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Let paused jobs go on."""
    _steer(call, "resume", ids, match, yes, dry_run)


@jobs.app.command("pin")
@asks
def pin(
    call: Call, ids: Ids = None, match: Match = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Put jobs to the front of the line, before everybody."""
    _steer(call, "pin", ids, match, yes, dry_run)


@jobs.app.command("unpin")
@asks
def unpin(
    call: Call, ids: Ids = None, match: Match = None, yes: Yes = False, dry_run: DryRun = False
) -> None:
    """Put pinned jobs back to the place that they would have without the pin."""
    _steer(call, "unpin", ids, match, yes, dry_run)


@named(jobs.app, "prioritize", "prioritise")
@asks
def prioritize(
    call: Call,
    priority: Annotated[int, typer.Argument(help="Lower goes first; 5 is usual.")],
    ids: Ids = None,
    match: Match = None,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Give jobs another priority: `headway jobs prioritize 1 17 18`."""
    _steer(call, "prioritise", ids, match, yes, dry_run, priority=priority)


def _steer(
    call: Call, action: str, ids: list[int] | None, match: str | None, yes: bool, dry_run: bool,
    **more: Any,
) -> None:  # fmt: skip
    if (match is None) == (not ids):
        raise typer.BadParameter("name jobs by their numbers, or by --match")
    if match is not None:
        _all_that_match(call, action, match, yes, dry_run, more)
    elif dry_run:
        raise typer.BadParameter("--dry-run goes with --match")
    else:
        _each(call, action, ids or [], more)


def _each(call: Call, action: str, ids: list[int], more: dict[str, Any]) -> None:
    """One after the other; what is not possible for one does not keep it from the others."""
    answers: list[dict[str, Any]] = []
    failed = 0
    for id in ids:
        try:
            answers.append(call.client.post(f"/api/jobs/{id}/{action}", more or None))
            call.out.say(f"job {id} is {_became(answers[-1])}")
        except Refused as error:
            failed += 1
            answers.append({"id": id, "error": str(error)})
            call.out.aside(f"job {id}: {error}")
    if call.out.as_json:
        call.out.line(answers[0] if len(ids) == 1 else answers, indent=2)
    if failed:
        sys.exit(1)


def _became(job: dict[str, Any]) -> str:
    if job["stop_requested"]:
        return f"{job['status']}, and asked to {job['stop_requested']}"
    return str(job["status"])


def _all_that_match(
    call: Call, action: str, match: str, yes: bool, dry_run: bool, more: dict[str, Any]
) -> None:
    body = {"action": action, "q": match, "dry_run": True, **more}
    looked = call.client.post("/api/jobs/bulk", body)
    if dry_run or not looked["possible"]:
        if call.out.as_json:
            call.out.line(looked, indent=2)
        else:
            _tell(call, action, looked)
        return
    if not yes:
        _confirm(call, action, looked)
    body |= {"dry_run": False, "expected": looked["matched"]}
    answer = call.client.post("/api/jobs/bulk", body)
    if call.out.as_json:
        call.out.line(answer, indent=2)
    else:
        refused = f", {answer['refused']} had moved on" if answer["refused"] else ""
        call.out.say(f"{action}: done for {count(answer['done'], 'job')}{refused}")


def _tell(call: Call, action: str, looked: dict[str, Any]) -> None:
    call.out.say(
        f"{count(looked['matched'], 'job')} found, {looked['possible']} of them fit to {action}"
    )
    if looked["sample"]:
        call.out.console.print(
            layouts.job_table(
                {"items": looked["sample"], "total": len(looked["sample"])},
                call.out.console.width,
            )
        )
        rest = looked["possible"] - len(looked["sample"])
        if rest > 0:
            call.out.say(f"and {rest} more")


def _confirm(call: Call, action: str, looked: dict[str, Any]) -> None:
    if call.out.as_json or not sys.stdin.isatty():
        raise CommandFailed(
            f"this would {action} {count(looked['possible'], 'job')}; look with --dry-run, then "
            "say --yes"
        )
    _tell(call, action, looked)
    if not typer.confirm(f"{action} {count(looked['possible'], 'job')}?", err=True):
        raise CommandFailed("nothing was done")
