"""What every command shares: options that say where to ask and how to answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from headway.cli.client import Client
from headway.cli.printing import Output
from headway.cli.where import DEFAULT_DATA, Where

PANEL = "Where to ask"

Server = Annotated[
    str | None,
    typer.Option("--server", envvar="HEADWAY_SERVER", metavar="URL", rich_help_panel=PANEL,
                 help="A running server. Without it: the one that runs on --data, or none."),
]  # fmt: skip
Token = Annotated[
    str | None,
    typer.Option("--token", envvar="HEADWAY_TOKEN", metavar="TOKEN", rich_help_panel=PANEL,
                 show_envvar=True, help="For a server that wants one."),
]  # fmt: skip
Data = Annotated[
    Path,
    typer.Option("--data", envvar="HEADWAY_DATA", metavar="DIR", rich_help_panel=PANEL,
                 help="The data directory on this machine."),
]  # fmt: skip
Dsn = Annotated[
    str | None,
    typer.Option("--dsn", envvar="HEADWAY_DSN", metavar="URL", rich_help_panel=PANEL,
                 help="A PostgreSQL database, instead of --data."),
]  # fmt: skip
AsJson = Annotated[bool, typer.Option("--json", help="Plain JSON on stdout, and nothing else.")]

_COMMON: dict[str, tuple[Any, Any]] = {
    "as_json": (AsJson, False),
    "server": (Server, None),
    "token": (Token, None),
    "data": (Data, Path(DEFAULT_DATA)),
    "dsn": (Dsn, None),
    "context": (typer.Context, inspect.Parameter.empty),
}


class Call:
    """One call of a command: where it asks, and how it answers."""

    def __init__(self, where: Where, out: Output) -> None:
        self.where = where
        self.out = out
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """Connected when it is first needed."""
        return self.connect()

    def connect(self, *, as_owner: bool = False) -> Client:
        if self._client is None:
            self._client = self.where.connect(as_owner=as_owner)
        return self._client

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def asks(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the common options. It is called with a `Call` in their place."""

    def run(context: typer.Context, **said: Any) -> None:
        common = {name: said.pop(name) for name in _COMMON if name != "context"}
        call = Call(_where(context, common), Output(common["as_json"]))
        try:
            command(call, **said)
        finally:
            call.close()

    hints = inspect.get_annotations(command, eval_str=True)
    own = list(inspect.signature(command).parameters.values())[1:]
    parameters = [
        each.replace(annotation=hints[each.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for each in own
    ]
    for name, (annotation, default) in _COMMON.items():
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
        )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    return run


def _where(context: typer.Context, said: dict[str, Any]) -> Where:
    """What the command line names wins over an address that is only in the environment."""
    server = said["server"]
    if server is not None and any(_typed(context, each) for each in ("data", "dsn")):
        if _typed(context, "server"):
            raise typer.BadParameter("name --server, --data or --dsn, but not two of them")
        server = None
    return Where(server, said["token"], said["data"], said["dsn"])


def _typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def named(
    app: typer.Typer, name: str, other: str, *, help: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command by the name that is shown, and by another that people type as well."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        app.command(other, help=f"The same as `{name}`.", hidden=True)(command)
        return app.command(name, help=help)(command)

    return add


def lists_by_default(app: typer.Typer, list_: Callable[..., None]) -> None:
    """A group without a command lists what there is; its options go behind a command."""

    def by_default(context: typer.Context, **said: Any) -> None:
        if context.invoked_subcommand is None:
            list_(context, **said)
        elif any(_typed(context, name) for name in said):
            raise typer.BadParameter(
                f"options go behind the command: `{context.command_path} ls …`"
            )

    by_default.__signature__ = list_.__signature__  # type: ignore[attr-defined]
    by_default.__annotations__ = list_.__annotations__
    app.callback(invoke_without_command=True)(by_default)
    named(app, "ls", "list")(list_)
