"""The upstream as a process of its own, and the hand that steers it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from typing import Any

import msgspec

from headway.errors import HeadwayError
from headway.testing.llm_upstream.settings import Settings, changed

HOST = "127.0.0.1"
ANSWER_WITHIN_S = 30.0
MODULE = "headway.testing.llm_upstream"


class UpstreamGone(HeadwayError):
    """The upstream of this test does not run. Use it inside its `with` block."""


class LlmUpstream:
    """`with LlmUpstream(rpm=60) as upstream:`. It takes the fields of `Settings`, as `set` does."""

    def __init__(self, *, port: int = 0, **settings: Any) -> None:
        self._settings = changed(Settings(), settings)  # what is wrong is said before it starts
        self._port = port
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> LlmUpstream:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """It listens when this returns. After a `stop` it has the same port and settings."""
        if self._process is not None:
            return
        command = [sys.executable, "-m", MODULE, "--port", str(self._port), "--until-stdin-closes"]
        process = self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,  # an interrupt is for the test, which then stops it
        )  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            self._port = int(line.rsplit(":", 1)[1])
            self._ask("POST", "set", self._settings)
            self._settings = msgspec.structs.replace(self._settings, script=())
        except BaseException as error:
            self.stop()
            if not line:
                raise UpstreamGone("the upstream did not start; its errors are above") from error
            raise

    def stop(self) -> None:
        """At once, in the middle of whatever it does."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

    # ------------------------------------------------------------------ where it is

    @property
    def port(self) -> int:
        """Where it listens on loopback."""
        return self._port

    @property
    def pid(self) -> int:
        """Its process, for tests that stop or kill it."""
        if self._process is None:
            raise UpstreamGone(UpstreamGone.__doc__)
        return self._process.pid

    @property
    def url(self) -> str:
        """The `base_url` of a client of OpenAI."""
        return f"http://{HOST}:{self._port}/v1"

    # ------------------------------------------------------------------ steering

    def set(self, **changes: Any) -> None:
        """Change settings, all or (with a ValueError) none; a new `script` replaces the old."""
        settings = changed(self._settings, changes)
        self._ask("POST", "set", {name: getattr(settings, name) for name in changes})
        self._settings = msgspec.structs.replace(settings, script=())

    def stats(self) -> dict[str, Any]:
        """What it has seen: `calls`, `refused`, the most at once, and more."""
        found: dict[str, Any] = self._ask("GET", "stats")
        return found

    def calls(self, since: int = 0) -> list[dict[str, Any]]:
        """The calls that came, oldest first; only those with a `number` above `since`."""
        found: list[dict[str, Any]] = self._ask("GET", f"calls?since={since}")
        return found

    def reset(self) -> None:
        """Forget the calls, what they used of the limits, bans, and the rest of the script."""
        self._ask("POST", "reset")

    def _ask(self, method: str, what: str, body: Any = None) -> Any:
        if self._process is None:
            raise UpstreamGone(UpstreamGone.__doc__)
        connection = http.client.HTTPConnection(HOST, self._port, timeout=ANSWER_WITHIN_S)
        try:
            sent = None if body is None else msgspec.json.encode(body)
            connection.request(method, f"/_control/{what}", sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise ValueError(json.loads(text)["error"]["message"])
        return json.loads(text)
