"""Errors as problem details (RFC 9457): what went wrong, and what to do about it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from headway import errors
from headway.api.logs import shown_path
from headway.core import IllegalTransition
from headway.core.change import UnknownTicket
from headway.net.redaction import redact

logger = logging.getLogger("headway.api")

MEDIA_TYPE = "application/problem+json"
MAX_ERRORS = 20  # of a body that is wrong in many places


class Problem(Exception):
    """An answer that is no success. `more` is shown beside the standard members."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "about:blank",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.kind = kind
        self.headers = headers
        self.more = more


class FieldError(BaseModel):
    where: str
    what: str


class ProblemDetails(BaseModel):
    """How every error is answered."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="A name for this kind of problem, or about:blank.")
    title: str = Field(description="The phrase of the status.")
    status: int
    detail: str = Field(description="What is wrong here, and what to do about it.")
    errors: list[FieldError] | None = Field(None, description="Each field that is wrong.")
    state: str | None = Field(None, description="With 409: the state that the job is in.")


def details(problem: Problem) -> dict[str, Any]:
    return {
        "type": problem.kind,
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": redact(problem.detail),
        **problem.more,
    }


Shape = Callable[[Problem], Response]
_shapes: dict[str, Shape] = {}  # by the beginning of a path


def speak_at(beginning: str, shape: Shape) -> None:
    """Below this path an application keeps to somebody else's contract: what goes wrong there is
    said in that one's words.
    """
    _shapes[beginning] = shape


def shape_at(path: str) -> Shape | None:
    return next((_shapes[each] for each in _shapes if path.startswith(each)), None)


def answer(problem: Problem, path: str = "") -> Response:
    """For whoever asked for this path."""
    shape = shape_at(path)
    return plain_answer(problem) if shape is None else shape(problem)


def plain_answer(problem: Problem) -> Response:
    said = details(problem)
    try:
        body = msgspec.json.encode(said)
    except UnicodeEncodeError:  # it repeats half a character
        body = json.dumps(said).encode()
    return Response(
        body,
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers=None if problem.headers is None else dict(problem.headers),
    )


RETRY_SOON = {"Retry-After": "1"}


def problem_of(error: Exception) -> Problem | None:
    """Our own errors as problems. None: it is none of ours."""
    match error:
        case Problem():
            return error
        case errors.UnknownJob():
            return Problem(404, str(error), kind="unknown-job")
        case errors.ResultExpired():
            return Problem(404, str(error), kind="expired")
        case UnknownTicket():
            return Problem(409, str(error), kind="ended")
        case IllegalTransition():
            return Problem(409, str(error), kind="wrong-state", state=error.state.value)
        case errors.DuplicateJob():
            return Problem(409, str(error), kind="duplicate", job=error.job_id)
        case errors.PayloadTooLarge():
            return Problem(413, str(error), kind="too-large")
        case errors.BadJob():
            return Problem(422, str(error), kind="bad-job")
        case errors.OutcomeUnknown():
            return Problem(503, str(error), kind="outcome-unknown", headers=RETRY_SOON)
        case errors.StoreUnavailable() | errors.EngineStopped():
            return Problem(503, str(error), kind="unavailable", headers=RETRY_SOON)
        case errors.StoreError():
            return Problem(503, str(error), kind="store")
    return None


# ---------------------------------------------------------------------- for FastAPI


def install(app: FastAPI) -> None:
    app.add_exception_handler(Problem, _answer_ours)
    app.add_exception_handler(errors.HeadwayError, _answer_ours)
    app.add_exception_handler(IllegalTransition, _answer_ours)
    app.add_exception_handler(UnknownTicket, _answer_ours)
    app.add_exception_handler(RequestValidationError, _answer_wrong_input)
    app.add_exception_handler(HTTPException, _answer_http)
    app.add_exception_handler(Exception, _answer_bug)


async def _answer_ours(request: Request, error: Exception) -> Response:
    problem = problem_of(error)
    assert problem is not None  # only ours are handed to this handler
    return answer(problem, request.scope["path"])


async def _answer_wrong_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(wrong_input(error.errors()), request.scope["path"])


def wrong_input(found: Any) -> Problem:
    """What validation found. The values themselves are not repeated: they may be secret."""
    listed = [
        {"where": ".".join(str(part) for part in each["loc"]), "what": str(each["msg"])}
        for each in found[:MAX_ERRORS]
    ]
    if any(each["type"] == "json_invalid" for each in found):
        return Problem(400, "the body is no JSON; send valid JSON", kind="no-json", errors=listed)
    first = listed[0] if listed else {"where": "the request", "what": "is not what is expected"}
    detail = f"{first['where']}: {first['what']}"
    return Problem(422, detail, kind="wrong-input", errors=listed)


async def _answer_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = str(error.detail)
    headers = error.headers
    if error.status_code == 404 and detail == "Not Found":
        detail = f"nothing is at {request.url.path}; /docs lists what there is"
    elif error.status_code == 405:
        detail = f"{request.method} is not possible at {request.url.path}; /docs lists what is"
        headers = {"Allow": _methods_at(request)}
    elif error.status_code == 400 and "parsing the body" in detail:
        detail = "the body is no JSON in UTF-8; send valid JSON"
    problem = Problem(error.status_code, detail, headers=headers)
    return answer(problem, request.scope["path"])


def _methods_at(request: Request) -> str:
    """All that is possible there. (The framework names those of the first route that it meets.)"""
    route = request.scope["route"]
    listed: dict[str, Any] = request.app.openapi()["paths"].get(route.path, {})
    return ", ".join(sorted({*route.methods, *(method.upper() for method in listed)}))


async def _answer_bug(request: Request, error: Exception) -> Response:
    path = request.scope["path"]
    return answer(bug(request.method, path, error), path)


def bug(method: str, path: str, error: Exception) -> Problem:
    """Nobody has foreseen this."""
    logger.error("%s %s failed", method, shown_path(path), exc_info=error)
    return Problem(500, "this is a fault of Headway; the server's log says more", kind="bug")


# ---------------------------------------------------------------------- for the document

TEXTS = {
    400: "The request cannot be read.",
    401: "No valid token came with the request.",
    403: "The token does not allow this, or the request came from another site.",
    404: "There is no such thing, or it belongs to somebody else.",
    409: "This is not possible in the present state.",
    413: "The body is too large.",
    416: "There is no such part of it.",
    421: "The request was sent to a host name that is not ours.",
    422: "The input is not what is expected.",
    429: "Too much at once; try again later.",
    431: "The headers are too large.",
    502: "Somebody else was asked and could not answer; the detail says what to check.",
    503: "The store or the engine cannot be used now; try again.",
}
ALWAYS = (400, 401, 403, 413, 421, 422, 429, 431, 503)


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route: these problems, and those that any route may answer."""
    return {
        status: {
            "description": TEXTS[status],
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
        }
        for status in sorted({*statuses, *ALWAYS})
    }
