"""What was spent, and what a tenant may spend, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel, Field, StringConstraints
from starlette.responses import StreamingResponse

from headway.api.auth import Keeper, Reader
from headway.api.bodies import NO_NUL, Body, Name, Tenant, Text
from headway.api.models import Moment
from headway.api.problems import Problem, documented
from headway.api.routes.jobs import Page, Size
from headway.api.site import Reply, Site, TheSite, paged
from headway.apps.channels.money import costs
from headway.apps.channels.money.budgets import Budget, Period
from headway.apps.channels.money.costs import GROUPS, Wanted, nano_of, time_of
from headway.apps.channels.routes.channels import in_own_name
from headway.apps.channels.routes.reach import TheChannels

router = APIRouter(tags=["Costs"])

T = TypeVar("T")
NOBODY = "-"  # in a path: who has no tenant
PeriodName = Literal["day", "month", "total"]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
CSV: dict[str, Any] = {
    "description": "A row for each call, the oldest first.",
    "content": {"text/csv": {"schema": {"type": "string"}}},
}


# ---------------------------------------------------------------------- what was spent


class SumModel(BaseModel):
    calls: int
    estimated: int = Field(description="Calls whose tokens nobody has counted.")
    input_tokens: int
    output_tokens: int
    cost: str = Field(description="An exact amount as decimal text.")
    currency: str


class GroupModel(SumModel):
    """What one group has spent in one currency. Null: it is not grouped by this."""

    tenant: str | None
    channel: str | None
    model: str | None
    kind: str | None = Field(description="online, queued or batch.")
    day: str | None = Field(description="In UTC.")


class CostsModel(BaseModel):
    items: list[GroupModel]
    totals: list[SumModel] = Field(description="One for each currency.")
    more: bool = Field(description="There are more groups than are shown.")


class BillModel(BaseModel):
    """One answer that was seen, at the price of that moment."""

    id: str
    at: Moment
    tenant: str
    channel: str
    model: str
    kind: str
    endpoint: str
    job: int | None
    batch: str | None
    input_tokens: int
    output_tokens: int
    estimated: bool
    input_per_1k: float
    output_per_1k: float
    discount: float
    cost: str
    currency: str


class BillPage(BaseModel):
    items: list[BillModel]
    count: int
    total: int
    page: int
    size: int


def wanted(
    site: TheSite,
    principal: Reader,
    begin: Annotated[
        str | None,
        Query(alias="from", max_length=50, description="From this time or date on: ISO 8601."),
    ] = None,
    end: Annotated[
        str | None,
        Query(alias="to", max_length=50, description="Before this time; a date is included."),
    ] = None,
    tenant: Annotated[Text | None, Query(description="Of this tenant.")] = None,
    channel: Annotated[Name | None, Query(description="At this channel.")] = None,
    model: Annotated[Name | None, Query(description="Of this model.")] = None,
) -> Wanted:
    """A tenant sees its own only."""
    whose = tenant if principal.tenant is None else site.tenant_for(tenant, principal)
    try:
        return Wanted(
            None if not begin else time_of(begin), None if not end else time_of(end, end=True),
            whose, channel, model,
        )  # fmt: skip
    except (ValueError, OverflowError):
        raise Problem(422, "from and to are times such as 2026-11-30 or 2026-11-30T12:00:00Z",
                      kind="bad-search") from None  # fmt: skip


TheWanted = Annotated[Wanted, Depends(wanted)]


@router.get(
    "/api/costs",
    summary="What was spent",
    operation_id="getCosts",
    response_class=Reply,
    responses={200: {"model": CostsModel}, **documented()},
)
def get_costs(
    site: TheSite,
    wanted: TheWanted,
    group: Annotated[
        str,
        Query(max_length=100, description=f"One or more of {', '.join(GROUPS)}, with commas."),
    ] = "tenant",
) -> Response:
    """Summed up from the ledger, which has a row for each answer that was seen. Each currency is
    summed up by itself.
    """
    groups = list(dict.fromkeys(word.strip() for word in group.split(",") if word.strip()))
    unknown = [each for each in groups if each not in GROUPS]
    if unknown or not groups:
        raise Problem(422, f"group is one or more of {', '.join(GROUPS)}, with commas between",
                      kind="bad-search")  # fmt: skip
    rows, more = costs.summed(site.store, wanted, groups)
    return Reply({"items": rows, "totals": costs.totals(site.store, wanted), "more": more})


@router.get(
    "/api/costs/bills",
    summary="The rows of the ledger",
    operation_id="listBills",
    response_class=Reply,
    responses={200: {"model": BillPage}, **documented()},
)
def list_bills(site: TheSite, wanted: TheWanted, page: Page = 1, size: Size = 50) -> Response:
    """The newest first."""
    found = costs.bills(site.store, wanted, size, (page - 1) * size)
    items = [costs.bill_view(bill) for bill in found]
    return paged(items, costs.count_bills(site.store, wanted), page, size)


@router.get(
    "/api/costs.csv",
    summary="The rows of the ledger as CSV",
    operation_id="exportBills",
    response_class=Response,
    responses={200: CSV, **documented()},
)
def export_bills(site: TheSite, wanted: TheWanted) -> Response:
    """However many there are. A cell that a spreadsheet would run as a formula begins with an
    apostrophe.
    """
    headers = {"Content-Disposition": 'attachment; filename="costs.csv"'}
    return StreamingResponse(
        costs.as_csv(site.store, wanted), media_type="text/csv; charset=utf-8", headers=headers
    )


# ---------------------------------------------------------------------- what may be spent


class BudgetModel(BaseModel):
    tenant: str
    period: PeriodName
    currency: str
    amount: str = Field(description="As decimal text.")
    spent: str = Field(description="Since the running period began.")
    left: str
    used_up: bool = Field(description="The tenant is held until the period is over.")
    begins_at: Moment = Field(description="When the running period began; null: with the ledger.")
    begins_anew_at: Moment = Field(description="When nothing is spent again; null: never.")
    updated_at: Moment


class BudgetList(BaseModel):
    items: list[BudgetModel]


class BudgetBody(Body):
    """What a tenant may spend in a period. A tenant may have several, and keeps to all of them."""

    period: PeriodName = Field(description="In UTC; total never begins anew.")
    amount: (
        Annotated[float, Field(ge=0, lt=9e9, allow_inf_nan=False)]
        | Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})?$")]
    ) = Field(description="A number, or decimal text such as 50.00.")
    currency: Currency = Field(default="USD", description="Three capitals.")


TenantName = Annotated[
    Tenant,
    Path(min_length=1, description="A tenant; - for calls that have none.", pattern=NO_NUL),
]


def tenant_of(name: str) -> str:
    return "" if name == NOBODY else name


def _ask(site: Site, do: Callable[[float], T]) -> T:
    return site.wait(site.engine.ask(do))


@router.get(
    "/api/budgets",
    summary="List budgets",
    operation_id="listBudgets",
    response_class=Reply,
    responses={200: {"model": BudgetList}, **documented()},
)
def list_budgets(site: TheSite, channels: TheChannels, principal: Reader) -> Response:
    """Of all tenants, with what is spent; a tenant sees its own."""
    budgets, own = channels.budgets, principal.tenant

    def look(now: float) -> list[dict[str, Any]]:
        names = budgets.tenants() if own is None else [own]
        return [view for name in names for view in budgets.view(name, now)]

    return Reply({"items": _ask(site, look)})


@router.get(
    "/api/budgets/{tenant}",
    summary="The budgets of a tenant",
    operation_id="getBudgets",
    response_class=Reply,
    responses={200: {"model": BudgetList}, **documented()},
)
def get_budgets(
    tenant: TenantName, site: TheSite, channels: TheChannels, principal: Reader
) -> Response:
    """What it may spend, what it has spent, and when that begins anew."""
    return Reply(_shown(site, channels, site.tenant_for(tenant_of(tenant), principal)))


@router.put(
    "/api/budgets/{tenant}",
    summary="Set a budget",
    operation_id="setBudget",
    response_class=Reply,
    responses={200: {"model": BudgetList}, **documented()},
)
def set_budget(
    tenant: TenantName, body: BudgetBody, site: TheSite, channels: TheChannels, principal: Keeper
) -> Response:
    """It takes the place of the tenant's budget of the same period and currency, and holds at
    once. A tenant that has used one up is held at every channel; what is under way may end, and is
    the most by which a budget is passed.
    """
    name = tenant_of(tenant)
    try:
        nano = nano_of(body.amount)
    except ValueError as error:
        raise Problem(422, str(error), kind="bad-budget") from error

    def put(now: float) -> None:
        channels.budgets.put(Budget(name, body.period, body.currency, nano, now), now)

    in_own_name(site, principal, put)
    return Reply(_shown(site, channels, name))


@router.delete(
    "/api/budgets/{tenant}",
    status_code=204,
    summary="Remove budgets",
    operation_id="removeBudgets",
    response_class=Response,
    responses=documented(404),
)
def remove_budgets(
    tenant: TenantName,
    site: TheSite,
    channels: TheChannels,
    principal: Keeper,
    period: Annotated[Period | None, Query(description="Only of this period.")] = None,
    currency: Annotated[Currency | None, Query(description="Only in this currency.")] = None,
) -> Response:
    """All of a tenant, or those of a period or a currency. It may spend again at once."""
    name = tenant_of(tenant)
    gone = in_own_name(
        site, principal, lambda now: channels.budgets.remove(name, period, currency, now)
    )
    if not gone:
        raise Problem(404, f"there is no such budget of tenant {tenant!r}", kind="unknown-budget")
    return Response(status_code=204)


def _shown(site: Site, channels: TheChannels, tenant: str) -> dict[str, Any]:
    return {"items": _ask(site, lambda now: channels.budgets.view(tenant, now))}
