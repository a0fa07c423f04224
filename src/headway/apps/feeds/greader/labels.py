"""Labels, which are our folders, and how much of everything is unread."""

from __future__ import annotations

from typing import Any

from headway.api.problems import Problem
from headway.apps.feeds.folders import MAX_FOLDER, FolderTooLong, folder_path, move_folder
from headway.apps.feeds.greader.asking import Asked
from headway.apps.feeds.greader.errors import bad
from headway.apps.feeds.greader.ids import ALL, FEED, LABEL, STATE, Kind, Stream, stream_of
from headway.apps.feeds.greader.streams import Reading, microseconds
from headway.apps.feeds.register import Register
from headway.apps.feeds.ruling import Ruling
from headway.store import Store

# Counted in the index of what is unread, as in `views`; of each feed only the last one is read.
UNREAD = (
    "select f.name, f.unread, e.seen_at from (select feed || '' as name, count(*) as unread, "
    "max(id) as last from feed_entries where tenant = ? and is_read = 0 group by name) as f "
    "join feed_entries e on e.id = f.last"
)


def folder_of(label: str) -> str:
    """The folder that a label names, with each of its parts as people see it."""
    folder = folder_path(label)
    if not folder or len(folder) > MAX_FOLDER:
        raise bad(f"a label has 1 to {MAX_FOLDER} characters, and not only spaces")
    return folder


def label_asked(asked: Asked, stream: str, name: str) -> str:
    """A label is named by its stream, or by its name alone."""
    text = asked.one(stream)
    found = stream_of(text) if text else None
    if found is None and not text and (plain := asked.one(name)):
        found = Stream(Kind.LABEL, plain)
    if found is None or found.kind is not Kind.LABEL:
        raise bad(f"{stream} is a label, such as user/-/label/News")
    return found.name


def tags(reading: Reading) -> dict[str, Any]:
    folders = sorted({each.folder for each in reading.subscriptions() if each.folder})
    listed: list[dict[str, str]] = [{"id": STATE + "starred"}]
    return {"tags": [*listed, *({"id": LABEL + each, "type": "folder"} for each in folders)]}


def unread_counts(store: Store, reading: Reading) -> dict[str, Any]:
    folders = {each.id: each.folder for each in reading.subscriptions()}
    found: dict[str, tuple[int, float]] = {ALL.text: (0, 0.0)}
    for feed, count, newest in store.rows(UNREAD, (reading.tenant,)):
        folder = folders.get(feed)
        for name in (ALL.text, FEED + feed, LABEL + folder if folder else ""):
            before, latest = found.get(name, (0, 0.0))
            found[name] = (before + count, max(latest, newest))
    found.pop("", None)
    counts = [
        {"id": name, "count": count, "newestItemTimestampUsec": microseconds(newest)}
        for name, (count, newest) in found.items()
    ]
    return {"max": found[ALL.text][0], "unreadcounts": counts}


def rename(
    register: Register, ruling: Ruling, tenant: str, before: str, after: str, now: float
) -> None:
    """In the brain's turn. What is below the folder keeps its place there, and rules for it follow
    it.
    """
    if not any(each.folder == before for each in register.of_tenant(tenant)):
        raise Problem(
            404, f"no feed of yours has the label {before[:100]!r}", kind="unknown-folder"
        )
    try:
        move_folder(register, ruling, tenant, before, after, "folder_rename", now)
    except FolderTooLong as error:
        raise bad(f"a label has at most {MAX_FOLDER} characters") from error


def remove(register: Register, tenant: str, label: str, now: float) -> None:
    """In the brain's turn. Its feeds are in no folder any more; those below it stay."""
    found = [each for each in register.of_tenant(tenant) if each.folder == label]
    for each in found:
        register.change(each.name, now, folder="")
    if found:
        register.brain.record(now, "folder_remove", subject=f"folder:{label}")
