"""`headway serve` and `headway worker`: the commands that stay."""

from __future__ import annotations

import importlib
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headway.cli.client import CommandFailed
from headway.cli.times import seconds_of

if TYPE_CHECKING:
    from headway.sdk.app import App

AppName = Annotated[
    str | None,
    typer.Option(
        "--app", metavar="MODULE:NAME", help="Your App, with its jobs: `mysite.jobs:app`."
    ),
]
LogFormat = Annotated[
    str | None, typer.Option(metavar="auto|json|text", help="auto: text at a terminal.")
]
LogLevel = Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning, error.")]
Drain = Annotated[
    str | None,
    typer.Option(metavar="DURATION", help="How long running jobs may take to end at the end."),
]


def serve(
    host: Annotated[str | None, typer.Option(help="127.0.0.1 unless you say otherwise.")] = None,
    port: Annotated[int | None, typer.Option(help="8000; 0 takes any that is free.")] = None,
    data: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where everything is kept: ./headway-data.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="FILE", help="Settings as TOML; see the guide.")
    ] = None,
    fairqueue: Annotated[
        str | None, typer.Option(metavar="FILE", help="The config.json of the fair queue.")
    ] = None,
    dsn: Annotated[
        str | None, typer.Option(metavar="URL", help="A PostgreSQL database, instead of --data.")
    ] = None,
    celery_broker: Annotated[
        str | None, typer.Option(metavar="URL", help="Where Celery workers get what they may run.")
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where other servers of the same database reach it."),
    ] = None,
    app: AppName = None,
    auth: Annotated[
        str | None, typer.Option(metavar="auto|required", help="auto: no token on loopback.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name it may be called by.")
    ] = None,
    allowed_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A page elsewhere that may call it.")
    ] = None,
    drain: Drain = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
) -> None:
    """Run the server: API, live page, engine and local workers, until SIGTERM or Ctrl-C."""
    # The server's code is a second of imports that no other command should wait for.
    from headway import apps  # noqa: PLC0415
    from headway.api import assembly, logs, serving  # noqa: PLC0415
    from headway.api.config import read  # noqa: PLC0415

    settings = read(
        config, host=host, port=port, data=data, dsn=dsn, auth=auth,
        fairqueue=fairqueue, advertise=advertise, celery_broker=celery_broker,
        allowed_hosts=allowed_host or None, allowed_origins=allowed_origin or None,
        drain_s=None if drain is None else seconds_of(drain),
        log_format=log_format, log_level=log_level,
    )  # fmt: skip
    user_app = None if app is None else app_at(app)
    logs.set_up(settings.log_format, settings.log_level)
    applications = apps.all_of_them()
    served = assembly.build_app(settings, user_app, _toml(config), applications=applications)
    try:
        serving.serve(settings, served, applications=applications, ready=_say_where)
    finally:
        served.close()  # also if it was refused before it began


def _toml(file: str | None) -> str | None:
    """The file with settings of gates; a config.json of the fair queue has none."""
    from headway.api.fairqueue.config import is_fairqueue_config  # noqa: PLC0415

    return None if file is None or is_fairqueue_config(file) else file


def _say_where(address: str) -> None:
    print(f"Headway is at {address}", flush=True)


def worker(
    server: Annotated[
        str, typer.Option(envvar="HEADWAY_SERVER", metavar="URL", help="Whose jobs it does.")
    ],
    app: AppName,
    token: Annotated[
        str | None,
        typer.Option(envvar="HEADWAY_TOKEN", metavar="TOKEN", help="With the scope operate."),
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="How many jobs at once.")
    ] = None,
    drain: Drain = None,
    log_format: LogFormat = None,
    log_level: LogLevel = None,
) -> None:
    """Run the jobs of an App for a server elsewhere, until SIGTERM or Ctrl-C."""
    from headway.api import logs  # noqa: PLC0415 - as above
    from headway.remote.worker import run  # noqa: PLC0415

    found = app_at(app or "")
    logs.set_up(log_format or "auto", log_level or "info")
    drain_s = 30.0 if drain is None else seconds_of(drain)
    types = ", ".join(sorted(found.registry.types)) or "nothing: the app has no jobs"
    logging.getLogger("headway.worker").info("working for %s: %s", server, types)
    run(found, server, token, concurrency=concurrency, drain_s=drain_s)


def app_at(name: str) -> App:
    """The App that `module:name` names, with the present directory on the path."""
    from headway.sdk.app import App  # noqa: PLC0415

    module_name, colon, variable = name.partition(":")
    if not colon or not module_name or not variable:
        raise typer.BadParameter(f"write module:name, such as mysite.jobs:app, not {name!r}")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    found: Any = _imported(module_name)
    for each in variable.split("."):
        if not hasattr(found, each):
            raise CommandFailed(f"{module_name} has no {variable!r}; name the App that is in it")
        found = getattr(found, each)
    if not isinstance(found, App):
        raise CommandFailed(f"{name} is a {type(found).__name__}, not an App of Headway")
    return found


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise CommandFailed(
                f"there is no module {error.name!r} here; run the command where it can be imported"
            ) from error
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> CommandFailed:
    """Where in somebody's own code it happened, on one line."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    return CommandFailed(f"{name} cannot be imported: {type(error).__name__}: {error} ({where})")
