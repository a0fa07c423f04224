"""Bad luck: slow and broken answers, odd names and numbers, people in a hurry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import PageOn
from tests.browser.kit import Visits, dialog, go, press, toast, wait_for, wait_ready
from tests.contract.kit import Api, new_name
from tests.security.kit import Guarded
from tests.servers import Server

SAME = """const same = (got, wanted) => {
  const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${one} is not ${other}`);
};"""


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


def unwatched(visits: Visits, site: Server, path: str = "", *, phone: bool = False) -> Page:
    """For answers that no server of ours would give."""
    page = visits.blank_page(phone=phone)
    if path:
        page.goto(f"{site.url}/{path}")
    return page


def hold(page: Page, address: str, held: list[Route], method: str = "") -> None:
    def take(route: Route) -> None:
        if method in ("", route.request.method):
            held.append(route)
        else:
            route.continue_()

    page.route(address, take)


def answering(status: int, body: str) -> Callable[[Route], None]:
    return lambda route: route.fulfill(status=status, body=body, content_type="application/json")


def run(page: Page, script: str) -> None:
    page.evaluate(f"async () => {{ {SAME} {script} }}")


def test_a_slow_server_is_heard_to_the_end(visits: Visits, site: Server, api: Api) -> None:
    page = unwatched(visits, site)
    page.clock.install()
    held: list[Route] = []
    hold(page, "**/api/tasks/stats*", held)
    page.goto(f"{site.url}/#/overview")
    expect(page.locator("html")).to_have_attribute("data-connection", "live")
    wait_for(page, lambda: held)
    page.clock.run_for(1_500)  # the look after the connection stands
    page.evaluate(
        """async () => {
          const { listen } = await import("/static/page/live.js");
          window.heard = new Promise((done) => listen(({ events }) => events && done()));
        }"""
    )
    api.enqueue(new_name("slow"))
    page.evaluate("() => window.heard")
    before = len(held)
    page.clock.run_for(5_000)
    page.evaluate("() => fetch('/healthz')")  # whatever was asked by now is known by now
    assert len(held) == before, "nothing new is asked while an answer is on its way"
    page.unroute_all()
    wait_ready(page, "overview")


def test_what_ends_after_its_screen_was_left_asks_nothing_of_it(
    page_on: PageOn, site: Server, api: Api
) -> None:
    name = new_name("late")
    api.post("/api/schedules", {"name": name, "every": "1h", "job": {"type": name}}, 201)
    page = page_on(site, "")
    page.clock.install()
    page.goto("/#/schedules")
    wait_ready(page, "schedules")
    held: list[Route] = []
    hold(page, "**/pause", held)
    page.get_by_role("button", name=f"Pause {name}").dblclick()
    wait_for(page, lambda: held)
    go(page, "settings/retention")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert len(held) == 1, "a double click is one action"
    held[0].continue_()
    expect(toast(page, f"{name} is paused.")).to_be_visible()
    page.clock.run_for(20_000)
    wait_for(page, lambda: any("/api/retention" in url for url in asked))
    assert not any(url.endswith("/api/schedules") for url in asked)


def test_what_is_old_is_kept_and_called_old(visits: Visits, site: Server) -> None:
    page = unwatched(visits, site, "#/overview")
    wait_ready(page, "overview")
    expect(page.locator("html")).to_have_attribute("data-connection", "live")
    notice = page.locator("main .notice").filter(has_text="may be old")
    for status, body in ((500, "null"), (429, '{"detail": "slow down"}'), (200, '{"items": [')):
        page.route("**/api/tasks/stats*", answering(status, body))
        press(page, "R")
        expect(notice).to_be_visible()
        expect(page.locator("main")).to_contain_text("transcode")
        page.unroute_all()
        notice.get_by_role("button", name="Try again").click()
        expect(notice).to_have_count(0)


def test_who_is_looking_is_asked_until_it_is_known(visits: Visits, site: Server) -> None:
    page = unwatched(visits, site)
    page.clock.install()
    page.route("**/api/info", lambda route: route.fulfill(status=503, body="{}"), times=1)
    page.goto(f"{site.url}/#/schedules")
    add = page.get_by_role("button", name="New schedule")
    expect(add).to_have_attribute("aria-disabled", "true")
    page.clock.run_for(3_500)
    expect(add).not_to_have_attribute("aria-disabled", "true")


def test_names_are_found_again_whatever_is_in_them(page_on: PageOn, site: Server, api: Api) -> None:
    lane = f'{new_name("my")} "lane" \\ {{n}}|50%'
    id = api.enqueue(new_name("odd"), lane=lane, upstream="a/b")
    page = page_on(site, "#/overview")
    page.get_by_role("link", name=lane).click()
    expect(page.locator("main [data-row]")).to_have_count(1)
    expect(page.locator("main [data-row]")).to_contain_text(str(id))
    for name in ("a/b", ".."):
        go(page, f"upstreams/{quote(name, safe='')}")
        expect(page.locator("main .notice")).to_contain_text("cannot be part of an address")
    phone = page_on(site, f"#/upstreams/{'W' * 180}", phone=True)
    wait_ready(phone, "upstreams")
    assert phone.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    go(page, "settings/constructor")
    expect(page.get_by_role("link", name="Retention")).to_be_visible()


def test_numbers_and_times_that_nobody_knows_break_nothing(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "")
    page.clock.install()
    page.goto("/#/settings/retention")
    wait_ready(page, "settings")
    run(page, """
      const format = await import("/static/page/format.js");
      const { render } = await import("/static/render.js");
      const { bar, pager } = await import("/static/page/parts.js");
      const { addWords, text } = await import("/static/text.js");
      const dash = "\\u2013";
      for (const name of ["count", "percent", "bytes", "clockTime", "duration", "exactTime"]) {
        same([name, format[name](NaN), format[name](undefined)], [name, dash, dash]);
      }
      addWords({ "hard.try": ["{a} {b} {c}", ""] });
      same(text("hard.try", { a: null, b: "{c}|" }), `${dash} {c}| {c}`);
      const place = document.body.appendChild(document.createElement("div"));
      render(bar(0 / 0, "x"), place);
      same(place.firstElementChild.hasAttribute("aria-valuenow"), false);
      let turned = 0;
      render(pager({ page: 9, size: 10, total: 25 }, (to) => { turned = to; }), place);
      place.querySelector("button").click();
      same([turned, place.innerText.trim()], [3, `0${dash}0 of 25`]);
      place.innerHTML = "<hw-time at='soon'></hw-time>" +
        "<hw-elapsed></hw-elapsed>".repeat(2);
      place.lastChild.setAttribute("at", new Date().toISOString());
      place.id = "hard";
    """)  # fmt: skip
    page.clock.run_for(3_000)
    expect(page.locator("#hard hw-time")).to_have_text("\u2013")
    expect(page.locator("#hard hw-elapsed").first).to_have_text("\u2013")
    expect(page.locator("#hard hw-elapsed").last).not_to_have_text("0:00")


def test_elements_that_are_moved_stay_as_they_are(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "#/settings/retention")
    wait_ready(page, "settings")
    run(page, """
      const { html, render } = await import("/static/render.js");
      const place = document.body.appendChild(document.createElement("div"));
      const chart = document.createElement("hw-chart");
      let added = 0;
      chart.addEventListener = () => { added += 1; };
      place.append(chart);
      place.append(chart);
      same(added, 0);
      const one = document.createElement("b");
      const both = (first, other) => render(html`<i>${first}</i><u>${other}</u>`, place);
      both(one, null);
      both(null, one);
      both(one, one);
      same(place.querySelector("u").contains(one), true);
      both(one, null);
      same(place.querySelector("i").contains(one), true);
    """)  # fmt: skip


def test_dialogs_end_as_they_should(page_on: PageOn, site: Server) -> None:
    page = page_on(site, "#/settings/retention")
    wait_ready(page, "settings")
    go(page, "schedules")
    page.get_by_role("button", name="New schedule").click()
    form = dialog(page, "New schedule")
    press(page, "Control+k")
    expect(page.locator("dialog")).to_have_count(1)  # no palette before a question
    page.go_back()
    expect(form).to_have_count(0)
    page.go_forward()
    wait_ready(page, "schedules")
    # Sent, and closed before the answer has come: it is said all the same.
    name = new_name("hasty")
    held: list[Route] = []
    hold(page, "**/api/schedules", held, "POST")
    page.get_by_role("button", name="New schedule").click()
    form.locator("[name=name]").fill(name)
    form.locator("[name=type]").fill(name)
    form.locator("[name=every]").fill("1h")
    press(page, "Enter", "Enter")
    wait_for(page, lambda: held)
    press(page, "Escape")
    expect(form).to_have_count(0)
    held[0].continue_()
    expect(page.locator(".toast")).to_contain_text(name)
    expect(page.get_by_role("row").filter(has_text=name)).to_be_visible()
    assert len(held) == 1
    # Of two previews the last one counts, even if it comes first.
    page.evaluate(
        """async () => {
          const { askForm } = await import("/static/page/dialogs.js");
          window.answers = [];
          askForm({ title: "Previews", submit: "Send", send: () => {},
                    fields: [{ name: "x", label: "X" }],
                    preview: () => new Promise((done) => window.answers.push(done)) });
        }"""
    )
    form = dialog(page, "Previews")
    form.get_by_label("X").fill("1")
    wait_for(page, lambda: page.evaluate("() => window.answers.length") == 2)
    page.evaluate("() => { answers[1]('the last'); }")
    expect(form.locator(".preview")).to_have_text("the last")
    page.evaluate("async () => { answers[0]('the first'); await 0; }")
    form.get_by_label("X").fill("2")
    expect(form.locator(".preview")).to_have_text("the last")


def test_who_is_refused_one_thing_still_finds_the_others(
    page_on: PageOn, guarded_site: Guarded, visits: Visits
) -> None:
    page = page_on(guarded_site, "#/audit", token=guarded_site.tokens["alice"])
    wait_ready(page, "audit")
    visits.witness_of(page).expected[403] = 1
    go(page, "settings")
    expect(page.locator("main .notice")).to_contain_text("bound to one")
    page.get_by_role("link", name="Retention").click()
    change = page.get_by_role("button", name="Change")
    expect(change).to_have_attribute("aria-disabled", "true")
    expect(change).to_have_attribute(
        "title", "This concerns all tenants, and this login is bound to one."
    )
