"""Alerts over HTTP: who is told, what goes on, and a test. Of a receiver only its host is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, Field

from headway.api.auth import Keeper, Overseer
from headway.api.models import Moment
from headway.api.problems import Problem, documented
from headway.api.site import Reply, TheSite
from headway.api.views import moment
from headway.apps.alerts.alarm import open_rows, send_test

if TYPE_CHECKING:
    from headway.apps.alerts.application import Alerts

router = APIRouter(tags=["System"])


class ReceiverModel(BaseModel):
    host: str
    waiting: int = Field(description="Messages that it has not heard yet.")
    told: int = Field(description="Messages that it took, since the server started.")
    dropped: int
    last_told_at: Moment
    failing_since: Moment
    error: str | None


class OpenAlert(BaseModel):
    kind: str
    level: str
    subject: dict[str, str]
    text: str
    began_at: Moment
    told_at: Moment = Field(description="Null: nobody has heard of it for certain.")


class AlertList(BaseModel):
    receivers: list[ReceiverModel]
    signed: bool
    kinds: list[str] = Field(description="Patterns; empty: all.")
    min_level: str
    per_minute: int
    open: list[OpenAlert]


class Tested(BaseModel):
    host: str
    ok: bool
    error: str | None
    took_ms: float


class TestedList(BaseModel):
    items: list[Tested]


def the_alerts(site: TheSite) -> Alerts:
    found: Alerts = site.application("alerts")
    return found


TheAlerts = Annotated[Any, Depends(the_alerts)]


@router.get(
    "/api/alerts",
    summary="Who is told what needs attention",
    operation_id="listAlerts",
    response_class=Reply,
    responses={200: {"model": AlertList}, **documented()},
)
def list_alerts(alerts: TheAlerts, site: TheSite, principal: Overseer) -> Response:  # noqa: ARG001
    settings, alarm = alerts.settings, alerts.alarm
    receivers = [] if alarm is None else alarm.receivers
    return Reply({
        "receivers": [
            {
                "host": each.host, "waiting": each.waiting, "told": each.told,
                "dropped": each.dropped, "last_told_at": moment(each.last_told_at),
                "failing_since": moment(each.failing_since),
                "error": each.gone or each.last_error or None,
            }
            for each in receivers
        ],
        "signed": bool(settings.secret), "kinds": list(settings.kinds),
        "min_level": settings.min_level, "per_minute": settings.per_minute,
        "open": [_open(each) for each in open_rows(site.store)],
    })  # fmt: skip


def _open(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": row["kind"], "level": row["level"], "subject": row["subject"],
        "text": row["text"], "began_at": moment(row["began_at"]),
        "told_at": moment(row["told_at"]),
    }  # fmt: skip


@router.post(
    "/api/alerts/test",
    summary="Send a test to every receiver",
    operation_id="testAlerts",
    response_class=Reply,
    responses={200: {"model": TestedList}, **documented(409)},
)
async def test_alerts(alerts: TheAlerts, site: TheSite, principal: Keeper) -> Response:
    """It is sent at once, signed like all others, and not tried again. 409: nobody is told."""
    if not alerts.settings.url:
        raise Problem(409, "nobody is told: set url in [alerts] of the server's settings file, or "
                      "HEADWAY_ALERTS_URL", kind="no-receiver")  # fmt: skip
    items = await send_test(site, alerts.settings, alerts.instance)
    site.record(principal, "alerts_tested", "alerts", ", ".join(each["host"] for each in items))
    return Reply({"items": items})
