"""One engine for each file. The lock goes with the process, however it ends."""

from __future__ import annotations

import fcntl
import os

from headway.errors import EngineRunning, StoreReadOnly


class EngineLock:
    def __init__(self, path: str) -> None:
        self._path = f"{path}-engine"
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreReadOnly(f"{self._path} cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 32, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            raise EngineRunning(
                f"an engine runs on {path} already (process {holder or 'unknown'}); "
                "stop it first, or only enqueue here"
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        os.close(self._file)
