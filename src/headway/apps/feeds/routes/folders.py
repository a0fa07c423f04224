"""Folders over HTTP. A folder is there as long as a feed is in it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field, StringConstraints

from headway.api.auth import Principal, Reader, Submitter
from headway.api.bodies import NO_NUL
from headway.api.problems import Problem, documented
from headway.api.site import Reply, Site, TheSite
from headway.api.turns import in_own_name
from headway.apps.feeds.folders import MAX_FOLDER, FolderTooLong, folder_path, move_folder
from headway.apps.feeds.routes.feed_bodies import Lenient
from headway.apps.feeds.routes.feeds import register_of
from headway.apps.feeds.routes.reach import TheFeeds, owner
from headway.apps.feeds.views import Numbers, numbers_of

router = APIRouter(tags=["Feeds"])

PATH = "/api/backend/folders"

FolderName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_FOLDER, pattern=NO_NUL)]


class FolderModel(BaseModel):
    name: str = Field(description="With those it is in before it, and a slash between.")
    feeds: int = Field(description="Feeds in it; those below it are not counted.")
    unread: int = Field(description="Their articles that were not read.")


class FolderList(BaseModel):
    folders: list[FolderModel] = Field(description="By name.")


class RenameBody(Lenient):
    """Another name for a folder."""

    name: FolderName = Field(description="The folder.")
    to: FolderName = Field(description="Its new name. If there is one, both become one.")


class FolderChanged(BaseModel):
    name: str = Field(description="Where its feeds are now; empty: in no folder.")
    feeds_moved: int = Field(description="Feeds that were in it or below it.")


@router.get(
    PATH,
    summary="List your folders",
    operation_id="listFolders",
    response_class=Reply,
    responses={200: {"model": FolderList}, **documented()},
)
def list_folders(site: TheSite, feeds: TheFeeds, principal: Reader) -> Response:
    register, tenant = register_of(site, feeds), owner(principal)
    numbers = numbers_of(feeds.store, tenant)
    found: dict[str, dict[str, Any]] = {}
    for each in register.of_tenant(tenant):
        if each.folder:
            view = found.setdefault(each.folder, {"name": each.folder, "feeds": 0, "unread": 0})
            view["feeds"] += 1
            view["unread"] += numbers.get(each.id, Numbers()).unread
    return Reply({"folders": [view for _, view in sorted(found.items())]})


@router.patch(
    PATH,
    summary="Rename a folder",
    operation_id="renameFolder",
    response_class=Reply,
    responses={200: {"model": FolderChanged}, **documented(404)},
)
def rename_folder(
    body: RenameBody, site: TheSite, feeds: TheFeeds, principal: Submitter
) -> Response:
    """What is below it keeps its place there."""
    to = folder_path(body.to)
    if not to:
        raise Problem(422, "body.to: a folder needs a name; to take feeds out of it, DELETE it",
                      kind="bad-folder")  # fmt: skip
    return _moved(folder_path(body.name), to, site, feeds, principal, "folder_rename")


@router.delete(
    PATH,
    summary="Remove a folder",
    operation_id="removeFolder",
    response_class=Reply,
    responses={200: {"model": FolderChanged}, **documented(404)},
)
def remove_folder(
    name: Annotated[str, Query(min_length=1, max_length=MAX_FOLDER, description="The folder.")],
    site: TheSite,
    feeds: TheFeeds,
    principal: Submitter,
) -> Response:
    """Its feeds stay. They and what is below it are where the folder itself was."""
    path = folder_path(name)
    return _moved(path, path.rpartition("/")[0], site, feeds, principal, "folder_remove")


def _moved(
    path: str, to: str, site: Site, feeds: TheFeeds, principal: Principal, event: str
) -> Response:
    tenant = owner(principal)

    def move(now: float) -> int:
        try:
            moved = move_folder(feeds.register, feeds.ruling, tenant, path, to, event, now)
        except FolderTooLong as error:
            raise Problem(422, f"{str(error)!r} would have a name of more than {MAX_FOLDER} "
                          "characters", kind="bad-folder") from error  # fmt: skip
        if not moved:
            raise Problem(404, f"you have no feeds in a folder {path!r}", kind="unknown-folder")
        return moved

    return Reply({"name": to, "feeds_moved": in_own_name(site, principal, move)})
