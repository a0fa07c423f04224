"""Simulations for people who ask the server: what to simulate is put together here, and done in a
process of its own that is ended when it takes too long.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from headway.api.problems import Problem
from headway.engine.settings import merged, policy_of
from headway.engine.tickets import spec_of
from headway.store.records import Query

if TYPE_CHECKING:
    from headway.api.site import Site

MAX_CALLS = 100_000  # of each of both runs
WALL_S = 15.0  # for both
GRACE_S = 12.0  # to start and to answer
MAX_EVENTS = 60_000  # of the trail that are replayed
AT_ONCE = 1_000

RECENT = "recent"


async def run(question: dict[str, Any]) -> dict[str, Any]:
    """Both runs. Problem: it cannot be done like this, or took too long."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "headway.simulation", stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(WALL_S + GRACE_S):
            out, _ = await process.communicate(msgspec.json.encode(question))
    except TimeoutError:
        raise Problem(503, f"it took longer than {WALL_S:g} s; ask for a shorter time",
                      kind="busy", headers={"Retry-After": "5"}) from None  # fmt: skip
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        raise Problem(503, "the simulation was ended: it took too much; ask for a shorter time",
                      kind="busy", headers={"Retry-After": "5"})  # fmt: skip
    answer: dict[str, Any] = msgspec.json.decode(out)
    if "error" in answer:
        raise Problem(422, answer["error"], kind="bad-settings")
    return answer


def question_of(
    site: Site, kind: str, name: str, change: dict[str, Any], load: str, upstream: str | None,
    duration_s: float, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """What the process is told. ValueError: these settings make no sense."""
    settings = site.app.settings
    behind = settings.behind(kind, name)
    before = None if behind is None else dict(behind["value"])
    after = merged({"file": before or {}, "operator": change})
    policy_of(kind, after, name)
    declared = [
        (row["kind"], row["name"], row["value"])
        for row in settings.shown()
        if row["kind"] in ("everything", "lane", "upstream", "tool", "type", "key")
    ]
    rows = recent_rows(site, duration_s) if load == RECENT else None
    return {
        "kind": kind, "name": name, "before": before, "after": after, "settings": declared,
        "load": load, "upstream": upstream, "duration_s": duration_s, "seed": seed,
        "calls": MAX_CALLS, "wall_s": WALL_S, "rows": rows,
    }  # fmt: skip


def recent_rows(site: Site, since_s: float) -> list[dict[str, Any]]:
    """What happened to jobs in this time, and what they asked for, as a recording has it."""
    store, start = site.store, site.now() - since_s
    oldest, newest = store.event_range()
    cursor = max(oldest - 1, newest - MAX_EVENTS)
    events: list[dict[str, Any]] = []
    while found := store.trail(cursor, AT_ONCE):
        cursor = found[-1].id
        events += [
            {"kind": "event", "at": row.at, "job": row.job, "event": row.event,
             "before": row.before, "after": row.after}
            for row in found
            if row.job is not None and row.after is not None and row.at >= start
        ]  # fmt: skip
        if len(found) < AT_ONCE:
            break
    if not events:
        raise Problem(409, "nothing happened to any job in that time; choose a longer time, or a "
                      "load that has a name", kind="nothing-recorded")  # fmt: skip
    return [*_jobs_of(site, sorted({event["job"] for event in events})), *events]


def _jobs_of(site: Site, ids: list[int]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for start in range(0, len(ids), AT_ONCE):
        some = tuple(ids[start : start + AT_ONCE])
        for job in site.store.jobs(Query(ids=some, limit=len(some))):
            spec = spec_of(job.spec)
            upstreams = [] if job.upstreams is None else msgspec.json.decode(job.upstreams)
            rows.append({
                "kind": "job", "id": job.id, "type": job.type, "lane": job.lane,
                "tenant": job.tenant, "key": job.key, "priority": job.priority,
                "upstreams": upstreams, "tools": list(spec.tools), "weight": spec.weight,
                "traffic": spec.traffic, "cost": spec.cost,
            })  # fmt: skip
    return rows
