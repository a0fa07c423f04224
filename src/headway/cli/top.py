"""`headway top`: what goes on, live in the terminal."""

from __future__ import annotations

import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from time import monotonic

from rich.live import Live

from headway.cli.asking import Call, asks
from headway.cli.client import Client
from headway.cli.printing import WIDE, new_console
from headway.cli.top_view import Picture, view
from headway.errors import HeadwayError

LOOK_S = 1.0
LOOK_AT_STORE_S = 5.0  # each look opens and closes the store, so that a server may start meanwhile
FRAME_S = 0.25  # countdowns move on between two looks
RUNNING, FAILED = 100, 10  # jobs that are asked for


@asks
def top(call: Call) -> None:
    """A live view: counts, lanes, upstreams, what runs, what failed. `q` leaves."""
    if call.out.as_json or not sys.stdout.isatty():
        picture = look(call.client)
        if call.out.as_json:
            call.out.line(asdict(picture), indent=2)
        else:
            call.out.console.print(view(picture, WIDE, WIDE))
        return
    call.client.get("/api/info")  # what is wrong from the start is said, and not tried again
    watcher = Watcher(call)
    watcher.start()
    try:
        _show(watcher)
    except KeyboardInterrupt:
        pass
    finally:
        watcher.stop()


def look(client: Client) -> Picture:
    return Picture(
        name=client.name,
        stats=client.get("/api/queue/stats"),
        lanes=client.get("/api/lanes")["items"],
        upstreams=client.get("/api/upstreams")["items"],
        running=client.get("/api/jobs", status="running", size=RUNNING)["items"],
        failed=client.get("/api/jobs", status="failed", size=FAILED)["items"],
        seen=True,
        served=not client.direct,
    )


class Watcher:
    """Looks again and again in a thread of its own, so that the screen never waits."""

    def __init__(self, call: Call) -> None:
        self.picture = Picture(name=call.client.name)
        self._call = call
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="headway-top", daemon=True)

    def start(self) -> None:
        self._call.close()  # the thread has its own connection
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(LOOK_S)

    def _watch(self) -> None:
        while not self._over.is_set():
            pause_s = LOOK_S
            try:
                self.picture = look(self._call.client)
                if not self.picture.served:
                    pause_s = LOOK_AT_STORE_S
                    self._call.close()
            except HeadwayError as error:
                self.picture.trouble = str(error)
                self._call.close()
            self._over.wait(pause_s)
        self._call.close()


def _show(watcher: Watcher) -> None:
    console = new_console()
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            width, height = console.size
            live.update(view(watcher.picture, width, height), refresh=True)
            if pressed(FRAME_S) in ("q", "Q", "\x1b"):
                return


@contextmanager
def keys() -> Iterator[Pressed]:
    """One key at a time, without Enter. Where there is no keyboard, time passes all the same."""
    try:
        import termios  # noqa: PLC0415 - not on every system
        import tty  # noqa: PLC0415

        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
    except (ImportError, OSError, ValueError):
        yield Pressed(None)
        return
    try:
        tty.setcbreak(file)
        yield Pressed(file)
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


class Pressed:
    def __init__(self, file: int | None) -> None:
        self._file = file

    def __call__(self, wait_s: float) -> str:
        """The key that is pressed within this time, or nothing."""
        if self._file is None:
            threading.Event().wait(wait_s)
            return ""
        ends = monotonic() + wait_s
        ready, _, _ = select.select([self._file], [], [], max(0.0, ends - monotonic()))
        return sys.stdin.read(1) if ready else ""
