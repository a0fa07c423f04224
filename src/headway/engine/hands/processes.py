"""Programs that jobs run: each in a process group of its own that can really be ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from headway.engine.hands.context import RunningJob, Stopped
from headway.outcomes import Duration, seconds

LAUNCHER = str(Path(__file__).with_name("launcher.py"))
MEMORY_MB = 500
GRACE_S = 5.0  # between asking to end and killing
LOOK_S = 0.25  # how often memory is looked at
KEEP = 64 * 1024  # bytes of output kept from its start, and again from its end
LONGEST_LINE = 4 * 1024 * 1024  # bytes of one that is read as it comes

OnLine = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Completed:
    """How a program ended, and what it said."""

    command: tuple[str, ...]
    code: int
    stdout: str
    stderr: str
    peak_mb: float


class ProgramFailed(Exception):
    """A program ended with another code than 0."""

    def __init__(self, completed: Completed) -> None:
        tail = completed.stderr.strip()[-500:]
        super().__init__(f"{completed.command[0]} ended with code {completed.code}: {tail}")
        self.completed = completed


class ProgramTimeout(TimeoutError):
    """A program took longer than it was given, and was ended."""


class ProgramTooLarge(MemoryError):
    """A program used more memory than it was given, and was ended."""


class Output:
    """What comes through a pipe, in bounded memory: the start and the end of it."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    async def read(self, pipe: asyncio.StreamReader) -> None:
        while chunk := await pipe.read(65_536):
            room = KEEP - len(self._head)
            if room > 0:
                self._head += chunk[:room]
                chunk = chunk[room:]
            self._tail += chunk
            if len(self._tail) > 2 * KEEP:
                self._drop()

    def _drop(self) -> None:
        excess = len(self._tail) - KEEP
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def text(self) -> str:
        self._drop()
        middle = f"\n… {self._dropped} bytes left out …\n".encode() if self._dropped else b""
        return bytes(self._head + middle + self._tail).decode("utf-8", "replace")


class Lines(Output):
    """Hands on each line as it comes; nothing of them is kept."""

    def __init__(self, tell: OnLine) -> None:
        super().__init__()
        self._tell = tell

    async def read(self, pipe: asyncio.StreamReader) -> None:
        rest = bytearray()
        while chunk := await pipe.read(65_536):
            rest += chunk
            *lines, rest = rest.split(b"\n") if b"\n" in chunk else [rest]
            for line in lines:
                self._tell(line.decode("utf-8", "replace"))
            if len(rest) > LONGEST_LINE:
                raise ValueError(f"the program wrote a line of more than {LONGEST_LINE} bytes")
        if rest:
            self._tell(rest.decode("utf-8", "replace"))


class Pipes(asyncio.subprocess.SubprocessStreamProtocol):
    """The pipes of a program, and its end. asyncio's own `wait` waits for the pipes too, which a
    child that the program leaves behind may keep open for ever.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=65_536, loop=loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        super().process_exited()
        if not self.exited.done():
            self.exited.set_result(None)


class Group:
    """A running program and its children."""

    def __init__(self, transport: asyncio.SubprocessTransport, pipes: Pipes) -> None:
        self.transport = transport
        self.exited = pipes.exited
        self.stdin, self.stdout, self.stderr = pipes.stdin, pipes.stdout, pipes.stderr
        self.pid = transport.get_pid()
        self.peak_mb = 0.0
        self._ending: asyncio.Task[None] | None = None

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def end(self) -> asyncio.Task[None]:
        """Ask, wait, kill. Done when the program is gone, and done once, whoever asks."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end())
        return self._ending

    async def _end(self) -> None:
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(self.exited), GRACE_S)
        except TimeoutError:
            self.signal(signal.SIGKILL)
            await self.exited
        self.signal(signal.SIGKILL)  # children that outlived it

    def memory_mb(self) -> float:
        """Of the program and all of its children."""
        total = 0
        try:
            leader = psutil.Process(self.pid)
            for each in [leader, *leader.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    total += each.memory_info().rss
        except psutil.Error:
            return self.peak_mb
        mb = total / 1_000_000
        self.peak_mb = max(self.peak_mb, mb)
        return mb

    async def watch(self, limit_mb: float) -> None:
        """Returns when the program uses more memory than it may."""
        while self.memory_mb() <= limit_mb:
            await asyncio.sleep(LOOK_S)


async def run(
    job: RunningJob,
    command: Sequence[str],
    *,
    timeout: Duration | None = None,
    memory_mb: float = MEMORY_MB,
    check: bool = True,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    on_line: OnLine | None = None,
) -> Completed:
    """Run a program to its end. Raises ProgramFailed (unless `check` is off), ProgramTimeout,
    ProgramTooLarge; cancelling, pausing or timing out the job ends the program first.

    `stdin`: what it reads, such as a secret that is no word of a command. `on_line` has each line
    of its output as it comes, on the hands' loop; if that raises, the program is ended.
    """
    job.check()
    if isinstance(command, str) or not command:
        raise TypeError("a command is a list of words, such as ['ls', '-l']; no shell reads it")
    limit_s = None if timeout is None else seconds(timeout)
    over = asyncio.get_running_loop().create_future()
    job.programs.add(over)
    try:
        # asyncio kills a program whose start is cancelled; it has a right to its grace time, too.
        start = asyncio.ensure_future(_start(command, cwd, env, with_input=stdin is not None))
        cancelled = await _despite_cancels(start)
        group = start.result()
        job.groups.add(group)
        if cancelled is not None:
            await _gone(group)
            group.transport.close()
            job.groups.discard(group)
            raise cancelled
        output = Output() if on_line is None else Lines(on_line)
        completed = await _see_through(job, group, command, limit_s, memory_mb, stdin, output)
    finally:
        job.programs.discard(over)
        over.set_result(None)
    if job.stop is not None:
        raise Stopped(job.stop)
    if check and completed.code != 0:
        raise ProgramFailed(completed)
    return completed


async def _start(
    command: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, *, with_input: bool
) -> Group:
    loop = asyncio.get_running_loop()
    transport, pipes = await loop.subprocess_exec(
        lambda: Pipes(loop), sys.executable, "-I", "-S", LAUNCHER, str(os.getpid()), *command,
        stdin=asyncio.subprocess.PIPE if with_input else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=cwd,
        env=None if env is None else dict(env), start_new_session=True,
    )  # fmt: skip
    return Group(transport, pipes)


async def _see_through(
    job: RunningJob, group: Group, command: Sequence[str], limit_s: float | None, memory_mb: float,
    stdin: bytes | None, out: Output,
) -> Completed:  # fmt: skip
    with contextlib.suppress(psutil.Error):
        job.note_process(group.pid, psutil.Process(group.pid).create_time())
    err = Output()
    assert group.stdout is not None
    assert group.stderr is not None
    if stdin is not None and group.stdin is not None:
        group.stdin.write(stdin)
        group.stdin.close()
    pipes = asyncio.gather(out.read(group.stdout), err.read(group.stderr))
    watch = asyncio.ensure_future(group.watch(memory_mb))
    try:
        if job.stop is not None:  # asked while the program was being started
            raise Stopped(job.stop)
        await asyncio.wait(
            {group.exited, watch, _unreadable(pipes)},
            timeout=limit_s, return_when=asyncio.FIRST_COMPLETED,
        )  # fmt: skip
        if not group.exited.done():
            over, unread = watch.done(), pipes.done() and pipes.exception()
            await _gone(group)
            if job.stop is not None:
                raise Stopped(job.stop)
            if unread:
                raise unread
            raise _too_large(command, memory_mb) if over else _too_late(command, limit_s)
        group.signal(signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(pipes), GRACE_S)
    finally:
        await _clean_up(job, group, watch, pipes)
    code = group.transport.get_returncode() or 0
    return Completed(tuple(command), code, out.text(), err.text(), group.peak_mb)


def _unreadable(pipes: asyncio.Future[tuple[None, None]]) -> asyncio.Future[None]:
    """Done as soon as somebody cannot take what the program says."""
    noticed = asyncio.get_running_loop().create_future()

    def look(read: asyncio.Future[tuple[None, None]]) -> None:
        if not read.cancelled() and read.exception() is not None and not noticed.done():
            noticed.set_result(None)

    pipes.add_done_callback(look)
    return noticed


async def _gone(group: Group) -> None:
    """The program must be gone before the lease is, however often the waiting is cancelled."""
    await _despite_cancels(group.end())


async def _despite_cancels(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait until a task is done, and return the last cancel that came meanwhile."""
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


async def _clean_up(
    job: RunningJob,
    group: Group,
    watch: asyncio.Future[None],
    pipes: asyncio.Future[tuple[None, None]],
) -> None:
    watch.cancel()
    if not group.exited.done():
        await _gone(group)
    pipes.cancel()
    await asyncio.gather(watch, pipes, return_exceptions=True)
    group.transport.close()
    job.groups.discard(group)
    job.note_process(None, None)


def _too_large(command: Sequence[str], memory_mb: float) -> ProgramTooLarge:
    return ProgramTooLarge(f"{command[0]} used more than {memory_mb:g} MB of memory and was ended")


def _too_late(command: Sequence[str], limit_s: float | None) -> ProgramTimeout:
    return ProgramTimeout(f"{command[0]} took longer than {limit_s:g} s and was ended")


def kill_left_over(pid: int, started_at: float) -> None:
    """End what a program of an engine that is gone has left behind, if it is still there."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if os.getsid(process.pid) == pid and process.create_time() >= started_at - 1.0:
                os.kill(process.pid, signal.SIGKILL)
