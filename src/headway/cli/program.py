"""A program that runs under a slot: in a process group of its own, so that all of it can be ended.

While it runs it has the terminal, as if nobody stood between it and the shell.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from time import monotonic, sleep

NOT_FOUND, NOT_EXECUTABLE = 127, 126  # as shells say it
GRACE_S = 5.0  # between asking to end and killing
LOOK_S = 0.05  # how often one looks whether the last of a group is gone


def code_of(error: OSError) -> int:
    """The exit code for a program that could not be started."""
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


class Program:
    """Raises OSError when it cannot be started."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(command, env=dict(environment), process_group=0)
        self.pid = self._process.pid
        self.interrupted = False  # by Ctrl-C, of which nobody but the program has heard
        self._terminal = Terminal()
        if self._terminal.is_whole():
            self._terminal.give(self.pid)

    def signal(self, number: int) -> None:
        """To all of its group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def suspend(self) -> None:
        """Stop with it, and go on with it: nobody would prolong its lease meanwhile."""
        self.signal(signal.SIGTSTP)
        self._stop_here()
        self.signal(signal.SIGCONT)

    def wait(self) -> int:
        """Its exit code, as a shell tells it."""
        try:
            with _wakeups() as next_signal:
                while True:
                    pid, status = os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)
                    if not pid:
                        next_signal()
                    elif os.WIFSTOPPED(status):
                        self._stopped(os.WSTOPSIG(status))
                    else:
                        break
            code = os.waitstatus_to_exitcode(status)
            self.interrupted = self._terminal.given and code == -signal.SIGINT
        finally:
            self._terminal.take_back()
            self._terminal.close()
        self._process.returncode = code  # so that nobody waits for it again
        return code if code >= 0 else 128 - code

    def _stopped(self, by: int) -> None:
        """It wants the terminal, or somebody has suspended it there."""
        wants = by in (signal.SIGTTIN, signal.SIGTTOU)
        if wants and self._terminal.give(self.pid):
            self.signal(signal.SIGCONT)
        elif wants or self._terminal.take_back():
            self._stop_here()
            if self._terminal.give(self.pid) or not wants:
                self.signal(signal.SIGCONT)

    def _stop_here(self) -> None:
        """The whole job, as its shell knows it. Goes on when the shell says so."""
        before = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.killpg(os.getpgrp(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, before)

    def end(self) -> None:
        """Ask, wait, kill: the program and all that it has started in its group."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)  # what is suspended would not hear it
        until = monotonic() + GRACE_S
        while self._is_there() and monotonic() < until:
            sleep(LOOK_S)
        self.signal(signal.SIGKILL)

    def _is_there(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # as somebody else, but there
            return True
        return True


def pass_interrupt_on() -> None:
    """To whoever would have heard Ctrl-C if the program had not had the terminal: us, and the
    script that we were called from, which goes on unless we are seen to end by it.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.killpg(os.getpgrp(), signal.SIGINT)


class Terminal:
    """The one that this process was started from, if it is in the foreground there."""

    def __init__(self) -> None:
        try:
            self._file: int | None = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            self._file = None
        self.given = False

    def is_whole(self) -> bool:
        """Nobody else of a pipeline may want it."""
        return os.isatty(0) and os.isatty(1)

    def give(self, group: int) -> bool:
        if self._file is None:
            return False
        with suppress(OSError):
            if not self.given and os.tcgetpgrp(self._file) != os.getpgrp():
                return False  # it is not ours
            with _undisturbed():
                os.tcsetpgrp(self._file, group)
            self.given = True
        return self.given

    def take_back(self) -> bool:
        if self._file is None or not self.given:
            return False
        with suppress(OSError), _undisturbed():
            os.tcsetpgrp(self._file, os.getpgrp())
        self.given = False
        return True

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def _wakeups() -> Iterator[Callable[[], object]]:
    """Gives a function that waits for the next signal, one from a child included. A signal that
    comes before the wait ends it as well; a blocking `waitpid` would sleep on, and its handler
    would not run until the child ends.
    """
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    before = signal.signal(signal.SIGCHLD, lambda *_: None)
    wakeup = signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    try:
        yield lambda: ours.recv(4096)
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)
        ours.close()
        theirs.close()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Whoever is in the background is stopped when it touches the terminal."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, before)
