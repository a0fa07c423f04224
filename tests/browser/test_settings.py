"""Settings on the page: lanes, tokens that are shown once, retention, and the servers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOn
from tests.browser.kit import dialog, toast, undo, wait_ready
from tests.contract.kit import Api, new_name
from tests.postgres import shared_postgres
from tests.servers import Server
from tests.together.group import Group, group_on


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


@pytest.fixture(scope="module")  # so that the page goes first
def pair() -> Iterator[Group]:
    schema = f"s{uuid4().hex}"
    postgres = shared_postgres()
    with group_on(postgres.url(schema=schema), postgres.url(), schema, 2) as servers:
        yield servers


def test_a_lane_is_paused_and_its_caps_changed(page_on: PageOn, site: Server, api: Api) -> None:
    lane = new_name("lane")
    path = f"/api/lanes/{lane}"
    api.enqueue(new_name("kind"), lane=lane)
    page = page_on(site, "#/settings")
    wait_ready(page, "settings")
    row = page.get_by_role("row").filter(has_text=lane)
    expect(row).to_contain_text("0 / ∞")
    row.get_by_role("button", name=f"Pause {lane}").click()
    expect(row.locator(".badge")).to_have_text("paused")
    assert api.get(path)["paused"]
    undo(page, f"Lane {lane} is paused.")
    expect(row.locator(".badge")).to_have_count(0)
    assert not api.get(path)["paused"]
    row.get_by_role("button", name=f"Reset {lane}").press("Enter")
    expect(toast(page, "Nothing was set here by an operator.")).to_be_visible()
    row.get_by_role("button", name=f"Change the caps of {lane}").click()
    asked = dialog(page, f"Caps of {lane}")
    asked.get_by_label("At once").fill("5")
    expect(asked.locator(".changes")).to_have_text(re.compile(r"limit\s*not set\s*→\s*5"))
    assert api.get(path)["limit"] is None
    asked.get_by_role("button", name="Apply").click()
    expect(row).to_contain_text("0 / 5")
    assert api.get(path)["limit"] == 5
    row.get_by_role("button", name=f"Reset {lane}").click()
    page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    expect(row).to_contain_text("0 / ∞")
    assert api.get(path)["limit"] is None
    undo(page, f"{lane} is as declared again.")
    expect(row).to_contain_text("0 / 5")
    assert api.get(path)["limit"] == 5
    page.get_by_role("link", name="All declared").click()
    expect(page.get_by_role("row").filter(has_text=lane)).to_contain_text("limit = 5 operator")


def test_a_token_is_shown_once_and_revoked(page_on: PageOn, site: Server) -> None:
    name = new_name("token")
    page = page_on(site, "#/settings/tokens")
    wait_ready(page, "settings")
    page.get_by_role("button", name="New token").click()
    asked = dialog(page, "New token")
    asked.get_by_label("Name").fill(name)
    asked.get_by_label("read: look").uncheck()
    asked.get_by_role("button", name="Make the token").click()
    expect(asked.get_by_role("alert")).to_have_text("Choose one scope or more.")
    asked.get_by_label("read: look").check()
    asked.get_by_label("submit: enqueue").check()
    asked.get_by_label("Tenant").fill("orchard")
    asked.get_by_label("Lasts").select_option("a week")
    asked.get_by_role("button", name="Make the token").click()
    made = dialog(page, f"Token {name}")
    token = made.locator("[data-token]").inner_text()
    with Api(site.url, token) as own:
        info = own.get("/api/info")
    assert (set(info["scopes"]), info["tenant"]) == ({"read", "submit"}, "orchard")
    made.get_by_role("button", name="I have it").click()
    expect(made).to_have_count(0)
    row = page.get_by_role("row").filter(has_text=name)
    expect(row).to_contain_text("orchard")
    assert token not in page.content()
    row.get_by_role("button", name=f"Revoke {name}").click()
    dialog(page, f"Revoke {name}?").get_by_role("button", name="Revoke").click()
    expect(row.locator(".badge.bad")).to_have_text("revoked")
    with Api(site.url, token) as own:
        own.problem(401, "GET", "/api/info")


def test_ended_jobs_are_kept_as_long_as_people_say(page_on: PageOn, site: Server, api: Api) -> None:
    def kept() -> tuple[float, float, bool]:
        found = api.get("/api/retention")
        return found["completed_days"], found["failed_days"], found["overridden"]

    page = page_on(site, "#/settings/retention")
    wait_ready(page, "settings")
    before = kept()
    pairs = page.locator("dl.pairs")
    expect(pairs).to_contain_text(re.compile(r"7 days\s*code"))

    def change(completed: str, failed: str) -> None:
        page.get_by_role("button", name="Change").click()
        asked = dialog(page, "Change")
        asked.get_by_label("Completed and cancelled").fill(completed)
        asked.get_by_label("Failed").fill(failed)
        asked.get_by_role("button", name="Save").click()
        expect(pairs).to_contain_text(re.compile(rf"{completed} days\s*operator"))

    change("12", "90")
    assert kept() == (12, 90, True)
    undo(page, "Retention is changed.")
    expect(pairs).to_contain_text(re.compile(r"7 days\s*code"))
    assert kept() == before
    change("13", "91")
    page.get_by_role("button", name="As configured").click()
    expect(pairs).to_contain_text(re.compile(r"7 days\s*code"))
    assert kept() == before
    with page.expect_response("**/api/tasks/cleanup") as cleaned:
        page.get_by_role("button", name="Clean up now").click()
        sure = dialog(page, "Clean up now?")
        expect(sure).to_contain_text(
            "completed jobs older than 7 days and failed ones older than 30"
        )
        sure.get_by_role("button", name="Clean up now").click()
    assert cleaned.value.ok
    expect(toast(page, "Removed 0 jobs and 0 events.")).to_be_visible()


def test_a_server_with_a_store_of_its_own_leads(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "#/settings/servers")
    wait_ready(page, "settings")
    expect(page.locator("main")).to_contain_text("This server has its store for itself.")
    expect(page.get_by_role("row").filter(has_text=site.url)).to_contain_text("leads")


def test_the_servers_that_share_a_store_and_which_of_them_leads(
    pair: Group, page_on: PageOn
) -> None:
    leader, follower = pair.servers
    page = page_on(follower, "#/settings/servers")
    wait_ready(page, "settings")
    expect(page.get_by_role("row").filter(has_text=leader.url)).to_contain_text("leads")
    expect(page.get_by_role("row").filter(has_text=follower.url)).to_contain_text("follows")
