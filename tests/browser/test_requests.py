"""Requests on the page: found, understood, steered one by one and all at once, looked into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from time import time

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.audit import audit
from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import Language, press, tab_to, wait_for, wait_ready
from tests.contract.kit import JSON, Api, asking, new_name, worker_of
from tests.hands.kit import eventually
from tests.security.kit import Guarded
from tests.servers import Server


@pytest.fixture
def api(site: Server) -> Iterator[Api]:
    with Api(site.url) as client:
        yield client


@pytest.fixture
def kind() -> str:
    return new_name("kind")


def row(page: Page, id: int) -> Locator:
    return page.locator(f"[data-row='{id}']")


def toast(page: Page, words: str) -> Locator:
    return page.locator(".toast").filter(has_text=words)


def undo(page: Page, words: str) -> None:
    toast(page, words).get_by_role("button", name="Undo").click()


def state_of(api: Api, id: int, status: str) -> None:
    eventually(lambda: api.job(id)["status"] == status)


def banned(api: Api, kind: str, host: str, **more: object) -> list[int]:
    """Three that wait at an upstream which has shut us out: the first has met that itself."""
    ids = [api.enqueue(kind, upstream=host, args={"part": n}, **more) for n in range(3)]
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=412, error="HTTP 412")
    return ids


def test_a_row_says_why_it_waits_until_when_and_in_which_place(
    page_on: PageOn, site: Server, api: Api, kind: str
) -> None:
    host = f"{kind}.example"
    ids = banned(api, kind, host, labels={"team": "red"}, key=f"album-{kind}")
    with asking(api, kind):
        page = page_on(site, f"#/requests?q=type:{kind}")
        wait_ready(page, "requests")
        # The key lets one of them stand in line; the others wait for it.
        said = re.compile(
            rf"waits at {host}: 412 cool-down, opens in \d+:\d\d(:\d\d)?, \d+(st|nd|rd|th) in line"
        )
        first = page.locator("[data-row]").filter(has_text=said).first
        expect(first).to_contain_text("team=red")
        expect(first.get_by_role("link", name=host).first).to_have_attribute(
            "href", f"#/upstreams/{host}"
        )
        first.get_by_role("link").first.click()
        expect(page.locator(".standing")).to_have_text(said, use_inner_text=True)
        expect(page.get_by_role("heading", level=1)).to_have_text(
            re.compile(rf"Request ({'|'.join(map(str, ids))})")
        )


def test_the_search_is_completed_from_the_keyboard(
    page_on: PageOn, site: Server, api: Api, kind: str, expect_status: ExpectStatus
) -> None:
    waits, other = api.enqueue(kind, lane="lane of two words"), api.enqueue(kind)
    api.post(f"/api/jobs/{other}/cancel")
    page = page_on(site, "#/requests")
    wait_ready(page, "requests")
    press(page, "/")
    field = page.get_by_role("combobox", name="Search requests")
    expect(field).to_be_focused()
    expect(page.get_by_role("option")).to_have_count(13)
    page.keyboard.type("ty")
    press(page, "Tab")
    expect(field).to_have_value("type:")
    page.keyboard.type(kind[:-1])
    expect(page.get_by_role("option")).to_have_text([kind])
    press(page, "ArrowDown", "Enter")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.keyboard.type("stat")
    press(page, "Escape")
    expect(page.get_by_role("option")).to_have_count(0)
    expect(field).to_be_focused()
    page.keyboard.type("us:wai")
    press(page, "Tab")
    expect(page).to_have_url(re.compile("q=type%3A.*status%3Awaiting"))
    expect(row(page, waits)).to_be_visible()
    expect(row(page, other)).to_have_count(0)
    # What has blanks in it is quoted.
    field.fill("lane:two")
    page.get_by_role("option", name="lane of two words").click()
    expect(field).to_have_value('lane:"lane of two words" ')
    expect(row(page, waits)).to_be_visible()
    expect_status(page, 422)
    field.fill("colour:red")
    press(page, "Enter")
    expect(page.get_by_role("alert")).to_contain_text("colour: is no qualifier; known are id")
    expect(field).to_have_attribute("aria-invalid", "true")
    page.get_by_role("button", name="Clear the search").click()
    expect(page.locator("[data-row]").first).to_be_visible()
    failed = page.get_by_role("link", name=re.compile("^Failed"))
    expect(failed).to_have_text(re.compile(r"Failed\d+"))
    failed.click()
    expect(failed).to_have_attribute("aria-current", "true")
    expect(field).to_have_value("status:failed")


def test_one_is_steered_from_its_row_and_each_step_taken_back(
    page_on: PageOn, site: Server, api: Api, kind: str
) -> None:
    id = api.enqueue(kind)
    page = page_on(site, f"#/requests?q=type:{kind}")
    wait_ready(page, "requests")
    here = row(page, id)
    here.get_by_role("button", name=f"Pause request {id}").click()
    expect(here).to_contain_text("paused")
    state_of(api, id, "paused")
    undo(page, "is set aside")
    expect(here.get_by_role("button", name=f"Pause request {id}")).to_be_visible()
    state_of(api, id, "queued")
    here.get_by_role("button", name=f"Pin request {id}").click()
    expect(here.get_by_role("button", name=f"Unpin request {id}")).to_be_visible()
    assert api.job(id)["pinned"]
    here.get_by_role("button", name=f"Unpin request {id}").click()
    expect(here.get_by_role("button", name=f"Pin request {id}")).to_be_visible()
    assert not api.job(id)["pinned"]
    here.get_by_role("button", name=f"Cancel request {id}").click()
    dialog = page.get_by_role("dialog", name=f"Cancel request {id}?")
    expect(dialog).to_contain_text("It waits: it will not start.")
    dialog.get_by_role("button", name="Cancel").last.click()
    expect(here).to_contain_text("cancelled")
    state_of(api, id, "cancelled")
    undo(page, "is cancelled")
    state_of(api, id, "queued")
    expect(here).to_contain_text("queued")
    # With the keyboard alone: j to the row, then the letter.
    press(page, "j", "p")
    expect(here).to_contain_text("paused")
    state_of(api, id, "paused")


def test_several_and_all_that_match_are_steered_after_a_look(
    page_on: PageOn, site: Server, api: Api, kind: str
) -> None:
    ids = [api.enqueue(kind) for _ in range(4)]
    api.post(f"/api/jobs/{ids[0]}/cancel")
    page = page_on(site, f"#/requests?q=type:{kind}")
    wait_ready(page, "requests")
    press(page, "j", "x", "j", "x")  # the newest two
    bar = page.get_by_role("group", name="Actions on several requests")
    expect(bar).to_contain_text("2 selected")
    bar.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog", name="Pause 2 requests?")
    expect(dialog).to_contain_text("All 2 can take it.")
    dialog.get_by_role("button", name="Pause").click()
    expect(toast(page, "2 requests set aside.")).to_be_visible()
    assert [api.job(id)["status"] for id in ids] == ["cancelled", "queued", "paused", "paused"]
    undo(page, "2 requests set aside.")
    for id in ids[2:]:
        state_of(api, id, "queued")

    for verb, said, after in (("Pin", "3 requests pinned.", True), ("Unpin", "unpinned.", False)):
        page.get_by_role("button", name="Act on all 4").click()
        bar.get_by_role("button", name=verb, exact=True).click()
        dialog = page.get_by_role("dialog")
        if after:
            expect(dialog).to_contain_text("3 of 4 can take it")
            expect(dialog.locator("li")).to_have_count(3)
        dialog.get_by_role("button", name=verb, exact=True).click()
        expect(toast(page, said)).to_be_visible()
        assert [api.job(id)["pinned"] for id in ids] == [False, after, after, after]
        expect(bar).to_have_count(0)

    page.get_by_role("button", name="Act on all 4").click()
    bar.get_by_role("button", name="Resume").click()
    expect(toast(page, "None of the 4 can take it now")).to_be_visible()
    bar.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").last.click()
    expect(toast(page, "3 requests cancelled.")).to_be_visible()
    assert {api.job(id)["status"] for id in ids} == {"cancelled"}
    undo(page, "3 requests cancelled.")  # exactly those, not the one that was cancelled before
    for id in ids[1:]:
        state_of(api, id, "queued")
    assert api.job(ids[0])["status"] == "cancelled"


def test_what_changes_between_the_look_and_the_deed_is_asked_again(
    page_on: PageOn, site: Server, api: Api, kind: str, expect_status: ExpectStatus
) -> None:
    api.enqueue(kind)
    page = page_on(site, f"#/requests?q=type:{kind}")
    wait_ready(page, "requests")
    page.get_by_role("button", name="Act on all 1").click()
    bar = page.get_by_role("group", name="Actions on several requests")
    bar.get_by_role("button", name="Pause").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Pause 1 request?")
    late = api.enqueue(kind)
    expect_status(page, 409)
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog).to_contain_text("now 2")
    assert api.job(late)["status"] == "queued"
    dialog.get_by_role("button", name="Pause").click()
    expect(toast(page, "2 requests set aside.")).to_be_visible()
    assert api.job(late)["status"] == "paused"


def test_a_new_one_is_put_in(page_on: PageOn, site: Server, api: Api, kind: str) -> None:
    page = page_on(site, "#/requests")
    wait_ready(page, "requests")
    page.get_by_role("button", name="New request").click()
    dialog = page.get_by_role("dialog", name="New request")
    dialog.get_by_label("Type").fill(kind)
    dialog.get_by_label("Payload").fill('{"number": 12345678901234567890')
    dialog.get_by_label("Labels").fill("team=blue, size=large")
    dialog.get_by_label("Upstream").fill("one.example, two.example")
    dialog.get_by_label("Key").fill("a key")
    dialog.get_by_label("Priority").fill("3")
    dialog.get_by_label("Delay").fill("3600")
    send = dialog.get_by_role("button", name="Enqueue")
    send.click()
    expect(dialog.get_by_role("alert")).to_contain_text("The payload is not valid JSON")
    dialog.get_by_label("Payload").fill("[1]")
    send.click()
    expect(dialog.get_by_role("alert")).to_contain_text("must be a JSON object")
    dialog.get_by_label("Payload").fill('{"number": 12345678901234567890}')
    send.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(r"Request \d+"))
    # Digits that a double cannot hold are kept on the way there and back.
    payload = page.locator("section").filter(has=page.get_by_role("heading", name="Payload"))
    expect(payload.locator("code")).to_contain_text("12345678901234567890")
    (job,) = api.get("/api/jobs", q=f"type:{kind}")["items"]
    assert (job["lane"], job["key"], job["priority"], job["status"]) == (
        "default", "a key", 3, "pending",
    )  # fmt: skip
    assert job["labels"] == {"team": "blue", "size": "large"}
    assert job["upstreams"] == ["one.example", "two.example"]


def test_one_that_runs_is_followed_to_its_end(
    page_on: PageOn, site: Server, api: Api, kind: str
) -> None:
    id = api.enqueue(kind, args={"file": "a.mkv"}, upstream=f"{kind}.example")
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        worker.beat(work, progress={"done": 3, "total": 4, "note": "third part"},
                    logs=[{"at": time(), "level": "warning", "line": "slow today"}],
                    checkpoint={"offset": 17})  # fmt: skip
        page = page_on(site, f"#/requests/{id}")
        wait_ready(page, "requests")
        bar = page.get_by_role("progressbar", name=f"Progress of request {id}")
        expect(bar).to_have_attribute("aria-valuenow", "75")
        expect(page.get_by_role("log")).to_contain_text("slow today")
        expect(page.get_by_role("log").locator(".log-warning")).to_have_count(1)
        expect(page.locator("code").filter(has_text='"offset": 17')).to_be_visible()
        expect(page.locator(".tl-span.running")).to_have_count(1)
        worker.complete(work, status_code=200, body={"size": 5})
    expect(page.locator("code").filter(has_text='"size": 5')).to_be_visible()
    expect(page.locator(".tl-span.ok")).to_have_count(1)
    expect(page.locator(".tl-span.waiting")).to_have_count(1)
    attempts = page.get_by_role("table").first.locator("tbody tr")
    expect(attempts).to_have_count(1)
    expect(attempts).to_contain_text("completed")
    # What cannot be done any more is there, with the reason.
    page.get_by_role("button", name="Pause").click(force=True)
    expect(toast(page, "It has ended: it is completed.")).to_be_visible()
    # The copy has the lines and the indents that are shown.
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").first.click()
    expect(toast(page, "Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == '{\n  "size": 5\n}'


def test_one_is_steered_by_letters_and_dialogs_and_says_who_did_it(
    page_on: PageOn, site: Server, api: Api, kind: str
) -> None:
    id = api.enqueue(kind, batch=api.post("/api/batches", {"label": kind}, 201)["id"])
    page = page_on(site, f"#/requests/{id}")
    wait_ready(page, "requests")
    expect(page.locator(".standing")).to_contain_text("no worker knows this type")
    head = page.locator(".request-head")
    press(page, "t")
    expect(head.get_by_role("button", name="Unpin")).to_be_visible()
    press(page, "p")
    expect(head.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.locator(".tl-span.paused")).to_have_count(1)
    press(page, "p")
    state_of(api, id, "queued")
    head.get_by_role("button", name="Priority…").click()
    page.get_by_label("Priority", exact=True).fill("2")
    press(page, "Enter")
    expect(toast(page, "has priority 2 now")).to_be_visible()
    assert api.job(id)["priority"] == 2
    head.get_by_role("button", name="Reschedule…").click()
    page.get_by_label("Not before").fill("2199-01-31T12:00:00")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".standing")).to_contain_text("not due yet, due in")
    assert api.job(id)["next_attempt_at"] == "2199-01-31T11:00:00.000000Z"  # Berlin is ahead
    press(page, "c")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").last.click()
    state_of(api, id, "cancelled")
    expect(head.locator(".badge.cancelled")).to_be_visible()
    press(page, "r")
    eventually(lambda: api.job(id)["status"] in ("queued", "pending"))
    trail = page.get_by_role("table").last
    for words in ("pinned", "set aside", "another priority", "new round of attempts"):
        expect(trail.locator("tr").filter(has_text=words)).to_contain_text("from 127.0.0.1")
    page.get_by_role("link", name=re.compile(r"^\d+$")).click()  # its batch
    expect(row(page, id)).to_be_visible()


def test_rows_stay_where_they_are_under_the_pointer(
    page_on: PageOn, site: Server, api: Api, kind: str
) -> None:
    first = api.enqueue(kind)
    page = page_on(site, f"#/requests?q=type:{kind}")
    wait_ready(page, "requests")
    row(page, first).get_by_role("checkbox").check()
    second = api.enqueue(kind)
    expect(page.locator(".bulk")).to_contain_text("All 2 that match")
    expect(row(page, second)).to_have_count(0)
    row(page, first).get_by_role("checkbox").uncheck()
    page.get_by_role("heading", level=1).hover()
    tab_to(page, "New request")
    expect(row(page, second)).to_be_visible()


def test_whoever_may_only_read_is_told_so(page_on: PageOn, guarded_site: Guarded) -> None:
    kind = new_name("kind")
    with guarded_site.as_("alice") as alice:
        id = alice.enqueue(kind, upstream=f"{kind}.example")
    page = page_on(guarded_site, f"#/requests/{id}", token=guarded_site.tokens["alice-reads"])
    wait_ready(page, "requests")
    page.get_by_role("button", name="Cancel").click(force=True)
    expect(toast(page, "lacks the scope “operate”")).to_be_visible()
    # A tenant has no screen of upstreams, and completes from what it sees.
    expect(page.locator(f'a[href="#/upstreams/{kind}.example"]')).to_have_count(0)
    page.get_by_role("link", name="All requests").click()
    page.get_by_role("combobox").fill(f"type:{kind[:-2]}")
    expect(page.get_by_role("option")).to_have_text([kind])


LOOKS = [("en", False, False), ("zh", True, False), ("en", True, True), ("zh", False, True)]
WORDS = {"en": ("Requests", "Timeline"), "zh": ("请求", "时间线")}


@pytest.fixture(scope="module")
def shown(site: Server) -> JSON:
    """One that was pushed back, one that has failed, one that runs: what there is to look at."""
    kind = new_name("kind")
    with Api(site.url) as api:
        failed, runs = api.enqueue(kind, args={"a": [1, None, "b"]}), api.enqueue(kind)
        with worker_of(api, kind) as worker:
            worker.complete(
                worker.take_one(), outcome={"kind": "failed", "fatal": True, "error": "no"}
            )
            work = worker.take_one()
            worker.beat(work, progress={"done": 1, "total": 4, "note": "first"},
                        logs=[{"at": time(), "level": level, "line": level}
                              for level in ("error", "warning", "info")])  # fmt: skip
            worker.held.clear()  # it runs on for as long as its lease
        banned(api, kind, f"{kind}.example", about={"title": "A long evening at the harbour"})
    return {"kind": kind, "failed": failed, "runs": runs}


@pytest.mark.parametrize(
    ("language", "dark", "phone"), LOOKS, ids=["desktop", "dark-zh", "phone-dark", "phone-zh"]
)
def test_everybody_can_read_it(
    page_on: PageOn, site: Server, shown: JSON, language: Language, dark: bool, phone: bool
) -> None:
    page = page_on(
        site, f"#/requests?q=type:{shown['kind']}", language=language, dark=dark, phone=phone
    )
    wait_ready(page, "requests")
    title, timeline = WORDS[language]
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    row(page, shown["failed"]).get_by_role("checkbox").check()
    assert not audit(page, steps=6)
    row(page, shown["failed"]).get_by_role("link").first.click()
    expect(page.get_by_role("heading", level=2).first).to_have_text(timeline)
    assert not audit(page, steps=6)
    page.evaluate("(id) => { location.hash = `#/requests/${id}`; }", shown["runs"])
    expect(page.get_by_role("log")).to_be_visible()
    wait_for(page, lambda: page.locator(".tl-span").count() == 2)
    assert not audit(page, steps=1)
    assert not page.get_by_text(re.compile(r"requests\.\w+")).count(), "a word is missing"
