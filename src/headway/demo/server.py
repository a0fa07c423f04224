"""The server of the demo: `headway serve` in a process of its own, which knows nothing of ours."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headway.demo.town import HOST
from headway.errors import HeadwayError

APP = "headway.demo.jobs:app"
SAYS_WHERE = "Headway is at "
STOP_S = 15.0
# All of the environment that a Python program needs. What else is there could be a setting of
# Headway or of one of its libraries, or lead to another machine.
KEPT = frozenset({
    "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH", "SYSTEMROOT", "TEMP", "TERM", "TMP",
    "TMPDIR", "TZ", "VIRTUAL_ENV",
})  # fmt: skip
KEPT_BEGINNINGS = ("LC_", "PYTHON")


class CannotShow(HeadwayError):
    """The demo cannot begin, or go on; the message says why."""


def settings_text(
    allowed: Iterable[str], library: Path | None, paced: Mapping[str, Mapping[str, Any]]
) -> str:
    """`library`: where videos go, if there are any; `paced`: further upstreams."""
    lines = [
        "[server]", "drain_s = 0", 'log_format = "text"', 'log_level = "warning"',
        "completed_days = 0.05", "failed_days = 0.2", f"outbound_allow = {_list(allowed)}",
        "[feeds]", "parsers = 1",
        "[media]", f"on = {'false' if library is None else 'true'}", "min_free_mb = 1",
    ]  # fmt: skip
    if library is not None:
        lines.append(f"library = {_text(library.as_posix())}")
    for name, values in paced.items():
        lines.append(f"[upstream.{_text(name)}]")
        lines += [f"{key} = {_text(value) if isinstance(value, str) else value}"
                  for key, value in values.items()]  # fmt: skip
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(map(_text, values)) + "]"


def kept_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    return {name: value for name, value in environment.items()
            if name.upper() in KEPT or name.startswith(KEPT_BEGINNINGS)}  # fmt: skip


def check_port(port: int) -> None:
    """Before anything begins: who asks for a page wants to know why there is none."""
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((HOST, port))
        except OSError as error:
            raise CannotShow(
                f"port {port} cannot be used: {error.strerror}; perhaps another server of Headway "
                f"is there. Name another with `headway demo --port {_other(port)}`, or --port 0 "
                "for any that is free"
            ) from error
        except OverflowError:
            raise CannotShow(f"{port} is no port; name one from 1 to 65535") from None


def _other(port: int) -> int:
    return port + 1 if port < 65_535 else 8000


class Server:
    """Its data, its settings and its log are in `directory`."""

    def __init__(self, directory: Path, port: int, settings: str) -> None:
        self.over = threading.Event()  # it has ended, whoever wanted it
        self._log = directory / "server.log"
        file = directory / "headway.toml"
        file.write_text(settings, "utf-8")
        command = [sys.executable, "-m", "headway", "serve", "--port", str(port), "--app", APP,
                   "--data", str(directory / "data"), "--config", str(file)]  # fmt: skip
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env=kept_environment(), cwd=directory,
                start_new_session=True,  # Ctrl-C is for us, who then stop it
            )  # fmt: skip
        threading.Thread(target=self._wait, daemon=True, name="demo-server").start()

    def _wait(self) -> None:
        self._process.wait()
        self.over.set()

    def address(self) -> str:
        """Once it listens."""
        assert self._process.stdout is not None
        said = self._process.stdout.readline()
        if not said.startswith(SAYS_WHERE):
            raise CannotShow(f"the server did not start: {self.last_words()}")
        return said.removeprefix(SAYS_WHERE).strip()

    def last_words(self) -> str:
        lines = self._log.read_text("utf-8", "replace").split("\n")
        return " / ".join(line.strip() for line in lines if line.strip())[-1000:] or "it is silent"

    def stop(self) -> None:
        if not self.over.is_set():
            self._process.send_signal(signal.SIGTERM)
            if not self.over.wait(STOP_S):
                self.kill()
                self.over.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def kill(self) -> None:
        self._process.kill()
