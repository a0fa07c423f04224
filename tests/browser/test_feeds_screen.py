"""The feed reader, as people use it: each test is a reader of its own, with sites on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from headway.apps.feeds.opml import Subscription, read_opml, write_opml
from tests.browser.audit import audit
from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import Language, go, press, wait_for, wait_ready, wait_until
from tests.contract.feeds_kit import Desk, Reader, answers, feeds_desk, held, signed
from tests.contract.kit import JSON
from tests.hands.kit import eventually

ARTICLES = "/api/backend/articles"
# Whatever the port of the site is, nobody waits a second for it.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))

Opening = Callable[..., Page]


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with feeds_desk(file=QUICK) as made:
        yield made


@pytest.fixture
def ann(desk: Desk) -> Reader:
    return desk.reader()


@pytest.fixture
def open_as(desk: Desk, page_on: PageOn) -> Opening:
    def opened(reader: Reader, path: str = "#/feeds", *scopes: str, **look: Any) -> Page:
        page = page_on(desk.server, path, token=signed(reader.tenant, *scopes), **look)
        wait_ready(page, "feeds")
        return page

    return opened


def subscribed(desk: Desk, reader: Reader, *titles: str, **more: Any) -> str:
    id: str = reader.add(desk.site.page(*titles), **more)["id"]
    eventually(lambda: reader.get(ARTICLES, feed=id)["total"] == len(titles))
    return id


def by_title(reader: Reader) -> dict[str, JSON]:
    return {each["title"]: each for each in reader.get(ARTICLES, size=200)["items"]}


def story(page: Page, title: str) -> Locator:
    return page.locator(".story", has_text=title)


def dialog(page: Page) -> Locator:
    return page.locator("dialog[open]")


def pressed(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def toast(page: Page, words: str) -> Locator:
    found = page.locator(".toast", has_text=words).last
    expect(found).to_be_visible()
    return found


# ---------------------------------------------------------------------- subscribing


def test_a_site_is_looked_at_and_its_feed_chosen(
    desk: Desk, ann: Reader, open_as: Opening, expect_status: ExpectStatus
) -> None:
    feed = desk.site.page("Tides", "Fog")
    host = feed.url.removesuffix("/feed")
    links = "".join(
        f'<link rel="alternate" type="application/rss+xml" title="{name}" href="{path}">'
        for name, path in (("Comments", "/comments"), ("Posts", "/feed"))
    )
    front = desk.site.page(path="/", host=host)
    front.says = answers(f"<html><head>{links}</head></html>".encode(), Content_Type="text/html")
    page = open_as(ann)
    expect(page.locator(".empty")).to_contain_text("in one place")
    press(page, "a")
    address = page.get_by_label("Address of a site or feed")
    expect_status(page, 422)
    address.fill("127.9.9.9:1")
    press(page, "Enter")
    expect(dialog(page).get_by_role("alert")).to_contain_text("Try again later")
    address.fill(host)
    press(page, "Enter")
    expect(dialog(page).get_by_role("group")).to_contain_text("2 feeds found")
    expect(dialog(page)).to_contain_text("cannot be read")
    expect(dialog(page).locator(".feeds-preview")).to_contain_text("Tides")
    dialog(page).get_by_label("Folder").fill("Sea/Weather")
    page.locator("[name=interval]").select_option("60")
    page.get_by_label("Follow how often").check()
    pressed(page, "Subscribe")
    toast(page, "Subscribed").hover()  # it stays while somebody points at it
    expect(story(page, "Tides")).to_be_visible()
    (made,) = ann.feeds()
    assert (made["folder"], made["refresh_interval"], made["adaptive"]) == ("Sea/Weather", 60, True)
    assert made["url"] == feed.url
    expect(page.locator(".feeds-side").get_by_role("link", name="Weather")).to_be_visible()
    toast(page, "Subscribed").get_by_role("button", name="Undo").click()
    eventually(lambda: ann.feeds() == [])
    expect(page.locator(".empty")).to_contain_text("in one place")


# ---------------------------------------------------------------------- reading


def test_articles_are_read_with_the_keyboard(desk: Desk, ann: Reader, open_as: Opening) -> None:
    site = desk.site.page("One", "Two", "Three")
    feed = ann.add(site, folder="News")["id"]
    eventually(lambda: len(by_title(ann)) == 3)
    titles = [each["title"] for each in ann.get(ARTICLES)["items"]]
    page = open_as(ann)
    press(page, "j")
    heading = page.locator("article h2")
    expect(heading).to_have_text(titles[0])
    expect(story(page, titles[0])).not_to_have_class(re.compile("unread"))
    expect(page.locator(".feeds-place", has_text="All feeds")).to_contain_text("2")
    assert by_title(ann)[titles[0]]["is_read"]
    press(page, "n", "Enter")  # along the list, then open
    expect(heading).to_have_text(titles[1])
    press(page, "k")
    expect(heading).to_have_text(titles[0])
    page.evaluate("() => document.activeElement.blur()")
    press(page, "m")
    expect(story(page, titles[0])).to_have_class(re.compile("unread"))
    press(page, "s")
    expect(page.get_by_role("button", name="Star", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    one = by_title(ann)[titles[0]]
    assert (one["is_read"], one["is_starred"]) == (False, True)
    page.evaluate("() => { window.open = (...given) => { window.asked = given; }; }")
    press(page, "o")
    assert wait_until(page, "() => window.asked") == [one["link"], "_blank", "noopener,noreferrer"]

    site.publish("One", "Two", "Three", "Four", "Five")  # the list does not move under the reader
    ann.force(feed)
    eventually(lambda: len(by_title(ann)) == 5)
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    fresh = page.locator(".feeds-fresh")
    expect(fresh).to_have_text("2 new")
    assert page.locator(".story").count() == 3
    press(page, "Shift+A")  # what is not shown yet stays unread
    done = toast(page, "2 articles marked")
    assert {name for name, each in by_title(ann).items() if not each["is_read"]} == {"Four", "Five"}
    done.get_by_role("button", name="Undo").click()
    eventually(lambda: ann.get(ARTICLES, unread=True)["total"] == 4)
    fresh.click()
    expect(story(page, "Five")).to_be_visible()
    press(page, "Escape")
    expect(heading).to_have_count(0)


def test_articles_are_searched_and_filtered(desk: Desk, ann: Reader, open_as: Opening) -> None:
    subscribed(desk, ann, *(f"Number {n}" for n in range(60)))
    other = subscribed(desk, ann, "Whales", folder="Sea/Far")
    ann.ok("PATCH", ARTICLES, json={"ids": [by_title(ann)["Whales"]["id"]], "is_read": True})
    page = open_as(ann)
    expect(page.locator(".story").first).to_be_visible()
    page.locator(".feeds-more").scroll_into_view_if_needed()
    expect(page.locator(".feeds-end")).to_contain_text("60 articles")
    press(page, "/")
    page.keyboard.type("whal*")
    expect(page.locator(".story")).to_have_count(1)
    assert page.url.endswith("#/feeds?q=whal*")
    page.get_by_role("button", name="Star: Whales").click()
    go(page, "feeds/folder/Sea")
    expect(page.locator(".empty")).to_contain_text("All read")
    page.get_by_role("link", name="Show what was read").click()
    expect(story(page, "Whales")).to_be_visible()
    go(page, f"feeds/feed/{other}?view=starred")
    expect(story(page, "Whales")).to_be_visible()
    assert by_title(ann)["Whales"]["is_starred"]


HOSTILE = """<p onclick="boom()" style="position:fixed" class="toast" id="page-nav">text</p>
<script>boom()</script><img src="x" onerror="boom()" alt="broken"><a href="javascript:boom()">js</a>
<a href=" java&#10;script:boom()">js2</a><a href="data:text/html,<script>boom()</script>">data</a>
<iframe src="https://evil.example/" srcdoc="<script>boom()</script>"></iframe><style>*{color:red}
</style><form action="https://evil.example/"><input name="p" autofocus onfocus="boom()"><button>go
</button></form><svg onload="boom()"><script>boom()</script><a href="https://x.example">svg</a></svg>
<math><mtext><img src=x onerror=boom()></mtext></math><object data="https://evil.example/"></object>
<img src="data:image/svg+xml,<svg onload=boom()>" alt="inline"><video src="https://evil.example/v">
</video><base href="https://evil.example/"><meta http-equiv="refresh" content="0;url=/"><h1>big</h1>
<hw-chart>inside</hw-chart><a href="/more" target="_top">more</a><template><b>never</b></template>
<a href="https://pages.example/"><img src="https://pictures.example/1.png" alt="A quay"></a>"""
ALLOWED = {"href", "target", "rel", "class", "tabindex", "title", "lang", "dir"}


def test_nothing_in_an_article_does_anything(desk: Desk, ann: Reader, open_as: Opening) -> None:
    """Even if a server were wrong about what is safe. The policy of the page has nothing to report:
    the witness would complain.
    """
    subscribed(desk, ann, "Bait")
    bait = by_title(ann)["Bait"]

    def hostile(route: Route) -> None:
        given = {**bait, "content": HOSTILE}
        route.fulfill(content_type="application/json", body=json.dumps(given))

    page = open_as(ann)
    page.evaluate("() => { window.boom = () => { window.harmed = true; }; }")
    page.route(re.compile(r"/articles/\d+$"), hostile)
    story(page, "Bait").get_by_role("link").click()
    body = page.locator("hw-article")
    expect(body).to_contain_text("text")
    seen: JSON = body.evaluate(
        """(body) => ({
          names: [...new Set([...body.querySelectorAll("*")].map((each) => each.localName))].sort(),
          attributes: [...new Set([...body.querySelectorAll("*")].flatMap(
            (each) => each.getAttributeNames()))],
          links: [...body.querySelectorAll("a")].map((each) => [each.href, each.rel, each.target]),
          words: body.textContent.replaceAll(/\\s+/g, " "),
          harmed: window.harmed === true,
        })"""
    )
    assert seen["names"] == ["a", "h3", "p", "span"]
    assert set(seen["attributes"]) <= ALLOWED
    away = ["noopener noreferrer", "_blank"]
    assert seen["links"] == [
        ["https://blog.example/x", *away],
        ["https://blog.example/more", *away],
        ["https://pages.example/", *away],
        ["https://pictures.example/1.png", *away],
    ]
    for gone in ("boom", "svg", "never", "color", "go "):
        assert gone not in seen["words"]
    for kept in ("text", "broken", "js", "inline", "inside", "A quay", "pictures.example"):
        assert kept in seen["words"]
    assert not seen["harmed"]


def test_what_cannot_be_archived_is_explained(
    desk: Desk, ann: Reader, open_as: Opening, expect_status: ExpectStatus
) -> None:
    feed = subscribed(desk, ann, "One")
    file = {"url": "https://v.example/film.mp4", "type": "video/mp4", "length": 2_000_000}
    ann.post(ARTICLES, {"feed_id": feed, "title": "Film", "content": "<p>x</p>",
                        "url": "https://v.example/watch", "enclosures": [file]})  # fmt: skip
    page = open_as(ann, f"#/feeds?article={by_title(ann)['Film']['id']}")
    files = page.locator(".feeds-files")
    expect(files).to_contain_text("film.mp4")
    expect(files).to_contain_text("1.9 MB")
    expect_status(page, 409)
    files.get_by_role("button", name="Send to archive").click()
    toast(page, "HEADWAY_MEDIA_ON=yes")
    expect_status(page, 404)
    page.evaluate("() => { location.hash = '#/feeds?article=987654321'; }")
    expect(page.locator(".feeds-reader").get_by_role("alert")).to_contain_text("no article")
    go(page, "feeds")


def test_who_may_only_look_changes_nothing(desk: Desk, ann: Reader, open_as: Opening) -> None:
    subscribed(desk, ann, "One")
    page = open_as(ann, "#/feeds", "read")
    press(page, "j")
    expect(page.locator("hw-article")).to_contain_text("All about One")
    press(page, "s")
    toast(page, "lacks the scope “submit”")
    star = page.get_by_role("button", name="Star", exact=True)
    expect(star).to_have_attribute("aria-disabled", "true")
    one = by_title(ann)["One"]
    assert (one["is_read"], one["is_starred"]) == (False, False)


# ---------------------------------------------------------------------- feeds and folders


def test_a_feed_is_refreshed_changed_paused_and_removed(
    desk: Desk, ann: Reader, open_as: Opening
) -> None:
    site = desk.site.page("One", "Two")
    feed = ann.add(site)["id"]
    ann.settled(feed)
    page = open_as(ann, f"#/feeds/feed/{feed}")
    about = page.locator(".feeds-about")
    refresh = about.get_by_role("button", name="Refresh now")
    with held(site) as asked:
        refresh.click()
        assert asked.wait(20)
        expect(refresh).to_have_attribute("aria-disabled", "true")
        refresh.click(force=True)
        toast(page, "wait until it has ended")
    expect(refresh).not_to_have_attribute("aria-disabled", "true")

    about.get_by_role("button", name="Settings").click()
    page.get_by_label("Name").fill("Mine")
    dialog(page).get_by_label("Folder").fill("Shelf")
    page.locator("[name=refresh_interval]").select_option("360")
    pressed(page, "Save")
    expect(page.locator("main h1")).to_have_text("Mine")
    changed = ann.feed(feed)
    assert (changed["own_title"], changed["folder"], changed["refresh_interval"]) == (
        "Mine", "Shelf", 360)  # fmt: skip
    toast(page, "Mine was changed").get_by_role("button", name="Undo").click()
    eventually(lambda: ann.feed(feed)["own_title"] is None)
    assert ann.feed(feed)["refresh_interval"] == 30

    about.get_by_role("button", name="Pause", exact=True).click()
    expect(about.get_by_text("not while it is paused")).to_be_visible()
    assert ann.feed(feed)["paused"]
    about.get_by_role("button", name="Resume").click()
    expect(about.locator("hw-countdown")).to_be_visible()

    about.get_by_role("button", name="Remove").click()
    expect(dialog(page)).to_contain_text("2 articles go with it (2 unread)")
    dialog(page).get_by_role("button", name="Remove").click()
    expect(page.locator(".empty")).to_contain_text("in one place")
    assert ann.feeds() == []


def test_folders_and_many_feeds_at_once(desk: Desk, ann: Reader, open_as: Opening) -> None:
    good, bad = desk.site.page("One"), desk.site.page("Two")
    ids = [ann.add(each, folder="News/World", title=name)["id"]
           for each, name in ((good, "Good"), (bad, "Bad"))]  # fmt: skip
    for id in ids:
        ann.settled(id)
    good.publish("One", "Three")
    bad.says = answers(b"", 404)
    page = open_as(ann, "#/feeds/folder/News")
    press(page, "r")
    banner = page.locator(".feeds-round")
    expect(banner).to_contain_text("2 of 2, 1 new, 1 failed")
    expect(page.locator(".feeds-fresh")).to_have_text("1 new")
    expect(page.locator(".feeds-about")).to_contain_text("1 feed needs attention")
    expect(page.locator(".feeds-side .trouble")).to_contain_text("failing: 127.")
    banner.get_by_role("button", name="Details").click()
    expect(dialog(page)).to_contain_text("404")
    dialog(page).get_by_role("link", name="Bad").click()
    expect(page.locator(".feeds-about .notice")).to_contain_text("The last visit failed")
    banner.get_by_role("button", name="Dismiss").click()
    expect(banner).to_have_count(0)

    go(page, "feeds/folder/News")
    pressed(page, "Rename")
    dialog(page).get_by_label("Folder").fill("Papers")
    dialog(page).get_by_role("button", name="Rename").click()
    expect(page.locator("main h1")).to_have_text("Papers")
    assert {each["folder"] for each in ann.feeds()} == {"Papers/World"}
    toast(page, "Papers now").get_by_role("button", name="Undo").click()
    eventually(lambda: {each["folder"] for each in ann.feeds()} == {"News/World"})
    expect(page.locator("main h1")).to_have_text("News")
    go(page, "feeds/folder/News%2FWorld")
    pressed(page, "Remove folder")
    expect(dialog(page)).to_contain_text("2 feeds stay, and are in News then")
    dialog(page).get_by_role("button", name="Remove folder").click()
    expect(page.locator("main h1")).to_have_text("News")
    assert {each["folder"] for each in ann.feeds()} == {"News"}


def test_lists_come_in_and_go_out(desk: Desk, ann: Reader, open_as: Opening) -> None:
    known = desk.site.page("One")
    ann.add(known)
    new = desk.site.page("Two")
    listed = [Subscription(new.url, "New", None, ("Tech",)), Subscription(known.url, "x", None, ()),
              Subscription("http://10.0.0.1/feed", "Private", None, ())]  # fmt: skip
    page = open_as(ann)
    pressed(page, "Import")
    file = {"name": "a.opml", "mimeType": "text/x-opml", "buffer": write_opml(listed)}
    page.get_by_label("OPML file").set_input_files([file])  # type: ignore[list-item]
    page.get_by_label("Put all below").fill("Old")
    dialog(page).get_by_role("button", name="Import").click()
    expect(dialog(page)).to_contain_text("3 of 3, 1 added, 1 there already, 1 not added")
    expect(dialog(page)).to_contain_text("private network")
    press(page, "Escape")
    expect(page.get_by_role("link", name="Tech")).to_be_visible()
    assert {each["folder"] for each in ann.feeds()} == {"", "Old/Tech"}
    with page.expect_download() as saved:
        page.get_by_role("link", name="Export").click()
    assert saved.value.suggested_filename == "feeds.opml"
    found = read_opml(saved.value.path().read_bytes()).subscriptions
    assert {each.url for each in found} == {new.url, known.url}


def test_rules_are_tried_followed_applied_and_removed(
    desk: Desk, ann: Reader, open_as: Opening
) -> None:
    subscribed(desk, ann, "Rust", "Go", "Rusty")
    page = open_as(ann, "#/feeds/rules")
    page.locator(".empty").get_by_role("button", name="Add a rule").click()
    page.get_by_label("Name").fill("Quiet")
    page.get_by_label("Text to look for").fill("rust")
    pressed(page, "Try it")
    expect(dialog(page)).to_contain_text("2 of the newest 3 articles are meant")
    pressed(page, "Save")
    row = page.get_by_role("row", name="Quiet")
    expect(row).to_contain_text("title contains “rust”")
    (rule,) = ann.get("/api/backend/rules")["items"]
    assert rule["conditions"] == [{"text": "rust", "field": "title", "test": "contains"}]

    row.get_by_role("button", name="Apply").click()
    expect(dialog(page)).to_contain_text("Of the newest 3 articles 2 are meant (read)")
    dialog(page).get_by_role("button", name="Apply").click()
    toast(page, "2 of 3 articles were changed")
    assert ann.get(ARTICLES, unread=True)["total"] == 1

    row.get_by_role("button", name="Switch off").click()
    expect(row).to_contain_text("off")
    row.get_by_role("button", name="Change the rule").click()
    page.get_by_label("drop it").check()
    pressed(page, "Save")
    expect(row).to_contain_text("drop")
    row.get_by_role("button", name="Remove the rule").click()
    expect(page.locator(".empty")).to_be_visible()
    toast(page, "Quiet was removed").get_by_role("button", name="Undo").click()
    expect(row).to_contain_text("drop")
    (again,) = ann.get("/api/backend/rules")["items"]
    assert (again["enabled"], again["actions"]) == (False, ["read", "drop"])


# ---------------------------------------------------------------------- how it looks


@pytest.mark.parametrize(
    ("language", "dark", "phone"),
    [
        pytest.param("en", False, False, id="desktop"),
        pytest.param("zh", True, False, id="dark-zh", marks=pytest.mark.soak),
        pytest.param("zh", False, True, id="phone-zh"),
    ],
)
def test_everybody_can_read_it(
    desk: Desk, ann: Reader, open_as: Opening, language: Language, dark: bool, phone: bool
) -> None:
    bad = desk.site.page()
    bad.says = answers(b"", 404)
    text = (
        "<h1>Big</h1><p>Some <a href='/x'>link</a> <img src='/1.png' alt='A quay'></p><pre>x</pre>"
    )
    feed = subscribed(desk, ann, "One", "Two", folder="News")
    ann.post(ARTICLES, {"feed_id": feed, "title": "Long", "content": text,
                        "url": "https://blog.example/long"})  # fmt: skip
    ann.settled(ann.add(bad, folder="News/Tech")["id"])
    page = open_as(ann, language=language, dark=dark, phone=phone)
    expect(story(page, "Long")).to_be_visible()
    words = {"en": ("Unread", "Send to archive"), "zh": ("未读", "发送到归档")}[language]
    expect(page.locator(".feeds-list .segments")).to_contain_text(words[0])
    assert not audit(page)
    story(page, "Long").get_by_role("link").click()
    expect(page.locator("hw-article h3")).to_have_text("Big")
    assert page.get_by_role("button", name=words[1]).is_visible()
    assert not audit(page, steps=4)
    if phone:
        expect(page.locator(".feeds-list")).to_be_hidden()
        page.locator(".feeds-reader .feeds-bar a").click()
        expect(page.locator(".feeds-list")).to_be_visible()
        page.locator("a[href*='pane=feeds']").click()
        expect(page.locator(".feeds-side")).to_be_visible()
        assert not audit(page, steps=2)
    go(page, f"feeds/feed/{feed}?pane=about")
    expect(page.locator(".feeds-about h2")).to_be_visible()
    assert not audit(page, steps=2)
    ann.post("/api/backend/rules", {"name": "r", "actions": ["star"],
                                    "conditions": [{"text": "x"}]}, 201)  # fmt: skip
    go(page, "feeds/rules")
    wait_for(page, lambda: page.locator("tbody tr").count() == 1)
    assert not audit(page, steps=2)
    press(page, "a")
    expect(dialog(page).get_by_role("textbox")).to_be_visible()
    assert not audit(page, steps=2)
    wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0
