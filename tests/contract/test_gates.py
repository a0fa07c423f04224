"""Lanes, upstreams, tools and types."""

from __future__ import annotations

import pytest

from tests.contract.kit import JSON, Api, new_name, worker_of
from tests.hands.kit import eventually

KINDS = {"lanes": "lane", "upstreams": "upstream", "tools": "tool", "types": "type"}


def job_at(api: Api, noun: str, name: str, kind: str) -> int:
    """A job that needs this gate; a type's own is of that type."""
    said: JSON = {"lanes": {"lane": name}, "upstreams": {"upstream": name},
                  "tools": {"tools": [name]}}.get(noun, {})  # fmt: skip
    return api.enqueue(kind, **said)


@pytest.fixture(params=KINDS)
def noun(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def name(noun: str, kind: str) -> str:
    return kind if noun == "types" else new_name(noun)


def test_one_that_nobody_has_used_shows_what_would_hold(api: Api, noun: str, name: str) -> None:
    gate = api.get(f"/api/{noun}/{name}")
    assert (gate["kind"], gate["name"]) == (KINDS[noun], name)
    assert (gate["paused"], gate["open"], gate["running"]) == (False, True, 0)
    assert gate["holders"] == []


def test_it_shows_who_holds_it(api: Api, noun: str, name: str, kind: str) -> None:
    id = job_at(api, noun, name, kind)
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        gate = api.get(f"/api/{noun}/{name}")
        assert gate["running"] == 1
        (holder,) = gate["holders"]
        assert (holder["id"], holder["type"], holder["fence"]) == (id, kind, work["fence"])
        assert holder["lease_ends_at"] > holder["granted_at"]
        listed = {each["name"]: each for each in api.get(f"/api/{noun}")["items"]}
        assert listed[name]["running"] == 1


def test_pause_and_resume(api: Api, noun: str, name: str, kind: str) -> None:
    id = job_at(api, noun, name, kind)
    assert api.post(f"/api/{noun}/{name}/pause")["paused"]
    with worker_of(api, kind) as worker:
        assert worker.finds_nothing()
        assert not api.post(f"/api/{noun}/{name}/resume")["paused"]
        assert worker.take_one()["id"] == id


def test_close_until_a_time_and_open(api: Api, noun: str, name: str, kind: str) -> None:
    id = job_at(api, noun, name, kind)
    closed = api.post(f"/api/{noun}/{name}/close", {"for_s": 100, "why": "repairs"})
    assert closed["open"] is False
    assert closed["closed_until"] > closed["closed_since"]
    assert closed["closed_why"] == "repairs"
    with worker_of(api, kind) as worker:
        assert worker.finds_nothing()
        opened = api.post(f"/api/{noun}/{name}/open")
        assert (opened["open"], opened["closed_until"]) == (True, None)
        assert worker.take_one()["id"] == id
    until = api.post(f"/api/{noun}/{name}/close", {"until": "2100-01-01T00:00:00Z"})
    assert until["closed_until"] == "2100-01-01T00:00:00.000000Z"
    api.post(f"/api/{noun}/{name}/open")
    for wrong in ({}, {"for_s": 1, "until": 5e9}, {"for_s": -1}, {"until": "soon"}):
        api.problem(422, "POST", f"/api/{noun}/{name}/close", "wrong-input", json=wrong)


def test_settings_hold_at_once_and_can_be_reset(api: Api, noun: str, name: str, kind: str) -> None:
    path = f"/api/{noun}/{name}/settings"
    gate = api.ok("PUT", path, json={"limit": 2})
    assert gate["limit"] == 2
    assert gate["settings"]["value"] == {"limit": 2}
    assert gate["settings"]["from"] == {"limit": "operator"}
    assert gate["settings"]["overridden"]
    for _ in range(3):
        job_at(api, noun, name, kind)
    with worker_of(api, kind) as worker:
        assert len(worker.take(10)) == 2
        assert worker.finds_nothing()
        gate = api.ok("DELETE", path)
        assert gate["limit"] is None
        assert not (gate["settings"] or {"overridden": False})["overridden"]
        assert len(worker.take(10)) == 1


@pytest.mark.parametrize(
    "wrong", [{"limit": -1}, {"limit": "two"}, {"limits": 2}, {"every": "often"}, [1], "x", 5]
)
def test_settings_that_make_no_sense_are_refused(api: Api, noun: str, wrong: object) -> None:
    name = new_name()
    problem = api.problem(422, "PUT", f"/api/{noun}/{name}/settings", json=wrong)
    assert problem["type"] in ("bad-settings", "wrong-input")
    assert api.get(f"/api/{noun}/{name}")["limit"] is None


def test_a_pattern_holds_for_many(api: Api) -> None:
    domain = f"{new_name()}.example"
    api.ok("PUT", f"/api/upstreams/*.{domain}/settings", json={"limit": 1})
    assert api.get(f"/api/upstreams/a.{domain}")["limit"] == 1
    assert api.get(f"/api/upstreams/a.{domain}")["settings"]["declared_as"] == f"*.{domain}"
    api.ok("DELETE", f"/api/upstreams/*.{domain}/settings")
    assert api.get(f"/api/upstreams/a.{domain}")["limit"] is None


def test_a_pace_spaces_grants(api: Api, kind: str) -> None:
    name = new_name("host")
    gate = api.ok("PUT", f"/api/upstreams/{name}/settings", json={"every": "1h"})
    (pace,) = gate["limits"]
    assert pace["interval_s"] == 3600
    for _ in range(2):
        api.enqueue(kind, upstream=name)
    with worker_of(api, kind) as worker:
        assert len(worker.take(10)) == 1
        assert worker.finds_nothing()
        assert api.get(f"/api/upstreams/{name}")["opens_at"]


def test_a_lane_counts_its_jobs(api: Api, kind: str) -> None:
    lane = new_name("lane")
    for _ in range(3):
        api.enqueue(kind, lane=lane)
    api.enqueue(kind, lane=lane, delay_s=3600)
    # At most a second old.
    gate = eventually(lambda: (seen := api.get(f"/api/lanes/{lane}"))["counts"] and seen)
    assert gate["counts"] == {"queued": 3, "pending": 1}
    assert gate["waiting"] == 3


def test_names_may_need_quoting_in_addresses(api: Api, noun: str) -> None:
    name = f"{new_name()} ü:%"
    gate = api.ok("POST", f"/api/{noun}/{name.replace('%', '%25')}/pause")
    assert (gate["name"], gate["paused"]) == (name, True)
    api.problem(422, "GET", f"/api/{noun}/{'x' * 201}")
    api.problem(422, "GET", f"/api/{noun}/a%00b")


def test_all_that_is_declared_is_listed_with_where_it_comes_from(api: Api, kind: str) -> None:
    pattern = f"*.{kind}.example"
    said = {"limit": 3, "every": "2s"}
    api.ok("PUT", f"/api/upstreams/{pattern}/settings", json=said)
    rows = {(row["kind"], row["name"]): row for row in api.get("/api/settings")["items"]}
    assert rows["upstream", pattern] == {
        "kind": "upstream", "name": pattern, "value": {"limit": 3, "every": "2s"},
        "from": {"limit": "operator", "every": "operator"}, "overridden": True,
    }  # fmt: skip
    assert rows["lane", "no_cookie"]["from"] == {"limit": "code"}
