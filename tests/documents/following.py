"""Following a document: block by block, in a directory of its own, with a server of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from headway.api.config import read as read_config
from headway.apps.alerts.settings import alert_settings
from headway.apps.channels.declared import declared_channels
from headway.apps.feeds.settings import feed_settings
from headway.apps.media.settings import media_settings
from headway.engine.settings import Settings
from headway.simulation.reading import load_named, models_named
from tests.documents.blocks import Block
from tests.documents.commands import Commands
from tests.postgres import _free_port, in_memory, shared_postgres
from tests.servers import Server

SHOP = Path(__file__).parent.parent / "cli" / "shop.py"
PROJECTS = ("shop", "mysite")  # which the documents take for granted, with an app in `jobs.py`
LONGEST_S = 60.0
LOOK_S = 0.05
HERE = re.compile(r"(?:localhost|127\.0\.0\.1|queue\.example):(8000|9000)\b")
SAYS = re.compile(r"^ *print\(.*\)  # (.+)$", re.MULTILINE)
ASKS = re.compile(r"\b(headway|curl)\b|127\.0\.0\.1")  # and so needs a server
DSN = "postgresql://…"
BROKER = "redis://127.0.0.1:6379/0"


class Own(Server):
    """`headway serve` in the directory of the document, with the options that it names."""

    options: tuple[str, ...] = ()

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "headway", "serve", "--port", str(self.port), *self.options]


class Following:
    """One document. What a block leaves behind is there for the next one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "here"
        for project in PROJECTS:
            (self.directory / project).mkdir(parents=True)
            shutil.copy(SHOP, self.directory / project / "jobs.py")
        self._ports = {"8000": _free_port(), "9000": _free_port()}
        self._server = Own(self.directory)
        self._server.log = directory / "here" / "headway.log"
        self._server.port = self._ports["8000"]
        self._names: dict[str, Any] = {"__name__": "example"}
        self._shell_names = ""
        self._shells: list[subprocess.Popen[bytes]] = []
        self._dsn = ""
        self._redis: Any = None
        self._commands = Commands(directory, self._serve)

    def close(self) -> None:
        for shell in self._shells:  # and what it has left in the background
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        early = self._commands.close()
        self._server.close()
        if self._redis is not None:
            self._redis.kill()
        assert not early, f"a program that runs until it is told has ended: {early}"

    # ------------------------------------------------------------------ each kind of block

    def follow(self, block: Block) -> None:
        text = self._real(block.text)
        if block.file is not None:
            file = self.directory / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if block.language == "text" or "not run" in block.marks:
            return
        kinds: dict[str, Callable[[Block, str], None]] = {
            "python": self._python, "sh": self._sh, "console": self._console,
            "toml": self._toml, "json": self._json, "sql": self._sql,
        }  # fmt: skip
        kinds[block.language](block, text)

    def _python(self, block: Block, text: str) -> None:
        compiled = compile(text, block.place, "exec")
        if "needs" in block.marks and find_spec(block.marks["needs"]) is None:
            return
        if "before" in block.marks:
            self._run(block, "true")
        elif "127.0.0.1" in text:
            self._started()
        if "continuation" not in block.more:
            self._names = {"__name__": "example"}
        out = io.StringIO()
        with (
            self._inside("DATABASE_URL" in text or self._dsn != ""),
            contextlib.redirect_stdout(out),
        ):
            exec(compiled, self._names)
        printed, said = out.getvalue().splitlines(), SAYS.findall(block.text)
        assert len(printed) == len(said), f"it prints {printed}, and is said to print {said}"
        for line, comment in zip(printed, said, strict=True):
            assert comment.startswith(line), f"prints {line!r}, but is said to print {comment!r}"

    def _sh(self, block: Block, text: str) -> None:
        self._run(block, text)

    def _console(self, block: Block, text: str) -> None:
        """What stands behind a `$` is typed, the rest is what comes back; … is anything."""
        typed, shown, more = [], [], False
        for line in text.splitlines():
            if line.startswith("$ ") or more:
                typed.append(line.removeprefix("$ "))
                more = line.endswith("\\")
            else:
                shown.append(line)
        printed = self._run(block, "\n".join(typed))
        if shown:
            wanted = re.escape("".join(" ".join(shown).split())).replace("…", ".*")
            assert re.fullmatch(wanted, "".join(printed.split())), f"prints\n{printed}"

    def _toml(self, block: Block, text: str) -> None:
        file = self.directory / "settings-of-a-block.toml"
        file.write_text(text, encoding="utf-8")
        tables = tomllib.loads(text)
        if "project" in tables:
            return
        if "for" in block.marks:
            (load_named if "tenant" in tables else models_named)(str(file))
            return
        read_config(str(file), {})
        gates = Settings()
        gates.foreign.update(("server", "alerts", "channel", "feeds", "media"))
        gates.read_file(str(file))
        declared_channels(str(file), {"PROVIDER_KEY": "sk-example"})
        feed_settings(str(file), {})
        media_settings(str(file), {})
        alert_settings(str(file), {})

    def _json(self, block: Block, text: str) -> None:
        json.loads(text)

    def _sql(self, block: Block, text: str) -> None:
        import psycopg  # noqa: PLC0415 - few documents need it

        from headway import App  # noqa: PLC0415

        app = App(self._database())
        app.store.settings()  # makes the schema
        app.close()
        with psycopg.connect(self._database()) as session:
            session.execute(text.encode())

    # ------------------------------------------------------------------ a shell

    def _run(self, block: Block, text: str) -> str:
        """What it prints; it must end well."""
        parses = "only parsed" in block.marks
        before = self._real(block.marks.get("before", ""))
        if not parses and ASKS.search(before + text):
            self._started()
        script = f"set -e\n{self._shell_names}\n{before}\n:\n{text}\nexport -p > .names\n"
        (self.directory / ".block").write_text(script, encoding="utf-8")
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            shell = subprocess.Popen(
                ["sh", ".block"], cwd=self.directory, env=self._environment(parses),
                stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
            self._shells.append(shell)
            code = self._end(shell, self._real(block.marks.get("until", "")))
            out.seek(0)
            printed = self._shown(out.read())
        assert code == 0, f"{block.place} ends with {code}:\n{printed}"
        names = self.directory / ".names"
        self._shell_names = names.read_text("utf-8") if names.exists() else self._shell_names
        return printed.strip()

    def _end(self, shell: subprocess.Popen[bytes], until: str) -> int:
        if not until:
            return shell.wait(LONGEST_S)
        end = monotonic() + LONGEST_S
        while monotonic() < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                shell.wait(LOOK_S)
                raise AssertionError("it should run for ever, and has ended")
            there = subprocess.run(
                ["sh", "-c", until], cwd=self.directory, env=self._environment(False), check=False,
                capture_output=True,
            )  # fmt: skip
            if there.returncode == 0:
                return 0
        raise AssertionError(f"this never was so: {until}")

    def _environment(self, parses: bool) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("HEADWAY_", "QUEUE_"))}  # fmt: skip
        more = {"HEADWAY_DOCUMENT_PARSES": "yes"} if parses else {}
        return {
            **kept, **more,
            "PATH": f"{self._commands.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HEADWAY_DOCUMENT_SOCKET": self._commands.address,
            "USER": "ann",
        }  # fmt: skip

    # ------------------------------------------------------------------ what is real here

    def _real(self, text: str) -> str:
        text = HERE.sub(lambda found: f"127.0.0.1:{self._ports[found.group(1)]}", text)
        text = re.sub(r"(--port )(8000|9000)\b", lambda f: f"{f[1]}{self._ports[f[2]]}", text)
        text = text.replace(BROKER, self._broker()) if BROKER in text else text
        return text.replace(DSN, self._database()) if DSN in text else text

    def _shown(self, text: str) -> str:
        for name, port in self._ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{name}")
        return text

    def _database(self) -> str:
        if not self._dsn:
            self._dsn = shared_postgres().new_database()
        return self._dsn

    def _broker(self) -> str:
        if self._redis is None:
            from tests.celery.kit import Redis  # noqa: PLC0415 - few documents need it

            self._redis = Redis(self.directory)
            self._redis.start()
        return str(self._redis.url)

    def _started(self) -> None:
        if not self._server.is_running:
            self._server.start()

    def _serve(self, options: list[str]) -> str:
        """A server that runs already is started again if it is to be another one."""
        wanted = tuple(_without(("--port", "--host", "--advertise"), options))
        if self._server.is_running and self._server.options != wanted:
            self._server.stop()
        self._server.options = wanted
        self._started()
        return self._server.url

    @contextmanager
    def _inside(self, on_postgres: bool) -> Iterator[None]:
        """In its directory, whose modules can be imported."""
        known = set(sys.modules)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.directory)
            patch.syspath_prepend(str(self.directory))
            if on_postgres:
                patch.setenv("DATABASE_URL", self._database())
            try:
                yield
            finally:
                for name in set(sys.modules) - known:
                    file = getattr(sys.modules[name], "__file__", None) or ""
                    if file.startswith(str(self.directory)):
                        del sys.modules[name]


def _without(names: tuple[str, ...], options: list[str]) -> Iterator[str]:
    words = iter(options)
    for word in words:
        if word in names:
            next(words)
        else:
            yield word


@contextmanager
def following() -> Iterator[Following]:
    directory = Path(tempfile.mkdtemp(prefix="headway-doc-", dir=in_memory()))
    reader = Following(directory)
    try:
        yield reader
    finally:
        try:
            reader.close()
        finally:
            shutil.rmtree(directory, ignore_errors=True)
