"""`headway schedules`: jobs that come again and again."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headway.cli import layouts, words
from headway.cli.asking import Call, asks, named
from headway.cli.client import part

app = typer.Typer(name="schedules", no_args_is_help=True, help="Jobs that come again and again.")

Name = Annotated[str, typer.Argument(metavar="NAME")]


@named(app, "ls", "list")
@asks
def ls(call: Call) -> None:
    """List schedules, and when each is due next."""
    call.out.show(call.client.get("/api/schedules"), layouts.schedule_table)


@app.command("show")
@asks
def show(call: Call, name: Name) -> None:
    """Everything about a schedule."""
    call.out.show(call.client.get(f"/api/schedules/{part(name)}"), layouts.schedule_facts)


@app.command("add")
@asks
def add(
    call: Call,
    name: Name,
    type: words.JobType,
    arguments: words.Arguments = None,
    every: Annotated[str | None, typer.Option(metavar="DURATION", help="30m, 1h, 1d …")] = None,
    cron: Annotated[str | None, typer.Option(metavar="RULE", help='"0 3 * * *"')] = None,
    zone: Annotated[str | None, typer.Option(help="The time zone of --cron.")] = None,
    args: words.Args = None,
    lane: words.Lane = None,
    tenant: words.Tenant = None,
    key: words.Key = None,
    upstream: words.Upstream = None,
    tool: words.Tool = None,
    priority: words.Priority = None,
    label: words.Label = None,
    max_attempts: words.MaxAttempts = None,
) -> None:
    """Make a schedule, or change the one of this name."""
    if (every is None) == (cron is None):
        raise typer.BadParameter("say either --every or --cron")
    if zone is not None and cron is None:
        raise typer.BadParameter("--zone goes with --cron")
    job = words.job_body(
        type, arguments, args, lane=lane, tenant=tenant, key=key, upstream=upstream, tool=tool,
        priority=priority, label=label, max_attempts=max_attempts,
    )  # fmt: skip
    body: dict[str, Any] = {"name": name, "job": job}
    body |= {"every": every} if cron is None else {"cron": cron, "zone": zone or "UTC"}
    call.out.show(call.client.post("/api/schedules", body), layouts.schedule_facts)


@app.command("pause")
@asks
def pause(call: Call, name: Name) -> None:
    """Let no further occurrence come."""
    call.out.show(call.client.post(f"/api/schedules/{part(name)}/pause"), layouts.schedule_facts)


@app.command("resume")
@asks
def resume(call: Call, name: Name) -> None:
    """Let them come again."""
    call.out.show(call.client.post(f"/api/schedules/{part(name)}/resume"), layouts.schedule_facts)


@named(app, "rm", "remove")
@asks
def rm(call: Call, name: Name) -> None:
    """Remove a schedule and its next occurrence."""
    call.client.delete(f"/api/schedules/{part(name)}")
    if call.out.as_json:
        call.out.line({"removed": name}, indent=2)
    else:
        call.out.say(f"schedule {name} is removed")
