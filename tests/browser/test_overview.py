"""The overview: what needs attention leads to its place, and the queue is steered from there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import PageOn
from tests.browser.kit import press, undo, wait_ready
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.servers import Server


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


def test_lanes_and_the_queue_are_paused_and_go_on(page_on: PageOn, site: Server, api: Api) -> None:
    lane = new_name("lane")
    api.enqueue(new_name("kind"), lane=lane)
    page = page_on(site)
    wait_ready(page, "overview")
    row = page.get_by_role("row").filter(has_text=lane)
    row.get_by_role("button", name=f"Pause {lane}").click()
    expect(row).to_contain_text("paused")
    assert api.get(f"/api/lanes/{lane}")["paused"]
    undo(page, f"Lane {lane} is paused.")
    expect(row.get_by_role("button", name=f"Pause {lane}")).to_be_visible()
    assert not api.get(f"/api/lanes/{lane}")["paused"]
    row.get_by_role("button", name=f"Pause {lane}").click()
    row.get_by_role("button", name=f"Resume {lane}").click()
    expect(row.get_by_role("button", name=f"Pause {lane}")).to_be_visible()
    assert not api.get(f"/api/lanes/{lane}")["paused"]
    press(page, "Control+k")
    page.keyboard.type("whole queue")
    press(page, "Enter")
    banner = page.locator(".banner").filter(has_text="The queue is paused")
    expect(banner).to_be_visible()
    assert api.get("/api/queue/stats")["paused"]["all"]
    banner.get_by_role("button", name="Resume").click()
    expect(banner).to_have_count(0)
    assert not api.get("/api/queue/stats")["paused"]["all"]
    # What somebody else does is shown as well.
    api.post("/api/queue/pause", scope="all")
    expect(banner).to_be_visible()
    api.post("/api/queue/resume", scope="all")
    expect(banner).to_have_count(0)
    row.get_by_role("link", name=lane).click()
    expect(page).to_have_url(re.compile(f"#/requests.*{lane}"))


def test_numbers_and_charts_follow_what_happens(page_on: PageOn, site: Server, api: Api) -> None:
    page = page_on(site)
    wait_ready(page, "overview")
    queued = page.locator(".figure").filter(has_text="queued").locator(".figure-value")
    paused = page.locator(".figure").filter(has_text="paused").locator(".figure-value")
    before = int(paused.inner_text())
    id = api.enqueue(new_name("kind"))
    api.post(f"/api/jobs/{id}/pause")
    eventually(lambda: api.job(id)["status"] == "paused")
    expect(paused).to_have_text(str(before + 1))
    expect(queued).to_have_text(re.compile(r"\d+"))
    for words, span in (("24 hours", "24h"), ("Live", "live"), ("1 hour", "1h")):
        with page.expect_response(re.compile(rf"/api/history\?span={span}")):
            page.get_by_role("button", name=words, exact=True).click()
        expect(page.get_by_role("button", name=words, exact=True)).to_have_attribute(
            "aria-pressed", "true"
        )
    expect(page.locator("hw-chart")).to_have_count(3)
    page.locator(".figure").filter(has_text="paused").click()
    expect(page).to_have_url(re.compile("#/requests.*status%3Apaused"))


def item(kind: str, subject: str, name: str, **values: object) -> JSON:
    return {"kind": kind, "level": "warn", "subject": {"kind": subject, "name": name},
            "since": "2026-01-01T00:00:00Z", "until": None, "values": values, "of": [],
            "text": f"{kind} in English"}  # fmt: skip


PLACES = {
    "#/upstreams/a.example": item("upstream_closed", "upstream", "a.example", why="ban"),
    "#/requests?q=lane%3Aheavy": item("paused", "lane", "heavy", waiting=3),
    "#/requests?q=type%3Afetch+status%3Afailed": item("jobs_failed", "type", "fetch", count=4,
                                                      type="fetch", error="E7"),
    "#/schedules": item("schedule_late", "schedule", "nightly"),
    "#/slots": item("slots_outlived", "slots", "b.example", count=2),
    "#/channels/channel/a": item("channel_no_key", "channel", "a", code="a"),
    "#/feeds": item("feeds_gone", "feeds", "", count=2, names=["one", "two"]),
    "#/archive/library": item("library_low", "library", "main", why="2 GB"),
}  # fmt: skip


def test_each_item_that_needs_attention_leads_to_its_place(page_on: PageOn, site: Server) -> None:
    def attention(route: Route) -> None:
        route.fulfill(json={"items": [*PLACES.values()], "more": 0, "at": "2026-01-01T00:00:00Z"})

    page = page_on(site, "")
    page.context.route("**/api/attention", attention)
    page.goto("/")
    wait_ready(page, "overview")
    page.get_by_text("3 more").click()
    links = page.locator(".attention a")
    assert links.evaluate_all("(all) => all.map((each) => each.getAttribute('href'))") == [*PLACES]
    expect(links.nth(4)).to_have_text("slots_outlived in English")
    page.get_by_role("button", name="中文").click()
    expect(links.nth(2)).to_have_text("近一小时有 4 个 fetch 任务失败，最近一次：E7")  # noqa: RUF001
    expect(links.nth(6)).to_have_text("2 个订阅源已不存在：one、two")  # noqa: RUF001
    links.nth(4).click()
    wait_ready(page, "slots")


def test_who_has_nothing_is_told_how_to_begin(page_on: PageOn, site: Server) -> None:
    nothing = {"items": [], "more": 0, "at": "2026-01-01T00:00:00Z"}
    page = page_on(site, "")

    def stats(route: Route) -> None:
        answer = route.fetch().json()
        answer["counts"] = dict.fromkeys(answer["counts"], 0)
        route.fulfill(json={**answer, "lanes": {}})

    page.context.route("**/api/attention", lambda route: route.fulfill(json=nothing))
    page.context.route("**/api/queue/stats", stats)
    page.goto("/")
    expect(page.get_by_text("Nothing needs your attention.")).to_be_visible()
    expect(page.get_by_text("headway jobs add fetch")).to_be_visible()
