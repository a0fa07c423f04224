"""Power cuts, simulated: what a disk may hold when the power goes out in the middle of something.

A `Recorder` is a VFS of SQLite that passes everything on to real files and writes down, in order,
every change and every sync. `disks_after` replays that record up to any step, and keeps apart what
is durable (as of the last sync of that file) from what was only written. What survives a cut is
the durable content plus any of the rest, torn at sectors and in any order.

Shared memory (the index of the log) is real and not recorded: it does not survive a power cut.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import apsw

SECTOR = 512


class Step(NamedTuple):
    """Something that was done to a file."""

    act: str  # create, write, truncate, sync, delete, delete for good
    file: str
    place: int = 0  # where it was written, or the new size
    data: bytes = b""


# ---------------------------------------------------------------------- recording


class Recorder(apsw.VFS):
    """Writes down what is done. With `cut_at`, the power goes out at that step for real."""

    def __init__(self, name: str, *, cut_at: int | None = None) -> None:
        self.name = name
        self.steps: list[Step] = []
        self.is_out = False
        self._cut_at = cut_at
        self._lock = threading.Lock()
        super().__init__(name, base="")

    def note(self, step: Step) -> None:
        with self._lock:
            self.is_out = self.is_out or len(self.steps) == self._cut_at
            self.refuse()
            self.steps.append(step)

    def refuse(self) -> None:
        if self.is_out:
            raise apsw.IOError("the power is out")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        self.refuse()
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name))
        is_new = not path.exists()
        file = RecordedFile(self, path.name, name, flags)
        if is_new and path.exists():
            self.note(Step("create", path.name))
        return file

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        self.note(Step("delete for good" if syncdir else "delete", Path(name).name))
        super().xDelete(name, syncdir)


class RecordedFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, short: str, name: Any, flags: list[int]) -> None:
        self._recorder = recorder
        self._name = short
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._recorder.refuse()
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._recorder.note(Step("write", self._name, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._recorder.note(Step("truncate", self._name, size))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        # The disk of the machine need not do it: only this record decides what is durable.
        self._recorder.note(Step("sync", self._name))


# ---------------------------------------------------------------------- replaying


@dataclass
class File:
    durable: bytes | None = None  # None: there is no such file
    unsynced: list[Step] = field(default_factory=list)
    exists: bool = False  # as the running system sees it

    def take(self, step: Step) -> None:
        match step.act:
            case "create":
                self.exists = True
                self.unsynced.append(step)
            case "sync":
                self.durable = applied(self.durable or b"", self.unsynced)
                self.unsynced = []
            case "delete":
                self.exists = False
                self.unsynced.append(step)
            case "delete for good":
                self.durable, self.unsynced, self.exists = None, [], False
            case _:
                if not self.exists:  # somebody who is not recorded has made it
                    self.take(Step("create", step.file))
                self.unsynced.append(step)

    def keep_name(self) -> None:
        """The directory was synced: the file is there, or it is not."""
        names = [n for n, step in enumerate(self.unsynced) if step.act in ("create", "delete")]
        if names:
            last = names[-1]
            self.durable = b"" if self.unsynced[last].act == "create" else None
            self.unsynced = self.unsynced[last + 1 :]

    def survivor(self, rng: Random) -> bytes | None:
        """What may be there after the cut. The old file, where a name was not yet synced."""
        begins = [n for n, step in enumerate(self.unsynced) if step.act in ("create", "delete")]
        if begins:
            chosen = rng.choice([None, *begins])
            if chosen is None:
                return self._with(rng, self.durable, self.unsynced[: begins[0]])
            following = [n for n in begins if n > chosen]
            rest = self.unsynced[chosen + 1 : following[0] if following else None]
            is_there = self.unsynced[chosen].act == "create"
            return self._with(rng, b"", rest) if is_there else None
        return self._with(rng, self.durable, self.unsynced)

    def _with(self, rng: Random, content: bytes | None, steps: list[Step]) -> bytes | None:
        if content is None:
            return None
        share = rng.choice([0.0, 1.0, rng.random()])  # none and all are the likeliest cuts
        pieces = [piece for step in steps for piece in torn(step) if rng.random() < share]
        if rng.random() < 0.5:
            rng.shuffle(pieces)
        return applied(content, pieces)


def applied(content: bytes, steps: list[Step]) -> bytes:
    file = bytearray(content)
    for step in steps:
        match step.act:
            case "write":
                file.extend(b"\0" * (step.place - len(file)))
                file[step.place : step.place + len(step.data)] = step.data
            case "truncate":
                file.extend(b"\0" * (step.place - len(file)))
                del file[step.place :]
            case "create" | "delete":
                file.clear()
    return bytes(file)


def torn(step: Step) -> Iterator[Step]:
    """The pieces of a write that reach the disk one without the other."""
    if step.act != "write":
        yield step
        return
    begin, end = step.place, step.place + len(step.data)
    while begin < end:
        stop = min(end, (begin // SECTOR + 1) * SECTOR)
        piece = step.data[begin - step.place : stop - step.place]
        yield Step("write", step.file, begin, piece)
        begin = stop


class Disk:
    """The files of a directory, in the middle of a replay."""

    def __init__(self) -> None:
        self.files: dict[str, File] = {}

    def take(self, step: Step) -> None:
        file = self.files.setdefault(step.file, File())
        # SQLite syncs the directory with the first sync of a new log or journal.
        is_new = any(each.act == "create" for each in file.unsynced)
        if step.act == "sync" and is_new and step.file.endswith(("-wal", "-journal")):
            for each in self.files.values():
                each.keep_name()
        file.take(step)

    def write_survivors(self, directory: Path, rng: Random) -> None:
        for name, file in self.files.items():
            content = file.survivor(rng)
            if content is not None:
                (directory / name).write_bytes(content)


def disks_after(steps: list[Step], *, lies: bool = False) -> Iterator[tuple[int, Disk]]:
    """The disk before the first step, and after each. One that `lies` never really syncs."""
    disk = Disk()
    yield 0, disk
    for number, step in enumerate(steps, start=1):
        if not (lies and step.act == "sync"):
            disk.take(step)
        yield number, disk
