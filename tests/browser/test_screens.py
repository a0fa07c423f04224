"""All screens, for everybody: names, contrast and focus, both languages, dark, on a phone."""

from __future__ import annotations

import re

import pytest

from tests.browser.audit import audit
from tests.browser.conftest import PageOn
from tests.browser.kit import Language, go, wait_ready
from tests.servers import Server
from tests.web.test_words import CHINESE, words

PARTS = {  # of a screen that have an address of their own
    "settings": ["tokens", "retention", "servers", "declared"], "audit": ["?all=1"],
    "upstreams": ["video.example"],
}  # fmt: skip

NAMES = re.compile(r"[\w-]+\.example|feeds\.refresh")  # of hosts and types: they have dots as well

# Every piece of text that is seen or read out.
TEXTS = """() => {
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (!parentElement.closest("code, pre, script, noscript, [lang=en]")) found.add(data.trim());
  }
  for (const element of document.querySelectorAll("[aria-label], [title], [placeholder]")) {
    for (const name of ["aria-label", "title", "placeholder"]) {
      found.add((element.getAttribute(name) ?? "").trim());
    }
  }
  found.delete("");
  return [...found];
}"""


def faults(said: list[str], language: Language) -> list[str]:
    keys = re.compile(rf"({'|'.join({key.partition('.')[0] for key in words()})})\.[\w.-]+")
    found = [f"a key instead of words: {each}" for each in said
             if keys.fullmatch(each) and not NAMES.fullmatch(each)]  # fmt: skip
    if language == "zh":
        ours = {english for english, chinese in words().values() if CHINESE.search(chinese)}
        # A word alone may be a name that somebody gave.
        found += [f"still in English: {each}" for each in said if each in ours and " " in each]
    return found


# On a phone in English, whose words are the longer ones.
@pytest.mark.parametrize(
    ("language", "dark", "phone"), [("zh", False, False), ("en", True, True)],
    ids=["desktop-zh", "phone-dark"],
)  # fmt: skip
def test_everybody_can_read_every_screen(
    page_on: PageOn, site: Server, language: Language, dark: bool, phone: bool
) -> None:
    page = page_on(site, language=language, dark=dark, phone=phone)
    wait_ready(page, "overview")
    found = {}
    for screen in page.evaluate("() => headway.screens"):
        for part in ["", *PARTS.get(screen, [])]:
            place = screen + (part if part.startswith("?") else f"/{part}" if part else "")
            go(page, place)
            page.locator(".screen:not([data-loading])").wait_for()
            assert page.locator("main h1").count() == 1
            said = faults(page.evaluate(TEXTS), language) + audit(page, steps=0 if part else 4)
            if said:
                found[place] = said
    assert not found
