"""The library itself: where it is, that it is really there, and how much fits into it.

An empty mount point looks like a library in which everything was deleted. So a library has a
marker with a random id, and the store remembers it: without the right marker nothing is written,
and nothing is taken for lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from pathlib import Path, PurePosixPath

import msgspec

from headway.apps.media.library import moving
from headway.apps.media.library.errors import LibraryFull, LibraryGone, LibraryReadOnly, UnsafePath
from headway.apps.media.library.legal_names import legal_name
from headway.apps.media.library.moving import MARKER, PRIVATE
from headway.apps.media.library.naming import TENANTS

MAX_MARKER_BYTES = 4096
_WORK = PurePosixPath(PRIVATE, "work")
_ITEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_PLAIN_TENANT = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_ABOUT = "This directory is an archive of Headway. Without this file it is not written to."


class Library:
    """`identity` is what `begin` has answered the first time; None: it never was used before."""

    def __init__(self, root: Path, *, min_free_bytes: int, identity: str | None = None) -> None:
        self.root = root
        self.min_free_bytes = min_free_bytes
        self.identity = identity

    def begin(self) -> str:
        """Makes the library, or takes over the files that are there already. One that is known is
        only looked at: if it is away, no other is made in its place.
        """
        if self.identity is None:
            with moving.plain_errors(self.root):
                self.identity = _adopted(self.root)
        self._check_there()
        return self.identity

    def check(self) -> None:
        """Raises LibraryGone, LibraryReadOnly or LibraryFull: nothing should be started then."""
        self._check_there()
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise LibraryReadOnly(f"{self.root} cannot be written. Mount it writable, or give this "
                                  "process the right to write there.")  # fmt: skip
        free = self.free_bytes()
        if free < self.min_free_bytes:
            raise LibraryFull(
                f"{self.root} has {free} bytes free, and {self.min_free_bytes} must stay free. "
                "Delete something, or lower the limit."
            )

    def free_bytes(self) -> int:
        with moving.plain_errors(self.root):
            try:
                return shutil.disk_usage(self.root).free
            except FileNotFoundError as error:
                raise LibraryGone(f"{self.root} is not there.") from error

    # ------------------------------------------------------------------ unfinished work

    def work(self, item_id: int | str) -> Path:
        """A private directory on the same disk, so that what is finished need not be copied. It is
        kept between attempts, with what was downloaded so far.
        """
        name = _item(item_id)
        self._check_there()
        with moving.open_root(self.root) as root_fd:
            moving.make_private(root_fd, _WORK / name)
        return self.root / _WORK / name

    def drop_work(self, item_id: int | str) -> None:
        name = _item(item_id)
        place = self.root / _WORK / name
        if place.is_symlink() or place.is_file():
            place.unlink(missing_ok=True)
        else:
            shutil.rmtree(place, ignore_errors=True)

    def leftovers(self) -> list[str]:
        """The items that have a work directory."""
        self._check_there()
        return work_directories(self.root)

    # ------------------------------------------------------------------ tenants

    @staticmethod
    def of(tenant: str) -> PurePosixPath:
        """Where a tenant's files are, below the root. Two tenants never share a directory: a name
        that is not plain brings a digest of all of it, after a sign that plain ones do not have.
        """
        if not tenant:
            return PurePosixPath()
        if _PLAIN_TENANT.fullmatch(tenant) and legal_name(tenant) == tenant:
            return PurePosixPath(TENANTS, tenant)
        digest = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        shown = re.sub(r"[^a-z0-9_-]+", "-", tenant.lower())[:40].strip("-") or "tenant"
        return PurePosixPath(TENANTS, f"{shown}~{digest}")

    def _check_there(self) -> None:
        found = marker_of(self.root)
        if self.identity is not None and found != self.identity:
            raise LibraryGone(
                f"{self.root} holds another library than before. Mount the right one there."
            )


def marker_of(root: Path) -> str:
    """The id of the library that is there. Raises LibraryGone: there is none."""
    found = _read_marker(root)
    if found is None:
        raise LibraryGone(f"{root} has no {MARKER}: its mount is probably away. "
                          "Mount it again; nothing was changed.")  # fmt: skip
    return found


def work_directories(root: Path) -> list[str]:
    with moving.plain_errors(root):
        try:
            return sorted(name for name in os.listdir(root / _WORK) if _ITEM.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):
            return []


def _adopted(root: Path) -> str:
    if root.exists() and not root.is_dir():
        raise LibraryGone(f"{root} is no directory. Name another place for the library.")
    root.mkdir(0o755, parents=True, exist_ok=True)
    found = _read_marker(root)
    return found if found is not None else _mark(root)


def _mark(root: Path) -> str:
    identity = secrets.token_hex(16)
    text = json.dumps({"library": identity, "about": _ABOUT}, indent=2) + "\n"
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    spare = f"{MARKER}.{identity}"
    try:
        moving.write_new(spare, text.encode(), fd)
        moving.place(spare, fd, MARKER, fd, spare=spare, replace=False)
        moving.sync(fd)
    except FileExistsError:  # another process was first: it is one library all the same
        return marker_of(root)
    finally:
        moving.remove(spare, fd)
        os.close(fd)
    return identity


def _read_marker(root: Path) -> str | None:
    with moving.plain_errors(root):
        try:
            with open(root / MARKER, "rb") as file:
                said = msgspec.json.decode(file.read(MAX_MARKER_BYTES))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, IsADirectoryError) as error:
            raise LibraryGone(f"{root / MARKER} cannot be read: {error}. Restore it.") from error
    identity = said.get("library") if isinstance(said, dict) else None
    if not isinstance(identity, str) or not identity:
        raise LibraryGone(f"{root / MARKER} names no library. Restore it from a copy.")
    return identity


def _item(item_id: int | str) -> str:
    name = str(item_id)
    if not _ITEM.fullmatch(name):
        raise UnsafePath(f"{name!r} is no id of an item.")
    return name
