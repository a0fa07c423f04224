"""`headway jobs`: looking at jobs, and asking for them."""

from __future__ import annotations

import sys
from time import monotonic
from typing import Annotated, Any

import typer

from headway.cli import layouts, words
from headway.cli.asking import Call, asks, named
from headway.cli.client import PAGE, Client, CommandFailed, Refused, part
from headway.cli.printing import facts, state
from headway.cli.times import seconds_of

app = typer.Typer(name="jobs", no_args_is_help=True, help="Look at jobs, ask for them, steer them.")

ENDED = ("completed", "failed", "cancelled")
LOOK_S = 30.0  # how long the server is asked to wait for the end of a job

JobId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The number of a job.")]


@named(app, "ls", "list")
@asks
def ls(
    call: Call,
    search: words.Words = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")] = 50,
    page: Annotated[int, typer.Option(min=1, help="Further back in pages of --limit.")] = 1,
) -> None:
    """List jobs, newest first. Qualifiers narrow it: `type:download status:failed`."""
    q = words.search_of(search)
    if limit <= PAGE:
        answer = call.client.get("/api/jobs", q=q, page=page, size=limit)
    elif page > 1:
        raise typer.BadParameter(f"--page goes with a --limit of at most {PAGE}")
    else:
        answer = {"items": [], "total": 0}
        for each in call.client.pages("/api/jobs", limit, q=q):
            answer["items"] += each["items"]
            answer["total"] = each["total"]
        answer["count"] = len(answer["items"])
    call.out.show(answer, lambda each: layouts.job_table(each, call.out.console.width))


@app.command("show")
@asks
def show(
    call: Call,
    id: JobId,
    events: Annotated[bool, typer.Option(help="Also everything that happened to it.")] = False,
) -> None:
    """Everything about a job: its state, its attempts, what it is called with."""
    job = call.client.get(f"/api/jobs/{id}")
    job["args"] = call.client.get(f"/api/jobs/{id}/payload")["value"]
    if events:
        job["events"] = call.client.get(f"/api/jobs/{id}/events")["items"]
    call.out.show(job, layouts.job_facts)
    if events and not call.out.as_json:
        call.out.console.print()
        call.out.console.print(layouts.event_lines({"items": job["events"]}))


@app.command("explain")
@asks
def explain(call: Call, id: JobId) -> None:
    """Why a job waits, since when, in which place, and when it should start."""
    call.out.show(call.client.get(f"/api/jobs/{id}/explain"), layouts.explanation)


@app.command("logs")
@asks
def logs(call: Call, id: JobId) -> None:
    """What a job has logged."""
    call.out.show(call.client.get(f"/api/jobs/{id}/logs"), layouts.log_lines)


@app.command("add")
@asks
def add(
    call: Call,
    type: words.JobType,
    arguments: words.Arguments = None,
    args: words.Args = None,
    lane: words.Lane = None,
    tenant: words.Tenant = None,
    key: words.Key = None,
    upstream: words.Upstream = None,
    tool: words.Tool = None,
    priority: words.Priority = None,
    label: words.Label = None,
    delay: words.Delay = None,
    at: words.At = None,
    deadline: words.Deadline = None,
    within: words.Within = None,
    unique: words.Unique = None,
    after: words.After = None,
    batch: words.Batch = None,
    keep_result: words.KeepResult = None,
    max_attempts: words.MaxAttempts = None,
) -> None:
    """Enqueue a job: `headway jobs add fetch url=https://example.com --lane web`."""
    body = words.job_body(
        type, arguments, args, lane=lane, tenant=tenant, key=key, upstream=upstream, tool=tool,
        priority=priority, label=label, delay=delay, at=at, deadline=deadline, within=within,
        unique=unique, after=after, batch=batch, keep_result=keep_result,
        max_attempts=max_attempts,
    )  # fmt: skip
    job = call.client.post("/api/jobs", body)
    if call.out.as_json:
        call.out.line(job, indent=2)
    elif job["joined"]:
        call.out.say(f"job {job['id']} is there already ({job['status']})")
    else:
        call.out.say(f"job {job['id']} is {job['status']}")


@app.command("wait")
@asks
def wait(
    call: Call,
    ids: Annotated[list[int], typer.Argument(metavar="ID...", help="The numbers of jobs.")],
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Give up after 30s, 5m, …")
    ] = None,
) -> None:
    """Wait until jobs have ended. Fails (1) unless all of them completed."""
    ends = None if timeout is None else monotonic() + seconds_of(timeout)
    jobs = [_ended(call.client, id, ends) for id in ids]
    for job in jobs:
        if job["status"] == "completed":
            job["result"] = _result(call.client, job["id"])
    if call.out.as_json:
        call.out.line(jobs[0] if len(jobs) == 1 else jobs, indent=2)
    else:
        for job in jobs:
            call.out.console.print(facts((
                (f"job {job['id']}", state(job["status"])),
                ("story", layouts.story(job)), ("result", job.get("result")),
            )))  # fmt: skip
    if any(job["status"] != "completed" for job in jobs):
        sys.exit(1)


def _ended(client: Client, id: int, ends: float | None) -> dict[str, Any]:
    while True:
        left_s = LOOK_S if ends is None else min(LOOK_S, ends - monotonic())
        idle = client.idle
        job: dict[str, Any] = client.get(
            f"/api/jobs/{part(id)}", wait_s=0 if idle else max(0.0, left_s)
        )
        if job["status"] in ENDED:
            return job
        if idle:
            raise CommandFailed(f"job {id} is {job['status']}, and no server is running that would "
                                "run it; start one with `headway serve`")  # fmt: skip
        if ends is not None and monotonic() >= ends:
            raise CommandFailed(f"job {id} has not ended in time: it is {job['status']}")


def _result(client: Client, id: int) -> Any:
    try:
        return client.get(f"/api/jobs/{id}/result")["value"]
    except Refused:
        return None  # it was kept no longer
