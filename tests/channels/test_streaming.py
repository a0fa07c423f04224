"""Streams are cut into their events wherever the network has cut them, and counted."""

from __future__ import annotations

import json
from itertools import pairwise

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.apps.channels.money.billing import Usage
from headway.apps.channels.online import streaming
from headway.apps.channels.online.streaming import Count, Events, data_of, passed

STREAM = (
    b'data: {"a": 1}\n\n'
    b": a comment\r\n\r\n"
    b"event: x\r\ndata: one\r\ndata: two\r\n\r\n"
    b"data: three\r\r"
    b"data: mixed\n\r\n"
    b"data: [DONE]\n\n"
)
EVENTS = [
    b'data: {"a": 1}\n\n', b": a comment\r\n\r\n", b"event: x\r\ndata: one\r\ndata: two\r\n\r\n",
    b"data: three\r\r", b"data: mixed\n\r\n", b"data: [DONE]\n\n",
]  # fmt: skip


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(places), len(stream)]
    return [stream[begin:end] for begin, end in pairwise(marks)]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_whole_wherever_the_network_cuts(places: list[int]) -> None:
    events = Events()
    found = [event for part in cut(STREAM, places) for event in events.feed(part)]
    assert found == EVENTS
    assert events.rest() == b""


def test_byte_by_byte_each_comes_with_its_last_byte() -> None:
    events, found, came = Events(), [], b""
    for number in range(len(STREAM)):
        came += STREAM[number : number + 1]
        found += events.feed(STREAM[number : number + 1])
        assert b"".join(found) + events.rest() == came
    assert found == EVENTS


def test_what_is_not_complete_is_kept_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events()
    assert list(events.feed(b"data: half")) == []
    assert events.rest() == b"data: half"
    monkeypatch.setattr(streaming, "MOST_PENDING", 20)
    with pytest.raises(httpx2.RemoteProtocolError):
        list(events.feed(b"x" * 11))


SAID = [b'{"a": 1}', b"", b"one\ntwo", b"three", b"mixed", b"[DONE]"]


@pytest.mark.parametrize(("event", "data"), list(zip(EVENTS, SAID, strict=True)))
def test_what_an_event_says(event: bytes, data: bytes) -> None:
    assert data_of(event) == data


# ---------------------------------------------------------------------- counting


def chunk(**said: object) -> bytes:
    return b"data: " + json.dumps(said).encode() + b"\n\n"


def words(*texts: str) -> bytes:
    return chunk(choices=[{"delta": {"content": text}} for text in texts])


USAGE = {"prompt_tokens": 12, "completion_tokens": 5}
LAST = chunk(choices=[], usage=USAGE)


def test_the_last_chunk_says_what_was_used_and_is_for_those_who_asked() -> None:
    for wanted in (True, False):
        count = Count(400, wanted=wanted)
        assert count.keeps(words("hello"))
        assert count.keeps(LAST) is wanted
        assert count.keeps(b"data: [DONE]\n\n")
        assert count.done
        assert count.usage() == Usage(12, 5)


def test_a_chunk_with_words_is_kept_whatever_else_it_says() -> None:
    count = Count(0, wanted=False)
    assert count.keeps(chunk(choices=[{"delta": {"content": "x"}}], usage=USAGE))
    assert count.keeps(chunk(choices=[], usage=None))
    assert count.keeps(chunk(choices=[], prompt_filter_results=[]))
    assert count.usage() == Usage(12, 5)


def test_without_a_word_about_it_length_counts() -> None:
    count = Count(40, wanted=False)
    count.keeps(words("abcd", "efgh"))
    count.keeps(chunk(choices=[{"delta": {"reasoning_content": "abcd", "content": None}}]))
    called = {"tool_calls": [{"function": {"arguments": "abcd"}}, {"function": None}]}
    count.keeps(chunk(choices=[{"delta": called}]))
    assert count.usage() == Usage(10, 4, estimated=True)
    assert not count.done


@pytest.mark.parametrize("strange", [
    b"data: {\n\n", b"data: []\n\n", b": x\n\n", b"data:\n\n", b"\n\n", b"data: \xff\n\n",
    chunk(choices=5), chunk(choices=[5, {}, {"delta": 5}]), chunk(usage={"prompt_tokens": "x"}),
    chunk(choices=[{"delta": {"tool_calls": 5}}]),
])  # fmt: skip
def test_what_nobody_understands_is_for_the_client(strange: bytes) -> None:
    count = Count(8, wanted=False)
    assert count.keeps(strange)
    assert count.usage() == Usage(2, 0, estimated=True)


def test_only_headers_that_concern_the_client_are_passed_on() -> None:
    headers = {
        "content-type": "application/json", "x-request-id": "r", "retry-after": "3",
        "x-ratelimit-limit-requests": "60", "set-cookie": "secret", "openai-organization": "org",
        "content-length": "5", "transfer-encoding": "chunked", "content-encoding": "gzip",
    }  # fmt: skip
    assert dict(passed(headers, "fast")) == {
        b"content-type": b"application/json", b"x-request-id": b"r", b"retry-after": b"3",
        b"x-ratelimit-limit-requests": b"60", b"x-headway-channel": b"fast",
    }  # fmt: skip
