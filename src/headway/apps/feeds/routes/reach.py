"""How routes reach the feeds of the server that they answer for, and whose feeds these are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Depends

from headway.api.auth import Principal
from headway.api.site import TheSite
from headway.apps.feeds.tables import APP

if TYPE_CHECKING:
    from headway.apps.feeds.application import Feeds


async def _feeds(site: TheSite) -> Any:
    return site.application(APP)


if TYPE_CHECKING:
    TheFeeds: TypeAlias = Feeds
else:  # the application imports the routes, so they cannot import it
    TheFeeds = Annotated[Any, Depends(_feeds)]


def owner(principal: Principal) -> str:
    """Whose feeds a request is about: those of its tenant, and nobody else's. Whoever is bound to
    no tenant has feeds of his own, too.
    """
    return principal.tenant or ""
