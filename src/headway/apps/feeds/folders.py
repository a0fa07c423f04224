"""Folders: names that lead to one, with a slash between. A folder is there as long as a feed is in
it or below it, so all of it is in the subscriptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.apps.feeds.register import Register
    from headway.apps.feeds.ruling import Ruling

MAX_FOLDER = 1_000  # characters


class FolderTooLong(ValueError):
    """A folder would have a name that is too long; nothing was moved. Says which."""


def folder_path(*names: str) -> str:
    """Names that lead to a folder, with a slash between; in one way of writing it."""
    parts = (" ".join(part.split()) for name in names for part in name.split("/"))
    return "/".join(part for part in parts if part)


def is_below(folder: str, above: str) -> bool:
    """In this folder, or in one that is in it. Nothing is below none."""
    return folder == above or (above != "" and folder.startswith(f"{above}/"))


def move_folder(
    register: Register, ruling: Ruling, tenant: str, path: str, to: str, event: str, now: float
) -> int:
    """In the brain's turn: the feeds in it and below it keep their places there, and rules follow
    it if it has another name. How many feeds there are.
    """
    moved = {
        each.name: folder_path(to, each.folder.removeprefix(path))
        for each in register.of_tenant(tenant)
        if path and is_below(each.folder, path)
    }
    for (_, feed), folder in moved.items():
        if len(folder) > MAX_FOLDER:
            raise FolderTooLong(register.subscriptions[tenant, feed].folder)
    for name, folder in moved.items():
        register.change(name, now, folder=folder)
    if moved:
        if to:
            ruling.rename_folder(tenant, path, to)
        register.brain.record(now, event, subject=f"folder:{path}", detail=to)
    return len(moved)
