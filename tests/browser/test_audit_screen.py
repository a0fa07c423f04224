"""The audit on the page: who did what, all that happens, page by page, narrowed down."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import PageOn
from tests.browser.kit import press, toast, wait_ready
from tests.contract.kit import Api, new_name
from tests.servers import Server


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


def test_who_did_what_is_read_page_by_page(page_on: PageOn, site: Server, api: Api) -> None:
    first, kind = f"{new_name('first')}.example", new_name("kind")
    api.post(f"/api/upstreams/{first}/close", {"for_s": 60, "why": "moving"})
    lane = new_name("lane")
    for _ in range(30):
        api.post(f"/api/lanes/{lane}/pause")
        api.post(f"/api/lanes/{lane}/resume")
    page = page_on(site, "#/audit")
    wait_ready(page, "audit")
    rows = page.locator("[data-row]")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text(re.compile(rf"loopback.*resumed\s*{lane}\s*lane", re.S))
    # What happens is there at once.
    api.post(f"/api/lanes/{lane}/pause")
    expect(rows.first).to_contain_text("paused")
    api.post(f"/api/lanes/{lane}/resume")
    page.get_by_role("button", name="Newest").press("Enter")
    expect(toast(page, "This is the first page.")).to_be_visible()
    page.get_by_role("button", name="Older").click()
    expect(page).to_have_url(re.compile("before="))
    closed = rows.filter(has_text=first)
    expect(closed).to_contain_text(re.compile(r"closed.*moving", re.S))
    press(page, "/")
    page.keyboard.type(f"moving {first}")
    expect(rows).to_have_count(1)
    closed.get_by_role("link", name=first).click()
    expect(page).to_have_url(re.compile(f"#/upstreams/{first}"))
    page.go_back()
    page.get_by_role("searchbox", name="Filter these").fill("")
    page.get_by_role("button", name="Newest").click()
    expect(rows.first).to_contain_text(lane)

    page.get_by_role("button", name="Everything that happens").click()
    id = api.enqueue(kind)
    job = rows.filter(has=page.get_by_role("link", name=f"request {id}"))
    expect(job).to_contain_text(re.compile(rf"submitted\s*request {id}\s*{kind}"))
    page.get_by_role("button", name="Older").click()
    expect(job).to_have_count(0)
    page.get_by_role("button", name="Newest").click()
    job.get_by_role("link").click()
    wait_ready(page, "requests")


def test_the_end_is_found_although_some_are_gone(page_on: PageOn, site: Server, api: Api) -> None:
    """Events go with their jobs, so there are gaps in the numbers."""
    page = page_on(site, "")
    (like,) = api.get("/api/trail", limit=1)["items"]

    def gaps(limit: int, after: int) -> list[int]:
        return [id for id in range(after + 1, after + limit + 1) if id % 7 == 0 and 70 <= id <= 210]

    def trail(route: Route) -> None:
        asked = dict(re.findall(r"(\w+)=(\d+)", route.request.url))
        items = [{**like, "id": id, "detail": f"number {id}"}
                 for id in gaps(int(asked["limit"]), int(asked["after"]))]  # fmt: skip
        route.fulfill(json={"items": items, "oldest": 70, "newest": 210})

    page.context.route("**/api/trail?*", trail)
    page.goto("/#/audit?all=1")
    wait_ready(page, "audit")
    rows, seen = page.locator("[data-row]"), []
    older = page.get_by_role("button", name="Older")
    for begin in (210, 154, 105):
        expect(rows.first).to_contain_text(f"number {begin}")
        seen += [int(each.split()[-1]) for each in rows.locator(".detail").all_inner_texts()]
        older.press("Enter")
    expect(toast(page, "This is the beginning of what is kept.")).to_be_visible()
    assert seen == [*range(210, 69, -7)]
