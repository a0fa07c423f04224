"""Batches by the official client of OpenAI, unmodified, against a provider on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.batch_kit import (
    CHAT,
    EMBEDDINGS,
    answers,
    chat,
    chats,
    client_of,
    counts,
    lines_in,
    model_at,
    names,
    over,
    started,
    uploaded,
)
from tests.contract.gateway_kit import provider as provider_that
from tests.contract.gateway_kit import says
from tests.contract.kit import Api, new_name
from tests.contract.test_tokens import token_for
from tests.hands.kit import eventually
from tests.servers import Server


@pytest.fixture(scope="module")
def provider() -> Iterator[LlmUpstream]:
    with LlmUpstream(latency_ms=2, jitter_ms=0) as running:
        yield running


@pytest.fixture
def upstream(provider: LlmUpstream) -> LlmUpstream:
    """With nothing of the tests before."""
    provider.set(latency_ms=2, rpm=None, script=[])
    provider.reset()
    return provider


@pytest.fixture
def client(server: Server) -> Iterator[OpenAI]:
    with client_of(server.url) as made:
        yield made


def test_a_batch_from_its_file_to_its_results(
    api: Api, client: OpenAI, upstream: LlmUpstream
) -> None:
    model = model_at(api, upstream)
    batch = started(client, chats(model, 40), metadata={"about": "a test"})
    assert batch.id.startswith("batch_")
    assert (batch.object, batch.status, batch.endpoint) == ("batch", "validating", CHAT)
    assert batch.expires_at == batch.created_at + 86_400
    done = over(client, batch)
    assert done.status == "completed"
    assert counts(done) == (40, 40, 0)
    assert done.metadata == {"about": "a test"}
    assert done.error_file_id is None
    assert answers(client, done) == {name: name for name in names(40)}
    (first, *_) = lines_in(client, done.output_file_id)
    assert set(first) == {"id", "custom_id", "response", "error"}
    assert first["id"].startswith("batch_req_")
    assert first["response"]["request_id"]
    assert done.output_file_id is not None
    file = client.files.retrieve(done.output_file_id)
    assert (file.purpose, file.filename) == ("batch_output", f"{batch.id}_output.jsonl")
    assert upstream.stats()["calls"] == 40
    bills = api.get("/api/costs/bills", model=model)
    assert bills["total"] == 40
    assert {bill["batch"] for bill in bills["items"]} == {batch.id}


def test_embeddings(api: Api, client: OpenAI, upstream: LlmUpstream) -> None:
    model = model_at(api, upstream)
    body = {"model": model, "input": "hello"}
    line = {"custom_id": "a", "method": "POST", "url": EMBEDDINGS, "body": body}
    done = over(client, started(client, [line], endpoint=EMBEDDINGS))
    (answer,) = lines_in(client, done.output_file_id)
    assert answer["response"]["body"]["data"][0]["embedding"]


def test_every_line_is_told_how_it_went(api: Api, client: OpenAI, upstream: LlmUpstream) -> None:
    """What a provider answers with 400 is an error of the line; its 429s are nobody's."""
    model = model_at(api, upstream)
    refused = chat(model, "wrong")
    refused["body"]["messages"] = []
    upstream.set(script=[{"status": 429, "retry_after": 0.1}])
    done = over(client, started(client, [chat(model, "a"), refused, chat(model, "b")]))
    assert done.status == "completed"
    assert answers(client, done) == {"a": "a", "b": "b"}
    (wrong,) = lines_in(client, done.error_file_id)
    assert wrong["custom_id"] == "wrong"
    assert wrong["response"]["status_code"] == 400
    assert "messages" in wrong["response"]["body"]["error"]["message"]
    assert counts(done) == (3, 2, 1)
    assert upstream.stats()["refused"] == 1


def test_a_file_that_is_wrong_anywhere_runs_nowhere(
    api: Api, client: OpenAI, upstream: LlmUpstream
) -> None:
    model = model_at(api, upstream)
    lines: list[Any] = [chat(model, "a"), "{no json", chat(model, "a"), chat("nobody's", "b")]
    done = over(client, started(client, lines))
    assert done.status == "failed"
    assert done.errors is not None
    assert done.errors.data is not None
    assert [(fault.line, fault.code) for fault in done.errors.data] == [
        (2, "invalid_json_line"), (3, "duplicate_custom_id"), (4, "model_not_found"),
    ]  # fmt: skip
    assert (done.output_file_id, done.error_file_id) == (None, None)
    assert upstream.stats()["calls"] == 0


def test_cancelling_leaves_what_was_done(api: Api, client: OpenAI, upstream: LlmUpstream) -> None:
    model = model_at(api, upstream, max_concurrency=2)
    upstream.set(latency_ms=50)
    batch = started(client, chats(model, 500))
    eventually(lambda: counts(client.batches.retrieve(batch.id))[1] >= 4)
    with pytest.raises(openai.BadRequestError) as caught:
        client.files.delete(batch.input_file_id)
    assert caught.value.code == "file_in_use"
    stopping = client.batches.cancel(batch.id)
    assert stopping.status == "cancelling"
    assert stopping.cancelling_at is not None
    done = over(client, batch)
    assert done.status == "cancelled"
    answered = answers(client, done)
    assert answered == {name: name for name in names(500)[: len(answered)]}
    given_up = lines_in(client, done.error_file_id)
    assert [line["custom_id"] for line in given_up] == names(500)[len(answered) :]
    assert {line["error"]["code"] for line in given_up} == {"batch_cancelled"}
    assert counts(done) == (500, len(answered), 500 - len(answered))
    assert upstream.stats()["answered"] == len(answered)
    with pytest.raises(openai.BadRequestError) as refused:
        client.batches.cancel(batch.id)
    assert refused.value.code == "invalid_batch_status"
    client.files.delete(batch.input_file_id)


def test_lists_come_in_pages(api: Api, upstream: LlmUpstream) -> None:
    model = model_at(api, upstream)
    name = new_name("tenant")
    with client_of(api.url, token_for(api, name, "read", "submit", tenant=name)) as tenant:
        made = [started(tenant, chats(model, 1)).id for _ in range(3)]
        for id in made:
            over(tenant, tenant.batches.retrieve(id))
        first = tenant.batches.list(limit=2)
        assert [batch.id for batch in first.data] == [made[2], made[1]]
        assert first.has_more
        assert [batch.id for batch in tenant.batches.list(limit=1)] == made[::-1]


@pytest.mark.parametrize(
    ("wrong", "status", "param"),
    [
        ({"input_file_id": "file-unknown"}, 400, "input_file_id"),
        ({"completion_window": "59s"}, 400, "completion_window"),
        ({"completion_window": "8d"}, 400, "completion_window"),
        ({"completion_window": "soon"}, 400, "completion_window"),
        ({"endpoint": "/v1/responses"}, 422, None),
        ({"metadata": {"a": 1}}, 422, None),
        ({"metadata": {str(n): "" for n in range(17)}}, 422, None),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 3_600}}, 422, None),
    ],
)
def test_what_cannot_be_a_batch_is_refused(
    client: OpenAI, wrong: dict[str, Any], status: int, param: str | None
) -> None:
    said: dict[str, Any] = {
        "input_file_id": uploaded(client, ["{}"]), "endpoint": CHAT, "completion_window": "24h",
    }  # fmt: skip
    before = client.batches.list(limit=1).data
    with pytest.raises(openai.APIStatusError) as caught:
        client.batches.create(**{**said, **wrong})
    assert caught.value.status_code == status
    if param is not None:
        assert caught.value.param == param
    assert client.batches.list(limit=1).data == before


def test_a_file_for_something_else_is_no_batch(client: OpenAI) -> None:
    file = client.files.create(file=("x", b"{}"), purpose="user_data")
    with pytest.raises(openai.BadRequestError) as caught:
        client.batches.create(input_file_id=file.id, endpoint=CHAT, completion_window="24h")
    assert caught.value.code == "invalid_file_purpose"


def test_windows_of_other_lengths(api: Api, client: OpenAI, upstream: LlmUpstream) -> None:
    model = model_at(api, upstream)
    batch = started(client, chats(model, 1), completion_window="90m")
    assert batch.completion_window == "90m"
    assert batch.expires_at == batch.created_at + 5_400
    over(client, batch)


def test_a_tenant_sees_and_cancels_its_own_batches_only(api: Api, upstream: LlmUpstream) -> None:
    model = model_at(api, upstream)
    tokens = {}
    for name in ("alice", "bob"):
        tokens[name] = token_for(api, name, "read", "submit", tenant=new_name(name))
    with client_of(api.url, tokens["alice"]) as alice, client_of(api.url, tokens["bob"]) as bob:
        batch = started(alice, chats(model, 1))
        for reach in (bob.batches.retrieve, bob.batches.cancel):
            with pytest.raises(openai.NotFoundError) as caught:
                reach(batch.id)
            assert caught.value.code == "batch_not_found"
        with pytest.raises(openai.BadRequestError):
            bob.batches.create(
                input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h"
            )
        assert list(bob.batches.list()) == []
        done = over(alice, batch)
        assert done.status == "completed"
        assert done.output_file_id is not None
        with pytest.raises(openai.NotFoundError):
            bob.files.content(done.output_file_id)
        assert [each.id for each in alice.batches.list()] == [batch.id]


def test_the_results_belong_to_whom_the_input_belongs_to(
    api: Api, client: OpenAI, upstream: LlmUpstream
) -> None:
    """Also if somebody who may see all tenants has started it."""
    model = model_at(api, upstream)
    name = new_name("tenant")
    with client_of(api.url, token_for(api, name, "read", "submit", tenant=name)) as tenant:
        file = uploaded(tenant, chats(model, 1))
        batch = client.batches.create(
            input_file_id=file, endpoint=CHAT, completion_window="24h"
        )  # fmt: skip
        assert answers(tenant, over(tenant, batch)) == {"line-0": "line-0"}


def test_who_may_only_look_starts_and_cancels_nothing(
    api: Api, client: OpenAI, upstream: LlmUpstream
) -> None:
    model = model_at(api, upstream)
    batch = started(client, chats(model, 1))
    with client_of(api.url, token_for(api, "reader", "read")) as reader:
        assert reader.batches.retrieve(batch.id).id == batch.id
        with pytest.raises(openai.PermissionDeniedError):
            reader.batches.cancel(batch.id)
        with pytest.raises(openai.PermissionDeniedError):
            reader.batches.create(
                input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h"
            )
    over(client, batch)


def test_the_answer_of_a_provider_stands_in_one_line(api: Api, client: OpenAI) -> None:
    """However it is laid out."""
    said = {"choices": [{"message": {"content": "hello"}}]}
    with provider_that(says(200, json.dumps(said, indent=4).encode())) as spread:
        model = new_name("model")
        channel = {"code": new_name("channel"), "model": model, "base_url": spread.url}
        api.post("/api/channels", channel, 201)
        done = over(client, started(client, [chat(model, "a")]))
        assert answers(client, done) == {"a": "hello"}
