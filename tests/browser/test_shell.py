"""What is around the screens: ways to go, words, colours, the live connection, who may do what."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import (
    Visits,
    dialog,
    focused,
    go,
    press,
    settle,
    toast,
    wait_ready,
    wait_until,
)
from tests.contract.kit import Api, new_name
from tests.hands.kit import eventually
from tests.security.kit import Guarded
from tests.servers import Server, server_on


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


def is_live(page: Page) -> None:
    expect(page.locator("html")).to_have_attribute("data-connection", "live")


def palette(page: Page, typed: str) -> None:
    press(page, "Control+k")
    expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    page.keyboard.type(typed)


# ---------------------------------------------------------------------- going somewhere


def test_every_screen_is_two_keys_away(page_on: PageOn, site: Server) -> None:
    page = page_on(site)
    wait_ready(page, "overview")
    links = page.locator("#page-nav a")
    screens = links.evaluate_all(
        "(all) => all.map((each) => [each.hash.slice(2), each.getAttribute('aria-keyshortcuts')])"
    )
    assert len(screens) == 11
    for name, keys in reversed(screens):
        press(page, *keys.split())
        wait_ready(page, name)
        assert page.locator("#page-nav [aria-current=page]").get_attribute("href") == f"#/{name}"
    assert page.title() == "Overview · Headway"
    links.nth(1).click()
    wait_ready(page, "upstreams")
    assert focused(page) == "Upstreams", "who cannot see it hears where they are"
    press(page, "g", "x")  # nothing is there, and nothing happens
    press(page, "?")
    shortcuts = dialog(page, "Keyboard shortcuts")
    expect(shortcuts).to_contain_text("Go to Archive")
    press(page, "g", "o")  # not while something is open
    press(page, "Escape")
    expect(shortcuts).to_have_count(0)
    expect(page).to_have_url(re.compile("#/upstreams"))
    page.evaluate("() => { location.hash = '#/nowhere/at/all'; }")
    expect(page.get_by_role("alert")).to_contain_text("There is no such screen.")


def test_the_palette_goes_anywhere_by_the_keyboard(page_on: PageOn, site: Server, api: Api) -> None:
    id = api.enqueue(new_name("kind"))
    page = page_on(site)
    wait_ready(page, "overview")
    palette(page, f"#{id}")
    expect(page.get_by_role("option").first).to_have_text(f"Open request {id}")
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(f"Request {id}"))
    palette(page, "lone harbour")
    expect(page.get_by_role("option")).to_have_text(["Find requests: lone harbour"])
    press(page, "Enter")
    expect(page).to_have_url(re.compile(r"#/requests\?q=lone\+harbour"))
    palette(page, "go to")
    expect(page.get_by_role("option", selected=True)).to_have_text(re.compile("Overview"))
    press(page, "ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_have_text(re.compile("Upstreams"))
    press(page, "ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown", "Enter")
    wait_ready(page, "upstreams")
    palette(page, "dark")
    press(page, "Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    palette(page, "x")
    press(page, "Control+k")
    expect(page.get_by_role("dialog")).to_have_count(1)
    press(page, "Escape", "Escape")  # the first may empty the field
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_language_and_theme_are_remembered(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "#/schedules", language="zh")
    wait_ready(page, "schedules")
    title = page.get_by_role("heading", level=1)
    expect(title).to_have_text("定时计划")
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    page.get_by_role("button", name="EN", exact=True).click()
    expect(title).to_have_text("Schedules")
    theme = page.get_by_role("button", name="Theme: Automatic")
    theme.click()
    page.get_by_role("button", name="Theme: Light").click()
    expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.reload()
    wait_ready(page, "schedules")
    expect(title).to_have_text("Schedules")
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark
    page.get_by_role("button", name="Theme: Dark").click()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") != dark


def test_a_deep_link_survives_the_way_in(
    page_on: PageOn, guarded_site: Guarded, expect_status: ExpectStatus
) -> None:
    with guarded_site.as_("operator") as operator:
        id = operator.enqueue(new_name("kind"))
    page = page_on(guarded_site, f"#/requests/{id}")
    page.get_by_label("Access token").fill(guarded_site.tokens["operator"])
    press(page, "Enter")
    wait_ready(page, "requests")
    assert page.url == f"{guarded_site.url}/#/requests/{id}"
    # A login that has ended leads to the same way, and back.
    go(page, "schedules")
    is_live(page)
    page.context.clear_cookies()
    expect_status(page, 401)
    press(page, "R")
    page.get_by_label("Access token").fill(guarded_site.tokens["operator"])
    press(page, "Enter")
    wait_ready(page, "schedules")
    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_url(re.compile("/login"))


# ---------------------------------------------------------------------- live


def test_nothing_stale_is_shown_as_if_it_were_live(page_on: PageOn, visits: Visits) -> None:
    with server_on("sqlite") as server:
        page = page_on(server)
        wait_ready(page, "overview")
        is_live(page)
        main = "() => getComputedStyle(document.querySelector('main')).opacity"
        assert page.evaluate(main) == "1"
        with visits.witness_of(page).server_may_go():
            server.kill()
            expect(page.locator(".connection")).to_have_text("reconnecting…")
            expect(page.locator(".banner")).to_contain_text("The connection to the server is lost.")
            wait_until(page, main.replace(".opacity", ".opacity !== '1'"))
            server.start()
            with Api(server.url) as api:
                for _ in range(3):
                    api.enqueue(new_name("kind"))
            is_live(page)
            queued = page.locator(".figure").filter(has_text="queued")
            expect(queued).to_contain_text("3")
            expect(page.locator(".banner")).to_have_count(0)
            settle(page, visits.witness_of(page))
            page.context.close()


def test_all_windows_share_one_connection(page_on: PageOn, site: Server) -> None:
    def clients() -> float:
        with urlopen(f"{site.url}/metrics") as answer:
            said = answer.read().decode()
        return float(re.search(r"^headway_sse_clients (\S+)", said, re.M)[1])  # type: ignore[index]

    first = page_on(site, "#/audit")
    others = [first.context.new_page() for _ in range(2)]
    for other in others:
        other.goto("/#/slots")
    for page in (first, *others):
        is_live(page)
    eventually(lambda: clients() == 1)
    first.close()
    with Api(site.url) as api:
        api.post("/api/queue/pause", scope="all")
        for other in others:
            expect(other.get_by_text("The queue is paused")).to_be_visible()
        api.post("/api/queue/resume", scope="all")
    assert clients() == 1


def test_who_does_not_look_does_not_ask(page_on: PageOn, visits: Visits, site: Server) -> None:
    page = page_on(site, "", script="""
      let away = false;
      Object.defineProperty(document, "hidden", { get: () => away });
      globalThis.lookAway = (whether) => {
        away = whether;
        document.dispatchEvent(new Event("visibilitychange"));
      };""")  # fmt: skip
    page.clock.install()
    page.goto("/#/slots")
    wait_ready(page, "slots")
    wait_until(page, "() => document.documentElement.dataset.connection === 'live'")
    witness = visits.witness_of(page)
    page.evaluate("() => lookAway(true)")
    settle(page, witness)
    before = len(witness.calls)
    page.clock.fast_forward(120_000)
    settle(page, witness)
    assert witness.calls[before:] == []
    with page.expect_response("**/api/slots/stats"):
        page.evaluate("() => lookAway(false)")


# ---------------------------------------------------------------------- what goes wrong


def test_what_the_server_refuses_is_said(
    page_on: PageOn, site: Server, api: Api, expect_status: ExpectStatus
) -> None:
    name = new_name("gone")
    api.post("/api/schedules", {"name": name, "every": "1h", "job": {"type": "report"}}, 201)
    page = page_on(site, "#/schedules")
    wait_ready(page, "schedules")
    page.get_by_role("button", name=f"Remove {name}").click()
    api.ok("DELETE", f"/api/schedules/{name}", 204)
    expect_status(page, 404)
    dialog(page, f"Remove {name}?").get_by_role("button", name="Remove").click()
    said = toast(page, f"there is no schedule '{name}'")
    expect(said).to_have_attribute("role", "alert")
    said.get_by_role("button", name="Dismiss").click()
    expect(said).to_have_count(0)


def test_a_screen_that_cannot_be_loaded_or_drawn_says_so(visits: Visits, site: Server) -> None:
    page = visits.blank_page()  # what it writes to the console is what this is about
    page.goto(f"{site.url}/#/schedules")
    wait_ready(page, "schedules")
    page.context.route("**/screens/slots/screen.js", lambda route: route.abort())
    page.evaluate("() => { location.hash = '#/slots'; }")
    expect(page.get_by_role("alert")).to_contain_text("A part of the page could not be loaded.")

    def nonsense(route: Route) -> None:
        route.fulfill(body=json.dumps({"items": [{"name": "x"}]}), content_type="application/json")

    page.context.route("**/api/schedules", nonsense)
    page.evaluate("() => { location.hash = '#/schedules'; }")
    expect(page.get_by_role("alert")).to_contain_text("This screen could not be shown.")
    page.context.unroute("**/api/schedules")
    press(page, "R")
    expect(page.get_by_role("row").filter(has_text="nightly report")).to_be_visible()


# ---------------------------------------------------------------------- who may do what


def test_who_may_only_look_is_told_why(page_on: PageOn, guarded_site: Guarded) -> None:
    page = page_on(guarded_site, "#/schedules", token=guarded_site.tokens["reader"])
    wait_ready(page, "schedules")
    new = page.get_by_role("button", name="New schedule")
    expect(new).to_have_attribute("aria-disabled", "true")
    expect(new).to_have_attribute("title", re.compile("lacks the scope “operate”"))
    new.press("Enter")
    expect(toast(page, "This login lacks the scope “operate”.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)


# What is refused, and then left at that; the archive is not on here at all.
REFUSED = {"upstreams": 403, "settings": 403, "whatif": 403, "archive": 409}


def test_a_tenant_is_told_what_is_for_operators(
    page_on: PageOn, guarded_site: Guarded, visits: Visits, expect_status: ExpectStatus
) -> None:
    page = page_on(guarded_site, token=guarded_site.tokens["alice"])
    wait_ready(page, "overview")
    is_live(page)
    for name in page.evaluate("() => headway.screens"):
        if name in REFUSED:
            for _ in range(2 if name == "whatif" else 1):  # upstreams and lanes
                expect_status(page, REFUSED[name])
        go(page, name)
        settle(page, visits.witness_of(page))
        told = page.get_by_role("alert").filter(has_text="This login may not see this.")
        expect(told).to_have_count(1 if REFUSED.get(name) == 403 else 0)
        assert not visits.witness_of(page).complaints, name
