"""The file of a backup: a zip with a manifest, which says what is in it and how to tell that all of
it is there. It appears under its name when it was written, synced and read back, and not before.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any

import msgspec

from headway.errors import HeadwayError

FORMAT = 1
MANIFEST = "manifest.json"
KEYS = "keys.txt"  # only if somebody wanted them in it
MAX_MANIFEST = 64 << 20  # bytes; that of a store with a hundred applications has some thousand
CHUNK = 1 << 20  # bytes
PART, COPY = ".headway-part", ".headway-copy"  # a backup, and a store, that are being written
LEFTOVER = re.compile(rf"\..+(?:{re.escape(PART)}|{re.escape(COPY)})(?:-wal|-shm|-journal)?")
LEFT_S = 86_400.0
LEVEL = 1  # of compression: most of the gain in a third of the time
# How far it has come, of how much.
Tell = Callable[[int, int], None]
# Given how many secrets each key has sealed, by its id: the keys as they stand in their file.
KeysFor = Callable[[Mapping[str, int]], str | None]


class BackupFailed(HeadwayError):
    """A backup cannot be made, read or restored; the message says why, and nothing is half done."""


class Member(msgspec.Struct, frozen=True):
    bytes: int
    sha256: str
    rows: int | None = None  # of a table


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup says of itself."""

    format: int = FORMAT
    headway: str = ""  # its version
    made_at: float
    store: str  # sqlite or postgres
    name: str = ""  # of the store it was made of, for people
    schema: int
    apps: dict[str, int] = {}
    rows: dict[str, int] = {}
    keys: dict[str, int] = {}  # by the id of a key: how many secrets it has sealed
    with_keys: bool = False  # whether the keys themselves are in it
    members: dict[str, Member] = {}
    tables: dict[str, Any] = {}  # of PostgreSQL: columns, and how to make a table nobody knows
    sequences: dict[str, tuple[int, bool]] = {}
    sequence_words: dict[str, tuple[str, str]] = {}  # to make one, and to bind it to its column

    @property
    def total(self) -> int:
        return sum(self.rows.values())


class Writer:
    """Members one after the other, each with its length and checksum."""

    def __init__(self, zip: zipfile.ZipFile) -> None:
        self._zip = zip
        self.members: dict[str, Member] = {}

    def add(self, name: str, pieces: Iterable[bytes], rows: int | None = None) -> Member:
        digest, size = hashlib.sha256(), 0
        with self._zip.open(name, "w", force_zip64=True) as out:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                out.write(piece)
        member = self.members[name] = Member(size, digest.hexdigest(), rows)
        return member

    def counted(self, name: str, rows: int) -> None:
        """Known only when it was written."""
        self.members[name] = msgspec.structs.replace(self.members[name], rows=rows)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A name beside it to write to, which nobody else has. What is there without an error takes the
    name; after an error nothing is left.
    """
    taken = f"{path} is there already; name another file, or remove it"
    if os.path.lexists(path):
        raise BackupFailed(taken)
    partial = draft_beside(path, PART)
    try:
        yield partial
        sync(partial)
        take_name(partial, path)
        sync(path.parent)
    except FileExistsError:
        raise BackupFailed(taken) from None
    except OSError as error:
        raise BackupFailed(f"{path} cannot be written: {error.strerror}; nothing is left of "
                           "it") from error  # fmt: skip
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def draft_beside(path: Path, kind: str) -> Path:
    """An empty file for us alone. What backups that were killed have left there goes."""
    try:
        _remove_leftovers(path.parent)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=kind, dir=path.parent)
    except OSError as error:
        raise BackupFailed(f"{path} cannot be written: {error.strerror}") from error
    os.close(handle)
    return Path(name)


def _remove_leftovers(directory: Path) -> None:
    """Those that are so old that nobody works on them any more."""
    for each in directory.iterdir():
        if LEFTOVER.fullmatch(each.name):
            with contextlib.suppress(OSError):
                if time() - each.lstat().st_mtime > LEFT_S:
                    each.unlink()


def take_name(partial: Path, path: Path) -> None:
    """Unlike a rename alone, never in the place of another file."""
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        if path.exists():  # a file system that knows no links
            raise FileExistsError(errno.EEXIST, "it is there", str(path)) from None
        partial.rename(path)


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write(
    path: Path, fill: Callable[[Writer], Mapping[str, Any]], keys_for: KeysFor, *, made_by: str
) -> Manifest:
    """The whole file. `fill` adds the members, and gives what else the manifest says. Keys are
    asked for after that: those of before may lack one that its secrets need.
    """
    with new_file(path) as partial:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as zip:
            writer = Writer(zip)
            said = fill(writer)
            keys = keys_for(said.get("keys", {}))
            if keys is not None:
                writer.add(KEYS, [keys.encode()])
            manifest = Manifest(
                **{"made_at": time(), **said},
                headway=made_by,
                with_keys=keys is not None,
                members=writer.members,
            )
            text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
            zip.writestr(MANIFEST, text)
        with reading(partial) as written:
            written.check()
    return manifest


class Reader:
    """A backup that was opened: what it says of itself, and its members, checked as they are
    read.
    """

    def __init__(self, path: Path, zip: zipfile.ZipFile) -> None:
        self.path = path
        self._zip = zip
        self.manifest = self._manifest()

    def _manifest(self) -> Manifest:
        try:
            if self._zip.getinfo(MANIFEST).file_size > MAX_MANIFEST:
                raise BackupFailed(f"{self.path} is no backup of Headway: its manifest is too long")
            text = self._zip.read(MANIFEST)
            format = msgspec.json.decode(text, type=dict)["format"]
            if format != FORMAT:
                raise BackupFailed(f"{self.path} has format {format}, and this Headway knows "
                                   f"{FORMAT}; upgrade Headway")  # fmt: skip
            return msgspec.json.decode(text, type=Manifest)
        except (KeyError, EOFError, zipfile.BadZipFile, zlib.error, msgspec.MsgspecError):
            raise BackupFailed(f"{self.path} is no backup of Headway: it has no manifest that can "
                               "be read") from None  # fmt: skip

    def pieces(self, name: str) -> Iterator[bytes]:
        """All of a member; BackupFailed at its end, or before, if it is not what was written."""
        said = self.manifest.members.get(name)
        digest, size = hashlib.sha256(), 0
        try:
            with self._zip.open(name) as file:
                while piece := file.read(CHUNK):
                    size += len(piece)
                    digest.update(piece)
                    yield piece
        except (KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise BackupFailed(f"{name} in {self.path} is damaged ({error}); use another "
                               "backup") from None  # fmt: skip
        except OSError as error:
            raise BackupFailed(f"{self.path} cannot be read: {error.strerror}") from error
        if said is None or (size, digest.hexdigest()) != (said.bytes, said.sha256):
            raise BackupFailed(f"{name} in {self.path} is not what was written; use another backup")

    def keys(self) -> str | None:
        """The keys that are in it, as they stand in their file."""
        if not self.manifest.with_keys:
            return None
        return b"".join(self.pieces(KEYS)).decode("ascii", "replace")

    def check(self, tell: Tell | None = None) -> None:
        """Read all of it. Rows of tables are counted, too."""
        done, total = 0, sum(each.bytes for each in self.manifest.members.values())
        for name, member in self.manifest.members.items():
            rows = 0
            for piece in self.pieces(name):
                rows += piece.count(b"\n") if member.rows is not None else 0
                done += len(piece)
                if tell is not None:
                    tell(done, total)
            if member.rows is not None and rows != member.rows:
                raise BackupFailed(f"{name} in {self.path} has {rows} rows, and not {member.rows}; "
                                   "use another backup")  # fmt: skip


@contextmanager
def reading(path: Path) -> Iterator[Reader]:
    """What goes wrong with the file is told as such; whatever whoever reads it does with it, is
    theirs to tell.
    """
    with _trouble_with(path):
        zip = zipfile.ZipFile(path)
    with zip:
        with _trouble_with(path):
            reader = Reader(path, zip)
        yield reader


@contextmanager
def _trouble_with(path: Path) -> Iterator[None]:
    try:
        yield
    except zipfile.BadZipFile:
        raise BackupFailed(f"{path} is no backup of Headway, or its end is missing; use another "
                           "one") from None  # fmt: skip
    except OSError as error:
        raise BackupFailed(f"{path} cannot be read: {error.strerror}") from error
