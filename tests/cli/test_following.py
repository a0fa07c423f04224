"""`headway events --follow`: nothing is missed and nothing comes twice."""

from __future__ import annotations

import json
import signal
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue

from tests.cli.kit import Cli, forked, server

WAIT_S = 30.0


class Follower:
    """`headway events --follow --json` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.ids: list[int] = []
        self._aside = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed when it is left
        follow = ("-m", "headway", "events", "--follow", "--json")
        self._process, self._out = forked(*follow, *arguments, aside=self._aside)
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._out:
            self._lines.put(line)

    def sees(self, job: int, event: str) -> None:
        """Read until it does."""
        while True:
            try:
                said = json.loads(self._lines.get(timeout=WAIT_S))
            except Empty:
                raise AssertionError(
                    f"{event} of {job} is not in {self.ids}: {self.aside}"
                ) from None
            self.ids.append(said["id"])
            if (said["job"], said["event"]) == (job, event):
                return

    @property
    def aside(self) -> str:
        """What it has said on stderr."""
        self._aside.seek(0)
        return self._aside.read()

    def leave(self) -> int:
        """Ctrl-C; the exit code."""
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(WAIT_S)

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._out.close()
        self._aside.close()


def test_events_come_in_order_and_go_on_after_a_restart(bare: Cli, tmp_path: Path) -> None:
    at = ("--data", str(tmp_path / "data"))

    def add(name: str) -> int:
        id: int = bare.json("jobs", "add", "greet", f"name={name}", *at)["id"]
        return id

    with ExitStack() as stack:
        with server(*at) as url:
            before = add("Ann")
            assert bare("jobs", "wait", str(before), *at).code == 0
            follower = stack.enter_context(Follower("--server", url, "--after", "0"))
            follower.sees(before, "ok")
            follower.sees(add("Bob"), "ok")
        with server(*at, "--port", url.rpartition(":")[2]):
            follower.sees(add("Cid"), "ok")
            assert follower.leave() == 0
            said = follower.aside

    assert follower.ids == list(range(1, len(follower.ids) + 1))
    assert "Trying again until it is back" in said
    assert "connected again" in said


def test_it_begins_with_the_last_ones(bare: Cli, tmp_path: Path) -> None:
    at = ("--data", str(tmp_path / "data"))
    with server(*at):
        ids = [bare.json("jobs", "add", "greet", f"name={n}", *at)["id"] for n in "abc"]
        assert bare("jobs", "wait", *map(str, ids), *at).code == 0
        last = bare.json("events", *at)["items"][-1]
        with Follower(*at, "-n", "2") as follower:
            follower.sees(last["job"], last["event"])
            id = bare.json("jobs", "add", "greet", "name=x", *at)["id"]
            follower.sees(id, "ok")
            assert follower.leave() == 0

    first = last["id"] - 1
    assert follower.ids == list(range(first, first + len(follower.ids)))


def test_without_a_server_the_store_is_looked_at(bare: Cli, tmp_path: Path) -> None:
    at = ("--data", str(tmp_path / "data"))
    bare("migrate", *at)
    id = bare.json("jobs", "add", "nobody", *at)["id"]
    with Follower(*at, "--after", "0") as follower:
        follower.sees(id, "submit")
        assert bare("jobs", "cancel", str(id), *at).code == 0
        follower.sees(id, "cancel")
        assert follower.leave() == 0

    assert follower.ids == sorted(set(follower.ids))
