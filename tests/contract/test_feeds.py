"""Subscriptions over HTTP, step by step, against a site on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx2
import pytest

from tests.contract.feeds_kit import FEEDS, Desk, Reader, answers, feeds_desk, held, signed
from tests.contract.kit import JSON, new_name
from tests.hands.kit import eventually

SCHEDULE = "/api/backend/queue/schedule-feed"
HEALTH = "/api/backend/queue-health"
FOLDERS = "/api/backend/folders"
SECRET_WORD = "canary-word"


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with feeds_desk(request.param, file="[feeds]\nmax_feeds = 50\n") as made:
        yield made


@pytest.fixture
def ann(desk: Desk) -> Reader:
    """Somebody with no feeds yet."""
    return desk.reader()


def task(reader: Reader, id: str) -> JSON:
    return reader.get(f"/api/backend/queue/task/{id}")


def ended(reader: Reader, id: str) -> JSON:
    found: JSON = eventually(lambda: (seen := task(reader, id))["finished_at"] and seen)
    return found


def minutes_until(moment: str, since: str) -> float:
    return (datetime.fromisoformat(moment) - datetime.fromisoformat(since)).total_seconds() / 60


def open_jobs(desk: Desk) -> set[int]:
    """Refreshes of anybody that wait or run."""
    found: set[int] = set()
    for status in ("queued", "running", "paused"):
        page = desk.admin().get("/api/requests", type="feeds.refresh", status=status, size=200)
        found |= {each["id"] for each in page["items"]}
    return found


# ---------------------------------------------------------------------- subscribing


def test_a_feed_is_fetched_at_once_and_again_in_half_an_hour(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("one", "two")
    answer = ann.send("POST", FEEDS, json={"url": page.url, "from_another_client": True})
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{FEEDS}/{made['id']}"
    assert (made["url"], made["status"], made["refresh_interval"]) == (page.url, "new", 30)
    feed = ann.settled(made["id"])
    assert (feed["status"], feed["error"], feed["failures"]) == ("ok", None, 0)
    assert (feed["title"], feed["article_count"], feed["unread_count"]) == ("A site", 2, 2)
    assert 28 < minutes_until(feed["next_refresh_at"], feed["last_fetched"]) < 32
    assert ann.feeds() == [feed]
    assert len(page.visits) == 1


def test_several_are_added_with_names_of_their_own(desk: Desk, ann: Reader) -> None:
    pages = [desk.site.page("one") for _ in range(3)]
    sent = [{"id": "111", "url": pages[0].url, "title": " My  blog ", "refresh_interval": 5},
            {"id": 112, "url": pages[1].url, "folder": "/News / Tech/", "adaptive": True},
            {"url": f" {pages[2].url}#part ", "paused": True}]  # fmt: skip
    made = ann.post(FEEDS, sent, 201)["feeds"]
    assert [each["id"] for each in made[:2]] == ["111", "112"]
    assert [each["url"] for each in made] == [each.url for each in pages]
    assert (made[0]["title"], made[0]["refresh_interval"]) == ("My blog", 5)
    assert (made[1]["folder"], made[1]["adaptive"]) == ("News/Tech", True)
    assert (made[2]["paused"], made[2]["status"], made[2]["next_refresh_at"]) == (
        True, "paused", None)  # fmt: skip
    assert 4 < minutes_until(
        (first := ann.settled("111"))["next_refresh_at"], first["last_fetched"]
    ) < 6  # fmt: skip
    assert ann.settled("112")["own_title"] is None
    assert not pages[2].visits


def test_what_is_there_already_is_named_and_nothing_is_added(desk: Desk, ann: Reader) -> None:
    known, other = desk.site.page("one"), desk.site.page("one")
    id = ann.add(known)["id"]
    again = {"url": known.url.replace("http:", "HTTP:"), "id": "again"}
    problem = ann.problem(409, "POST", FEEDS, "duplicate", json=[{"url": other.url}, again])
    assert problem["duplicates"] == [{"url": known.url, "id": "again", "existing_id": id}]
    assert problem["detail"] == (
        f"you have this already, as {id!r}; nothing was added. Leave out what is there, or change "
        "it instead"
    )
    taken = ann.problem(409, "POST", FEEDS, json={"url": other.url, "id": id})
    assert taken["duplicates"] == [{"url": other.url, "id": id, "existing_id": id}]
    twice = [{"url": other.url, "id": "a"}, {"url": other.url, "id": "b"}]
    problem = ann.problem(409, "POST", FEEDS, json=twice)
    assert problem["duplicates"] == [{"url": other.url, "id": "b", "existing_id": "a"}]
    assert [each["id"] for each in ann.feeds()] == [id]


@pytest.mark.parametrize("id", ["a b", "a/b", ".", "ä", "", "x" * 201])
def test_an_id_can_stand_in_an_address(ann: Reader, id: str) -> None:
    wrong = {"url": "https://blog.example/feed", "id": id}
    problem = ann.problem(422, "POST", FEEDS, "wrong-input", json=wrong)
    assert [each["where"] for each in problem["errors"]] == ["body.feed.id.name"]
    if len(id) <= 200:
        assert problem["detail"].endswith("an id has letters, digits, and . _ ~ : @ - between them")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("file:/etc/passwd", "https://host/path"),
        ("example.com/feed", "https://host/path"),
        ("http://", "https://host/path"),
        ("http://user:canary-word@example.com/", "user name or password"),
        ("http://10.0.0.7/feed", "a private network"),
        ("http://169.254.169.254/latest", "a link-local network"),
        ("http://[::ffff:10.0.0.1]/", "IPv4 address written as IPv6"),
        ("http://example.com:99999/", "no such port"),
        ("http://example.com/" + "x" * 2_000, ""),
        ("http://example.com/\ud800", ""),
        ("", ""),
        (5, ""),
        (None, ""),
    ],
)
def test_an_address_that_may_not_be_called_is_refused_at_once(
    ann: Reader, url: Any, says: str
) -> None:
    content = json.dumps({"url": url}).encode()  # which also says half a character
    headers = {"Content-Type": "application/json"}
    problem = ann.problem(422, "POST", FEEDS, content=content, headers=headers)
    assert says in problem["detail"]
    assert problem["errors"][0]["where"].endswith("url")
    assert SECRET_WORD not in str(problem)
    assert ann.feeds() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"refresh_interval": 0}, {"refresh_interval": 10_081}, {"refresh_interval": 1.5},
        {"refresh_interval": "30"}, {"refresh_interval": None}, {"paused": 1}, {"adaptive": "yes"},
        {"id": ""}, {"id": "a/b"}, {"id": ".."}, {"id": "x" * 201}, {"id": "a b"},
        {"title": "x" * 1_001}, {"title": "a\x00"}, {"folder": 5},
    ],
)  # fmt: skip
def test_what_is_wrong_in_one_of_them_is_named(desk: Desk, ann: Reader, wrong: JSON) -> None:
    url = desk.site.page("one").url
    problem = ann.problem(422, "POST", FEEDS, json=[{"url": url}, {"url": url + "2", **wrong}])
    (name,) = wrong
    assert problem["errors"][0]["where"].startswith(f"body.list.1.{name}")
    assert ann.feeds() == []


def test_there_are_only_so_many(desk: Desk, ann: Reader) -> None:
    many = [{"url": f"{desk.site.host()}/{n}", "paused": True} for n in range(51)]
    problem = ann.problem(409, "POST", FEEDS, "too-many-feeds", json=many)
    assert "at most 50 feeds" in problem["detail"]
    ann.post(FEEDS, many[:50], 201)
    ann.problem(409, "POST", FEEDS, "too-many-feeds", json=many[50])
    assert len(ann.feeds()) == 50
    ann.problem(422, "POST", FEEDS, json=[])


# ---------------------------------------------------------------------- looking


def test_feeds_are_found_by_folder_status_and_text(desk: Desk, ann: Reader) -> None:
    bad = desk.site.page()
    bad.says = answers(b"no", 404)
    ann.add(desk.site.page("x"), id="a", folder="News", title="Straße")
    ann.add(desk.site.page("x", path="/Linux.xml"), id="b", folder="News/Tech")
    ann.add(bad, id="c", folder="Newsletters")
    ann.add(desk.site.page("x"), id="d", paused=True)
    for id in "abc":
        ann.settled(id)

    def ids(**filters: Any) -> str:
        return "".join(each["id"] for each in ann.feeds(**filters))

    assert ids() == "abcd"
    assert ids(folder="News") == "ab"
    assert ids(folder="News/Tech/") == "b"
    assert ids(folder="") == "d"
    assert ids(folder="Other") == ""
    assert ids(status="ok") == "ab"
    assert ids(status="error") == "c"
    assert ids(status="paused") == "d"
    assert ids(q="STRASSE") == "a"
    assert ids(q="linux") == "b"
    assert ids(q="linux", status="error") == ""
    ann.problem(422, "GET", FEEDS, params={"status": "fine"})
    feed = ann.feed("c")
    assert (feed["failures"], feed["last_fetched"]) == (1, None)
    assert "404" in feed["error"]
    assert minutes_until(feed["next_refresh_at"], feed["last_tried"]) > 28


def test_what_is_not_there_is_404(ann: Reader) -> None:
    for method, path, said in (
        ("GET", f"{FEEDS}/none", {}),
        ("PATCH", f"{FEEDS}/none", {"json": {"paused": True}}),
        ("PATCH", FEEDS, {"json": {"id": "none", "paused": True}}),
        ("DELETE", f"{FEEDS}/none", {}),
        ("DELETE", FEEDS, {"params": {"id": "none"}}),
        ("POST", SCHEDULE, {"json": {"feed_id": "none"}}),
    ):
        assert "none" in ann.problem(404, method, path, "unknown-feed", **said)["detail"]
    ann.problem(404, "GET", "/api/backend/queue/task/999999", "unknown-job")
    ann.problem(404, "GET", "/api/backend/queue/task/not-a-number", "unknown-job")
    ann.problem(404, "DELETE", FOLDERS, "unknown-folder", params={"name": "none"})
    ann.problem(404, "PATCH", FOLDERS, "unknown-folder", json={"name": "none", "to": "x"})


# ---------------------------------------------------------------------- changing


def test_a_feed_is_changed_in_part(desk: Desk, ann: Reader) -> None:
    id = ann.add(desk.site.page("one"), title="Mine", folder="A")["id"]
    before = ann.settled(id)
    changed = ann.change(id, refresh_interval=1_440, unknown_to_us=5)
    assert changed["refresh_interval"] == 1_440
    assert minutes_until(changed["next_refresh_at"], changed["last_fetched"]) > 1_300
    assert (changed["title"], changed["folder"]) == ("Mine", "A")
    assert ann.force(id, False)["delay_seconds"] > 80_000
    changed = ann.ok("PATCH", FEEDS, json={"id": id, "title": None, "folder": "B//C"})
    assert (changed["title"], changed["own_title"], changed["folder"]) == ("A site", None, "B/C")
    paused = ann.change(id, paused=True)
    assert (paused["status"], paused["next_refresh_at"]) == ("paused", None)
    resumed = ann.change(id, paused=False, refresh_interval=30)
    assert (resumed["status"], resumed["adaptive"]) == ("ok", False)
    assert resumed["article_count"] == before["article_count"]
    assert ann.change(id) == ann.feed(id)
    for wrong in ({"refresh_interval": 0}, {"paused": None}, {"url": "ftp://x/"}, {"url": None}):
        ann.problem(422, "PATCH", f"{FEEDS}/{id}", json=wrong)


def test_another_address_keeps_what_was_there(desk: Desk, ann: Reader) -> None:
    old = desk.site.page("one", "two")
    id = ann.add(old)["id"]
    ann.settled(id)
    new = desk.site.page("two", "three")
    moved = ann.change(id, url=new.url)
    assert (moved["url"], moved["article_count"]) == (new.url, 2)
    eventually(lambda: ann.feed(id)["article_count"] == 3)  # `two` is known
    assert new.visits
    other = ann.add(old)["id"]
    problem = ann.problem(409, "PATCH", f"{FEEDS}/{id}", json={"url": old.url, "title": "x"})
    assert problem["duplicates"] == [{"url": old.url, "id": id, "existing_id": other}]
    assert problem["detail"] == (
        f"you have this already, as {other!r}; nothing was changed. Remove one of the two, or "
        "leave the address as it is"
    )
    assert ann.feed(id)["own_title"] is None


# ---------------------------------------------------------------------- removing


def test_a_feed_that_is_removed_leaves_nothing(desk: Desk, ann: Reader) -> None:
    first, second = desk.site.page("one", "two"), desk.site.page("one")
    ann.add(first, id="first")
    ann.add(second, id="second")
    ann.settled("first")
    ann.settled("second")
    tasks = {int(ann.force(id, False)["task_id"]) for id in ("first", "second")}
    assert tasks <= open_jobs(desk)
    assert ann.remove("first") == {"articles_deleted": 2, "feed_deleted": True}
    removed = ann.ok("DELETE", FEEDS, params={"id": "second"})
    assert removed == {"articles_deleted": 1, "feed_deleted": True}
    assert ann.feeds() == []
    assert eventually(lambda: not (tasks & open_jobs(desk)))
    ann.problem(404, "DELETE", f"{FEEDS}/first", "unknown-feed")
    ann.add(first, id="first")
    assert ann.settled("first")["article_count"] == 2


def test_one_that_is_removed_while_it_is_fetched_leaves_nothing_either(
    desk: Desk, ann: Reader
) -> None:
    page = desk.site.page("one")
    with held(page) as asked:
        id = ann.add(page)["id"]
        assert asked.wait(20)
        assert ann.feed(id)["refreshing"] is True
        said = ann.force(id)
        assert (said["status"], said["task_id"]) == ("already_running", None)
        assert ann.force(id, False)["status"] == "already_running"
        before = open_jobs(desk)
        ann.remove(id)
    assert eventually(lambda: len(open_jobs(desk)) < len(before))
    assert ann.feeds() == []


# ---------------------------------------------------------------------- folders


def test_folders_are_renamed_and_removed_with_what_is_below(desk: Desk, ann: Reader) -> None:
    for id, folder in (("a", "News"), ("b", "News/Tech"), ("c", "Newspapers"), ("d", "")):
        ann.add(desk.site.page("one"), id=id, folder=folder)
    for id in "abcd":
        ann.settled(id)

    def folders() -> dict[str, str]:
        return {each["id"]: each["folder"] for each in ann.feeds()}

    assert ann.get(FOLDERS)["folders"] == [
        {"name": "News", "feeds": 1, "unread": 1},
        {"name": "News/Tech", "feeds": 1, "unread": 1},
        {"name": "Newspapers", "feeds": 1, "unread": 1},
    ]
    said = ann.ok("PATCH", FOLDERS, json={"name": "News", "to": " World / Daily"})
    assert said == {"name": "World/Daily", "feeds_moved": 2}
    assert folders() == {"a": "World/Daily", "b": "World/Daily/Tech", "c": "Newspapers", "d": ""}
    too_long = {"name": "World", "to": "x" * 990}
    ann.problem(422, "PATCH", FOLDERS, "bad-folder", json=too_long)
    said = ann.ok("DELETE", FOLDERS, params={"name": "World/Daily"})
    assert said == {"name": "World", "feeds_moved": 2}
    assert folders() == {"a": "World", "b": "World/Tech", "c": "Newspapers", "d": ""}
    ann.ok("DELETE", FOLDERS, params={"name": "World"})
    assert folders() == {"a": "", "b": "Tech", "c": "Newspapers", "d": ""}
    ann.problem(422, "PATCH", FOLDERS, "bad-folder", json={"name": "Tech", "to": " / "})


# ---------------------------------------------------------------------- the queue


def test_the_next_refresh_is_told_and_left_alone_unless_it_is_forced(
    desk: Desk, ann: Reader
) -> None:
    page = desk.site.page("one")
    with held(page):  # so that it has not ended when it is asked for
        id = ann.add(page)["id"]
        first = ann.force(id, False)
        assert first["status"] in ("queued", "already_running")
        assert first["delay_seconds"] == 0
    ann.settled(id)
    said = ann.force(id, False)
    assert said["status"] == "scheduled"
    assert 1_700 < said["delay_seconds"] < 1_900
    assert ann.force(id, False)["task_id"] == said["task_id"]
    page.publish("one", "two")
    forced = ann.force(id)
    assert (forced["task_id"], forced["status"]) == (said["task_id"], "queued")
    assert forced["delay_seconds"] == 0
    over = ended(ann, forced["task_id"])
    assert (over["status"], over["celery_status"], over["feed_id"]) == ("completed", "SUCCESS", id)
    assert over["priority"] == "high"
    result = over["result"]
    assert (result["success"], result["feed_id"]) == (True, id)
    assert (result["article_count"], result["new_count"]) == (2, 1)
    assert result["duration_ms"] >= 0
    following = ann.force(id, False)
    assert following["task_id"] != forced["task_id"]
    waiting = task(ann, following["task_id"])
    assert (waiting["status"], waiting["celery_status"]) == ("pending", "PENDING")
    assert (waiting["wait_reason"], waiting["priority"]) == ("not due yet", "default")
    assert waiting["eta"] == ann.feed(id)["next_refresh_at"]


def test_a_refresh_that_fails_says_why(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("one")
    page.says = answers(b"<html>not here</html>", 404)
    with held(page):
        id = ann.add(page)["id"]
        number = max(open_jobs(desk))
    over = ended(ann, str(number))
    assert (over["status"], over["celery_status"], over["feed_id"]) == ("failed", "FAILURE", id)
    assert over["result"]["success"] is False
    assert over["result"]["error"] == over["error"] == ann.feed(id)["error"]
    page.says = answers(b"", 503)
    again = ann.force(id)
    seen = eventually(lambda: (now := task(ann, again["task_id"]))["error"] and now)
    assert (seen["status"], seen["celery_status"]) in (
        ("pending", "PENDING"),
        ("queued", "PENDING"),
    )
    page.says = answers(b"", 500)


def test_a_feed_that_is_paused_is_refreshed_once_if_it_is_forced(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("one")
    id = ann.add(page, paused=True)["id"]
    problem = ann.problem(409, "POST", SCHEDULE, "not-scheduled", json={"feed_id": id})
    assert "force_immediate" in problem["detail"]
    over = ended(ann, ann.force(id)["task_id"])
    assert over["result"]["new_count"] == 1
    eventually(lambda: ann.feed(id)["article_count"] == 1)
    feed = ann.feed(id)
    assert (feed["status"], feed["next_refresh_at"]) == ("paused", None)
    ann.problem(409, "POST", SCHEDULE, "not-scheduled", json={"feed_id": id})
    assert len(page.visits) == 1


def test_one_that_is_gone_can_be_tried_again(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("one")
    before, page.says = page.says, answers(b"", 410)
    id = ann.add(page)["id"]
    gone = ann.settled(id)
    assert (gone["status"], gone["next_refresh_at"]) == ("gone", None)
    problem = ann.problem(409, "POST", SCHEDULE, "not-scheduled", json={"feed_id": id})
    assert "gone for good" in problem["detail"]
    page.says = before
    ended(ann, ann.force(id)["task_id"])
    back = ann.feed(id)
    assert (back["status"], back["article_count"]) == ("ok", 1)
    assert back["next_refresh_at"]


def test_an_operators_pause_is_told(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("one")
    id = ann.add(page)["id"]
    ann.settled(id)
    number = ann.force(id, False)["task_id"]
    admin = desk.admin()
    admin.post(f"/api/jobs/{number}/pause")
    said = ann.force(id)
    assert (said["task_id"], said["status"]) == (number, "scheduled")
    assert "operator" in said["reason"]
    assert "operator" in task(ann, number)["wait_reason"]
    assert len(page.visits) == 1
    admin.post(f"/api/jobs/{number}/resume")
    assert ended(ann, number)["status"] == "completed"


def test_the_health_of_the_queue(desk: Desk, ann: Reader) -> None:
    empty = {"waiting": 0, "running": 0, "scheduled": 0}
    health = ann.get(HEALTH)
    assert (health["status"], health["total_pending"]) == ("healthy", 0)
    assert health["queues"] == {"high": empty, "default": empty}
    assert health["checked_at"]
    page = desk.site.page("one")
    with held(page) as asked:
        id = ann.add(page)["id"]
        assert asked.wait(20)
        assert ann.get(HEALTH)["queues"]["default"] == {**empty, "running": 1}
    ann.settled(id)
    assert ann.get(HEALTH)["queues"]["default"] == {**empty, "scheduled": 1}
    admin = desk.admin()
    admin.post("/api/queue/pause", scope="lane:feeds")
    try:
        ann.force(id)
        health = ann.get(HEALTH)
        assert health["queues"] == {"high": {**empty, "waiting": 1}, "default": empty}
        assert (health["status"], health["total_pending"]) == ("healthy", 1)  # it is not late yet
        assert desk.reader().get(HEALTH)["total_pending"] == 0
        assert admin.get(HEALTH)["total_pending"] >= 1
    finally:
        admin.post("/api/queue/resume", scope="lane:feeds")
    eventually(lambda: ann.get(HEALTH)["total_pending"] == 0)


def test_feeds_are_in_the_metrics(desk: Desk, ann: Reader) -> None:
    ann.settled(ann.add(desk.site.page("one"))["id"])
    lines = desk.admin().http.get("/metrics").text.splitlines()
    counts = dict(line.rsplit(" ", 1) for line in lines if line.startswith("headway_feed_"))
    assert float(counts['headway_feed_sources{status="ok"}']) >= 1
    assert float(counts['headway_feed_refreshes_total{outcome="completed"}']) >= 1
    assert float(counts["headway_feed_articles_total"]) >= 1


# ---------------------------------------------------------------------- whose they are


def test_the_subject_of_a_signed_token_is_the_tenant(desk: Desk) -> None:
    name = new_name("ann")
    page = desk.site.page("one")
    desk.reader(name).add(page, id="mine")
    assert [each["id"] for each in desk.reader(name).feeds()] == ["mine"]
    assert desk.reader().feeds() == []
    reads = desk.reader(name, "read")
    assert reads.feed("mine")["id"] == "mine"
    reads.problem(403, "POST", FEEDS, "scope", json={"url": page.url})
    reads.problem(403, "DELETE", f"{FEEDS}/mine", "scope")
    reads.problem(403, "POST", SCHEDULE, "scope", json={"feed_id": "mine"})


def test_a_page_is_let_in_by_its_cookie_and_no_other_page(desk: Desk) -> None:
    name = new_name("ann")
    desk.reader(name).add(desk.site.page("one"), id="mine")
    with httpx2.Client(base_url=desk.server.url) as browser:
        assert browser.get(FEEDS).status_code == 401
        entered = browser.post("/login", data={"token": signed(name)})
        assert "httponly" in entered.headers["set-cookie"].lower()
        assert [each["id"] for each in browser.get(FEEDS).json()["feeds"]] == ["mine"]
        evil = {"Origin": "https://evil.example"}
        assert browser.delete(f"{FEEDS}/mine", headers=evil).status_code == 403
        assert browser.delete(f"{FEEDS}/mine").json()["feed_deleted"] is True


def test_tenants_share_what_is_fetched_and_nothing_else(desk: Desk) -> None:
    ann, bob = desk.reader(), desk.reader()
    page = desk.site.page("one", "two")
    mine = ann.add(page, id="ann-1", title="Ann's", folder="Anns")
    ann.settled("ann-1")
    theirs = bob.add(page, id="bob-1", refresh_interval=60)
    assert theirs["title"] == "A site"
    eventually(lambda: bob.feed("bob-1")["article_count"] == 2)
    assert len(page.visits) == 1
    assert bob.get(FOLDERS)["folders"] == []
    for method, path, said in (
        ("GET", f"{FEEDS}/ann-1", {}),
        ("PATCH", f"{FEEDS}/ann-1", {"json": {"title": "x", "url": page.url}}),
        ("PATCH", FEEDS, {"json": {"id": "ann-1", "paused": True}}),
        ("DELETE", f"{FEEDS}/ann-1", {}),
        ("DELETE", FEEDS, {"params": {"id": "ann-1"}}),
        ("POST", SCHEDULE, {"json": {"feed_id": "ann-1", "force_immediate": True}}),
    ):
        never_was = bob.problem(404, method, path, "unknown-feed", **said)
        assert never_was["detail"].startswith("there is no feed 'ann-1'")
    bob.problem(404, "PATCH", FOLDERS, json={"name": "Anns", "to": "Bobs"})
    assert ann.feed("ann-1")["title"] == mine["title"]
    assert ann.get(HEALTH)["queues"]["default"]["scheduled"] == 1
    page.publish("one", "two", "three")
    number = ann.force("ann-1")["task_id"]
    assert (ended(ann, number)["feed_id"], ended(bob, number)["feed_id"]) == ("ann-1", "bob-1")
    desk.reader().problem(404, "GET", f"/api/backend/queue/task/{number}", "unknown-job")
    assert [each.feed(id)["unread_count"] for each, id in ((ann, "ann-1"), (bob, "bob-1"))] == [
        3,
        3,
    ]
    assert len(page.visits) == 2
    assert ann.remove("ann-1")["articles_deleted"] == 3
    kept = bob.feed("bob-1")
    assert (kept["article_count"], kept["refresh_interval"]) == (3, 60)
    assert minutes_until(kept["next_refresh_at"], kept["last_fetched"]) > 50
    bob.change("bob-1", paused=True)
    eventually(lambda: int(number) + 1 not in open_jobs(desk))


def test_what_is_done_is_in_the_trail_without_what_may_be_secret(desk: Desk, ann: Reader) -> None:
    page = desk.site.page("one", path=f"/feed?token={SECRET_WORD}")
    id = ann.add(page)["id"]
    ann.settled(id)
    ann.change(id, title="x", url=desk.site.page("y", path=f"/f?key={SECRET_WORD}").url)
    ann.remove(id)
    admin = desk.admin()
    rows = [each for each in admin.get("/api/audit", limit=50)["items"]
            if each["subject"] == f"feed:{id}"]  # fmt: skip
    assert [each["event"] for each in rows] == ["feed_remove", "feed_change", "feed_add"]
    assert all(each["who"] == f"jwt:{ann.tenant} from 127.0.0.1" for each in rows)
    assert rows[1]["detail"].startswith("title, url at 127.")
    assert SECRET_WORD not in str(admin.get("/api/audit", limit=50))
    assert SECRET_WORD not in str(admin.get("/api/jobs", type="feeds.refresh", size=200))
    assert SECRET_WORD not in desk.server.printed()
    assert f"feed:{id}" not in str(desk.reader().get("/api/trail"))


# ---------------------------------------------------------------------- the document


def test_no_model_of_the_feeds_takes_the_name_of_another(ann: Reader) -> None:
    """Else both would get long names, also in clients that were made from the document before."""
    document = ann.http.get("/openapi.json").json()
    names = document["components"]["schemas"]
    assert "FeedModel" in names
    assert [name for name in names if "__feeds__" in name] == []
