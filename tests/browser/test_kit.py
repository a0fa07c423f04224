"""The witness notices what a page should not do, and the audit finds each fault that it knows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.browser.audit import audit
from tests.browser.calls import calls_in
from tests.browser.kit import Chromium, Visits, expect_status, settle, wait_for
from tests.servers import Server

# ---------------------------------------------------------------------- the witness


@pytest.fixture
def unjudged(chromium: Chromium) -> Iterator[Visits]:
    """Windows whose faults are what the test is about."""
    with chromium.in_use():
        visits = Visits(chromium)
        yield visits
        visits.close()


WRONGS = {
    "console error": ("() => console.error('alas')", "console error: alas"),
    "console warning": ("() => console.warn('hm')", "console warning: hm"),
    "uncaught": ("() => { setTimeout(() => { throw new Error('oh') }); }", "uncaught: Error: oh"),
    "unhandled": ("() => { Promise.reject(new Error('no')); }", "uncaught: Error: no"),
    "elsewhere": (
        "() => fetch('http://192.0.2.1/x', {mode: 'no-cors'}).catch(() => 0)", "connect-src",
    ),
    "a picture elsewhere": (
        "() => { const image = new Image(); image.src = 'http://example.com/x.png'; "
        "return new Promise((done) => { image.onerror = image.onload = () => done(); }); }",
        "img-src",
    ),
    "a policy": (
        "() => { const style = document.createElement('style'); style.textContent = 'p { top: 0 }';"
        " document.head.append(style); }",
        "the policy forbids style-src",
    ),
    "refused": ("() => fetch('/api/jobs/4711471147')", "refused with 404: GET"),
    "unknown to the document": ("() => fetch('/nowhere')", "does not know: GET /nowhere"),
    "a socket": (
        "() => { new WebSocket(location.origin.replace('http', 'ws') + '/x'); }", "a WebSocket",
    ),
}  # fmt: skip


def test_what_a_page_should_not_do_is_noticed(unjudged: Visits, site: Server) -> None:
    page = unjudged.page_on(site, "/login")
    witness = unjudged.witness_of(page)
    for script, complaint in WRONGS.values():
        witness.complaints.clear()
        page.evaluate(script)
        wait_for(
            page, lambda awaited=complaint: any(awaited in each for each in witness.complaints)
        )
        with pytest.raises(AssertionError, match="what it should not"):
            witness.judge()


def test_a_shared_worker_is_heard(unjudged: Visits, site: Server) -> None:
    page = unjudged.page_on(site, "/login")
    witness, workers = unjudged.witness_of(page), unjudged.chromium.workers
    before = workers.attached
    made = 'new SharedWorker("/static/page/live-worker.js", { type: "module" })'
    page.evaluate(f"() => {{ globalThis.worker = {made}; }}")
    wait_for(page, lambda: workers.attached > before)
    page.evaluate("() => worker.port.postMessage('join')")
    wait_for(page, lambda: witness.calls)
    assert witness.calls == ["GET /api/events"]
    witness.judge()


def test_an_answer_that_breaks_the_contract_is_noticed(unjudged: Visits, site: Server) -> None:
    page = unjudged.page_on(site, "/login")
    page.context.route("**/api/queue/stats", lambda route: route.fulfill(json={"waiting": "many"}))
    page.evaluate("() => fetch('/api/queue/stats').then((answer) => answer.text())")
    witness = unjudged.witness_of(page)
    settle(page, witness)
    assert witness.calls == ["GET /api/queue/stats"]
    with pytest.raises(AssertionError, match="not what the document says: GET /api/queue/stats"):
        witness.judge()


def test_what_was_announced_must_come(unjudged: Visits, site: Server) -> None:
    page = unjudged.page_on(site, "/login")
    witness = unjudged.witness_of(page)
    witness.expected[409] = 1
    with pytest.raises(AssertionError, match="never came: \\[409\\]"):
        witness.judge()


def test_an_orderly_page_passes(unjudged: Visits, site: Server) -> None:
    page = unjudged.page_on(site, "/login")
    witness = unjudged.witness_of(page)
    expect_status(page, unjudged, 404)
    for path in ("/api/jobs", "/api/jobs/4711471147"):
        page.evaluate("(path) => fetch(path).then((answer) => answer.json())", path)
    settle(page, witness)
    witness.judge()
    assert witness.calls == ["GET /api/jobs", "GET /api/jobs/{id}"]


def test_the_table_of_calls_is_read_line_by_line() -> None:
    text = (
        "export const CALLS = {\n  // jobs\n  listJobs: \"GET /api/jobs\",\n  x: 'POST /a/{id}'\n};"
    )
    assert calls_in(text) == {"listJobs": "GET /api/jobs", "x": "POST /a/{id}"}
    with pytest.raises(AssertionError, match="not `name"):
        calls_in("export const CALLS = {\n  a: `GET ${path}`,\n};")


# ---------------------------------------------------------------------- the audit

CLEAN = """<!doctype html><html lang="en"><head><title>A page</title>
<meta name="viewport" content="width=device-width"><style>
  body { margin: 0; color: #222; background: white } a, button, input { padding: 12px }
  nav a { display: inline-block } .faded { color: rgb(0 0 0 / 70%) }
  .dark { background: #222; color: #eee } .glass { background: rgb(255 255 255 / 10%) }
</style></head><body>
<nav><a href="#x">Go</a></nav><main><h1>One</h1><h2>Two</h2><p role="status"></p>
<p class="faded">Some <a href="#y">words</a></p><div class="dark"><p class="glass">Night</p></div>
<label>Name <input placeholder="yours"></label><button aria-label="Close">✕</button>
<img alt="" src="data:,"><table><tr><th>Head</th></tr><tr><td>Cell</td></tr></table>
<button disabled style="color: #ddd">Not now</button>MORE</main></body></html>"""

FAULTS = {
    "a button without a name": ("<button><i></i></button>", "no name that could be read out"),
    "a link without a name": ('<a href="#z"><img alt="" src="data:,"></a>', "no name that could"),
    "a field without a label": ('<input placeholder="Name">', "the field has no label"),
    "a choice without a label": ("<select><option>1</select>", "the field has no label"),
    "an image without words": ('<img src="data:,">', "no text in its place"),
    "a drawing without words": ('<svg role="img" width="9" height="9"/>', "no text in its place"),
    "an id used twice": ('<p id="a">1</p><p id="a">2</p>', "the id is used twice"),
    "a skipped heading": ("<h4>Four</h4>", "skips from level 2 to 4"),
    "two first headings": ("<h1>Again</h1>", "2 headings <h1>"),
    "two mains": ("<div role=main>x</div>", "2 landmarks <main>"),
    "an unnamed second nav": ('<nav><a href="#q">Q</a></nav>', "one of several <nav>"),
    "a positive tabindex": ('<button tabindex="3">Third</button>', "positive tabindex"),
    "a button in a link": ('<a href="#b">x <button>y</button></a>', "what does a press mean"),
    "a table without headers": ("<table><tr><td>1</td></tr></table>", "no header cells"),
    "faint text": ('<p style="color: #999">faint</p>', "contrast of 2.85, below 4.5"),
    "faint by opacity": ('<p style="opacity: .4">faint</p>', "below 4.5"),
    "faint on glass": (
        '<div class="dark"><p class="glass" style="color: #888">x</p></div>', "below 4.5",
    ),
    "faint large text": ('<p style="font-size: 30px; color: #aaa">big</p>', "below 3"),
    "a faint placeholder": (
        "<style>.p::placeholder { color: #bbb }</style><input class=p aria-label=x placeholder=y>",
        "the placeholder has a contrast",
    ),
    "a broken reference": ('<button aria-describedby="no">x</button>', "#no, which is not there"),
    "a label for nothing": ('<label for="no">x</label>', "labels #no, which is not there"),
    "hidden, but reached": ('<div aria-hidden="true"><button>x</button></div>', "hidden from"),
    "an unnamed dialog": ("<dialog open>x</dialog>", "the dialog has no name"),
    "too wide": ('<div style="width: 3000px; height: 1px"></div>', "the page is 3000 px wide"),
    "an unseen focus": (
        "<style>.u:focus { outline: none }</style><button class=u>x</button>", "nobody sees",
    ),
    "hidden in a shadow": (
        "<div><template shadowrootmode=open><button></button></template></div>", "no name that",
    ),
}  # fmt: skip


@pytest.fixture
def blank(unjudged: Visits) -> Page:
    return unjudged.blank_page()


def test_a_clean_page_has_no_faults(blank: Page) -> None:
    blank.set_content(CLEAN.replace("MORE", ""))
    assert audit(blank) == []


def test_each_fault_is_found_and_nothing_else(blank: Page) -> None:
    """All in one window, which takes a tenth of the time of a window each."""
    for name, (markup, fault) in FAULTS.items():
        blank.set_content(CLEAN.replace("MORE", markup))
        found = audit(blank)
        assert any(fault in each for each in found), f"{name}: {found}"
        assert len(found) <= 2, f"{name}: {found}"


def test_the_page_as_a_whole_is_judged(blank: Page) -> None:
    blank.set_content("<main><p>Nothing of it all</p></main>")
    found = audit(blank)
    for fault in ("0 headings", "no landmark <nav>", "no live region", "no lang", "no title"):
        assert any(fault in each for each in found), found


def test_a_finger_needs_room(unjudged: Visits) -> None:
    phone = unjudged.blank_page(phone=True)
    small = "<button style='padding: 0; width: 20px; height: 20px'>x</button>"
    phone.set_content(CLEAN.replace("MORE", small))
    (found,) = audit(phone)
    assert "px, too small for a finger" in found
