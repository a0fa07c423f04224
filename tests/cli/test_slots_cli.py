"""`headway slot`: commands under slots, how they end, and who is listed."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from headway import App, SlotLost
from headway.cli import slot_layouts
from headway.cli.slot_run import StatusLine, place_words
from headway.engine.hands.processes import kill_left_over
from headway.remote.client import Ask
from headway.remote.slot_protocol import Answer
from tests.cli.kit import Cli, without_headway
from tests.hands.kit import WAIT_S, eventually, is_alive, pid_in
from tests.servers import Server, server_on


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.soak)])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with server_on(request.param) as started:
        yield started


@pytest.fixture
def app(server: Server) -> Iterator[App]:
    app = App(server.url)
    yield app
    app.close()


@pytest.fixture
def host(app: App) -> str:
    """An upstream with one place, which no other test knows."""
    name = f"{uuid4().hex[:12]}.example"
    app.set(f"upstream:{name}", limit=1)
    return name


@pytest.fixture
def run(server: Server, host: str, bare: Cli) -> Callable[..., Any]:
    """`headway slot run` at that upstream, in this process."""

    def call(*arguments: str) -> Any:
        return bare("slot", "run", "--server", server.url, "--upstream", host, *arguments)

    return call


def states(app: App, host: str) -> list[str]:
    items = app.store._get("slots", upstream=host)["items"]  # type: ignore[attr-defined]
    return [each["state"] for each in items]


class Running:
    """The same in a process of its own, at a terminal or not."""

    def __init__(self, server: Server, *arguments: str, terminal: bool = False) -> None:
        self._mine, its = pty.openpty() if terminal else (None, subprocess.PIPE)
        self.process = subprocess.Popen(
            [sys.executable, *AT_A_TERMINAL, "slot", "run", "--server", server.url, *arguments],
            stdin=its, stdout=its, stderr=its, env=without_headway() | {"TERM": "xterm"},
            start_new_session=True,
        )  # fmt: skip
        self.seen = ""
        if terminal:
            os.close(its)

    def shows(self, pattern: str) -> None:
        """Read until it does."""
        assert self._mine is not None
        while not re.search(pattern, self.seen):
            ready, _, _ = select.select([self._mine], [], [], WAIT_S)
            assert ready, f"{pattern!r} did not come: {self.seen!r}"
            self.seen += os.read(self._mine, 65_536).decode("utf-8", "replace")

    def types(self, text: str) -> None:
        assert self._mine is not None
        os.write(self._mine, text.encode())

    def ends(self) -> int:
        return self.process.wait(WAIT_S)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        """With all of its session: the program is in a group of its own, and keeps the pipes."""
        kill_left_over(self.process.pid, 0.0)
        self.process.communicate()
        if self._mine is not None:
            os.close(self._mine)


# What a login shell does for its first program: the terminal becomes the one of its session.
AT_A_TERMINAL = ("-c", "import fcntl, os, sys, termios\n"
                 "if os.isatty(0): fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
                 "from headway.cli import main\n"
                 "main()")  # fmt: skip


# ---------------------------------------------------------------------- how it ends


def test_a_command_runs_under_a_slot_and_knows_it(
    run: Callable[..., Any], app: App, host: str, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    words = "$HEADWAY_SLOT_ID $HEADWAY_SLOT_FENCE $HEADWAY_SLOT_UPSTREAM"
    assert run("--", "sh", "-c", f"echo {words} > {said}").code == 0
    id, fence, upstream = said.read_text().split()
    assert int(id) > 0
    assert int(fence) > 0
    assert upstream == host
    assert states(app, host) == []


@pytest.mark.parametrize(
    ("command", "code"),
    [(["true"], 0), (["sh", "-c", "exit 22"], 22), (["sh", "-c", "kill -9 $$"], 137)],
)
def test_the_exit_code_is_that_of_the_command(
    run: Callable[..., Any], app: App, host: str, command: list[str], code: int
) -> None:
    said = run(*command)  # with nothing between: what follows the name is the command's
    assert (said.code, said.err) == (code, "")
    assert states(app, host) == []


def test_a_command_that_is_not_there(
    run: Callable[..., Any], app: App, host: str, tmp_path: Path
) -> None:
    plain, broken, text = (tmp_path / name for name in ("plain", "broken", "text"))
    plain.write_text("x")
    broken.write_text("#!/nowhere/at/all\n")
    text.write_text("no program")
    broken.chmod(0o755)
    text.chmod(0o755)
    for name, code in (("no-such-command", 127), (plain, 126), (broken, 127), (text, 126)):
        said = run("--", str(name))
        assert said.code == code
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
    assert states(app, host) == []


def test_an_exit_code_may_push_back(run: Callable[..., Any], app: App, host: str) -> None:
    curl = ("--report-exit", "22=429", "--report-exit", "7=503", "--", "sh", "-c", "exit 22")
    assert run(*curl).code == 22
    said = run("--timeout", "0.2s", "--", "true")
    assert said.code == 75
    assert said.err == f"error: no slot at {host} within 0.2 s\n"
    assert "429" in app.store._get("upstreams", host)["closed_why"]  # type: ignore[attr-defined]


def test_no_slot_in_time(run: Callable[..., Any], app: App, host: str, tmp_path: Path) -> None:
    with app.slot(host):
        said = run("--timeout", "0.2s", "--", "touch", str(tmp_path / "ran"))
        assert states(app, host) == ["granted"]
    assert said.code == 75
    assert "within 0.2 s" in said.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("true",),
        ("--upstream", "x", "--on-lost", "shrug", "true"),
        ("--upstream", "x", "--report-exit", "22", "true"),
        ("--upstream", "x", "--report-exit", "22=ok", "true"),
        ("--upstream", "x", "--report-exit", "999=429", "true"),
        ("--upstream", "x", "--report-exit", "22=4290", "true"),
        ("--upstream", "x", "--lease", "60", "true"),
        ("--upstream", "x", "--json", "true"),
        ("--upstream", "x"),
    ],
)
def test_what_is_not_understood(bare: Cli, arguments: tuple[str, ...]) -> None:
    assert bare("slot", "run", *arguments).code == 2


def test_a_slot_is_held_at_a_server(bare: Cli, tmp_path: Path) -> None:
    asked = ("slot", "run", "--data", str(tmp_path), "--upstream", "x", "--", "true")
    assert "no server runs on" in bare.refuses(*asked)
    asked = ("slot", "run", "--server", "http://127.0.0.1:1", "--timeout", "0.2s", "--key", "k")
    said = bare(*asked, "true")
    assert said.code == 75
    assert "trying again" in said.err
    assert bare(*asked, "--quiet", "true").err.startswith("error: no slot at key k within 0.2 s")


# ---------------------------------------------------------------------- signals


def test_signals_are_the_commands(server: Server, app: App, host: str, tmp_path: Path) -> None:
    file, heard = tmp_path / "pid", tmp_path / "heard"
    script = (
        f"trap 'echo interrupted >> {heard}' INT; trap 'echo hung up >> {heard}' HUP\n"
        f"sleep 1000 & echo $! > {file}; while :; do sleep 0.05; done"
    )
    with Running(server, "--upstream", host, "--", "sh", "-c", script) as running:
        inner = pid_in(file)
        for sent, word in ((signal.SIGINT, "interrupted"), (signal.SIGHUP, "hung up")):
            running.process.send_signal(sent)
            eventually(lambda word=word: heard.exists() and word in heard.read_text())
        running.process.send_signal(signal.SIGTERM)
        assert running.ends() == 143
    eventually(lambda: not is_alive(inner))  # all of its group have heard it
    assert states(app, host) == []


def test_a_signal_while_waiting_leaves_the_line(server: Server, app: App, host: str) -> None:
    with app.slot(host), Running(server, "--upstream", host, "true") as running:
        eventually(lambda: "waiting" in states(app, host))
        running.process.send_signal(signal.SIGTERM)
        assert running.ends() == 143
        assert states(app, host) == ["granted"]


# ---------------------------------------------------------------------- lost


@contextmanager
def killing(server: Server, when: Path) -> Iterator[None]:
    """Kill the server when the command has begun; there is one again afterwards."""

    def kill() -> None:
        pid_in(when)
        server.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    yield
    killer.join()
    server.start()


def test_who_loses_its_slot_is_ended(
    run: Callable[..., Any], server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.cli.program.GRACE_S", 0.3)
    file = tmp_path / "pid"
    script = (
        f"trap 'echo asked >> {file}.said' TERM; echo $$ > {file}; while :; do sleep 0.05; done"
    )
    with killing(server, file):
        said = run("--lease", "1s", "--", "sh", "-c", script)
    assert said.code == 75
    assert "the slot is lost, so the command is ended" in said.err
    assert (tmp_path / "pid.said").read_text() == "asked\n"  # and then it was killed
    assert not is_alive(int(file.read_text()))


def test_who_loses_its_slot_may_be_kept(
    run: Callable[..., Any], app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, heard = tmp_path / "id", tmp_path / "heard"

    def take_back() -> None:
        app.store._client.call(Ask("DELETE", f"/api/slots/{pid_in(file)}"))  # type: ignore[attr-defined]

    operator = threading.Thread(target=take_back)
    operator.start()
    monkeypatch.setattr(StatusLine, "say", lambda _, text: heard.write_text(text))
    script = f"echo $HEADWAY_SLOT_ID > {file}; while ! test -s {heard}; do sleep 0.05; done; exit 5"
    assert run("--on-lost", "keep", "--lease", "1s", "--", "sh", "-c", script).code == 5
    operator.join()
    assert heard.read_text() == "the slot is lost; the command goes on without it"


# ---------------------------------------------------------------------- at a terminal


def test_at_a_terminal_one_sees_where_one_stands(server: Server, app: App, host: str) -> None:
    script = "read line; echo it was $line; exit 4"
    slot = app.slot(host).__enter__()
    with Running(server, "--upstream", host, "sh", "-c", script, terminal=True) as running:
        running.shows(rf"\rwaiting for a slot at {host}: place 1")
        slot.__exit__(None, None, None)
        running.shows(r"\r\x1b\[K$")  # what was only for waiting is gone
        running.types("my answer\n")  # it has the terminal, as without anybody between
        running.shows("it was my answer")
        assert running.ends() == 4


def test_keys_that_interrupt_are_for_the_command(server: Server, app: App, host: str) -> None:
    script = "trap 'echo stopped; exit 6' INT; echo began; while :; do sleep 0.05; done"
    at = ("--quiet", "--upstream", host, "sh", "-c", script)
    with Running(server, *at, terminal=True) as running:
        running.shows("began")
        running.types("\x03")
        running.shows("stopped")
        assert running.ends() == 6
        assert "waiting" not in running.seen
    assert states(app, host) == []


def test_who_is_interrupted_is_seen_to_be(server: Server, app: App, host: str) -> None:
    """A shell stops a script only if what it waits for has ended by the signal itself."""
    at = ("--upstream", host, "sh", "-c", "echo began; exec sleep 1000")
    with Running(server, *at, terminal=True) as running:
        running.shows("began")
        running.types("\x03")
        assert running.ends() == -signal.SIGINT
    assert states(app, host) == []


def test_the_words_about_ones_place() -> None:
    def words(**more: Any) -> str:
        return place_words(Answer("pending", 7, **more))

    assert words() == ""
    assert words(wait_reason="absent") == " (absent)"
    assert words(position=3, wait_reason="full") == ": place 3 (full)"
    assert words(position=1, eta="2020-01-01T00:00:00Z") == ": place 1, should start soon"
    assert re.fullmatch(r": should start in \d+ d", words(opens_at="2099-01-01T00:00:00Z"))


# ---------------------------------------------------------------------- looking


def test_who_waits_and_who_holds(server: Server, app: App, host: str, bare: Cli) -> None:
    at = ("--server", server.url)
    with app.slot(host, tenant="ann", holder="the night\x1b run"):
        waiter = threading.Thread(target=wait_for_one, args=(app, host))
        waiter.start()
        eventually(lambda: "waiting" in states(app, host))
        said = bare("slot", "ls", "--upstream", host, *at).out
        held, waiting = bare.json("slot", "ls", "--upstream", host, *at)["items"]
        assert [row.split()[:2] for row in said.splitlines()[2:]] == [
            [str(held["id"]), "granted"],
            [str(waiting["id"]), "waiting"],
        ]
        for words in ("ann", "the night\N{REPLACEMENT CHARACTER} run", "ends in", "place 1: full"):
            assert words in said
        assert bare.json("slot", "ls", "--tenant", "ann", *at)["total"] == 1
        assert bare.json("slot", "ls", "--upstream", host, "--state", "waiting", *at)["total"] == 1
        assert "place 1" in bare("slot", "show", str(waiting["id"]), *at).out
        assert "1 waiting, 1 granted" in bare("slot", "stats", *at).out
        assert bare.json("slot", "stats", *at)["sessions"]["granted"] == 1
        said = bare("slot", "end", str(waiting["id"]), *at).out
        assert said == f"slot {waiting['id']} is ended\n"
        waiter.join()
    assert bare("slot", "ls", "--upstream", host, *at).out == (
        "nobody waits for a slot or holds one\n"
    )
    assert bare("slot", "ls", "--state", "dreaming", *at).code == 2


def wait_for_one(app: App, host: str) -> None:
    with pytest.raises(SlotLost), app.slot(host, timeout=WAIT_S):
        raise AssertionError


def test_without_a_server_there_is_nobody(direct: Cli) -> None:
    assert direct("slot", "ls").out == "nobody waits for a slot or holds one\n"
    assert direct.json("slot", "stats")["overshoot"] == []
    assert "there is no slot 99" in direct.refuses("slot", "end", "99")


def slot(**more: Any) -> dict[str, Any]:
    plain = {
        "id": 7, "kind": "lease", "state": "waiting", "upstream": None, "upstreams": ["a", "b"],
        "tenant": "ann", "holder": "h", "lane": "web", "key": None, "fence": None,
        "since": "2026-11-16T06:00:00Z", "granted_at": None, "waited_s": 0.0, "claimed": False,
        "lease_ends_at": None, "wait_reason": None, "wait_gate": "", "position": None,
        "eta": None, "opens_at": None,
    }  # fmt: skip
    return {**plain, **more}


@pytest.mark.parametrize(
    ("more", "story"),
    [
        ({}, "waits"),
        ({"wait_reason": "absent"}, "absent"),
        ({"state": "granted", "waited_s": 12.0, "claimed": True}, "waited 12 s"),
        ({"state": "granted", "claimed": True}, ""),
        ({"state": "granted"}, "kept for its client, which is away"),
        ({"state": "reclaimed"}, "nothing was heard of its holder"),
    ],
)
def test_the_story_of_a_slot(more: dict[str, Any], story: str) -> None:
    assert slot_layouts.story(slot(**more)) == story


def test_where_a_slot_is() -> None:
    assert slot_layouts.where(slot(upstream="a")) == "a"
    assert slot_layouts.where(slot()) == "a or b"
    assert slot_layouts.where(slot(upstreams=[], key="k")) == "key k"
    assert slot_layouts.where(slot(upstreams=[])) == "lane web"
