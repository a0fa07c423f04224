"""Keys over HTTP, for admins. Only their ids are ever shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel, Field

from headway.api.auth import Admin
from headway.api.problems import documented
from headway.api.site import Reply, TheSite
from headway.apps.keys.ring import Ring

router = APIRouter(tags=["System"])


class KeyModel(BaseModel):
    id: str = Field(description="The beginning of a hash of it.")
    role: Literal["seals", "opens", "missing"] = Field(
        description="It seals what is new; it only opens what it has sealed; it is not here."
    )
    secrets: int = Field(description="How many stored secrets need it.")


class KeyList(BaseModel):
    source: Literal["file", "environment"]
    place: str = Field(description="The file, or the name of the variable.")
    items: list[KeyModel]


class Rotated(BaseModel):
    id: str = Field(description="Of the new key, which seals from now on.")
    left: int = Field(description="Secrets that older keys have sealed; see reseal.")


class Resealed(BaseModel):
    resealed: int
    unreadable: int = Field(description="Whose key is not here; they are left as they are.")
    left: int


class Pruned(BaseModel):
    removed: list[str] = Field(description="The ids of keys that nothing needs.")


def the_ring(site: TheSite) -> Ring:
    found: Ring = site.application("keys").ring
    return found


TheRing = Annotated[Ring, Depends(the_ring)]


def answer(said: dict[str, Any]) -> Response:
    return Reply(said)


@router.get(
    "/api/keys",
    summary="The keys of stored secrets",
    operation_id="listKeys",
    response_class=Reply,
    responses={200: {"model": KeyList}, **documented(503)},
)
def list_keys(ring: TheRing, principal: Admin) -> Response:  # noqa: ARG001 - it is checked
    """What each has sealed: channels' keys, secrets of callbacks, cookies of accounts."""
    return answer(ring.view())


@router.post(
    "/api/keys/rotate",
    summary="Put a new key first",
    operation_id="rotateKeys",
    response_class=Reply,
    responses={200: {"model": Rotated}, **documented(409, 503)},
)
def rotate(ring: TheRing, site: TheSite, principal: Admin) -> Response:
    """It seals from now on; the others still open what they have sealed. Then reseal until nothing
    is left. 409: the keys are in the environment, where only whoever starts the server can change
    them.
    """
    new = ring.rotate()
    site.record(principal, "key_added", f"key:{new}")
    return answer({"id": new, "left": ring.left()})


@router.post(
    "/api/keys/reseal",
    summary="Seal again what older keys have sealed",
    operation_id="resealSecrets",
    response_class=Reply,
    responses={200: {"model": Resealed}, **documented(409, 503)},
)
def reseal(
    ring: TheRing, site: TheSite, principal: Admin,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many at most.")] = 500,
) -> Response:  # fmt: skip
    """Some of them; ask again until nothing is left. It may be broken off at any time: all keys are
    still there.
    """
    portion = ring.reseal(limit)
    site.record(principal, "secrets_resealed", "keys", str(portion.done))
    return answer({
        "resealed": portion.done, "unreadable": portion.unreadable, "left": ring.left()
    })  # fmt: skip


@router.post(
    "/api/keys/prune",
    summary="Remove keys that nothing needs",
    operation_id="pruneKeys",
    response_class=Reply,
    responses={200: {"model": Pruned}, **documented(409, 503)},
)
def prune(ring: TheRing, site: TheSite, principal: Admin) -> Response:
    """Never the one that seals. Backups that were made before still need the keys of then: keep a
    copy of those as long as the backups.
    """
    removed = ring.prune()
    site.record(principal, "keys_removed", "keys", ", ".join(removed) or "none")
    return answer({"removed": removed})
