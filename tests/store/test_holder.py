"""Whether a process that has led is certainly gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from headway.store import holder as holders
from headway.store.holder import Holder, this_machine


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def of(pid: int) -> Holder:
    return msgspec.structs.replace(Holder.here(), pid=pid, born=holders._born(pid))


def test_this_process_is_here_and_not_gone() -> None:
    holder = Holder.here("http://a:1")
    assert holder.was_here
    assert not holder.is_gone
    assert Holder.parse(holder.text()) == holder
    assert str(holder).endswith(" at http://a:1")


def test_nobody_is_gone() -> None:
    assert Holder.parse("").is_gone
    assert Holder.parse("").was_here


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"pid": "x"}'])
def test_whoever_cannot_be_read_may_still_be_there(text: str) -> None:
    holder = Holder.parse(text)
    assert not holder.is_gone
    assert not holder.was_here


def test_a_process_is_gone_when_it_has_ended_though_nobody_has_noticed() -> None:
    process = sleeper()
    holder = of(process.pid)
    assert not holder.is_gone
    os.kill(process.pid, signal.SIGSTOP)
    assert not holder.is_gone, "it may go on"
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert holder.is_gone, "a process that waits for its parent to notice does nothing more"
    process.wait()
    assert holder.is_gone


def test_another_process_with_the_same_number_is_another() -> None:
    assert msgspec.structs.replace(Holder.here(), born="1").is_gone


def test_a_process_whose_birth_nobody_could_see_is_gone_only_when_it_is() -> None:
    """/proc was hidden from itself, or there was no file left to read it with."""
    unborn = msgspec.structs.replace(Holder.here(), born=holders.UNKNOWN)
    assert not unborn.is_gone


@pytest.mark.parametrize("why", [PermissionError, FileNotFoundError, OSError(24, "EMFILE")])
def test_a_process_that_cannot_be_looked_at_is_not_gone(
    why: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another user's under `hidepid` or `ProtectProc=invisible`, or when files have run out."""
    holder = Holder.here()

    def unreadable(*_: object) -> str:
        raise why

    monkeypatch.setattr(Path, "read_text", unreadable)
    assert not holder.is_gone


def test_a_process_that_is_hidden_is_gone_when_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = sleeper()
    holder = of(process.pid)
    monkeypatch.setattr(holders, "_born", lambda _: holders.UNKNOWN)
    assert not holder.is_gone
    process.kill()
    process.wait()
    assert holder.is_gone


def test_a_process_that_may_not_be_sent_signals_is_not_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holder = Holder.here()

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not holder.is_gone


def test_nobody_can_see_whether_a_process_elsewhere_is_gone() -> None:
    process = sleeper()
    elsewhere = msgspec.structs.replace(of(process.pid), machine=this_machine() + "2")
    process.kill()
    process.wait()
    assert not elsewhere.is_gone
    assert not elsewhere.was_here
