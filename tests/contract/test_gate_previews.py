"""Settings that are only tried out: what would follow, and nothing changes."""

from __future__ import annotations

import pytest

from tests.contract.kit import JSON, Api, new_name, worker_of

NOUNS = ("lanes", "upstreams", "tools", "types")
SETTINGS: dict[str, JSON] = {
    "lanes": {"limit": 3},
    "upstreams": {"limit": 4, "every": "2s", "learn": {"max_rpm": 60}},
    "tools": {"limit": 3, "every": "1s"},
    "types": {"limit": 3, "cooldown": "1s"},
}


def everything(api: Api, path: str) -> JSON:
    gate = api.get(path)
    del gate["now"]
    trail = api.get("/api/audit")["items"]
    mine = [each for each in trail if path.rpartition("/")[2] in (each.get("subject") or "")]
    return {"gate": gate, "trail": mine}


@pytest.mark.parametrize("noun", NOUNS)
def test_a_preview_changes_nothing_and_is_what_follows(api: Api, noun: str) -> None:
    name = new_name()
    path = f"/api/{noun}/{name}"
    api.ok("PUT", f"{path}/settings", json={"limit": 2, "min_hold": "1s"})
    before = everything(api, path)
    assert before["trail"]
    said = api.ok("PUT", f"{path}/settings", json=SETTINGS[noun], params={"dry_run": True})
    back = api.ok("DELETE", f"{path}/settings", params={"dry_run": True})
    assert everything(api, path) == before
    assert (said["dry_run"], said["name"], said["kind"]) == (True, name, noun[:-1])
    assert (said["before"], said["after"]) == ({"limit": 2, "min_hold": "1s"}, SETTINGS[noun])
    assert {"name": "limit", "before": 2, "after": SETTINGS[noun]["limit"]} in said["changes"]
    assert {"name": "min_hold", "before": "1s", "after": None} in said["changes"]
    real = api.ok("PUT", f"{path}/settings", json=SETTINGS[noun])
    assert real["settings"]["value"] == said["after"]
    real = api.ok("DELETE", f"{path}/settings")
    assert ((real["settings"] or {"value": {}})["value"], back["after"]) == ({}, {})


@pytest.mark.parametrize("noun", NOUNS)
def test_a_preview_refuses_what_setting_it_would(api: Api, noun: str) -> None:
    path = f"/api/{noun}/{new_name()}/settings"
    for wrong in ({"limit": -1}, {"limits": 2}, {"every": "often"}, {"reserve": 2, "limit": 1}):
        real = api.problem(422, "PUT", path, "bad-settings", json=wrong)
        dry = api.problem(422, "PUT", path, "bad-settings", json=wrong, params={"dry_run": True})
        assert dry["detail"] == real["detail"]


def test_a_preview_counts_who_waits(api: Api, kind: str) -> None:
    name = new_name("host")
    path = f"/api/upstreams/{name}/settings"
    api.ok("PUT", path, json={"limit": 2})
    for _ in range(5):
        api.enqueue(kind, upstream=name)
    with worker_of(api, kind) as worker:
        assert len(worker.take(2)) == 2
        wider = api.ok("PUT", path, json={"limit": 4}, params={"dry_run": True})
        assert (wider["running"], wider["waiting"], wider["starts_now"]) == (2, 3, 2)
        narrower = api.ok("PUT", path, json={"limit": 1}, params={"dry_run": True})
        assert (narrower["over"], narrower["starts_now"]) == (1, 0)
        assert any("nothing is stopped" in note for note in narrower["notes"])
        free = api.ok("DELETE", path, params={"dry_run": True})
        assert (free["starts_now"], free["drains_in_s"]["after"]) == (3, 0.0)
