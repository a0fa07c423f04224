"""The pages for people: files that call the same API as everybody."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from starlette.responses import RedirectResponse

from headway.api import quick
from headway.api.auth import COOKIE
from headway.api.problems import Problem
from headway.api.site import TheSite
from headway.api.static import static_file

router = APIRouter(include_in_schema=False)

MAX_FORM = 16_384
OLD_PAGE = "queue_admin.html"


def page(request: Request, name: str) -> Response:
    return static_file(name, request.headers)


def _needs_login(request: Request) -> bool:
    return request.scope["principal"] is None


@router.get("/")
async def index(request: Request) -> Response:
    return RedirectResponse("/login", 303) if _needs_login(request) else page(request, "index.html")


@router.get("/docs")
async def docs(request: Request) -> Response:
    return page(request, "docs.html")


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    return page(request, "favicon.svg")


@quick.below("static")
async def static(request: Request) -> Response:
    """A file of a page. Where the page of the request queue was, the way to the new one."""
    name = request.scope["path"].removeprefix("/static/")
    return RedirectResponse("/", 307) if name == OLD_PAGE else page(request, name)


@router.get("/login")
async def login_page(request: Request) -> Response:
    return page(request, "login.html")


@router.post("/login")
async def login(request: Request, site: TheSite) -> Response:
    """A token in, a cookie out. The browser never shows the token to a script."""
    body = await request.body()
    if len(body) > MAX_FORM:
        raise Problem(413, "the form is too large")
    fields = parse_qs(body.decode("utf-8", "replace"))
    token = (fields.get("token") or [""])[0].strip()
    client = request.client.host if request.client else ""
    try:
        cookie, lasts_s = await site.authenticator.session(token, client)
    except Problem as problem:
        if problem.status != 401:
            raise
        return RedirectResponse("/login?failed=1", 303)
    answer = RedirectResponse("/", 303)
    answer.set_cookie(
        COOKIE, cookie, max_age=lasts_s, path="/", httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return answer


@router.post("/logout")
async def logout() -> Response:
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
