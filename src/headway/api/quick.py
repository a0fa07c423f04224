"""Routes that are called thousands of times a second.

FastAPI finds the route and resolves each of its dependencies anew for every request, which takes
longer than storing a job. These routes are found by their path at once, take the request as it is,
and ask for the same things directly. Their bodies are validated by models and stand in the document
like all others. A path may have one number in it, before its last word: `/api/slots/{id}/poll`.
The files of the pages are among them, since a page that is opened asks for dozens of them at once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.types import Scope

from headway.api.auth import Principal, allowed
from headway.api.problems import wrong_input
from headway.api.site import Site

M = TypeVar("M", bound=BaseModel)

ANY = "any"  # method
TEMPLATE = "#/components/schemas/{model}"
Endpoint = Callable[[Request], Awaitable[Response]]


class Place(NamedTuple):
    """What FastAPI's routes are to those who ask which one it was."""

    path: str


ENDPOINTS: dict[tuple[str, str], Endpoint] = {}  # by method and path
NUMBERED: dict[tuple[str, str], Endpoint] = {}  # likewise, with {id} for the number
BELOW: dict[str, Endpoint] = {}  # GET of anything below a first word, such as `static`
ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "Its number.",
    "schema": {"type": "string"},
}
_models: list[type[BaseModel]] = []


def body_of(model: type[BaseModel], *, required: bool) -> dict[str, Any]:
    """For the document: a route reads this body, by itself."""
    _models.append(model)
    reference = {"$ref": TEMPLATE.format(model=model.__name__)}
    content = {"application/json": {"schema": reference}}
    return {"requestBody": {"required": required, "content": content}}


def post(
    router: APIRouter, path: str, model: type[BaseModel], *, any_method: bool = False,
    needs_body: bool = True, **about: Any,
) -> Callable[[Endpoint], Endpoint]:  # fmt: skip
    """A route that reads this body. `about` is for the document. `any_method`: clients need not
    have read it.
    """
    extra = body_of(model, required=needs_body)
    numbered = "/{id}/" in path
    if numbered:
        extra["parameters"] = [ID]

    def register(endpoint: Endpoint) -> Endpoint:
        method = ANY if any_method else "POST"
        (NUMBERED if numbered else ENDPOINTS)[method, path] = endpoint
        router.post(path, openapi_extra=extra, **about)(endpoint)
        return endpoint

    return register


def below(word: str) -> Callable[[Endpoint], Endpoint]:
    """A route for GET of all that is below this first word."""

    def register(endpoint: Endpoint) -> Endpoint:
        BELOW[word] = endpoint
        return endpoint

    return register


def find(scope: Scope) -> Endpoint | None:
    """The route that this request is for, if it is one of these; it is noted which one it is."""
    method, path = scope["method"], scope["path"]
    endpoint = ENDPOINTS.get((method, path)) or ENDPOINTS.get((ANY, path))
    if endpoint is None and method == "GET":
        word = path[1:].partition("/")[0]
        endpoint = BELOW.get(word)
        if endpoint is not None:
            path = f"/{word}/{{name}}"
    if endpoint is None:
        front, _, verb = path.rpartition("/")
        noun, _, number = front.rpartition("/")
        path = f"{noun}/{{id}}/{verb}"
        endpoint = NUMBERED.get((method, path))
        if endpoint is None:
            return None
        scope["path_params"] = {"id": number}
    scope["route"] = Place(path)
    return endpoint


def schemas() -> dict[str, Any]:
    """The parts of the document that these bodies need."""
    _, document = models_json_schema(
        [(model, "validation") for model in _models], ref_template=TEMPLATE
    )
    found: dict[str, Any] = document.get("$defs", {})
    return found


async def read(request: Request, model: type[M]) -> M:
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        for each in found:
            each["loc"] = ("body", *each["loc"])
        raise wrong_input(found) from None


def whose(request: Request, scope: str, *, all_tenants: bool = False) -> tuple[Site, Principal]:
    """The site, and who is asking if they may."""
    site: Site = request.scope["app"].state.site
    return site, allowed(request.scope["principal"], scope, all_tenants=all_tenants)
