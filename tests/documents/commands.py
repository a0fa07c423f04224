"""The commands of the documents: `headway`, `python` and some others, as a shell finds them.

A shell starts `shim.py`, which asks here. What runs for a moment is forked from the template of
all tests; what runs until it is told stays for the rest of the document, as in a terminal beside.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import tomllib
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.documents.blocks import ROOT
from tests.documents.parsing import misunderstood, no_such_route
from tests.forked import Forked

SHIM = Path(__file__).with_name("shim.py")
START = f"{sys.executable} -I -S {SHIM}"
LARGEST = 1 << 18
ASKED = ("headway", "python", "pip", "make", "celery")
# Anything else on the Internet is answered on the spot, with nothing.
WEB = {
    "wget": """#!/bin/sh
exit 0
""",
    "ssh": """#!/bin/sh
shift
exec "$@"
""",
    "curl": """#!/bin/sh
test -z "$HEADWAY_DOCUMENT_PARSES" || exec {shim} curl "$@"
case "$*" in
  *https://*) exit 0 ;;
  *-N*|*-sN*) timeout 1 {curl} "$@" || test $? = 124 ;;
  *) exec {curl} "$@" ;;
esac
""",
}


@dataclass
class Asked:
    """One command, and the files that it reads and writes."""

    command: str
    arguments: list[str]
    cwd: str
    environment: dict[str, str]
    files: list[int]

    def say(self, text: str, to: int = 1) -> None:
        os.write(self.files[to], text.encode())

    def fork(self, arguments: Sequence[str], *, new_session: bool = False) -> Forked:
        stdin, stdout, stderr = self.files
        return Forked(
            arguments, stdin=stdin, stdout=stdout, stderr=stderr,
            environment=self.environment, cwd=self.cwd, new_session=new_session,
        )  # fmt: skip


Serve = Callable[[list[str]], str]


class Commands:
    """`serve` starts the server of the document with these options, and tells its address."""

    def __init__(self, directory: Path, serve: Serve) -> None:
        self.programs = directory / "programs"
        self.programs.mkdir()
        for name in ASKED:
            self._install(name, f'#!/bin/sh\nexec {START} {name} "$@"\n')
        for name, text in WEB.items():
            self._install(name, text.format(curl=shutil.which("curl") or "false", shim=START))
        self._serve = serve
        self._beside: list[Forked] = []
        self._closing = threading.Event()
        self._hearing: list[threading.Thread] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.address = str(directory / "socket")
        self._listener.bind(self.address)
        self._listener.listen(20)
        threading.Thread(target=self._accept, daemon=True).start()

    def _install(self, name: str, text: str) -> None:
        program = self.programs / name
        program.write_text(text)
        program.chmod(0o755)

    def close(self) -> list[int]:
        """How those ended that should have run until now."""
        self._closing.set()
        self._listener.close()
        for each in self._hearing:
            each.join(30)
        early = [code for each in self._beside if (code := each.poll())]
        for each in self._beside:
            with suppress(ProcessLookupError):  # and what it has started
                os.killpg(each.pid, signal.SIGKILL)
        for each in self._beside:
            each.wait(30)
        return early

    # ------------------------------------------------------------------ being asked

    def _accept(self) -> None:
        while True:
            try:
                asking, _ = self._listener.accept()
            except OSError:
                return
            hearing = threading.Thread(target=self._hear, args=(asking,), daemon=True)
            self._hearing.append(hearing)
            hearing.start()

    def _hear(self, asking: socket.socket) -> None:
        with asking:
            text, files, _, _ = socket.recv_fds(asking, LARGEST, 3)
            order: dict[str, Any] = json.loads(text)
            asked = Asked(**order, files=files)
            try:
                code = self._do(asked, asking)
            except Exception as error:
                asked.say(f"{asked.command}: {error!r}\n", to=2)
                code = 1
            finally:
                for each in files:
                    os.close(each)
            with suppress(OSError):
                asking.send(str(code).encode())

    def _do(self, asked: Asked, asking: socket.socket) -> int:
        if asked.command == "pip":
            return _complain(asked, no_such_package(asked.arguments))
        if asked.command == "make":
            return _complain(asked, no_such_target(asked.arguments))
        if asked.command == "curl":
            return _complain(asked, no_such_route(asked.arguments, _paths(self._serve([]))))
        if asked.command == "python":
            return self._wait(asked.fork(asked.arguments), asking)
        if asked.command == "celery":
            return self._leave(asked, ["-m", "celery", *asked.arguments])
        first = asked.arguments[0] if asked.arguments else ""
        # tests/demo shows that the demo runs; here it would be one more world beside all others.
        if "HEADWAY_DOCUMENT_PARSES" in asked.environment or first == "demo":
            return _complain(asked, misunderstood(asked.arguments))
        if first == "serve":
            asked.say(f"Headway is at {self._serve(asked.arguments[1:])}\n")
            return 0
        words = ["-m", "headway", *asked.arguments]
        if first == "worker" or "--follow" in asked.arguments:
            return self._leave(asked, words)
        return self._wait(asked.fork(words), asking)

    def _leave(self, asked: Asked, arguments: list[str]) -> int:
        """Beside, for the rest of the document."""
        self._beside.append(asked.fork(arguments, new_session=True))
        return 0

    def _wait(self, program: Forked, asking: socket.socket) -> int:
        """Its end, or that of the shell that asked for it."""
        asking.settimeout(0.02)
        while True:
            with suppress(subprocess.TimeoutExpired):
                code = program.wait(0.02)
                return code if code >= 0 else 128 - code
            with suppress(TimeoutError):
                if self._closing.is_set() or not asking.recv(1):
                    program.kill()


_known_paths: dict[str, Any] = {}


def _paths(server: str) -> dict[str, Any]:
    """Of the API, as the document of a server has them. Writing that takes the server a second."""
    if not _known_paths:
        with urllib.request.urlopen(f"{server}/openapi.json", timeout=30) as answer:
            _known_paths.update(json.load(answer)["paths"])
    return _known_paths


def _complain(asked: Asked, complaint: str) -> int:
    if complaint:
        asked.say(complaint + "\n", to=2)
    return 1 if complaint else 0


# ---------------------------------------------------------------------- what must be there


@cache
def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def no_such_package(arguments: Sequence[str]) -> str:
    """Of `pip install 'headway[postgres]'`: whether there are such extras."""
    for word in arguments:
        named = re.fullmatch(r"headway(?:\[([\w,-]+)\])?", word)
        for extra in (named.group(1) or "").split(",") if named else ():
            if extra and extra not in _project()["optional-dependencies"]:
                return f"pip {' '.join(arguments)}: there is no extra {extra}"
    return "" if arguments[:1] == ["install"] else f"pip {' '.join(arguments)}: nobody knows it"


def no_such_target(arguments: Sequence[str]) -> str:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    wrong = [word for word in arguments if "=" not in word and word not in targets]
    return f"make: there is no target {', '.join(wrong)}" if wrong else ""
