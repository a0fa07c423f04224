"""Schedules on the page: made, changed, paused, run at once, removed, and all of it undone."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import dialog, go, press, toast, undo, wait_ready
from tests.contract.kit import JSON, Api, new_name
from tests.servers import Server


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


def schedule(api: Api, name: str) -> JSON:
    return api.get(f"/api/schedules/{name}")


def test_one_is_made_changed_and_taken_back(
    page_on: PageOn, site: Server, api: Api, expect_status: ExpectStatus
) -> None:
    name, kind = new_name("weekly"), new_name("kind")
    page = page_on(site, "#/schedules")
    wait_ready(page, "schedules")
    page.get_by_role("button", name="New schedule").click()
    asked = dialog(page, "New schedule")
    asked.get_by_label("Name").fill(name)
    asked.get_by_label("Type of the job").fill(kind)
    asked.get_by_role("textbox", name="Every").fill("often")
    asked.get_by_label("Upstream").fill("a.example, b.example")
    asked.get_by_label("What it is called with").fill("{")
    asked.get_by_role("button", name="Save").click()
    expect(asked.get_by_role("alert")).to_contain_text("This is no JSON object.")
    asked.get_by_label("What it is called with").fill('{"week": 7}')
    expect_status(page, 422)
    asked.get_by_role("button", name="Save").click()
    expect(asked.get_by_role("alert")).to_contain_text("often")
    asked.get_by_role("textbox", name="Every").fill("30m")
    asked.get_by_role("button", name="Save").click()
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("every 30 min")
    made = schedule(api, name)
    assert (made["type"], made["args"]) == (kind, {"week": 7})
    assert made["upstreams"] == ["a.example", "b.example"]
    undo(page, f"{name} is saved.")
    expect(row).to_have_count(0)
    api.problem(404, "GET", f"/api/schedules/{name}")

    press(page, "Control+k")
    page.keyboard.type("new schedule")
    press(page, "Enter")
    asked.get_by_label("Name").fill(name)
    asked.get_by_label("Type of the job").fill(kind)
    asked.get_by_label("When").select_option("by a cron rule")
    asked.get_by_role("textbox", name="Cron").fill("0 3 * * 1")
    expect(asked.get_by_label("Time zone")).to_have_value("Europe/Berlin")
    asked.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("0 3 * * 1")
    expect(row.locator("hw-countdown")).to_have_text(re.compile(r"\d"))
    page.get_by_role("button", name=f"Change {name}").click()
    changed = dialog(page, f"Schedule {name}")
    changed.get_by_role("textbox", name="Cron").fill("5 4 * * *")
    changed.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("5 4 * * *")
    assert schedule(api, name)["rule"] == {"cron": "5 4 * * *", "zone": "Europe/Berlin"}
    toast(page, "is saved").last.get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("0 3 * * 1")
    assert schedule(api, name)["rule"]["cron"] == "0 3 * * 1"


def test_one_is_paused_run_at_once_and_removed(page_on: PageOn, site: Server, api: Api) -> None:
    name, kind = f"{new_name('nightly')} report", new_name("kind")
    body = {"name": name, "every": "1h", "job": {"type": kind, "args": {"n": 1}, "priority": 7,
                                                 "tenant": "orchard"}}  # fmt: skip
    api.post("/api/schedules", body, 201)
    made = schedule(api, name)
    page = page_on(site, "#/schedules")
    wait_ready(page, "schedules")
    row = page.get_by_role("row").filter(has_text=name)
    row.get_by_role("button", name=f"Pause {name}").click()
    expect(row.locator(".badge")).to_have_text("paused")
    assert schedule(api, name)["paused"]
    undo(page, f"{name} is paused.")
    expect(row.locator("hw-countdown")).to_be_visible()
    assert not schedule(api, name)["paused"]
    row.get_by_role("button", name=f"Pause {name}").click()
    row.get_by_role("button", name=f"Resume {name}").click()
    expect(row.locator("hw-countdown")).to_be_visible()
    assert not schedule(api, name)["paused"]
    row.get_by_role("button", name=f"Run {name} once now").click()
    wait_ready(page, "requests")
    job = api.job(int(page.url.rpartition("/")[2]))
    assert (job["type"], job["priority"]) == (kind, 7)
    assert (job["tenant"], job["labels"]) == ("orchard", {"schedule": name})
    go(page, "schedules")
    row.get_by_role("button", name=f"Remove {name}").click()
    dialog(page, f"Remove {name}?").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    api.problem(404, "GET", f"/api/schedules/{name}")
    undo(page, f"{name} is removed.")
    expect(row).to_contain_text("every 60 min")
    again = schedule(api, name)
    kept = ("type", "args", "lane", "tenant", "priority")
    assert {each: again[each] for each in kept} == {each: made[each] for each in kept}
    assert again["rule"]["every_s"] == 3600
