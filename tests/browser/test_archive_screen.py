"""The screen of the archive: subscriptions, their videos, failures, accounts, the library.

One server for all of it. Both lanes are paused, so nothing runs but in the one test with a site.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.audit import audit
from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import go, wait_ready, wait_until
from tests.contract.feeds_kit import signed
from tests.contract.kit import new_name
from tests.contract.media_kit import ITEMS, Archivist, Desk, media_desk
from tests.hands.kit import eventually
from tests.security.kit import Guarded

PARTS = ("", "/failures", "/accounts", "/library")
OLD_COOKIE, NEW_COOKIE = "quince-marzipan-4711", "gooseberry-anvil-0815"
SIDEWAYS = "() => document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with media_desk(auth="auto") as made:
        keeper = made.keeper()
        (first,) = made.put_items(keeper, keeper.add(start=False)["id"], video(made, "first"))
        keeper.ok("DELETE", f"{ITEMS}/{first}")  # the library is known from now on
        yield made


@pytest.fixture(scope="module")
def keeper(desk: Desk) -> Archivist:
    return desk.keeper()


def video(desk: Desk, name: str) -> dict[str, Any]:
    """One that is on disk."""
    files = {"video": desk.put_file(f"{name}.mp4", b"v" * 5_000),
             "thumbnail": desk.put_file(f"{name}.jpg")}  # fmt: skip
    return {"state": "done", "title": name, "files": files, "size_bytes": 5_000,
            "duration_s": 125.0, "published_at": 1.79e9}  # fmt: skip


def filled(desk: Desk, keeper: Archivist) -> tuple[dict[str, Any], list[int]]:
    """A subscription with a video in each state."""
    made = keeper.add(title=new_name("Lectures "), start=False)
    ids = desk.put_items(
        keeper, made["id"], video(desk, new_name("Here ")),
        {"title": "Found one", "duration_s": 61.0},
        {"title": "Gone one", "state": "failed", "failure": "gone", "failures": 1,
         "reason": "video.example answered 404"},
        {"title": "Secret one", "state": "failed", "failure": "credential", "failures": 3,
         "reason": "video.example answered 403"},
        {"title": "Skipped one", "state": "skipped", "failure": "by_hand",
         "reason": "left out by hand"},
        {"title": "Missing one", "state": "missing"},
    )  # fmt: skip
    return made, ids


def said(page: Page, words: str) -> None:
    """The message about what was done, which is sent away."""
    toast = page.locator(".toast", has_text=words)
    expect(toast).to_be_visible()
    toast.get_by_role("button", name=re.compile("Dismiss|关闭")).click()


def undo(page: Page, words: str) -> None:
    page.locator(".toast", has_text=words).get_by_role("button", name="Undo").click()
    said(page, "Undone.")


def row_of(page: Page, words: str) -> Locator:
    return page.locator("[data-row]", has_text=words)


def press(where: Page | Locator, name: str) -> None:
    where.get_by_role("button", name=name, exact=True).click()


# ---------------------------------------------------------------------- subscriptions


def test_a_subscription_is_steered(desk: Desk, keeper: Archivist, page_on: PageOn) -> None:
    made, _ = filled(desk, keeper)
    id, name = made["id"], made["name"]
    page = page_on(desk.server, "#/archive")
    row = row_of(page, name)
    for label, number in {"on disk": 1, "pending": 1, "failed": 2}.items():
        expect(row.locator("dl div", has_text=label).locator("dd")).to_have_text(str(number))
    expect(row.get_by_role("img")).to_have_accessible_name(re.compile("1 on disk, 1 pending"))

    press(row, "Pause")
    undo(page, f"{name} is paused.")
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    assert keeper.subscription(id)["paused"] is False

    press(row, "Refresh list")
    said(page, "is in line to be read")
    expect(row.get_by_text("reading the list")).to_be_visible()
    expect(row.get_by_role("button", name="Download")).to_have_attribute("aria-disabled", "true")
    request = keeper.subscription(id)["busy"]["listing"]
    row.get_by_role("button", name="Download").press("Enter")
    said(page, f"Its list is being read (request {request})")
    keeper.post(f"/api/jobs/{request}/cancel")
    expect(row.get_by_role("button", name="Download")).not_to_have_attribute(
        "aria-disabled", "true"
    )

    press(row, f"More for {name}")
    press(page.get_by_role("dialog"), "Count again")
    said(page, "is in line to be counted")
    expect(row.get_by_text("counting")).to_be_visible()
    keeper.post(f"/api/jobs/{keeper.subscription(id)['busy']['counting']}/cancel")
    page.keyboard.press("R")
    expect(row.get_by_text("counting")).to_be_hidden()

    press(row, f"More for {name}")
    press(page.get_by_role("dialog"), "Read whole list")
    said(page, "is in line to be read")
    (listing,) = keeper.open_requests(id, "list_fetch")
    keeper.post(f"/api/jobs/{listing['id']}/cancel")
    page.keyboard.press("R")
    expect(row.get_by_text("reading the list")).to_be_hidden()

    press(row, "Download")
    said(page, "downloads follow")
    (listing,) = keeper.open_requests(id, "list_fetch")
    keeper.post(f"/api/jobs/{listing['id']}/cancel")

    go(page, f"archive/subscription/{id}")
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    expect(page.get_by_role("button", name="Download what is known")).not_to_have_attribute(
        "aria-disabled", "true"
    )
    press(page, "Download what is known")
    said(page, "2 downloads of")  # what was found, and what is missing
    eventually(lambda: keeper.subscription(id)["counts"]["queued"] == 2)


def test_a_subscription_is_set_up_and_removed(
    desk: Desk, keeper: Archivist, page_on: PageOn
) -> None:
    made, ids = filled(desk, keeper)
    id, name = made["id"], made["name"]
    page = page_on(desk.server, f"#/archive/subscription/{id}")
    press(page, "Settings…")
    form = page.get_by_role("dialog")
    form.get_by_label("Quality").select_option("720p")
    form.get_by_label("Title has none of").fill("shorts, live")
    form.get_by_label("Not shorter than (minutes)").fill("1.5")
    form.get_by_label("Published from").fill("2026-03-01")
    form.get_by_label("Look at the list").select_option("86400")
    press(form, "Save")
    expect(form).to_be_hidden()
    now = keeper.subscription(id)
    assert (now["quality"], now["interval_s"]) == ("720p", 86_400)
    assert now["filters"]["title_none"] == ["shorts", "live"]
    assert now["filters"]["min_duration_s"] == 90
    assert now["filters"]["after"].startswith("2026-02-28T23:00")  # a day in Berlin
    undo(page, f"{name} is changed.")
    back = keeper.subscription(id)
    assert (back["quality"], back["filters"]["title_none"]) == ("best", [])

    press(page, "Podcast address…")
    dialog = page.get_by_role("dialog")
    press(dialog, "Show the address")
    address = dialog.get_by_label("Address")
    expect(address).to_have_value(re.compile("/podcasts?/.+/feed.xml"))
    first = address.input_value()
    assert keeper.http.get(first).status_code == 200
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press(dialog, "Copy")
    expect(dialog.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == first
    press(dialog, "Make another one")
    expect(dialog.get_by_text("This is a new address")).to_be_visible()
    assert keeper.http.get(first).status_code == 404
    second = address.input_value()
    press(dialog, "Take it back")
    said(page, "leads nowhere")
    assert keeper.http.get(second).status_code == 404

    (path,) = [keeper.item(ids[0])["files"]["video"]]
    press(page, "Remove…")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("6 records of videos go")
    expect(dialog).to_contain_text("1 video on disk stays where it is")
    dialog.get_by_label("Delete its files, too").check()
    expect(dialog).to_contain_text("1 video on disk is deleted for good")
    press(dialog, "Remove")
    said(page, f"{name} is removed: 6 records, 2 files.")
    wait_until(page, "() => location.hash === '#/archive'")
    expect(row_of(page, name)).to_have_count(0)
    assert not (desk.server.data / "archive" / path).exists()


# ---------------------------------------------------------------------- videos


def test_videos_are_found_played_and_decided_about(
    desk: Desk, keeper: Archivist, page_on: PageOn
) -> None:
    made, ids = filled(desk, keeper)
    here, found, gone, _, skipped, missing = ids
    page = page_on(desk.server, f"#/archive/subscription/{made['id']}")
    rows = page.locator("tbody [data-row]")
    expect(rows).to_have_count(6)
    expect(row_of(page, "Gone one")).to_contain_text("gone: video.example answered 404")
    page.locator("[data-filter]").fill("found")
    expect(rows).to_have_count(1)
    page.locator("[data-filter]").fill("")
    page.get_by_role("link", name="failed 2").first.click()
    expect(rows).to_have_count(2)
    page.get_by_role("link", name="all 6").click()
    expect(rows).to_have_count(6)

    title = keeper.item(here)["title"]
    with page.expect_response(re.compile(rf"/items/{here}/file")) as answer:
        press(row_of(page, title), "Play")
    assert answer.value.status in (200, 206)
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("video")).to_have_attribute("src", f"/api/archive/items/{here}/file")
    # Its content is no video, which the page explains.
    expect(dialog.get_by_text("This browser cannot play it.")).to_be_visible()
    with page.expect_download() as saved:
        dialog.get_by_role("link", name="Save the file").click()
    assert saved.value.path().stat().st_size == 5_000
    page.keyboard.press("Escape")

    press(row_of(page, "Found one"), "Skip")
    undo(page, "“Found one” is left out.")
    assert keeper.item(found)["state"] == "found"
    press(row_of(page, "Gone one"), "Unblock")
    said(page, "“Gone one” is as if it had just been found.")
    assert keeper.item(gone)["state"] == "found"
    press(row_of(page, "Skipped one"), "Download")
    said(page, "“Skipped one” is in line.")
    press(row_of(page, "Missing one"), "Try again")
    said(page, "“Missing one” is in line.")
    assert {keeper.item(each)["state"] for each in (skipped, missing)} == {"queued"}
    job = eventually(lambda: keeper.item(missing)["job"])
    request = row_of(page, "Missing one").get_by_role("link", name="Show the request")
    expect(request).to_have_attribute("href", f"#/requests/{job}")

    press(row_of(page, title), "Delete")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Its 2 files (4.9 KB) are deleted for good.")
    press(dialog, "Delete")
    said(page, "is deleted: 2 files.")
    assert keeper.item(here)["state"] == "skipped"


def test_failures_are_decided_about_one_some_or_all(
    desk: Desk, keeper: Archivist, page_on: PageOn
) -> None:
    made, (_, _, gone, secret, _, _) = filled(desk, keeper)
    more = desk.put_items(keeper, made["id"], *(
        {"title": f"Torn {n}", "state": "failed", "failure": "network", "failures": 4,
         "reason": "the connection was cut"} for n in range(4)
    ))  # fmt: skip
    page = page_on(desk.server, f"#/archive/failures?subscription={made['id']}")
    rows = page.locator("tbody [data-row]")
    expect(rows).to_have_count(6)
    causes = page.get_by_role("navigation", name="By cause")
    expect(causes.get_by_role("link", name="login wanted")).to_contain_text("replace its cookies")
    press(row_of(page, "Secret one"), "Try again")
    said(page, "“Secret one” is in line.")
    press(row_of(page, "Gone one"), "Skip")
    said(page, "“Gone one” is left out.")
    assert [keeper.item(each)["state"] for each in (secret, gone)] == ["queued", "skipped"]

    causes.get_by_role("link", name="network").click()
    expect(rows).to_have_count(4)
    page.get_by_label("Choose “Torn 1”").check()
    expect(page.get_by_text("1 chosen")).to_be_visible()
    page.locator("main .row", has=page.get_by_role("heading", name="What has failed")).get_by_role(
        "button", name="Unblock"
    ).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Unblock 1 video?")
    press(dialog, "Unblock")
    said(page, "1 video is unblocked.")
    expect(rows).to_have_count(3)
    expect(page.get_by_text("All 3 that match")).to_be_visible()
    page.locator("main .row", has=page.get_by_role("heading", name="What has failed")).get_by_role(
        "button", name="Try again"
    ).click()
    press(page.get_by_role("dialog"), "Try again")
    said(page, "3 videos are in line.")
    expect(page.get_by_text("Nothing has failed")).to_be_visible()
    states = [keeper.item(each)["state"] for each in more]
    assert states == ["queued", "found", "queued", "queued"]


# ---------------------------------------------------------------------- accounts


def test_accounts_are_looked_after_and_cookies_never_shown(
    desk: Desk, keeper: Archivist, page_on: PageOn, expect_status: ExpectStatus
) -> None:
    def account() -> dict[str, Any]:
        (found,) = keeper.get("/api/archive/accounts", site="cookies.example")["items"]
        return dict(found)

    page = page_on(desk.server, "#/archive/accounts")
    page.get_by_role("button", name="Add account…").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("reader")
    form.get_by_label("Site").fill("cookies.example")
    press(form, "Add")
    expect(form.get_by_role("alert")).to_have_text("Paste the cookies, or choose a file.")
    form.get_by_label("Cookies").fill(f"session={OLD_COOKIE}")
    press(form, "Add")
    said(page, "reader is added")
    card = row_of(page, "cookies.example")
    expect(card).to_contain_text("not checked yet")
    expect(page.get_by_text("sealed when they are stored, and never shown again")).to_be_visible()

    press(card, "Replace cookies…")
    form = page.get_by_role("dialog")
    expect(form.get_by_label("Cookies")).to_have_value("")
    form.get_by_label("Or a file").set_input_files(
        {"name": "cookies.txt", "mimeType": "text/plain",
         "buffer": f"session={NEW_COOKIE}".encode()}
    )  # fmt: skip
    press(form, "Replace")
    said(page, "reader has new cookies.")
    press(card, "Check now")
    said(page, "reader is being checked.")
    press(card, "Pause")
    undo(page, "reader is not used any more.")
    assert account()["enabled"] is True
    assert not re.search(f"{OLD_COOKIE}|{NEW_COOKIE}", page.content())

    press(card, "Remove…")
    expect(page.get_by_role("dialog")).to_contain_text("cannot be brought back")
    press(page.get_by_role("dialog"), "Remove")
    said(page, "reader is removed.")
    expect(card).to_have_count(0)
    assert keeper.get("/api/archive/accounts", site="cookies.example")["items"] == []

    guest = page_on(desk.server, "#/", token=signed(new_name("guest")))
    expect_status(guest, 403)
    go(guest, "archive/accounts")
    expect(guest.get_by_text("Accounts are shared by all tenants")).to_be_visible()


# ---------------------------------------------------------------------- with a site


@pytest.mark.soak  # half a minute of the real program; tests/live has it without a browser
def test_from_an_address_to_a_video_and_back(
    desk: Desk, keeper: Archivist, page_on: PageOn
) -> None:
    name = new_name("harbour")
    desk.site.collection(name, 1, title=f"Cameras of {name}")
    page = page_on(desk.server, "#/archive")
    wait_ready(page, "archive")
    desk.run()
    page.get_by_role("button", name="Subscribe…").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Address").fill(desk.site.collection_url(name))
    press(dialog, "Look")
    expect(dialog.get_by_text(f"Cameras of {name}")).to_be_visible()
    expect(dialog.locator(".archive-preview")).to_contain_text("1 video")
    dialog.get_by_text("Options").click()
    dialog.get_by_label("Names of files").fill(name + "/{title}")
    desk.site.hold("/media/", half=True)
    press(dialog, "Subscribe")
    expect(page.get_by_role("heading", name=f"Cameras of {name}", level=1)).to_be_visible()
    row = row_of(page, f"Video {name}-1")
    expect(row.get_by_role("progressbar")).to_have_attribute("aria-valuenow", re.compile("[1-9]"))
    go(page, "archive")
    running = page.locator(".archive-now")
    expect(running).to_contain_text(f"Video {name}-1")
    expect(running).to_contain_text("Downloading")
    expect(running).to_contain_text("%")
    desk.site.let_go()
    expect(row_of(page, name).locator("dl div", has_text="on disk").locator("dd")).to_have_text("1")

    site = f"127.0.0.1:{desk.site.port}"
    keeper.post(f"/api/upstreams/{site}/close", {"for_s": 600})
    warning = page.locator(".notice", has_text=f"{site} is closed")
    expect(warning.get_by_role("link")).to_have_attribute("href", re.compile("#/upstreams/127"))
    keeper.post(f"/api/upstreams/{site}/open")
    expect(warning).to_be_hidden()

    (video,) = (desk.server.data / "archive" / name).glob("*.mp4")
    video.rename(video.with_name("of nobody.mp4"))
    go(page, "archive/library")
    expect(page.get_by_text(str(desk.server.data / "archive"))).to_be_visible()
    page.get_by_label("Mark as missing however much it is").check()
    press(page, "Compare now")
    press(page.get_by_role("dialog"), "Compare now")
    said(page, "The comparison is in line.")
    report = page.locator("section", has=page.get_by_role("heading", name="What the last look"))
    page.locator("details", has_text="Gone from the disk").locator("summary").click()
    expect(report.get_by_text(f"{name}/Video {name}-1.mp4")).to_be_visible()
    report.locator("details", has_text="Known to nobody").locator("summary").click()
    expect(report.get_by_text("of nobody.mp4")).to_be_visible()
    desk.pause()


# ---------------------------------------------------------------------- for everybody


@pytest.mark.parametrize(
    "dark", [pytest.param(False, id="light"), pytest.param(True, id="dark", marks=pytest.mark.soak)]
)
def test_it_is_for_everybody(
    desk: Desk, keeper: Archivist, page_on: PageOn, dark: bool
) -> None:  # fmt: skip
    """In both languages, in light and dark, on a desk and on a phone."""
    made, _ = filled(desk, keeper)
    keeper.post("/api/archive/accounts", {"name": new_name(), "site": "cookies.example",
                                          "cookies": f"s={OLD_COOKIE}"}, 201)  # fmt: skip
    page = page_on(desk.server, "#/archive", language="zh" if dark else "en", dark=dark)
    phone = page_on(
        desk.server, "#/archive", language="en" if dark else "zh", dark=dark, phone=True
    )
    chinese = page if dark else phone
    for part in (*PARTS, f"/subscription/{made['id']}"):
        for window in (page, phone):
            go(window, f"archive{part}")
            assert audit(window, steps=4) == [], part
            assert not window.evaluate(SIDEWAYS), part
            assert "archive." not in window.locator("main").inner_text()
        assert re.search("视频|账号|媒体库|订阅", chinese.locator("main").inner_text())
    page.get_by_role("button", name="设置…" if dark else "Settings…").click()
    assert audit(page, steps=4) == []


def test_an_archive_that_is_off_is_explained(
    guarded_site: Guarded, page_on: PageOn, expect_status: ExpectStatus
) -> None:
    page = page_on(guarded_site, "#/audit", token=guarded_site.tokens["reader"])
    expect_status(page, 409)
    go(page, "archive")
    expect(page.get_by_text("The archive is off on this server")).to_be_visible()
    expect(page.locator(".empty pre")).to_contain_text("headway[media]")
