"""What goes wrong below `/api/greader`, in plain text: its clients show it as it is."""

from __future__ import annotations

from typing import Any

from fastapi import Response
from fastapi.responses import PlainTextResponse

from headway.api.problems import ALWAYS, TEXTS, Problem, speak_at
from headway.net.redaction import redact

BEGINNING = "/api/greader/"
BAD_LOGIN = "bad-login"


def shaped(problem: Problem) -> Response:
    text = "Error=BadAuthentication" if problem.kind == BAD_LOGIN else redact(problem.detail)
    body = text.encode("utf-8", "replace") + b"\n"
    headers = None if problem.headers is None else dict(problem.headers)
    return PlainTextResponse(body, status_code=problem.status, headers=headers)


def bad(detail: str) -> Problem:
    return Problem(400, detail, kind="wrong-input")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route below /api/greader: these errors, and those that any may answer."""
    plain = {"text/plain": {"schema": {"type": "string"}}}
    return {
        status: {"description": TEXTS[status], "content": plain}
        for status in sorted({*statuses, *ALWAYS})
    }


speak_at(BEGINNING, shaped)
