"""The one worker process of a product: started, watched, and ended with all that it started."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from bench.peers import recording, surroundings

POLL_S = 0.005
STALL_S = 12.0
GRACE_S = 1.0
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


def adopt_orphans() -> None:
    """What a killed worker leaves behind becomes our child, to be ended and to be counted."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


class WorkerProcess:
    def __init__(self, command: list[str], records: Path) -> None:
        self.records = records
        self.command = command
        self.log = surroundings.directory() / "worker.log"

    def __enter__(self) -> WorkerProcess:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self.command,
                env=os.environ | {surroundings.RECORDS: str(self.records)},
                cwd=surroundings.directory(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(GRACE_S)
        self._signal(signal.SIGKILL)
        self.process.wait()
        _end_children()

    def _signal(self, number: signal.Signals) -> None:
        # The session is the worker's own, so the group holds nobody else.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait_for_records(self, count: int, limit_s: float) -> bool:
        """Until so many are there. False: too late, no progress, or the worker has ended."""
        start = moved_at = time.monotonic()
        last = -1
        while (there := recording.count(self.records)) < count:
            now = time.monotonic()
            if there != last:
                last, moved_at = there, now
            late = now - start > limit_s or now - moved_at > STALL_S
            if late or self.process.poll() is not None:
                return False
            time.sleep(POLL_S)
        return True

    def complaint(self) -> str:
        """The end of what it wrote, for a report of its failure."""
        text = self.log.read_text("utf-8", errors="replace").strip()
        return " ".join(text.splitlines()[-1:])[-300:]


def _end_children() -> None:
    """Those that left the worker's session and are ours by adoption."""
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if children.exists():
        for pid in children.read_text("ascii").split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
