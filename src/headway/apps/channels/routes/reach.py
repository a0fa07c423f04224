"""How routes reach the channels of the server that they answer for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Depends

from headway.api.problems import Problem
from headway.api.site import Site, TheSite
from headway.apps.channels.tables import APP
from headway.errors import BadSettings, SealedElsewhere

if TYPE_CHECKING:
    from headway.apps.channels.application import Channels


def channels_of(site: Site) -> Channels:
    found: Channels = site.application(APP)
    return found


async def _channels(site: TheSite) -> Any:
    return channels_of(site)


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
