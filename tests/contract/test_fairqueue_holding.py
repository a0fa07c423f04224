"""Slots of the fair queue that are held: giving them back, and when they come free."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from tests.contract.fairqueue_kit import (
    CLAIM_S,
    EARLY_S,
    HOLD_S,
    SOON_S,
    Caller,
    Queue,
    Reply,
    granted,
    ms,
    new_host,
    pending,
    shared_service,
)
from tests.hands.kit import eventually

HOUR_MS = 3_600_000.0
SMOOTH_S = HOLD_S / 2


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def queue(request: pytest.FixtureRequest) -> Queue:
    return shared_service(request.param).queue


# ---------------------------------------------------------------------- giving back


@pytest.mark.parametrize("token", [
    None, "", "nobody-knows-it", "1.1.guessed", "ffffffffffffffff.1.x", "1", "\u0000", "x" * 200,
])  # fmt: skip
def test_a_release_is_ok_whatever_it_names(queue: Queue, token: str | None) -> None:
    queue.release(new_host("one"), token, status=200)
    queue.post("release", {})


def test_a_slot_is_given_back_once(queue: Queue) -> None:
    host = new_host("one")
    first = queue.hold(host)
    queue.release(host, first)
    second = queue.hold(host)
    for _ in range(3):
        queue.release(host, first)
    assert queue.holders(host) == 1
    queue.release(host, second)
    assert queue.holders(host) == 0


def test_the_token_of_a_wait_is_no_token_of_its_slot(queue: Queue) -> None:
    host = new_host("one")
    said = queue.ask(host)
    queue.release(host, said["queryToken"])
    head, _, rest = said["slotToken"].partition(".")
    for wrong in (f"{head}.{rest}x", f"{head}.0.{rest.partition('.')[2]}", said["slotToken"][:-1]):
        queue.release(host, wrong)
    assert queue.holders(host) == 1


def test_a_release_is_answered_at_once_however_long_the_slot_must_be_held(queue: Queue) -> None:
    host = new_host("long-held")
    slot = queue.hold(host)
    began = time.monotonic()
    queue.release(host, slot)
    assert time.monotonic() - began < SOON_S
    queue.must_wait(host, "192.0.2.2/32")  # it is not free yet


# ---------------------------------------------------------------------- the minimum hold


def two_held(queue: Queue, host: str) -> tuple[list[str], list[Future[Reply]]]:
    """Both slots of a host, and two who wait for them."""
    slots = [queue.hold(host, f"192.0.2.{n}/32") for n in (1, 2)]
    waiting = [queue.begin(queue.ask, host, f"192.0.2.{n}/32") for n in (3, 4)]
    queue.attached(host, 2)
    return slots, waiting


def test_slots_come_free_after_their_minimum_hold_and_one_after_the_other(queue: Queue) -> None:
    host = new_host("held")
    slots, waiting = two_held(queue, host)
    called = time.monotonic()
    for slot in slots:
        queue.release(host, slot, hitUpstreamAtMs=ms(), now=ms())
    first, second = sorted(granted(each).at for each in waiting)
    assert called + HOLD_S - EARLY_S <= first < called + HOLD_S + SOON_S
    assert first + SMOOTH_S - EARLY_S <= second < first + SMOOTH_S + SOON_S


def test_a_call_that_was_long_ago_holds_nothing_back(queue: Queue) -> None:
    host = new_host("held")
    slot = queue.hold(host)
    queue.hold(host, "192.0.2.2/32")
    waiting = queue.begin(queue.ask, host, "192.0.2.3/32")
    granted_at = time.monotonic()
    eventually(lambda: time.monotonic() - granted_at > HOLD_S)  # the slot is really held so long
    released = time.monotonic()
    queue.release(host, slot, hitUpstreamAtMs=ms() - HOUR_MS, now=ms())
    assert granted(waiting).at - released < HOLD_S - EARLY_S


def test_a_call_in_the_future_was_now_at_the_latest(queue: Queue) -> None:
    """Also if the client's clock is an hour off, or weeks."""

    def release_ahead(ahead_ms: float) -> None:
        host = new_host("held")
        slots, waiting = two_held(queue, host)
        released = time.monotonic()
        for slot in slots:
            now_ms = ms() + ahead_ms
            queue.release(host, slot, hitUpstreamAtMs=now_ms + HOUR_MS, now=now_ms)
        first, second = sorted(granted(each).at for each in waiting)
        assert released + HOLD_S - EARLY_S <= first < released + HOLD_S + SOON_S
        assert second < released + HOLD_S + SMOOTH_S + SOON_S

    at_once(queue, release_ahead, 0.0, HOUR_MS, -HOUR_MS, 400 * HOUR_MS)


def test_what_counts_is_how_long_before_its_own_now_a_client_has_called(queue: Queue) -> None:
    def release_skewed(skew_ms: float) -> None:
        host = new_host("held")
        slots, waiting = two_held(queue, host)
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began > HOLD_S)
        released = time.monotonic()
        now_ms = ms() + skew_ms
        queue.release(host, slots[0], hitUpstreamAtMs=now_ms - 1000 * HOLD_S, now=now_ms)
        first = min(each.at for each in eventually(lambda: [each.result() for each in waiting
                                                            if each.done()]))  # fmt: skip
        assert first - released < HOLD_S - EARLY_S
        queue.release(host, slots[1], hitUpstreamAtMs=now_ms, now=now_ms)
        second = max(granted(each).at for each in waiting)
        assert second - released >= HOLD_S - EARLY_S

    at_once(queue, release_skewed, HOUR_MS, -HOUR_MS)


def at_once(queue: Queue, play: Callable[[float], None], *cases: float) -> None:
    """Each takes a while, so they are played side by side."""
    for each in [queue.begin(play, case) for case in cases]:
        each.result()


# ---------------------------------------------------------------------- wanting it no more


def test_cancel_says_what_it_has_done(queue: Queue) -> None:
    host = new_host("kept")
    said = queue.ask(host)
    assert queue.cancel(said["queryToken"]) == "canceled"  # granted, and given back
    assert queue.holders(host) == 0
    assert queue.cancel(said["queryToken"]) == "gone"
    assert queue.cancel("nobody-knows-it") == "gone"
    assert queue.post("cancel", {}) == {"result": "noop"}
    assert queue.cancel("") == "noop"
    assert queue.poll(said["queryToken"]) == {"result": "timeout"}
    queue.release(host, said["slotToken"])


def test_a_cancelled_slot_goes_to_the_next(queue: Queue) -> None:
    host = new_host("attached")
    said = queue.ask(host)
    waiting = queue.begin(queue.ask, host, "192.0.2.2/32")
    queue.attached(host, 1)
    cancelled = time.monotonic()
    assert queue.cancel(said["queryToken"]) == "canceled"
    assert granted(waiting).at - cancelled < SOON_S


# ---------------------------------------------------------------------- hanging up


def test_who_hangs_up_on_the_first_call_is_never_granted_anything(queue: Queue) -> None:
    """It knows no token, so it cannot come back."""
    host = new_host("attached")
    slot = queue.hold(host)
    caller = Caller(queue.url, "acquire", {"hostname": host, "ipBucket": "192.0.2.2/32"})
    queue.attached(host, 1)
    later = queue.begin(queue.ask, host, "192.0.2.3/32")
    queue.attached(host, 2)
    caller.hang_up()
    queue.attached(host, 1)
    assert len(queue.sessions(host)) == 1
    released = time.monotonic()
    queue.release(host, slot)
    assert granted(later).at - released < SOON_S


def test_who_hangs_up_while_it_polls_has_a_moment_to_come_back(queue: Queue) -> None:
    """Then what was granted to it goes to the next."""
    host = new_host("brief")
    slot = queue.hold(host)
    token = queue.must_wait(host, "192.0.2.2/32")
    caller = Caller(queue.url, "acquire", {"queryToken": token})
    queue.attached(host, 1)
    later = queue.begin(queue.ask, host, "192.0.2.3/32")
    queue.attached(host, 2)
    caller.hang_up()
    queue.attached(host, 1)
    released = time.monotonic()
    queue.release(host, slot)
    slot = granted(later).said["slotToken"]
    assert granted(later).at - released < CLAIM_S + SOON_S
    back = queue.begin(queue.wait_on, pending(token))
    queue.attached(host, 1)
    queue.release(host, slot)
    assert granted(back).said["queryToken"] == token


def test_a_grant_that_nobody_heard_of_costs_nobody_anything(queue: Queue) -> None:
    """Nobody can have called the host, so there is nothing to hold back and nobody to rest."""
    host = new_host("unheard")
    queue.api.post(f"/api/upstreams/{host}/pause")
    token = queue.must_wait(host)
    queue.api.post(f"/api/upstreams/{host}/resume")
    (kept,) = eventually(lambda: queue.sessions(host, "granted"))
    assert kept["claimed"] is False
    eventually(lambda: not queue.sessions(host, "granted"))
    over = time.monotonic()
    assert granted(queue.begin(queue.wait_on, pending(token))).at - over < SOON_S
