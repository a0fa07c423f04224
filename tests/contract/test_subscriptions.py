"""Subscriptions of the archive over HTTP: what is kept of them, what follows from a change, and
what is put into the queue. Two tests let yt-dlp run against a site on loopback.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.contract.feeds_kit import signed
from tests.contract.kit import JSON, new_name
from tests.contract.media_kit import ITEMS, SUBSCRIPTIONS, Archivist, Desk, media_desk, settled
from tests.hands.kit import eventually

COUNT = "expected-total"


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with media_desk(request.param, media_max_subscriptions=12, media_count_timeout_s=20) as made:
        yield made


@pytest.fixture
def ann(desk: Desk) -> Archivist:
    """Somebody with no subscriptions yet."""
    return desk.archivist()


def newest_event(desk: Desk, subject: str) -> JSON:
    """The last word of the trail about this."""
    rows = desk.keeper().get("/api/audit", limit=50)["items"]
    found: JSON = next(row for row in rows if row["subject"] == subject)
    return found


# ---------------------------------------------------------------------- adding and looking


def test_a_new_one_is_listed_at_once_and_downloads_follow(desk: Desk, ann: Archivist) -> None:
    url = f"https://{new_name()}.example/list"
    answer = ann.send("POST", SUBSCRIPTIONS, json={"url": url})
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{SUBSCRIPTIONS}/{made['id']}"
    assert (made["url"], made["name"], made["preset"]) == (url, url, "generic")
    assert (made["quality"], made["depth"], made["download"]) == ("best", 0, True)
    assert made["interval_s"] == 21_600
    assert made["next_refresh_at"] is not None
    assert (made["complete"], made["counts"]["listed"]) == (False, 0)
    assert made["expected_total"] == {
        "value": None, "how": None, "checked_at": None, "is_fresh": False}  # fmt: skip
    assert "tenant" not in made
    (request,) = ann.open_requests(made["id"])
    assert (request["type"], request["priority"], request["lane"]) == ("list_fetch", 3, "no_cookie")
    assert made["busy"] == {"listing": request["id"], "counting": None, "downloads_open": 0}
    event = newest_event(desk, f"subscription:{made['id']}")
    assert event["event"] == "subscription_add"
    assert event["who"] == f"jwt:{ann.tenant} from 127.0.0.1"


@pytest.mark.parametrize("how", [{"start": False}, {"paused": True}])
def test_or_when_somebody_asks(ann: Archivist, how: dict[str, bool]) -> None:
    made = ann.add(**how)
    assert ann.open_requests(made["id"]) == []
    assert made["busy"]["listing"] is None
    assert (made["next_refresh_at"] is None) == ("paused" in how)


def test_all_that_can_be_said_is_kept(ann: Archivist) -> None:
    filters = {"title_any": ["Live", "Konzert"], "after": "2024-05-01", "max_duration_s": 600,
               "min_views": 5}  # fmt: skip
    made = ann.add(
        title=" My  list ", quality="720p", filters=filters, template="{uploader}/{title} [{id}]",
        nfo="episode", depth=30, interval_s=900, download=False, start=False,
    )  # fmt: skip
    assert (made["title"], made["name"], made["quality"]) == ("My list", "My list", "720p")
    assert made["filters"] == {
        "title_any": ["Live", "Konzert"], "title_none": [], "after": "2024-05-01T00:00:00.000000Z",
        "before": None, "min_duration_s": None, "max_duration_s": 600.0, "min_views": 5,
        "max_views": None,
    }  # fmt: skip
    assert (made["template"], made["nfo"]) == ("{uploader}/{title} [{id}]", "episode")
    assert (made["depth"], made["interval_s"], made["download"]) == (30, 900.0, False)
    assert ann.subscription(made["id"]) == made
    assert ann.add(filters=made["filters"], start=False)["filters"] == made["filters"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": "ftp://x.example/"}, "body.url"),
    ({"url": "http://10.0.0.1/list"}, "body.url"),
    ({"url": ""}, "body.url"),
    ({"quality": "999p"}, "body.quality"),
    ({"interval_s": 30}, "body.interval_s"),
    ({"interval_s": 1e9}, "body.interval_s"),
    ({"depth": -1}, "body.depth"),
    ({"template": "{title.__class__}"}, "body.template"),
    ({"template": "../{title}"}, "body.template"),
    ({"template": "everything"}, "body.template"),
    ({"nfo": "song"}, "body.nfo"),
    ({"filters": {"min_views": 9, "max_views": 3}}, "body.filters"),
    ({"filters": {"titel_any": ["x"]}}, "body.filters.titel_any"),
    ({"filters": {"title_any": "x"}}, "body.filters.title_any"),
    ({"filters": {"after": "yesterday"}}, "body.filters.after"),
    ({"filters": {"title_none": ["a\x00b"]}}, "body.filters.title_none.0"),
    ({"paused": 1}, "body.paused"),
    ({"exec": "rm"}, "body.exec"),
]


@pytest.mark.parametrize(("said", "where"), WRONG, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_said_and_nothing_is_kept(
    ann: Archivist, said: dict[str, Any], where: str
) -> None:
    body = {"url": f"https://{new_name()}.example/", **said}
    problem = ann.problem(422, "POST", SUBSCRIPTIONS, json=body)
    assert problem["errors"][0]["where"].startswith(where)
    assert ann.get(SUBSCRIPTIONS)["total"] == 0
    if "url" not in said:
        made = ann.add(start=False)
        problem = ann.problem(422, "PATCH", f"{SUBSCRIPTIONS}/{made['id']}", json=said)
        assert problem["errors"][0]["where"].startswith(where)
        assert ann.subscription(made["id"]) == made


def test_one_address_once(desk: Desk, ann: Archivist) -> None:
    made = ann.add(start=False)
    again = {"url": made["url"].replace("https:", "HTTPS:")}
    problem = ann.problem(409, "POST", SUBSCRIPTIONS, "duplicate", json=again)
    assert problem["existing_id"] == made["id"]
    assert f"as subscription {made['id']}" in problem["detail"]
    bob = desk.archivist()
    assert bob.add(made["url"], start=False)["id"] != made["id"]


def test_there_is_a_limit(ann: Archivist) -> None:
    for _ in range(12):
        ann.add(start=False)
    body = {"url": "https://one.example/more"}
    problem = ann.problem(409, "POST", SUBSCRIPTIONS, "too-many-subscriptions", json=body)
    assert "at most 12" in problem["detail"]


def test_they_are_listed_newest_first_and_searched(ann: Archivist) -> None:
    one = ann.add(title="Gardens", start=False)
    two = ann.add(title="Bridges", start=False)
    listed = ann.get(SUBSCRIPTIONS)
    assert [each["id"] for each in listed["items"]] == [two["id"], one["id"]]
    assert (listed["total"], listed["count"]) == (2, 2)
    assert ann.get(SUBSCRIPTIONS, q="GARD")["items"] == [one]
    second = ann.get(SUBSCRIPTIONS, page=2, size=1)
    assert ([each["id"] for each in second["items"]], second["total"]) == ([one["id"]], 2)
    assert ann.get(SUBSCRIPTIONS, page=9)["items"] == []


def test_everything_is_the_tenants_own(desk: Desk, ann: Archivist) -> None:
    made = ann.add(start=False)
    (item,) = desk.put_items(ann, made["id"], {"state": "failed", "failure": "gone"})
    bob = desk.archivist()
    at = f"{SUBSCRIPTIONS}/{made['id']}"
    for method, path in [
        ("GET", at), ("PATCH", at), ("DELETE", at), ("GET", f"{at}/{COUNT}"),
        ("GET", f"{at}/items"), ("POST", f"{at}/refresh-list"), ("POST", f"{at}/download"),
        ("GET", f"{ITEMS}/{item}"), ("DELETE", f"{ITEMS}/{item}"),
        *(("POST", f"{ITEMS}/{item}/{verb}") for verb in ("retry", "unblock", "skip")),
    ]:  # fmt: skip
        sent = {"json": {}} if method == "PATCH" else {}
        bob.problem(404, method, path, **sent)
    assert bob.get(SUBSCRIPTIONS)["total"] == 0
    keeper = desk.keeper()
    seen = keeper.subscription(made["id"])
    assert (seen.pop("tenant"), seen) == (ann.tenant, ann.subscription(made["id"]))
    own = keeper.add(start=False)
    assert own["tenant"] == ""
    ann.problem(404, "GET", f"{SUBSCRIPTIONS}/{own['id']}")
    for strange in ("none", "0", "99999999999999999999", "1e3", "٣"):
        ann.problem(404, "GET", f"{SUBSCRIPTIONS}/{strange}", "unknown-subscription")
        ann.problem(404, "GET", f"{ITEMS}/{strange}", "unknown-item")


# ---------------------------------------------------------------------- changing


def test_what_is_left_out_stays(desk: Desk, ann: Archivist) -> None:
    made = ann.add(title="Old", quality="480p", start=False)
    changed = ann.change(made["id"], title="New", url=made["url"])
    assert changed == {**made, "title": "New", "name": "New"}
    event = newest_event(desk, f"subscription:{made['id']}")
    assert (event["event"], event["detail"]) == ("subscription_change", "title")
    assert ann.change(made["id"], title=None)["name"] == made["url"]
    problem = ann.problem(
        422, "PATCH", f"{SUBSCRIPTIONS}/{made['id']}", json={"url": "https://other.example/"}
    )
    assert "add another subscription" in problem["detail"]


def test_pausing_takes_it_from_the_clock(ann: Archivist) -> None:
    made = ann.add(start=False)
    assert ann.change(made["id"], paused=True)["next_refresh_at"] is None
    assert ann.change(made["id"], paused=False)["next_refresh_at"] is not None
    assert ann.change(made["id"], interval_s=0)["next_refresh_at"] is None


def states(who: Archivist, subscription: int) -> list[tuple[str, str | None]]:
    return [(each["state"], each["failure"]) for each in who.items(subscription)]


def test_other_filters_sift_what_was_found(desk: Desk, ann: Archivist) -> None:
    id = ann.add(start=False, filters={"title_none": ["short"]})["id"]
    ids = desk.put_items(
        ann, id,
        {"title": "A long one"},
        {"title": "A short one", "state": "skipped", "failure": "filter", "reason": "its title"},
        {"title": "A long one that failed", "state": "failed", "failure": "gone"},
        {"title": "A long one by hand", "state": "skipped", "failure": "by_hand"},
        {"title": "A long one on disk", "state": "done"},
        {"title": "A long one in line", "state": "queued"},
        {"title": "Far back and short", "state": "skipped", "failure": "depth"},
    )  # fmt: skip
    ann.change(id, filters={"title_none": ["LONG"]})
    assert states(ann, id) == [
        ("skipped", "filter"), ("found", None), ("failed", "gone"), ("skipped", "by_hand"),
        ("done", None), ("queued", None), ("found", None),
    ]  # fmt: skip
    first = ann.item(ids[0])
    assert first["reason"] == "its title has 'LONG'"
    ann.change(id, filters={})
    assert states(ann, id)[0] == ("found", None)
    counts = ann.subscription(id)["counts"]
    assert counts == {
        "listed": 7, "gone": 0, "on_disk": 1, "pending": 4, "queued": 1, "skipped": 1, "failed": 1,
        "missing": 0, "bytes": 0,
    }  # fmt: skip


def test_another_depth_sifts_too_whether_the_list_was_read_or_not(
    desk: Desk, ann: Archivist
) -> None:
    id = ann.add(start=False)["id"]
    desk.put_items(ann, id, *({} for _ in range(450)))
    ann.change(id, depth=3)
    counts = ann.subscription(id)["counts"]
    assert (counts["pending"], counts["skipped"]) == (3, 447)
    assert states(ann, id)[:4] == [("found", None)] * 3 + [("skipped", "depth")]
    ann.change(id, depth=5)
    assert ann.subscription(id)["counts"]["pending"] == 5
    ann.change(id, depth=0)
    assert ann.subscription(id)["counts"]["pending"] == 450


# ---------------------------------------------------------------------- asking for more


def test_counting_is_asked_for_once_and_joined(ann: Archivist) -> None:
    id = ann.add(start=False)["id"]
    first = ann.ok("GET", f"{SUBSCRIPTIONS}/{id}/{COUNT}", 202)
    assert (first["expected_total"], first["cached"], first["status"]) == (None, False, "queued")
    request = first["request"]
    assert (request["type"], request["joined"], request["requires_cookie"]) == (
        "expected_total", False, False)  # fmt: skip
    second = ann.ok("GET", f"{SUBSCRIPTIONS}/{id}/{COUNT}", 202)
    assert (second["request"]["id"], second["request"]["joined"]) == (request["id"], True)
    assert ann.subscription(id)["busy"]["counting"] == request["id"]


def test_whoever_only_reads_asks_no_site(desk: Desk, ann: Archivist) -> None:
    id = ann.add(start=False)["id"]
    reader = desk.archivist(ann.tenant, "read")
    assert reader.subscription(id)["id"] == id
    problem = reader.problem(403, "GET", f"{SUBSCRIPTIONS}/{id}/{COUNT}", "scope")
    assert "submit" in problem["detail"]
    reader.problem(403, "POST", f"{SUBSCRIPTIONS}/{id}/refresh-list", "scope")
    assert ann.open_requests(id) == []


def test_concurrent_clicks_make_one_request(desk: Desk, ann: Archivist) -> None:
    id = ann.add(start=False)["id"]

    def click(path: str) -> int:
        with Archivist(desk.server.url, signed(ann.tenant)) as own:
            answer = own.post(f"{SUBSCRIPTIONS}/{id}/{path}", status=202)
            return int((answer.get("request") or answer)["id"])

    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(click, ["download", "refresh-list"] * 3))
    assert len(found) == 1
    (request,) = ann.open_requests(id)
    assert request["id"] in found
    event = newest_event(desk, f"subscription:{id}")
    assert event["event"] in ("subscription_download", "subscription_refresh")


def test_a_list_is_read_to_its_end_if_somebody_wants_it(ann: Archivist) -> None:
    id = ann.add(start=False)["id"]
    asked = ann.post(f"{SUBSCRIPTIONS}/{id}/refresh-list", {"full": True, "of_old": 1}, 202)
    assert (asked["type"], asked["joined"], asked["subscription_id"]) == ("list_fetch", False, id)
    payload = ann.get(f"/api/jobs/{asked['id']}/payload")["value"]
    assert payload["full"] is True
    ann.problem(422, "POST", f"{SUBSCRIPTIONS}/{id}/refresh-list", json={"full": "yes"})


@pytest.mark.parametrize("where", ["json", "params"])
def test_what_was_found_earlier_is_downloaded_without_a_look(
    desk: Desk, ann: Archivist, where: str
) -> None:
    id = ann.add(start=False)["id"]
    ids = desk.put_items(
        ann, id, {}, {"state": "missing"}, {"state": "failed"}, {"state": "done"},
        {"state": "skipped", "failure": "filter"},
    )  # fmt: skip
    sent: dict[str, Any] = {where: {"use_cache_only": True}}
    answer = ann.ok("POST", f"{SUBSCRIPTIONS}/{id}/download", 202, **sent)
    assert answer == {"subscription_id": id, "queued": 2, "request": None}
    requests = ann.open_requests(id)
    assert [(each["type"], each["lane"]) for each in requests] == [
        ("download", "requires_cookie")] * 2  # fmt: skip
    listed = {each["id"]: each for each in ann.items(id)}
    assert [listed[each]["state"] for each in ids] == [
        "queued", "queued", "failed", "done", "skipped"]  # fmt: skip
    assert {listed[each]["job"] for each in ids[:2]} == {each["id"] for each in requests}
    assert listed[ids[2]]["job"] is None
    assert ann.item(ids[0])["job"] == listed[ids[0]]["job"]
    again = ann.post(f"{SUBSCRIPTIONS}/{id}/download", status=202, use_cache_only=True)
    assert again["queued"] == 0
    assert ann.subscription(id)["busy"]["downloads_open"] == 2


def test_an_address_is_looked_at_by_a_request(ann: Archivist) -> None:
    url = f"https://{new_name()}.example/list"
    asked = ann.post(f"{SUBSCRIPTIONS}/parse-collection", {"url": url}, 202)
    assert (asked["type"], asked["url"], asked["joined"]) == ("parse", url, False)
    again = ann.post(
        f"{SUBSCRIPTIONS}/parse-collection", {"url": url, "requires_cookie": True}, 202
    )
    assert (again["id"], again["joined"]) == (asked["id"], True)
    ann.problem(422, "POST", f"{SUBSCRIPTIONS}/parse-collection", json={"url": "ftp://x.example/"})


# ---------------------------------------------------------------------- removing


def test_removing_cancels_what_is_open_and_leaves_files(desk: Desk, ann: Archivist) -> None:
    id = ann.add()["id"]
    desk.put_items(ann, id, *({} for _ in range(230)), {"state": "done"})
    ann.post(f"{SUBSCRIPTIONS}/{id}/download", status=202, use_cache_only=True)
    assert ann.remove(id) == {
        "subscription_deleted": True, "items_deleted": 231, "jobs_cancelled": 231,
        "files_deleted": 0,
    }  # fmt: skip
    ann.problem(404, "GET", f"{SUBSCRIPTIONS}/{id}")
    ann.problem(404, "DELETE", f"{SUBSCRIPTIONS}/{id}")
    assert ann.open_requests(id) == []
    assert ann.get(ITEMS)["total"] == 0
    event = newest_event(desk, f"subscription:{id}")
    assert event["event"] == "subscription_remove"


def test_removing_with_files_leaves_what_another_list_has_too(desk: Desk, ann: Archivist) -> None:
    library = desk.server.data / "archive"
    one, two = ann.add(start=False)["id"], ann.add(start=False)["id"]
    mine = {"video": desk.put_file("one/a.mp4"), "info": desk.put_file("one/a.info.json")}
    shared = {"video": desk.put_file("both/b.mp4")}
    gone = {"video": "one/was-deleted.mp4"}
    desk.put_items(
        ann, one, {"state": "done", "files": mine}, {"state": "done", "files": gone},
        {"state": "done", "files": shared, "key": "same"},
    )  # fmt: skip
    desk.put_items(ann, two, {"state": "done", "files": shared, "key": "same"})
    assert ann.remove(one, files=True)["files_deleted"] == 2
    assert not (library / "one").exists()
    assert (library / "both" / "b.mp4").exists()
    assert ann.remove(two, files=True)["files_deleted"] == 1
    assert not (library / "both").exists()


def test_jobs_of_others_with_the_same_key_are_left_alone(desk: Desk, ann: Archivist) -> None:
    id = ann.add()["id"]
    bob = desk.archivist()
    job = bob.enqueue("list_fetch", key=f"subscription:{id}", lane="no_cookie")
    assert ann.subscription(id)["busy"]["listing"] != job
    assert ann.remove(id)["jobs_cancelled"] == 1
    assert bob.job(job)["status"] == "queued"


# ---------------------------------------------------------------------- with a site


def test_from_an_address_to_files_and_back(desk: Desk, ann: Archivist) -> None:
    site = desk.site
    site.collection("garden", 2)
    url = site.collection_url("garden")
    desk.run()
    try:
        looked = ann.post(f"{SUBSCRIPTIONS}/parse-collection", {"url": url, "sync": True})
        assert (looked["kind"], looked["title"]) == ("playlist", "Collection garden")
        assert [each["title"] for each in looked["entries"]] == ["Video garden-2", "Video garden-1"]
        id = ann.add(url, filters={"title_none": ["garden-1"]})["id"]
        seen = settled(ann, id)
        assert (seen["found_title"], seen["error"]) == ("Collection garden", None)
        assert (seen["counts"]["on_disk"], seen["counts"]["skipped"]) == (1, 1)
        first, second = ann.items(id)
        assert (first["state"], second["state"]) == ("done", "skipped")
        video = desk.server.data / "archive" / first["files"]["video"]
        assert seen["counts"]["bytes"] == video.stat().st_size == first["size_bytes"]
        counted = ann.get(f"{SUBSCRIPTIONS}/{id}/{COUNT}", sync=True)
        assert (counted["expected_total"], counted["cached"], counted["status"]) == (
            2, False, "done")  # fmt: skip
        asked = len(site.asked("/c/"))
        again = ann.get(f"{SUBSCRIPTIONS}/{id}/{COUNT}")
        assert (again["expected_total"], again["cached"]) == (2, True)
        assert again["checked_at"] == counted["checked_at"]
        assert len(site.asked("/c/")) == asked
        assert ann.subscription(id)["expected_total"]["is_fresh"] is True
        assert ann.change(id, depth=1)["complete"] is True
        assert states(ann, id) == [("done", None), ("skipped", "depth")]
        assert ann.change(id, depth=2)["complete"] is False  # what is further back was never read
        assert ann.remove(id, files=True)["files_deleted"] >= 3
        assert not video.exists()
    finally:
        desk.pause()


def test_where_strangers_are_sent_away_somebody_known_counts(desk: Desk, ann: Archivist) -> None:
    """Whoever waits has the answer of the second request."""
    site, keeper = desk.site, desk.keeper()
    site.collection("private", 3)
    site.needs_cookie, site.cookie_paths = True, ("/c/private",)
    cookie = f"{site.cookie_name}={min(site.good_cookies)}"
    account = {"name": new_name(), "site": "127.0.0.1", "cookies": cookie, "check_url": ""}
    made = keeper.post("/api/archive/accounts", account, 201)
    desk.run()
    try:
        id = ann.add(site.collection_url("private"), start=False)["id"]
        counted = ann.get(f"{SUBSCRIPTIONS}/{id}/{COUNT}", sync=True)
        assert (counted["expected_total"], counted["cached"]) == (3, False)
        requests = ann.get("/api/requests", subscription_id=id, type="expected_total")["items"]
        assert [each["requires_cookie"] for each in requests] == [True, False]
        again = ann.get(f"{SUBSCRIPTIONS}/{id}/{COUNT}", sync=True, refresh=True)
        assert again["checked_at"] > counted["checked_at"]
    finally:
        site.needs_cookie = False
        keeper.ok("DELETE", f"/api/archive/accounts/{made['id']}", 204)
        desk.pause()


def test_a_running_one_is_really_stopped_and_why_it_fails_is_said(
    desk: Desk, ann: Archivist
) -> None:
    site = desk.site
    site.collection("held", 1)
    site.fail("/c/broken.rss", 404)
    site.hold("/c/held")
    desk.run()
    try:
        id = ann.add(site.collection_url("held"))["id"]
        site.wait_for(lambda: site.asked("/c/held"))
        assert ann.remove(id)["jobs_cancelled"] == 1
        ended = ann.get("/api/requests", subscription_id=id)["items"]
        assert [each["status"] for each in ended] == ["canceled"]
        eventually(lambda: site.asked("/c/held")[0].ended_at or site.let_go())
        broken = ann.add(f"{site.url}/c/broken.rss", start=False)["id"]
        problem = ann.problem(
            502, "GET", f"{SUBSCRIPTIONS}/{broken}/{COUNT}", "site-failed", params={"sync": True}
        )
        assert "404" in problem["detail"]
    finally:
        site.well_again()
        desk.pause()
