"""What was learned about upstreams, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kit import JSON, Api, new_name, worker_of

RATES = {
    "x-ratelimit-limit-requests": "120",
    "x-ratelimit-remaining-requests": "100",
    "x-ratelimit-reset-requests": "30s",
    "set-cookie": "canary-word",
}


def learning(api: Api, learn: Any = True, **more: Any) -> str:
    name = new_name("host")
    api.ok("PUT", f"/api/upstreams/{name}/settings", json={"learn": learn, **more})
    return name


def learned(api: Api, name: str) -> JSON:
    return api.get(f"/api/upstreams/{name}/learned")


def call_once(api: Api, name: str, **said: Any) -> None:
    """One call of a worker, answered like this."""
    kind = new_name("kind")
    api.enqueue(kind, upstream=name)
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), **said)


def test_an_upstream_that_learns_shows_what_it_believes(api: Api) -> None:
    name = learning(api, {"rpm": 600, "remaining_threshold": 0.1})
    seen = learned(api, name)
    assert seen["believed"] == {"rpm": 600, "tpm": None, "concurrency": None, "limit_kind": None}
    assert (seen["limit_rpm"], seen["source"], seen["remaining"]) == (None, "open", 1)
    assert (seen["threshold"], seen["samples"], seen["phase"]) == (0.1, [], "cruise")
    assert seen["online"] == seen["queued"] == {"concurrent": 0, "rpm": 0}
    (limit,) = api.get(f"/api/upstreams/{name}")["limits"]
    assert (limit["name"], limit["believed"]) == ("learning", seen["believed"])


def test_a_429_is_a_sample_and_headers_win_over_it(api: Api) -> None:
    name = learning(api)
    call_once(api, name, status_code=429, headers={"Retry-After": "1"})
    seen = learned(api, name)
    assert seen["source"] == "history"
    (sample,) = seen["samples"]
    assert set(sample) == {"ts", "rpm", "avg_ms"}
    assert seen["phase"] == "holding"
    (limit,) = api.get(f"/api/upstreams/{name}")["limits"]
    assert limit["history"][0]["at"] == sample["ts"]

    other = learning(api)
    call_once(api, other, status_code=200, headers=RATES)
    seen = learned(api, other)
    assert (seen["source"], seen["limit_rpm"], seen["queued"]["rpm"]) == ("headers", 120, 1)
    assert "canary" not in str(seen)


def test_an_outcome_in_the_engines_words_may_bring_headers_too(api: Api) -> None:
    name = learning(api)
    call_once(api, name, outcome={"kind": "ok"}, headers=RATES, body={"done": True})
    assert learned(api, name)["source"] == "headers"


@pytest.mark.parametrize("verb", ["release", "report"])
def test_a_slot_brings_headers(api: Api, verb: str) -> None:
    name = learning(api)
    slot = api.post("/api/slots", {"upstream": name})
    said = {"fence": slot["fence"], "status": 200, "headers": RATES}
    api.post(f"/api/slots/{slot['id']}/{verb}", said)
    assert learned(api, name)["source"] == "headers"


@pytest.mark.parametrize(
    "wrong",
    [
        {"x" * 201: "1"},
        {"ratelimit-limit": "1" * 9_000},
        {"ratelimit-limit": 5},
        {f"ratelimit-{number}": "1" for number in range(300)},
        ["ratelimit-limit"],
    ],
)
def test_headers_have_bounds(api: Api, wrong: object) -> None:
    slot = api.post("/api/slots", {"upstream": new_name("host")})
    said = {"fence": slot["fence"], "status": 200, "headers": wrong}
    api.problem(422, "POST", f"/api/slots/{slot['id']}/release", "wrong-input", json=said)
    assert api.get(f"/api/slots/{slot['id']}")["state"] == "granted"


def test_headers_that_make_no_sense_teach_nothing(api: Api) -> None:
    name = learning(api)
    call_once(api, name, status_code=200, headers={"ratelimit-limit": "many", "ratelimit": ";;"})
    assert learned(api, name)["source"] == "peak"


def test_a_pin_holds_is_shown_as_overridden_and_comes_off(api: Api) -> None:
    name = learning(api, limit=7)
    call_once(api, name, status_code=200)
    path = f"/api/upstreams/{name}/learned/pin"
    seen = api.post(path, {"rpm": 300, "concurrency": 4})
    assert seen["pins"] == {"rpm": 300, "tpm": None, "concurrency": 4}
    assert (seen["believed"]["rpm"], seen["believed"]["concurrency"]) == (300, 4)
    gate = api.get(f"/api/upstreams/{name}")
    assert gate["settings"]["overridden"] is True
    assert gate["settings"]["value"] == {
        "limit": 7, "learn": {"pin_rpm": 300, "pin_concurrency": 4}
    }  # fmt: skip
    assert gate["allowed_now"] == 4
    seen = api.post(path, {"rpm": None})
    assert seen["pins"] == {"rpm": None, "tpm": None, "concurrency": 4}
    row = next(each for each in api.get("/api/audit")["items"]
               if each["subject"] == f"upstream:{name}")  # fmt: skip
    assert row["event"] == "set"
    assert '"pin_concurrency":4' in row["detail"]
    assert row["who"]


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"rpm": 0}, {"rpm": -1}, {"rpm": "many"}, {"rpm": True}, {"concurrency": 1.5},
        {"concurrency": 0}, {"tpm": 1e12}, {"speed": 1}, [],
    ],
)  # fmt: skip
def test_a_wrong_pin_is_refused_and_changes_nothing(api: Api, wrong: object) -> None:
    name = learning(api)
    api.problem(422, "POST", f"/api/upstreams/{name}/learned/pin", "wrong-input", json=wrong)
    assert learned(api, name)["pins"] == {"rpm": None, "tpm": None, "concurrency": None}


def test_a_reset_forgets_and_keeps_pins(api: Api) -> None:
    name = learning(api, {"pin_concurrency": 3})
    call_once(api, name, status_code=429)
    assert len(learned(api, name)["samples"]) == 1
    seen = api.post(f"/api/upstreams/{name}/learned/reset")
    assert (seen["samples"], seen["source"], seen["phase"]) == ([], "open", "start")
    assert seen["pins"]["concurrency"] == 3


def test_what_does_not_learn_says_how_to_switch_it_on(api: Api) -> None:
    name = new_name("host")
    path = f"/api/upstreams/{name}/learned"
    for method, at, said in (
        ("GET", path, {}),
        ("POST", f"{path}/reset", {}),
        ("POST", f"{path}/pin", {"json": {"rpm": 5}}),
    ):
        problem = api.problem(404, method, at, "not-learning", **said)
        assert f"headway upstreams set {name} learn=true" in problem["detail"]
    api.ok("PUT", f"/api/upstreams/{name}/settings", json={"learn": False})
    api.problem(404, "GET", path, "not-learning")


@pytest.mark.parametrize(
    "wrong", [{"learn": 1}, {"learn": {"rpm": 0}}, {"learn": {"speed": 5}}, {"learn": "true"}]
)
def test_wrong_settings_are_refused(api: Api, wrong: JSON) -> None:
    name = new_name("host")
    problem = api.problem(422, "PUT", f"/api/upstreams/{name}/settings", "bad-settings", json=wrong)
    assert "learn" in problem["detail"]
    assert "for an upstream" in api.problem(
        422, "PUT", f"/api/lanes/{name}/settings", "bad-settings", json={"learn": True}
    )["detail"]  # fmt: skip


def test_what_is_exported_can_be_imported_where_nothing_is_known(api: Api) -> None:
    name = learning(api, {"rpm": 90, "concurrency": 3})
    exported = api.get("/api/learned")
    (mine,) = (each for each in exported["items"] if each["name"] == name)
    assert mine == {**learned(api, name), "name": name}

    target = learning(api)
    again = api.post("/api/learned/import", {"items": [{**mine, "name": target}, mine]})
    assert again["hinted"] == [target]
    assert [each["name"] for each in again["left_out"]] == [name]
    assert learned(api, target)["believed"]["rpm"] == 90
    assert learned(api, target)["believed"]["concurrency"] == 3
    settings = api.get(f"/api/upstreams/{target}")["settings"]
    assert settings["value"] == {"learn": {"rpm": 90, "concurrency": 3}}

    stranger = {"name": new_name("host"), "believed": {"rpm": 5}}
    (left,) = api.post("/api/learned/import", {"items": [stranger]})["left_out"]
    assert "does not learn" in left["why"]


@pytest.mark.parametrize(
    "wrong",
    [
        {}, {"items": {}}, {"items": [{"name": "x"}]},
        {"items": [{"name": "x", "believed": {"rpm": -1}}]},
        {"items": [{"name": "", "believed": {}}]},
        {"items": [{"name": "x", "believed": {"rpm": "many"}}]},
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused(api: Api, wrong: object) -> None:
    api.problem(422, "POST", "/api/learned/import", "wrong-input", json=wrong)
