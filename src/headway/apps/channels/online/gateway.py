"""Online calls: to the best channel that is open, to another one if that refuses before anything
of its answer was passed on, and never behind queued work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import Request, Response

from headway.api.problems import Problem
from headway.api.quick import whose
from headway.apps.channels.calling import Caller
from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import Directory, Entry
from headway.apps.channels.errors import NO_MODEL, QUOTA
from headway.apps.channels.money.billing import Billing, tokens_of
from headway.apps.channels.online.exchange import Asked, Exchange
from headway.apps.channels.online.failing import bad_key
from headway.apps.channels.online.waiting import HEADER as WAIT
from headway.apps.channels.online.waiting import Line, wait_said

TENANT = "x-headway-tenant"
MOST_AT_ONCE = 5_000  # calls that are under way or wait in line
MOST_BYTES = 268_435_456  # of all that these calls were sent; each byte is held some four times
SHOWN_MODELS = 20
LONGEST_TENANT = 200  # characters


class Gateway:
    def __init__(self, directory: Directory, billing: Billing) -> None:
        self._directory = directory
        self.billing = billing
        self.may_spend: Callable[[str], str | None] | None = None  # why a tenant may not
        self._caller: Caller | None = None
        self.under_way = 0
        self.bytes_under_way = 0
        self.line = Line()

    @property
    def caller(self) -> Caller:
        """Of the server's loop."""
        if self._caller is None:
            self._caller = Caller()
        return self._caller

    async def stop(self) -> None:
        caller, self._caller = self._caller, None
        if caller is not None:
            await caller.close()

    def send_home(self) -> None:
        """The server is to stop. Calls that wait in line are refused; those that were passed on may
        end. From any thread.
        """
        self.line.dissolve()

    def entry(self, code: str) -> Entry | None:
        return self._directory.get(code)

    async def take(self, request: Request, endpoint: str) -> Response:
        """A call that may be made: its answer is on its way from now on."""
        site, principal = whose(request, "submit")
        tenant = site.tenant_for(tenant_said(request), principal)
        content = await request.body()
        body, model = _read(content)
        self.check_room(len(content))
        channels = self._serving(model)
        refusal = None if self.may_spend is None else self.may_spend(tenant)
        if refusal is not None:
            raise Problem(429, refusal, kind=QUOTA)
        cost = tokens_of(body, len(content))
        wait_s = wait_said(request.headers.get(WAIT))
        asked = Asked(endpoint, body, len(content), model, tenant, cost, channels, wait_s)
        return Exchange(self, site, request, asked)

    def check_room(self, size: int) -> None:
        """For one more call of so many bytes."""
        if self.under_way >= MOST_AT_ONCE or self.bytes_under_way + size > MOST_BYTES:
            raise Problem(503, f"{self.under_way} calls are under way, as many or as large as may "
                          "be; try again", kind="busy", headers={"Retry-After": "1"})  # fmt: skip

    def _serving(self, model: str) -> tuple[Channel, ...]:
        channels = self._directory.serving(model)
        if not channels:
            raise unknown_model(model, self.models())
        troubles = {each.code: self._trouble(each.code) for each in channels}
        usable = tuple(each for each in channels if not troubles[each.code])
        if not usable:
            raise bad_key(*next(iter(troubles.items())))
        return usable

    def _trouble(self, code: str) -> str:
        entry = self.entry(code)
        return "" if entry is None else entry.trouble

    def models(self) -> list[str]:
        """Those that somebody serves now."""
        return sorted(model for model in self._directory.models if self._directory.serving(model))

    def known_since(self, model: str) -> float:
        entries = (self.entry(each.code) for each in self._directory.serving(model))
        return min((each.created_at for each in entries if each is not None), default=0.0)


def tenant_said(request: Request) -> str | None:
    """For whom it is, if the header says so."""
    said = request.headers.get(TENANT)
    if said is None:
        return None
    try:
        tenant = said.encode("latin-1").decode()
    except UnicodeDecodeError:
        tenant = ""
    if not 0 < len(tenant) <= LONGEST_TENANT:
        raise Problem(400, f"X-Headway-Tenant is a name in UTF-8 of 1 to {LONGEST_TENANT} "
                      "characters", kind="wrong-tenant")  # fmt: skip
    return tenant


def unknown_model(model: str, known: list[str]) -> Problem:
    shown = ", ".join(known[:SHOWN_MODELS]) + (", …" if len(known) > SHOWN_MODELS else "")
    there = f"there is {shown}" if known else "add a channel at /api/channels"
    return Problem(404, f"no channel serves the model {model[:200]!r}; {there}", kind=NO_MODEL,
                   param="model")  # fmt: skip


def _read(content: bytes) -> tuple[dict[str, Any], str]:
    try:
        body = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Problem(400, "the body is no JSON; send a JSON object", kind="no-json") from None
    if not isinstance(body, dict):
        raise Problem(400, "the body is no JSON object; send one", kind="no-json")
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise Problem(400, "the body names no model; send its name as text in `model`",
                      kind="missing-required-parameter", param="model")  # fmt: skip
    return body, model
