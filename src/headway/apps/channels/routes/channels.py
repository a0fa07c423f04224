"""Channels over HTTP: looking at them, and changing those that no file declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from fastapi import APIRouter, Path, Response
from pydantic import Field, StringConstraints

from headway.api.auth import Keeper, Overseer, Principal
from headway.api.bodies import WHOLE, Body, Name
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.apps.channels.capacity import capacity_of
from headway.apps.channels.channel import Channel
from headway.apps.channels.directory import API, FILE, Entry
from headway.apps.channels.routes.reach import TheChannels, keys_at_hand
from headway.apps.channels.views import CapacityModel, ChannelList, ChannelModel, Mode, channel_view

router = APIRouter(tags=["Channels"])

T = TypeVar("T")
TAKEN = frozenset({"calls", "callback-secret"})  # other things have these addresses

Code = Annotated[str, Path(max_length=100, description="The code of a channel.")]
Link = Annotated[str, StringConstraints(max_length=2_000, pattern=r"^https?://[!-~]+$")]
Key = Annotated[str, StringConstraints(min_length=1, max_length=4_000, pattern=r"^[!-~]+$")]
Amount = Annotated[float, Field(ge=0, lt=1e9, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Unused = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Places = Annotated[int, Field(ge=1, lt=1_000_000_000), WHOLE]
Timeout = Annotated[float, Field(ge=1, le=86_400, allow_inf_nan=False)]


class PriceBody(Body):
    """What 1,000 tokens cost."""

    input_per_1k: Amount = Field(default=0.0, description="Of what is asked.")
    output_per_1k: Amount = Field(default=0.0, description="Of what is answered.")
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")] = Field(
        default="USD", description="Three capitals."
    )


class ChangeBody(Body):
    """What changes. All that is left out stays, also inside of price; null takes a limit off."""

    model: Name = Field("", description="The name that callers know the model by.")
    base_url: Link = Field("", description="Such as https://api.openai.com/v1.")
    api_key: Key = Field("", description="Sealed when it is stored, and never shown again.")
    upstream_model: Name | None = Field(
        None, description="What the provider calls the model, if that differs."
    )
    queue_mode: Mode = Field(
        "pull",
        description="Who may use it besides online calls: nobody (none), queued work (pull), "
        "online calls that find it closed and wait in line (route), or both.",
    )
    price: PriceBody = Field(PriceBody(), description="What calls cost.")
    batch_discount: Share = Field(0.0, description="The share that queued calls cost less.")
    max_concurrency: Places | None = Field(
        None,
        description="Calls at once; null: no limit. Online calls count, and are not held back.",
    )
    max_concurrency_per_tenant: Places | None = Field(
        None, description="Calls of one tenant at once, likewise; null: no limit."
    )
    rpm: Rate | None = Field(
        None, description="Requests per minute as documented; learning never goes above."
    )
    tpm: Rate | None = Field(None, description="Tokens per minute, likewise.")
    remaining_threshold: Unused = Field(
        0.0, description="Queued work runs only while more than this share is left; 0: off."
    )
    timeout_s: Timeout = Field(600.0, description="For one call.")
    enabled: bool = Field(True, description="Whether anybody may use it.")


class ChannelBody(ChangeBody):
    """A new channel: one model behind one key at one provider."""

    code: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)
    ] = Field(description="Its name, which is also that of its upstream.")
    model: Name = Field(description="The name that callers know the model by.")
    base_url: Link = Field(description="Such as https://api.openai.com/v1.")


def taken_over(before: dict[str, Any], body: ChangeBody) -> tuple[Channel, str | None]:
    """The channel with what was sent, and its key if there is a new one."""
    sent = body.model_dump(exclude_unset=True)
    key = sent.pop("api_key", None)
    price = {**before.get("price", {}), **sent.pop("price", {})}
    try:
        channel = msgspec.convert({**before, **sent, "price": price}, Channel)
        channel.check()
    except ValueError as error:
        raise Problem(422, str(error), kind="bad-channel") from error
    return channel, key


def unknown(code: str) -> Problem:
    return Problem(404, f"there is no channel {code!r}", kind="unknown-channel")


def in_own_name(site: Site, principal: Principal, do: Callable[[float], T]) -> T:
    """In the brain's turn, and in the trail with who did it."""
    brain = site.engine.brain

    def turn(now: float) -> T:
        with brain.controls.acting(principal.who):
            return do(now)

    with keys_at_hand():
        return site.wait(site.engine.ask(turn))


# ---------------------------------------------------------------------- looking


@router.get(
    "/api/channels",
    summary="List channels",
    operation_id="listChannels",
    response_class=Reply,
    responses={200: {"model": ChannelList}, **documented()},
)
def list_channels(channels: TheChannels, principal: Overseer) -> Response:  # noqa: ARG001
    entries = sorted(channels.directory.entries.items())
    return Reply({"items": [channel_view(entry) for _, entry in entries]})


@router.get(
    "/api/channels/{code}",
    summary="Look at a channel",
    operation_id="getChannel",
    response_class=Reply,
    responses={200: {"model": ChannelModel}, **documented(404)},
)
def get_channel(code: Code, channels: TheChannels, principal: Overseer) -> Response:  # noqa: ARG001
    entry = channels.directory.get(code)
    if entry is None:
        raise unknown(code)
    return Reply(channel_view(entry))


@router.get(
    "/api/channels/{code}/capacity",
    summary="What a channel bears, what goes there now, and why queued work waits",
    operation_id="getChannelCapacity",
    response_class=Reply,
    responses={200: {"model": CapacityModel}, **documented(404)},
)
def get_capacity(
    code: Code, site: TheSite, channels: TheChannels, principal: Overseer  # noqa: ARG001
) -> Response:  # fmt: skip
    brain = site.engine.brain

    def look(now: float) -> dict[str, Any]:
        entry = channels.directory.get(code)
        if entry is None:
            raise unknown(code)
        return capacity_of(brain, entry.channel, now)

    return Reply(site.wait(site.engine.ask(look)))


# ---------------------------------------------------------------------- changing


@router.post(
    "/api/channels",
    status_code=201,
    summary="Add a channel",
    operation_id="addChannel",
    response_class=Reply,
    responses={201: {"model": ChannelModel}, **documented(409)},
)
def add_channel(
    body: ChannelBody, site: TheSite, channels: TheChannels, principal: Keeper
) -> Response:
    """It is used at once: by online calls, and by queued ones that wait for its model."""
    if body.code in TAKEN:
        raise Problem(422, f"a channel cannot be called {body.code!r}; choose another code",
                      kind="bad-channel")  # fmt: skip
    channel, key = taken_over({}, body)
    directory = channels.directory

    def add(now: float) -> Entry:
        if directory.get(channel.code) is not None:
            raise Problem(409, f"there is a channel {channel.code!r} already; change it with "
                          "PATCH, or choose another code", kind="duplicate")  # fmt: skip
        return directory.put(channel, key, API, now)

    entry = in_own_name(site, principal, add)
    return Reply(channel_view(entry), 201, headers={"Location": f"/api/channels/{channel.code}"})


@router.patch(
    "/api/channels/{code}",
    summary="Change a channel",
    operation_id="changeChannel",
    response_class=Reply,
    responses={200: {"model": ChannelModel}, **documented(404, 409)},
)
def change_channel(
    code: Code, body: ChangeBody, site: TheSite, channels: TheChannels, principal: Keeper
) -> Response:
    """What is left out stays. It holds at once, also for calls that wait already."""
    directory = channels.directory

    def change(now: float) -> Entry:
        before = _changeable(channels, code)
        channel, key = taken_over(msgspec.to_builtins(before.channel), body)
        if key is None and before.sealed_key is not None and _leads_elsewhere(before, channel):
            raise Problem(422, "base_url names another host, which would be sent the key of this "
                          "one; send api_key along", kind="bad-channel")  # fmt: skip
        return directory.put(channel, key, API, now)

    return Reply(channel_view(in_own_name(site, principal, change)))


@router.delete(
    "/api/channels/{code}",
    status_code=204,
    summary="Remove a channel",
    operation_id="removeChannel",
    response_class=Response,
    responses=documented(404, 409),
)
def remove_channel(code: Code, site: TheSite, channels: TheChannels, principal: Keeper) -> Response:
    """What runs there may end. Queued calls go on with other channels of the model, or wait."""

    def remove(now: float) -> None:
        _changeable(channels, code)
        channels.directory.remove(code, now)

    in_own_name(site, principal, remove)
    return Response(status_code=204)


def _leads_elsewhere(before: Entry, channel: Channel) -> bool:
    """Whoever may change a channel may not thereby read its key."""
    return urlsplit(before.channel.base_url)[:2] != urlsplit(channel.base_url)[:2]


def _changeable(channels: TheChannels, code: str) -> Entry:
    entry = channels.directory.get(code)
    if entry is None:
        raise unknown(code)
    if entry.source == FILE:
        where = channels.settings_file or "the settings file of the server"
        raise Problem(409, f"channel {code!r} is declared as [channel.{code}] in {where}; change "
                      "it there, and start the server anew", kind="declared")  # fmt: skip
    return entry
