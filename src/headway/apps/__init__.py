"""Applications on top of the engine. Each is a package that brings its tables, jobs and routes;
none imports another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.api.application import Application


def all_of_them() -> tuple[Application, ...]:
    """New ones, for one server."""
    from headway.apps.alerts.application import Alerts  # noqa: PLC0415 - only a server needs it
    from headway.apps.celery.application import Celery  # noqa: PLC0415
    from headway.apps.channels import Channels  # noqa: PLC0415
    from headway.apps.feeds.application import Feeds  # noqa: PLC0415
    from headway.apps.history.application import History  # noqa: PLC0415
    from headway.apps.keys.application import Keys  # noqa: PLC0415
    from headway.apps.media.application import Media  # noqa: PLC0415

    return (Channels(), Feeds(), Media(), History(), Celery(), Keys(), Alerts())
