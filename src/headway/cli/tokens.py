"""`headway tokens`: who may come in."""

from __future__ import annotations

from typing import Annotated

import typer

from headway.cli import layouts
from headway.cli.asking import Call, asks, named
from headway.cli.client import part
from headway.cli.times import seconds_of
from headway.cli.words import complete_scope

app = typer.Typer(name="tokens", no_args_is_help=True, help="Make and revoke access tokens.")


@app.command("create")
@asks
def create(
    call: Call,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, for the audit trail.")],
    scope: Annotated[
        list[str],
        typer.Option(autocompletion=complete_scope, metavar="SCOPE",
                     help="read, submit, operate or admin; may be named several times."),
    ],
    tenant: Annotated[
        str | None, typer.Option(help="It sees and does only what is this tenant's.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="DURATION", help="It ends by itself after 30d, …")
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the token alone, for scripts.")
    ] = False,
) -> None:  # fmt: skip
    """Make a token. It is shown this once; only a hash of it is kept."""
    if call.where.server is None and call.where.running() is None:
        call.where.make()
    body = {"name": name, "scopes": scope, "tenant": tenant,
            "expires_in_s": None if expires is None else seconds_of(expires)}  # fmt: skip
    made = call.connect(as_owner=True).post("/api/tokens", body)
    if quiet:
        print(made["token"])
    elif call.out.as_json:
        call.out.line(made, indent=2)
    else:
        call.out.say(made["token"])
        call.out.aside("Keep it safe: it is shown this once. Use it as HEADWAY_TOKEN or --token.")


@named(app, "ls", "list")
@asks
def ls(call: Call) -> None:
    """List tokens: what each may do, and when it was used."""
    call.out.show(call.connect(as_owner=True).get("/api/tokens"), layouts.token_table)


@app.command("revoke")
@asks
def revoke(
    call: Call, id: Annotated[str, typer.Argument(metavar="ID", help="As `tokens ls` shows it.")]
) -> None:
    """Let a token open nothing any more."""
    call.connect(as_owner=True).delete(f"/api/tokens/{part(id)}")
    if call.out.as_json:
        call.out.line({"revoked": id}, indent=2)
    else:
        call.out.say(f"token {id} is revoked")
