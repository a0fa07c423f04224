"""The lessons of docs/lessons.md about slots, over HTTP: as clients of a running service see it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.contract.fairqueue_kit import (
    EARLY_S,
    INTERNAL,
    SOON_S,
    Caller,
    Queue,
    Service,
    granted,
    new_host,
    pending,
    service_on,
    shared_service,
)
from tests.hands.kit import eventually


@pytest.fixture(params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def queue(request: pytest.FixtureRequest) -> Queue:
    return shared_service(request.param).queue


@pytest.fixture(scope="module", params=("sqlite", pytest.param("postgres", marks=pytest.mark.soak)))
def quiet(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A service that nobody else uses, and that cleans up every second."""
    settings = {"maxSlotPerHost": 1, "maxWaitersPerHost": 2, "pollWindowMs": 250,
                "cleanup": {"intervalSeconds": 1}}  # fmt: skip
    with service_on(request.param, internalApiToken=INTERNAL, fairQueue=settings) as started:
        yield started


def test_lesson_24_bad_answers_open_the_breaker_and_it_holds_for_everybody(queue: Queue) -> None:
    """The breaker check always answered "closed": its flag was never set, and nobody had ever
    tried it.
    """
    host, other = new_host("attached"), new_host("attached")
    for n in range(3):
        queue.release(host, queue.hold(host, f"192.0.2.{n}/32"), status=503)
    slot = queue.hold(host, "192.0.2.3/32")
    waiting = queue.begin(queue.ask, host, "192.0.2.4/32")
    queue.attached(host, 1)
    queue.release(host, slot, status=503)
    for said in (waiting.result().said, queue.ask(host), queue.ask(host, "192.0.2.5/32")):
        assert (said["result"], said["throttleCode"]) == ("throttled", 503)
        assert 50 <= said["throttleRetryAfter"] <= 60
    assert queue.gate(host)["limits"][0]["state"] == "open"
    queue.release(other, queue.hold(other), status=200)  # others have nothing to do with it


def test_lesson_25_an_ip_cools_down_also_with_a_cap_of_one(queue: Queue) -> None:
    """The cooldown per IP did nothing when the cap per IP was 1."""
    host = new_host("cool")
    slot = queue.hold(host)
    before = queue.begin(queue.wait, host)  # it waits already when the slot is given back
    queue.attached(host, 1)
    released = time.monotonic()
    queue.release(host, slot)
    queue.release(host, queue.hold(host, "192.0.2.2/32"))
    reply = granted(before)
    assert reply.at - released >= 1.0 - EARLY_S


def test_lesson_26_a_zombies_late_release_does_not_free_the_next_owners_slot(queue: Queue) -> None:
    """A holder whose lease had ended released "its" slot, which was another one's by then."""
    host = new_host("zombie")
    zombie = queue.hold(host, "192.0.2.1/32")
    held = time.monotonic()
    next_one = granted(queue.begin(queue.wait, host, "192.0.2.2/32"))
    assert 1.0 - EARLY_S <= next_one.at - held < 1.0 + SOON_S
    owner = next_one.said["slotToken"]
    third = queue.begin(queue.ask, host, "192.0.2.3/32")
    queue.attached(host, 1)
    for status in (None, 200, 503):
        queue.release(host, zombie, status=status)
        assert queue.holders(host) == 1
        assert not third.done()
    queue.release(host, owner)
    granted(third)
    trail = [each for each in queue.api.get("/api/trail")["items"] if host in each["subject"]]
    assert [each["event"] for each in trail] == ["slot_reclaimed", "slot_outlived"]


@pytest.mark.parametrize("level", ["host", "ip"])
def test_lesson_27_holders_above_a_lowered_cap_are_counted(queue: Queue, level: str) -> None:
    """After a cap was lowered, holders above it were not counted, and more were let in."""
    host = new_host("one")

    def set_cap(cap: int) -> None:
        limit = {"limit": cap} if level == "host" else {"limit": 9, "tenant": {"limit": cap}}
        queue.api.ok("PUT", f"/api/upstreams/{host}/settings", json=limit)

    def ip(n: int) -> str:
        return f"192.0.2.{n if level == 'host' else 0}/32"

    set_cap(4)
    slots = [queue.hold(host, ip(n)) for n in range(4)]
    set_cap(2)
    waiting = queue.begin(queue.wait, host, ip(5))
    queue.attached(host, 1)
    for left in (3, 2):
        queue.release(host, slots.pop())
        assert (queue.holders(host), waiting.done()) == (left, False)
    queue.release(host, slots.pop())
    granted(waiting)
    assert queue.holders(host) == 2


def test_lesson_28_cleaning_up_goes_on_for_ever(quiet: Service) -> None:
    """Clean-up ran once and then blocked for ever."""
    queue = quiet.queue

    def is_known(host: str) -> bool:
        return any(each["name"] == host for each in queue.api.get("/api/upstreams")["items"])

    for _ in range(2):
        host = new_host("any")
        queue.release(host, queue.hold(host))
        assert is_known(host)
        eventually(lambda host=host: not is_known(host))


def test_lesson_28_who_waits_is_counted_once(quiet: Service) -> None:
    """Counts of those who wait leaked when somebody polled again, and when the settings were
    refreshed, until nobody could stand in line any more.
    """
    queue, host = quiet.queue, new_host("any")
    slot = queue.hold(host, "192.0.2.100/32")
    asking = [queue.begin(queue.must_wait, host, f"192.0.2.{n}/32") for n in range(2)]
    tokens = [each.result().said for each in asking]
    polling = [queue.begin(queue.poll, each) for each in tokens * 5]  # the last poll counts
    assert {each.result().result for each in polling} == {"pending"}
    assert queue.in_line(host) == 2
    for _ in range(3):
        quiet.refresh("all")
        assert queue.in_line(host) == 0
        asking = [queue.begin(queue.must_wait, host, f"192.0.2.{n}/32") for n in range(3)]
        tokens = [each.result().said for each in asking]
        assert queue.in_line(host) == 2  # as many as may, and not less each time
    for token in tokens:
        assert queue.cancel(token) == "canceled"
    assert (queue.in_line(host), queue.sessions(host)) == (0, [])
    queue.release(host, slot)
    assert queue.holders(host) == 0


@pytest.mark.parametrize("profile", ["fair", "weighted"])
def test_lesson_29_who_may_not_go_holds_nobody_up(queue: Queue, profile: str) -> None:
    """The fair winner was chosen before checking that it may go: everyone behind it starved."""
    host = new_host(profile)
    queue.api.ok("PUT", f"/api/upstreams/{host}/settings", json={"limit": 2})
    own = queue.hold(host, "192.0.2.1/32")
    slot = queue.hold(host, "192.0.2.2/32")
    first = queue.begin(queue.wait, host, "192.0.2.1/32")  # it has its share already
    queue.attached(host, 1)
    later = queue.begin(queue.wait, host, "192.0.2.3/32")
    queue.attached(host, 2)
    released = time.monotonic()
    queue.release(host, slot)
    assert granted(later).at - released < SOON_S
    assert not first.done()
    queue.release(host, own)
    granted(first)


@pytest.mark.parametrize("profile", ["fair", "weighted"])
def test_lesson_29_flooding_is_not_rewarded(queue: Queue, profile: str) -> None:
    """Weight was counted per bucket, so whoever asked more often got more."""
    host = new_host(profile)
    slot = queue.hold(host, "192.0.2.100/32")
    flood = {f"flood {n}": queue.begin(queue.wait, host, "192.0.2.1/32") for n in range(12)}
    queue.attached(host, 12)
    polite = {f"polite {n}": queue.begin(queue.wait, host, "192.0.2.2/32") for n in range(4)}
    queue.attached(host, 16)
    order = queue.hand_on(host, slot, flood | polite, hold_s=0.03)
    # Turn and turn about, as far as all hold equally long, though these came last and are few.
    assert set(polite) <= set(order[:12])


def test_lesson_30_a_release_is_done_however_its_client_ends(queue: Queue) -> None:
    """Release slept inside the request; a client that hung up leaked the slot."""
    host = new_host("long-held")
    slot = queue.hold(host)
    began = time.monotonic()
    queue.release(host, slot)
    assert time.monotonic() - began < SOON_S
    hosts = [new_host("one") for _ in range(10)]
    for each in hosts:
        body = {"hostname": each, "slotToken": queue.hold(each)}
        Caller(queue.url, "release", body, at_once=True)
    eventually(lambda: not any(map(queue.holders, hosts)), within_s=5.0)


def test_lesson_30_nor_does_hanging_up_on_an_acquire_leak_anything(queue: Queue) -> None:
    free = [new_host("attached") for _ in range(10)]
    for each in free:  # it is granted at once, to nobody
        body = {"hostname": each, "ipBucket": "192.0.2.1/32"}
        Caller(queue.url, "acquire", body, at_once=True)
    taken = [new_host("attached") for _ in range(5)]
    for each in taken:  # it is granted while nobody has noticed yet that they are gone
        slot = queue.hold(each)
        body = {"hostname": each, "ipBucket": "192.0.2.2/32"}
        callers = [Caller(queue.url, "acquire", body) for _ in range(3)]
        queue.attached(each, 3)
        for caller in callers:
            caller.hang_up()
        queue.release(each, slot)
    for each in (*free, *taken):
        eventually(lambda each=each: not queue.holders(each), within_s=5.0)
        assert queue.sessions(each) == []


def test_lesson_31_waiting_costs_no_commit_and_a_full_line_is_no_answer(quiet: Service) -> None:
    """Every waiter polled the database each half second; telling clients that the line was full
    made storms of them.
    """
    queue, host = quiet.queue, new_host("any")
    slot = queue.hold(host, "192.0.2.100/32")
    asking = [queue.begin(queue.must_wait, host, f"192.0.2.{n}/32") for n in range(4)]
    tokens = [each.result().said for each in asking]  # two of them stand in line
    commits = queue.metric("headway_commit_seconds_count")
    began = time.monotonic()
    while time.monotonic() - began < 1.2:  # and it cleans up meanwhile
        waiting = [queue.begin(queue.poll, token) for token in tokens]
        assert [each.result().said for each in waiting] == [pending(token) for token in tokens]
    assert queue.metric("headway_commit_seconds_count") == commits
    left = {token: queue.begin(queue.wait_on, pending(token)) for token in tokens}
    queue.attached(host, 4)
    assert set(queue.hand_on(host, slot, left)) == set(tokens)
    spent = queue.metric("headway_commit_seconds_count") - commits
    assert spent <= 3 * len(tokens)  # a grant and a release, each in a commit or in a shared one
