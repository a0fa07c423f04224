"""What clients of the fair queue send and get, as their document has it."""

from __future__ import annotations

from typing import Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from headway.api.problems import Problem

MAX_NAME = 500  # characters of a host or an IP bucket
FAR_MS = 86_400_000.0  # a clock that is further off says nothing

B = TypeVar("B", bound=BaseModel)


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)


class AcquireBody(Body):
    """First with a host, then with the token that was answered."""

    query_token: str | None = Field(None, max_length=200)
    hostname: str | None = Field(None, max_length=MAX_NAME)
    hostname_hash: str | None = Field(None, max_length=MAX_NAME)
    ip_bucket: str | None = Field(None, max_length=MAX_NAME)
    now: float | None = Field(None, description="The client's clock, in milliseconds.")
    throttle_time_window_seconds: float | None = Field(
        None, description="How long the host stays closed after its last error."
    )


class ReleaseBody(Body):
    hostname: str | None = Field(None, max_length=MAX_NAME)
    hostname_hash: str | None = Field(None, max_length=MAX_NAME)
    ip_bucket: str | None = Field(None, max_length=MAX_NAME)
    slot_token: str | None = Field(None, max_length=200)
    hit_upstream_at_ms: float | None = None
    now: float | None = None
    status: int | None = Field(None, description="What the upstream answered.")
    retry_after: float | None = Field(None, description="Seconds, if it said so.")


class CancelBody(Body):
    query_token: str | None = Field(None, max_length=200)


class ReportBody(Body):
    hostname: str | None = Field(None, max_length=MAX_NAME)
    hostname_hash: str | None = Field(None, max_length=MAX_NAME)
    status: int
    retry_after: float | None = None


class RefreshBody(Body):
    targets: list[str] = Field(default_factory=lambda: ["all"], max_length=10)


class AcquireModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)

    result: Literal["pending", "granted", "throttled", "timeout", "overloaded"]
    query_token: str | None = None
    slot_token: str | None = None
    throttle_code: int | None = None
    throttle_retry_after: int | None = None
    retry_after: int | None = None
    reason: str | None = None


class DoneModel(BaseModel):
    result: Literal["ok"]


class CancelModel(BaseModel):
    result: Literal["canceled", "gone", "noop"]


async def read(request: Request, model: type[B]) -> B:
    """400 for what is no JSON or does not fit, which is what these clients know."""
    try:
        return model.model_validate_json(await request.body() or b"{}")
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(each) for each in first["loc"])
        detail = f"{where}: {first['msg']}" if where else "the body is not a JSON object"
        raise Problem(400, detail, kind="wrong-input") from None


def host_of(hostname: str | None, hostname_hash: str | None) -> str:
    """What a host is known by; its hash if its name is not told."""
    name = (hostname or "").strip().rstrip(".").lower() or (hostname_hash or "").strip()
    if not name:
        raise Problem(400, "hostname is missing; say which host the slot is for",
                      kind="wrong-input")  # fmt: skip
    if "\x00" in name:
        raise Problem(400, "hostname has a character that no host has", kind="wrong-input")
    return name


def hit_at(hit_ms: float | None, client_ms: float | None, now: float) -> float | None:
    """When the upstream was called, by our clock. The client's may be wrong: what counts is how
    long before its own `now` it was.
    """
    if hit_ms is None or hit_ms != hit_ms:
        return None
    if client_ms is not None and abs(client_ms - now * 1000.0) < FAR_MS:
        return now - max(0.0, client_ms - hit_ms) / 1000.0
    return min(hit_ms / 1000.0, now)
