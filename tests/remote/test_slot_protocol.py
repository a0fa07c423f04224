"""What a client of slots asks next, with a server that answers by script."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from typing import Any

import httpx2
import pytest

from headway import BadStatus, Fail, Outcome, Pushback, Retry, SlotLost, Snooze
from headway.core.classify import classify_status, outcome_of
from headway.errors import NotAllowed, StoreError, StoreUnavailable
from headway.outcomes import outcome_of_block
from headway.remote import slot_protocol
from headway.remote.client import Client
from headway.remote.slot_protocol import Answer, outcome_words
from headway.remote.slots import RemoteSlot, wish_body
from tests.hands.kit import WAIT_S, eventually
from tests.remote.kit import URL, problem

WISH = {"upstreams": ["x.example"], "lane": "default"}


def granted(id: int = 7, **more: Any) -> httpx2.Response:
    body = {"status": "granted", "id": id, "fence": 70 + id, "upstream": "x.example",
            "lease_s": 60.0, "waited_s": 0.0, **more}  # fmt: skip
    return httpx2.Response(200, json=body)


def pending(id: int = 7, **more: Any) -> httpx2.Response:
    return httpx2.Response(202, json={"status": "pending", "id": id, "position": 2, **more})


def said(accepted: bool) -> httpx2.Response:
    return httpx2.Response(200, json={"id": 7, "fence": 77, "accepted": accepted})


def renewed(lease_s: float) -> httpx2.Response:
    return httpx2.Response(200, json={"id": 7, "fence": 77, "lease_s": lease_s})


GONE = problem(404, "unknown-slot")
REFUSED = httpx2.ConnectError("nobody is there")
CUT = httpx2.ReadError("the line is cut")


class Script:
    """Answers by what is asked for, in order: responses are given, errors raised. What is not
    scripted any more goes well.
    """

    def __init__(self, **answers: list[Any]) -> None:
        self._answers = {name: deque(each) for name, each in answers.items()}
        self.calls: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    def client(self) -> Client:
        return Client(URL, "hw_secret", transport=httpx2.MockTransport(self._answer),
                      async_transport=httpx2.MockTransport(self._aanswer))  # fmt: skip

    def slot(self, timeout: float | None = WAIT_S, **more: Any) -> RemoteSlot:
        return RemoteSlot(self.client(), WISH, timeout, **more)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        what = request.url.path.removeprefix("/api/slots").lstrip("/") or "acquire"
        name = "leave" if request.method == "DELETE" else what.rpartition("/")[2]
        self.calls.append("leave " + what if name == "leave" else what)
        self.bodies.append(json.loads(request.content) if request.content else {})
        waiting = self._answers.get(name)
        answer = waiting.popleft() if waiting else self._usual(name)
        if isinstance(answer, Exception):
            raise answer
        return httpx2.Response(answer.status_code, content=answer.content)  # one may be said twice

    def _usual(self, name: str) -> httpx2.Response:
        match name:
            case "acquire" | "poll":
                return granted()
            case "renew":
                return renewed(60.0)
            case "leave":
                return httpx2.Response(200, json={"id": 7, "ended": True})
        return said(True)

    async def _aanswer(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.set()
        await asyncio.to_thread(self.may_answer.wait, WAIT_S)
        return self._answer(request)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_protocol, "SOON_S", 0.001)


# ---------------------------------------------------------------------- waiting


def test_the_first_answer_comes_at_once_and_the_others_when_there_is_news() -> None:
    script = Script(acquire=[pending()], poll=[pending(), granted()])
    heard: list[Any] = []
    with script.slot(timeout=30, heard=heard.append) as slot:
        assert (slot.id, slot.fence, slot.upstream) == (7, 77, "x.example")
    assert script.calls == ["acquire", "7/poll", "7/poll", "7/release"]
    first, second = script.bodies[:2]
    assert (first["wait_ms"], first["timeout_s"]) == (0, pytest.approx(30, abs=1))
    assert second == {"wait_ms": 20_000}
    assert [each.position for each in heard if isinstance(each, Answer)] == [2, 2]
    assert script.bodies[-1] == {"fence": 77}


def test_who_is_forgotten_asks_anew() -> None:
    script = Script(acquire=[pending(7), pending(8)], poll=[GONE, granted(8)])
    with script.slot():
        assert script.calls == ["acquire", "7/poll", "acquire", "8/poll"]


@pytest.mark.parametrize("trouble", [REFUSED, CUT, problem(503, "busy"), problem(502, "")])
def test_a_server_that_is_away_for_a_moment_is_asked_again(trouble: Any) -> None:
    script = Script(acquire=[trouble, pending()], poll=[trouble, trouble, granted()])
    heard: list[Any] = []
    with script.slot(timeout=None, heard=heard.append):
        assert script.calls == ["acquire", "acquire", "7/poll", "7/poll", "7/poll"]
    assert [isinstance(each, StoreUnavailable) for each in heard] == [True, False, True, True]


def test_without_a_time_limit_it_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_protocol, "AWAY_S", 0.2)
    script = Script(acquire=[pending()], poll=[REFUSED] * 100)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        script.slot(timeout=None).__enter__()
    assert script.calls[-1] == "leave 7"


def test_what_cannot_be_helped_is_raised_at_once() -> None:
    for answer, error in (
        (problem(401, "no-token"), NotAllowed),
        (problem(422, "wrong-input"), ValueError),
        (problem(404, "about:blank"), StoreError),  # no Headway server, or an old one
    ):
        script = Script(acquire=[answer])
        with pytest.raises(error):
            script.slot().__enter__()
        assert script.calls == ["acquire"]


def test_when_the_server_says_that_time_is_over_nobody_need_leave() -> None:
    script = Script(acquire=[pending()], poll=[problem(409, "timeout")])
    with pytest.raises(TimeoutError, match=r"no slot at x\.example within 5 s"):
        script.slot(timeout=5).__enter__()
    assert script.calls == ["acquire", "7/poll"]


@pytest.mark.parametrize(
    ("answer", "last"), [(pending(), "leave 7"), (granted(), "7/release"), (CUT, "acquire")]
)
def test_who_is_cancelled_before_the_first_answer_still_reads_it(answer: Any, last: str) -> None:
    script = Script(acquire=[answer])
    script.may_answer.clear()

    async def play() -> None:
        entering = asyncio.ensure_future(script.slot().__aenter__())
        await asyncio.to_thread(script.asked.wait, WAIT_S)
        entering.cancel()
        await asyncio.sleep(0)
        script.may_answer.set()
        with pytest.raises(asyncio.CancelledError):
            await entering
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())
    assert script.calls[-1] == last
    assert "7/poll" not in script.calls


def test_a_lease_is_counted_from_its_grant_and_not_from_the_question() -> None:
    waiting = slot_protocol.Waiting(WISH, None)
    waiting._asked_first_at = asked_at = slot_protocol.lease_clock() - 100.0
    answer = Answer("granted", 7, lease_s=60.0, waited_s=90.0)
    # Asked 100 s ago, granted there after 90 s or more: that is 10 s ago at most.
    assert waiting._granted_at(answer, asked_at) == asked_at + 90.0
    answer.waited_s = 0.0  # the clock there was set back
    assert waiting._granted_at(answer, asked_at) == asked_at
    answer.waited_s = 1e6
    assert waiting._granted_at(answer, asked_at) <= slot_protocol.lease_clock()


# ---------------------------------------------------------------------- holding


def test_a_renewal_is_tried_again_while_the_lease_lasts() -> None:
    script = Script(acquire=[granted(lease_s=3.0)], renew=[REFUSED, CUT, renewed(60.0)])
    with script.slot() as slot:
        eventually(lambda: script.calls.count("7/renew") == 3)
    assert not slot.lost.is_set()
    assert script.calls == ["acquire", *["7/renew"] * 3, "7/release"]


@pytest.mark.parametrize("answer", [GONE, problem(409, "stale-fence")])
def test_a_lease_that_is_over_there_is_lost_here_at_once(answer: Any) -> None:
    script = Script(acquire=[granted(lease_s=3.0)], renew=[answer], release=[answer])
    told = threading.Event()

    def hold() -> None:
        with script.slot(on_lost=told.set) as slot:
            assert slot.lost.wait(WAIT_S)

    with pytest.raises(SlotLost):
        hold()
    assert told.is_set()


def test_what_is_called_for_a_lost_slot_may_fail() -> None:
    script = Script(acquire=[granted(lease_s=3.0)], renew=[GONE], release=[said(False)])

    def fail() -> None:
        raise LookupError

    def hold() -> None:
        with script.slot(on_lost=fail) as slot:
            assert slot.lost.wait(WAIT_S)

    with pytest.raises(SlotLost):
        hold()


# ---------------------------------------------------------------------- giving back


def hold(script: Script) -> RemoteSlot:
    with script.slot() as slot:
        return slot


@pytest.mark.parametrize("answer", [GONE, said(False)])
def test_a_release_that_comes_too_late_says_so(answer: Any) -> None:
    with pytest.raises(SlotLost, match="over when it was given back"):
        hold(Script(release=[answer]))


@pytest.mark.parametrize("answer", [GONE, said(False)])
def test_a_release_whose_answer_was_lost_is_sent_again(answer: Any) -> None:
    script = Script(release=[REFUSED, CUT, answer])
    assert not hold(script).lost.is_set()
    assert script.calls == ["acquire", *["7/release"] * 3]


def test_who_is_cancelled_while_giving_it_back_still_gives_it_back() -> None:
    script = Script()

    async def hold(inside: asyncio.Event) -> None:
        async with script.slot():
            script.asked.clear()
            script.may_answer.clear()
            inside.set()

    async def play() -> None:
        inside = asyncio.Event()
        holding = asyncio.ensure_future(hold(inside))
        await inside.wait()
        await asyncio.to_thread(script.asked.wait, WAIT_S)
        holding.cancel()
        script.may_answer.set()
        with pytest.raises(asyncio.CancelledError):
            await holding
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())
    assert script.calls == ["acquire", "7/release"]


def test_a_slot_that_cannot_be_given_back_goes_back_by_itself(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headway.remote.slots.GIVE_BACK_S", 0.1)
    for answers in ([REFUSED] * 100, [problem(403, "scope")]):
        caplog.clear()
        assert not hold(Script(release=answers)).lost.is_set()
        assert "could not be given back" in caplog.text


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (outcome_of_block(None), {}),
        (outcome_of(classify_status(200)), {"status": 200}),
        (outcome_of(classify_status(429, retry_after_s=5)), {"status": 429, "retry_after_s": 5.0}),
        (outcome_of_block(Pushback(retry_after=9)), {"status": 429, "retry_after_s": 9.0,
                                                     "error": "429"}),
        (outcome_of_block(Pushback("a page", status=200)), {"status": 429, "error": "a page"}),
        (outcome_of_block(Pushback("go", ban=True)), {"status": 412, "error": "go"}),
        (outcome_of_block(BadStatus(503)), {"status": 503, "error": "HTTP 503"}),
        (outcome_of_block(BadStatus(404)), {"status": 404, "error": "HTTP 404"}),
        (outcome_of_block(ConnectionError()), {"status": 504, "error": "ConnectionError"}),
        (outcome_of_block(LookupError()), {"error": "LookupError"}),
        (outcome_of_block(Retry("again", after=5)), {"error": "again"}),
        (outcome_of_block(Fail("never\0\udc80")), {"error": "never?"}),
        (outcome_of_block(Snooze(5)), {"error": "returned"}),
        (outcome_of_block(KeyboardInterrupt()), {"error": "cancelled"}),
        (Outcome.failed("after a good answer", status=200), {"error": "after a good answer"}),
    ],
)  # fmt: skip
def test_how_the_block_ended_as_the_server_is_told(outcome: Outcome, words: dict[str, Any]) -> None:
    assert outcome_words(outcome) == words


def test_what_was_not_said_is_left_to_the_server() -> None:
    plain: dict[str, Any] = {
        "lane": "default", "tenant": "", "key": None, "tools": (), "weight": 1.0, "priority": 5,
        "lease_s": None, "holder": "",
    }  # fmt: skip
    body = wish_body(("x.example",), **plain)
    assert "process" in body.pop("holder")
    assert body == {"upstreams": ["x.example"], "lane": "default", "weight": 1.0, "priority": 5}
    body = wish_body(
        (), **{**plain, "tenant": "ann", "key": "k", "lease_s": 5.0, "holder": "x" * 999}
    )
    assert (body["tenant"], body["key"], body["lease_s"]) == ("ann", "k", 5.0)
    assert len(body["holder"]) == 200
