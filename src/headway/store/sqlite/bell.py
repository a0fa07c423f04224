"""The bell: a datagram on a local socket tells the engine that something new is in the file.

A ring that nobody hears is lost, and that is fine: whoever starts listening looks into the file
first. A ring that finds the line full is not needed: one is waiting already.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from headway.errors import StoreUnavailable

DEAF_S = 0.02  # how long nobody is tried again; below the time to an engine's second look
LONGEST_PATH = 100  # bytes; the kernel's limit for the address of a socket is 108


def bell_path(path: str) -> str:
    """Beside the file, or in the temporary directory if that path is too long for a socket."""
    beside = f"{Path(path).resolve()}-bell"
    if len(beside.encode()) <= LONGEST_PATH:
        return beside
    digest = hashlib.blake2b(beside.encode(), digest_size=12).hexdigest()
    return str(Path(tempfile.gettempdir()) / f"headway-{digest}-bell")


class Ringer:
    """Rings from any thread, and never waits."""

    def __init__(self, path: str) -> None:
        self._path = bell_path(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._nobody_until = 0.0

    def ring(self) -> None:
        if time.monotonic() < self._nobody_until:
            return
        try:
            self._socket.sendto(b"!", self._path)
        except (FileNotFoundError, ConnectionRefusedError):
            # Nobody listens. An engine that starts now will look into the file twice.
            self._nobody_until = time.monotonic() + DEAF_S
        except OSError:
            pass  # full: somebody has rung already

    def close(self) -> None:
        self._socket.close()


class Listener:
    """A thread that sleeps until somebody rings."""

    def __init__(self, path: str, heard: Callable[[], None]) -> None:
        self._path = bell_path(path)
        self._heard = heard
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path)  # of an engine that is gone: this one holds the lock
            self._socket.bind(self._path)
        except OSError as error:
            self._socket.close()
            raise StoreUnavailable(f"{self._path} cannot be made: {error.strerror}") from error
        self._open = True
        self._thread = threading.Thread(target=self._listen, name="headway-bell", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            self._socket.recv(16)
            if not self._open:
                return
            self._heard()

    def close(self) -> None:
        self._open = False
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)  # wakes it even when its address is gone
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last,
        ):
            last.setblocking(False)
            last.sendto(b"!", self._path)
        self._thread.join(timeout=5)
        self._socket.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
