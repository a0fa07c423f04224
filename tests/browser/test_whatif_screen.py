"""What if on the page: a change is tried, both runs are shown, and nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.audit import audit
from tests.browser.conftest import PageOn
from tests.browser.kit import Language, wait_ready
from tests.contract.kit import Api, new_name
from tests.security.kit import Guarded
from tests.servers import Server

ANSWERS_MS = 40_000


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


@pytest.fixture
def host(api: Api) -> str:
    name = f"{new_name('tried')}.example"
    api.ok("PUT", f"/api/upstreams/{name}/settings", json={"limit": 1})
    return name


def try_it(page: Page, host: str, limit: str, load: str = "backlog") -> None:
    asks = page.locator("form.asks")
    asks.locator("[name=gate]").select_option(f"upstream:{host}")
    asks.locator("[name=limit]").fill(limit)
    asks.locator("[name=load]").select_option(load)
    asks.locator("[name=since]").select_option("3600")
    asks.locator("[name=model]").select_option("cap")
    asks.locator("button[type=submit]").click()


def test_a_change_is_tried_and_both_are_shown(
    page_on: PageOn, site: Server, api: Api, host: str
) -> None:
    page = page_on(site, "#/whatif")
    wait_ready(page, "whatif")
    expect(page.get_by_text("Choose what to change, and try it")).to_be_visible()
    try_it(page, host, "4")
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("What would be different", timeout=ANSWERS_MS)
    expect(verdict.get_by_role("listitem").first).to_contain_text("All is done after")
    expect(page.locator("hw-chart")).to_have_count(6)
    table = page.locator(".numbers-table")
    expect(table.get_by_role("row").filter(has_text="median wait")).to_be_visible()
    tenants = page.get_by_role("row").filter(has_text="ann")
    expect(tenants).to_have_count(1)
    assert not audit(page)
    assert api.get(f"/api/upstreams/{host}")["settings"]["value"] == {"limit": 1}


def test_a_gate_that_the_address_names_is_chosen(page_on: PageOn, site: Server, host: str) -> None:
    page = page_on(site, f"#/whatif?gate=upstream:{host}")
    wait_ready(page, "whatif")
    expect(page.locator("[name=gate]")).to_have_value(f"upstream:{host}")
    expect(page.locator("[name=limit]")).to_have_attribute("placeholder", "now 1")


def test_what_the_server_refuses_is_said(
    page_on: PageOn, site: Server, host: str, expect_status: object
) -> None:
    page = page_on(site, f"#/whatif?gate=upstream:{host}")
    wait_ready(page, "whatif")
    expect_status(page, 422)  # type: ignore[operator]
    asks = page.locator("form.asks")
    asks.locator("[name=way]").select_option("every")
    asks.locator("[name=pace]").fill("often")
    asks.locator("[name=load]").select_option("steady")
    asks.locator("button[type=submit]").click()
    expect(page.get_by_role("alert")).to_contain_text("is not a duration", timeout=ANSWERS_MS)


@pytest.mark.parametrize(
    ("language", "dark", "phone"), [("zh", True, True), ("en", True, False)], ids=["zh", "dark"]
)
def test_everybody_can_read_what_came_out(
    page_on: PageOn, site: Server, host: str, language: Language, dark: bool, phone: bool
) -> None:
    page = page_on(site, "#/whatif", language=language, dark=dark, phone=phone)
    wait_ready(page, "whatif")
    try_it(page, host, "3", load="greedy")
    page.locator(".verdict").wait_for(timeout=ANSWERS_MS)
    assert not audit(page)
    said = page.locator(".verdict").inner_text()
    assert re.search("[一-鿿]" if language == "zh" else "What would", said)


def test_who_may_only_read_is_told_why_it_cannot_be_tried(
    page_on: PageOn, guarded_site: Guarded
) -> None:
    page = page_on(guarded_site, "#/whatif", token=guarded_site.tokens["reader"])
    wait_ready(page, "whatif")
    button = page.locator("form.asks button[type=submit]")
    expect(button).to_have_attribute("aria-disabled", "true")
    expect(button).to_have_attribute("title", re.compile("operate"))
