"""The archive of one tenant is nobody else's, by whatever way somebody tries to get at it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.contract.kit import JSON, new_name
from tests.contract.media_kit import FAILURES, ITEMS, SUBSCRIPTIONS, Archivist, Desk, media_desk
from tests.hands.kit import eventually

MARK = "anns-own"
ARCHIVE = "/api/archive"
ALL = ("read", "submit", "operate")
TYPES = ("expected_total", "parse", "list_fetch", "download")


@dataclass
class Town:
    desk: Desk
    ann: Archivist
    eve: Archivist
    ids: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    with media_desk(log_level="debug") as desk:
        calm(desk)
        town = Town(desk, desk.archivist("", *ALL), desk.archivist("", *ALL))
        ann, ids = town.ann, town.ids
        made = ann.add(f"https://{MARK}.example/list", title=f"{MARK} title", start=False)
        ids["subscription"] = made["id"]
        video = desk.put_file(f"tenants/{ann.tenant}/{MARK}.mp4", MARK.encode())
        ids["failed"], ids["queued"], ids["done"], ids["found"] = desk.put_items(
            ann, made["id"],
            {"state": "failed", "failure": "gone", "reason": MARK, "title": f"{MARK} failed"},
            {"state": "queued", "title": f"{MARK} queued"},
            {"state": "done", "title": f"{MARK} done", "files": {"video": video}, "size_bytes": 8},
            {"state": "found", "title": f"{MARK} found", "url": f"https://{MARK}.example/v/1"},
        )  # fmt: skip
        ids["request"] = ann.post(f"{SUBSCRIPTIONS}/{made['id']}/refresh-list", {}, 202)["id"]
        ids["podcast"] = ann.post(f"{SUBSCRIPTIONS}/{made['id']}/podcast")["url"]
        ann.post(f"{ARCHIVE}/reconcile", {"subscription": made["id"]}, 202)
        eventually(lambda: ann.get(f"{ARCHIVE}/reconcile")["report"])
        yield town


def calm(desk: Desk) -> None:
    """Sites are left alone, and everything else goes on."""
    for scope in ("requires_cookie", "no_cookie"):
        desk.keeper().post("/api/queue/pause", scope=scope)
    desk.keeper().post("/api/queue/resume", scope="all")


def run(desk: Desk) -> None:
    for scope in ("requires_cookie", "no_cookie"):
        desk.keeper().post("/api/queue/resume", scope=scope)


def routes(town: Town) -> list[tuple[str, str, JSON | None]]:
    """All that name something of Ann's."""
    own, ids = f"{SUBSCRIPTIONS}/{town.ids['subscription']}", town.ids
    listed: list[tuple[str, str, JSON | None]] = [
        ("GET", own, None), ("PATCH", own, {"title": "mine now"}), ("DELETE", own, None),
        ("DELETE", f"{own}?files=true", None),
        ("GET", f"{own}/items", None), ("GET", f"{own}/tasks", None),
        ("GET", f"{own}/expected-total", None), ("GET", f"{own}/expected-total?sync=true", None),
        ("POST", f"{own}/refresh-list", {}), ("POST", f"{own}/download", {}),
        ("POST", f"{own}/download", {"use_cache_only": True}),
        ("POST", f"{own}/podcast", {}), ("POST", f"{own}/podcast", {"rotate": True}),
        ("DELETE", f"{own}/podcast", None),
        ("POST", f"{ARCHIVE}/reconcile", {"subscription": ids["subscription"]}),
        ("GET", f"{ITEMS}?subscription={ids['subscription']}", None),
        ("GET", f"{FAILURES}?subscription={ids['subscription']}", None),
        ("POST", f"{FAILURES}/retry", {"subscription": ids["subscription"]}),
        ("POST", f"{FAILURES}/unblock", {"ids": [ids["failed"]]}),
        ("POST", f"{FAILURES}/retry", {"ids": [ids["failed"]]}),
        ("GET", f"/api/requests/{ids['request']}", None),
    ]  # fmt: skip
    for name in ("failed", "queued", "done", "found"):
        item = f"{ITEMS}/{ids[name]}"
        listed += [("GET", item, None), ("DELETE", f"{item}?files=true", None)]
        listed += [("POST", f"{item}/{act}", None) for act in ("retry", "unblock", "skip")]
        listed += [("GET", f"{item}/file?kind={kind}", None) for kind in ("video", "info", "nfo")]
    listed += [
        ("POST", f"/api/requests/{ids['request']}/{act}", None)
        for act in ("pause", "resume", "cancel", "prioritize")
    ]
    return listed


def belongings(town: Town) -> Any:
    """What Ann has, without what changes by itself."""
    ann, ids = town.ann, town.ids
    seen = ann.subscription(ids["subscription"])
    items = [ann.item(ids[name]) for name in ("failed", "queued", "done", "found")]
    file = ann.http.get(f"{ITEMS}/{ids['done']}/file").content
    return seen, items, file, ann.get(f"/api/requests/{ids['request']}")["status"]


def test_nothing_of_hers_is_seen_or_changed_by_another(town: Town) -> None:
    before = belongings(town)
    said = []
    for method, path, body in routes(town):
        sent = {} if body is None else {"json": body}
        answer = town.eve.http.request(method, path, **sent)
        changes_nothing = answer.status_code == 200 and (
            answer.json().get("items") == [] or answer.json().get("changed") == 0
        )
        assert answer.status_code == 404 or changes_nothing, (method, path, answer.text)
        said.append(answer.text)
    assert not [each for each in said if MARK in each]
    assert belongings(town) == before


def test_lists_have_nothing_of_hers(town: Town) -> None:
    eve = town.eve
    paths = [
        SUBSCRIPTIONS, ITEMS, f"{ITEMS}?q={MARK}", FAILURES, f"{ARCHIVE}/reconcile", ARCHIVE,
        "/api/requests", "/api/tasks", "/api/jobs", "/api/trail", "/api/queue/stats",
    ]  # fmt: skip
    for path in paths:
        answer = eve.http.get(path)
        assert answer.status_code in (200, 403), (path, answer.text)
        assert MARK not in answer.text, path
        assert town.ann.tenant not in answer.text, path
    assert eve.get(ARCHIVE)["subscriptions"] == 0
    assert set(eve.get(ARCHIVE)["items"].values()) == {0}


@pytest.mark.parametrize("type", TYPES)
def test_jobs_about_her_subscription_do_nothing(town: Town, type: str) -> None:
    """Whatever way they are put into the queue, and whatever they say they are about."""
    eve, ids = town.eve, town.ids
    town.ann.http.post(f"/api/requests/{ids['request']}/cancel")  # it would call a site
    before = belongings(town)
    number = ids["subscription"]
    answer = eve.http.post("/api/requests/enqueue", json={
        "type": type, "subscription_id": number, "requires_cookie": False,
        "url": f"https://{MARK}.example/list",
    })  # fmt: skip
    assert answer.status_code == 404
    args = {"subscription_id": number, "url": f"https://{MARK}.example/v/1", "item": ids["queued"]}
    forged = [
        {"type": type, "args": args, **more}
        for more in (
            {}, {"key": f"subscription:{number}"}, {"lane": "requires_cookie"},
            {"labels": {"item": str(ids["queued"])}}, {"labels": {"item": "boom"}},
            {"labels": {"item": "-1"}}, {"labels": {"item": "٣"}}, {"labels": {"item": "9" * 40}},
            {"labels": {"item": str(ids["queued"])}, "key": f"subscription:{number}"},
        )
    ]  # fmt: skip
    made = [found.json()["id"] for each in forged
            if (found := eve.http.post("/api/jobs", json=each)).status_code == 202]  # fmt: skip
    assert made
    for job in made[::2]:  # it ends in another way, too
        eve.post(f"/api/jobs/{job}/cancel")
    run(town.desk)
    try:
        eventually(lambda: all(eve.job(job)["finished_at"] for job in made[1::2]), 60.0)
    finally:
        calm(town.desk)
    assert {eve.job(job)["status"] for job in made} <= {"cancelled", "failed"}
    assert town.desk.site.log == []
    after = belongings(town)
    assert after[1:3] == before[1:3]
    # The engine is alive, and hers is still hers.
    assert town.ann.get("/api/archive")["subscriptions"] == 1


def test_a_podcast_is_behind_its_secret_alone(town: Town) -> None:
    url = town.ids["podcast"]
    path = url.partition(town.desk.server.url)[2]
    http = town.eve.http
    assert http.get(path).status_code == 200  # whoever has the address may listen
    secret = path.split("/")[2]
    assert len(secret) >= 40
    for wrong in (secret[:-1], secret + "x", secret.swapcase(), "x", "%00", "..", "*", "%25"):
        assert http.get(path.replace(secret, wrong)).status_code in (400, 404)
        assert http.get(f"/podcasts/{wrong}/{town.ids['done']}.mp4").status_code in (400, 404)
    other = town.eve.add()
    theirs = town.eve.post(f"{SUBSCRIPTIONS}/{other['id']}/podcast")["url"].split("/")[4]
    for name in ("done", "failed", "queued"):
        answer = http.get(f"/podcasts/{theirs}/{town.ids[name]}.mp4")
        assert answer.status_code == 404
    for at in ("..%2f..%2fheadway.db", "%2e%2e/%2e%2e/headway.db", f"{town.ids['done']}.html"):
        assert http.get(f"/podcasts/{secret}/{at}").status_code in (400, 404)
    log = town.desk.server.printed()
    assert secret not in log
    assert "/podcasts/" in log
    assert secret not in json.dumps(town.desk.keeper().get("/api/audit", limit=1000))


def test_accounts_are_for_keepers_alone(town: Town) -> None:
    desk = town.desk
    made = desk.keeper().post(
        "/api/archive/accounts",
        {"name": new_name(), "site": f"{MARK}.example", "cookies": "SESSDATA=0123456789abcdef",
         "check_url": ""}, 201,
    )  # fmt: skip
    path = f"/api/archive/accounts/{made['id']}"
    body = {"name": "x", "site": f"{MARK}.example", "cookies": "SESSDATA=0123456789"}
    for who in (town.eve, town.ann, desk.archivist("eve", "read", "operate")):
        for method, at, sent in (
            ("GET", "/api/archive/accounts", None), ("POST", "/api/archive/accounts", body),
            ("GET", path, None), ("PATCH", path, {"enabled": False}), ("DELETE", path, None),
            ("PUT", f"{path}/cookies", {"cookies": "SESSDATA=0123456789"}),
            ("POST", f"{path}/check", None),
        ):  # fmt: skip
            answer = who.http.request(method, at, json=sent)
            assert answer.status_code == 403, (method, at, answer.text)
            assert MARK not in answer.text
    assert desk.keeper().get(path)["enabled"] is True
