"""Who a reader app is. Its password is a token of ours, and so is what it is given for it."""

from __future__ import annotations

from secrets import token_hex

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from headway.api.auth import Reader, allowed
from headway.api.guard import LOGINS
from headway.api.problems import Problem
from headway.api.site import Reply, Site, TheSite
from headway.api.tokens import parse
from headway.apps.feeds.greader.asking import TheAsked, in_form, in_query
from headway.apps.feeds.greader.errors import BAD_LOGIN, documented
from headway.apps.feeds.greader.views import TEXT, UserInfo
from headway.apps.feeds.routes.reach import owner

router = APIRouter(tags=["Reader apps"])

LOGIN = "/api/greader/accounts/ClientLogin"
LOGINS.add(LOGIN)
NO_TOKEN_NEEDED = "not-needed"
ACTION_TOKEN_LENGTH = 57  # as it always was


def _options(method: str) -> dict[str, object]:
    names = ("Email", "Passwd")
    return {
        "path": LOGIN,
        "summary": "Log in with a token as the password",
        "operation_id": f"greaderLogin{method}",
        "response_class": PlainTextResponse,
        "responses": {200: TEXT, **documented()},
        "openapi_extra": in_query(*names) if method == "Get" else in_form(*names),
    }


@router.get(**_options("Get"))  # type: ignore[arg-type]
@router.post(**_options("Post"))  # type: ignore[arg-type]
async def log_in(asked: TheAsked, request: Request, site: TheSite) -> Response:
    """Answers the lines SID, LSID and Auth. Auth goes into the header of all other requests:
    `Authorization: GoogleLogin auth=…`.
    """
    token = await _token_shown(site, asked.one("Passwd"), request)
    return PlainTextResponse(f"SID=unused\nLSID=unused\nAuth={token}\n")


async def _token_shown(site: Site, password: str, request: Request) -> str:
    client = request.client.host if request.client else ""
    could_be_ours = parse(password) is not None or password.count(".") == 2
    if site.config.open and not could_be_ours:
        return NO_TOKEN_NEEDED
    try:
        principal = await site.authenticator.principal(f"Bearer {password}", "", client)
        allowed(principal, "read")
    except Problem as problem:
        raise Problem(
            401, problem.detail, kind=BAD_LOGIN, headers={"WWW-Authenticate": "Bearer"}
        ) from None
    return password


@router.get(
    "/api/greader/reader/api/0/token",
    summary="A token that edits are sent with",
    operation_id="greaderToken",
    response_class=PlainTextResponse,
    responses={200: TEXT, **documented()},
    openapi_extra=in_query(),
)
async def get_action_token(principal: Reader) -> Response:  # noqa: ARG001
    """It protected against other sites' forms. Here the header does, so it is not looked at."""
    return PlainTextResponse(token_hex(ACTION_TOKEN_LENGTH)[:ACTION_TOKEN_LENGTH])


@router.get(
    "/api/greader/reader/api/0/user-info",
    summary="Who is logged in",
    operation_id="greaderUserInfo",
    response_class=Reply,
    responses={200: {"model": UserInfo}, **documented()},
    openapi_extra=in_query(),
)
async def get_user_info(principal: Reader) -> Response:
    name = owner(principal) or principal.name
    return Reply({"userId": name, "userName": name, "userProfileId": name, "userEmail": ""})
