"""A warm process that forks programs of Headway: `python -P template.py FD`; see `forked.py`.

Nearly all of the time that a server needs to start is spent on imports. This process has imported
everything and has no thread of its own, so that a fork is safe. A program that it forks has the
environment, the directory, the arguments and the files that it was ordered with, and runs from its
first line to its exit code as it would in an interpreter of its own.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
import warnings
from typing import Any

# All that a server or a worker imports before it begins.
import headway.api.assembly
import headway.api.logs
import headway.api.serving
import headway.cli
import headway.remote.worker
import headway.store.postgres  # noqa: F401
from headway import apps
from headway.cli import root

LARGEST_ORDER = 1 << 18
FILES = 4  # stdin, stdout, stderr, and where to say how it ended


class Programs:
    """Those that run, each with the file that its end is written into."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)
        self._running: dict[int, tuple[int, int]] = {}  # by the file that tells of their end

    def next_order(self) -> dict[str, Any] | None:
        """In a new process the order for it; in this one None, when there are no more."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is not self._control:
                    self._has_ended(key.fd)
                    continue
                text, files, _, _ = socket.recv_fds(self._control, LARGEST_ORDER, FILES)
                if not text:
                    return None
                if self._fork(files):
                    return dict(json.loads(text))

    def _fork(self, files: list[int]) -> bool:
        pid = os.fork()
        if pid == 0:
            self._forget()
            for number, file in enumerate(files[:3]):
                os.dup2(file, number)
            for file in files:
                os.close(file)
            return True
        end = os.pidfd_open(pid)
        self._running[end] = (pid, files[3])
        self._selector.register(end, selectors.EVENT_READ)
        for file in files[:3]:
            os.close(file)
        self._control.send(str(pid).encode())
        return False

    def _forget(self) -> None:
        self._selector.close()
        self._control.close()
        for end, (_, status) in self._running.items():
            os.close(end)
            os.close(status)

    def _has_ended(self, end: int) -> None:
        self._selector.unregister(end)
        os.close(end)
        pid, status = self._running.pop(end)
        _, how = os.waitpid(pid, 0)
        try:
            os.write(status, str(os.waitstatus_to_exitcode(how)).encode())
        except BrokenPipeError:
            pass  # nobody wants to know any more
        finally:
            os.close(status)


def become(order: dict[str, Any]) -> None:
    """What a new interpreter would have done before the first line of the program."""
    if order["new_session"]:
        os.setsid()
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - open as long as the program runs
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def run(arguments: list[str]) -> int:
    """The words behind `python`; the exit code."""
    sys.orig_argv = [sys.executable, *arguments]  # a server may begin again
    while arguments[0] == "-W":
        warnings.simplefilter(arguments[1])  # type: ignore[arg-type]
        arguments = arguments[2:]
    what, *rest = arguments
    script = what not in ("-m", "-c")
    sys.path.insert(0, os.path.dirname(os.path.abspath(what)) if script else os.getcwd())
    try:
        if script:
            sys.argv = arguments
            runpy.run_path(what, run_name="__main__")
        elif what == "-m":
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        else:
            sys.argv = [what, *rest[1:]]
            exec(rest[0], {"__name__": "__main__"})
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    return 0


def leave(code: int) -> None:
    """As an interpreter ends, but for the memory, which need not be cleared piece by piece."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    apps.all_of_them()  # which imports them
    root._command()  # reading all commands takes longer than most of them
    gc.freeze()  # or the first collection of each program would copy all of it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    order = Programs(control).next_order()
    if order is not None:
        become(order)
        leave(run(order["arguments"]))


if __name__ == "__main__":
    main()
