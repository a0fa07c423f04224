"""The screen of the channels: what they bear, what they cost, and batches.

One server with a provider on loopback for all of it. Each test has channels of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from headway.testing.llm_upstream import LlmUpstream
from tests.browser.audit import audit
from tests.browser.conftest import ExpectStatus, PageOn
from tests.browser.kit import Language, go, wait_ready
from tests.contract.calls_kit import CHAT, answered, ask, channel, provider
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.security.kit import Guarded
from tests.servers import Server, server_on

KEY, OTHER_KEY = "sk-persimmon-lighthouse-4711", "sk-tamarind-windmill-0815"
HERE, ELSEWHERE = "https://llm.example/v1", "https://other.example/v1"
DECLARED = f'[channel.fixed]\nmodel = "settled"\nbase_url = "{HERE}"\n'
SIDEWAYS = "() => document.documentElement.scrollWidth > innerWidth"
OVER = ("completed", "failed", "expired", "cancelled")


@dataclass
class Desk:
    server: Server
    api: Api
    upstream: LlmUpstream


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with (
        provider() as upstream,
        server_on("sqlite", file=DECLARED) as server,
        Api(server.url) as api,
    ):
        yield Desk(server, api, upstream)


def spend(api: Api, model: str, calls: int = 1, **more: Any) -> None:
    for id in [ask(api, model, **more) for _ in range(calls)]:
        answered(api, id)


def jsonl(model: str, *texts: str) -> bytes:
    """A batch; a line without text is one that a provider refuses."""
    lines = [
        {"custom_id": f"line-{number}", "method": "POST", "url": CHAT,
         "body": {"model": model, "messages": [{"role": "user", "content": text}] if text else []}}
        for number, text in enumerate(texts)
    ]  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def batch_of(api: Api, content: bytes, **more: Any) -> str:
    file = api.ok("POST", "/v1/files", files={"file": ("lines.jsonl", content)},
                  data={"purpose": "batch"})  # fmt: skip
    said = {"input_file_id": file["id"], "endpoint": CHAT, **more}
    id: str = api.post("/v1/batches", said)["id"]
    return id


def ended(api: Api, id: str) -> JSON:
    found: JSON = eventually(
        lambda: (batch := api.get(f"/v1/batches/{id}"))["status"] in OVER and batch
    )
    return found


def said(page: Page, words: str) -> None:
    """The message about what was done, which is sent away."""
    toast = page.locator(".toast", has_text=words)
    expect(toast).to_be_visible()
    toast.get_by_role("button", name=re.compile("Dismiss|关闭")).click()


def undo(page: Page, words: str) -> None:
    page.locator(".toast", has_text=words).get_by_role("button", name="Undo").click()
    said(page, "Undone.")


def press(where: Page | Locator, name: str) -> None:
    where.get_by_role("button", name=name, exact=True).click()


def fact(where: Page | Locator, name: str) -> Locator:
    return where.locator(".channel-facts > div", has_text=name).locator("dd")


# ---------------------------------------------------------------------- channels


def test_a_channel_from_its_key_to_its_end(
    desk: Desk, page_on: PageOn, expect_status: ExpectStatus
) -> None:
    api = desk.api
    page = page_on(desk.server, "#/channels")
    dialog = page.get_by_role("dialog")
    expect_status(page, 422, 422)
    added(page, dialog)
    main = api.get("/api/channels/main")
    assert (main["rpm"], main["price"]["input_per_1k"], main["key_ends_with"]) == (
        60, 0.5, "4711")  # fmt: skip
    assert (main["batch_discount"], main["model"]) == (0.5, "gpt-large")
    changed(page, dialog, api)
    steered(page, dialog, api)
    for key in (KEY, OTHER_KEY):
        assert key not in page.content()
    press(page, "Remove")
    expect(dialog).to_contain_text("0 queued calls that could go here move")
    press(dialog, "Remove")
    said(page, "main is removed.")
    expect(page.locator("h1")).to_have_text("Channels")
    api.problem(404, "GET", "/api/channels/main", "unknown-channel")


def added(page: Page, dialog: Locator) -> None:
    press(page, "Add a channel")
    expect(dialog).to_contain_text("never shown, logged or exported")
    dialog.get_by_label("Code", exact=True).fill("a b")
    dialog.get_by_label("Model", exact=True).fill("gpt-large")
    dialog.get_by_label("Address").fill(HERE)
    dialog.get_by_label("Key", exact=True).fill(KEY)
    dialog.get_by_label("Price of 1,000 tokens asked").fill("0.5")
    dialog.get_by_label("Currency").fill("dollars")
    press(dialog, "Add")
    code = dialog.get_by_label("Code", exact=True)
    expect(code).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_role("alert")).to_have_count(2)  # each beside its field
    code.fill("calls")
    dialog.get_by_label("Currency").fill("USD")
    press(dialog, "Add")
    expect(dialog.get_by_role("alert")).to_contain_text("choose another code")
    code.fill("main")
    dialog.get_by_label("Limits, discount").check()
    dialog.get_by_label("Documented requests a minute").fill("60")
    dialog.get_by_label("Discount of queued calls").fill("50")
    press(dialog, "Add")
    said(page, "main is there and in use.")
    expect(page.locator("h1")).to_have_text("main")
    expect(page.get_by_text("Key …4711")).to_be_visible()


def changed(page: Page, dialog: Locator, api: Api) -> None:
    """A limit is taken off and back; another host needs another key."""
    press(page, "Change")
    expect(dialog.get_by_label("Key", exact=True)).to_have_count(0)
    dialog.get_by_label("Documented requests a minute").fill("")
    press(dialog, "Save")
    page.locator(".toast", has_text="main is changed.").wait_for()
    assert api.get("/api/channels/main")["rpm"] is None
    undo(page, "main is changed.")
    assert api.get("/api/channels/main")["rpm"] == 60
    press(page, "Change")
    dialog.get_by_label("Address").fill(ELSEWHERE)
    dialog.get_by_label("Key", exact=True).fill(OTHER_KEY)
    dialog.get_by_label("Besides online calls").select_option("both")
    press(dialog, "Save")
    said(page, "main is changed.")
    main = api.get("/api/channels/main")
    assert (main["base_url"], main["queue_mode"], main["key_ends_with"]) == (
        ELSEWHERE, "both", "0815")  # fmt: skip


def steered(page: Page, dialog: Locator, api: Api) -> None:
    press(page, "Replace the key")
    dialog.get_by_label("Key", exact=True).fill(KEY)
    press(dialog, "Replace the key")
    said(page, "main has a new key.")
    assert api.get("/api/channels/main")["key_ends_with"] == "4711"
    press(page, "Switch off")
    expect(page.get_by_text("The channel is switched off.")).to_be_visible()
    assert api.get("/api/channels/main")["enabled"] is False
    undo(page, "main is off.")
    expect(page.get_by_role("button", name="Switch off")).to_be_visible()
    press(page, "Pin")
    dialog.get_by_label("Requests a minute").fill("30")
    press(dialog, "Pin")
    said(page, "The pins of main are set.")
    expect(page.get_by_text("pinned: 30")).to_be_visible()
    assert api.get("/api/upstreams/main/learned")["pins"]["rpm"] == 30
    press(page, "Forget")
    press(dialog, "Forget")
    said(page, "What was learned about main is forgotten.")


def test_a_channel_says_what_it_bears_and_why_work_waits(desk: Desk, page_on: PageOn) -> None:
    api = desk.api
    code, model = channel(api, desk.upstream, api_key=KEY, remaining_threshold=0.2)
    spend(api, model, 2)
    page = page_on(desk.server, "#/channels")
    card = page.get_by_role("article", name=code, exact=True)
    expect(card).to_contain_text(model)
    expect(card).to_contain_text("a minute")
    expect(card.get_by_role("img")).to_have_accessible_name(re.compile(r"queued ones \d+%"))
    expect(fact(card, "Cost today")).to_contain_text("$0.")
    expect(card.get_by_role("link", name="Its upstream")).to_have_attribute(
        "href", f"#/upstreams/{code}"
    )
    expect(card).to_contain_text(f"Nothing is queued for {model}.")
    api.post(f"/api/upstreams/{code}/close", {"for_s": 600, "why": "401 no such key"})
    held = ask(api, model)
    expect(card).to_contain_text(
        re.compile(r"Next queued call: 9:\d\d.*closed \(401 no such key\)")
    )
    expect(card).to_contain_text("Key refused: 401 no such key")
    expect(fact(card, "Waiting")).to_have_text("1")
    press(card, f"Switch {code} off")
    undo(page, f"{code} is off.")
    assert api.get(f"/api/channels/{code}")["enabled"] is True
    card.get_by_role("link", name=code, exact=True).click()
    expect(page.locator("hw-chart")).to_have_accessible_name(re.compile("Calls a minute"))
    expect(fact(page, "Cost in 7 days")).to_contain_text("$0.")
    press(page, "Live")
    expect(page).to_have_url(re.compile("span=live"))
    api.post(f"/api/channels/calls/{held}/cancel")

    go(page, "channels/channel/fixed")
    remove = page.get_by_role("button", name="Remove")
    expect(remove).to_have_attribute("aria-disabled", "true")
    expect(remove).to_have_attribute("title", re.compile(r"\[channel.fixed\] in the settings file"))


def test_the_secret_of_callbacks_is_shown_to_who_asks(desk: Desk, page_on: PageOn) -> None:
    page = page_on(desk.server, "#/channels")
    press(page, "Callback secret")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("[data-secret]")).to_have_count(0)
    dialog.get_by_label("Of the tenant").fill("cobalt")
    press(dialog, "Show it")
    shown = dialog.locator("[data-secret]")
    before = desk.api.get("/api/channels/callback-secret", tenant="cobalt")["secret"]
    expect(shown).to_have_text(before)
    press(dialog, "Renew")
    expect(dialog).to_contain_text("signed with both")
    press(dialog, "Renew it now")
    expect(shown).not_to_have_text(before)
    assert desk.api.get("/api/channels/callback-secret", tenant="cobalt")["secret"] != before


# ---------------------------------------------------------------------- costs


def test_costs_are_summed_up_narrowed_and_taken_along(desk: Desk, page_on: PageOn) -> None:
    api, tenant = desk.api, new_name("tenant")
    code, model = channel(api, desk.upstream)
    _, other = channel(api, desk.upstream)
    spend(api, model, 2, tenant=tenant)
    spend(api, other)
    page = page_on(desk.server, f"#/channels/costs?channel={code}")
    expect(page.locator(".figure", has_text="Calls")).to_contain_text("2")
    expect(page.locator("hw-chart")).to_have_accessible_name(re.compile(r"Queued \$0\."))
    expect(page.locator(".bill-table tbody tr")).to_have_count(2)
    with page.expect_download() as begun:
        page.get_by_role("link", name="CSV of all calls").click()
    rows = Path(begun.value.path()).read_text("utf-8").splitlines()
    assert [code in row for row in rows] == [False, True, True]
    press(page, f"Channel: {code}")
    press(page, "Tenant")
    press(page, tenant)
    expect(page.locator(".bill-table tbody tr")).to_have_count(2)
    expect(page).to_have_url(re.compile(f"tenant={tenant}"))
    press(page, "All")
    expect(page.locator(".bill-table")).to_contain_text(code)


def test_budgets_are_set_changed_and_removed(desk: Desk, page_on: PageOn) -> None:
    api, tenant = desk.api, new_name("tenant")
    page = page_on(desk.server, "#/channels/costs")
    dialog = page.get_by_role("dialog")
    press(page, "Set a budget")
    dialog.get_by_label("Tenant").fill(tenant)
    dialog.get_by_label("Amount").fill("50")
    press(dialog, "Set")
    said(page, f"The budget of {tenant} is set.")
    row = page.get_by_role("row", name=tenant)
    expect(row).to_contain_text("$0.00 / $50.00")
    press(row, f"Change the budget of {tenant}")
    dialog.get_by_label("Amount").fill("0")
    press(dialog, "Set")
    expect(row).to_contain_text("used up")
    undo(page, f"The budget of {tenant} is set.")
    expect(row).to_contain_text("$50.00")
    press(row, f"Remove the budget of {tenant}")
    expect(dialog).to_contain_text("may then spend more than $50.00 (a month)")
    press(dialog, "Remove")
    expect(row).to_have_count(0)
    undo(page, f"The budget of {tenant} is removed.")
    (budget,) = api.get(f"/api/budgets/{tenant}")["items"]
    assert (budget["amount"], budget["period"]) == ("50.00", "month")


# ---------------------------------------------------------------------- batches


def test_a_batch_is_sent_followed_and_read(desk: Desk, page_on: PageOn) -> None:
    api, name = desk.api, new_name("Letters ")
    _, model = channel(api, desk.upstream)
    page = page_on(desk.server, "#/channels/batches")
    sent(page, jsonl(model, "one", "", "three"), name)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".screen .badge")).to_have_text("completed")
    expect(page.locator(".batch-count")).to_have_text("3 / 3")
    wrong = page.get_by_role("row", name="line-1")
    expect(wrong).to_contain_text("400")
    expect(page.get_by_role("button", name="Cancel the batch")).to_have_attribute(
        "title", re.compile("It is completed")
    )
    (batch,) = [each for each in api.get("/v1/batches")["data"] if each["metadata"]]
    assert batch["metadata"] == {"name": name}
    with page.expect_download() as begun:
        page.get_by_role("link", name=f"{batch['id']}_output.jsonl").click()
    lines = Path(begun.value.path()).read_text("utf-8").splitlines()
    assert sorted(json.loads(line)["custom_id"] for line in lines) == ["line-0", "line-2"]

    page.get_by_role("link", name="Batches", exact=True).click()
    row = page.get_by_role("row", name=name)
    expect(row.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "100")
    sent(page, b"{no json\n", "")
    expect(page.get_by_text("What is wrong with the file")).to_be_visible()
    expect(page.locator(".screen .badge")).to_have_text("refused")


def sent(page: Page, content: bytes, name: str) -> None:
    press(page, "New batch")
    dialog = page.get_by_role("dialog")
    lines = {"name": "lines.jsonl", "mimeType": "application/jsonl", "buffer": content}
    dialog.get_by_label("File").set_input_files(lines)  # type: ignore[arg-type]
    expect(dialog.get_by_role("status")).to_contain_text("line")
    if name:
        dialog.get_by_label("Name").fill(name)
    else:
        expect(dialog).to_contain_text("the batch would be refused")
    press(dialog, "Upload and start")
    said(page, "The batch is on its way.")


def test_a_batch_is_cancelled(desk: Desk, page_on: PageOn) -> None:
    api = desk.api
    code, model = channel(api, desk.upstream)
    api.post(f"/api/upstreams/{code}/close", {"for_s": 600, "why": "so that it waits"})
    id = batch_of(api, jsonl(model, "one", "two"))
    page = page_on(desk.server, f"#/channels/batches/{id}")
    expect(page.locator(".batch-count")).to_have_text("0 / 2")
    press(page, "Cancel the batch")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 lines that have not ended are given up")
    press(dialog, "Cancel the batch")
    said(page, "is being cancelled.")
    expect(page.locator(".screen .badge")).to_have_text("cancelled")
    assert ended(api, id)["status"] == "cancelled"


# ---------------------------------------------------------------------- for everybody


@pytest.mark.parametrize(
    ("language", "dark", "phone"),
    [("en", False, False), ("zh", True, True)],
    ids=["desktop", "phone-zh-dark"],
)
def test_everybody_can_read_it(
    desk: Desk, page_on: PageOn, language: Language, dark: bool, phone: bool
) -> None:
    api = desk.api
    code, model = channel(api, desk.upstream, remaining_threshold=0.1)
    id = batch_of(api, jsonl(model, "one", ""))
    ended(api, id)
    api.ok("PUT", "/api/budgets/cobalt", json={"period": "day", "amount": "0", "currency": "USD"})
    page = page_on(desk.server, "#/channels", language=language, dark=dark, phone=phone)
    parts = ("", f"/channel/{code}", "/costs", "/batches", f"/batches/{id}")
    for part in parts:
        go(page, f"channels{part}")
        expect(page.locator(".screen:not([data-loading])")).to_be_attached()
        assert audit(page, steps=2) == [], part
        assert not page.evaluate(SIDEWAYS), part
        words = page.locator("main").inner_text()
        assert not re.search(r"\b(channels|upstreams|state)\.[a-z]", words), part
        assert ("模型" in words or "批处理" in words) is (language == "zh"), part


def test_where_nothing_is_yet_it_says_how_to_begin(guarded_site: Guarded, page_on: PageOn) -> None:
    page = page_on(guarded_site, "#/channels", token=guarded_site.tokens["reader"])
    expect(page.get_by_text("No channel yet")).to_be_visible()
    expect(page.locator(".empty pre")).to_contain_text("headway channels add")
    add = page.locator(".empty").get_by_role("button", name="Add a channel")
    expect(add).to_have_attribute("title", re.compile("lacks the scope “operate”"))


def test_tenants_see_what_is_theirs(guarded_site: Guarded, page_on: PageOn) -> None:
    page = page_on(guarded_site, "#/channels", token=guarded_site.tokens["alice-reads"])
    wait_ready(page, "channels")
    expect(page.get_by_text("Your batches and costs are in the other tabs.")).to_be_visible()
    expect(page.get_by_role("button", name="Add a channel")).to_have_count(0)
    page.get_by_role("link", name="Batches", exact=True).click()
    expect(page.get_by_text("No batch yet")).to_be_visible()
    expect(page.locator(".empty pre")).to_contain_text(f"{guarded_site.url}/v1")
    upload = page.locator(".empty").get_by_role("button", name="New batch")
    expect(upload).to_have_attribute("title", re.compile("lacks the scope “submit”"))
    page.get_by_role("link", name="Costs").click()
    expect(page.get_by_text("No budgets.")).to_be_visible()
    expect(page.get_by_role("button", name="Set a budget")).to_have_count(0)
