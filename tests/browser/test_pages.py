"""The reference and the way in: in both languages, light and dark, on desks and phones."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.audit import audit
from tests.browser.conftest import PageOn
from tests.browser.kit import Language, focused, press, tab_to, wait_until
from tests.security.kit import Guarded
from tests.servers import Server

looks = pytest.mark.parametrize(
    ("language", "dark", "phone"),
    [("en", False, False), ("zh", True, True)],
    ids=["desktop", "phone-zh-dark"],
)


@looks
def test_the_reference_can_be_read_by_everybody(
    page_on: PageOn, site: Server, language: Language, dark: bool, phone: bool
) -> None:
    page = page_on(site, "/docs", language=language, dark=dark, phone=phone)
    expect(page.locator("main h1")).to_be_visible()
    wait_until(page, "() => document.querySelectorAll('#page-list a').length > 50")
    assert page.locator("html").get_attribute("lang") == {"en": "en", "zh": "zh-CN"}[language]
    assert not audit(page, steps=0)  # the first Tab takes seconds on a page of this length


@looks
def test_the_way_in_can_be_read_by_everybody(
    page_on: PageOn, site: Server, language: Language, dark: bool, phone: bool
) -> None:
    page = page_on(site, "/login", language=language, dark=dark, phone=phone)
    expect(page.locator("h1")).to_have_text({"en": "Log in", "zh": "登录"}[language])
    assert not audit(page, navigation=False)


def test_a_token_opens_the_page_and_a_wrong_one_is_refused(
    page_on: PageOn, guarded_site: Guarded
) -> None:
    page = page_on(guarded_site, "/")
    expect(page).to_have_url(f"{guarded_site.url}/login")
    page.get_by_label("Access token").fill("hw_nothing")
    press(page, "Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    assert focused(page) == "Access token"
    assert not audit(page, navigation=False)
    page.get_by_label("Access token").fill(f"  {guarded_site.tokens['operator']}\n")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(re.compile(r"http://[\d.:]+/(#.*)?"))


def test_the_language_is_changed_and_remembered(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "/login", language="en")
    tab_to(page, "中文")
    press(page, "Enter")
    expect(page.locator("h1")).to_have_text("登录")
    page.reload()
    expect(page.locator("h1")).to_have_text("登录")


def test_where_the_page_was_once_it_is_still_found(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "/static/queue_admin.html")
    expect(page).to_have_url(re.compile(r"http://[\d.:]+/(#.*)?"))
