"""A real server that speaks OpenAI's shapes and pushes back."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any, NamedTuple

import msgspec
import pytest

from headway.core.rate_headers import parse_rate_headers
from headway.testing import LlmUpstream
from headway.testing.llm_upstream.process import UpstreamGone
from headway.testing.llm_upstream.settings import Settings
from tests.hands.kit import eventually, is_alive

CHAT = "/v1/chat/completions"
EMBEDDINGS = "/v1/embeddings"
AT_ONCE = Settings(latency_ms=0, jitter_ms=0, chunk_ms=0)


class Heard(NamedTuple):
    status: int
    headers: dict[str, str]
    body: Any

    @property
    def content(self) -> str:
        return str(self.body["choices"][0]["message"]["content"])


@pytest.fixture(scope="module")
def running() -> Iterator[LlmUpstream]:
    with LlmUpstream() as upstream:
        yield upstream


@pytest.fixture
def upstream(running: LlmUpstream) -> LlmUpstream:
    running.set(**msgspec.to_builtins(AT_ONCE))
    running.reset()
    return running


def connect(upstream: LlmUpstream) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", upstream.port, timeout=20)


@pytest.fixture
def line(upstream: LlmUpstream) -> Iterator[http.client.HTTPConnection]:
    with closing(connect(upstream)) as connection:
        yield connection


def question(text: str = "hello there", **more: Any) -> dict[str, Any]:
    return {"model": "gpt-x", "messages": [{"role": "user", "content": text}], **more}


def send(
    connection: http.client.HTTPConnection, body: Any, path: str = CHAT, **headers: str
) -> http.client.HTTPResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", path, json.dumps(body), named)
    return connection.getresponse()


def ask(upstream: LlmUpstream, body: Any = None, path: str = CHAT, **headers: str) -> Heard:
    with closing(connect(upstream)) as connection:
        answer = send(connection, body or question(), path, **headers)
        return Heard(answer.status, dict(answer.headers), json.loads(answer.read()))


def burst(upstream: LlmUpstream, connections: int, each: int) -> list[int]:
    """The statuses of many calls at once, each connection used again and again."""

    def one(_: int) -> list[int]:
        statuses = []
        with closing(connect(upstream)) as connection:
            for _ in range(each):
                answer = send(connection, question())
                answer.read()
                statuses.append(answer.status)
        return statuses

    with ThreadPoolExecutor(connections) as threads:
        return [status for some in threads.map(one, range(connections)) for status in some]


def events_of(answer: http.client.HTTPResponse) -> list[Any]:
    lines = [line.decode() for line in answer.read().split(b"\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines.pop() == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


# ---------------------------------------------------------------------- shapes


def test_an_answer_repeats_the_last_user_message(upstream: LlmUpstream) -> None:
    messages = [
        {"role": "system", "content": "You are an echo."},
        {"role": "user", "content": [{"type": "text", "text": "line 17"}]},
    ]
    first, again = (ask(upstream, {"model": "gpt-x", "messages": messages}) for _ in range(2))
    assert first.status == 200
    assert first.content == again.content == "line 17"
    assert first.body["object"] == "chat.completion"
    assert first.body["model"] == "gpt-x"
    assert first.body["choices"][0]["finish_reason"] == "stop"
    assert first.body["usage"] == again.body["usage"]
    assert first.body["usage"] == {
        "prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14,
    }  # fmt: skip
    assert first.body["id"] != again.body["id"]


def test_an_answer_may_be_filled_up_or_end_early(upstream: LlmUpstream) -> None:
    upstream.set(answer_tokens=50)
    filled = ask(upstream, question("line 3"))
    assert filled.content.startswith("line 3 and so on")
    assert filled.body["usage"]["completion_tokens"] == 50
    short = ask(upstream, question("line 3", max_tokens=1))
    assert (short.content, short.body["choices"][0]["finish_reason"]) == ("line", "length")


def test_a_stream_brings_the_words_and_then_the_usage(line: http.client.HTTPConnection) -> None:
    asked = question("one two three", stream=True, stream_options={"include_usage": True})
    answer = send(line, asked)
    assert answer.headers["content-type"].startswith("text/event-stream")
    *words, end, usage = events_of(answer)
    deltas = [chunk["choices"][0]["delta"] for chunk in words]
    assert deltas[0]["role"] == "assistant"
    assert [delta["content"] for delta in deltas] == ["one ", "two ", "three"]
    assert all(chunk["usage"] is None for chunk in [*words, end])
    assert (end["choices"][0]["finish_reason"], usage["choices"]) == ("stop", [])
    assert usage["usage"]["completion_tokens"] == 4
    assert len({chunk["id"] for chunk in [*words, end, usage]}) == 1


def test_without_being_asked_a_stream_says_nothing_of_usage(
    upstream: LlmUpstream, line: http.client.HTTPConnection
) -> None:
    upstream.set(chunks=7)
    events = events_of(send(line, question(stream=True)))
    assert len(events) == 8
    assert not any("usage" in event for event in events)


def test_a_chunk_comes_before_the_next_is_ready(
    upstream: LlmUpstream, line: http.client.HTTPConnection
) -> None:
    upstream.set(chunk_ms=60_000)
    answer = send(line, question("word by word", stream=True))
    assert b'"word "' in answer.readline()
    (call,) = upstream.calls()
    assert (call["chunks"], call["ended_at"]) == (1, None)


def test_chunks_are_apart(upstream: LlmUpstream, line: http.client.HTTPConnection) -> None:
    upstream.set(chunks=4, chunk_ms=30)
    assert len(events_of(send(line, question("word by word", stream=True)))) == 5
    (call,) = upstream.calls()
    assert call["ended_at"] - call["answered_at"] > 3 * 0.029


def test_embeddings_are_the_same_in_both_formats(upstream: LlmUpstream) -> None:
    asked = {"model": "emb", "input": ["one", "two"]}
    plain = ask(upstream, asked, EMBEDDINGS).body
    coded = ask(upstream, {**asked, "encoding_format": "base64"}, EMBEDDINGS).body
    vectors = [each["embedding"] for each in plain["data"]]
    decoded = [struct.unpack("<8f", base64.b64decode(e["embedding"])) for e in coded["data"]]
    assert [list(each) for each in decoded] == vectors
    assert vectors[0] != vectors[1]
    assert plain["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    alone = ask(upstream, {"model": "emb", "input": "two", "dimensions": 3}, EMBEDDINGS).body
    assert [each["embedding"] for each in alone["data"]] == [vectors[1][:3]]


@pytest.mark.parametrize(
    ("body", "path", "status", "code"),
    [
        ({"model": "gpt-x"}, CHAT, 400, "missing_required_parameter"),
        ({"model": "gpt-x", "messages": []}, CHAT, 400, "missing_required_parameter"),
        ({"model": "gpt-x", "messages": ["hello"]}, CHAT, 400, "invalid_type"),
        ({"messages": [{}]}, CHAT, 400, "missing_required_parameter"),
        ({"model": "gpt-x"}, EMBEDDINGS, 400, "missing_required_parameter"),
        ([1], CHAT, 400, None),
        ({**question(), "model": "gpt-y"}, CHAT, 404, "model_not_found"),
    ],
)
def test_a_bad_question_gets_an_error_in_openais_shape(
    upstream: LlmUpstream, body: Any, path: str, status: int, code: str | None
) -> None:
    upstream.set(models=["gpt-x"])
    heard = ask(upstream, body, path)
    assert (heard.status, heard.body["error"]["code"]) == (status, code)
    assert heard.body["error"]["type"] == "invalid_request_error"


def test_only_its_keys_open_it(upstream: LlmUpstream) -> None:
    upstream.set(keys=["sk-1", "sk-2"])
    wrong = ask(upstream, authorization="Bearer sk-3")
    assert (wrong.status, wrong.body["error"]["code"]) == (401, "invalid_api_key")
    assert ask(upstream).status == 401
    assert ask(upstream, authorization="Bearer sk-2").status == 200
    assert [call["key"] for call in upstream.calls()] == ["sk-3", None, "sk-2"]


def test_the_models_are_listed(upstream: LlmUpstream, line: http.client.HTTPConnection) -> None:
    upstream.set(models=["gpt-x", "gpt-y"])
    line.request("GET", "/v1/models")
    listed = json.loads(line.getresponse().read())
    assert [model["id"] for model in listed["data"]] == ["gpt-x", "gpt-y"]


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("limits", "refused_by"),
    [
        ({"rpm": 25}, "rpm"),
        ({"rpm": 25, "window": "sliding"}, "rpm"),
        ({"bucket": (0.001, 25)}, "bucket"),
        ({"tpm": 25 * 9}, "tpm"),  # nine for each question with its answer
    ],
)
def test_a_burst_from_many_connections_gets_exactly_the_limit(
    upstream: LlmUpstream, limits: dict[str, Any], refused_by: str
) -> None:
    upstream.set(**limits)
    statuses = burst(upstream, connections=20, each=5)
    assert (statuses.count(200), statuses.count(429)) == (25, 75)
    stats = upstream.stats()
    assert (stats["calls"], stats["answered"], stats["refused"]) == (100, 25, 75)
    assert stats["refused_by"] == {refused_by: 75}
    assert stats["tokens"] == 25 * 9


def test_a_sliding_window_holds_at_every_moment(upstream: LlmUpstream) -> None:
    upstream.set(rpm=10, window="sliding", window_s=0.2)
    eventually(
        lambda: burst(upstream, connections=5, each=10) and upstream.stats()["answered"] > 40
    )
    taken = [call["at"] for call in upstream.calls() if call["status"] == 200]
    assert all(later - earlier >= 0.2 - 1e-6 for earlier, later in zip(taken, taken[10:]))  # noqa: B905


def test_no_more_than_its_concurrency_are_in_flight(upstream: LlmUpstream) -> None:
    upstream.set(concurrency=3, latency_ms=30)
    statuses = burst(upstream, connections=10, each=5)
    assert statuses.count(200) >= 3
    taken = [call for call in upstream.calls() if call["status"] == 200]
    for call in taken:
        beside = [each for each in taken if each["at"] <= call["at"] < each["ended_at"]]
        assert len(beside) <= 3
    assert set(upstream.stats()["refused_by"]) == {"concurrency"}


def test_a_refusal_says_what_and_how_long(upstream: LlmUpstream) -> None:
    upstream.set(rpm=1)
    ask(upstream)
    heard = ask(upstream)
    assert heard.status == 429
    error = heard.body["error"]
    assert error["message"].startswith("Rate limit reached for gpt-x")
    assert (error["type"], error["param"], error["code"]) == (
        "requests", None, "rate_limit_exceeded",
    )  # fmt: skip
    assert 55 <= int(heard.headers["retry-after"]) <= 60
    upstream.set(retry_after="exact")
    assert 55 <= float(ask(upstream).headers["retry-after"]) < 60
    upstream.set(retry_after="none")
    assert "retry-after" not in ask(upstream).headers


@pytest.mark.parametrize("style", ["openai", "anthropic"])
def test_all_answers_carry_the_rates(upstream: LlmUpstream, style: str) -> None:
    upstream.set(rpm=2, tpm=900, headers=style)
    told = []
    for _ in range(3):
        heard = ask(upstream)
        assert any(name.startswith("anthropic") for name in heard.headers) == (style == "anthropic")
        told.append((heard.status, parse_rate_headers(heard.headers, time.time())))
    for number, (status, rates) in enumerate(told):
        assert rates is not None
        assert rates.requests is not None
        assert rates.tokens is not None
        assert status == (200, 200, 429)[number]
        assert (rates.requests.limit, rates.requests.remaining) == (2, (1, 0, 0)[number])
        assert (rates.tokens.limit, rates.tokens.remaining) == (900, (891, 882, 882)[number])
        assert 55 <= rates.requests.reset_s <= 61
        assert (rates.retry_after_s is not None) == (status == 429)


def test_headers_may_be_left_out(upstream: LlmUpstream) -> None:
    upstream.set(rpm=2, headers="none")
    assert parse_rate_headers(ask(upstream).headers, time.time()) is None


def test_each_key_may_have_the_limits_for_itself(upstream: LlmUpstream) -> None:
    upstream.set(rpm=1, per_key=True)
    keys = ["a", "b", "a", "b"]
    statuses = [ask(upstream, authorization=f"Bearer {key}").status for key in keys]
    assert statuses == [200, 200, 429, 429]


def test_whoever_does_not_heed_refusals_is_banned(upstream: LlmUpstream) -> None:
    upstream.set(rpm=1, ban={"after": 2, "within_s": 60, "for_s": 60})
    assert [ask(upstream).status for _ in range(4)] == [200, 429, 429, 403]
    assert upstream.stats()["refused_by"] == {"rpm": 2, "ban": 1}
    upstream.reset()
    assert ask(upstream).status == 200


def test_limits_change_while_it_runs(upstream: LlmUpstream) -> None:
    upstream.set(rpm=1)
    assert [ask(upstream).status for _ in range(2)] == [200, 429]
    upstream.set(rpm=2)
    assert [ask(upstream).status for _ in range(2)] == [200, 429]
    upstream.set(rpm=None)
    assert ask(upstream).status == 200


def test_an_upstream_may_slow_down_with_its_load(
    upstream: LlmUpstream, line: http.client.HTTPConnection
) -> None:
    upstream.set(latency_ms=50, slow_above=1, script=[{"hang_s": 60}])
    line.request("POST", CHAT, json.dumps(question()))
    eventually(lambda: upstream.stats()["in_flight"] == 1)
    ask(upstream)
    _, second = upstream.calls()
    assert second["ended_at"] - second["at"] > 2 * 0.049
    assert upstream.stats()["peak_in_flight"] == 2


# ---------------------------------------------------------------------- the script


def test_the_script_comes_before_the_limits(upstream: LlmUpstream) -> None:
    upstream.set(
        rpm=1,
        script=[
            {"status": 500, "times": 2},
            {"status": 429, "retry_after": 2.5, "message": "Not now."},
        ],
    )
    heard = [ask(upstream) for _ in range(5)]
    assert [each.status for each in heard] == [500, 500, 429, 200, 429]
    assert heard[0].body["error"]["type"] == "server_error"
    assert heard[2].headers["retry-after"] == "2.5"
    assert heard[2].body["error"]["message"] == "Not now."
    assert upstream.stats()["refused_by"] == {"script": 3, "rpm": 1}
    assert upstream.stats()["script_left"] == 0


def test_an_answer_may_hang(upstream: LlmUpstream) -> None:
    upstream.set(script=[{"hang_s": 0.1}])
    assert [ask(upstream).status for _ in range(2)] == [200, 200]
    slow, _ = upstream.calls()
    assert slow["ended_at"] - slow["at"] > 0.09


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_may_be_cut_in_its_middle(
    upstream: LlmUpstream, line: http.client.HTTPConnection, stream: bool
) -> None:
    upstream.set(script=[{"cut": True}])
    answer = send(line, question("a b c d", stream=stream))
    assert answer.status == 200
    with pytest.raises(http.client.IncompleteRead) as caught:
        answer.read()
    assert b"chatcmpl" in caught.value.partial
    assert b"[DONE]" not in caught.value.partial
    (call,) = upstream.calls()
    assert (call["cut"], call["broken_off"]) == (True, False)
    assert ask(upstream).status == 200


def test_a_connection_may_be_dropped_without_an_answer(upstream: LlmUpstream) -> None:
    upstream.set(script=[{"drop": True}])
    with pytest.raises(http.client.RemoteDisconnected):
        ask(upstream)
    assert upstream.calls()[0]["status"] is None


# ---------------------------------------------------------------------- what it remembers


def test_each_call_is_remembered(upstream: LlmUpstream) -> None:
    before = time.time()
    heard = ask(
        upstream, question("line 9"), authorization="Bearer sk-1", x_request_id="r-1",
        idempotency_key="i-1",
    )  # fmt: skip
    (call,) = upstream.calls()
    assert before <= call["at"] <= call["answered_at"] <= call["ended_at"] <= time.time()
    assert heard.body["id"] == f"chatcmpl-{call['id']}"
    expected = {
        "number": 1, "endpoint": CHAT, "key": "sk-1", "request_id": "r-1",
        "idempotency_key": "i-1", "model": "gpt-x", "asked": "line 9", "stream": False,
        "status": 200, "refused_by": None, "prompt_tokens": 5, "completion_tokens": 2,
        "tokens": 7, "chunks": 0, "cut": False, "broken_off": False,
    }  # fmt: skip
    assert {name: call[name] for name in expected} == expected
    ask(upstream, question("line 10"))
    assert [call["asked"] for call in upstream.calls(since=1)] == ["line 10"]
    upstream.reset()
    assert upstream.calls() == []
    assert upstream.stats()["calls"] == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_breaks_off_is_noticed_and_frees_its_place(
    upstream: LlmUpstream, line: http.client.HTTPConnection, stream: bool
) -> None:
    upstream.set(concurrency=1, latency_ms=0 if stream else 60_000, chunks=100, chunk_ms=1000)
    line.request("POST", CHAT, json.dumps(question(stream=stream)))
    eventually(lambda: upstream.stats()["in_flight"] == 1)
    if stream:
        line.getresponse().readline()
    else:
        assert ask(upstream).status == 429
    line.close()
    eventually(lambda: upstream.stats()["broken_off"] == 1)
    call = upstream.calls()[0]
    assert call["broken_off"]
    assert call["status"] == (200 if stream else None)
    assert upstream.stats()["in_flight"] == 0
    upstream.set(latency_ms=0, chunk_ms=0)
    assert ask(upstream).status == 200


def test_requests_that_follow_at_once_are_answered_in_their_order(upstream: LlmUpstream) -> None:
    upstream.set(script=[{"hang_s": 0.05}])
    wire = b""
    for text in ("first", "second"):
        body = json.dumps(question(text)).encode()
        wire += b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (
            CHAT.encode(), len(body), body,
        )  # fmt: skip
    with socket.create_connection(("127.0.0.1", upstream.port), timeout=20) as client:
        client.sendall(wire)
        heard = b""
        while b"second" not in heard:
            heard += client.recv(65536)
    assert heard.index(b"first") < heard.index(b"second")


def test_what_is_no_request_is_refused(upstream: LlmUpstream) -> None:
    with socket.create_connection(("127.0.0.1", upstream.port), timeout=20) as client:
        client.sendall(b"hello\r\n\r\n")
        heard = b"".join(iter(lambda: client.recv(65536), b""))
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert ask(upstream, path="/v1/nothing").status == 404


# ---------------------------------------------------------------------- steering and its end


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"rpm": -1}, "rpm"),
        ({"rmp": 1}, "rmp"),
        ({"headers": "github"}, "github"),
        ({"script": [{"state": 1}]}, "state"),
        ({"keys": {1, 2}}, "keys"),
    ],
)
def test_a_wrong_setting_is_refused_and_nothing_is_changed(
    upstream: LlmUpstream, wrong: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        upstream.set(concurrency=0, **wrong)
    assert ask(upstream).status == 200
    with pytest.raises(ValueError, match=why):
        LlmUpstream(**wrong)


def test_it_comes_back_at_the_same_place_with_its_settings() -> None:
    with LlmUpstream(rpm=1, latency_ms=0, jitter_ms=0) as upstream:
        upstream.set(rpm=0)
        url, pid = upstream.url, upstream.pid
        upstream.stop()
        assert not is_alive(pid)
        with pytest.raises(UpstreamGone):
            upstream.stats()
        with pytest.raises(ConnectionRefusedError):
            ask(upstream)
        upstream.start()
        assert upstream.url == url
        assert url.endswith(f":{upstream.port}/v1")
        assert ask(upstream).status == 429


def test_it_ends_with_its_parent_also_when_that_is_killed() -> None:
    text = (
        "from headway.testing import LlmUpstream\n"
        "with LlmUpstream() as upstream:\n"
        "    print(upstream.pid, flush=True)\n"
        "    input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    eventually(lambda: not is_alive(pid))


def test_it_runs_by_hand() -> None:
    command = [
        sys.executable, "-m", "headway.testing.llm_upstream", "--bucket", "1:2", "--key", "sk-1",
        "--ban", "5:60", "--until-stdin-closes",
    ]  # fmt: skip
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said, port = process.stdout.readline().rsplit(":", 1)
        assert said == "LLM upstream at http://127.0.0.1"
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        connection.request("GET", "/_control/settings")
        settings = json.loads(connection.getresponse().read())
        connection.close()
    assert settings["bucket"] == [1, 2]
    assert settings["keys"] == ["sk-1"]
    assert settings["ban"] == {"after": 5, "within_s": 60, "for_s": 300}
    assert process.returncode == 0, "its stdin was closed"
