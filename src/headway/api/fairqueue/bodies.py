"""What clients of the fair queue send and get, as their document has it."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from headway.api.problems import Problem

MAX_NAME = 500  # characters of a host or an IP bucket
FAR_MS = 86_400_000.0  # a clock that is further off says nothing

B = TypeVar("B", bound=BaseModel)


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel)


def _name(about: str) -> Any:
    return Field(None, max_length=MAX_NAME, description=about)


def _token(about: str) -> Any:
    return Field(None, max_length=200, description=about)


HOSTNAME = "The host that is to be called."
HOSTNAME_HASH = "What it is known by if its name is not told."
IP_BUCKET = "For whom: an address or a network. It is what places are shared between."
CLOCK = "The client's clock, in milliseconds since 1970."
RETRY_AFTER = "Seconds, if the host said so: it is closed for so long, for everybody."


class AcquireBody(Body):
    """First with a host, then with the token that was answered."""

    query_token: str | None = _token("What the first answer gave; nothing else is needed then.")
    hostname: str | None = _name(HOSTNAME)
    hostname_hash: str | None = _name(HOSTNAME_HASH)
    ip_bucket: str | None = _name(IP_BUCKET)
    now: float | None = Field(None, description=CLOCK)
    throttle_time_window_seconds: float | None = Field(
        None, description="How long the host stays closed after its last error."
    )


class ReleaseBody(Body):
    """A slot that is not needed any more."""

    hostname: str | None = _name(HOSTNAME)
    hostname_hash: str | None = _name(HOSTNAME_HASH)
    ip_bucket: str | None = _name(IP_BUCKET)
    slot_token: str | None = _token("What the grant gave; it says which slot.")
    hit_upstream_at_ms: float | None = Field(
        None, description="When the host was called, by the client's clock in milliseconds."
    )
    now: float | None = Field(None, description=CLOCK)
    status: int | None = Field(None, description="What the host answered; the breaker counts it.")
    retry_after: float | None = Field(None, description=RETRY_AFTER)


class CancelBody(Body):
    """Whose wait is over, or whose grant came too late."""

    query_token: str | None = _token("What the first answer gave.")


class ReportBody(Body):
    """What a host answered to somebody who held no slot."""

    hostname: str | None = _name(HOSTNAME)
    hostname_hash: str | None = _name(HOSTNAME_HASH)
    status: int = Field(description="What the host answered.")
    retry_after: float | None = Field(None, description=RETRY_AFTER)


class RefreshBody(Body):
    """What to read again."""

    targets: list[str] = Field(
        default_factory=lambda: ["all"], max_length=10,
        description="all, config, bootstrap or fairqueue; all and fairqueue reset who waits.",
    )  # fmt: skip


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


async def read(request: Request, model: type[B], missing: bytes = b"") -> B:
    """400 for what is no JSON or does not fit, which is what these clients know. `missing` is
    what no body at all means.
    """
    try:
        return model.model_validate_json(await request.body() or missing)
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
