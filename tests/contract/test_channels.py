"""Channels over HTTP: what they are, who may change them, and what they bear."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from headway.net.sealing import new_key
from headway.testing.llm_upstream import LlmUpstream
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.servers import server_on

KEY = "sk-secret-of-a-provider-4711"
URL = "https://llm.example.com/v1"


@pytest.fixture
def made(api: Api) -> Iterator[JSON]:
    """A channel of this test alone."""
    yield (channel := add(api))
    api.send("DELETE", f"/api/channels/{channel['code']}")


def add(api: Api, **more: Any) -> JSON:
    body = {"code": new_name("channel"), "model": new_name("model"), "base_url": URL, **more}
    return api.post("/api/channels", body, 201)


# ---------------------------------------------------------------------- what they are


def test_a_channel_is_added_shown_changed_and_removed(api: Api) -> None:
    code, model = new_name("channel"), new_name("model")
    made = api.post(
        "/api/channels",
        {"code": code, "model": model, "base_url": URL, "api_key": KEY, "rpm": 60,
         "price": {"input_per_1k": 0.5}, "queue_mode": "both"},
        201,
    )  # fmt: skip
    assert (made["code"], made["model"], made["queue_mode"], made["rpm"]) == (
        code, model, "both", 60)  # fmt: skip
    assert made["price"] == {"input_per_1k": 0.5, "output_per_1k": 0.0, "currency": "USD"}
    assert (made["enabled"], made["source"], made["trouble"]) == (True, "api", None)
    assert api.get(f"/api/channels/{code}") == made
    assert made in api.get("/api/channels")["items"]
    change = {"price": {"output_per_1k": 2}, "rpm": None, "enabled": False}
    changed = api.ok("PATCH", f"/api/channels/{code}", json=change)
    assert changed["price"] == {"input_per_1k": 0.5, "output_per_1k": 2.0, "currency": "USD"}
    assert (changed["rpm"], changed["enabled"], changed["queue_mode"]) == (None, False, "both")
    assert changed["updated_at"] > made["updated_at"] >= made["created_at"] == changed["created_at"]
    api.ok("DELETE", f"/api/channels/{code}", 204)
    api.problem(404, "GET", f"/api/channels/{code}", "unknown-channel")
    api.problem(404, "DELETE", f"/api/channels/{code}", "unknown-channel")
    api.problem(404, "PATCH", f"/api/channels/{code}", "unknown-channel", json={"rpm": 1})


def test_its_limits_are_those_of_the_upstream_of_its_name_at_once(api: Api, made: JSON) -> None:
    code = made["code"]
    api.ok("PATCH", f"/api/channels/{code}", json={"max_concurrency": 3})
    assert api.get(f"/api/upstreams/{code}")["limit"] == 3
    api.ok("PATCH", f"/api/channels/{code}", json={"max_concurrency": None})
    assert api.get(f"/api/upstreams/{code}")["limit"] is None


def test_a_key_is_never_shown_again(api: Api) -> None:
    long, short = add(api, api_key=KEY), add(api, api_key="twelve-chars")
    none = add(api)
    assert (long["has_key"], long["key_ends_with"]) == (True, "4711")
    assert (short["has_key"], short["key_ends_with"]) == (True, None)
    assert (none["has_key"], none["key_ends_with"]) == (False, None)
    kept = api.ok("PATCH", f"/api/channels/{long['code']}", json={"rpm": 5})
    assert kept["has_key"]
    renewed = api.ok("PATCH", f"/api/channels/{none['code']}", json={"api_key": KEY})
    assert renewed["has_key"]
    for path in ("/api/channels", "/api/audit", "/api/trail", "/api/settings"):
        assert KEY not in api.send("GET", path).text
    for each in (long, short, none):
        api.ok("DELETE", f"/api/channels/{each['code']}", 204)


def test_a_key_does_not_follow_to_another_host(api: Api) -> None:
    """Else whoever may change a channel could have its key sent to a place of their own."""
    with_key, without = add(api, api_key=KEY), add(api)
    elsewhere = {"base_url": "https://elsewhere.example.com/v1"}
    path = f"/api/channels/{with_key['code']}"
    problem = api.problem(422, "PATCH", path, "bad-channel", json=elsewhere)
    assert "another host" in problem["detail"]
    assert api.get(path) == with_key
    assert api.ok("PATCH", path, json={"base_url": f"{URL}/other"})["has_key"]
    api.ok("PATCH", path, json={**elsewhere, "api_key": KEY})
    api.ok("PATCH", f"/api/channels/{without['code']}", json=elsewhere)
    for each in (with_key, without):
        api.ok("DELETE", f"/api/channels/{each['code']}", 204)


def test_a_key_that_cannot_be_opened_stays_so_until_there_is_another() -> None:
    with server_on("sqlite", secret_keys=new_key()) as server:
        with Api(server.url) as api:
            channel = add(api, api_key=KEY)
        path = f"/api/channels/{channel['code']}"
        server.environment["HEADWAY_SECRET_KEYS"] = new_key()
        server.restart()
        with Api(server.url) as api:
            assert "sealed with key" in api.get(path)["trouble"]
            assert "sealed with key" in api.ok("PATCH", path, json={"rpm": 5})["trouble"]
            assert api.ok("PATCH", path, json={"api_key": KEY})["trouble"] is None


def test_who_did_it_is_in_the_trail(api: Api, made: JSON) -> None:
    code = made["code"]
    api.ok("PATCH", f"/api/channels/{code}", json={"rpm": 7})
    found = [
        each for each in api.get("/api/audit")["items"] if each["subject"] == f"channel:{code}"
    ]
    assert [each["event"] for each in found] == ["channel_change", "channel_add"]
    assert all(each["who"] == "loopback from 127.0.0.1" for each in found)


def test_a_code_is_there_once(api: Api, made: JSON) -> None:
    said = {"code": made["code"], "model": "other", "base_url": URL}
    problem = api.problem(409, "POST", "/api/channels", "duplicate", json=said)
    assert "PATCH" in problem["detail"]
    assert api.get(f"/api/channels/{made['code']}") == made


@pytest.mark.parametrize(
    "wrong",
    [
        {"code": "a b"}, {"code": ""}, {"code": "calls"}, {"code": "callback-secret"},
        {"model": ""}, {"model": "a\nb"}, {"base_url": "ftp://x/v1"}, {"base_url": "x"},
        {"base_url": "https://user:word@x/v1"}, {"base_url": "https://x/v1?key=5"},
        {"base_url": "https://x:99999/v1"}, {"base_url": "https://x:abc/v1"},
        {"base_url": "https://x/v1?"}, {"base_url": "https://x/v1#"},
        {"api_key": "has blanks"}, {"api_key": ""}, {"api_key": None},
        {"queue_mode": "push"}, {"price": {"currency": "dollars"}}, {"price": {"per_call": 1}},
        {"price": {"input_per_1k": -1}}, {"batch_discount": 2}, {"rpm": 0}, {"tpm": -1},
        {"max_concurrency": 0}, {"max_concurrency": 1.5}, {"remaining_threshold": 1},
        {"timeout_s": 0}, {"enabled": 1}, {"unknown": 1},
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_and_nothing_is_half_done(
    api: Api, made: JSON, wrong: JSON
) -> None:
    said = {"code": new_name("channel"), "model": "m", "base_url": URL, **wrong}
    api.problem(422, "POST", "/api/channels", json=said)
    known = [each["code"] for each in api.get("/api/channels")["items"]]
    assert said["code"] not in known
    if "code" not in wrong:
        api.problem(422, "PATCH", f"/api/channels/{made['code']}", json=wrong)
        assert api.get(f"/api/channels/{made['code']}") == made


def test_what_a_file_declares_is_changed_there() -> None:
    file = f'[channel.fast]\nmodel = "m1"\nbase_url = "{URL}"\napi_key = "{KEY}"\n'
    with server_on("sqlite", file=file) as server, Api(server.url) as api:
        assert api.get("/api/channels/fast")["source"] == "file"
        for method, more in (("PATCH", {"json": {"rpm": 5}}), ("DELETE", {})):
            problem = api.problem(409, method, "/api/channels/fast", "declared", **more)
            assert f"[channel.fast] in {server.file}" in problem["detail"]
        assert KEY not in server.printed()


# ---------------------------------------------------------------------- what they bear


def test_capacity_before_anybody_called(api: Api, made: JSON) -> None:
    seen = api.get(f"/api/channels/{made['code']}/capacity")
    assert (seen["limit_rpm"], seen["source"], seen["remaining"]) == (None, "open", 1.0)
    assert (seen["online"], seen["queued"]) == ({"concurrent": 0, "rpm": 0},) * 2
    assert (seen["tenants"], seen["samples"], seen["waiting"]) == ([], [], 0)
    assert seen["idle_because"] == f"nothing is queued for {made['model']}"
    api.problem(404, "GET", "/api/channels/none/capacity", "unknown-channel")


def test_capacity_says_why_queued_work_waits(api: Api) -> None:
    with LlmUpstream(latency_ms=1, jitter_ms=0, rpm=100) as provider:
        channel = add(api, base_url=provider.url, price={"input_per_1k": 1})
        code, model, tenant = channel["code"], channel["model"], new_name("tenant")
        path = f"/api/channels/{code}/capacity"

        def ask() -> int:
            body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
            said = {"endpoint": "/v1/chat/completions", "body": body, "tenant": tenant}
            id: int = api.post("/api/channels/calls", said, 202)["id"]
            return id

        assert api.get(f"/api/channels/calls/{ask()}", wait_s=20)["status"] == "completed"
        seen = api.get(path)
        assert (seen["limit_rpm"], seen["source"], seen["queued"]["rpm"]) == (100, "headers", 1)
        assert seen["remaining"] == pytest.approx(0.99)
        api.post(f"/api/upstreams/{code}/close", {"for_s": 60, "why": "maintenance"})
        held = ask()
        seen = eventually(lambda: (found := api.get(path))["waiting"] and found)
        assert seen["closed_why"] == "maintenance"
        assert seen["closed_until"] in seen["idle_because"]
        assert "maintenance" in seen["idle_because"]
        assert [(each["tenant"], each["waiting"]) for each in seen["tenants"]] == [(tenant, 1)]
        api.ok("PATCH", f"/api/channels/{code}", json={"queue_mode": "none"})
        assert "queue_mode is none" in api.get(path)["idle_because"]
        api.ok("PATCH", f"/api/channels/{code}", json={"enabled": False})
        assert api.get(path)["idle_because"] == "the channel is switched off"
        api.post(f"/api/channels/calls/{held}/cancel")
        api.ok("DELETE", f"/api/channels/{code}", 204)
