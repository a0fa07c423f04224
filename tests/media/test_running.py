"""The server's side of the program: what it reads, and how the program is ended."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway import App, job
from headway.apps.media.fetcher.protocol import FailureKind, Order, Task
from headway.apps.media.running import fetch, progress_note
from headway.engine.hands.processes import ProgramTimeout
from tests.hands.kit import WAIT_S, eventually, is_alive
from tests.media.fetcher_kit import Alone, order, run
from tests.media.video_site import VideoSite

ORDER = Order(task=Task.COUNT, url="https://a.test", user_agent="x")
END = '{"kind": "end", "ok": true, "result": {"total": 3}}'


def program(directory: Path, script: str) -> str:
    """Stands for an interpreter, and does this instead of what it is told."""
    file = directory / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_the_program_gets_its_order_and_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.test")
    monkeypatch.setenv("MY_SECRET", "s3cret")
    script = f"env > {tmp_path}/env; cat > {tmp_path}/order; echo '{END}'"
    ran = run(ORDER, python=program(tmp_path, script))
    assert ran.result == {"total": 3}
    assert Order.from_json((tmp_path / "order").read_bytes()) == ORDER
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert names <= {"PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "YTDLP_NO_PLUGINS", "PWD",
                     "SHLVL", "_", "OLDPWD"}  # fmt: skip
    assert not any("a.test" in word for word in ran.job.commands[0])


def test_lines_are_handed_on_as_they_are(tmp_path: Path) -> None:
    entry = {"kind": "entry", "key": "k", "url": "u", "position": 0}
    progress = {"kind": "progress", "done_bytes": 5, "total_bytes": 10, "speed": 1, "eta_s": 5}
    script = f"echo '{json.dumps(entry)}'; echo; echo '{json.dumps(progress)}'; echo '{END}'"
    ran = run(ORDER, python=program(tmp_path, script))
    assert ran.entries == [{"key": "k", "url": "u", "position": 0}]
    assert ran.progress == [(5, 10, "5 B of 10 B, 1 B/s, 5 s left")]


FAILED = '{"kind": "end", "ok": false, "failure": %s}'


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", "said nothing"),
        ("echo first >&2; echo 'password=hunter2222 was wrong' >&2; exit 3", "code 3"),
        ("kill -9 $$", "code -9"),
        ("echo not json", "no JSON"),
        ("echo '[1]'", "not expected"),
        ('echo \'{"kind": "boo"}\'', "boo"),
        (f"echo '{END}'; echo '{END}'", "not expected"),
        (f"echo '{END}'; exit 4", "code 4"),
        ('echo \'{"kind": "end", "ok": true}\'', "without a result"),
        (f"echo '{FAILED % json.dumps({'kind': 'tired'})}'", "unknown kind"),
        ('echo \'{"kind": "progress"}\'', "without a number"),
        ("head -c 3000000 /dev/zero | tr '\\0' x; echo", "without an end"),
        ("head -c 9000000 /dev/zero | tr '\\0' x; exec sleep 1000", "4194304 bytes"),
    ],
)
def test_a_program_that_says_something_else_is_broken(
    tmp_path: Path, script: str, said: str
) -> None:
    failure = run(ORDER, python=program(tmp_path, script)).failure
    assert failure.kind is FailureKind.BROKEN
    assert said in failure.message
    assert "hunter2222" not in failure.message


def test_an_error_of_whoever_hears_it_is_not_the_programs(tmp_path: Path) -> None:
    entry = '{"kind": "entry", "key": "k"}'

    def hear(_: dict[str, Any]) -> None:
        raise ValueError("the table is full")

    script = f"echo '{entry}'; exec sleep 1000"
    with pytest.raises(ValueError, match="table is full"):
        asyncio.run(
            fetch(Alone(), ORDER, timeout_s=60, on_entry=hear, python=program(tmp_path, script))
        )


def test_a_failure_is_read_with_care(tmp_path: Path) -> None:
    told = {"kind": "pushback", "message": "m" * 900, "status": "429", "retry_after": "120",
            "at": "moon", "host": 5}  # fmt: skip
    failure = run(ORDER, python=program(tmp_path, f"echo '{FAILED % json.dumps(told)}'")).failure
    assert (failure.kind, len(failure.message)) == (FailureKind.PUSHBACK, 500)
    assert (failure.status, failure.retry_after_s) == (None, 120)
    assert (failure.at, failure.host) == (None, None)


def test_an_interpreter_that_is_not_there_is_said(tmp_path: Path) -> None:
    failure = run(ORDER, python=str(tmp_path / "nowhere")).failure
    assert (failure.kind, "code 127" in failure.message) == (FailureKind.BROKEN, True)


def test_an_interpreter_without_yt_dlp_is_said(tmp_path: Path) -> None:
    bare = program(tmp_path, f'exec {sys.executable} -S "$@"')
    failure = run(ORDER, python=bare).failure
    assert (failure.kind, "no yt-dlp" in failure.message) == (FailureKind.BROKEN, True)


def test_an_order_that_the_program_cannot_read_is_answered() -> None:
    class Spoiled(Order):
        def to_json(self) -> bytes:
            return b'{"task": "list"}'

    spoiled = Spoiled(task=Task.LIST, url="https://a.test", user_agent="x")
    failure = run(spoiled).failure
    assert (failure.kind, "order" in failure.message) == (FailureKind.BROKEN, True)


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ({"done_bytes": 12_300_000, "total_bytes": 80_000_000, "speed": 1_200_000, "eta_s": 56.4},
         "12.3 MB of 80.0 MB, 1.2 MB/s, 56 s left"),
        ({"done_bytes": 0, "total_bytes": None}, "0 B"),
        ({"done_bytes": 5_000, "total_bytes": 5_000, "eta_s": 0}, "5.0 kB of 5.0 kB"),
        ({"done_bytes": 1, "total_bytes": 2, "eta_s": 75}, "1 B of 2 B, 1 min 15 s left"),
        ({"done_bytes": 1, "total_bytes": 2e15, "eta_s": 7_500, "part": 1, "parts": 2},
         "1 B of 2000.0 TB, 2 h 5 min left, part 1 of 2"),
    ],
)  # fmt: skip
def test_progress_is_told_in_words(said: dict[str, Any], note: str) -> None:
    assert progress_note(said) == note


# --- ended in the middle


@pytest.fixture
def site() -> Iterator[VideoSite]:
    with VideoSite() as site:
        yield site


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")
    yield app
    app.close()


def children() -> set[int]:
    return {each.pid for each in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("way", ["cancel", "timeout"])
def test_a_download_that_is_ended_leaves_its_beginning_and_no_process(
    app: App, site: VideoSite, tmp_path: Path, way: str
) -> None:
    site.video("one", size=2_000_000)
    site.hold("/media/", half=True)
    work = tmp_path / "work"
    work.mkdir()
    made = order(site, Task.DOWNLOAD, site.watch_url("one"), directory=str(work))
    ended: list[str] = []

    @app.job(type="download", retries=0)
    async def get() -> None:
        try:
            await fetch(job, made, timeout_s=60 if way == "cancel" else 3, on_progress=job.progress)
        except BaseException as error:
            ended.append(type(error).__name__)
            raise

    with app.running():
        before = children()
        handle = get.enqueue()
        site.wait_for(lambda: any(each.sent_bytes > 900_000 for each in site.log))
        part = work / "media.mp4.part"
        eventually(lambda: part.exists() and part.stat().st_size > 500_000)
        started = children() - before
        assert started
        if way == "cancel":
            handle.cancel()
        assert handle.wait(WAIT_S) == ("cancelled" if way == "cancel" else "failed")
        eventually(lambda: not any(map(is_alive, started)))
    site.let_go()
    assert ended == ["CancelledError" if way == "cancel" else ProgramTimeout.__name__]
    assert 0 < part.stat().st_size < 2_000_000
    assert not (work / "media.mp4").exists()
