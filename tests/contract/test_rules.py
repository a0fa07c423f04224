"""Rules over HTTP: made, changed, tried and applied by their tenant alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.feeds_kit import Desk, Reader, feeds_desk
from tests.contract.kit import JSON
from tests.hands.kit import eventually

RULES = "/api/backend/rules"
ARTICLES = "/api/backend/articles"


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    with feeds_desk() as desk:
        yield desk


def rule(text: str = "Rust", **more: Any) -> JSON:
    return {"name": "a rule", "actions": ["read"], "conditions": [{"text": text}], **more}


def feed_of(desk: Desk, reader: Reader, *titles: str, **more: Any) -> str:
    """A feed with these articles, all of which are there."""
    id: str = reader.add(desk.site.page(*titles), **more)["id"]
    eventually(lambda: reader.get(ARTICLES, feed=id)["total"] == len(titles))
    return id


def names(reader: Reader) -> list[tuple[int, str]]:
    return [(each["place"], each["name"]) for each in reader.get(RULES)["items"]]


def test_a_rule_is_made_shown_changed_and_removed(desk: Desk) -> None:
    reader = desk.reader()
    feed = feed_of(desk, reader, "one")
    condition = {"text": "Rust", "field": "title", "test": "lacks"}
    wanted = rule(conditions=[condition], feeds=[feed], folders=["Tech", " Tech/"],
                  actions=["read", "star"])  # fmt: skip
    made = reader.post(RULES, wanted, 201)
    assert made["conditions"] == [condition]
    assert (made["feeds"], made["folders"], made["place"]) == ([feed], ["Tech"], 1)
    assert made["enabled"] is True
    path = f"{RULES}/{made['id']}"
    assert reader.get(path) == made
    changed = reader.ok("PATCH", path, json={"enabled": False, "actions": ["drop", "drop"]})
    assert changed == {**made, "enabled": False, "actions": ["drop"]}
    assert reader.ok("PATCH", path, json={}) == changed
    assert reader.get(RULES) == {"items": [changed], "count": 1, "limit": 100}
    assert reader.send("DELETE", path).status_code == 204
    reader.problem(404, "GET", path, "unknown-rule")
    reader.problem(404, "DELETE", path, "unknown-rule")
    reader.problem(422, "POST", RULES, "bad-rule", json=rule(folders=["/"]))


def test_rules_stand_in_an_order_that_can_be_changed(desk: Desk) -> None:
    reader = desk.reader()
    ids = {name: reader.post(RULES, rule(name=name), 201)["id"] for name in "abc"}
    reader.ok("PATCH", f"{RULES}/{ids['c']}", json={"place": 1})
    assert names(reader) == [(1, "c"), (2, "a"), (3, "b")]
    reader.post(RULES, rule(name="d", place=2), 201)
    assert names(reader) == [(1, "c"), (2, "d"), (3, "a"), (4, "b")]


@pytest.mark.parametrize(("wrong", "why"), [
    ({"name": ""}, "body.name"),
    ({"actions": []}, "body.actions"),
    ({"actions": ["burn"]}, "body.actions.0"),
    ({"actions": ["star", "drop"]}, "a star keeps an article"),
    ({"conditions": []}, "every article"),
    ({"conditions": [{"text": ""}]}, "body.conditions.0.text"),
    ({"conditions": [{"text": "  "}]}, "not for spaces alone"),
    ({"conditions": [{"text": "x" * 201}]}, "body.conditions.0.text"),
    ({"conditions": [{"text": "x", "field": "body"}]}, "body.conditions.0.field"),
    ({"conditions": [{"text": "x", "test": "matches"}]}, "body.conditions.0.test"),
    ({"conditions": [{"text": "x"}] * 21}, "body.conditions"),
    ({"feeds": ["never-was"]}, "you have no feed 'never-was'"),
    ({"place": 0}, "body.place"),
    ({"wish": 1}, "body.wish"),
])  # fmt: skip
def test_what_is_no_rule_is_refused_and_nothing_is_kept(desk: Desk, wrong: JSON, why: str) -> None:
    reader = desk.reader("strict")
    for path in (RULES, f"{RULES}/try"):
        assert why in reader.problem(422, "POST", path, json=rule() | wrong)["detail"]
    assert reader.get(RULES)["items"] == []


def test_a_change_that_makes_no_sense_leaves_it_as_it_was(desk: Desk) -> None:
    reader = desk.reader()
    made = reader.post(RULES, rule(actions=["drop"]), 201)
    path = f"{RULES}/{made['id']}"
    reader.problem(422, "PATCH", path, "bad-rule", json={"conditions": []})
    reader.problem(422, "PATCH", path, json={"actions": []})
    assert reader.get(path) == made


def test_there_are_only_so_many(desk: Desk) -> None:
    reader = desk.reader()
    for _ in range(100):
        reader.post(RULES, rule(), 201)
    assert (
        "100 rules" in reader.problem(409, "POST", RULES, "too-many-rules", json=rule())["detail"]
    )
    assert reader.get(RULES)["count"] == 100


def test_rules_hold_for_what_comes(desk: Desk) -> None:
    reader = desk.reader()
    reader.post(RULES, rule("Rust", actions=["star"]), 201)
    reader.post(RULES, rule("Python", actions=["drop"]), 201)
    feed = reader.add(desk.site.page("Rust", "Go", "Python"))["id"]
    eventually(lambda: reader.get(ARTICLES, feed=feed)["total"] == 2)
    found = reader.get(ARTICLES, feed=feed)["items"]
    assert {each["title"]: each["is_starred"] for each in found} == {"Rust": True, "Go": False}


def test_a_rule_is_tried_before_anybody_follows_it(desk: Desk) -> None:
    reader = desk.reader()
    feed = feed_of(desk, reader, "Rust", "Go", "Rusty")
    other = feed_of(desk, reader, "Rust")
    tried = reader.post(f"{RULES}/try", rule(feeds=[feed], actions=["drop"]))
    assert (tried["looked_at"], tried["matched"]) == (4, 2)
    assert {(each["title"], each["feed_id"]) for each in tried["items"]} == {
        ("Rust", feed), ("Rusty", feed)
    }  # fmt: skip
    assert reader.post(f"{RULES}/try", rule())["matched"] == 3
    assert reader.get(ARTICLES)["total"] == 4
    assert reader.get(RULES)["items"] == []
    assert other


def test_a_rule_is_applied_to_what_is_there(desk: Desk) -> None:
    reader = desk.reader()
    feed_of(desk, reader, "Rust", "Go", "Rusty")
    stranger = desk.reader()
    feed_of(desk, stranger, "Rust")
    made = reader.post(RULES, rule(), 201)
    applied = reader.post(f"{RULES}/{made['id']}/apply", status=202)
    assert applied["status"] == "queued"
    job = eventually(
        lambda: (seen := reader.job(applied["task_id"]))["status"] == "completed" and seen
    )
    result = reader.get(f"/api/jobs/{job['id']}/result")
    assert result["value"] == {"looked_at": 3, "matched": 2, "changed": 2}
    assert {each["title"] for each in reader.get(ARTICLES, unread=True)["items"]} == {"Go"}
    assert stranger.get(ARTICLES, unread=True)["total"] == 1
    stranger.problem(404, "GET", f"/api/jobs/{job['id']}", "unknown-job")


def test_a_rule_of_another_tenant_is_not_there(desk: Desk) -> None:
    reader, stranger = desk.reader(), desk.reader()
    path = f"{RULES}/{reader.post(RULES, rule(), 201)['id']}"
    assert stranger.get(RULES)["items"] == []
    stranger.problem(404, "GET", path, "unknown-rule")
    stranger.problem(404, "PATCH", path, "unknown-rule", json={"enabled": False})
    stranger.problem(404, "DELETE", path, "unknown-rule")
    stranger.problem(404, "POST", f"{path}/apply", "unknown-rule")
    feed = feed_of(desk, reader, "one")
    stranger.problem(422, "POST", RULES, "bad-rule", json=rule(feeds=[feed]))
    assert reader.get(path)["enabled"] is True
