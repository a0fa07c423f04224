"""The root of the command: its groups, its version, and how it fails."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any

import typer

from headway import __version__
from headway.cli import (
    alerts,
    archive,
    archive_accounts,  # noqa: F401 - its commands are among those of `archive`
    archive_checks,  # noqa: F401 - likewise
    archive_doing,  # noqa: F401 - likewise
    archive_items,  # noqa: F401 - likewise
    attention,
    backing,
    batches,
    celery,
    channels,
    demo,
    doctor,
    events,
    exporting,
    feed_reading,  # noqa: F401 - its commands are among those of `feeds`
    feed_rounds,  # noqa: F401 - likewise
    feed_rules,  # noqa: F401 - likewise
    feeds,
    gates,
    importing,
    jobs,
    keys,
    learned,
    migrating,
    schedules,
    servers,
    serving,
    simulate,
    slots,
    steering,  # noqa: F401 - its commands are among those of `jobs`
    tokens,
    top,
)
from headway.cli.printing import plain
from headway.errors import HeadwayError

app = typer.Typer(
    name="headway",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["--help", "-h"]},
)

RUN, LOOK, STEER, KEEP = "Run", "Look", "Look and steer", "Keep"

app.command("serve", rich_help_panel=RUN)(serving.serve)
app.command("worker", rich_help_panel=RUN)(serving.worker)
app.command("demo", rich_help_panel=RUN)(demo.demo)
app.command("simulate", rich_help_panel=RUN)(simulate.simulate)
app.command("top", rich_help_panel=LOOK)(top.top)
app.command("events", rich_help_panel=LOOK)(events.events)
app.command("audit", rich_help_panel=LOOK)(events.audit)
app.command("attention", rich_help_panel=LOOK)(attention.attention)
app.command("servers", rich_help_panel=LOOK)(servers.servers)
app.command("doctor", rich_help_panel=LOOK)(doctor.doctor)
app.command("celery", rich_help_panel=LOOK)(celery.celery)
app.command("costs", rich_help_panel=LOOK)(channels.costs)
for group in (
    jobs.app,
    gates.group("lanes", "Lanes that jobs stand in."),
    gates.group("upstreams", "What jobs call, and what pushes back."),
    gates.group("tools", "What jobs of several lanes share."),
    gates.group("types", "Types of jobs."),
    learned.app,
    schedules.app,
    batches.app,
    slots.app,
    channels.app,
    channels.budgets,
    feeds.app,
    archive.app,
):
    app.add_typer(group, rich_help_panel=STEER)
app.add_typer(tokens.app, rich_help_panel=KEEP)
app.add_typer(keys.app, rich_help_panel=KEEP)
app.add_typer(alerts.app, rich_help_panel=KEEP)
app.command("backup", rich_help_panel=KEEP)(backing.backup)
app.command("restore", rich_help_panel=KEEP)(backing.restore)
app.command("migrate", rich_help_panel=KEEP)(migrating.migrate)
app.command("export", rich_help_panel=KEEP)(exporting.export)
app.command("import", rich_help_panel=KEEP)(importing.import_)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"headway {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _headway(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - typer reads it, through the callback
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and leave.",
        ),
    ] = False,
) -> None:
    """A job queue and slot service: background work at the pace its upstreams allow."""
    # Typer's own `no_args_is_help` reports a usage error; asking for nothing is not one.
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache
def _command() -> Any:
    """All commands and their options, read from their signatures once."""
    return typer.main.get_command(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; the entry point of the installed script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # no name may end the command
    try:
        # Named, so that `python -m headway` calls itself `headway` in its help too.
        _command()(arguments, prog_name="headway")
    except HeadwayError as error:
        print(f"error: {plain(error)}", file=sys.stderr)
        sys.exit(1)
