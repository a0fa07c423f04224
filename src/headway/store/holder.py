"""Who leads a store: a process somewhere. On one machine it can be seen whether it is gone."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from uuid import uuid4

import msgspec

UNKNOWN = ""


class Holder(msgspec.Struct, frozen=True):
    """A process that has, or had, the lead."""

    id: str = ""  # another one for each time that somebody wants to lead
    url: str = ""  # where its server is, for the other servers; empty: it has none
    host: str = ""
    pid: int = 0
    machine: str = UNKNOWN  # one start of one machine, and whose processes can be seen there
    born: str = UNKNOWN  # when the process began: its number may have been given anew

    @classmethod
    def here(cls, url: str = "") -> Holder:
        pid = os.getpid()
        return cls(uuid4().hex, url, socket.gethostname(), pid, this_machine(), _born(pid))

    @classmethod
    def parse(cls, text: str) -> Holder:
        """Nobody, if the text says nothing, or what another version says differently."""
        try:
            return msgspec.json.decode(text, type=cls) if text else cls()
        except msgspec.MsgspecError:
            return cls(id=UNKNOWN, host="another version of Headway", pid=-1)

    def __str__(self) -> str:
        if self.nobody:
            return ""
        where = f" at {self.url}" if self.url else ""
        return f"process {self.pid} on {self.host}{where}"

    def text(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def nobody(self) -> bool:
        return not self.pid

    @property
    def was_here(self) -> bool:
        return self.nobody or (self.machine != UNKNOWN and self.machine == this_machine())

    @property
    def is_gone(self) -> bool:
        """Whether it has certainly ended. One that is stopped, or elsewhere, may go on."""
        return self.nobody or (self.was_here and _born(self.pid) != self.born)


@cache
def this_machine() -> str:
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{started} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return UNKNOWN


def _born(pid: int) -> str:
    """Empty: there is no such process, or it has ended and waits for its parent to notice."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return UNKNOWN
    state, *rest = text.rpartition(")")[2].split()
    return UNKNOWN if state in "ZX" else rest[18]
