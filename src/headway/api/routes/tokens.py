"""Access tokens: made here, shown once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Response
from pydantic import Field, StringConstraints

from headway.api import models
from headway.api.auth import Admin
from headway.api.bodies import Body, Seconds, Tenant
from headway.api.problems import Problem, documented
from headway.api.site import Reply, TheSite
from headway.api.tokens import new_token, scopes_of
from headway.api.views import moment
from headway.store.records import Token

router = APIRouter(tags=["Tokens"])

TokenName = Annotated[
    str, StringConstraints(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_.@ -]+$")
]


TokenId = Annotated[str, Path(max_length=40, description="Its id, as listed; not the token.")]


class TokenBody(Body):
    """A new token."""

    name: TokenName = Field(description="Shown in the audit trail.")
    scopes: list[Literal["read", "submit", "operate", "admin"]] = Field(
        min_length=1, max_length=4,
        description="read: look. submit: enqueue. operate: steer jobs and gates, and work. "
        "admin: all of it, and tokens.",
    )  # fmt: skip
    tenant: Tenant | None = Field(None, description="It sees and does only what is this tenant's.")
    expires_in_s: Seconds | None = Field(None, ge=1, description="Null: until it is revoked.")


def view(row: Token) -> dict[str, Any]:
    return {
        "id": row.id,
        "name": row.name,
        "scopes": sorted(scopes_of(row)),
        "tenant": row.tenant,
        "created_at": moment(row.created_at),
        "expires_at": moment(row.expires_at),
        "revoked_at": moment(row.revoked_at),
        "last_used_at": moment(row.last_used_at),
    }


@router.get(
    "/api/tokens",
    summary="List tokens",
    operation_id="listTokens",
    response_class=Reply,
    responses={200: {"model": models.Tokens}, **documented()},
)
def list_tokens(site: TheSite, principal: Admin) -> Response:  # noqa: ARG001 - it is checked
    return Reply({"items": [view(row) for row in site.store.tokens()]})


@router.post(
    "/api/tokens",
    status_code=201,
    summary="Make a token",
    operation_id="createToken",
    response_class=Reply,
    responses={201: {"model": models.NewTokenModel}, **documented()},
)
def create(body: TokenBody, site: TheSite, principal: Admin) -> Response:
    """The answer shows it this once; only a hash is kept."""
    now = site.now()
    ends = None if body.expires_in_s is None else now + body.expires_in_s
    row, text = new_token(body.name, body.scopes, now, tenant=body.tenant, expires_at=ends)
    site.store.add_token(row)
    site.record(principal, "token_made", f"token:{row.name}", ", ".join(body.scopes))
    return Reply({**view(row), "token": text}, 201)


@router.delete(
    "/api/tokens/{id}",
    status_code=204,
    summary="Revoke a token",
    operation_id="revokeToken",
    response_class=Response,
    responses=documented(404),
)
def revoke(id: TokenId, site: TheSite, principal: Admin) -> Response:
    row = site.store.token(id)
    if row is None or not site.store.revoke_token(id, site.now()):
        raise Problem(404, "there is no such token, or it is revoked already", kind="unknown-token")
    site.authenticator.forget(id)
    site.record(principal, "token_revoked", f"token:{row.name}")
    return Response(status_code=204)
