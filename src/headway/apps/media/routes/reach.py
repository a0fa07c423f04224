"""How routes reach the archive of the server that they answer for, and whose it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from fastapi import Depends

from headway.api.auth import Principal
from headway.api.problems import Problem
from headway.api.site import TheSite
from headway.apps.media.model import Subscription
from headway.apps.media.tables import APP

if TYPE_CHECKING:
    from headway.apps.media.application import Media


async def _media(site: TheSite) -> Any:
    """Problem: it is switched off here."""
    found: Media = site.application(APP)
    if not found.is_on:
        raise Problem(409, "the archive is off on this server: install yt-dlp (`pip install "
                      "headway[media]`), or set on = true in [media]",
                      kind="no-archive")  # fmt: skip
    return found


if TYPE_CHECKING:
    TheMedia: TypeAlias = Media
else:  # the application imports the routes, so they cannot import it
    TheMedia = Annotated[Any, Depends(_media)]


def owner(principal: Principal) -> str:
    """Whose subscriptions a request is about: those of its tenant, and nobody else's. Whoever is
    bound to no tenant has subscriptions of his own, too.
    """
    return principal.tenant or ""


def own(media: TheMedia, id: int, principal: Principal) -> Subscription:
    """Problem: there is no such subscription, or it is somebody else's. Whoever is bound to no
    tenant sees all of them.
    """
    found = media.register.get(id, principal.tenant)
    if found is None:
        raise Problem(404, f"there is no subscription {id}", kind="unknown-subscription")
    return found
