"""The online gateway over HTTP: OpenAI's client as it is, and what comes of providers' refusals."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import httpx2
import pytest
from openai import NotFoundError, OpenAI

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.gateway_kit import (
    CHAT,
    DONE,
    KEY,
    Desk,
    RawClient,
    chat,
    chunk,
    error_in,
    free_again,
    provider,
    providers,
    says,
    streams,
)
from tests.contract.kit import Api, new_name
from tests.hands.kit import eventually
from tests.servers import server_on

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


@pytest.fixture(scope="module")
def running() -> Iterator[Desk]:
    with server_on("sqlite") as server, providers() as (first, second), Api(server.url) as api:
        yield Desk(api, first, second)


@pytest.fixture
def desk(running: Desk) -> Desk:
    for each in (running.first, running.second):
        each.reset()
        each.set(latency_ms=1, chunk_ms=1, chunks=None)
    return running


@pytest.fixture
def client(desk: Desk) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{desk.url}/v1", api_key="unused", max_retries=0) as made:
        yield made


# ---------------------------------------------------------------------- the official client


def test_the_official_client_chats(desk: Desk, client: OpenAI) -> None:
    model, _ = desk.one()
    answer = client.chat.completions.create(**chat(model, "hello there"))
    assert answer.choices[0].message.content == "hello there"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 3


def test_the_official_client_streams(desk: Desk, client: OpenAI) -> None:
    model, _ = desk.one()
    stream = client.chat.completions.create(**chat(model, "one two three", stream=True))
    chunks = list(stream)
    assert "".join(each.choices[0].delta.content or "" for each in chunks) == "one two three"
    assert all(each.usage is None for each in chunks), "it has not asked for that"


def test_the_official_client_is_told_the_usage_of_a_stream_if_it_asks(
    desk: Desk, client: OpenAI
) -> None:
    model, _ = desk.one()
    body = chat(model, "one two", stream=True, stream_options={"include_usage": True})
    last = list(client.chat.completions.create(**body))[-1]
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == 2


def test_the_official_client_embeds(desk: Desk, client: OpenAI) -> None:
    model, _ = desk.one()
    answer = client.embeddings.create(model=model, input=["a", "b"])
    assert len(answer.data) == 2
    assert desk.bills(model)[0]["endpoint"] == "/v1/embeddings"


def test_the_official_client_lists_models(desk: Desk, client: OpenAI) -> None:
    model, code = desk.one()
    assert model in {each.id for each in client.models.list()}
    assert client.models.retrieve(model).owned_by == "headway"
    desk.api.ok("PATCH", f"/api/channels/{code}", json={"enabled": False})
    with pytest.raises(NotFoundError):
        client.models.retrieve(model)
    with pytest.raises(NotFoundError) as refused:
        client.chat.completions.create(**chat(model))
    assert refused.value.code == "model_not_found"


def test_a_model_may_have_a_slash_in_its_name(desk: Desk, client: OpenAI) -> None:
    model = f"maker/{new_name()}"
    desk.channel(model, desk.first)
    assert client.models.retrieve(model).id == model


# ---------------------------------------------------------------------- what is passed on


def test_everything_is_passed_on_as_it_is(desk: Desk) -> None:
    body = b'{ "choices":[],  "usage":{"prompt_tokens":1},"x":1.50 }\n'
    headers = {"x_request_id": "req-1", "x_ratelimit_remaining_requests": "9", "Server_Timing": "x"}
    model = new_name("model")
    with provider(says(200, body, **headers)) as upstream:
        code = desk.channel(model, upstream.url, upstream_model="theirs")
        asked = chat(model, temperature=0.25, made_up={"deep": [1, None, "ü"]})
        answer = desk.ask(asked)
    assert answer.content == body
    assert answer.headers["x-request-id"] == "req-1"
    assert answer.headers["x-ratelimit-remaining-requests"] == "9"
    assert answer.headers["x-headway-channel"] == code
    assert "server-timing" not in answer.headers
    assert upstream.bodies == [{**asked, "model": "theirs"}]
    assert upstream.paths == [CHAT]
    assert upstream.headers[0]["authorization"] == f"Bearer {KEY}"


def test_what_a_provider_finds_wrong_is_final(desk: Desk) -> None:
    model, _, _ = desk.two()
    answer = desk.ask({"model": model, "messages": []})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "missing_required_parameter"
    assert desk.second.calls() == []
    assert desk.bills(model) == []


@pytest.mark.parametrize(("content", "code"), [
    (b"{", "invalid_json"), (b"[]", "invalid_json"), (b"", "invalid_json"),
    (b"{}", "missing_required_parameter"), (b'{"model": 5}', "missing_required_parameter"),
    (b'{"model": ""}', "missing_required_parameter"), (b"\xff", "invalid_json"),
])  # fmt: skip
def test_what_cannot_be_read_is_400(desk: Desk, content: bytes, code: str) -> None:
    error = error_in(desk.api.send("POST", CHAT, content=content), 400)
    assert error["code"] == code
    assert error["type"] == "invalid_request_error"


def test_an_unknown_model_is_404_and_the_known_ones_are_named(desk: Desk) -> None:
    model, _ = desk.one()
    error = desk.refused(404, chat(new_name("unknown")))
    assert error["code"] == "model_not_found"
    assert error["param"] == "model"
    assert model in error["message"] or "…" in error["message"]


# ---------------------------------------------------------------------- failing over


@pytest.mark.parametrize("mishap", [
    {"status": 429, "retry_after": 7}, {"status": 500}, {"status": 503}, {"status": 401},
    {"status": 403}, {"drop": True}, {"cut": True},
])  # fmt: skip
def test_another_channel_is_tried(desk: Desk, mishap: dict[str, Any]) -> None:
    model, _, second = desk.two()
    desk.first.set(script=[mishap])
    answer = desk.ask(chat(model, "hello"))
    assert answer.status_code == 200
    assert answer.headers["x-headway-channel"] == second
    assert answer.json()["choices"][0]["message"]["content"] == "hello"
    assert len(desk.first.calls()) == len(desk.second.calls()) == 1
    assert [bill["channel"] for bill in desk.bills(model)] == [second], "refused calls are free"


def test_a_stream_fails_over_before_its_first_byte(desk: Desk) -> None:
    model, code, second = desk.two()
    desk.first.set(script=[{"status": 500}])
    answer = desk.ask(chat(model, stream=True))
    assert answer.headers["x-headway-channel"] == second
    assert answer.text.endswith("data: [DONE]\n\n")
    free_again(desk, code)


def test_a_stream_that_breaks_off_before_its_first_event_fails_over(desk: Desk) -> None:
    model = new_name("model")
    with provider(streams(b"data: {", whole=False)) as upstream:
        desk.channel(model, upstream.url)
        second = desk.channel(model, desk.second, cost=2.0)
        answer = desk.ask(chat(model, "hello", stream=True))
    assert answer.headers["x-headway-channel"] == second
    assert [bill["channel"] for bill in desk.bills(model)] == [second]


def test_if_all_fail_the_last_answer_of_a_provider_is_passed_on(desk: Desk) -> None:
    model, first, second = desk.two()
    desk.first.set(script=[{"status": 500}])
    desk.second.set(script=[{"status": 429, "retry_after": 7, "message": "slow down"}])
    answer = desk.ask(chat(model))
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "7"
    assert answer.headers["x-headway-channel"] == second
    assert answer.json()["error"]["message"] == "slow down"
    assert len(desk.first.calls()) == len(desk.second.calls()) == 1, "each at most once"
    assert desk.bills(model) == []
    assert desk.leases(first) == desk.leases(second) == 0


def test_a_refused_key_is_the_fault_of_the_channel_not_of_the_client(desk: Desk) -> None:
    model, code = desk.one(api_key="sk-wrong-key-of-ours")
    error = desk.refused(502, chat(model))
    assert error["code"] == "channel_key_refused"
    assert code in error["message"]
    assert "sk-wrong" not in error["message"]
    error = desk.refused(429, chat(model))  # nobody asks there again for some minutes
    assert code in error["message"]
    assert len(desk.first.calls()) == 1


def test_a_provider_that_is_not_there_is_502(desk: Desk) -> None:
    model = new_name("model")
    desk.channel(model, "http://127.0.0.1:9/v1")
    assert desk.refused(502, chat(model))["code"] == "channel_unreachable"


def test_a_provider_that_is_too_slow_is_504(desk: Desk) -> None:
    model, code = desk.one(timeout_s=1)
    desk.first.set(script=[{"hang_s": 20}])
    assert desk.refused(504, chat(model))["code"] == "timeout"
    assert desk.first.calls()[0]["broken_off"]
    assert desk.leases(code) == 0


def test_a_provider_that_says_little_at_a_time_is_too_slow_too(desk: Desk) -> None:
    over = threading.Event()

    def drips(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        with suppress(OSError):
            while not over.wait(0.05):
                handler.wfile.write(b" ")

    model = new_name("model")
    with provider(drips) as slow:
        code = desk.channel(model, slow.url, timeout_s=1)
        assert desk.refused(504, chat(model))["code"] == "timeout"
        assert desk.leases(code) == 0
        over.set()


# ---------------------------------------------------------------------- strange answers


def raw(content: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """Exactly this, and no more."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(content)
        handler.close_connection = True

    return answer


@pytest.mark.parametrize("status", [302, 304, 600, 999])
def test_a_status_that_leads_nowhere_is_502(desk: Desk, status: int) -> None:
    model = new_name("model")
    with provider(raw(b"HTTP/1.1 %d Odd\r\nContent-Length: 0\r\n\r\n" % status)) as odd:
        desk.channel(model, odd.url)
        error = desk.refused(502, chat(model))
    assert f"answered {status}" in error["message"]
    assert error["code"] == "bad_channel"


def test_headers_that_may_not_be_sent_are_left_out(desk: Desk) -> None:
    model = new_name("model")
    headers = b"Content-Type: application/json\r\nX-Request-Id: a\x01b\r\nX-RateLimit-A: 5"
    said = b"HTTP/1.1 200 OK\r\n" + headers + b"\r\nContent-Length: 2\r\n\r\n{}"
    with provider(raw(said)) as odd:
        desk.channel(model, odd.url)
        answer = desk.ask(chat(model))
    assert (answer.status_code, answer.content) == (200, b"{}")
    assert "x-request-id" not in answer.headers
    assert answer.headers["x-ratelimit-a"] == "5"


def test_an_answer_too_deep_to_be_read_is_passed_on_and_billed(desk: Desk) -> None:
    model = new_name("model")
    deep = b'{"choices": ' + b"[" * 5_000 + b"]" * 5_000 + b"}"
    with provider(says(200, deep)) as odd:
        desk.channel(model, odd.url)
        answer = httpx2.post(desk.url + CHAT, json=chat(model))
    assert (answer.status_code, answer.content) == (200, deep)
    assert [each["estimated"] for each in desk.bills(model)] == [True]


@pytest.mark.parametrize("status", [400, 429, 500])
def test_an_error_that_repeats_the_key_does_not_tell_it_to_the_client(
    desk: Desk, status: int
) -> None:
    model = new_name("model")
    error = {"message": f"no quota for {KEY} today", "type": "t", "param": None, "code": None}
    body = json.dumps({"error": error}).encode()
    with provider(says(status, body)) as chatty:
        desk.channel(model, chatty.url)
        answer = desk.ask(chat(model))
    assert answer.status_code == status
    assert answer.json()["error"]["message"] == "no quota for [redacted] today"


# ---------------------------------------------------------------------- closed


def test_if_all_are_closed_it_says_so_at_once(desk: Desk) -> None:
    model, first, second = desk.two()
    desk.close(first, 90)
    desk.close(second, 40)
    answer = desk.ask(chat(model))
    error = error_in(answer, 429)
    assert error["code"] == "rate_limit_exceeded"
    assert error["type"] == "rate_limit_error"
    assert 30 <= int(answer.headers["retry-after"]) <= 40
    assert second in error["message"], "it opens first"
    assert "maintenance" in error["message"]
    assert "Z" in error["message"]
    assert desk.first.calls() == desk.second.calls() == []


def test_a_channel_that_is_closed_is_passed_over(desk: Desk) -> None:
    model, first, second = desk.two()
    desk.close(first, 90)
    assert desk.ask(chat(model)).headers["x-headway-channel"] == second
    desk.api.post(f"/api/upstreams/{second}/pause")
    desk.api.post(f"/api/upstreams/{first}/pause")
    answer = desk.ask(chat(model))
    assert "resumes" in error_in(answer, 429)["message"]
    assert answer.headers["retry-after"] == "60"


# ---------------------------------------------------------------------- waiting


def test_who_chooses_to_wait_goes_when_it_opens(desk: Desk) -> None:
    model, code = desk.one()
    desk.close(code, 0.3)
    answer = desk.ask(chat(model, "hello"), x_headway_wait="10s")
    assert answer.status_code == 200
    assert len(desk.bills(model)) == 1
    assert desk.leases(code) == 0
    assert desk.nobody_waits(code)


def test_who_was_refused_by_the_provider_waits_too(desk: Desk) -> None:
    model, _ = desk.one()
    desk.first.set(script=[{"status": 429, "retry_after": 0.5}])
    answer = desk.ask(chat(model, "hello"), x_headway_wait="10")
    assert answer.status_code == 200
    first, second = desk.first.calls()
    assert second["at"] - first["at"] >= 0.4, "not before it was told to"


def test_when_the_time_is_over_it_is_429(desk: Desk) -> None:
    model, code = desk.one()
    desk.close(code, 60)
    answer = desk.ask(chat(model), x_headway_wait="0.2")
    assert error_in(answer, 429)["code"] == "rate_limit_exceeded"
    assert 50 <= int(answer.headers["retry-after"]) <= 60
    assert desk.nobody_waits(code)


@pytest.mark.parametrize("change", [{"enabled": False}, {"model": "another"}])
def test_who_waits_for_a_channel_that_is_taken_away_is_told_so_when_it_opens(
    desk: Desk, change: dict[str, Any]
) -> None:
    """Not sent there all the same, and not asked again and again until the time is over."""
    model, code = desk.one()
    desk.close(code, 1)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(desk.ask, chat(model), x_headway_wait="60s")
        eventually(lambda: not desk.nobody_waits(code))
        desk.api.ok("PATCH", f"/api/channels/{code}", json=change)
        answer = waiting.result(10)
    assert "taken away" in error_in(answer, 502)["message"]
    assert desk.first.calls() == []
    free_again(desk, code)


def test_who_hangs_up_leaves_the_line(desk: Desk) -> None:
    model, code = desk.one()
    desk.close(code, 60)
    waiting = RawClient(desk.url, chat(model), **{"X-Headway-Wait": "1m"})
    eventually(lambda: not desk.nobody_waits(code))
    waiting.hang_up()
    eventually(lambda: desk.nobody_waits(code), within_s=5.0)
    assert desk.first.calls() == []


def test_some_channels_wait_by_themselves_unless_told_not_to(desk: Desk) -> None:
    model, code = desk.one(queue_mode="route")
    desk.close(code, 0.3)
    desk.refused(429, chat(model), x_headway_wait="0")
    assert desk.ask(chat(model)).status_code == 200


@pytest.mark.parametrize("wrong", ["soon", "-1", "11m", "1e9", "nan", "", "601"])
def test_a_wait_that_is_none_is_400(desk: Desk, wrong: str) -> None:
    model, _ = desk.one()
    assert "30s" in desk.refused(400, chat(model), x_headway_wait=wrong)["message"]
    assert desk.first.calls() == []


# ---------------------------------------------------------------------- hanging up


def test_a_call_is_broken_off_when_its_client_hangs_up(desk: Desk) -> None:
    model, code = desk.one()
    desk.first.set(script=[{"hang_s": 60}])
    caller = RawClient(desk.url, chat(model))
    eventually(lambda: desk.leases(code) == 1 and desk.first.calls())
    caller.hang_up()
    eventually(lambda: desk.first.calls()[0]["broken_off"], within_s=5.0)
    free_again(desk, code)
    assert desk.bills(model) == []


def test_a_stream_is_broken_off_when_its_client_hangs_up_and_what_came_is_billed(
    desk: Desk,
) -> None:
    model, code = desk.one()
    desk.first.set(chunk_ms=60_000)
    caller = RawClient(desk.url, chat(model, "one two three four", stream=True))
    caller.read_until(b"one")
    caller.hang_up()
    eventually(lambda: desk.first.calls()[0]["broken_off"], within_s=5.0)
    free_again(desk, code)
    (bill,) = eventually(lambda: desk.bills(model))
    assert bill["estimated"]
    assert bill["output_tokens"] == len("one ") // 4


# ---------------------------------------------------------------------- streams


def test_each_event_is_passed_on_the_moment_it_is_complete(desk: Desk) -> None:
    heard = [threading.Event() for _ in range(4)]

    def wait(number: int) -> None:
        assert number == 0 or heard[number - 1].wait(10), "the one before was held back"

    model = new_name("model")
    events = [chunk("a"), b": still here\r\n\r\n", chunk("b"), DONE]
    with provider(streams(*events, before_each=wait)) as upstream:
        desk.channel(model, upstream.url)
        with desk.api.http.stream("POST", CHAT, json=chat(model, stream=True)) as answer:
            parts = answer.iter_raw()
            for number, event in enumerate(events):
                assert next(parts) == event
                heard[number].set()
            assert b"".join(parts) == b""


def test_half_an_event_waits_for_its_other_half(desk: Desk) -> None:
    model, whole = new_name("model"), chunk("a")
    with provider(streams(whole[:20], whole[20:] + DONE[:5], DONE[5:])) as upstream:
        desk.channel(model, upstream.url)
        with desk.api.http.stream("POST", CHAT, json=chat(model, stream=True)) as answer:
            assert list(answer.iter_raw()) == [whole, DONE]


def test_a_stream_is_asked_for_its_usage_so_that_it_can_be_billed(desk: Desk) -> None:
    model = new_name("model")
    with provider(streams(chunk("a"), chunk(usage=USAGE), DONE)) as upstream:
        desk.channel(model, upstream.url)
        asked = chat(model, stream=True, stream_options={"other": 1})
        answer = desk.ask(asked)
    assert upstream.bodies[0]["stream_options"] == {"other": 1, "include_usage": True}
    assert answer.content == chunk("a") + DONE, "the client has not asked for it"
    (bill,) = desk.bills(model)
    assert (bill["input_tokens"], bill["output_tokens"], bill["estimated"]) == (7, 3, False)
    assert (bill["cost"], bill["kind"]) == ("0.013", "online")


def test_a_stream_without_usage_is_estimated(desk: Desk) -> None:
    model = new_name("model")
    with provider(streams(chunk("four"), chunk("more words"), DONE)) as upstream:
        desk.channel(model, upstream.url)
        desk.ask(chat(model, stream=True))
    (bill,) = desk.bills(model)
    assert bill["estimated"]
    assert bill["output_tokens"] == 14 // 4
    assert bill["input_tokens"] > 10


def test_a_stream_ends_as_the_provider_ended_it(desk: Desk) -> None:
    model = new_name("model")
    with provider(streams(chunk("four"), chunk("more"), whole=False)) as upstream:
        code = desk.channel(model, upstream.url)
        got: list[bytes] = []
        with (
            desk.api.http.stream("POST", CHAT, json=chat(model, stream=True)) as answer,
            pytest.raises(httpx2.RemoteProtocolError),
        ):
            got.extend(answer.iter_raw())
    assert b"".join(got) == chunk("four") + chunk("more")
    (bill,) = eventually(lambda: desk.bills(model))
    assert bill["estimated"]
    assert bill["output_tokens"] == 2
    free_again(desk, code)


def test_a_stream_that_was_not_asked_for_is_passed_on_whole(desk: Desk) -> None:
    model = new_name("model")
    body = b'{"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 1}}'
    with provider(says(200, body)) as upstream:
        desk.channel(model, upstream.url)
        answer = desk.ask(chat(model, stream=True))
    assert answer.content == body
    assert desk.bills(model)[0]["input_tokens"] == 4


# ---------------------------------------------------------------------- bills and budgets


def test_a_bill_is_there_before_the_answer_is_read_and_there_is_one(desk: Desk) -> None:
    model, code = desk.one()
    for number in range(1, 4):
        desk.ask(chat(model, "hello there"), x_headway_tenant="acme")
        assert len(desk.bills(model)) == number
    bill = desk.bills(model)[0]
    assert bill["tenant"] == "acme"
    assert bill["channel"] == code
    assert not bill["estimated"]
    assert len({each["id"] for each in desk.bills(model)}) == 3


def test_a_tenant_may_have_any_name_that_is_not_too_long(desk: Desk) -> None:
    model, _ = desk.one()
    headers = {b"X-Headway-Tenant": "café 客户".encode()}
    answer = desk.api.send("POST", CHAT, json=chat(model), headers=headers)
    assert answer.status_code == 200
    assert desk.bills(model)[0]["tenant"] == "café 客户"
    for wrong in (b"x" * 201, b"\xff", b""):
        answer = desk.api.send("POST", CHAT, json=chat(model), headers={b"X-Headway-Tenant": wrong})
        assert error_in(answer, 400)["code"] == "wrong_tenant"


def test_a_tenant_that_has_spent_its_budget_is_refused(desk: Desk) -> None:
    model, _ = desk.one()
    tenant = new_name("tenant")
    budget = {"amount": 0.00001, "currency": "USD", "period": "day"}
    desk.api.ok("PUT", f"/api/budgets/{tenant}", json=budget)
    assert desk.ask(chat(model), x_headway_tenant=tenant).status_code == 200
    error = desk.refused(429, chat(model), x_headway_tenant=tenant)
    assert error["code"] == error["type"] == "insufficient_quota"
    assert desk.ask(chat(model), x_headway_tenant=new_name("other")).status_code == 200
    assert len(desk.first.calls()) == 2


def test_many_at_once_are_each_billed_once(desk: Desk) -> None:
    model, code = desk.one()
    with ThreadPoolExecutor(16) as pool:
        asked = [chat(model, f"hello {number}", stream=number % 2 == 0) for number in range(60)]
        statuses = [answer.status_code for answer in pool.map(desk.ask, asked)]
    assert statuses == [200] * 60
    assert desk.api.get("/api/costs/bills", model=model)["total"] == 60
    free_again(desk, code)


# ---------------------------------------------------------------------- who may


@pytest.fixture(scope="module")
def guarded() -> Iterator[tuple[Api, dict[str, str], str]]:
    """A server that asks for tokens, and takes small bodies only."""
    with LlmUpstream(keys=(KEY,), latency_ms=1) as upstream:
        file = f"""
        [channel.only]
        model = "m1"
        base_url = "{upstream.url}"
        api_key = "{KEY}"
        """
        with server_on("sqlite", file=file, max_body=5_000) as server:
            with Api(server.url) as opened:
                tokens = {
                    name: opened.post("/api/tokens", {"name": name, **said}, 201)["token"]
                    for name, said in {
                        "all": {"scopes": ["submit", "read"]},
                        "acme": {"scopes": ["submit"], "tenant": "acme"},
                        "reads": {"scopes": ["read"]},
                    }.items()
                }
            server.stop()
            server.environment["HEADWAY_AUTH"] = "required"
            server.start()
            with Api(server.url) as api:
                yield api, tokens, server.url


def test_tokens_are_the_api_keys(guarded: tuple[Api, dict[str, str], str]) -> None:
    api, tokens, url = guarded
    for name, tenant, said in (
        ("acme", "acme", {}), ("all", "", {}), ("all", "zeta", {"X-Headway-Tenant": "zeta"}),
    ):  # fmt: skip
        with OpenAI(base_url=f"{url}/v1", api_key=tokens[name], max_retries=0) as client:
            client.chat.completions.create(**chat("m1"), extra_headers=said)
        bills = api.ok("GET", "/api/costs/bills",
                       headers={"Authorization": f"Bearer {tokens['all']}"})  # fmt: skip
        assert bills["items"][0]["tenant"] == tenant


def test_whoever_may_not_is_told_so_in_openais_shape(
    guarded: tuple[Api, dict[str, str], str],
) -> None:
    api, tokens, _ = guarded
    for shown in ({}, {"Authorization": "Bearer sk-unused"}, {"Authorization": "Basic YTpi"}):
        answer = api.send("POST", CHAT, json=chat("m1"), headers=shown)
        error = error_in(answer, 401)
        assert error["code"] == "invalid_api_key"
        assert error["type"] == "authentication_error"
        assert answer.headers["www-authenticate"] == "Bearer"
    reads = {"Authorization": f"Bearer {tokens['reads']}"}
    assert error_in(api.send("POST", CHAT, json=chat("m1"), headers=reads), 403)["code"] == "scope"
    assert error_in(api.send("GET", "/v1/models", headers=reads), 403)["code"] == "scope"
    other = {"Authorization": f"Bearer {tokens['acme']}", "X-Headway-Tenant": "zeta"}
    assert error_in(api.send("POST", CHAT, json=chat("m1"), headers=other), 403)["code"] == "tenant"
    assert error_in(api.http.get("/v1/nothing"), 401)["code"] == "invalid_api_key"


def test_every_error_below_v1_has_openais_shape(guarded: tuple[Api, dict[str, str], str]) -> None:
    api, tokens, _ = guarded
    key = {"Authorization": f"Bearer {tokens['all']}"}
    large = api.send("POST", CHAT, json=chat("m1", "x" * 6_000), headers=key)
    assert error_in(large, 413)["code"] == "too_large"
    deep = json.dumps(chat("m1")).encode()[:-1] + b', "x": ' + b"[" * 80 + b"]" * 80 + b"}"
    assert error_in(api.send("POST", CHAT, content=deep, headers=key), 400)["code"] == "too_deep"
    for method, path, status in (
        ("GET", "/v1/nothing", 404), ("GET", "/v1/models/nothing", 404), ("PUT", CHAT, 405),
        ("GET", CHAT, 405), ("DELETE", "/v1/models", 405),
    ):  # fmt: skip
        error_in(api.http.request(method, path, headers=key), status)


def test_without_a_token_the_body_is_not_even_read(
    guarded: tuple[Api, dict[str, str], str],
) -> None:
    _, _, url = guarded
    caller = RawClient(url, None)
    assert b" 401 " in caller.read_until(b"\r\n\r\n")
    caller.hang_up()


def test_an_open_server_takes_any_key_but_not_a_token_that_is_not_valid(desk: Desk) -> None:
    model, _ = desk.one()
    assert desk.ask(chat(model), authorization="Bearer sk-whatever").status_code == 200
    assert desk.ask(chat(model), authorization="").status_code == 200
    wrong = "Bearer hw_" + "0" * 12 + "_" + "x" * 43
    assert desk.refused(401, chat(model), authorization=wrong)["code"] == "invalid_api_key"
    page = desk.refused(403, chat(model), authorization="Bearer x", origin="https://evil.example")
    assert page["code"] == "wrong_origin"
    assert desk.api.http.get("/api/jobs", headers={"Authorization": "Bearer x"}).status_code == 401
