"""Errors in OpenAI's shape, for everything below `/v1/`: its clients read nothing else."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from fastapi import Response
from pydantic import BaseModel, Field

from headway.api.problems import ALWAYS, TEXTS, Problem, speak_at
from headway.net.redaction import redact

BEGINNING = "/v1/"
QUOTA = "insufficient-quota"
CLOSED = "rate-limit-exceeded"
NO_MODEL = "model-not-found"

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
# What OpenAI calls some of our kinds of problems; the others keep their names.
_CODES = {"about:blank": None, "no-token": "invalid_api_key", "no-json": "invalid_json"}
_TEXTS = TEXTS | {
    404: "No channel serves this model, or there is no such thing.",
    429: "All channels that serve this model are closed, or the budget is spent.",
    500: "The provider, or this server, has made a mistake.",
    502: "The provider could not be asked; the message says what to check.",
    504: "The provider has not answered in time.",
}


class OpenAIErrorModel(BaseModel):
    """What went wrong."""

    message: str = Field(description="What is wrong here, and what to do about it.")
    type: str = Field(description="The kind of error, such as invalid_request_error.")
    param: str | None = Field(description="The field that is wrong, if it is one.")
    code: str | None = Field(description="A name for this error, such as model_not_found.")


class OpenAIErrorAnswer(BaseModel):
    """How every error below /v1/ is answered."""

    error: OpenAIErrorModel


def error_body(
    message: str, type: str, code: str | None = None, param: str | None = None
) -> dict[str, Any]:
    """Also for the lines of a batch."""
    return {"error": {"message": message, "type": type, "param": param, "code": code}}


def type_of(status: int, kind: str = "") -> str:
    if kind == QUOTA:
        return "insufficient_quota"
    return _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")


def shaped(problem: Problem) -> Response:
    """A problem in OpenAI's words."""
    kind = problem.kind
    code = _CODES[kind] if kind in _CODES else kind.replace("-", "_")
    said = error_body(
        redact(problem.detail), type_of(problem.status, kind), code, problem.more.get("param")
    )
    try:
        body = msgspec.json.encode(said)
    except UnicodeEncodeError:  # it repeats half a character
        body = json.dumps(said).encode()
    return Response(
        body, status_code=problem.status, media_type="application/json",
        headers=None if problem.headers is None else dict(problem.headers),
    )  # fmt: skip


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route below /v1/: these errors, and those that any route may answer."""
    return {
        status: {"description": _TEXTS[status], "model": OpenAIErrorAnswer}
        for status in sorted({*statuses, *ALWAYS})
    }


speak_at(BEGINNING, shaped)
