"""`headway top`: the picture at every size, the server that goes away, and leaving it."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import struct
import termios
import threading
from collections.abc import Callable
from contextlib import ExitStack
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from headway.cli import top
from headway.cli.asking import Call
from headway.cli.client import Unreachable
from headway.cli.printing import Output
from headway.cli.top_view import Picture, view
from headway.cli.where import Where
from tests.cli.kit import Cli, Servers, server, without_headway
from tests.forked import Forked

SIZES = [(140, 45), (80, 24), (60, 20), (40, 10), (20, 5), (8, 2), (1, 1)]


def gate(name: str, **more: Any) -> dict[str, Any]:
    plain = {
        "name": name, "running": 1, "limit": 2.0, "waiting": 3, "paused": False, "open": True,
        "closed_until": None, "closed_why": "", "reason": "", "detail": "", "opens_at": None,
    }  # fmt: skip
    return {**plain, **more}


def job(id: int, **more: Any) -> dict[str, Any]:
    plain = {
        "id": id, "type": "download", "upstream": "a.example", "upstreams": [],
        "started_at": "2026-11-16T06:00:00.000000Z", "finished_at": "2026-11-16T06:00:00.000000Z",
        "last_error": "no route\nto host", "progress": None,
    }  # fmt: skip
    return {**plain, **more}


def busy(jobs: int = 40) -> Picture:
    progress = {"done": 1.0, "total": 4.0, "note": "part 1", "percent": 25.0}
    return Picture(
        name="http://127.0.0.1:8000",
        stats={"paused": {"all": False}, "lanes": {"web": {"queued": 3, "running": jobs}}},
        lanes=[gate("web"), gate("night", paused=True, limit=None, waiting=None)],
        upstreams=[
            gate("quiet.example", running=0, waiting=0),
            gate("a.example", open=False, closed_until="2099-01-01T00:00:00Z", closed_why="429"),
        ],
        running=[job(id, progress=progress if id % 2 else None) for id in range(1, jobs + 1)],
        failed=[job(99)],
        seen=True,
    )


def drawn(picture: Picture, width: int, height: int) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, height=height, markup=False, emoji=False, highlight=False
    )
    with console.capture() as captured:
        console.print(view(picture, width, height))
    return captured.get().splitlines()


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("jobs", [0, 1, 40])
def test_it_fits_every_terminal(width: int, height: int, jobs: int) -> None:
    lines = drawn(busy(jobs), width, height)

    assert all(len(line) <= max(width, 1) for line in lines)
    if height >= 5:
        assert len(lines) <= height
    drawn(Picture(name="x"), width, height)


def test_everything_is_there_when_there_is_room() -> None:
    text = "\n".join(drawn(busy(), 140, 45))

    words = (
        "40 running", "3 queued", "web", "night", "paused", "download", "25 % part 1",
        "closed, opens in", "(429)", "no route to host", "running (40)", "q leaves",
    )  # fmt: skip
    assert [each for each in words if each not in text] == []
    assert text.index("a.example") < text.index("quiet.example")  # what says something is first


def test_what_is_stale_is_never_shown_as_if_it_were_live() -> None:
    picture = busy()
    assert "reconnecting" not in drawn(picture, 140, 45)[0]
    picture.trouble = "http://127.0.0.1:8000 cannot be reached"

    assert "reconnecting…" in drawn(picture, 140, 45)[0]
    assert "connecting…" in drawn(Picture(name="x"), 140, 45)[0]
    assert (
        "no server runs here" in drawn(Picture(**{**fields(busy()), "served": False}), 140, 45)[0]
    )


def fields(picture: Picture) -> dict[str, Any]:
    return {name: getattr(picture, name) for name in Picture.__slots__}


class Flaky:
    """A client that is away for a while."""

    name = "flaky"
    direct = False

    def __init__(self) -> None:
        self.looked = threading.Semaphore(0)
        self.away = False

    def get(self, path: str, **_: Any) -> Any:
        if path == "/api/queue/stats":
            self.looked.release()
        if self.away:
            raise Unreachable("flaky cannot be reached")
        return {"items": []} if "stats" not in path else {"paused": {"all": False}, "lanes": {}}

    def close(self) -> None:
        """Nothing is open."""


def test_a_server_that_goes_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "LOOK_S", 0.01)
    client = Flaky()
    call = Call(Where(), Output(False))
    monkeypatch.setattr(Call, "client", client)
    watcher = top.Watcher(call)
    watcher.start()
    try:
        waits_for(client, lambda: watcher.picture.seen and not watcher.picture.trouble)
        client.away = True
        waits_for(client, lambda: "cannot be reached" in watcher.picture.trouble)
        client.away = False
        waits_for(client, lambda: not watcher.picture.trouble)
    finally:
        watcher.stop()


def waits_for(client: Flaky, happened: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if happened():
            return
        assert client.looked.acquire(timeout=20)
    raise AssertionError("it has not happened")


def test_where_nobody_looks_it_is_printed_once(cli: Cli) -> None:
    said = cli("top")

    assert said.code == 0
    assert "0 running" in said.out or "running" in said.out
    assert cli.json("top")["seen"] is True


def test_a_server_that_was_never_there_is_an_error(bare: Cli) -> None:
    assert "cannot be reached" in bare.refuses("top", "--server", "http://127.0.0.1:1")


# ---------------------------------------------------------------------- at a terminal


COMMAND = "from headway.cli import main; main()"
HASTY = "from headway.cli import main, top; top.LOOK_AT_STORE_S = 0.5; main()"


class Terminal:
    """A program at a terminal of some size."""

    def __init__(self, *arguments: str, size: tuple[int, int], text: str = COMMAND) -> None:
        self._mine, its = pty.openpty()
        ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        environment = without_headway() | {"TERM": "xterm"}
        environment.pop("COLUMNS", None)
        self.process = Forked(
            ["-c", text, *arguments], stdin=its, stdout=its, stderr=its,
            environment=environment, cwd=os.getcwd(), new_session=True,
        )  # fmt: skip
        os.close(its)
        self.seen = ""

    def shows(self, words: str) -> None:
        """Read until it does."""
        while words not in self.seen:
            ready, _, _ = select.select([self._mine], [], [], 30)
            assert ready, f"{words!r} did not come: {self.seen[-2000:]!r}"
            self.seen += os.read(self._mine, 65_536).decode("utf-8", "replace")

    def press(self, key: str) -> None:
        os.write(self._mine, key.encode())

    def ends(self) -> int:
        """Its exit code; what it still prints is read, so that it can."""
        while True:
            try:
                if not os.read(self._mine, 65_536):
                    break
            except OSError:
                break
        return self.process.wait(30)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)


@pytest.mark.parametrize("size", [(100, 30), (20, 4)])
@pytest.mark.parametrize("way", ["q", "ctrl-c"])
def test_it_lives_and_is_left(servers: Servers, size: tuple[int, int], way: str) -> None:
    with Terminal("top", "--server", servers["sqlite"], size=size) as terminal:
        terminal.shows("running")
        if way == "q":
            terminal.press("q")
        else:
            terminal.process.send_signal(signal.SIGINT)

        assert terminal.ends() == 0


def test_it_notices_that_the_server_is_away_and_back(bare: Cli, tmp_path: Path) -> None:
    at = ("--data", str(tmp_path / "data"))
    with ExitStack() as stack:
        with server(*at) as url:
            terminal = stack.enter_context(Terminal("top", "--server", url, size=(120, 30)))
            terminal.shows("0 running")
        terminal.shows("reconnecting…")
        with server(*at, "--port", url.rpartition(":")[2]):
            bare("jobs", "add", "nobody", *at)
            terminal.shows("1 queued")  # which only somebody knows who is connected again
            terminal.press("q")
            assert terminal.ends() == 0


def test_the_store_is_free_between_two_looks(bare: Cli, tmp_path: Path) -> None:
    """A view of a store that nobody serves must not keep a server from starting."""
    at = ("--data", str(tmp_path / "data"))
    bare("migrate", *at)
    with Terminal("top", *at, size=(120, 30), text=HASTY) as terminal:
        terminal.shows("no server runs here")
        with server(*at) as url:
            terminal.shows(url)
            terminal.press("q")
            assert terminal.ends() == 0


def test_the_picture_is_plain_json(cli: Cli) -> None:
    assert set(json.loads(cli("top", "--json").out)) == set(Picture.__slots__)
