"""From settings to an app that can be served, or asked directly."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI

from headway.api.application import Application
from headway.api.config import Config, said_by
from headway.api.server import create
from headway.api.site import Site
from headway.api.views import COOKIE_LANE, NO_COOKIE_LANE
from headway.engine.retention import FIELDS, Retention
from headway.errors import BadSettings, EngineRunning, StoreError
from headway.sdk.app import App

# The variables of the request queue, and the lanes they are about.
LANES = {
    "QUEUE_COOKIE_LANE_CONCURRENCY": (COOKIE_LANE, 1),
    "QUEUE_NOCOOKIE_LANE_CONCURRENCY": (NO_COOKIE_LANE, 2),
}


def build_app(
    config: Config,
    user_app: App | None = None,
    settings_file: str | None = None,
    environment: Mapping[str, str] = os.environ,
    applications: Sequence[Application] = (),
) -> App:
    """The app that a server runs: somebody's own, with its jobs, or one that knows none."""
    if user_app is None:
        app = App(config.url, settings_file=settings_file, threads=config.threads)
    else:
        app = user_app
        app.use(config.url, settings_file)
    app.payload_limit = config.max_payload
    app.lease_s = config.lease_s
    app.retention = Retention(
        completed_days=config.completed_days, failed_days=config.failed_days,
        said_by={field: said_by(field, settings_file, environment) for field in FIELDS},
    )  # fmt: skip
    for variable, (lane, usual) in LANES.items():
        app.settings.declare("code", "lane", lane, {"limit": usual})
        said = environment.get(variable)
        if said:
            if not said.isdecimal():
                raise BadSettings(f"{variable} is a whole number, not {said!r}")
            app.settings.declare("environment", "lane", lane, {"limit": int(said)})
    for each in applications:
        each.prepare(app, config, settings_file)
    return app


@contextmanager
def direct(config: Config, applications: Sequence[Application] = ()) -> Iterator[FastAPI]:
    """The same routes without a server: for a command line on the machine itself. What operators
    ask is done here, and nothing starts. If an engine runs elsewhere, it gets the orders.
    """
    if not config.dsn and not (Path(config.data) / "headway.db").is_file():
        raise StoreError(
            f"there is no data in {config.data}; start a server there with `headway serve --data "
            f"{config.data}`, or name another directory with --data, or a server with --server"
        )
    app = build_app(config, applications=applications)
    try:
        try:
            app.start(idle=True)
        except EngineRunning:
            app.engine_elsewhere = True
        yield create(Site(app, config, applications=applications))
    finally:
        app.close()
