"""`make screenshots`: each screen of the page, of a world that is alive, into docs/images.

python -m tests.browser.screenshots [--url URL] [--only overview,slots] [--into DIR]
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from tests.browser import chromium as system
from tests.browser.kit import DESKTOP, Chromium, Language, Visits, picture, wait_ready, wait_until
from tests.servers import ADDRESS

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
LIVELY_S = 200.0  # until charts have something to show and somebody has been told to slow down
LASTS_S = 900
MOST_BYTES = 4_400_000  # for all pictures together: each clone of the repository carries them
PHONE = {"width": 390, "height": 844}


TRIED_MS = 40_000


@dataclass(frozen=True)
class Look:
    name: str
    language: Language = "en"
    dark: bool = False
    phone: bool = False


LOOKS = (
    Look("light"),
    Look("dark", dark=True),
    Look("phone", phone=True),
    Look("zh", language="zh"),
)


@dataclass(frozen=True)
class Place:
    url: str


@contextmanager
def demo() -> Iterator[Place]:
    """A world of its own, always the same one; it is left when the pictures are taken."""
    command = [sys.executable, "-m", "headway", "demo", "--port", "0", "--seconds", str(LASTS_S),
               "--seed", "7"]  # fmt: skip
    with tempfile.TemporaryFile("w+b") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            url = _address(process, log.fileno())
            print(f"the demo is at {url}; {LIVELY_S:.0f} s until it is lively", flush=True)
            _goes_on(process, LIVELY_S)
            yield Place(url)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _address(process: subprocess.Popen[bytes], log: int) -> str:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        said = _read(log)
        found = ADDRESS.search(said)
        if found is not None and "\n" in said[found.end() :]:
            return found.group(1)
        _goes_on(process, 0.1, said)
    raise SystemExit(f"the demo does not say where it is:\n{_read(log)}")


def _read(log: int) -> str:
    return Path(f"/proc/self/fd/{log}").read_text("utf-8", "replace")


def _goes_on(process: subprocess.Popen[bytes], for_s: float, said: str = "") -> None:
    try:
        process.wait(for_s)
    except subprocess.TimeoutExpired:
        return
    raise SystemExit(f"the demo has ended:\n{said}")


def take(page: Page, screen: str, path: Path) -> None:
    page.evaluate("(hash) => { location.hash = hash; }", f"#/{screen}")
    wait_ready(page, screen)
    if screen == "whatif":
        try_it(page)
    # What was laid out is drawn in the frame after the next.
    wait_until(
        page,
        """() => document.fonts.ready.then(() => new Promise((done) =>
             requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))""",
    )
    picture(page, path)


def try_it(page: Page) -> None:
    """What if shows nothing before it is asked."""
    asks = page.locator("form.asks")
    asks.locator("[name=gate]").select_option("upstream:files.example")
    asks.locator("[name=limit]").fill("4")
    asks.locator("[name=load]").select_option("greedy")
    asks.locator("[name=model]").select_option("cap")
    asks.locator("button[type=submit]").click()
    page.locator(".verdict").wait_for(timeout=TRIED_MS)


def take_all(place: Place, into: Path, only: set[str]) -> int:
    into.mkdir(parents=True, exist_ok=True)
    driver = Chromium()
    total = 0
    with driver.in_use():
        visits = Visits(driver)
        for look in LOOKS:
            page = visits.page_on(place, language=look.language, dark=look.dark, phone=look.phone)
            page.set_viewport_size(PHONE if look.phone else DESKTOP)
            screens: list[str] = wait_until(page, "() => globalThis.headway?.screens")
            for screen in screens:
                if only and screen not in only:
                    continue
                path = into / f"{screen}-{look.name}.png"
                take(page, screen, path)
                total += path.stat().st_size
                print(f"{path.name:24} {path.stat().st_size:9,d}", flush=True)
        visits.end()
    driver.close()
    return total


def main() -> int:
    asked = argparse.ArgumentParser(prog="screenshots")
    asked.add_argument("--url", help="a server that runs, instead of the demo")
    asked.add_argument("--only", default="", help="screens, with commas between them")
    asked.add_argument("--into", type=Path, default=IMAGES)
    told = asked.parse_args()
    if system.found() is None:
        print(system.MISSING, file=sys.stderr)
        return 1
    only = set(filter(None, told.only.split(",")))
    if told.url:
        total = take_all(Place(told.url.rstrip("/")), told.into, only)
    else:
        with demo() as place:
            total = take_all(place, told.into, only)
    print(f"{total:,d} bytes of at most {MOST_BYTES:,d} in {told.into}")
    return 0 if total <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
