"""Slots on the page: who holds and who waits, narrowed down, ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOn
from tests.browser.kit import dialog, toast, wait_ready
from tests.contract.kit import JSON, Api, new_name
from tests.servers import Server


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


def ask(site: Server, host: str, tenant: str, wait_ms: int = 0) -> JSON:
    body = {"upstream": host, "tenant": tenant, "wait_ms": wait_ms, "lease_s": 600}
    with Api(site.url) as own:
        slot: JSON = own.send("POST", "/api/slots", json=body).json()
    return slot


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


def test_slots_are_narrowed_down_and_ended(
    page_on: PageOn, site: Server, api: Api, pool: ThreadPoolExecutor
) -> None:
    host, many = f"{new_name('slots')}.example", new_name("many")
    api.ok("PUT", f"/api/upstreams/{host}/settings", json={"limit": 2})
    held, _ = (ask(site, host, many)["id"] for _ in range(2))
    waits = pool.submit(ask, site, host, "lone", 20_000)
    page = page_on(site, f"#/slots?upstream={host}")
    wait_ready(page, "slots")
    rows = page.locator("[data-row]")
    expect(rows).to_have_count(3)
    expect(page.locator(".figure").filter(has_text="held")).to_have_text(re.compile(r"[1-9]"))
    fair = page.get_by_label(f"Fair shares at {host}")
    expect(fair.get_by_role("listitem")).to_have_count(2)
    expect(fair.get_by_role("listitem").filter(has_text=many)).to_contain_text("2 held, 0 waiting")
    states = page.get_by_role("group", name="State")
    states.get_by_role("button", name="Waiting").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("place 1")
    expect(rows.get_by_role("link")).to_have_attribute("href", f"#/upstreams/{host}")
    states.get_by_role("button", name="Not given back").click()
    expect(page.get_by_text("No slot matches.")).to_be_visible()
    states.get_by_role("button", name="All").click()
    fair.get_by_role("button", name=many).click()
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile(f"tenant={many}"))
    page.get_by_role("button", name="Any Tenant").click()
    expect(rows).to_have_count(3)
    # The one that waits gets the place of the one that is ended.
    page.get_by_role("button", name=f"End slot {held}").click()
    sure = dialog(page, f"End slot {held}")
    expect(sure).to_contain_text(f"while the client of {many} may still be using it")
    sure.get_by_role("button", name="Cancel").click()
    assert api.get(f"/api/slots/{held}")["state"] == "granted"
    page.get_by_role("button", name=f"End slot {held}").click()
    sure.get_by_role("button", name="End it").click()
    expect(toast(page, f"Slot {held} is ended.")).to_be_visible()
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="lone")).to_contain_text("Held")
    (granted,) = api.get("/api/slots", upstream=host, tenant="lone")["items"]
    assert granted["state"] == "granted"
    assert waits.result()["id"] == granted["id"]


def test_who_holds_nothing_is_told_what_slots_are_for(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "")

    def nothing(path: str, change: JSON) -> None:
        page.context.route(
            path, lambda route: route.fulfill(json={**route.fetch().json(), **change})
        )

    nothing("**/api/slots?*", {"items": [], "count": 0, "total": 0})
    with Api(site.url) as api:
        counts = api.get("/api/slots/stats")["counts"]
    nothing("**/api/slots/stats", {"counts": {**counts, "created": 0}})
    page.goto("/#/slots")
    expect(page.get_by_text("Nobody has asked for a slot yet")).to_be_visible()
