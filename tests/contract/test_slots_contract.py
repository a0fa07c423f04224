"""Plain leases at /api/slots: every answer and every error, and who is seen to wait and to hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from tests.contract.kit import JSON, Api, new_name
from tests.hands.kit import eventually
from tests.security.kit import Wire
from tests.servers import NewServer, server_on

LONG_MS = 60_000  # far longer than a test may last


class Clients:
    """What clients of slots at one upstream do."""

    def __init__(self, api: Api, **settings: Any) -> None:
        self.api = api
        self.host = new_name("host")
        if settings:
            api.ok("PUT", f"/api/upstreams/{self.host}/settings", json=settings)

    def ask(self, status: int = 200, **more: Any) -> JSON:
        return self.api.post("/api/slots", {"upstream": self.host, "wait_ms": 0, **more}, status)

    def wait(self, **more: Any) -> JSON:
        """Somebody who must wait, and has heard so."""
        return self.ask(202, **more)

    def poll(self, slot: JSON, status: int = 200, wait_ms: int = 0) -> JSON:
        return self.api.post(f"/api/slots/{slot['id']}/poll", {"wait_ms": wait_ms}, status)

    def say(self, verb: str, slot: JSON, **more: Any) -> JSON:
        return self.api.post(f"/api/slots/{slot['id']}/{verb}", {"fence": slot["fence"], **more})

    def stale(self, verb: str, slot: JSON, **more: Any) -> None:
        body = {"fence": slot["fence"], **more}
        self.api.problem(409, "POST", f"/api/slots/{slot['id']}/{verb}", "stale-fence", json=body)

    def release(self, slot: JSON, **more: Any) -> bool:
        accepted: bool = self.say("release", slot, **more)["accepted"]
        return accepted

    def seen(self, slot: JSON) -> JSON:
        return self.api.get(f"/api/slots/{slot['id']}")

    def listed(self, **more: Any) -> list[JSON]:
        found: list[JSON] = self.api.get("/api/slots", upstream=self.host, **more)["items"]
        return found

    def is_unknown(self, slot: JSON) -> None:
        self.api.problem(404, "GET", f"/api/slots/{slot['id']}", "unknown-slot")

    def upstream(self) -> JSON:
        return self.api.get(f"/api/upstreams/{self.host}")

    def overshoot(self) -> JSON:
        rows = self.api.get("/api/slots/stats")["overshoot"]
        found: JSON = next((row for row in rows if row["upstream"] == self.host), {})
        return found

    @contextmanager
    def waiting(self, slot: JSON) -> Iterator[Future[JSON]]:
        """Somebody polls, and the server knows it."""
        with ThreadPoolExecutor(1) as pool, Api(self.api.url) as other:
            path = f"/api/slots/{slot['id']}/poll"
            asked = pool.submit(lambda: other.send("POST", path, json={"wait_ms": LONG_MS}).json())
            eventually(lambda: self.seen(slot)["attached"])
            yield asked

    def end_all(self) -> None:
        while some := self.listed(state="granted") + self.listed(state="waiting"):
            for each in some:
                self.api.send("DELETE", f"/api/slots/{each['id']}")


@contextmanager
def clients_of(api: Api, **settings: Any) -> Iterator[Clients]:
    """Nothing of theirs is left behind."""
    clients = Clients(api, **settings)
    yield clients
    clients.end_all()


@pytest.fixture
def clients(api: Api) -> Iterator[Clients]:
    """At an upstream with one place."""
    with clients_of(api, limit=1) as found:
        yield found


@pytest.fixture
def free(api: Api) -> Iterator[Clients]:
    """At an upstream without limits."""
    with clients_of(api) as found:
        yield found


def seconds_between(first: str, second: str) -> float:
    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


# ---------------------------------------------------------------------- asking


def test_a_slot_is_granted_held_and_given_back(clients: Clients) -> None:
    slot = clients.ask(tenant="acme", lease_s=30, holder="a robot", weight=2, priority=4)
    assert slot["status"] == "granted"
    assert slot["upstream"] == clients.host
    assert slot["fence"] > 0
    assert slot["lease_s"] == 30
    assert seconds_between(slot["granted_at"], slot["expires_at"]) == pytest.approx(30, abs=0.01)
    assert slot["waited_s"] >= 0

    seen = clients.seen(slot)
    assert (seen["kind"], seen["state"]) == ("lease", "granted")
    assert (seen["upstream"], seen["upstreams"]) == (clients.host, [clients.host])
    assert (seen["tenant"], seen["holder"]) == ("acme", "a robot")
    assert (seen["weight"], seen["priority"], seen["lane"]) == (2, 4, "default")
    assert (seen["fence"], seen["claimed"], seen["in_line"]) == (slot["fence"], True, False)
    assert (seen["granted_at"], seen["lease_ends_at"]) == (slot["granted_at"], slot["expires_at"])
    assert 0 <= seen["held_s"] < 30

    assert clients.say("release", slot) == {
        "id": slot["id"], "fence": slot["fence"], "accepted": True,
    }  # fmt: skip
    clients.is_unknown(slot)


def test_who_must_wait_hears_why_and_in_which_place(clients: Clients) -> None:
    clients.ask()
    first, second = clients.wait(), clients.wait()
    assert (first["status"], first["position"]) == ("pending", 1)
    assert second["position"] == 2
    assert (first["wait_reason"], first["wait_gate"]) == ("full", f"upstream:{clients.host}")
    assert first["wait_detail"] == "1 in use of 1"
    assert first["poll"] == f"/api/slots/{first['id']}/poll"
    assert first["since"]
    assert {"eta", "opens_at"} <= set(first)
    # Whoever is more urgent goes first, also later.
    assert clients.wait(priority=1)["position"] == 1
    assert clients.poll(first, 202)["position"] == 2


def test_there_is_an_estimate_once_slots_have_been_held(clients: Clients) -> None:
    clients.release(clients.ask())
    clients.ask()
    assert clients.wait()["eta"]


def test_a_closed_upstream_says_when_it_opens(clients: Clients) -> None:
    clients.api.post(f"/api/upstreams/{clients.host}/close", {"for_s": 600, "why": "maintenance"})
    waiting = clients.wait()
    assert (waiting["wait_reason"], waiting["wait_detail"]) == ("closed", "maintenance")
    assert waiting["opens_at"]
    assert waiting["eta"] >= waiting["opens_at"]


def test_a_slot_that_comes_free_reaches_the_request_that_waits(clients: Clients) -> None:
    held, waiting = clients.ask(), clients.wait(tenant="other")
    with clients.waiting(waiting) as asked:
        clients.release(held)
        granted = asked.result(20)
    assert (granted["status"], granted["id"]) == ("granted", waiting["id"])
    assert granted["fence"] > held["fence"]
    assert granted["waited_s"] > 0
    assert clients.seen(granted)["claimed"]


def test_the_first_request_waits_too(clients: Clients) -> None:
    held = clients.ask()
    with ThreadPoolExecutor(1) as pool, Api(clients.api.url) as other:
        body = {"upstream": clients.host, "wait_ms": LONG_MS}
        asked = pool.submit(other.post, "/api/slots", body)
        eventually(lambda: any(each["attached"] for each in clients.listed(state="waiting")))
        clients.release(held)
        assert asked.result(20)["status"] == "granted"


def test_a_grant_that_came_while_nobody_waited_is_there_at_the_next_poll(clients: Clients) -> None:
    held, waiting = clients.ask(), clients.wait()
    clients.release(held)
    granted = clients.poll(waiting)
    assert granted["status"] == "granted"
    again = clients.poll(waiting)  # its answer may have been lost
    assert (again["id"], again["fence"]) == (granted["id"], granted["fence"])


def test_of_two_polls_the_last_one_gets_the_answer(clients: Clients) -> None:
    held, waiting = clients.ask(), clients.wait()
    with clients.waiting(waiting) as first, clients.waiting(waiting) as second:
        passed = first.result(20)
        assert (passed["status"], passed["wait_reason"]) == ("pending", "asked_again")
        clients.release(held)
        assert second.result(20)["status"] == "granted"


def test_the_first_free_one_of_several_upstreams_is_taken(clients: Clients, free: Clients) -> None:
    clients.ask()
    both = {"upstreams": [clients.host, free.host], "wait_ms": 0}
    slot = clients.api.post("/api/slots", both)
    assert slot["upstream"] == free.host
    assert clients.seen(slot)["upstreams"] == both["upstreams"]


def test_keys_lanes_and_tools_need_no_upstream(api: Api) -> None:
    for noun in ("key", "lane", "tool"):
        name = new_name(noun)
        if noun != "key":
            api.ok("PUT", f"/api/{noun}s/{name}/settings", json={"limit": 1})
        wish = {"tools": [name]} if noun == "tool" else {noun: name}
        held = api.post("/api/slots", {**wish, "wait_ms": 0})
        assert held["upstream"] is None
        pending = api.post("/api/slots", {**wish, "wait_ms": 0}, 202)
        assert pending["wait_gate"] == f"{noun}:{name}"
        for each in (pending, held):
            assert api.ok("DELETE", f"/api/slots/{each['id']}")["ended"]


def test_who_has_waited_for_too_long_in_all_is_told_so(clients: Clients) -> None:
    clients.ask()
    sent = {"upstream": clients.host, "timeout_s": 0.05, "wait_ms": LONG_MS}
    clients.api.problem(409, "POST", "/api/slots", "timeout", json=sent)
    waiting = clients.wait(timeout_s=0.3)
    path = f"/api/slots/{waiting['id']}/poll"
    clients.api.problem(409, "POST", path, "timeout", json={"wait_ms": LONG_MS})
    clients.api.problem(404, "POST", path, "unknown-slot", json={})
    assert clients.ask(409, timeout_s=0)["type"] == "timeout"


def test_who_has_no_time_at_all_gets_what_is_free(free: Clients) -> None:
    assert free.ask(timeout_s=0)["status"] == "granted"


def test_there_may_be_only_so_many_waiters(api: Api) -> None:
    with clients_of(api, limit=1, max_waiters=2) as clients:
        clients.ask()
        first = clients.wait()
        clients.wait()
        answer = api.send("POST", "/api/slots", json={"upstream": clients.host})
        assert (answer.status_code, answer.json()["type"]) == (429, "queue-full")
        assert int(answer.headers["retry-after"]) > 0
        api.ok("DELETE", f"/api/slots/{first['id']}")
        clients.wait()


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"wait_ms": 0},
        {"upstream": ""},
        {"upstream": "x" * 201},
        {"upstream": "x\u0000"},
        {"upstream": "x", "upstreams": ["y"]},
        {"upstreams": ["x", "x"]},
        {"upstreams": "x"},
        {"tools": ["t", "t"]},
        {"upstream": "x", "weight": 0},
        {"upstream": "x", "weight": 1001},
        {"upstream": "x", "cost": -1},
        {"upstream": "x", "priority": 1.5},
        {"upstream": "x", "priority": 10**9},
        {"upstream": "x", "traffic": "online"},
        {"upstream": "x", "lease_s": 0.5},
        {"upstream": "x", "lease_s": 86_401},
        {"upstream": "x", "wait_ms": -1},
        {"upstream": "x", "wait_ms": 60_001},
        {"upstream": "x", "timeout_s": -1},
        {"upstream": "x", "timeout_s": 86_401},
        {"upstream": "x", "holder": "x" * 201},
        {"upstream": "x", "tenant": 5},
        {"upstream": "x", "what": 1},
    ],
)
def test_a_wish_that_makes_no_sense_is_refused(api: Api, wrong: JSON) -> None:
    api.problem(422, "POST", "/api/slots", "wrong-input", json=wrong)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("1/poll", {"wait_ms": "5"}),
        ("1/poll", {"wait_ms": 60_001}),
        ("1/renew", {}),
        ("1/renew", {"fence": -1}),
        ("1/renew", {"fence": 1, "lease_s": 0}),
        ("1/report", {"fence": 1}),
        ("1/report", {"fence": 1, "status": 99}),
        ("1/report", {"fence": 1, "status": 200, "retry_after_s": -1}),
        ("1/release", {}),
        ("1/release", {"fence": True}),
        ("1/release", {"fence": 1, "status": 600}),
        ("1/release", {"fence": 1, "hit_at": -1}),
        ("1/release", {"fence": 1, "error": "x" * 2_001}),
        ("renew", {"slots": [{"id": 1}]}),
        ("release", {"slots": [{"fence": 1}]}),
        ("release", {}),
    ],
)
def test_what_makes_no_sense_is_refused(api: Api, path: str, wrong: JSON) -> None:
    api.problem(422, "POST", f"/api/slots/{path}", "wrong-input", json=wrong)


@pytest.mark.parametrize("verb", ["poll", "renew", "report", "release"])
@pytest.mark.parametrize("id", ["987654321", "0", "none", "1.5", "9" * 30])
def test_a_slot_that_is_not_there_is_unknown(api: Api, id: str, verb: str) -> None:
    body = {"poll": {}, "report": {"fence": 1, "status": 200}}.get(verb, {"fence": 1})
    api.problem(404, "POST", f"/api/slots/{id}/{verb}", "unknown-slot", json=body)
    api.problem(404, "GET", f"/api/slots/{id}", "unknown-slot")
    api.problem(404, "DELETE", f"/api/slots/{id}", "unknown-slot")


# ---------------------------------------------------------------------- holding


def test_a_renewal_prolongs_the_lease(free: Clients) -> None:
    slot = free.ask(lease_s=30)
    renewed = free.say("renew", slot)
    assert (renewed["id"], renewed["fence"], renewed["lease_s"]) == (slot["id"], slot["fence"], 30)
    assert renewed["expires_at"] > slot["expires_at"]
    longer = free.say("renew", slot, lease_s=600)
    assert longer["lease_s"] == 600
    assert free.seen(slot)["lease_ends_at"] == longer["expires_at"]
    assert free.say("renew", slot)["lease_s"] == 600


def test_a_stale_fence_changes_nothing(clients: Clients) -> None:
    slot = clients.ask()
    wrong = {**slot, "fence": slot["fence"] + 1}
    clients.stale("renew", wrong)
    clients.stale("report", wrong, status=429)
    assert not clients.release(wrong, status=429)
    assert clients.seen(slot)["lease_ends_at"] == slot["expires_at"]
    assert not clients.upstream()["closed_until"]
    assert clients.overshoot() == {}
    waiting = clients.wait()
    clients.stale("renew", {**waiting, "fence": 0})
    assert not clients.release({**waiting, "fence": 0})
    assert clients.release(slot)


def check_metrics(clients: Clients) -> None:
    page = clients.api.http.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in page if not line.startswith("#"))
    assert float(values['headway_slot_sessions{kind="lease",state="granted"}']) >= 1
    assert 'headway_slot_sessions{kind="fairqueue",state="absent"}' in values
    for event in ("created", "granted", "released", "reclaimed", "outlived"):
        assert float(values[f'headway_slots_total{{event="{event}"}}']) >= 1, event
    assert float(values['headway_slot_wait_seconds_bucket{le="+Inf"}']) >= 2
    assert float(values[f'headway_slot_outlived{{upstream="{clients.host}"}}']) == 1
    assert float(values[f'headway_slot_reclaimed{{upstream="{clients.host}"}}']) == 1
    assert float(values[f'headway_slot_outlived_seconds{{upstream="{clients.host}"}}']) > 0


def test_a_lease_that_is_over_is_somebody_elses_and_its_holder_is_counted(clients: Clients) -> None:
    assert clients.release(clients.ask())
    late = clients.ask(lease_s=1, tenant="late")
    waiting = clients.wait()
    with clients.waiting(waiting) as asked:
        granted = asked.result(20)
    assert granted["status"] == "granted"
    (reclaimed,) = clients.listed(state="reclaimed")
    assert (reclaimed["id"], reclaimed["state"]) == (late["id"], "reclaimed")
    assert (reclaimed["fence"], reclaimed["tenant"]) == (late["fence"], "late")
    assert clients.overshoot() == {
        "upstream": clients.host, "reclaimed": 1, "outlived": 0, "outlived_s": 0.0,
    }  # fmt: skip
    other = {**late, "fence": late["fence"] + 1}
    assert not clients.release(other)
    clients.stale("renew", other)
    assert clients.overshoot()["outlived"] == 0, "only who knows the fence has held it"
    clients.stale("renew", late)
    assert clients.overshoot()["outlived"] == 1, "who wants to go on has not stopped"
    clients.stale("report", late, status=429)
    clients.api.problem(404, "POST", f"/api/slots/{late['id']}/poll", "unknown-slot")
    assert clients.api.ok("DELETE", f"/api/slots/{late['id']}")["ended"] is False
    assert not clients.release(late)
    counted = clients.overshoot()
    assert (counted["reclaimed"], counted["outlived"]) == (1, 1)
    assert counted["outlived_s"] > 0
    clients.is_unknown(late)
    check_metrics(clients)
    assert clients.release(granted)


@pytest.mark.parametrize("verb", ["report", "release"])
def test_what_the_upstream_says_closes_it_for_everybody(free: Clients, verb: str) -> None:
    slot = free.ask()
    assert free.say(verb, slot, status=429, retry_after_s=60)["accepted"]
    assert "429" in free.upstream()["closed_why"]
    assert free.wait()["wait_reason"] == "closed"
    if verb == "report":
        assert free.seen(slot)["state"] == "granted"
        assert free.release(slot, status=200)


@pytest.mark.parametrize("verb", ["report", "release"])
def test_the_breaker_hears_what_the_upstream_says(api: Api, verb: str) -> None:
    with clients_of(api, breaker={"in_a_row": 3}) as clients:
        for slot in [clients.ask() for _ in range(3)]:
            clients.say(verb, slot, status=500)
        (breaker,) = clients.upstream()["limits"]
        assert (breaker["state"], breaker["bad"]) == ("open", 3)


@pytest.mark.parametrize(
    "said",
    [
        {"status": 200, "hit_at": 1_800_000_000},
        {"status": 404},
        {"status": 500, "error": "it broke"},
        {"error": "no connection"},
    ],
)
def test_an_answer_that_is_no_pushback_closes_nothing(free: Clients, said: JSON) -> None:
    assert free.release(free.ask(), **said)
    assert free.upstream()["open"]


def test_a_pushback_may_have_no_status(free: Clients) -> None:
    assert free.release(free.ask(), retry_after_s=60)
    assert free.upstream()["closed_until"]


def test_many_are_renewed_and_given_back_in_one_call(free: Clients) -> None:
    slots = [free.ask(lease_s=30) for _ in range(3)]
    said = [{"id": slot["id"], "fence": slot["fence"]} for slot in slots]
    wrong = [{"id": slots[0]["id"], "fence": 0}, {"id": 987_654_321, "fence": 1}]
    answer = free.api.post("/api/slots/renew", {"slots": [{**said[0], "lease_s": 60}, *said[1:],
                                                          *wrong]})["slots"]  # fmt: skip
    assert [each["lease_s"] for each in answer] == [60, 30, 30, None, None]
    assert [bool(each["expires_at"]) for each in answer] == [True] * 3 + [False] * 2
    given = free.api.post("/api/slots/release", {"slots": [*wrong, *said, said[0]]})["slots"]
    assert [each["accepted"] for each in given] == [False, False, True, True, True, False]
    assert free.listed() == []


# ---------------------------------------------------------------------- ending


def test_who_waits_can_be_sent_away(clients: Clients) -> None:
    clients.ask()
    waiting = clients.wait()
    with clients.waiting(waiting) as asked:
        ended = clients.api.ok("DELETE", f"/api/slots/{waiting['id']}")
        assert ended == {"id": waiting["id"], "ended": True}
        said = asked.result(20)
    assert (said["status"], said["type"]) == (409, "ended")
    clients.is_unknown(waiting)
    clients.api.problem(404, "DELETE", f"/api/slots/{waiting['id']}", "unknown-slot")
    row = clients.api.get("/api/audit", limit=1)["items"][0]
    assert (row["event"], row["subject"]) == ("slot_end", f"slot:{waiting['id']}")
    assert row["detail"] == f"waiting at {clients.host}"
    assert row["who"]


def test_a_slot_that_is_held_can_be_taken_back(clients: Clients) -> None:
    held, waiting = clients.ask(), clients.wait()
    with clients.waiting(waiting) as asked:
        assert clients.api.ok("DELETE", f"/api/slots/{held['id']}")["ended"]
        assert asked.result(20)["status"] == "granted"
    body = {"fence": held["fence"]}
    clients.api.problem(404, "POST", f"/api/slots/{held['id']}/renew", "unknown-slot", json=body)
    assert clients.overshoot() == {}


# ---------------------------------------------------------------------- hanging up


def hang_up(api: Api, path: str, body: JSON, meanwhile: Callable[[], object]) -> None:
    """Ask, and break the connection once the server knows of it."""
    sent = json.dumps(body).encode()
    with Wire(api.url) as wire:
        wire.send(wire.head("POST", path, content_length=str(len(sent))) + b"\r\n" + sent)
        eventually(meanwhile)


def test_who_hangs_up_before_its_first_answer_is_forgotten_at_once(clients: Clients) -> None:
    clients.ask()
    body = {"upstream": clients.host, "wait_ms": LONG_MS}
    hang_up(clients.api, "/api/slots", body, lambda: clients.listed(state="waiting"))
    eventually(lambda: not clients.listed(state="waiting"))


def test_who_hangs_up_later_may_come_back(clients: Clients) -> None:
    held, waiting = clients.ask(), clients.wait()
    path = f"/api/slots/{waiting['id']}/poll"
    hang_up(clients.api, path, {"wait_ms": LONG_MS}, lambda: clients.seen(waiting)["attached"])
    eventually(lambda: not clients.seen(waiting)["attached"])
    assert clients.seen(waiting)["in_line"], "for a moment it is waited for"
    clients.release(held)
    assert clients.poll(waiting)["status"] == "granted"


# ---------------------------------------------------------------------- looking


def test_slots_are_listed_by_state_upstream_tenant_and_kind(clients: Clients) -> None:
    mine = new_name("tenant")
    held, waiting = clients.ask(tenant=mine), clients.wait()
    assert [each["id"] for each in clients.listed()] == [held["id"], waiting["id"]]
    assert [each["id"] for each in clients.listed(state="granted")] == [held["id"]]
    assert [each["id"] for each in clients.listed(tenant=mine)] == [held["id"]]
    assert clients.listed(state="reclaimed") == []
    assert clients.listed(kind="fairqueue") == []
    (seen,) = clients.listed(state="waiting", kind="lease")
    assert seen == {**clients.seen(waiting), "waited_s": seen["waited_s"], "eta": seen["eta"]}
    assert (seen["wait_reason"], seen["position"]) == ("full", 1)
    assert (seen["fence"], seen["granted_at"], seen["held_s"]) == (None, None, None)
    assert (seen["in_line"], seen["attached"], seen["claimed"]) == (True, False, False)


def test_slots_are_listed_in_pages(free: Clients) -> None:
    ids = [free.ask()["id"] for _ in range(5)]
    page = free.api.get("/api/slots", upstream=free.host, size=2, page=2)
    assert [each["id"] for each in page["items"]] == ids[2:4]
    assert (page["count"], page["total"], page["page"], page["size"]) == (2, 5, 2, 2)
    assert free.api.get("/api/slots", upstream=free.host, size=2, page=9)["items"] == []
    for wrong in ({"state": "ended"}, {"kind": "x"}, {"page": 0}, {"size": 201}, {"upstream": ""}):
        free.api.problem(422, "GET", "/api/slots", "wrong-input", params=wrong)


def test_what_became_of_slots_is_counted(clients: Clients) -> None:
    def counts() -> JSON:
        found: JSON = clients.api.get("/api/slots/stats")["counts"]
        return found

    before = counts()
    clients.release(clients.ask())
    held, waiting = clients.ask(), clients.wait(timeout_s=0.01)
    body = {"upstream": clients.host, "timeout_s": 0}
    eventually(lambda: clients.api.send("GET", f"/api/slots/{waiting['id']}").status_code == 404)
    clients.api.problem(409, "POST", "/api/slots", "timeout", json=body)
    grown = {name: count - before[name] for name, count in counts().items()}
    assert grown == {"created": 4, "granted": 2, "throttled": 0, "timeout": 2, "released": 1,
                     "reclaimed": 0, "outlived": 0}  # fmt: skip
    stats = clients.api.get("/api/slots/stats")
    assert set(stats["by_kind"]) == {"own", "lease", "fairqueue"}
    for state in ("waiting", "granted", "absent"):
        of_kinds = sum(each[state] for each in stats["by_kind"].values())
        assert stats["sessions"][state] == of_kinds
    assert stats["by_kind"]["lease"]["granted"] >= 1
    clients.release(held)


def test_the_upstream_shows_who_holds_and_who_waits(clients: Clients) -> None:
    held = clients.ask(tenant="acme")
    clients.wait(tenant="other")
    upstream = clients.upstream()
    (holder,) = upstream["holders"]
    assert (holder["id"], holder["kind"]) == (f"slot-{held['id']}", "lease")
    assert (holder["tenant"], holder["type"]) == ("acme", "slot")
    assert (holder["fence"], holder["lease_ends_at"]) == (held["fence"], held["expires_at"])
    assert upstream["waiting"] == 1
    assert {each["tenant"] for each in upstream["tenants"]} == {"acme", "other"}


# ---------------------------------------------------------------------- servers of their own


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Little room for those who wait."""
    config = tmp_path_factory.mktemp("fairqueue") / "config.json"
    config.write_text(json.dumps({"fairQueue": {"maxSessions": 4}}))
    with (
        server_on("sqlite", max_slot_waiters=1, fairqueue=config) as server,
        Api(server.url) as api,
    ):
        yield api


def test_requests_wait_only_so_many_at_once_and_others_are_answered(small: Api) -> None:
    clients = Clients(small, limit=1)
    held, waiting = clients.ask(), clients.wait()
    with clients.waiting(waiting) as asked:
        for path, body in (
            ("/api/slots", {"upstream": clients.host}),
            (f"/api/slots/{waiting['id']}/poll", {}),
        ):
            answer = small.send("POST", path, json=body)
            assert (answer.status_code, answer.json()["type"]) == (503, "busy")
            assert int(answer.headers["retry-after"]) > 0
        assert clients.release(held)
        assert asked.result(20)["status"] == "granted"
    small.ok("DELETE", f"/api/slots/{waiting['id']}")


def test_a_desk_that_is_full_says_so(small: Api) -> None:
    clients = Clients(small)
    slots = [clients.ask() for _ in range(4)]
    answer = small.send("POST", "/api/slots", json={"upstream": clients.host})
    assert (answer.status_code, answer.json()["type"]) == (503, "busy")
    assert int(answer.headers["retry-after"]) > 0
    for slot in slots:
        clients.release(slot)


def test_who_is_away_for_too_long_keeps_its_place_but_is_not_waited_for(small: Api) -> None:
    clients = Clients(small, limit=1)
    held, away = clients.ask(), clients.wait()
    eventually(lambda: not clients.seen(away)["in_line"])
    seen = clients.seen(away)
    assert (seen["state"], seen["wait_reason"], seen["position"]) == ("waiting", "absent", None)
    assert small.get("/api/slots/stats")["sessions"]["absent"] == 1
    there = clients.wait()
    assert clients.poll(away, 202)["position"] == 1
    assert clients.poll(there, 202)["position"] == 2
    clients.release(held)
    for each in (away, there):
        assert clients.release(clients.poll(each))


def test_waiters_and_holders_outlive_a_crash_and_requests_that_wait_a_stop(
    new_server: NewServer,
) -> None:
    server = new_server(drain_s=60)
    with Api(server.url) as api:
        clients = Clients(api, limit=1)
        held, waiting = clients.ask(lease_s=30, tenant="acme"), clients.wait(tenant="other")
    server.kill()
    server.start()
    with Api(server.url) as api:
        clients.api = api
        assert clients.seen(held)["state"] == "granted"
        assert clients.poll(waiting, 202)["position"] == 1
        assert clients.say("renew", held)["lease_s"] == 30
        assert clients.release(held)
        granted = clients.poll(waiting)
        assert granted["fence"] > held["fence"]
        with clients.waiting(clients.wait()) as asked:
            assert server.stop() == 0
            assert asked.result(20)["status"] == "pending"
