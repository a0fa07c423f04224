"""One worker as the server sees it: a process with two pipes, whose every answer has a deadline."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time

import msgspec

from headway.apps.feeds.parsing.errors import (
    FeedTooLarge,
    FeedUnreadable,
    ParserDied,
    ParserOutOfMemory,
    ParserTooSlow,
)
from headway.apps.feeds.parsing.messages import (
    LENGTH,
    OUT_OF_MEMORY,
    READY,
    Answer,
    Wish,
    answer_in,
    framed,
)

MODULE = "headway.apps.feeds.parsing.worker"
CHUNK = 256 * 1024
START_S = 30.0  # on a machine that has much else to do


class WorkerProcess:
    """Not for several threads at once, but for `kill`."""

    def __init__(self, cpu_s: float, memory_bytes: int) -> None:
        # -P: what lies in the current directory is no module of ours.
        command = [sys.executable, "-P", "-m", MODULE, str(os.getpid()), str(cpu_s)]
        self._process = subprocess.Popen(
            [*command, str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_environment(),
            start_new_session=True,  # so that Ctrl-C at a terminal is for the server alone
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._into, self._out_of = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._into, False)
        os.set_blocking(self._out_of, False)
        self.pid = self._process.pid
        self.answered = 0
        self._is_ready = False

    def is_running(self) -> bool:
        return self._process.poll() is None

    def ask(self, wish: Wish, wall_s: float, answer_bytes: int) -> Answer:
        """Its answer. After any error, drop the process: what it says next is no answer."""
        self._wait_until_ready()
        deadline = time.monotonic() + wall_s
        try:
            self._send(framed(wish), deadline)
            (length,) = LENGTH.unpack(self._receive(LENGTH.size, deadline))
            if length > answer_bytes:
                raise FeedTooLarge(f"What is in the feed takes over {answer_bytes:,} bytes.")
            answer = answer_in(self._receive(length, deadline))
        except TimeoutError:
            raise ParserTooSlow(
                f"Reading the feed took over {wall_s:g} s, and was stopped."
            ) from None
        except (BrokenPipeError, EOFError):
            raise self._cause_of_death() from None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise ParserDied("The process that read the feed has answered nonsense.") from None
        self.answered += 1
        return answer

    def kill(self) -> None:
        self._process.kill()

    def bury(self) -> None:
        """Wait for its end, which has been asked for, and close the pipes."""
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _wait_until_ready(self) -> None:
        """How long it takes to start says nothing about a feed."""
        if self._is_ready:
            return
        try:
            self._is_ready = self._receive(len(READY), time.monotonic() + START_S) == READY
        except TimeoutError:
            raise ParserDied(
                f"No process to read feeds has started within {START_S:g} s."
            ) from None
        except EOFError:
            raise self._cause_of_death() from None

    def _send(self, message: bytes, deadline: float) -> None:
        rest = memoryview(message)
        while rest:
            _wait_for(self._into, selectors.EVENT_WRITE, deadline)
            rest = rest[os.write(self._into, rest[:CHUNK]) :]

    def _receive(self, length: int, deadline: float) -> bytearray:
        received = bytearray()
        while len(received) < length:
            _wait_for(self._out_of, selectors.EVENT_READ, deadline)
            chunk = os.read(self._out_of, min(CHUNK, length - len(received)))
            if not chunk:
                raise EOFError
            received += chunk
        return received

    def _cause_of_death(self) -> FeedUnreadable:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:  # it has closed its pipes, and yet goes on
            self._process.kill()
            code = self._process.wait()
        if code == -signal.SIGPROF:
            return ParserTooSlow("Reading the feed took too much time, and was stopped.")
        if code in (OUT_OF_MEMORY, -signal.SIGABRT):  # the latter is how nh3 ends
            return ParserOutOfMemory("Reading the feed took too much memory, and was stopped.")
        return ParserDied(f"The process that read the feed ended unexpectedly (code {code}).")


def _wait_for(pipe: int, event: int, deadline: float) -> None:
    with selectors.PollSelector() as selector:
        selector.register(pipe, event)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise TimeoutError


def _environment() -> dict[str, str]:
    """The way to the same modules, and nothing else: what is secret there is not for a parser."""
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
    }
