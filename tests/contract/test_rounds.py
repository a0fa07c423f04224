"""Refreshing many feeds at once, and how far that is, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.contract.feeds_kit import Desk, Page, Reader, answers, feeds_desk, held
from tests.contract.kit import JSON
from tests.hands.kit import eventually

ALL = "/api/backend/queue/schedule-all"
ROUNDS = "/api/backend/queue/rounds"
# Whatever the port of the site is, nobody waits a second for it.
QUICK = "\n".join(f'[upstream."*{digit}"]\nevery = "0.02s"' for digit in range(10))


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with feeds_desk(request.param, file=QUICK) as desk:
        yield desk


def with_feeds(desk: Desk, many: int, **more: str) -> tuple[Reader, list[Page], list[str]]:
    """Somebody with so many feeds, each of which was fetched once."""
    reader = desk.reader()
    pages = [desk.site.page("one") for _ in range(many)]
    ids = [reader.add(page, **more)["id"] for page in pages]
    for id in ids:
        reader.settled(id)
    return reader, pages, ids


def ended(reader: Reader, id: str) -> JSON:
    round = reader.get(f"{ROUNDS}/{id}", wait_s=20)
    assert round["status"] == "finished"
    return round


def test_all_feeds_are_refreshed_and_what_was_new_is_counted(desk: Desk) -> None:
    reader, pages, _ = with_feeds(desk, 3)
    pages[0].publish("one", "two", "three")
    pages[1].says = answers(b"", 404)
    sent = reader.send("POST", ALL)
    made = sent.json()
    assert sent.status_code == 202
    assert sent.headers["location"] == f"{ROUNDS}/{made['round_id']}"
    assert made == {
        "round_id": made["round_id"], "status": "queued", "total": 3, "scheduled": 3,
        "already_running": 0, "skipped": 0, "skipped_feeds": [],
    }  # fmt: skip
    round = ended(reader, made["round_id"])
    assert (round["kind"], round["total"], round["done"], round["failed"]) == ("refresh", 3, 2, 1)
    assert (round["new_count"], round["percent"], round["waiting"]) == (2, 100.0, 0)
    assert round["text"] == "3 of 3, 2 new, 1 failed"
    assert round["created_at"] <= round["finished_at"]
    (failure,) = round["items"]
    assert failure["state"] == "failed"
    assert "404" in failure["error"]
    assert reader.get(ROUNDS)["items"][0]["id"] == round["id"]


def test_one_that_waits_says_what_for(desk: Desk) -> None:
    reader, pages, ids = with_feeds(desk, 2)
    host = pages[1].url.removeprefix("http://").removesuffix("/feed")
    desk.admin().post(f"/api/upstreams/{host}/close", {"for_s": 600, "why": "maintenance"})
    made = reader.post(ALL, {}, 202)
    round = eventually(
        lambda: (seen := reader.get(f"{ROUNDS}/{made['round_id']}"))["done"] == 1 and seen
    )
    assert (round["status"], round["percent"], round["text"]) == ("running", 50.0, "1 of 2, 0 new")
    (waiting,) = round["items"]
    assert (waiting["feed_id"], waiting["state"]) == (ids[1], "waiting")
    assert "maintenance" in waiting["wait_reason"]
    assert waiting["eta"] == round["eta"] > round["created_at"]
    reader.remove(ids[1])
    assert ended(reader, made["round_id"])["skipped"] == 1


def test_one_that_runs_counts_and_is_not_asked_twice(desk: Desk) -> None:
    reader, (page, *_), ids = with_feeds(desk, 2)
    with held(page) as asked:
        reader.force(ids[0])
        assert asked.wait(20)
        made = reader.post(ALL, {}, 202)
        assert (made["scheduled"], made["already_running"]) == (1, 1)
        round = reader.get(f"{ROUNDS}/{made['round_id']}")
        assert {each["feed_id"] for each in round["items"]} >= {ids[0]}
    ended(reader, made["round_id"])
    assert len(page.visits) == 2


def test_whoever_waits_for_a_round_hears_of_its_end_at_once(desk: Desk) -> None:
    reader, (page,), _ = with_feeds(desk, 1)
    with ThreadPoolExecutor(1) as pool:
        with held(page) as asked:
            id = reader.post(ALL, {}, 202)["round_id"]
            assert asked.wait(20)
            assert reader.get(f"{ROUNDS}/{id}", wait_s=0.01)["status"] == "running"
            waiting = pool.submit(ended, desk.reader(reader.tenant), id)
        assert waiting.result(15)["done"] == 1


def test_a_folder_and_what_is_below_it(desk: Desk) -> None:
    reader, _, _ = with_feeds(desk, 1, folder="News")
    reader.add(desk.site.page("x"), folder="News/Tech")
    reader.add(desk.site.page("x"), folder="Newspapers")
    for folder, many in (("News", 2), (" News / Tech/", 1), ("nothing", 0), ("", 0), (None, 3)):
        made = reader.post(ALL, {"folder": folder}, 202)
        assert made["total"] == many
        assert made["status"] == ("queued" if many else "nothing_to_do")
        assert ended(reader, made["round_id"])["total"] == many


def test_named_feeds_only_and_all_of_them_must_be_there(desk: Desk) -> None:
    reader, pages, ids = with_feeds(desk, 2)
    made = reader.post(ALL, {"feed_ids": [ids[0], ids[0]], "more": "is ignored"}, 202)
    assert made["total"] == 1
    ended(reader, made["round_id"])
    assert [len(page.visits) for page in pages] == [2, 1]
    other, _, others = with_feeds(desk, 1)
    for unknown in (others, ["never-was", *ids]):
        problem = reader.problem(404, "POST", ALL, "unknown-feed", json={"feed_ids": unknown})
        assert repr(unknown[0]) in problem["detail"]
    assert [len(page.visits) for page in pages] == [2, 1]
    other.problem(404, "GET", f"{ROUNDS}/{made['round_id']}", "unknown-round")
    assert other.get(ROUNDS)["items"] == []
    said = {"feed_ids": ids, "folder": "x"}
    reader.problem(422, "POST", ALL, "wrong-input", json=said)


def test_paused_feeds_are_left_alone(desk: Desk) -> None:
    reader, pages, ids = with_feeds(desk, 2)
    reader.change(ids[0], paused=True)
    made = reader.post(ALL, {}, 202)
    assert made["skipped_feeds"] == [{"feed_id": ids[0], "why": "it is paused; resume it first"}]
    assert ended(reader, made["round_id"])["text"] == "2 of 2, 0 new"
    assert [len(page.visits) for page in pages] == [1, 2]


def test_a_restart_in_the_middle_goes_on(desk: Desk) -> None:
    reader, pages, _ = with_feeds(desk, 3)
    with held(pages[0]) as asked:
        id = reader.post(ALL, {}, 202)["round_id"]
        assert asked.wait(20)
        eventually(lambda: reader.get(f"{ROUNDS}/{id}")["done"] == 2)
        desk.server.kill()
    desk.server.start()
    round = ended(desk.reader(reader.tenant), id)
    assert (round["done"], round["failed"], round["skipped"]) == (3, 0, 0)
    assert [len(page.visits) for page in pages[1:]] == [2, 2]


def test_too_many_at_once_are_refused_for_a_while(desk: Desk) -> None:
    reader, (page,), _ = with_feeds(desk, 1)
    with held(page) as asked:
        ids = [reader.post(ALL, {}, 202)["round_id"] for _ in range(10)]
        assert asked.wait(20)
        answer = reader.send("POST", ALL)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "10"
        assert answer.json()["type"] == "too-many-rounds"
    for id in ids:
        ended(reader, id)
