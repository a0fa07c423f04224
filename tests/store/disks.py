"""A disk that counts what is done to it, and that can be told to fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import apsw


def kind_of(name: str) -> str:
    """`db`, `wal` or `journal`."""
    return next((kind for kind in ("wal", "journal") if name.endswith(f"-{kind}")), "db")


class Disk(apsw.VFS):
    """The real one, apart from what a test sets here. Each has its own name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done: Counter[tuple[str, str]] = Counter()  # (what, kind of file)
        self.before: Callable[[str, str], None] = lambda _what, _kind: None
        self.read_only = False
        super().__init__(name, base="")

    def step(self, what: str, kind: str) -> None:
        self.before(what, kind)
        self.done[what, kind] += 1

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        if self.read_only and flags[0] & apsw.SQLITE_OPEN_READWRITE:
            flags[0] &= ~(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            flags[0] |= apsw.SQLITE_OPEN_READONLY
        file = DiskFile(self, name, flags)
        self.step("open", file.kind)
        return file


class DiskFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self.kind = kind_of(name.filename() if isinstance(name, apsw.URIFilename) else str(name))
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.step("read", self.kind)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self._disk.step("write", self.kind)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.step("sync", self.kind)
        super().xSync(flags)

    def xClose(self) -> None:  # noqa: N802
        self._disk.step("close", self.kind)
        super().xClose()


class Fault:
    """From the moment a budget is used up, every such step fails; until it is mended."""

    def __init__(
        self, disk: Disk, error: type[Exception], what: str, *kinds: str, budget: int = 0
    ) -> None:
        self._error, self._what, self._kinds = error, what, kinds or ("db", "wal", "journal")
        self._disk, self.budget = disk, budget
        self.hit = False
        disk.before = self

    def __call__(self, what: str, kind: str) -> None:
        if what == self._what and kind in self._kinds:
            self.budget -= 1
            if self.budget < 0:
                self.hit = True
                raise self._error("as the test wants it")

    def mend(self) -> None:
        self._disk.before = lambda _what, _kind: None
