"""`headway batches`: jobs that are counted together."""

from __future__ import annotations

from typing import Annotated

import typer

from headway.cli import layouts
from headway.cli.asking import Call, asks, named

app = typer.Typer(name="batches", no_args_is_help=True, help="Jobs that are counted together.")


@named(app, "ls", "list")
@asks
def ls(
    call: Call,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200)] = 50,
    page: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """List batches, and how far each is."""
    call.out.show(call.client.get("/api/batches", page=page, size=limit), layouts.batch_table)


@app.command("show")
@asks
def show(call: Call, id: Annotated[int, typer.Argument(metavar="ID", min=1)]) -> None:
    """How far a batch is. Its jobs: `headway jobs ls batch:ID`."""
    call.out.show(call.client.get(f"/api/batches/{id}"), layouts.batch_facts)
