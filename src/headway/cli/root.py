"""The `headway` command."""

from typing import Annotated

import typer

from headway import __version__

app = typer.Typer(name="headway", add_completion=False)


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
    """A job queue and slot service."""
    # Typer's own `no_args_is_help` reports a usage error; asking for nothing is not one.
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command line; the entry point of the installed script."""
    # Named, so that `python -m headway` calls itself `headway` in its help too.
    app(prog_name="headway")
