"""Programs that jobs run: what they say, what they may use, and how they are ended."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headway import App, job
from headway.engine.hands import local, processes
from headway.engine.hands.processes import ProgramFailed, ProgramTimeout, ProgramTooLarge
from tests.hands.kit import WAIT_S, eventually, is_alive, pid_in, shell
from tests.stores import second_store_in_the_soak

# This is about programs, whatever the store; the second kind is for `make soak`.
pytestmark = second_store_in_the_soak

WAYS = ("plain", "async")


def runs(app: App, way: str, command: list[str], **options: Any) -> Any:
    """A job that runs the command and gives what became of it."""

    def shown(completed: processes.Completed) -> dict[str, Any]:
        return {"code": completed.code, "out": completed.stdout, "err": completed.stderr}

    def function() -> dict[str, Any]:
        return shown(job.run(command, **options))

    async def coroutine() -> dict[str, Any]:
        return shown(await job.arun(command, **options))

    return app.job(type="program", retries=0)(function if way == "plain" else coroutine)


def error_of(app: App, program: Any) -> str:
    with app.running():
        handle = program.enqueue()
        assert handle.wait(WAIT_S) == "failed"
        return str(handle.row().error)


@pytest.mark.parametrize("way", WAYS)
def test_a_program_says_something_on_both_pipes(app: App, way: str) -> None:
    program = runs(app, way, shell("echo out; echo err >&2"))
    with app.running():
        assert program.enqueue().result(WAIT_S) == {"code": 0, "out": "out\n", "err": "err\n"}


@pytest.mark.parametrize("way", WAYS)
def test_another_code_than_0_is_a_failure_that_shows_what_was_said(app: App, way: str) -> None:
    error = error_of(app, runs(app, way, shell("echo no such video >&2; exit 3")))
    assert ProgramFailed.__name__ in error
    assert "code 3: no such video" in error


def test_a_code_can_be_looked_at_instead(app: App) -> None:
    program = runs(app, "plain", shell("exit 3"), check=False)
    with app.running():
        assert program.enqueue().result(WAIT_S)["code"] == 3


def test_a_program_that_was_killed_has_a_negative_code(app: App) -> None:
    program = runs(app, "async", shell("kill -9 $$"), check=False)
    with app.running():
        assert program.enqueue().result(WAIT_S)["code"] == -9


def test_a_program_that_is_not_there_is_named(app: App) -> None:
    error = error_of(app, runs(app, "plain", ["no-such-program-anywhere"]))
    assert "no-such-program-anywhere" in error
    assert "code 127" in error


@pytest.mark.parametrize("command", ["ls -l", []])
def test_a_command_is_a_list_of_words(app: App, command: Any) -> None:
    assert "list of words" in error_of(app, runs(app, "plain", command))


def test_no_shell_reads_a_command(app: App) -> None:
    program = runs(app, "plain", ["echo", "$HOME; exit 9", "*"])
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"] == "$HOME; exit 9 *\n"


def test_a_program_gets_its_directory_and_environment(app: App, tmp_path: Path) -> None:
    command = shell("pwd; echo $COLOUR")
    program = runs(app, "plain", command, cwd=str(tmp_path), env={"COLOUR": "red"})
    with app.running():
        out = program.enqueue().result(WAIT_S)["out"]
    assert out == f"{tmp_path.resolve()}\nred\n"


def test_output_is_kept_in_bounded_memory_its_start_and_its_end(app: App) -> None:
    flood = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last"
    program = runs(app, "async", shell(flood))
    with app.running():
        out = program.enqueue().result(WAIT_S)["out"]
    assert out.startswith("first\nxxx")
    assert out.endswith("xxx\nlast\n")
    assert "bytes left out" in out
    assert len(out) < 3 * processes.KEEP


def test_output_that_is_no_text_does_no_harm(app: App) -> None:
    program = runs(app, "plain", shell(r"printf 'a\377\000b'"))
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"] == "a\ufffd\x00b"


# Ends


@pytest.mark.parametrize("way", WAYS)
def test_a_time_limit_of_its_own_ends_a_program(app: App, way: str) -> None:
    error = error_of(app, runs(app, way, shell("exec sleep 1000"), timeout=0.1))
    assert ProgramTimeout.__name__ in error
    assert "0.1 s" in error


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_ignores_the_request_to_end_is_killed_after_the_grace_time(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.4)
    monkeypatch.setattr(local, "ASK_AGAIN_S", 0.1)  # the handler is asked again meanwhile
    file = tmp_path / "pid"
    stubborn = shell(f"trap '' TERM; echo $$ > {file}; while :; do sleep 1; done")
    program = runs(app, way, stubborn)
    with app.running():
        handle = program.enqueue()
        pid = pid_in(file)
        asked_at = time.monotonic()
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
        assert not is_alive(pid)
        assert time.monotonic() - asked_at >= 0.4


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_is_cancelled_while_it_starts_has_its_grace_time(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It may already run while the loop still connects its pipes."""
    file, stopped = tmp_path / "pid", threading.Event()
    transport: Any = asyncio.base_subprocess.BaseSubprocessTransport  # type: ignore[attr-defined]
    connect, interrupt = transport._connect_pipes, local.LocalHands._interrupt

    async def held_up(*about: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(None, stopped.wait, WAIT_S)
        await connect(*about)

    def interrupted(*about: Any) -> None:
        interrupt(*about)
        stopped.set()

    monkeypatch.setattr(transport, "_connect_pipes", held_up)
    monkeypatch.setattr(local.LocalHands, "_interrupt", interrupted)
    polite = f"trap 'echo saved > {tmp_path}/saved; exit 0' TERM; echo $$ > {file}"
    program = runs(app, way, shell(polite + "; while :; do sleep 0.01; done"))
    with app.running():
        handle = program.enqueue()
        pid_in(file)
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
    assert (tmp_path / "saved").read_text() == "saved\n"


def test_a_program_may_use_the_grace_time(app: App, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    polite = f"trap 'echo saved > {tmp_path}/saved; exit 0' TERM; echo $$ > {file}"
    program = runs(app, "plain", shell(polite + "; while :; do sleep 0.01; done"))
    with app.running():
        handle = program.enqueue()
        pid_in(file)
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
    assert (tmp_path / "saved").read_text() == "saved\n"


def test_a_program_is_asked_to_end_only_once(app: App, tmp_path: Path) -> None:
    """Many programs take a second request as one to drop everything."""
    file, log = tmp_path / "pid", tmp_path / "log"
    counting = f"trap 'echo asked >> {log}' TERM; echo $$ > {file}"
    loop = f"while [ ! -s {log} ]; do sleep 0.01; done; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.01;"
    program = runs(app, "async", shell(f"{counting}; {loop} done"))
    with app.running():
        handle = program.enqueue()
        pid_in(file)
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
    assert log.read_text() == "asked\n"


@pytest.mark.parametrize("way", WAYS)
def test_the_children_of_a_program_end_with_it(app: App, tmp_path: Path, way: str) -> None:
    file = tmp_path / "grandchild"
    family = f"sh -c 'sleep 1000 & echo $! > {file}; wait' & wait"
    program = runs(app, way, shell(family))
    with app.running():
        handle = program.enqueue()
        grandchild = pid_in(file)
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
        eventually(lambda: not is_alive(grandchild))


def test_what_a_program_leaves_behind_ends_with_it(app: App, tmp_path: Path) -> None:
    file = tmp_path / "left"
    program = runs(app, "plain", shell(f"sleep 1000 & echo $! > {file}"))  # it keeps the pipes
    with app.running():
        assert program.enqueue().wait(WAIT_S) == "completed"
        left_behind = pid_in(file)
        eventually(lambda: not is_alive(left_behind))


def test_a_daemon_that_keeps_the_pipes_holds_nobody_up(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE_S", 0.2)
    file = tmp_path / "daemon"
    daemon = f"setsid sh -c 'echo $$ > {file}; exec sleep 1000' & "
    program = runs(app, "async", shell(f"{daemon} while [ ! -s {file} ]; do :; done; echo said"))
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"] == "said\n"
    os.kill(pid_in(file), signal.SIGKILL)


def test_a_program_that_its_handler_does_not_wait_for_ends_before_the_permit(
    app: App, tmp_path: Path
) -> None:
    file = tmp_path / "pid"

    @app.job()
    async def forgetful() -> None:
        left = asyncio.ensure_future(job.arun(shell(f"echo $$ > {file}; exec sleep 1000")))
        while not (file.exists() and file.read_text()):
            await asyncio.sleep(0)
        left.add_done_callback(lambda task: task.exception())

    with app.running():
        assert forgetful.enqueue().wait(WAIT_S) == "completed"
        assert not is_alive(pid_in(file))


def test_several_programs_of_one_job_end_together(app: App, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a", "b", "c")]

    @app.job()
    async def many() -> None:
        await asyncio.gather(
            *(job.arun(shell(f"echo $$ > {file}; exec sleep 1000")) for file in files)
        )

    with app.running():
        handle = many.enqueue()
        pids = [pid_in(file) for file in files]
        handle.cancel()
        assert handle.wait(WAIT_S) == "cancelled"
        assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("way", WAYS)
def test_a_job_that_is_stopped_while_its_program_starts_leaves_none_behind(
    app: App, tmp_path: Path, way: str
) -> None:
    """Whatever the moment: after the end of the job none of its programs is there."""
    written = tmp_path / "pids"
    program = runs(app, way, shell(f"echo $$ >> {written}; exec sleep 1000"))
    with app.running():
        for wait_ms in range(0, 40, 4):
            handle = program.enqueue()
            eventually(lambda handle=handle: handle.state == "running")
            threading.Event().wait(wait_ms / 1000)
            handle.cancel()
            assert handle.wait(WAIT_S) == "cancelled"
            pids = written.read_text().split() if written.exists() else []
            assert not any(is_alive(int(pid)) for pid in pids)
        assert app.store.processes() == []


# Memory


def hungry(megabytes: int, file: Path) -> list[str]:
    text = f"import os,time; x = b'x' * {megabytes}_000_000; open({str(file)!r}, 'w').write"
    return [sys.executable, "-c", f"{text}(str(os.getpid())); time.sleep(1000)"]


def test_a_program_may_use_500_mb_unless_told_otherwise(app: App, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    error = error_of(app, runs(app, "plain", hungry(700, file)))
    assert ProgramTooLarge.__name__ in error
    assert "500 MB" in error
    assert not file.exists() or not is_alive(pid_in(file))


def test_the_memory_of_children_counts_too(app: App) -> None:
    command = shell(f"{sys.executable} -c 'import time; x = bytes([120]) * 60_000_000; "
                    "time.sleep(1000)' & wait")  # fmt: skip
    assert ProgramTooLarge.__name__ in error_of(app, runs(app, "async", command, memory_mb=40))


def test_a_program_within_its_limit_is_left_alone(app: App) -> None:
    command = [sys.executable, "-c", "x = bytes([120]) * 60_000_000; print(len(x))"]
    program = runs(app, "plain", command, memory_mb=200)
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"] == "60000000\n"


def test_too_much_memory_is_no_reason_to_try_again(app: App, tmp_path: Path) -> None:
    command = hungry(60, tmp_path / "pid")

    @app.job(retries=3)
    def greedy() -> None:
        job.run(command, memory_mb=30)

    with app.running():
        assert greedy.enqueue().wait(WAIT_S) == "failed"


@pytest.mark.parametrize("way", WAYS)
def test_a_program_reads_what_it_is_given(app: App, way: str) -> None:
    words = b"a secret\n" * 50_000  # more than a pipe holds
    program = runs(app, way, shell("wc -c"), stdin=words)
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"].strip() == str(len(words))


def test_a_program_may_leave_what_it_is_given(app: App) -> None:
    program = runs(app, "async", shell("echo done"), stdin=b"x" * 10_000_000)
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"] == "done\n"


@pytest.mark.parametrize("way", WAYS)
def test_lines_are_handed_on_as_they_come(app: App, way: str, tmp_path: Path) -> None:
    heard: list[str] = []
    go_on = tmp_path / "go on"

    def hear(line: str) -> None:
        heard.append(line)
        go_on.touch()

    text = f"printf 'one\\ntw'; until test -e '{go_on}'; do :; done; printf 'o\\nthree'"
    program = runs(app, way, shell(text), on_line=hear)
    with app.running():
        assert program.enqueue().result(WAIT_S)["out"] == ""
    assert heard == ["one", "two", "three"]


def test_a_program_is_ended_if_nobody_can_take_what_it_says(app: App, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    def refuse(line: str) -> None:
        raise LookupError(f"what is {line}")

    error = error_of(
        app, runs(app, "async", shell(f"echo $$ > '{pid}'; echo this; sleep 1000"), on_line=refuse)
    )
    assert "what is this" in error
    assert not is_alive(pid_in(pid))


def test_a_line_without_end_ends_the_program(app: App, monkeypatch: Any) -> None:
    monkeypatch.setattr(processes, "LONGEST_LINE", 100_000)
    program = runs(app, "async", shell("yes | tr -d '\\n'"), on_line=str)
    assert "more than 100000 bytes" in error_of(app, program)
