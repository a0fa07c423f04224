"""The numbers of the queue as a whole, in the words of the request queue."""

from __future__ import annotations

from typing import Any

from headway.api.site import Site
from headway.api.views import COOKIE_LANE, NO_COOKIE_LANE, REQUEST_WORDS
from headway.engine.inspection import picture

SHORT = {COOKIE_LANE: "cookie", NO_COOKIE_LANE: "nocookie"}


def queue_stats(site: Site, tenant: str | None) -> dict[str, Any]:
    """Counts of one tenant's jobs, or of all; lanes are shared, so capacities are everybody's."""
    counts = {
        "total": 0, "queued": 0, "running": 0, "paused": 0, "done": 0, "failed": 0, "canceled": 0,
    }  # fmt: skip
    lanes: dict[str, dict[str, int]] = {}
    for lane, state, many in site.tally(tenant):
        counts["total"] += many
        counts[REQUEST_WORDS.get(state, state)] += many
        lanes.setdefault(lane, {})[state] = many
    brain = site.engine.brain
    everything, cookie, no_cookie = site.wait(
        site.engine.ask(
            lambda now: [
                picture(brain, kind, name, now, whole=False)
                for kind, name in (
                    ("everything", ""), ("lane", COOKIE_LANE), ("lane", NO_COOKIE_LANE)
                )
            ]
        )
    )  # fmt: skip
    waiting = {
        lane: sum(lanes.get(lane, {}).get(state, 0) for state in ("pending", "queued"))
        for lane in SHORT
    }
    return {
        "paused": {
            "all": everything["paused"],
            COOKIE_LANE: cookie["paused"],
            NO_COOKIE_LANE: no_cookie["paused"],
        },
        "counts": counts,
        "counts_by_channel": {
            "queued_cookie": waiting[COOKIE_LANE],
            "queued_nocookie": waiting[NO_COOKIE_LANE],
        },
        "capacity": {
            COOKIE_LANE: _limit(cookie),
            NO_COOKIE_LANE: _limit(no_cookie),
            "running_cookie": cookie["running"],
            "running_nocookie": no_cookie["running"],
            "available_cookie": _available(cookie),
            "available_nocookie": _available(no_cookie),
        },
        "lanes": lanes,
    }


def _limit(lane: dict[str, Any]) -> int | None:
    return None if lane["limit"] is None else int(lane["limit"])


def _available(lane: dict[str, Any]) -> int | None:
    return None if lane["limit"] is None else max(0, int(lane["limit"]) - lane["running"])
