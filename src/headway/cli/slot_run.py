"""`headway slot run`: wait for a slot, run a program under it, and give it back."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headway.cli.client import CommandFailed, over_http
from headway.cli.printing import plain
from headway.cli.program import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    Program,
    code_of,
    pass_interrupt_on,
)
from headway.cli.times import ago
from headway.cli.where import Where
from headway.core import Refused
from headway.errors import HeadwayError, SlotLost, StoreUnavailable
from headway.outcomes import Fail
from headway.remote.client import Client
from headway.remote.slot_protocol import POLL_S, Answer, place, trouble
from headway.remote.slots import RemoteSlot, wish_body

NOT_NOW = 75  # EX_TEMPFAIL: nothing is wrong, but it did not work this time
LIVE_POLL_S = 1.0  # where somebody looks on
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run_under(
    where: Where,
    command: Sequence[str],
    wish: dict[str, Any],
    *,
    timeout_s: float | None,
    statuses: Mapping[int, int],
    kills: bool,
    quiet: bool,
) -> int:
    """The exit code. `statuses`: what exit codes say of the upstream. `kills`: the command does not
    outlive its slot.
    """
    url = server_of(where)
    _check_there(command)
    body = wish_body(**{**wish, "holder": wish["holder"] or _holder(command)})
    client = Client(url, where.token)
    try:
        with _own_words():
            holding = Holding(client, body, timeout_s, StatusLine(place(body), quiet), kills)
            code = holding.run(command, statuses)
    finally:
        client.close()
    if holding.interrupted:
        pass_interrupt_on()
    return code


def server_of(where: Where) -> str:
    """Slots are held at a server that runs: the store alone cannot wait or renew."""
    if where.server is not None:
        asked = over_http(where.server, where.token)
        asked.close()
        return asked.name
    running = where.running()
    if running is None:
        raise CommandFailed(
            f"no server runs on {where.name}, and a slot is held at one; start it with `headway "
            "serve`, or name one with --server"
        )
    return running.url


def _holder(command: Sequence[str]) -> str:
    """Only the name of the program: its arguments may be secret."""
    return f"{Path(command[0]).name} on {socket.gethostname()}, process {os.getpid()}"


def _check_there(command: Sequence[str]) -> None:
    """Nobody waits in line to find that there is nothing to run."""
    name = command[0]
    if shutil.which(name) is None:
        there = os.sep in name and Path(name).exists()
        why = "cannot be executed" if there else "is not there"
        print(f"error: {plain(name)} {why}", file=sys.stderr)
        sys.exit(NOT_EXECUTABLE if there else NOT_FOUND)


@contextmanager
def _own_words() -> Iterator[None]:
    """What happens to a slot is said here, and need not be logged as well."""
    logger = logging.getLogger("headway.slots")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


class StatusLine:
    """Where one stands, on one line of a terminal. Elsewhere only what goes wrong is said."""

    def __init__(self, where: str, quiet: bool) -> None:
        self.live = not quiet and sys.stderr.isatty()
        self._where = where
        self._quiet = quiet
        self._troubled = False

    def heard(self, said: Answer | HeadwayError) -> None:
        if isinstance(said, Answer):
            self._troubled = False
            self._show(f"waiting for a slot at {self._where}{place_words(said)}")
        elif not self._troubled:
            self._troubled = True
            self.say(f"{trouble(said)}; trying again until it is back")

    def _show(self, text: str) -> None:
        if self.live:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"\r{plain(text)[: width - 1]}\x1b[K")
            sys.stderr.flush()

    def clear(self) -> None:
        if self.live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def say(self, text: str) -> None:
        if not self._quiet:
            self.clear()
            print(f"headway: {plain(text)}", file=sys.stderr, flush=True)


def place_words(answer: Answer) -> str:
    """`: place 3, should start in 12 s (full)`."""
    said = []
    if answer.position is not None:
        said.append(f"place {answer.position}")
    at = ago(answer.eta or answer.opens_at)
    if at:
        said.append(f"should start {at if at.startswith('in ') else 'soon'}")
    why = f" ({answer.wait_reason})" if answer.wait_reason else ""
    return f": {', '.join(said)}{why}" if said else why


class Told(BaseException):
    """A signal has come, and there is no program to hand it to."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Signals:
    """What becomes of signals: they are kept, end the waiting, or are the program's."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._act: Callable[[int], object] = self._kept.append

    @contextmanager
    def caught(self) -> Iterator[None]:
        before = {each: signal.getsignal(each) for each in (*FORWARDED, signal.SIGTSTP)}
        caught = [each for each, handler in before.items() if handler != signal.SIG_IGN]
        for each in caught:
            if each != signal.SIGTSTP:
                signal.signal(each, lambda number, _: self._act(number))
        try:
            yield
        finally:
            for each in caught:
                signal.signal(each, before[each] or signal.SIG_DFL)

    def keep(self) -> None:
        """For a moment in which nothing may be left half done."""
        self._act = self._kept.append

    def stop(self) -> None:
        """Whoever waits is to leave."""
        self._act = _tell
        if self._kept:
            _tell(self._kept.pop())

    def hand_to(self, program: Program) -> None:
        self._act = program.signal
        for number in self._kept:
            program.signal(number)
        self._kept.clear()
        if signal.getsignal(signal.SIGTSTP) != signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, lambda _number, _frame: program.suspend())


def _tell(number: int) -> None:
    raise Told(number)


class Holding:
    """One slot and the program under it."""

    def __init__(
        self, client: Client, wish: Mapping[str, Any], timeout_s: float | None,
        status: StatusLine, kills: bool,
    ) -> None:  # fmt: skip
        self._status = status
        self._kills = kills
        self._signals = Signals()
        self._program: Program | None = None
        self.interrupted = False
        self._slot = RemoteSlot(
            client, wish, timeout_s, on_lost=self._lost, heard=self._heard,
            poll_s=LIVE_POLL_S if status.live else POLL_S,
        )  # fmt: skip

    def run(self, command: Sequence[str], statuses: Mapping[int, int]) -> int:
        """The exit code."""
        with self._signals.caught():
            try:
                code = self._hold(command, statuses)
            except Told as told:
                code = 128 + told.number
            except (TimeoutError, Refused, StoreUnavailable, SlotLost) as error:
                self._status.clear()
                print(f"error: {plain(error)}", file=sys.stderr)
                code = NOT_NOW
            finally:
                self._status.clear()
        return code

    def _hold(self, command: Sequence[str], statuses: Mapping[int, int]) -> int:
        code = 0
        try:
            with self._slot:
                code = self._run(command)
                self._signals.stop()
                if code in statuses:
                    self._slot.report(statuses[code])
                elif code:
                    raise Fail(f"exit code {code}")
        except Fail:
            pass  # so it was given back
        except SlotLost:
            if not self._slot.lost.is_set():
                raise  # it was never held
        return NOT_NOW if self._slot.lost.is_set() and self._kills else code

    def _run(self, command: Sequence[str]) -> int:
        self._status.clear()
        self._signals.stop()  # a signal may have come with the grant
        self._signals.keep()
        slot = self._slot
        about = {"ID": slot.id, "FENCE": slot.fence, "UPSTREAM": slot.upstream or ""}
        told = {f"HEADWAY_SLOT_{name}": str(value) for name, value in about.items()}
        try:
            program = Program(command, {**os.environ, **told})
        except OSError as error:
            print(f"error: {plain(command[0])}: {error.strerror}", file=sys.stderr)
            return code_of(error)
        self._program = program
        self._signals.hand_to(program)
        try:
            if slot.lost.is_set() and self._kills:
                program.end()  # lost before there was anything to end
            return program.wait()
        finally:
            self.interrupted = program.interrupted
            self._program = None
            self._signals.keep()

    # ------------------------------------------------------------------ what happens meanwhile

    def _heard(self, said: Answer | HeadwayError) -> None:
        self._signals.stop()  # from now on there is a line to leave
        self._status.heard(said)

    def _lost(self) -> None:
        """In the thread that renews it."""
        program = self._program
        if program is None:
            self._status.say("the slot was lost before it could be given back")
        elif self._kills:
            self._status.say("the slot is lost, so the command is ended")
            program.end()
        else:
            self._status.say("the slot is lost; the command goes on without it")
