"""Upstreams on the page: found, steered after a look at what would follow, each step taken back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import dialog, press, toast, undo, wait_ready
from tests.contract.kit import JSON, Api, new_name, worker_of
from tests.servers import Server


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


@pytest.fixture
def host() -> str:
    return f"{new_name('host')}.example"


def settings(api: Api, host: str, **wanted: object) -> JSON:
    return api.ok("PUT", f"/api/upstreams/{host}/settings", json=wanted)


def gate(api: Api, host: str) -> JSON:
    return api.get(f"/api/upstreams/{host}")


def test_one_is_found_by_its_name_and_many_come_in_pages(
    page_on: PageOn, site: Server, api: Api
) -> None:
    word = new_name("many")
    for number in range(21):
        settings(api, f"{word}-{number:02}.example", limit=2)
    page = page_on(site, "#/upstreams")
    wait_ready(page, "upstreams")
    press(page, "/")
    field = page.get_by_role("searchbox", name="Filter by name")
    expect(field).to_be_focused()
    page.keyboard.type(word)
    lanes = page.locator("article.lane")
    expect(page.locator(".pager")).to_contain_text("1–20 of 21")  # noqa: RUF001
    expect(lanes).to_have_count(20)
    expect(lanes.first.get_by_label("0 of 2 places are taken").locator("li")).to_have_count(2)
    page.get_by_role("button", name="Next page").click()
    expect(lanes).to_have_count(1)
    expect(page).to_have_url(re.compile("page=2"))
    page.get_by_role("button", name="Next page").press("Enter")
    expect(toast(page, "This is the last page.")).to_be_visible()
    field.fill(f"{word}-07")
    expect(lanes.first).to_contain_text(f"{word}-07")
    press(page, "Escape", "j", "Enter")  # from the field, to the row, into it
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{word}-07.example")
    expect(page.locator(".lane.whole")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("heading", level=1)).to_have_text("Upstreams")
    field.fill("nobody has this")
    expect(page.get_by_text("No upstream has “nobody has this” in its name.")).to_be_visible()


def test_it_is_paused_closed_and_opened_and_each_step_taken_back(
    page_on: PageOn, site: Server, api: Api, host: str
) -> None:
    kind = new_name("kind")
    settings(api, host, limit=1)
    ids = [api.enqueue(kind, upstream=host, tenant="orchard") for _ in range(3)]
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        page = page_on(site, f"#/upstreams/{host}")
        wait_ready(page, "upstreams")
        lane = page.locator(".lane")
        expect(lane).to_contain_text(re.compile(r"1\s*/\s*1\s*running\s*2\s*waiting"))
        expect(lane.locator("a.cell")).to_have_attribute("href", f"#/requests/{work['id']}")
        expect(page.get_by_role("row").filter(has_text="orchard").first).to_contain_text("%")
        lane.get_by_role("button", name="Pause").click()
        expect(lane).to_contain_text("Paused by an operator")
        assert gate(api, host)["paused"]
        undo(page, f"{host} is paused.")
        expect(lane.get_by_role("button", name="Pause")).to_be_visible()
        assert not gate(api, host)["paused"]
        press(page, "Control+k")
        page.keyboard.type("pause")
        press(page, "Enter")
        lane.get_by_role("button", name="Resume").click()
        expect(lane.get_by_role("button", name="Pause")).to_be_visible()
        assert not gate(api, host)["paused"]

        lane.get_by_role("button", name="Close").click()
        asked = dialog(page, f"Close {host}")
        expect(asked).to_contain_text("1 call that is inside goes on.")
        asked.get_by_label("For").select_option("3600")
        asked.get_by_label("Why").fill("moving house")
        asked.locator("[type=submit]").click()
        expect(lane).to_contain_text(re.compile(r"moving house · opens in (59|60|1):\d\d"))
        assert gate(api, host)["closed_why"] == "moving house"
        undo(page, f"{host} is closed.")
        expect(lane.get_by_role("button", name="Close")).to_be_visible()
        assert gate(api, host)["closed_until"] is None
        until = api.post(f"/api/upstreams/{host}/close", {"for_s": 900, "why": "ban"})[
            "closed_until"
        ]
        lane.get_by_role("button", name="Open").click()
        expect(dialog(page, f"Open {host} now?")).to_contain_text("because of: ban.")
        assert gate(api, host)["closed_until"] == until, "not before it was confirmed"
        dialog(page, f"Open {host} now?").get_by_role("button", name="Open").click()
        expect(lane.get_by_role("button", name="Close")).to_be_visible()
        assert gate(api, host)["closed_until"] is None
        undo(page, f"{host} is open.")
        expect(lane).to_contain_text("ban")
        assert gate(api, host)["closed_until"] == until
        api.post(f"/api/upstreams/{host}/open")
    for id in ids:
        api.send("POST", f"/api/jobs/{id}/cancel")


def test_caps_change_after_a_look_at_what_would_follow(
    page_on: PageOn, site: Server, api: Api, host: str, expect_status: ExpectStatus
) -> None:
    kind = new_name("kind")
    settings(api, host, limit=1)
    ids = [api.enqueue(kind, upstream=host) for _ in range(3)]
    with worker_of(api, kind) as worker:
        worker.take_one()
        page = page_on(site, f"#/upstreams/{host}")
        wait_ready(page, "upstreams")
        page.get_by_role("button", name="Change caps").click()
        asked = dialog(page, f"Caps of {host}")
        expect(asked).to_contain_text("Nothing would change.")
        asked.get_by_label("At once").fill("3")
        expect(asked.locator(".preview")).to_contain_text("2 that wait can start at once.")
        expect(asked.locator(".changes")).to_have_text(re.compile(r"limit\s*1\s*→\s*3"))
        assert gate(api, host)["limit"] == 1, "nothing is changed by a look"
        asked.get_by_role("button", name="Apply").click()
        expect(page.locator(".lane")).to_contain_text(re.compile(r"1\s*/\s*3"))
        assert gate(api, host)["limit"] == 3
        undo(page, "are changed")
        expect(page.locator(".lane")).to_contain_text(re.compile(r"1\s*/\s*1"))
        assert gate(api, host)["limit"] == 1

        page.get_by_role("button", name="Change caps").click()
        expect(asked.get_by_label("How often")).to_have_count(0)
        asked.get_by_label("Pace").select_option("one every …")
        expect_status(page, 422, 422)  # the look, and the attempt
        asked.get_by_label("How often").fill("never")
        expect(asked.locator(".preview")).to_contain_text("never")
        asked.get_by_role("button", name="Apply").click()
        expect(asked.get_by_role("alert")).to_contain_text("never")
        asked.get_by_label("How often").fill("2s")
        expect(asked.get_by_role("alert")).to_have_count(0)
        asked.get_by_role("button", name="Apply").click()
        expect(page.get_by_text("one every 2 s")).to_be_visible()
        assert gate(api, host)["settings"]["value"]["limit"] == 1
        page.get_by_role("button", name="Reset").click()
        expect(dialog(page, f"Back to what is declared for {host}?")).to_contain_text("limit")
        page.get_by_role("dialog").get_by_role("button", name="Reset").click()
        expect(page.get_by_text("Nothing is set for it: no limit, no pace.")).to_be_visible()
        assert gate(api, host)["settings"] is None
        undo(page, "is as declared again")
        expect(page.get_by_text("one every 2 s")).to_be_visible()
        assert gate(api, host)["limit"] == 1
    for id in ids:
        api.send("POST", f"/api/jobs/{id}/cancel")


def test_what_was_learned_is_pinned_and_forgotten(
    page_on: PageOn, site: Server, api: Api, host: str
) -> None:
    def pins() -> JSON:
        (learner,) = (each for each in gate(api, host)["limits"] if "pins" in each)
        return {unit: value for unit, value in learner["pins"].items() if value is not None}

    settings(api, host, learn=True)
    page = page_on(site, f"#/upstreams/{host}")
    wait_ready(page, "upstreams")
    page.get_by_role("button", name="Pin").click()
    asked = dialog(page, f"Pin the limits of {host}")
    asked.get_by_label("Requests a minute").fill("30")
    asked.locator("[type=submit]").click()
    expect(page.get_by_text("pinned: 30")).to_be_visible()
    assert pins() == {"rpm": 30}
    undo(page, "are set")
    expect(page.get_by_text("pinned: 30")).to_have_count(0)
    assert pins() == {}
    page.get_by_role("button", name="Forget").click()
    dialog(page, f"Forget what was learned about {host}?").get_by_role(
        "button", name="Forget"
    ).click()
    expect(toast(page, f"What was learned about {host} is forgotten.")).to_be_visible()
    events = {each["event"] for each in api.get("/api/audit")["items"]
              if each["subject"] == f"upstream:{host}"}  # fmt: skip
    assert "learned_reset" in events
    for words, span in (("24 hours", "24h"), ("Live", "live")):
        with page.expect_response(re.compile(rf"/api/history\?span={span}&.*name={host}")):
            page.get_by_role("button", name=words).click()
    expect(page.locator("hw-chart")).to_have_count(3)
