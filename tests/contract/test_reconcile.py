"""The archive at a glance, and comparing it with the disk, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.kit import JSON, Api
from tests.contract.media_kit import Archivist, Desk, media_desk
from tests.hands.kit import eventually
from tests.servers import STORES

RECONCILE = "/api/archive/reconcile"


@pytest.fixture(scope="module", params=STORES)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with media_desk(request.param) as made:
        made.keeper().get("/api/archive")  # whoever looks first has the library made
        made.run()  # nobody is subscribed to anything that could be called
        yield made


def looked(who: Archivist, **asked: Any) -> JSON:
    """The report of a look that has ended."""
    request = who.post(RECONCILE, asked, 202)
    assert request["type"] == "media.reconcile"
    assert request["lane"] == "archive"
    eventually(lambda: who.get(f"/api/requests/{request['id']}")["status"] == "done")
    value = who.get(f"/api/jobs/{request['id']}/result")["value"]
    report: JSON = who.get(RECONCILE)["report"]
    assert value == report
    return report


def with_files(desk: Desk, who: Archivist, count: int) -> tuple[int, list[int], list[str]]:
    """A subscription that is on disk."""
    id = who.add(paused=True, interval_s=0)["id"]
    place = f"tenants/{who.tenant}" if who.tenant else f"sub{id}"
    paths = [desk.put_file(f"{place}/{id}-{number}.mp4", b"12345") for number in range(count)]
    said = [{"state": "done", "files": {"video": path}, "size_bytes": 5} for path in paths]
    return id, desk.put_items(who, id, *said), paths


def test_what_is_gone_is_told_and_marked(desk: Desk) -> None:
    who = desk.archivist()
    assert who.get(RECONCILE) == {"report": None, "job": None}
    id, (first, *_), (path, *_) = with_files(desk, who, 3)
    desk.put_file(f"tenants/{who.tenant}/nobody knows it.mp4")
    (desk.server.data / "archive" / path).unlink()
    dry = looked(who, dry_run=True)
    assert (dry["lost"], dry["changed"], dry["on_disk"]) == (
        {"count": 1, "items": [{"item": first, "path": path}]}, 0, 3,
    )  # fmt: skip
    report = looked(who)
    assert (report["changed"], report["missing"], report["bytes"]) == (1, 1, 10)
    assert report["orphans"] == {
        "count": 1, "items": [f"tenants/{who.tenant}/nobody knows it.mp4"],
    }  # fmt: skip
    assert who.item(first)["state"] == "missing"
    desk.put_file(path, b"12345")
    assert looked(who, subscription=id)["found_again"]["count"] == 1
    assert who.item(first)["state"] == "done"


def test_the_same_look_is_asked_for_once(desk: Desk) -> None:
    who = desk.archivist()
    desk.pause()
    try:
        first = who.post(RECONCILE, {}, 202)
        second = who.post(RECONCILE, {}, 202)
        other = who.post(RECONCILE, {"dry_run": True}, 202)
        assert (first["joined"], second["joined"], other["joined"]) == (False, True, False)
        assert first["id"] == second["id"] != other["id"]
        assert who.get(RECONCILE)["job"] in (first["id"], other["id"])
    finally:
        desk.run()


def test_who_may_look_at_what(desk: Desk) -> None:
    who, other = desk.archivist(), desk.archivist()
    id, *_ = with_files(desk, who, 1)
    other.problem(404, "POST", RECONCILE, "unknown-subscription", json={"subscription": id})
    for each in (who, desk.archivist("", "read", "submit", "operate")):
        each.problem(403, "POST", RECONCILE, "tenant", json={"force": True})
    desk.archivist(who.tenant, "read").problem(403, "POST", RECONCILE, "scope", json={})
    looked(who)
    assert other.get(RECONCILE)["report"] is None
    request = desk.keeper().post(RECONCILE, {"force": True, "dry_run": True}, 202)
    who.problem(404, "GET", f"/api/requests/{request['id']}", "unknown-job")
    said = {"name": "nameless", "scopes": ["read", "submit"], "tenant": ""}
    token = desk.keeper().post("/api/tokens", said, 201)["token"]
    with Api(desk.server.url, token) as nameless:  # is a tenant, too
        nameless.problem(404, "GET", f"/api/jobs/{request['id']}", "unknown-job")


def test_an_operator_sees_all_of_it(desk: Desk) -> None:
    keeper, who = desk.keeper(), desk.archivist()
    with_files(desk, who, 2)
    report = looked(keeper)
    assert report["listed"] >= 2
    (row,) = keeper.get("/api/audit", limit=1)["items"]
    assert (row["event"], row["subject"]) == ("archive_reconcile", "archive")
    assert row["who"] == "jwt:keeper from 127.0.0.1"


def test_files_are_imported(desk: Desk) -> None:
    who = desk.archivist()
    id = who.add("https://videos.example/list", paused=True)["id"]
    (item,) = desk.put_items(who, id, {"key": "youtube:abcdefghijk"})
    path = desk.put_file(f"tenants/{who.tenant}/An old one [abcdefghijk].mp4", b"123")
    assert looked(who, **{"import": True})["imported"]["matched"] == 1
    seen = who.item(item)
    assert (seen["state"], seen["size_bytes"], seen["files"]["video"]) == ("done", 3, path)


@pytest.mark.parametrize(
    "wrong", [{"subscription": 0}, {"subscription": "x"}, {"force": 1}, {"more": 1}, []], ids=str
)
def test_what_cannot_be_read_is_refused(desk: Desk, wrong: object) -> None:
    desk.keeper().problem(422, "POST", RECONCILE, json=wrong)


# ---------------------------------------------------------------------- at a glance


def test_the_archive_at_a_glance(desk: Desk) -> None:
    who, keeper = desk.archivist(), desk.keeper()
    with_files(desk, who, 2)
    seen = who.get("/api/archive")
    assert (seen["subscriptions"], seen["bytes"], seen["items"]["done"]) == (1, 10, 2)
    assert set(seen["items"]) == {"found", "queued", "done", "skipped", "failed", "missing"}
    assert seen["library"]["status"] == "ok"
    assert seen["library"]["free_bytes"] > 0
    assert (seen["library"]["path"], seen["accounts"], seen["yt_dlp"]["python"]) == (None,) * 3
    assert seen["yt_dlp"]["is_installed"]
    assert re.fullmatch(r"\d{4}\.\d+\.\d+.*", seen["yt_dlp"]["version"])
    every = keeper.get("/api/archive")
    assert every["library"]["path"] == str(desk.server.data / "archive")
    assert every["yt_dlp"]["python"]
    assert every["subscriptions"] >= 1
    assert every["queue"]["running"] == 0
    account = {"name": "one", "site": "videos.example", "cookies": "a=bcdefgh", "check_url": None}
    made = keeper.post("/api/archive/accounts", account, 201)
    assert keeper.get("/api/archive")["accounts"]["videos.example"] == {"unchecked": 1}
    keeper.ok("DELETE", f"/api/archive/accounts/{made['id']}", 204)


def test_a_library_that_is_away_is_told_with_what_to_do(desk: Desk) -> None:
    who = desk.archivist()
    id, (item, *_), _ = with_files(desk, who, 1)
    library = desk.server.data / "archive"
    away = library.rename(library.with_name("away"))
    try:
        seen = who.get("/api/archive")["library"]
        assert (seen["status"], seen["free_bytes"]) == ("gone", None)
        assert "mount" in seen["reason"]
        assert str(library) not in seen["reason"]
        assert str(library) in desk.keeper().get("/api/archive")["library"]["reason"]
        assert "mount" in looked(who, subscription=id)["refused"]
        assert who.item(item)["state"] == "done"
        who.problem(503, "GET", f"/api/archive/items/{item}/file", "no-library")
    finally:
        away.rename(library)


def test_metrics_count_items_bytes_and_accounts(desk: Desk) -> None:
    page = desk.keeper().send("GET", "/metrics").text
    for line in (
        r'headway_archive_items{state="done"} \d',
        r"headway_archive_bytes \d",
        r'headway_archive_accounts{status="healthy"} 0',
        r"headway_archive_subscriptions",
    ):
        assert re.search(line, page), line
    assert 'scrape_errors_total{source="media"}' not in page
