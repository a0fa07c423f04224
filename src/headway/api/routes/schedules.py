"""Schedules: jobs that come again and again."""

from __future__ import annotations

from threading import Lock
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Path, Response
from pydantic import Field

from headway.api import models
from headway.api.auth import Operator, Principal, Reader
from headway.api.bodies import Body, JobBody, Name, Text, new_job
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.views import moment
from headway.cron import Cron
from headway.engine.schedules import ScheduleOptions
from headway.store.records import Schedule

router = APIRouter(tags=["Schedules"])

_naming = Lock()  # so that nobody takes a name between the look and the deed
ScheduleName = Annotated[Name, Path(description="Its name.")]


class ScheduleBody(Body):
    """Either `every` ("30m") or `cron` ("0 3 * * *", with a time zone)."""

    name: Name = Field(description="The same name is the same schedule.")
    job: JobBody = Field(description="What is enqueued each time.")
    every: Text | None = Field(None, description="Such as 30s, 5m, 2h, 1d.")
    cron: Text | None = Field(None, description="Five fields: minute, hour, day, month, weekday.")
    zone: Text = Field("UTC", description="Of cron, such as Europe/Berlin.")


def view(row: Schedule) -> dict[str, Any]:
    options = msgspec.json.decode(row.options, type=ScheduleOptions)
    return {
        "name": row.name,
        "type": row.type,
        "args": msgspec.json.decode(row.args),
        "rule": msgspec.json.decode(row.rule),
        "lane": options.lane,
        "tenant": options.tenant,
        "key": options.key,
        "upstreams": [] if options.upstreams is None else msgspec.json.decode(options.upstreams),
        "priority": options.priority,
        "paused": bool(row.paused),
        "strikes": row.strikes,
        "last_due_at": moment(row.last_due_at),
        "next_due_at": moment(row.next_due_at),
        "missed": row.missed,
        "created_at": moment(row.created_at),
        "source": row.source,
    }


def visible(site: Site, principal: Principal) -> dict[str, dict[str, Any]]:
    found = (view(row) for row in site.store.schedules())
    return {each["name"]: each for each in found if principal.tenant in (None, each["tenant"])}


def own(site: Site, name: str, principal: Principal) -> dict[str, Any]:
    found = visible(site, principal).get(name)
    if found is None:
        raise Problem(404, f"there is no schedule {name!r}", kind="unknown-schedule")
    return found


@router.get(
    "/api/schedules",
    summary="List schedules",
    operation_id="listSchedules",
    response_class=Reply,
    responses={200: {"model": models.Schedules}, **documented()},
)
def list_all(site: TheSite, principal: Reader) -> Response:
    return Reply({"items": list(visible(site, principal).values())})


@router.post(
    "/api/schedules",
    status_code=201,
    summary="Make or change a schedule",
    operation_id="putSchedule",
    response_class=Reply,
    responses={201: {"model": models.ScheduleModel}, **documented(409)},
)
def put(body: ScheduleBody, site: TheSite, principal: Operator) -> Response:
    """One of the same name takes the new settings; its phase stays if the rule does."""
    if (body.every is None) == (body.cron is None):
        raise Problem(422, "send either every or cron", kind="wrong-input")
    tenant = site.tenant_for(body.job.tenant, principal)
    with _naming:
        there = {row.name for row in site.store.schedules()}
        if body.name in there and body.name not in visible(site, principal):
            raise Problem(409, f"the name {body.name!r} is taken; choose another", kind="duplicate")
        _make(body, tenant, site, principal)
    location = {"Location": f"/api/schedules/{quote(body.name, safe='')}"}
    return Reply(own(site, body.name, principal), 201, headers=location)


def _make(body: ScheduleBody, tenant: str, site: Site, principal: Principal) -> None:
    try:
        rule = body.every if body.cron is None else Cron(body.cron, zone=body.zone)
        call = new_job(body.job, tenant, site.now(), site.config.max_payload)
        if call.not_before or call.batch is not None:
            raise Problem(422, "a recurring job has no time and no batch of its own",
                          kind="bad-job")  # fmt: skip
        site.steering(principal).schedule(body.name, call, rule)
    except ValueError as error:
        raise Problem(422, str(error), kind="bad-schedule") from error


@router.get(
    "/api/schedules/{name}",
    summary="Look at a schedule",
    operation_id="getSchedule",
    response_class=Reply,
    responses={200: {"model": models.ScheduleModel}, **documented(404)},
)
def get_one(name: ScheduleName, site: TheSite, principal: Reader) -> Response:
    return Reply(own(site, name, principal))


@router.delete(
    "/api/schedules/{name}",
    status_code=204,
    summary="Remove a schedule and its next occurrence",
    operation_id="deleteSchedule",
    response_class=Response,
    responses=documented(404),
)
def delete(name: ScheduleName, site: TheSite, principal: Operator) -> Response:
    own(site, name, principal)
    try:
        site.steering(principal).unschedule(name)
    except ValueError as error:
        raise Problem(404, str(error), kind="unknown-schedule") from error
    return Response(status_code=204)


def _verb(verb: str, summary: str) -> None:
    def act(name: ScheduleName, site: TheSite, principal: Operator) -> Response:
        own(site, name, principal)
        getattr(site.steering(principal), f"{verb}_schedule")(name)
        return Reply(own(site, name, principal))

    router.post(
        f"/api/schedules/{{name}}/{verb}",
        summary=summary,
        operation_id=f"{verb}Schedule",
        response_class=Reply,
        responses={200: {"model": models.ScheduleModel}, **documented(404)},
    )(act)


_verb("pause", "Let no further occurrence come")
_verb("resume", "Let them come again")
