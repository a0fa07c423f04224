"""What OpenAI's clients call to be answered at once: chat, embeddings, which models there are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from headway.api import guard, quick
from headway.api.auth import Submitter
from headway.api.site import Reply, Site
from headway.apps.channels.errors import documented
from headway.apps.channels.online.exchange import CHAT
from headway.apps.channels.online.gateway import Gateway, unknown_model
from headway.apps.channels.routes.reach import TheChannels, channels_of

router = APIRouter(tags=["OpenAI"])

EMBEDDINGS = "/v1/embeddings"
OWNER = "headway"

guard.LONG.update((CHAT, EMBEDDINGS))  # an answer may take minutes; the gateway limits them


class ChatBody(BaseModel):
    """What OpenAI's chat completions take. All fields are passed on, those not listed here too."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="One of /v1/models.", min_length=1)
    messages: list[Any] | None = Field(None, description="What was said so far.")
    stream: bool | None = Field(None, description="Whether the answer comes word by word.")


class EmbeddingsBody(BaseModel):
    """What OpenAI's embeddings take. All fields are passed on, those not listed here too."""

    model_config = ConfigDict(extra="allow")

    model: str = Field(description="One of /v1/models.", min_length=1)
    input: Any = Field(None, description="Text, or a list of texts.")


class OpenAIModel(BaseModel):
    id: str = Field(description="Its name.")
    object: Literal["model"]
    created: int = Field(description="Since when a channel serves it, in seconds since 1970.")
    owned_by: str


class OpenAIModelList(BaseModel):
    object: Literal["list"]
    data: list[OpenAIModel]


def _answered(*kinds: str) -> dict[int | str, dict[str, Any]]:
    content = {
        kind: {"schema": {"type": "string" if kind.startswith("text/") else "object"}}
        for kind in kinds
    }
    return {200: {"description": "As the provider has answered.", "content": content},
            **documented(404, 500, 502, 504)}  # fmt: skip


def _gateway(request: Request) -> Gateway:
    site: Site = request.scope["app"].state.site
    return channels_of(site).gateway


@quick.post(
    router,
    CHAT,
    ChatBody,
    summary="Ask a model, online",
    operation_id="createChatCompletion",
    response_class=Reply,
    responses=_answered("application/json", "text/event-stream"),
)
async def chat(request: Request) -> Response:
    """Goes at once to the best channel that is open, and to another one if that refuses; the header
    `X-Headway-Channel` of the answer says which it was. If all are closed, the answer is a 429 with
    `Retry-After`, unless the header `X-Headway-Wait: 30s` says how long to wait in line (at most
    10m; 0: not at all). Who may act for all tenants can name one in `X-Headway-Tenant`.
    """
    return await _gateway(request).take(request, CHAT)


@quick.post(
    router,
    EMBEDDINGS,
    EmbeddingsBody,
    summary="Turn texts into vectors, online",
    operation_id="createEmbedding",
    response_class=Reply,
    responses=_answered("application/json"),
)
async def embeddings(request: Request) -> Response:
    """As for chat completions."""
    return await _gateway(request).take(request, EMBEDDINGS)


# ---------------------------------------------------------------------- models


@router.get(
    "/v1/models",
    summary="The models that some channel serves",
    operation_id="listModels",
    response_class=Reply,
    responses={200: {"model": OpenAIModelList}, **documented()},
)
async def list_models(channels: TheChannels, principal: Submitter) -> Response:  # noqa: ARG001 - it is checked
    data = [_view(channels.gateway, name) for name in channels.gateway.models()]
    return Reply({"object": "list", "data": data})


@router.get(
    "/v1/models/{model:path}",
    summary="One model",
    operation_id="getModel",
    response_class=Reply,
    responses={200: {"model": OpenAIModel}, **documented(404)},
)
async def get_model(
    channels: TheChannels,
    principal: Submitter,  # noqa: ARG001 - it is checked
    model: Annotated[str, Path(description="Its name.")],
) -> Response:
    known = channels.gateway.models()
    if model not in known:
        raise unknown_model(model, known)
    return Reply(_view(channels.gateway, model))


def _view(gateway: Gateway, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": int(gateway.known_since(name)),
        "owned_by": OWNER,
    }
