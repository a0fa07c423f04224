"""The archive at a glance over HTTP: what is in it, and whether anything is in its way."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from importlib import metadata
from typing import Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from headway.api.auth import Reader
from headway.api.problems import documented
from headway.api.site import Reply, Site, TheSite
from headway.api.views import COOKIE_LANE, NO_COOKIE_LANE
from headway.apps.media.covering import Part, numbers
from headway.apps.media.jobs import LANE
from headway.apps.media.library.errors import LibraryError, LibraryFull, LibraryReadOnly
from headway.apps.media.model import State
from headway.apps.media.routes.reach import TheMedia

router = APIRouter(tags=["Archive"])

LANES = frozenset({COOKIE_LANE, NO_COOKIE_LANE, LANE})
ASK = "from yt_dlp.version import __version__; print(__version__)"
ASK_S = 30.0


class LibraryModel(BaseModel):
    path: str | None = Field(description="Null for whoever is bound to a tenant.")
    status: Literal["ok", "gone", "full", "readonly"]
    reason: str | None = Field(description="What is wrong, and what to do; null: nothing.")
    free_bytes: int | None = Field(description="Null: it is away, or was never used.")
    min_free_bytes: int = Field(description="Below this, downloads wait.")


class YtDlpModel(BaseModel):
    is_installed: bool
    version: str | None
    python: str | None = Field(
        description="The interpreter that runs it. Null for whoever is bound to a tenant."
    )


class WorkModel(BaseModel):
    waiting: int
    running: int


class OverviewModel(BaseModel):
    subscriptions: int
    items: dict[str, int] = Field(description="How many are in each state.")
    bytes: int = Field(description="Of videos on disk.")
    library: LibraryModel
    accounts: dict[str, dict[str, int]] | None = Field(
        description="By site, how many are in each status. Null for whoever is bound to a tenant."
    )
    yt_dlp: YtDlpModel
    ffmpeg: bool = Field(description="Whether it is there: picture and sound can be put together.")
    queue: WorkModel = Field(description="Jobs in the lanes of the archive.")


@router.get(
    "/api/archive",
    summary="The archive at a glance",
    operation_id="getArchive",
    response_class=Reply,
    responses={200: {"model": OverviewModel}, **documented(409)},
)
def get_archive(principal: Reader, site: TheSite, media: TheMedia) -> Response:
    tenant = principal.tenant
    states, size_bytes = (
        media.tally.numbers() if tenant is None else numbers(site.store, Part(tenant))
    )
    rows = list(media.register.subscriptions.values())
    return Reply({
        "subscriptions": sum(tenant in (None, row.tenant) for row in rows),
        "items": {each.value: states.get(each.value, 0) for each in State},
        "bytes": size_bytes,
        "library": _library(media, sees_path=tenant is None),
        "accounts": media.tally.accounts(site.now()) if tenant is None else None,
        "yt_dlp": _yt_dlp(media.settings.python, sees_path=tenant is None),
        "ffmpeg": shutil.which("ffmpeg") is not None,
        "queue": _queue(site, tenant),
    })  # fmt: skip


def _library(media: TheMedia, *, sees_path: bool) -> dict[str, Any]:
    library = media.library
    status, reason, free = "ok", None, None
    try:
        if library.was_used():
            library.check()
    except LibraryError as error:
        status = {LibraryFull: "full", LibraryReadOnly: "readonly"}.get(type(error), "gone")
        reason = str(error)
    try:
        free = library.free_bytes() if status != "gone" and library.was_used() else None
    except LibraryError as error:
        status, reason = "gone", str(error)
    if reason is not None and not sees_path:
        reason = reason.replace(str(library.root), "the library")
    return {
        "path": str(library.root) if sees_path else None, "status": status, "reason": reason,
        "free_bytes": free, "min_free_bytes": library.min_free_bytes,
    }  # fmt: skip


def _yt_dlp(python: str, *, sees_path: bool) -> dict[str, Any]:
    version = yt_dlp_version(python)
    return {"is_installed": version is not None, "version": version,
            "python": (python or sys.executable) if sees_path else None}  # fmt: skip


@cache
def yt_dlp_version(python: str) -> str | None:
    """Of the interpreter that is named, or of ours. Asked once, since a program has to say it.
    None: there is none.
    """
    if not python:
        try:
            return metadata.version("yt-dlp")
        except metadata.PackageNotFoundError:
            return None
    try:
        said = subprocess.run(
            [python, "-I", "-c", ASK], capture_output=True, timeout=ASK_S, check=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return said.stdout.strip()[:50] or None


def _queue(site: Site, tenant: str | None) -> dict[str, int]:
    found = {"waiting": 0, "running": 0}
    for lane, state, count in site.tally(tenant):
        if lane in LANES and state in ("pending", "queued", "paused", "running"):
            found["running" if state == "running" else "waiting"] += count
    return found
