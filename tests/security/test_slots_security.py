"""Slots of one tenant are nobody else's: not to be seen, waited for, given back or ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.contract.kit import Api, new_name
from tests.security.kit import Guarded
from tests.servers import Server

NOWHERE = 987_654_321  # no slot has this number
BODIES: dict[str, dict[str, Any]] = {
    "poll": {"wait_ms": 0},
    "renew": {"fence": 1, "lease_s": 1},
    "report": {"fence": 1, "status": 429},
    "release": {"fence": 1, "status": 429},
}


@dataclass
class Street:
    """Bob holds the only slot at a host and waits for another; Alice looks at it."""

    alice: Api
    bob: Api
    operator: Api
    host: str
    held: dict[str, Any]
    waiting: dict[str, Any]

    def bodies(self, verb: str) -> dict[str, Any] | None:
        """As Bob himself would say it."""
        body = BODIES.get(verb)
        return body if body is None or verb == "poll" else {**body, "fence": self.held["fence"]}

    def seen(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.bob.get("/api/slots", upstream=self.host)["items"]
        steady = ("id", "state", "fence", "tenant", "lease_ends_at", "claimed", "in_line")
        return [{name: row[name] for name in steady} for row in rows]


@pytest.fixture
def street(guarded_everywhere: Guarded) -> Iterator[Street]:
    with ExitStack() as stack:
        alice, bob, operator = (stack.enter_context(guarded_everywhere.as_(name))
                                for name in ("alice", "bob", "operator"))  # fmt: skip
        host = new_name("bobs-host")
        operator.ok("PUT", f"/api/upstreams/{host}/settings", json={"limit": 1})
        body = {"upstream": host, "wait_ms": 0, "holder": "bobs-laptop"}
        held = bob.post("/api/slots", body)
        waiting = bob.post("/api/slots", body, 202)
        yield Street(alice, bob, operator, host, held, waiting)
        for each in (waiting, held):
            operator.send("DELETE", f"/api/slots/{each['id']}")


def test_what_another_tenant_has_is_not_there(street: Street) -> None:
    """Every route with a number in it, and the same answer as for what never existed."""
    before = street.seen()
    tried = 0
    for each in street.alice.document.operations:
        if not each.path.startswith("/api/slots/{id}"):
            continue
        body = street.bodies(each.path.rpartition("/")[2])
        sent = {} if body is None else {"json": body}
        answers = set()
        for number in (street.held["id"], street.waiting["id"], NOWHERE):
            answer = street.alice.send(each.method, each.at(id=number), **sent)
            answers.add((answer.status_code, re.sub(rf"\b{number}\b", "…", answer.text)))
        assert len(answers) == 1, f"{each.name}: {answers}"
        assert answers.pop()[0] == 404, each.name
        tried += 1
    assert tried == 6
    assert street.seen() == before
    assert not street.operator.get(f"/api/upstreams/{street.host}")["closed_until"]


def test_nor_can_it_be_reached_among_many(street: Street) -> None:
    before = street.seen()
    slot = {"id": street.held["id"], "fence": street.held["fence"]}
    (renewed,) = street.alice.post("/api/slots/renew", {"slots": [slot]})["slots"]
    assert (renewed["lease_s"], renewed["expires_at"]) == (None, None)
    (given,) = street.alice.post("/api/slots/release", {"slots": [slot]})["slots"]
    assert given["accepted"] is False
    assert street.seen() == before


def test_a_list_shows_the_own_slots_only(street: Street) -> None:
    mine = street.alice.post("/api/slots", {"upstream": new_name("alices-host")})
    page = street.alice.get("/api/slots", size=200)
    assert {row["tenant"] for row in page["items"]} == {"alice"}
    assert mine["id"] in [row["id"] for row in page["items"]]
    assert page["total"] == page["count"]
    assert street.alice.get("/api/slots", upstream=street.host)["total"] == 0
    for tenant in ("bob", ""):
        params = {"tenant": tenant}
        street.alice.problem(403, "GET", "/api/slots", "tenant", params=params)
    street.alice.problem(403, "GET", "/api/slots/stats", "tenant")
    assert street.operator.get("/api/slots", tenant="bob", upstream=street.host)["total"] == 2
    street.alice.post(f"/api/slots/{mine['id']}/release", {"fence": mine["fence"]})


def test_nobody_asks_in_the_name_of_another_tenant(street: Street) -> None:
    for tenant in ("bob", ""):
        body = {"upstream": new_name(), "tenant": tenant}
        street.alice.problem(403, "POST", "/api/slots", "tenant", json=body)
    slot = street.alice.post("/api/slots", {"upstream": new_name(), "tenant": "alice"})
    assert street.alice.get(f"/api/slots/{slot['id']}")["tenant"] == "alice"
    assert street.alice.ok("DELETE", f"/api/slots/{slot['id']}")["ended"]


def test_the_own_slots_can_be_used_and_ended(street: Street) -> None:
    """Or the tests above would show nothing."""
    path = f"/api/slots/{street.held['id']}"
    fence = {"fence": street.held["fence"]}
    assert street.bob.post(f"{path}/renew", fence)["lease_s"] > 0
    assert street.bob.post(f"{path}/report", {**fence, "status": 200})["accepted"]
    assert street.bob.ok("DELETE", f"/api/slots/{street.waiting['id']}")["ended"]
    assert street.bob.post(f"{path}/release", fence)["accepted"]


# ---------------------------------------------------------------------- scopes


def test_reading_is_not_holding(guarded: Guarded) -> None:
    with guarded.as_("reader") as reader, guarded.as_("alice-reads") as bound:
        for api in (reader, bound):
            api.get("/api/slots")
            api.problem(403, "POST", "/api/slots", "scope", json={"upstream": new_name()})
            for verb, body in BODIES.items():
                api.problem(403, "POST", f"/api/slots/{NOWHERE}/{verb}", "scope", json=body)
            for verb in ("renew", "release"):
                api.problem(403, "POST", f"/api/slots/{verb}", "scope", json={"slots": []})
            api.problem(403, "DELETE", f"/api/slots/{NOWHERE}", "scope")


def test_whoever_submits_holds_and_leaves_but_takes_nothing_back(guarded: Guarded) -> None:
    host = new_name("host")
    with guarded.as_("submitter") as api, guarded.as_("operator") as operator:
        operator.ok("PUT", f"/api/upstreams/{host}/settings", json={"limit": 1})
        held = api.post("/api/slots", {"upstream": host, "tenant": "any"})
        waiting = api.post("/api/slots", {"upstream": host, "tenant": "any", "wait_ms": 0}, 202)
        assert api.ok("DELETE", f"/api/slots/{waiting['id']}")["ended"]
        api.problem(403, "DELETE", f"/api/slots/{held['id']}", "scope")
        api.problem(403, "GET", "/api/slots", "scope")
        api.problem(403, "GET", f"/api/slots/{held['id']}", "scope")
        api.problem(403, "GET", "/api/slots/stats", "scope")
        assert operator.get(f"/api/slots/{held['id']}")["state"] == "granted"
        assert operator.ok("DELETE", f"/api/slots/{held['id']}")["ended"]
        row = operator.get("/api/audit", limit=1)["items"][0]
        assert (row["event"], row["subject"]) == ("slot_end", f"slot:{held['id']}")
        assert (row["who"], row["detail"]) == (
            "token:operator from 127.0.0.1",
            f"granted at {host}",
        )


def test_what_is_refused_is_not_in_the_audit_trail(street: Street) -> None:
    last = street.operator.get("/api/audit", limit=1)["items"][0]["id"]
    street.alice.problem(404, "DELETE", f"/api/slots/{street.held['id']}")
    assert street.operator.get("/api/audit", limit=1)["items"][0]["id"] == last


# ---------------------------------------------------------------------- secrets


def test_a_session_of_the_fair_queue_cannot_be_used_by_its_number(open_server: Server) -> None:
    """Its client has a secret, which nobody else gets to see."""
    host = new_name("host")
    with Api(open_server.url) as api:
        asked = {"hostname": host, "hostnameHash": host, "ipBucket": "10.9.8.0/24", "now": 0}
        granted = api.post("/api/v0/fairqueue/acquire", asked)
        assert granted["result"] == "granted"
        (seen,) = api.get("/api/slots", kind="fairqueue", upstream=host)["items"]
        secret = granted["slotToken"].rpartition(".")[2]
        for path in ("/api/slots", f"/api/slots/{seen['id']}", f"/api/upstreams/{host}"):
            assert secret not in api.send("GET", path).text
        for verb, body in BODIES.items():
            sent = body if verb == "poll" else {**body, "fence": seen["fence"]}
            path = f"/api/slots/{seen['id']}/{verb}"
            api.problem(404, "POST", path, "unknown-slot", json=sent)
        assert api.get(f"/api/slots/{seen['id']}")["state"] == "granted"
        assert api.ok("DELETE", f"/api/slots/{seen['id']}")["ended"]


def test_a_secret_in_the_name_of_a_holder_is_not_shown(guarded: Guarded) -> None:
    canary = "Canary7f3kQz91"
    with guarded.as_("operator") as api:
        holder = f"https://ann:{canary}@host"
        slot = api.post("/api/slots", {"upstream": new_name(), "holder": holder})
        assert canary not in api.send("GET", f"/api/slots/{slot['id']}").text
        said = {"fence": slot["fence"], "error": f"password={canary}", "status": 500}
        api.post(f"/api/slots/{slot['id']}/release", said)
        assert canary not in api.send("GET", "/api/trail", params={"limit": 1000}).text
