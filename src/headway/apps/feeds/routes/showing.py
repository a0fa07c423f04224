"""Feeds as they are shown. What the register knows may be a moment ahead of the store, so whoever
shows both waits for the store first: a feed that was fetched has its articles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headway.api.problems import Problem
from headway.api.site import Site
from headway.apps.feeds.model import Subscription
from headway.apps.feeds.routes.reach import TheFeeds
from headway.apps.feeds.views import counted, feed_view, numbers_of


def unknown(id: str) -> Problem:
    return Problem(404, f"there is no feed {id!r}; it never was, or somebody has removed it",
                   kind="unknown-feed")  # fmt: skip


def shown(
    site: Site, feeds: TheFeeds, tenant: str, subscriptions: Iterable[Subscription]
) -> list[dict[str, Any]]:
    """All of them that are still there."""
    found = [feed_view(feeds.register, each) for each in subscriptions]
    views = [view for view in found if view is not None]
    site.wait(site.engine.ask(_nothing))
    only = views[0]["id"] if len(views) == 1 else None
    counted(views, numbers_of(feeds.store, tenant, only) if views else {})
    return views


def feed_shown(site: Site, feeds: TheFeeds, tenant: str, id: str) -> dict[str, Any]:
    subscription = feeds.register.subscriptions.get((tenant, id))
    views = [] if subscription is None else shown(site, feeds, tenant, [subscription])
    if not views:
        raise unknown(id)
    return views[0]


def _nothing(now: float) -> None:
    """Whoever asks for it hears when all that was decided before is stored."""
