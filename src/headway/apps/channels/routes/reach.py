"""How routes reach the channels of the server that they answer for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Depends, Request

from headway.api.problems import Problem
from headway.api.site import Site
from headway.apps.channels.tables import APP
from headway.errors import BadSettings, SealedElsewhere

if TYPE_CHECKING:
    from headway.apps.channels.application import Channels


def channels_of(site: Site) -> Channels:
    found: Any = next(each for each in site.applications if each.name == APP)
    return found  # type: ignore[no-any-return]


async def _channels(request: Request) -> Any:
    return channels_of(request.app.state.site)


if TYPE_CHECKING:
    TheChannels: TypeAlias = Channels
else:  # the application imports the routes, so they cannot import it
    TheChannels = Annotated[Any, Depends(_channels)]


@contextmanager
def keys_at_hand() -> Iterator[None]:
    """Around what seals or opens a secret: the key for that may be missing on the server."""
    try:
        yield
    except (BadSettings, SealedElsewhere) as error:
        raise Problem(503, str(error), kind="no-secret-key") from error
