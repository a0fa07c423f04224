"""Who leads a store: a process somewhere. On one machine it can be seen whether it is gone."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from uuid import uuid4

import msgspec

UNKNOWN = ""
ENDED = "ended"  # and waits for its parent to notice


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
        if self.nobody or not self.was_here:
            return self.nobody
        if not _exists(self.pid):
            return True
        born = _born(self.pid)
        return born == ENDED or (UNKNOWN not in (born, self.born) and born != self.born)


@cache
def this_machine() -> str:
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{started} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return UNKNOWN


def _exists(pid: int) -> bool:
    """Asked by a signal that does nothing. That sees the processes of others, too, which may be
    hidden in /proc (`hidepid`, `ProtectProc=`).
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # it may not be sent signals, so it is there
    return True


def _born(pid: int) -> str:
    """When a process began, ENDED, or UNKNOWN: it cannot be looked at, which says nothing of it."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return UNKNOWN
    state, *rest = text.rpartition(")")[2].split()
    return ENDED if state in "ZX" else rest[18]
