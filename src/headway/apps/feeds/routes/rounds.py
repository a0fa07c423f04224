"""Refreshing many feeds at once over HTTP, and how far a round is."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from functools import partial
from heapq import nsmallest
from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from headway.api.auth import Reader, Submitter
from headway.api.bodies import NO_NUL, Name
from headway.api.models import Moment
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_own_name
from headway.api.views import in_words, moment
from headway.apps.feeds.folders import folder_path, is_below
from headway.apps.feeds.model import Source
from headway.apps.feeds.round_rows import (
    FAILED,
    IMPORT,
    REFRESH,
    SKIPPED,
    WAITING,
    ItemRow,
    Report,
    RoundRow,
)
from headway.apps.feeds.rounds import AT_ONCE, Asked, Round, TooManyRounds
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.views import title_of
from headway.core.explain import Explanation

router = APIRouter(tags=["Feed rounds"])

PATH = "/api/backend/queue/rounds"
MAX_WAIT_S = 60.0
LOOKS = 3  # at a round that changes while it is looked at
MOST_ENDED = 100  # feeds that failed or were skipped, and are shown one by one
MOST_WAITING = 20  # likewise; each is explained by the engine
MOST_NAMED = 5  # ids in the text of a problem

RoundId = Annotated[str, Path(max_length=100, description="The id of a round.")]
Folder = Annotated[str, StringConstraints(max_length=1_000, pattern=NO_NUL)]


class ScheduleAllBody(BaseModel):
    """Which feeds to refresh now; all of them, if nothing is said."""

    model_config = ConfigDict(strict=True)

    folder: Folder | None = Field(
        None, description="Those in this folder or below it; empty: in none."
    )
    feed_ids: Annotated[list[Name], Field(max_length=10_000)] | None = Field(
        None, description="These ones."
    )


class SkippedModel(BaseModel):
    feed_id: str
    why: str = Field(description="Why it is not refreshed.")


class ScheduleAllAnswer(BaseModel):
    round_id: str = Field(description="To ask how far it is.")
    status: Literal["queued", "nothing_to_do"]
    total: int = Field(description="Feeds of the round.")
    scheduled: int = Field(description="Those that are refreshed as soon as their sites allow.")
    already_running: int = Field(description="Those whose refresh runs; it counts for this round.")
    skipped: int = Field(description="Those that are paused or have ended.")
    skipped_feeds: list[SkippedModel] = Field(description="Some of these, and why.")


class RoundItemModel(BaseModel):
    feed_id: str
    title: str | None = Field(description="Null: the feed is gone.")
    state: Literal["waiting", "failed", "skipped"]
    error: str | None = Field(description="Why it failed, or was skipped.")
    wait_reason: str | None = Field(description="What it waits for, in words.")
    eta: Moment = Field(description="When its refresh should start, as far as anybody can tell.")


class NotAddedModel(BaseModel):
    url: str
    why: str = Field(description="What is wrong with it.")


class DuplicateModel(BaseModel):
    url: str
    feed_id: str = Field(description="The feed that leads there already.")


class RoundSummary(BaseModel):
    id: str
    kind: Literal["refresh", "import"]
    status: Literal["running", "finished"]
    total: int
    done: int = Field(description="Feeds that were refreshed.")
    failed: int = Field(description="Feeds that could not be; the others go on.")
    skipped: int = Field(description="Removed or paused meanwhile, or there already.")
    waiting: int = Field(description="Feeds that are not dealt with yet.")
    new_count: int = Field(description="New articles that the sites had, before any rules.")
    percent: float
    text: str = Field(description="Such as `38 of 40, 12 new`.")
    added: int | None = Field(description="Of an import: feeds that are new.")
    duplicates: int | None = Field(description="Of an import: feeds that were there already.")
    invalid: int | None = Field(description="Of an import: what could not be added.")
    created_at: Moment
    finished_at: Moment


class RoundModel(RoundSummary):
    items: list[RoundItemModel] = Field(
        description="Feeds that failed or were skipped, and some that are waited for."
    )
    invalid_feeds: list[NotAddedModel] = Field(description="Of an import: some of them, and why.")
    duplicate_feeds: list[DuplicateModel] = Field(description="Of an import: some of them.")
    eta: Moment = Field(description="When the last refresh should start, as far as one can tell.")


class RoundList(BaseModel):
    items: list[RoundSummary]


# ---------------------------------------------------------------------- asking


@router.post(
    "/api/backend/queue/schedule-all",
    status_code=202,
    summary="Refresh all feeds now, or some of them",
    operation_id="scheduleAllFeeds",
    response_class=Reply,
    responses={202: {"model": ScheduleAllAnswer}, **documented(404)},
)
def schedule_all(
    site: TheSite, feeds: TheFeeds, principal: Submitter, body: ScheduleAllBody | None = None
) -> Response:
    """Each site is asked at its own pace. One feed that fails never stops the others; the answer
    names the round that counts them.
    """
    body = body or ScheduleAllBody(folder=None, feed_ids=None)
    tenant = owner(principal)
    chosen = _chosen(feeds, tenant, body)
    brain = site.engine.brain

    def begin(now: float) -> Round:
        made = begun(partial(feeds.rounds.begin, tenant, REFRESH, now))
        brain.record(now, "feeds_refreshed", subject=f"round:{made.id}")
        return made

    id = in_own_name(site, principal, begin).id
    asked = Asked()
    try:
        for some in _chunks(chosen):
            call = partial(feeds.rounds.refresh, id, some, body.feed_ids is not None)
            asked = asked.plus(site.wait(site.engine.ask(call)))
    finally:
        site.wait(site.engine.ask(partial(feeds.rounds.grown, id)))
    waits = asked.scheduled + asked.already_running
    view = {
        "round_id": id,
        "status": "queued" if waits else "nothing_to_do",
        "total": waits + len(asked.skipped),
        "scheduled": asked.scheduled,
        "already_running": asked.already_running,
        "skipped": len(asked.skipped),
        "skipped_feeds": [
            {"feed_id": feed, "why": why} for feed, why in asked.skipped[:MOST_ENDED]
        ],
    }
    return Reply(view, 202, headers={"Location": f"{PATH}/{id}"})


def begun(begin: Any) -> Round:
    """A round that has begun, or what to do if too many are under way."""
    try:
        made: Round = begin()
    except TooManyRounds as error:
        raise Problem(429, str(error), kind="too-many-rounds",
                      headers={"Retry-After": "10"}) from error  # fmt: skip
    return made


def _chosen(feeds: TheFeeds, tenant: str, body: ScheduleAllBody) -> list[str]:
    if body.feed_ids is None:
        found = feeds.register.of_tenant(tenant)
        if body.folder is not None:
            folder = folder_path(body.folder)
            found = [each for each in found if is_below(each.folder, folder)]
        return [each.id for each in found]
    if body.folder is not None:
        raise Problem(422, "folder and feed_ids both say which feeds; send one of them",
                      kind="wrong-input")  # fmt: skip
    chosen = list(dict.fromkeys(body.feed_ids))
    unknown = [id for id in chosen if (tenant, id) not in feeds.register.subscriptions]
    if unknown:
        more = f" and {len(unknown) - MOST_NAMED} more" if len(unknown) > MOST_NAMED else ""
        named = ", ".join(map(repr, unknown[:MOST_NAMED]))
        raise Problem(404, f"there is no feed {named}{more}; nothing was refreshed",
                      kind="unknown-feed")  # fmt: skip
    return chosen


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), AT_ONCE):
        yield ids[start : start + AT_ONCE]


# ---------------------------------------------------------------------- looking


@router.get(
    PATH,
    summary="The last rounds",
    operation_id="listRounds",
    response_class=Reply,
    responses={200: {"model": RoundList}, **documented()},
)
def list_rounds(
    feeds: TheFeeds,
    principal: Reader,
    limit: Annotated[int, Query(ge=1, le=100, description="At most so many.")] = 20,
) -> Response:
    found = feeds.rounds.last(owner(principal), limit)
    return Reply({"items": [_summary(each) for each in found]})


@router.get(
    PATH + "/{id}",
    summary="How far a round is",
    operation_id="getRound",
    response_class=Reply,
    responses={200: {"model": RoundModel}, **documented(404)},
)
async def get_round(
    id: RoundId,
    site: TheSite,
    feeds: TheFeeds,
    principal: Reader,
    wait_s: Annotated[
        float, Query(ge=0, le=MAX_WAIT_S, description="Answer when it has ended, or after this.")
    ] = 0.0,
) -> Response:
    tenant = owner(principal)
    row = await asyncio.to_thread(_row, feeds, tenant, id)
    if wait_s and row.finished_at is None:
        async with site.patience():
            await feeds.rounds.until_end(site.engine, id, wait_s)
    return Reply(await asyncio.to_thread(round_view, site, feeds, tenant, id))


def _row(feeds: TheFeeds, tenant: str, id: str) -> RoundRow:
    row = feeds.rounds.row(tenant, id)
    if row is None:
        raise Problem(404, f"there is no round {id!r}; it never was, or it was long ago",
                      kind="unknown-round")  # fmt: skip
    return row


def round_view(site: Site, feeds: TheFeeds, tenant: str, id: str) -> dict[str, Any]:
    row = _row(feeds, tenant, id)
    waiting: dict[str, int] = {}
    waits: dict[int, Wait] = {}
    for _ in range(LOOKS):
        if row.finished_at is not None:
            waiting, waits = {}, {}
            break
        waiting, waits = site.wait(site.engine.ask(partial(_look, feeds, id)))
        before, row = row, _row(feeds, tenant, id)
        if row == before:  # else something ended between the two, and they do not fit together
            break
    items = [
        *feeds.rounds.items(id, FAILED, MOST_ENDED),
        *feeds.rounds.items(id, SKIPPED, MOST_ENDED),
        *(ItemRow(id, feed, source, WAITING, 0, None) for feed, source in waiting.items()),
    ]
    report = msgspec.json.decode(row.report, type=Report)
    starts = [wait.starts_at for wait in waits.values() if wait.starts_at is not None]
    return {
        **_summary(row),
        "items": [_item(feeds, tenant, each, waits) for each in items],
        "invalid_feeds": report.invalid_feeds,
        "duplicate_feeds": report.duplicate_feeds,
        "eta": moment(max(starts, default=None)),
    }


def _summary(row: RoundRow) -> dict[str, Any]:
    report = msgspec.json.decode(row.report, type=Report)
    is_import = row.kind == IMPORT
    over = row.finished_at is not None
    return {
        "id": row.id,
        "kind": row.kind,
        "status": "finished" if over else "running",
        "total": row.total,
        "done": row.done,
        "failed": row.failed,
        "skipped": row.skipped,
        "waiting": row.total - row.handled,
        "new_count": row.new_count,
        "percent": round(100.0 * row.handled / row.total, 1) if row.total else 100.0,
        "text": in_short(row, report),
        "added": report.added if is_import else None,
        "duplicates": report.duplicates if is_import else None,
        "invalid": report.invalid if is_import else None,
        "created_at": moment(row.created_at),
        "finished_at": moment(row.finished_at),
    }


def in_short(row: RoundRow, report: Report) -> str:
    """`38 of 40, 12 new`, or `1,000 feeds, 380 fetched, 12 failed`."""
    if row.kind == IMPORT:
        feeds = "feed" if row.total == 1 else "feeds"
        words = [f"{row.total:,} {feeds}", f"{row.done:,} fetched"]
    else:
        words = [f"{row.handled:,} of {row.total:,}", f"{row.new_count:,} new"]
    words += [f"{row.failed:,} failed"] if row.failed else []
    if row.kind == IMPORT:
        words += [f"{report.duplicates:,} there already"] if report.duplicates else []
        words += [f"{report.invalid:,} not added"] if report.invalid else []
    return ", ".join(words)


class Wait(msgspec.Struct, frozen=True):
    """Why the refresh of a source has not begun, and when it should."""

    why: str
    starts_at: float | None


def _look(feeds: TheFeeds, id: str, now: float) -> tuple[dict[str, int], dict[int, Wait]]:
    """Some feeds that are waited for, with what only the engine knows of them; in the brain's turn.
    The one that stands last at the busiest site is looked at, too: it says when the round should
    end.
    """
    round = feeds.rounds.open.get(id)
    if round is None:
        return {}, {}
    feeds.rounds.mend(round, now)
    sources, jobs = feeds.register.sources, feeds.register.schedule.jobs
    shown = {feed: round.waiting[feed] for feed in nsmallest(MOST_WAITING, round.waiting)}
    by_host: dict[str, list[int]] = {}
    for source in round.waiting.values():
        if source in sources:
            by_host.setdefault(sources[source].host, []).append(source)
    busiest = max(by_host.values(), key=len, default=[])
    last = sorted(busiest, key=lambda source: jobs.get(source, 0))[-1:]
    waits: dict[int, Wait] = {}
    for source in {*shown.values(), *last}:
        number = jobs.get(source, 0)
        look = feeds.rounds.brain.controls.look_at_jobs([number], now).get(number)
        waits[source] = _wait(sources.get(source), look)
    return shown, waits


def _wait(row: Source | None, look: tuple[Explanation | None, float | None] | None) -> Wait:
    if look is None:
        return Wait("it is about to be put in line", None)
    why = look[0]
    if why is None:
        return Wait("it is being fetched", None)
    failed = row is not None and row.error and why.reason == "not_due"
    said = f"it is tried again; the last time: {row.error}" if row and failed else in_words(why)
    return Wait(said, why.starts_at)


def _item(feeds: TheFeeds, tenant: str, item: ItemRow, waits: dict[int, Wait]) -> dict[str, Any]:
    subscription = feeds.register.subscriptions.get((tenant, item.feed))
    title = None
    if subscription is not None:
        title = title_of(subscription, feeds.register.sources.get(subscription.source))
    wait = waits.get(item.source) if item.state == WAITING else None
    return {
        "feed_id": item.feed,
        "title": title,
        "state": item.state,
        "error": item.error,
        "wait_reason": None if wait is None else wait.why,
        "eta": None if wait is None else moment(wait.starts_at),
    }
