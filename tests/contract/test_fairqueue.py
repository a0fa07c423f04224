"""The fair queue: what its clients are answered, and when."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.contract.fairqueue_kit import (
    EARLY_S,
    QUEUE,
    REPLY_S,
    SOON_S,
    WINDOW_S,
    Queue,
    granted,
    ms,
    new_host,
    pending,
    shared_service,
)
from tests.hands.kit import eventually
from tests.postgres import postgres
from tests.servers import STORES, Server


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def queue(request: pytest.FixtureRequest) -> Queue:
    return shared_service(request.param).queue


@pytest.fixture(params=STORES)
def queue_everywhere(request: pytest.FixtureRequest) -> Queue:
    return shared_service(request.param).queue


# ---------------------------------------------------------------------- granted and pending


def test_a_slot_that_is_free_is_granted_on_the_first_call(queue_everywhere: Queue) -> None:
    said = queue_everywhere.ask(new_host("one"))
    assert set(said) == {"result", "slotToken", "queryToken"}
    assert said["result"] == "granted"
    assert said["slotToken"]
    assert said["queryToken"]


def test_who_must_wait_hears_so_after_the_poll_window_and_keeps_its_token(
    queue_everywhere: Queue,
) -> None:
    queue, host = queue_everywhere, new_host("one")
    slot = queue.hold(host)
    began = time.monotonic()
    said = queue.ask(host, "192.0.2.2/32")
    assert WINDOW_S <= time.monotonic() - began < REPLY_S
    assert set(said) == {"result", "queryToken"}
    assert said["result"] == "pending"
    for _ in range(2):
        began = time.monotonic()
        assert queue.poll(said["queryToken"]) == said
        assert time.monotonic() - began >= WINDOW_S
    queue.release(host, slot)
    later = queue.poll(said["queryToken"])
    assert (later["result"], later["queryToken"]) == ("granted", said["queryToken"])
    assert later["slotToken"] != slot


def test_a_poll_that_waits_is_answered_when_the_slot_comes_free(queue_everywhere: Queue) -> None:
    """Long before its window is over."""
    queue, host = queue_everywhere, new_host("attached")
    slot = queue.hold(host)
    waiting = queue.begin(queue.ask, host, "192.0.2.2/32")
    queue.line_is(host, 1)
    assert not waiting.done()
    released = time.monotonic()
    queue.release(host, slot)
    assert granted(waiting).at - released < SOON_S


def test_slots_of_a_host_are_granted_in_the_order_of_asking(queue: Queue) -> None:
    host = new_host("attached")
    slot = queue.hold(host, "192.0.2.100/32")
    waiting = {}
    for n in range(4):
        waiting[f"192.0.2.{n}/32"] = queue.begin(queue.ask, host, f"192.0.2.{n}/32")
        queue.attached(host, n + 1)
    assert queue.hand_on(host, slot, waiting) == list(waiting)


def test_a_grant_that_came_between_two_polls_is_kept_for_a_moment(queue: Queue) -> None:
    host = new_host("one")
    slot = queue.hold(host)
    token = queue.must_wait(host, "192.0.2.2/32")
    queue.release(host, slot)
    assert queue.holders(host) == 1  # it is kept for the one who was here a moment ago
    said = queue.poll(token)
    assert said["result"] == "granted"


def test_a_repeated_poll_hears_of_the_same_grant_until_the_clean_up(queue: Queue) -> None:
    host = new_host("kept")
    began = time.monotonic()
    said = queue.ask(host)
    token = said["queryToken"]
    assert queue.poll(token) == said
    assert queue.poll(token) == said
    eventually(lambda: queue.poll(token) == {"result": "timeout"})
    assert time.monotonic() - began >= 1.0 - EARLY_S
    assert queue.cancel(token) == "noop"  # whoever has a slot for so long gives it back itself
    assert queue.holders(host) == 1  # only the name of the wait is forgotten
    queue.release(host, said["slotToken"])
    assert queue.holders(host) == 0


def test_who_has_been_away_too_long_loses_its_grant_but_not_its_place_in_time(
    queue: Queue,
) -> None:
    host = new_host("absent")
    slot = queue.hold(host)
    away = queue.must_wait(host, "192.0.2.2/32")
    queue.line_is(host, 0)
    later = queue.begin(queue.wait, host, "192.0.2.3/32")
    queue.line_is(host, 1)
    back = queue.begin(queue.wait_on, pending(away))
    queue.line_is(host, 2)
    queue.release(host, slot)
    queue.release(host, granted(back).said["slotToken"])
    granted(later)


def test_one_host_is_one_host_however_it_is_spelled(queue: Queue) -> None:
    host = new_host("one")
    queue.hold(host)
    for spelled in (host.upper(), f"{host}.", f" {host} "):
        queue.must_wait(spelled, "192.0.2.2/32")


def test_a_host_can_be_named_by_its_hash_alone(queue: Queue) -> None:
    hash = new_host("one")
    said = {"hostnameHash": hash, "ipBucket": "192.0.2.1/32", "now": ms()}
    assert queue.post("acquire", said)["result"] == "granted"
    assert queue.post("acquire", said)["result"] == "pending"


def test_the_number_of_slots_per_host_and_per_ip_holds(queue: Queue) -> None:
    host = new_host("two")
    queue.hold(host, "192.0.2.1/32")
    token = queue.must_wait(host, "192.0.2.1/32")  # one for each IP, unless said otherwise
    queue.hold(host, "192.0.2.2/32")
    queue.must_wait(host, "192.0.2.3/32")
    assert queue.holders(host) == 2
    assert queue.poll(token)["result"] == "pending"


# ---------------------------------------------------------------------- throttled


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_breaker_that_is_open_sends_clients_away_on_their_first_call(
    queue: Queue, status: int
) -> None:
    host = new_host("one")
    queue.report(host, status, 3)
    slot = queue.hold(host)
    queue.release(host, slot, status=status)  # the fourth in a row
    said = queue.ask(host)
    assert (said["result"], said["throttleCode"]) == ("throttled", status)
    assert 50 <= said["throttleRetryAfter"] <= 60
    assert set(said) <= {"result", "throttleCode", "throttleRetryAfter", "reason"}


@pytest.mark.parametrize("status", [200, 404, 403, 502, 504])
def test_other_answers_do_not_open_it(queue: Queue, status: int) -> None:
    host = new_host("one")
    queue.report(host, status, 20)
    queue.hold(host)


def test_it_opens_at_a_share_of_all_answers(queue: Queue) -> None:
    host = new_host("one")
    for status in (200, 503, 200, 200, 200, 200, 200):
        queue.report(host, status)
    queue.release(host, queue.hold(host))
    queue.report(host, 503)  # two of eight, and not in a row
    assert queue.ask(host)["result"] == "throttled"


def test_a_poll_that_waits_is_sent_away_at_once_when_the_breaker_opens(
    queue_everywhere: Queue,
) -> None:
    queue, host = queue_everywhere, new_host("attached")
    queue.hold(host)
    waiting = [queue.begin(queue.ask, host, f"192.0.2.{n}/32") for n in range(3)]
    queue.line_is(host, 3)
    queue.report(host, 503, 4)
    opened = time.monotonic()
    for each in waiting:
        reply = each.result(REPLY_S)
        assert (reply.result, reply.said["throttleCode"]) == ("throttled", 503)
        assert reply.at - opened < SOON_S
    assert queue.in_line(host) == 0


def test_who_polls_later_hears_of_it_once_and_is_forgotten(queue: Queue) -> None:
    host = new_host("one")
    queue.hold(host)
    token = queue.must_wait(host, "192.0.2.2/32")
    queue.report(host, 503, 4)
    assert queue.poll(token)["result"] == "throttled"
    assert queue.poll(token) == {"result": "timeout"}


def test_after_its_time_one_probe_goes_and_decides_for_all(queue: Queue) -> None:
    host = new_host("shy")
    queue.report(host, 503, 4)
    opened = time.monotonic()
    assert queue.ask(host)["throttleRetryAfter"] == 1
    said = eventually(lambda: (it := queue.ask(host))["result"] == "granted" and it)
    assert time.monotonic() - opened >= 1.0 - EARLY_S
    other = queue.must_wait(host, "192.0.2.2/32")  # there is room, but only one may try
    queue.release(host, said["slotToken"], status=200)
    assert queue.poll(other)["result"] == "granted"
    queue.hold(host, "192.0.2.3/32")


@pytest.mark.soak
def test_a_probe_that_comes_back_unwell_closes_it_again(queue: Queue) -> None:
    host = new_host("shy")
    queue.report(host, 503, 4)
    said = eventually(lambda: (it := queue.ask(host))["result"] == "granted" and it)
    queue.release(host, said["slotToken"], status=500)
    assert queue.ask(host, "192.0.2.2/32")["throttleCode"] == 500


def test_a_client_may_say_how_long_a_host_stays_closed(queue: Queue) -> None:
    host = new_host("one")
    queue.report(host, 429, 4)
    assert queue.ask(host)["throttleRetryAfter"] > 40
    said = queue.ask(host, throttleTimeWindowSeconds=30)
    assert (said["result"], said["throttleCode"]) == ("throttled", 429)
    assert 20 <= said["throttleRetryAfter"] <= 30


def test_a_retry_after_beyond_the_wait_sends_clients_away(queue: Queue) -> None:
    host = new_host("attached")
    slot = queue.hold(host)
    waiting = queue.begin(queue.ask, host, "192.0.2.2/32")
    queue.line_is(host, 1)
    queue.release(host, slot, status=429, retryAfter=120)
    for said in (waiting.result(REPLY_S).said, queue.ask(host)):
        assert (said["result"], said["throttleCode"]) == ("throttled", 429)
        assert 110 <= said["throttleRetryAfter"] <= 120


def test_a_retry_after_within_the_wait_is_waited_for(queue: Queue) -> None:
    host = new_host("attached")
    queue.report(host, 503, retryAfter=0.5)
    closed = time.monotonic()
    waiting = queue.begin(queue.ask, host)
    assert granted(waiting).at - closed >= 0.5 - EARLY_S


# ---------------------------------------------------------------------- timeout


def test_who_has_waited_for_too_long_hears_timeout(queue_everywhere: Queue) -> None:
    queue, host = queue_everywhere, new_host("hasty")
    queue.hold(host)
    began = time.monotonic()
    assert queue.wait(host, "192.0.2.2/32") == {"result": "timeout"}
    assert 0.5 <= time.monotonic() - began < 0.5 + SOON_S
    assert queue.in_line(host) == 0


@pytest.mark.parametrize("token", [
    "nobody-knows-it", "1.guessed", "ffffffffffffffff.x", "-1.x", "1.", ".", "1.1.x", "\u0000",
    "٣.x",
])  # fmt: skip
def test_a_token_that_nobody_knows_is_timeout(queue: Queue, token: str) -> None:
    began = time.monotonic()
    assert queue.poll(token) == {"result": "timeout"}
    assert time.monotonic() - began < SOON_S


def test_who_does_not_poll_any_more_is_forgotten_and_who_polls_is_not(queue: Queue) -> None:
    host = new_host("idle")
    queue.hold(host)
    gone = queue.must_wait(host, "192.0.2.2/32")
    seen = time.monotonic()
    there = queue.must_wait(host, "192.0.2.3/32")
    eventually(lambda: queue.poll(there) == pending(there) and len(queue.sessions(host)) == 1)
    assert time.monotonic() - seen >= 0.9
    assert queue.poll(gone) == {"result": "timeout"}
    assert queue.poll(there) == pending(there)


# ---------------------------------------------------------------------- too many who wait


def test_more_than_may_wait_at_a_host_stay_pending_and_are_served_in_turn(queue: Queue) -> None:
    """That the line is full is a reason inside, and never an answer."""
    host = new_host("crowd")
    slot = queue.hold(host)
    ips = [f"192.0.2.{n}/32" for n in range(5)]
    waiting = {ip: queue.begin(queue.wait, host, ip) for ip in ips}
    queue.attached(host, 5)
    assert queue.in_line(host) == 2
    assert set(queue.hand_on(host, slot, waiting)) == set(ips)


def test_more_than_may_wait_of_one_ip_stay_pending_too(queue: Queue) -> None:
    host = new_host("narrow")
    slot = queue.hold(host, "192.0.2.9/32")
    waiting = {f"flood {n}": queue.begin(queue.wait, host, "192.0.2.1/32") for n in range(4)}
    queue.attached(host, 4)
    assert queue.in_line(host) == 1
    waiting["other"] = queue.begin(queue.wait, host, "192.0.2.2/32")
    queue.attached(host, 5)
    assert queue.in_line(host) == 2
    order = queue.hand_on(host, slot, waiting)
    assert "other" in order[:2]  # whoever floods the line does not go before all others


def test_who_finds_the_line_full_hears_pending_and_is_not_forgotten(queue: Queue) -> None:
    host = new_host("full")
    slot = queue.hold(host)
    tokens = [queue.must_wait(host, f"192.0.2.{n}/32") for n in range(3)]
    assert [queue.poll(token)["result"] for token in tokens] == ["pending"] * 3
    waiting = {each: queue.begin(queue.wait_on, pending(each)) for each in tokens}
    assert set(queue.hand_on(host, slot, waiting)) == set(tokens)


# ---------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "PATCH", "DELETE"])
def test_any_method_will_do(queue: Queue, method: str) -> None:
    host = new_host("one")
    said = {"hostname": host, "ipBucket": "192.0.2.1/32", "now": ms()}
    answer = queue.api.send(method, f"{QUEUE}/acquire", json=said).json()
    assert answer["result"] == "granted"
    body = {"queryToken": answer["queryToken"]}
    assert queue.api.send(method, f"{QUEUE}/cancel", json=body).json() == {"result": "canceled"}
    said = {"hostname": host, "slotToken": answer["slotToken"]}
    assert queue.api.send(method, f"{QUEUE}/release", json=said).json() == {"result": "ok"}
    body = {"hostname": host, "status": 200}
    assert queue.api.send(method, f"{QUEUE}/report", json=body).json() == {"result": "ok"}


@pytest.mark.parametrize("route", ["acquire", "release", "cancel", "report"])
@pytest.mark.parametrize("body", [
    b"", b"{", b"nonsense", b"\xff", b"[]", b"5", b'"text"', b"null", b"{} {}", b'{"a": 1,}',
    b'{"hostname": {}, "queryToken": {}, "status": {}, "slotToken": {}}',
])  # fmt: skip
def test_what_is_no_json_or_of_another_shape_is_400(queue: Queue, route: str, body: bytes) -> None:
    queue.api.problem(400, "POST", f"{QUEUE}/{route}", "wrong-input", content=body)


@pytest.mark.parametrize("body", [
    {}, {"hostname": ""}, {"hostname": "  "}, {"hostname": None}, {"hostname": "."},
    {"hostname": "a\u0000b"}, {"hostname": "x" * 501}, {"ipBucket": "192.0.2.1/32"},
])  # fmt: skip
def test_a_host_is_needed(queue: Queue, body: dict[str, object]) -> None:
    queue.api.problem(400, "POST", f"{QUEUE}/acquire", "wrong-input", json=body)
    queue.api.problem(400, "POST", f"{QUEUE}/report", "wrong-input", json={"status": 503, **body})


def test_a_report_needs_a_status(queue: Queue) -> None:
    body = {"hostname": new_host("one")}
    queue.api.problem(400, "POST", f"{QUEUE}/report", "wrong-input", json=body)


@pytest.mark.parametrize("route", ["acquire", "release", "cancel", "report"])
def test_a_body_of_more_than_a_mebibyte_is_413(queue: Queue, route: str) -> None:
    host = new_host("two")
    start = f'{{"hostname": "{host}", "status": 200, "more": "'.encode()

    def body(size: int) -> bytes:
        return start + b"x" * (size - len(start) - 2) + b'"}'

    assert queue.api.send("POST", f"{QUEUE}/{route}", content=body(1 << 20)).status_code == 200
    too_large = body((1 << 20) + 1)
    queue.api.problem(413, "POST", f"{QUEUE}/{route}", "too-large", content=too_large)
    chunks = iter([too_large[:500_000], too_large[500_000:]])  # it does not say how large it is
    queue.api.problem(413, "POST", f"{QUEUE}/{route}", "too-large", content=chunks)


def test_any_text_may_name_an_ip_bucket() -> None:
    queue = shared_service("postgres").queue  # which does not take all text
    names = ("", "2001:db8::/64", "no address at all", "a\u0000b", "x" * 500, "日本", "*", "a\nb")
    held = {name: new_host("zombie") for name in names}
    slots = {name: queue.hold(host, name) for name, host in held.items()}
    rested = {name: new_host("zombie") for name in names}
    for name, host in rested.items():
        queue.release(host, queue.hold(host, name), status=200)
    for name, host in held.items():
        eventually(lambda host=host: queue.holders(host) == 0)  # its lease is over
        queue.release(host, slots[name])
    for name, host in rested.items():
        assert queue.wait(host, name)["result"] == "granted"


def test_what_else_a_client_sends_is_of_no_interest(queue: Queue) -> None:
    host = new_host("one")
    said = queue.ask(host, userAgent="x", extra={"a": [1]}, queryToken=None, now=None)
    queue.release(host, said["slotToken"], extra=5, hostnameHash=None, ipBucket=None)
    assert queue.holders(host) == 0


@pytest.mark.soak
def test_replies_come_in_time_also_while_the_store_is_away(tmp_path: Path) -> None:
    """What was said meanwhile is done when it is back."""
    file = tmp_path / "config.json"
    settings = {"maxSlotPerHost": 1, "pollWindowMs": 100, "maxWaitMs": 60_000}
    file.write_text(json.dumps({"fairQueue": settings}))
    with postgres() as database:
        server = Server(tmp_path, database.url(), fairqueue=str(file))
        server.start()
        queue, host = Queue(server.url), new_host("any")
        slot = queue.hold(host)
        token, other = queue.must_wait(host, "192.0.2.2/32"), queue.must_wait(host, "192.0.2.3/32")
        database.stop("immediate")
        waiting = queue.begin(queue.poll, token)
        newcomer = queue.begin(queue.ask, new_host("any"))
        said = [queue.begin(queue.release, host, slot), queue.begin(queue.report, host, 200),
                queue.begin(queue.cancel, other)]  # fmt: skip
        assert waiting.result().said == pending(token)
        assert newcomer.result().result == "overloaded"
        assert [each.result().said for each in said] == [None, None, "canceled"]
        database.start()
        assert queue.wait_on(pending(token))["result"] == "granted"
        assert queue.poll(other) == {"result": "timeout"}
        queue.close()
        server.close()
