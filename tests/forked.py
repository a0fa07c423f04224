"""Programs of Headway in processes of their own, which begin at once; `template.py` forks them."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

TEMPLATE = Path(__file__).with_name("template.py")


class Forked:
    """`python ARGUMENTS`: `-m MODULE`, `-c TEXT` or a file, and before it any `-W`. It can be
    handled like a `Popen`. Its files are numbers, and the caller's to close.
    """

    def __init__(
        self, arguments: Sequence[str], *, stdin: int, stdout: int, stderr: int,
        environment: Mapping[str, str], cwd: Path | str, new_session: bool = False,
    ) -> None:  # fmt: skip
        self.args = tuple(arguments)
        self.returncode: int | None = None
        order = {"arguments": [*arguments], "environment": dict(environment), "cwd": str(cwd),
                 "new_session": new_session}  # fmt: skip
        self._end, status = os.pipe()
        try:
            self.pid = _template().fork(order, [stdin, stdout, stderr, status])
        except BaseException:
            os.close(self._end)
            raise
        finally:
            os.close(status)

    def poll(self) -> int | None:
        return self.returncode if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def _has_ended(self, within_s: float | None) -> bool:
        if self.returncode is None and select.select([self._end], [], [], within_s)[0]:
            said = os.read(self._end, 100)
            assert said, "the template is gone, and nobody knows how its programs end"
            os.close(self._end)
            self.returncode = int(said)
        return self.returncode is not None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class _Template:
    def __init__(self) -> None:
        self._control, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(TEMPLATE), str(its.fileno())],
                stdin=subprocess.DEVNULL, pass_fds=[its.fileno()], start_new_session=True,
            )  # fmt: skip

    def fork(self, order: Mapping[str, object], files: list[int]) -> int:
        """The number of the new process."""
        said = b""
        with self._one_at_a_time, suppress(ConnectionError):
            socket.send_fds(self._control, [json.dumps(order).encode()], files)
            said = self._control.recv(100)
        if not said:
            raise RuntimeError("the template of all programs has ended; see what it printed")
        return int(said)

    def close(self) -> None:
        self._control.close()
        self._process.wait(60)


@cache
def _template() -> _Template:
    """One for all tests of this process."""
    template = _Template()
    atexit.register(template.close)
    return template
