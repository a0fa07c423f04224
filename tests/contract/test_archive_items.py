"""Videos of the archive over HTTP: looking for them, deciding about one, and the ledger of what has
failed. Nothing runs: each lane is paused, and a test puts the items where a list would have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.kit import JSON, Api, new_name
from tests.contract.media_kit import FAILURES, ITEMS, SUBSCRIPTIONS, Archivist, Desk, media_desk
from tests.servers import NewServer

STATES = ("found", "queued", "done", "skipped", "failed", "missing")


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with media_desk(request.param, max_open_per_tenant=1_400) as made:
        yield made


@pytest.fixture
def ann(desk: Desk) -> Archivist:
    return desk.archivist()


@pytest.fixture
def mine(ann: Archivist) -> int:
    """A subscription of hers for which nothing is open."""
    return int(ann.add(start=False)["id"])


def events_about(desk: Desk, subject: str) -> list[JSON]:
    rows: list[JSON] = desk.keeper().get("/api/audit", limit=100)["items"]
    return [row for row in rows if row["subject"] == subject]


# ---------------------------------------------------------------------- looking


def test_an_item_is_shown_with_all_that_is_known(desk: Desk, ann: Archivist, mine: int) -> None:
    files = {"video": "a/b.mp4", "nfo": "a/b.nfo"}
    (id,) = desk.put_items(ann, mine, {
        "title": "A film", "uploader": "Somebody", "published_at": 1_700_000_000.0,
        "duration_s": 61.5, "views": 7, "state": "done", "files": files, "size_bytes": 900,
        "done_at": 1_700_000_100.0,
    })  # fmt: skip
    seen = ann.item(id)
    assert (seen["subscription"], seen["title"], seen["uploader"]) == (mine, "A film", "Somebody")
    assert seen["published_at"] == "2023-11-14T22:13:20.000000Z"
    assert (seen["duration_s"], seen["views"], seen["place"]) == (61.5, 7, 0)
    assert (seen["state"], seen["files"], seen["size_bytes"]) == ("done", files, 900)
    assert (seen["job"], seen["failure"], "tenant" in seen) == (None, None, False)
    assert ann.items(mine) == [seen]
    assert desk.keeper().item(id)["tenant"] == ann.tenant
    assert ann.subscription(mine)["counts"]["bytes"] == 900


def test_they_are_found_by_state_words_and_subscription(
    desk: Desk, ann: Archivist, mine: int
) -> None:
    other = int(ann.add(start=False)["id"])
    ids = desk.put_items(ann, mine, *({"state": state, "title": state} for state in STATES))
    (fifty,) = desk.put_items(ann, other, {"title": "50% of _all_", "uploader": "Wren"})
    assert ann.get(ITEMS)["total"] == 7
    for id, state in zip(ids, STATES, strict=True):
        assert [each["id"] for each in ann.items(mine, state=state)] == [id]
    assert ann.get(ITEMS, state="found")["total"] == 2
    assert [each["id"] for each in ann.get(ITEMS, subscription=other)["items"]] == [fifty]
    for text in ("50%", "_ALL_", "wREN", "% of _"):
        assert [each["id"] for each in ann.get(ITEMS, q=text)["items"]] == [fifty]
    for text in ("5%l", "a_l", "!", "'"):
        assert ann.get(ITEMS, q=text)["total"] == 0
    ann.problem(422, "GET", ITEMS, params={"state": "lost"})


def test_the_newest_of_a_list_come_first(desk: Desk, ann: Archivist, mine: int) -> None:
    ids = desk.put_items(ann, mine, {}, {}, {}, {"place": None})
    assert [each["id"] for each in ann.items(mine)] == ids
    (newer,) = desk.put_items(ann, mine, {"place": 0})
    assert [each["id"] for each in ann.items(mine)] == [newer, *ids]
    page = ann.get(f"{SUBSCRIPTIONS}/{mine}/items", page=2, size=2)
    assert ([each["id"] for each in page["items"]], page["total"]) == (ids[1:3], 5)


# ---------------------------------------------------------------------- deciding about one


@pytest.mark.parametrize("state", ["failed", "skipped", "missing", "found"])
def test_trying_again_puts_it_in_line(desk: Desk, ann: Archivist, mine: int, state: str) -> None:
    (id,) = desk.put_items(ann, mine, {"state": state, "reason": "x", "failure": "gone"})
    seen = ann.post(f"{ITEMS}/{id}/retry")
    assert (seen["state"], seen["reason"], seen["failure"]) == ("queued", None, None)
    (request,) = ann.open_requests(mine)
    assert (request["id"], request["url"]) == (seen["job"], seen["url"])
    assert (request["type"], request["lane"], request["priority"]) == (
        "download", "requires_cookie", 3)  # fmt: skip
    problem = ann.problem(409, "POST", f"{ITEMS}/{id}/retry", "wrong-state")
    assert problem["state"] == "queued"
    (event,) = events_about(desk, f"item:{id}")
    assert event["event"] == "item_retry"
    assert event["who"] == f"jwt:{ann.tenant} from 127.0.0.1"


def test_one_that_nobody_subscribes_to_is_tried_again_too(desk: Desk, ann: Archivist) -> None:
    (id,) = desk.put_items(ann, 0, {"state": "failed"})
    seen = ann.post(f"{ITEMS}/{id}/retry")
    assert (seen["state"], seen["subscription"]) == ("queued", None)
    assert ann.get(f"/api/requests/{seen['job']}")["subscription_id"] is None
    skipped = ann.post(f"{ITEMS}/{id}/skip")
    assert (skipped["state"], skipped["job"]) == ("skipped", None)


@pytest.mark.parametrize("state", ["failed", "skipped"])
def test_taking_back_that_it_was_given_up(
    desk: Desk, ann: Archivist, mine: int, state: str
) -> None:
    (id,) = desk.put_items(ann, mine, {"state": state, "reason": "x", "failure": "gone"})
    seen = ann.post(f"{ITEMS}/{id}/unblock")
    assert (seen["state"], seen["reason"], seen["failure"]) == ("found", None, None)
    assert ann.open_requests(mine) == []
    assert ann.problem(409, "POST", f"{ITEMS}/{id}/unblock")["state"] == "found"


@pytest.mark.parametrize("state", ["found", "failed", "missing"])
def test_leaving_one_out(desk: Desk, ann: Archivist, mine: int, state: str) -> None:
    (id,) = desk.put_items(ann, mine, {"state": state})
    seen = ann.post(f"{ITEMS}/{id}/skip")
    assert (seen["state"], seen["reason"], seen["failure"]) == (
        "skipped", "left out by hand", "by_hand")  # fmt: skip
    assert ann.problem(409, "POST", f"{ITEMS}/{id}/skip")["state"] == "skipped"


def test_leaving_out_what_is_in_line_cancels_it(desk: Desk, ann: Archivist, mine: int) -> None:
    (id,) = desk.put_items(ann, mine, {})
    job = ann.post(f"{ITEMS}/{id}/retry")["job"]
    seen = ann.post(f"{ITEMS}/{id}/skip")
    assert (seen["state"], seen["reason"], seen["job"]) == ("skipped", "left out by hand", None)
    assert ann.get(f"/api/requests/{job}")["status"] == "canceled"
    assert [row["event"] for row in events_about(desk, f"item:{id}")] == ["item_skip", "item_retry"]
    assert ann.post(f"{ITEMS}/{id}/retry")["state"] == "queued"


def test_a_request_for_an_address_is_known_as_the_items_own(
    desk: Desk, ann: Archivist, mine: int
) -> None:
    twin, id, single = (
        *desk.put_items(ann, mine, {"state": "queued"}, {"state": "queued"}),
        *desk.put_items(ann, 0, {"state": "queued"}),
    )
    url = ann.item(id)["url"]
    asked = ann.request("download", subscription_id=mine, url=url)["id"]
    alone = ann.request("download", url=ann.item(single)["url"])["id"]
    assert [ann.item(each)["job"] for each in (twin, id, single)] == [None, asked, alone]
    ann.post(f"{ITEMS}/{id}/skip")
    assert ann.get(f"/api/requests/{asked}")["status"] == "canceled"
    assert ann.item(single)["job"] == alone


@pytest.mark.parametrize(("verb", "state"), [
    ("retry", "done"), ("unblock", "done"), ("unblock", "queued"), ("unblock", "missing"),
    ("skip", "done"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(
    desk: Desk, ann: Archivist, mine: int, verb: str, state: str
) -> None:
    (id,) = desk.put_items(ann, mine, {"state": state})
    problem = ann.problem(409, "POST", f"{ITEMS}/{id}/{verb}", "wrong-state")
    assert (problem["state"], ann.item(id)["state"]) == (state, state)
    assert events_about(desk, f"item:{id}") == []


def test_each_decision_is_in_the_trail_with_who_it_was(
    desk: Desk, ann: Archivist, mine: int
) -> None:
    (id,) = desk.put_items(ann, mine, failed("gone"))
    for verb in ("unblock", "skip", "retry"):
        ann.post(f"{ITEMS}/{id}/{verb}")
    ann.ok("DELETE", f"{ITEMS}/{id}")
    rows = events_about(desk, f"item:{id}")
    assert [row["event"] for row in rows] == [
        "item_delete", "item_retry", "item_skip", "item_unblock"]  # fmt: skip
    assert {row["who"] for row in rows} == {f"jwt:{ann.tenant} from 127.0.0.1"}
    assert ann.open_requests(mine) == []  # what was in line is cancelled


def test_deleting_one_deletes_its_files_and_it_does_not_come_again(
    desk: Desk, ann: Archivist, mine: int
) -> None:
    name = new_name()
    files = {"video": desk.put_file(f"{name}/v.mp4"), "nfo": desk.put_file(f"{name}/v.nfo")}
    kept = {"video": desk.put_file(f"{name}-kept/v.mp4")}
    one, two = desk.put_items(
        ann, mine, {"state": "done", "files": files, "size_bytes": 2},
        {"state": "done", "files": kept},
    )  # fmt: skip
    gone = ann.ok("DELETE", f"{ITEMS}/{one}")
    assert gone["files_deleted"] == 2
    assert gone["item"] == ann.item(one)
    assert (gone["item"]["state"], gone["item"]["reason"]) == ("skipped", "deleted by hand")
    assert (gone["item"]["files"], gone["item"]["size_bytes"]) == (None, None)
    library = desk.server.data / "archive"
    assert not (library / name).exists()
    left = ann.ok("DELETE", f"{ITEMS}/{two}", params={"files": False})
    assert (left["files_deleted"], left["item"]["files"]) == (0, None)
    assert (library / kept["video"]).exists()
    answer = ann.post(f"{SUBSCRIPTIONS}/{mine}/download", status=202, use_cache_only=True)
    assert answer["queued"] == 0


def test_a_library_that_is_away_keeps_its_records(desk: Desk, ann: Archivist, mine: int) -> None:
    files = {"video": desk.put_file(f"{new_name()}/v.mp4")}
    (id,) = desk.put_items(ann, mine, {"state": "done", "files": files})
    throwaway, = desk.put_items(ann, mine, {"state": "done", "files": {"video": desk.put_file(
        f"{new_name()}/w.mp4")}})  # fmt: skip
    ann.ok("DELETE", f"{ITEMS}/{throwaway}")  # the library is known from now on
    library = desk.server.data / "archive"
    library.rename(away := library.with_name("away"))
    try:
        library.mkdir()  # an empty mount point
        problem = ann.problem(409, "DELETE", f"{ITEMS}/{id}", "no-library")
        assert "Nothing was deleted" in problem["detail"]
        ann.problem(
            409, "DELETE", f"{SUBSCRIPTIONS}/{mine}", "no-library", params={"files": True}
        )  # fmt: skip
        assert ann.item(id)["state"] == "done"
        library.rmdir()
    finally:
        away.rename(library)
    assert ann.ok("DELETE", f"{ITEMS}/{id}")["files_deleted"] == 1


# ---------------------------------------------------------------------- the ledger


def failed(kind: str, **more: Any) -> dict[str, Any]:
    return {"state": "failed", "failure": kind, "reason": f"it is {kind}", "failures": 3, **more}


def test_the_ledger_says_what_failed_and_why(desk: Desk, ann: Archivist, mine: int) -> None:
    other = int(ann.add(start=False)["id"])
    first, second = desk.put_items(
        ann, mine, failed("gone", changed_at=100.0), failed("geo", changed_at=200.0),
    )  # fmt: skip
    desk.put_items(ann, mine, {}, {"state": "skipped", "failure": "filter"})
    desk.put_items(ann, other, failed("gone", changed_at=50.0))
    seen = ann.get(FAILURES)
    assert (seen["total"], seen["classes"]) == (3, {"gone": 2, "geo": 1})
    assert seen["items"][0] == {
        "id": second, "subscription": mine, "title": f"Video {second}", "class": "geo",
        "url": f"https://v.example/{second}", "message": "it is geo", "failures": 3,
        "changed_at": "1970-01-01T00:03:20.000000Z",
    }  # fmt: skip
    some = ann.get(FAILURES, subscription=mine, **{"class": "gone"})
    assert [each["id"] for each in some["items"]] == [first]
    assert some["classes"] == {"gone": 1, "geo": 1}
    assert ann.get(FAILURES, page=2, size=2)["count"] == 1
    assert desk.archivist().get(FAILURES)["total"] == 0


@pytest.mark.parametrize(("body", "changed"), [
    ({}, 4), ({"class": "gone"}, 3), ({"subscription": "other"}, 1),
    ({"subscription": "mine", "class": "gone"}, 2), ({"ids": [0, 1]}, 2), ({"ids": []}, 0),
])  # fmt: skip
@pytest.mark.parametrize(("verb", "state"), [("retry", "queued"), ("unblock", "found")])
def test_many_are_decided_about_at_once(
    desk: Desk, ann: Archivist, mine: int, body: dict[str, Any], changed: int, verb: str, state: str
) -> None:
    other = int(ann.add(start=False)["id"])
    ids = desk.put_items(ann, mine, failed("gone"), failed("geo"), failed("gone"))
    ids += desk.put_items(ann, other, failed("gone"))
    desk.put_items(ann, mine, {"state": "skipped"}, {"state": "done"})
    bob = desk.archivist()
    (his,) = desk.put_items(bob, int(bob.add(start=False)["id"]), failed("gone"))
    body = dict(body)
    if "subscription" in body:
        body["subscription"] = {"mine": mine, "other": other}[body["subscription"]]
    if "ids" in body:
        body["ids"] = [ids[each] for each in body["ids"]] + [his, 999_999_999]
        if not changed:
            body["ids"] = [his]
    assert ann.post(f"{FAILURES}/{verb}", body) == {"changed": changed}
    assert ann.get(ITEMS, state=state)["total"] == changed
    assert ann.get(FAILURES)["total"] == 4 - changed
    opened = ann.open_requests(mine) + ann.open_requests(other)
    assert len(opened) == (changed if verb == "retry" else 0)
    assert bob.item(his)["state"] == "failed"
    (event, *_) = events_about(desk, "failures")
    assert (event["event"], event["who"]) == (
        f"failures_{verb}", f"jwt:{ann.tenant} from 127.0.0.1")  # fmt: skip
    assert event["detail"].startswith(f"{changed} items")


def test_very_many_take_several_turns_and_have_a_limit(
    desk: Desk, ann: Archivist, mine: int
) -> None:
    desk.put_items(ann, mine, *(failed("gone") for _ in range(1_300)))
    assert ann.post(f"{FAILURES}/retry", {}) == {"changed": 1_300}
    counts = ann.subscription(mine)["counts"]
    assert (counts["queued"], counts["failed"]) == (1_300, 0)
    desk.put_items(ann, mine, *(failed("gone") for _ in range(101)))
    ann.problem(429, "POST", f"{FAILURES}/retry", "queue-full", json={})
    assert ann.get(FAILURES)["total"] == 101
    assert ann.post(f"{FAILURES}/unblock", {}) == {"changed": 101}
    assert ann.remove(mine)["jobs_cancelled"] == 1_300


def test_what_is_wrong_with_a_selection_is_said(ann: Archivist) -> None:
    for wrong in ({"ids": list(range(1, 502))}, {"ids": ["x"]}, {"clas": "gone"}, {"class": ""},
                  {"subscription": -1}):  # fmt: skip
        ann.problem(422, "POST", f"{FAILURES}/retry", json=wrong)
    ann.problem(422, "GET", FAILURES, params={"subscription": "x"})


def test_without_the_archive_everything_says_so(new_sqlite_server: NewServer) -> None:
    with Api(new_sqlite_server().url) as off:
        for path in (SUBSCRIPTIONS, f"{SUBSCRIPTIONS}/1", ITEMS, f"{ITEMS}/1", FAILURES):
            problem = off.problem(409, "GET", path, "no-archive")
            assert "yt-dlp" in problem["detail"]
