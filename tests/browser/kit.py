"""A real Chromium on a real server, and nothing else in the world.

A test opens pages with `page_on` and does what people do. When it ends, the witness of each page is
heard: whatever it wrote to the console, threw, fetched from elsewhere, asked of the API against the
document or was refused without the test having said so, makes the test fail.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    TimeoutError,
    expect,
    sync_playwright,
)

from tests.browser.chromium import found
from tests.browser.witness import Witness
from tests.browser.workers import SharedWorkers
from tests.contract.document import document_of

PATIENCE_MS = 20_000.0  # for what comes at once, unless something is broken
END_S = 5.0  # for calls that are under way when a test ends
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
LOCALES = {"en": "en-GB", "zh": "zh-CN"}
Language = Literal["en", "zh"]

# Whatever is not on this machine is asked of a proxy that nobody runs.
FLAGS = [
    "--disable-background-networking", "--disable-component-update", "--disable-default-apps",
    "--disable-domain-reliability", "--disable-gpu", "--disable-quic", "--disable-sync",
    "--force-color-profile=srgb", "--metrics-recording-only", "--no-default-browser-check",
    "--no-first-run", "--no-pings", "--proxy-server=http://127.0.0.1:9",
    # So that the heap can be read exactly, and a test can ask for a collection.
    "--enable-precise-memory-info", "--js-flags=--expose-gc",
]  # fmt: skip

VIOLATIONS = """addEventListener("securitypolicyviolation", (event) => console.error(
  `the policy forbids ${event.violatedDirective}: ${event.blockedURI || event.sample}`));"""


class Chromium:
    """One process for all tests of this one. Its event loop runs only while it is `in_use`: others
    have loops of their own, and a loop that seems to run is in their way.
    """

    def __init__(self) -> None:
        path = found()
        assert path is not None
        self._playwright = sync_playwright().start()
        self.browser: Browser = self._playwright.chromium.launch(
            executable_path=path, args=FLAGS, handle_sigint=False, handle_sigterm=False,
            handle_sighup=False,
        )  # fmt: skip
        self.workers = SharedWorkers(self.browser)
        self._loop = asyncio.get_running_loop()
        self._leave()
        expect.set_options(timeout=PATIENCE_MS)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        asyncio._set_running_loop(self._loop)
        try:
            yield
        finally:
            self._leave()

    @staticmethod
    def _leave() -> None:
        asyncio._set_running_loop(None)

    def close(self) -> None:
        with self.in_use():
            self.browser.close()
            self._playwright.stop()


@dataclass
class Visits:
    """All that one test opens. `page_on` is what the fixture of that name gives."""

    chromium: Chromium
    _watched: dict[BrowserContext, Witness] = field(default_factory=dict)
    _contexts: list[BrowserContext] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chromium.workers.hearers = [self._worker]

    def _worker(self, event: str, said: dict[str, Any]) -> None:
        for witness in [*self._watched.values()][-1:]:  # which window's it is, nobody can tell
            witness.worker(event, said)

    def page_on(
        self, server: Any, path: str = "#/", *, language: Language = "en", dark: bool = False,
        phone: bool = False, token: str | None = None, scale: float = 1, script: str = "",
    ) -> Page:  # fmt: skip
        """A new window, as somebody opens it who was never here before. A `path` that begins with
        `#` is of the page itself, an empty one leads nowhere yet. A `script` runs before any other.
        """
        witness = Witness(server.url, document_of(server.url))
        context = self._new_context(
            phone, base_url=server.url, locale=LOCALES[language], device_scale_factor=scale,
            color_scheme="dark" if dark else "light", reduced_motion="reduce",
            timezone_id="Europe/Berlin",
        )  # fmt: skip
        self._watched[context] = witness
        witness.watch(context)
        context.add_init_script(VIOLATIONS + script)
        if token is not None:
            log_in(context, server.url, token)
        page = context.new_page()
        if path:
            page.goto(f"/{path}" if path.startswith("#") else path)
        return page

    def blank_page(self, *, phone: bool = False) -> Page:
        """A window with nothing in it, which nobody watches."""
        return self._new_context(phone).new_page()

    def _new_context(self, phone: bool, **more: Any) -> BrowserContext:
        context = self.chromium.browser.new_context(
            viewport=PHONE if phone else DESKTOP, is_mobile=phone, has_touch=phone, **more
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        return context

    def witness_of(self, page: Page) -> Witness:
        return self._watched[page.context]

    def end(self) -> None:
        """The last look, then all windows are closed."""
        try:
            for context, witness in self._watched.items():
                for page in context.pages:
                    with suppress(Error):  # it may be about to go elsewhere
                        settle(page, witness)
            for witness in self._watched.values():
                witness.judge()
        finally:
            self.close()

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def settle(page: Page, witness: Witness) -> None:
    """Hear of everything that has happened by now, bodies of answers included."""
    try:
        wait_for(page, lambda: witness.is_settled, END_S)
    except AssertionError:
        witness.unsettled()


def log_in(context: BrowserContext, url: str, token: str) -> None:
    """As the form does it: the cookie comes from the server."""
    answer = context.request.post(f"{url}/login", form={"token": token}, max_redirects=0)
    assert answer.status == 303, answer.text()
    assert answer.headers["location"] == "/", "the token was not accepted"


def expect_status(page: Page, visits: Visits, *statuses: int) -> None:
    """The test does something that the server refuses, once for each."""
    witness = visits.witness_of(page)
    for status in statuses:
        witness.expected[status] = witness.expected.get(status, 0) + 1


# ---------------------------------------------------------------------- what people do


def wait_until(page: Page, script: str, argument: Any = None) -> Any:
    """Until this is true in the page: `wait_until(page, "() => document.title")`. What it gave."""
    return page.wait_for_function(script, arg=argument, timeout=PATIENCE_MS).json_value()


def wait_for(page: Page, happened: Callable[[], Any], within_s: float = PATIENCE_MS / 1000) -> None:
    """Until this is true here, of what is heard from the page."""
    end = time.monotonic() + within_s
    while True:
        # Only while the page is asked anything are its events delivered.
        page.evaluate("() => new Promise((done) => setTimeout(done, 5))")
        if happened():
            return
        assert time.monotonic() < end, "it has not happened"


def wait_ready(page: Page, screen: str) -> None:
    """Until the screen shows its first data."""
    try:
        wait_until(page, "(name) => document.documentElement.dataset.ready === name", screen)
    except TimeoutError:
        shown = page.evaluate("() => document.querySelector('main')?.innerText ?? ''")
        raise AssertionError(f"{screen} shows no data at {page.url}, only: {shown[:500]}") from None


def go(page: Page, screen: str) -> None:
    """By its address, as a deep link does; without a new document."""
    page.evaluate("(hash) => { location.hash = hash; }", f"#/{screen}")
    wait_ready(page, screen.partition("/")[0].partition("?")[0])


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def focused(page: Page) -> str:
    """The words of what has the focus."""
    said: str = page.evaluate(
        """() => {
          let element = document.activeElement;
          while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
          if (element === document.body) return "";
          return (element?.getAttribute("aria-label") || element?.labels?.[0]?.textContent ||
                  element?.textContent || "").replace(/\\s+/g, " ").trim();
        }"""
    )
    return said


def tab_to(page: Page, words: str, most: int = 60) -> None:
    """Press Tab until what has these words has the focus."""
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        passed.append(focused(page))
        if words in passed[-1]:
            return
    raise AssertionError(f"Tab never comes to {words!r}, only to {json.dumps(passed)}")


def picture(page: Page, path: Path) -> None:
    page.screenshot(path=path, animations="disabled", caret="hide")


def toast(page: Page, words: str) -> Locator:
    return page.locator(".toast").filter(has_text=words)


def undo(page: Page, words: str) -> None:
    """Take back what the message with these words says."""
    toast(page, words).get_by_role("button", name="Undo").click()
    expect(toast(page, words)).to_have_count(0)


def dialog(page: Page, name: str) -> Locator:
    return page.get_by_role("dialog", name=name)
