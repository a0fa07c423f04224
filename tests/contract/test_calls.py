"""Single calls that wait their turn, and telling somebody how they have ended."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator

import pytest

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.calls_kit import (
    OWN,
    Message,
    answered,
    ask,
    channel,
    chat,
    provider,
    receiver,
)
from tests.contract.gateway_kit import provider as by_hand
from tests.contract.gateway_kit import says
from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.servers import Server, server_on


@pytest.fixture(scope="module")
def upstream() -> Iterator[LlmUpstream]:
    with provider() as started:
        yield started


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def telling(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that may call back on loopback."""
    with server_on(request.param, outbound_allow=OWN) as started:
        yield started


@pytest.fixture
def api(telling: Server) -> Iterator[Api]:
    with Api(telling.url) as client:
        yield client


def closed(api: Api, upstream: LlmUpstream) -> tuple[str, str]:
    """A channel where nothing runs until it is opened."""
    code, model = channel(api, upstream)
    api.post(f"/api/upstreams/{code}/close", {"for_s": 600, "why": "maintenance"})
    return code, model


# ---------------------------------------------------------------------- calls


def test_a_call_is_stored_runs_and_is_answered(api: Api, upstream: LlmUpstream) -> None:
    code, model = channel(api, upstream)
    said = chat(model, "how are you", metadata={"order": "5"}, tenant=new_name("tenant"))
    sent = api.send("POST", "/api/channels/calls", json=said)
    made: JSON = sent.json()
    assert sent.status_code == 202
    assert sent.headers["location"] == f"/api/channels/calls/{made['id']}"
    assert made["status"] == "queued"
    assert (made["model"], made["endpoint"]) == (model, "/v1/chat/completions")
    call = answered(api, made["id"])
    assert call["channel"] == code
    assert call["metadata"] == {"order": "5"}
    assert (call["error"], call["callback"], call["callback_url"]) == (None, None, None)
    response = call["response"]
    assert response["status_code"] == 200
    assert response["request_id"]
    assert response["body"]["choices"][0]["message"]["content"] == "how are you"


def test_embeddings_are_calls_too(api: Api, upstream: LlmUpstream) -> None:
    _, model = channel(api, upstream)
    said = {"endpoint": "/v1/embeddings", "body": {"model": model, "input": "hello"}}
    id = api.post("/api/channels/calls", said, 202)["id"]
    assert answered(api, id)["response"]["body"]["data"][0]["embedding"]


def test_a_call_that_waits_says_why(api: Api, upstream: LlmUpstream) -> None:
    code, model = closed(api, upstream)
    id = ask(api, model)
    call = eventually(lambda: (c := api.get(f"/api/channels/calls/{id}"))["wait_reason"] and c)
    assert call["wait_reason"] == f"waits at upstream:{code}: closed (maintenance)"
    assert call["position"] == 1
    assert call["opens_at"] is not None
    cancelled = api.post(f"/api/channels/calls/{id}/cancel")
    assert (cancelled["status"], cancelled["response"]) == ("cancelled", None)
    api.problem(409, "POST", f"/api/channels/calls/{id}/cancel")


def test_an_error_for_good_is_the_answer(api: Api, upstream: LlmUpstream) -> None:
    _, model = channel(api, upstream)
    upstream.set(script=[{"status": 400}])
    call = answered(api, ask(api, model), "failed")
    assert call["response"]["status_code"] == 400
    assert "HTTP 400" in call["error"]


@pytest.mark.parametrize("status", [302, 400])
def test_neither_a_redirect_nor_an_error_is_success_nor_tells_the_key(
    api: Api, status: int
) -> None:
    key = "sk-key-of-this-provider"
    with by_hand(says(status, f'"the key is {key}"'.encode())) as chatty:
        code, model = new_name("channel"), new_name("model")
        said = {"code": code, "model": model, "base_url": chatty.url, "api_key": key}
        api.post("/api/channels", said, 201)
        id = ask(api, model)
        call = eventually(lambda: seen if (seen := look(api, id))["error"] else None)
        assert f"HTTP {status}" in call["error"]
        assert call["response"] is None or call["response"]["body"] == "the key is [redacted]"
        assert key not in str(call)


def look(api: Api, id: int) -> JSON:
    return api.get(f"/api/channels/calls/{id}")


def test_other_jobs_are_no_calls(api: Api) -> None:
    id = api.enqueue(new_name())
    for method, path in (("GET", ""), ("POST", "/cancel")):
        api.problem(404, method, f"/api/channels/calls/{id}{path}", "unknown-call")
        api.problem(404, method, f"/api/channels/calls/none{path}", "unknown-call")
    api.post(f"/api/jobs/{id}/cancel")


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"endpoint": "/v1/models"}, "wrong-input"),
        ({"body": {"messages": [{}]}}, "bad-call"),
        ({"body": {"model": 5, "messages": [{}]}}, "bad-call"),
        ({"body": {"model": "m"}}, "bad-call"),
        ({"body": {"model": "m", "messages": []}}, "bad-call"),
        ({"body": {"model": "m", "messages": [{}], "stream": True}}, "bad-call"),
        ({"body": {"model": "nobody-serves-it", "messages": [{}]}}, "unknown-model"),
        ({"within": "soon"}, "bad-call"),
        ({"within": "0s"}, "bad-call"),
        ({"metadata": {"a": 5}}, "wrong-input"),
        ({"priority": "high"}, "wrong-input"),
        ({"unknown": 5}, "wrong-input"),
        ({"callback_url": "ftp://example.com/x"}, "bad-callback"),
        ({"callback_url": "nowhere"}, "bad-callback"),
        ({"callback_url": "https://user:word@example.com/"}, "bad-callback"),
        ({"callback_url": "http://10.0.0.1/x"}, "bad-callback"),
        ({"callback_url": "http://169.254.169.254/latest/meta-data"}, "bad-callback"),
        ({"callback_url": "http://[::1]/x"}, "bad-callback"),
    ],
)
def test_what_makes_no_sense_is_refused(
    api: Api, upstream: LlmUpstream, wrong: JSON, kind: str
) -> None:
    _, model = channel(api, upstream)
    api.problem(422, "POST", "/api/channels/calls", kind, json={**chat(model), **wrong})
    assert api.get("/api/jobs", upstream=f"model:{model}")["total"] == 0


# ---------------------------------------------------------------------- telling somebody


def check_signature(message: Message, secret: str, which: int = 0) -> None:
    """As the specification of Standard Webhooks has it."""
    headers = message.headers
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + message.content
    key = base64.b64decode(secret.removeprefix("whsec_"))
    mark = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"].split(" ")[which] == f"v1,{mark}"


def test_a_callback_says_how_it_ended_and_is_signed(api: Api, upstream: LlmUpstream) -> None:
    _, model = channel(api, upstream)
    tenant = new_name("tenant")
    with receiver() as hook:
        id = ask(api, model, callback_url=hook.url, metadata={"a": "b"}, tenant=tenant)
        call = answered(api, id)
        (message,) = hook.wait_for(id)
    said = message.said
    assert set(said) == {"id", "status", "response", "error", "metadata"}
    assert (said["status"], said["error"], said["metadata"]) == ("completed", None, {"a": "b"})
    assert said["response"] == call["response"]
    secret = api.get("/api/channels/callback-secret", tenant=tenant)["secret"]
    check_signature(message, secret)
    assert secret != api.get("/api/channels/callback-secret", tenant=new_name())["secret"]
    delivery = eventually(
        lambda: (
            (d := api.get(f"/api/channels/calls/{id}")["callback"])["status"] == "completed" and d
        )
    )
    assert delivery["failed_attempts"] == 0


def test_it_is_told_however_it_ended(api: Api, upstream: LlmUpstream) -> None:
    code, model = closed(api, upstream)
    with receiver() as hook:
        cancelled = ask(api, model, callback_url=hook.url)
        late = ask(api, model, callback_url=hook.url, within="0.2s")
        api.post(f"/api/channels/calls/{cancelled}/cancel")
        (first,), (second,) = hook.wait_for(cancelled), hook.wait_for(late)
        assert (first.said["status"], first.said["response"]) == ("cancelled", None)
        assert (second.said["status"], second.said["error"]) == ("failed", "its deadline is over")
        upstream.set(script=[{"status": 400}])
        api.post(f"/api/upstreams/{code}/open")
        failed = ask(api, model, callback_url=hook.url)
        (third,) = hook.wait_for(failed)
        assert third.said["status"] == "failed"
        assert third.said["response"]["status_code"] == 400


def test_a_receiver_that_pushes_back_is_told_later_with_the_same_number(
    api: Api, upstream: LlmUpstream
) -> None:
    _, model = channel(api, upstream)
    with receiver((503, {"Retry-After": "0"}), (429, {"Retry-After": "0"})) as hook:
        id = ask(api, model, callback_url=hook.url)
        messages = hook.wait_for(id, 3)
    assert len({each.headers["webhook-id"] for each in messages}) == 1
    assert len({each.content for each in messages}) == 1


def test_a_receiver_that_is_gone_or_leads_elsewhere_is_not_followed(
    api: Api, upstream: LlmUpstream
) -> None:
    _, model = channel(api, upstream)
    with receiver() as other, receiver(410, (302, {"Location": other.url})) as hook:
        gone = ask(api, model, callback_url=hook.url)
        delivery = eventually(lambda: ended(api, gone))
        assert delivery["status"] == "failed"
        assert "410" in delivery["error"]
        moved = ask(api, model, callback_url=hook.url)
        hook.wait_for(moved)
        delivery = eventually(lambda: (d := callback_of(api, moved))["error"] and d)
        assert delivery["error"] == "HTTP 302"
        assert delivery["next_attempt_at"] is not None  # it is tried again, and not forgotten
        assert other.heard == []
        api.post(f"/api/jobs/{delivery['job']}/cancel")


def callback_of(api: Api, id: int) -> JSON:
    found: JSON | None = api.get(f"/api/channels/calls/{id}")["callback"]
    return found or {"status": None, "error": None}


def ended(api: Api, id: int) -> JSON | None:
    found = callback_of(api, id)
    return found if found["status"] in ("completed", "failed") else None


def test_a_name_that_leads_inside_is_refused_when_it_is_called(
    server: Server, upstream: LlmUpstream
) -> None:
    """Nobody knows where a name leads before it is looked up."""
    with Api(server.url) as api, receiver() as hook:
        _, model = channel(api, upstream)
        url = hook.url.replace(OWN, "localhost")
        id = ask(api, model, callback_url=url)
        delivery = eventually(lambda: ended(api, id))
        assert delivery["status"] == "failed"
        assert "may not be called" in delivery["error"]
        assert hook.heard == []


def test_a_new_secret_signs_beside_the_old_one_for_a_day(
    api: Api, telling: Server, upstream: LlmUpstream
) -> None:
    _, model = channel(api, upstream)
    tenant = new_name("tenant")
    path = "/api/channels/callback-secret"
    before = api.get(path, tenant=tenant)["secret"]
    after = api.post(path, tenant=tenant)["secret"]
    assert before != after == api.get(path, tenant=tenant)["secret"]
    with receiver() as hook:
        id = ask(api, model, callback_url=hook.url, tenant=tenant)
        (message,) = hook.wait_for(id)
    check_signature(message, after, 0)
    check_signature(message, before, 1)
    for secret in (before, after):
        assert secret not in telling.printed()
        assert secret not in api.send("GET", "/api/audit").text
