"""How routes reach the feeds of the server that they answer for, and whose feeds these are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Depends, Request

from headway.api.auth import Principal
from headway.api.site import Site
from headway.apps.feeds.tables import APP

if TYPE_CHECKING:
    from headway.apps.feeds.application import Feeds


def feeds_of(site: Site) -> Feeds:
    found: Any = next(each for each in site.applications if each.name == APP)
    return found  # type: ignore[no-any-return]


async def _feeds(request: Request) -> Any:
    return feeds_of(request.app.state.site)


if TYPE_CHECKING:
    TheFeeds: TypeAlias = Feeds
else:  # the application imports the routes, so they cannot import it
    TheFeeds = Annotated[Any, Depends(_feeds)]


def owner(principal: Principal) -> str:
    """Whose feeds a request is about: those of its tenant, and nobody else's. Whoever is bound to
    no tenant has feeds of his own, too.
    """
    return principal.tenant or ""
