"""What the program may do: call public addresses, write into its own directory, run ffmpeg.

It is a seat belt, not a cell. It stops mistakes, and what a hostile page can bring a well-meaning
yt-dlp to do: follow a redirect to the machine's own network, believe a name that changes its
address between two looks, write where a title points to, start a program. Each connection is judged
by the address that is really connected to. Code that runs in this process and wants to get around
it could; nothing here loads such code.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path
from typing import Any

PROGRAMS = ("ffmpeg", "ffprobe")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
RANGES = Path(__file__).resolve().parents[3] / "net" / "ranges.py"
NEVER = frozenset({
    "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system",
    "pty.spawn", "sqlite3.connect", "webbrowser.open",
})  # fmt: skip
CHANGES_A_PATH = (
    "os.chflags", "os.chmod", "os.chown", "os.mkdir", "os.remove", "os.removexattr", "os.rmdir",
    "os.setxattr", "os.truncate", "os.utime",
)  # fmt: skip
CHANGES_TWO_PATHS = ("os.link", "os.rename", "os.symlink")


class Refused(PermissionError):
    """The guard has said no."""


def load_ranges() -> Any:
    """The table of public addresses that the server has, without the server."""
    spec = importlib.util.spec_from_file_location("headway_ranges", RANGES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def found_programs() -> tuple[str, ...]:
    """ffmpeg and ffprobe, by their whole paths, where they are installed."""
    return tuple(os.path.abspath(path) for name in PROGRAMS if (path := shutil.which(name)))


class Guard:
    def __init__(
        self,
        allowed: Iterable[str] = (),
        *,
        directory: str | None = None,
        programs: tuple[str, ...] = (),
    ) -> None:
        ranges = load_ranges()
        self._closed_because = ranges.closed_because
        self._allowed = ranges.Allowed(allowed)
        self._directory = None if directory is None else os.path.realpath(directory)
        self._programs = {os.path.realpath(path) for path in programs}
        self._names: dict[str, set[str]] = {}  # what was looked up, by the address that came
        self._judges: dict[str, Callable[..., None]] = {
            "open": self._judge_opening,
            "socket.connect": self._judge_call,
            "socket.sendto": self._judge_call,
            "socket.sendmsg": self._judge_call,
            "subprocess.Popen": self._judge_program,
            **dict.fromkeys(CHANGES_A_PATH, self._judge_change),
            **dict.fromkeys(CHANGES_TWO_PATHS, self._judge_two_changes),
        }

    def install(self) -> None:
        """From now on, and for good: Python has no way to take a hook off again."""
        look_up = socket.getaddrinfo

        def remembered(host: Any, *more: Any, **options: Any) -> Any:
            found = look_up(host, *more, **options)
            if isinstance(host, str):
                for *_, address in found:
                    self._names.setdefault(str(address[0]), set()).add(host)
            return found

        # The hook sees addresses only; which name led to one is needed where names are allowed.
        socket.getaddrinfo = remembered
        sys.addaudithook(self.judge)

    def judge(self, event: str, args: tuple[Any, ...]) -> None:
        if event in NEVER:
            raise Refused(f"{event} is not allowed here")
        judge = self._judges.get(event)
        if judge is not None:
            judge(*args)

    # ------------------------------------------------------------------ calls

    def _judge_call(self, sock: Any, place: Any, *_: Any) -> None:
        if sock.family not in (socket.AF_INET, socket.AF_INET6):
            raise Refused("only calls over the Internet are allowed")
        if place is None:
            return  # along a connection that was judged when it was made
        host, port = str(place[0]), int(place[1])
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            raise Refused(f"{host!r} is no address") from None
        why = self._closed_because(address)
        if why is None:
            return
        names = {host, *self._names.get(host, ())}
        if not any(self._allowed.covers(name, port, address) for name in names):
            raise Refused(f"{address} is {why}; it is not called unless the operator allows it")

    # ------------------------------------------------------------------ files

    def _judge_opening(self, path: Any, _mode: Any, flags: Any) -> None:
        if isinstance(path, int) or not isinstance(flags, int) or not flags & WRITING:
            return
        self._judge_change(path)

    def _judge_change(self, path: Any, *_: Any) -> None:
        if isinstance(path, int):
            return
        if not self._may_write(os.fsdecode(path)):
            raise Refused("writing is allowed in the working directory only")

    def _judge_two_changes(self, source: Any, target: Any, *_: Any) -> None:
        self._judge_change(source)
        self._judge_change(target)

    def _may_write(self, path: str) -> bool:
        real = os.path.realpath(path)
        if real == os.devnull:
            return True
        inside = self._directory
        return inside is not None and os.path.commonpath((inside, real)) == inside

    # ------------------------------------------------------------------ programs

    def _judge_program(self, executable: Any, args: Any, *_: Any) -> None:
        """ffmpeg, on files of our own: it could fetch addresses by itself, which nobody sees."""
        program = os.path.realpath(os.fsdecode(executable))
        if not os.path.isabs(os.fsdecode(executable)) or program not in self._programs:
            raise Refused(f"{os.path.basename(program)!r} may not be run")
        words = [args] if isinstance(args, (str, bytes)) else list(args)
        texts = [os.fsdecode(word) for word in words]
        for before, word in zip(["", *texts], texts, strict=False):
            is_input = before == "-i"
            if "://" in word or (is_input and not self._is_own_file(word)):
                raise Refused(f"{os.path.basename(program)} may read files of this download only")

    def _is_own_file(self, word: str) -> bool:
        return word.startswith("file:") and self._may_write(word.removeprefix("file:"))
