"""A token that is bound to one tenant: it sees and changes nothing of another, and cannot even tell
what there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from headway.api.bodies import JobBody, new_job
from headway.apps.feeds.greader.login import LOGIN
from tests.contract.kit import Api, listening, new_name
from tests.hands.kit import eventually
from tests.security.kit import Guarded

MARK = "bobs-secret"  # in all that is Bob's
# What the routes need to be asked properly; the rest need nothing.
BODIES: dict[str, dict[str, Any]] = {
    "/api/jobs/{id}/prioritise": {"priority": 1},
    "/api/jobs/{id}/reschedule": {"at": 4_000_000_000},
    "/api/work/{id}/heartbeat": {"fence": 1},
    "/api/work/{id}/complete": {"fence": 1, "status_code": 200},
    "/api/work/hello": {"worker": "w"},
    "/api/work/take": {"types": ["x"], "wait_ms": 0},
    "/api/work/heartbeat": {"jobs": []},
    "/api/work/complete": {"jobs": []},
    "/api/queue/capacity": {"no_cookie": 7},
    "/api/tokens": {"name": "mine", "scopes": ["read"]},
    "close": {"for_s": 60},
    "settings": {"limit": 1},
}
OF_A_TENANT = ("/api/jobs/", "/api/tasks/", "/api/requests/", "/api/batches/", "/api/schedules/")


@dataclass
class Town:
    """Alice and Bob, and the one who runs it all."""

    alice: Api
    bob: Api
    operator: Api
    job: int  # Bob's, as all that follows
    ended: int
    batch: int
    schedule: str
    unique: str
    type: str


@pytest.fixture
def town(guarded_everywhere: Guarded) -> Iterator[Town]:
    with ExitStack() as stack:
        alice, bob, operator = (stack.enter_context(guarded_everywhere.as_(name))
                                for name in ("alice", "bob", "operator"))  # fmt: skip
        type, unique, schedule = (new_name(MARK) for _ in range(3))
        batch = bob.post("/api/batches", {"label": MARK}, 201)["id"]
        job = bob.enqueue(
            type, args={"what": MARK}, lane=new_name(MARK), key=new_name(MARK), batch=batch,
            labels={MARK: MARK}, about={"url": MARK}, unique={"key": unique},
        )  # fmt: skip
        ended = bob.enqueue(type, upstream=MARK)
        bob.post(f"/api/jobs/{ended}/cancel")
        body = {"name": schedule, "every": "30d", "job": {"type": type, "args": {"what": MARK}}}
        bob.post("/api/schedules", body, 201)
        yield Town(alice, bob, operator, job, ended, batch, schedule, unique, type)
        bob.http.delete(f"/api/schedules/{schedule}")


def asked(api: Api, operation: Any, **values: object) -> tuple[int, str]:
    path = operation.at(**values)
    body = BODIES.get(operation.path, BODIES.get(operation.path.rpartition("/")[2]))
    sent = {} if operation.method == "GET" or body is None else {"json": body}
    answer = api.send(operation.method, path, **sent)
    return answer.status_code, answer.text


def test_what_another_tenant_has_is_not_there(town: Town) -> None:
    """Every route with a number or a name in it, and the same answer as for what never existed."""
    before = [town.bob.job(town.job), town.bob.job(town.ended)]
    schedule = town.bob.get(f"/api/schedules/{town.schedule}")
    tried = 0
    for each in town.alice.document.operations:
        if not each.path.startswith(OF_A_TENANT) or "{" not in each.path:
            continue
        if "schedules" in each.path:
            pairs: list[dict[str, object]] = [{"name": town.schedule}, {"name": "not-there-at-all"}]
        elif "batches" in each.path:
            pairs = [{"id": town.batch}, {"id": 987_654_321}]
        else:
            pairs = [{"id": town.job}, {"id": town.ended}, {"id": 987_654_321}]
        answers = {(status, _nameless(text, values)) for values in pairs
                   for status, text in [asked(town.alice, each, **values)]}  # fmt: skip
        assert len(answers) == 1, f"{each.name}: {answers}"
        assert answers.pop()[0] == 404, each.name
        tried += 1
    assert tried >= 30
    assert [town.bob.job(town.job), town.bob.job(town.ended)] == before
    assert town.bob.get(f"/api/schedules/{town.schedule}") == schedule


def _nameless(text: str, values: dict[str, object]) -> str:
    for value in values.values():
        text = re.sub(rf"(?<![\w-]){re.escape(str(value))}(?![\w-])", "…", text)
    return text


def test_what_concerns_all_is_closed_to_one(town: Town) -> None:
    """Gates, workers, tokens, metrics and the machine: whatever is no tenant's own."""
    tried = 0
    for each in town.alice.document.operations:
        if each.path.startswith(("/api/lanes", "/api/upstreams", "/api/tools", "/api/types",
                                 "/api/tokens", "/api/system", "/metrics", "/api/queue/pause",
                                 "/api/queue/resume", "/api/queue/capacity", "/api/tasks/cleanup",
                                 "/api/work/",
                                 "/api/history")) and each.path != "/api/work/put":  # fmt: skip
            status, text = asked(town.alice, each)
            assert status == 403, f"{each.name}: {text}"
            assert MARK not in text
            tried += 1
    assert tried >= 45


def test_nothing_of_another_tenant_is_in_any_list(town: Town) -> None:
    """Every route that only reads and needs no number."""
    looked = []
    for each in town.alice.document.operations:
        if each.method != "GET" or "{id}" in each.path or each.path.endswith("/events"):
            continue
        status, text = asked(town.alice, each, name=town.schedule, subscription=MARK)
        assert status in (200, 403, 404) or each.path == LOGIN, each.name
        if "{name}" not in each.path:  # they repeat what they are asked
            assert MARK not in text, each.name
            looked.append(each.path)
    assert {"/api/jobs", "/api/requests", "/api/tasks", "/api/tasks/stats", "/api/batches"} <= set(
        looked
    )
    assert {"/api/schedules", "/api/trail", "/api/audit", "/api/queue/stats"} <= set(looked)
    for path in ("/api/trail", "/api/audit"):
        for row in town.alice.get(path, limit=1000)["items"]:
            assert row["tenant"] == "alice"


def test_nor_is_it_in_the_live_streams(town: Town) -> None:
    mine = town.alice.enqueue("of-alice")
    town.alice.post(f"/api/jobs/{mine}/cancel")
    for path, name in (("/api/events", "job"), ("/api/requests/events", "id")):
        with listening(town.alice, path, last=0) as stream:
            seen = []
            while not seen or seen[-1][name] != mine:
                event = stream.event()
                assert MARK not in str(event)
                seen.append(event["data"])
        for each in seen:
            town.alice.job(each[name])


def test_streams_that_lost_their_place_show_the_own_numbers_only(town: Town) -> None:
    def numbers() -> dict[str, Any]:
        with listening(town.alice, "/api/events", last=10**15) as stream:
            fresh = stream.event()
        assert fresh["event"] == "reset"
        assert MARK not in str(fresh)
        found: dict[str, Any] = fresh["data"]["snapshot"]["counts"]
        return found

    # They may be a moment old.
    eventually(lambda: numbers()["total"] == town.alice.get("/api/jobs")["total"])


@pytest.mark.parametrize("q", [
    "tenant:bob", "tenant:alice tenant:bob", 'tenant:"bob"', "TENANT:bob", 'tenant:""',
    "type:x tenant:bob status:open",
])  # fmt: skip
def test_a_search_does_not_lead_out(town: Town, q: str) -> None:
    for body in ({"params": {"q": q}}, {"params": {"tenant": "bob"}}):
        town.alice.problem(403, "GET", "/api/jobs", "tenant", **body)
    sent = {"action": "cancel", "q": q, "dry_run": False}
    town.alice.problem(403, "POST", "/api/jobs/bulk", "tenant", json=sent)
    found = town.alice.get("/api/jobs", tenant="bob", q="tenant:alice")
    assert {each["tenant"] for each in found["items"]} <= {"alice"}


def test_a_search_for_it_finds_nothing(town: Town) -> None:
    for q in (f"type:{town.type}", f"id:{town.job},{town.ended}", f"batch:{town.batch}",
              f"label:{MARK}={MARK}", f"schedule:{town.schedule}", f"upstream:{MARK}"):  # fmt: skip
        assert town.alice.get("/api/jobs", q=q)["total"] == 0, q
        assert town.bob.get("/api/jobs", q=q)["total"] > 0, q
        found = town.alice.post("/api/jobs/bulk", {"action": "cancel", "q": q, "dry_run": False})
        assert (found["matched"], found["possible"], found["done"]) == (0, 0, 0)
        assert found["sample"] == []
    assert town.bob.job(town.job)["status"] == "queued"


def test_bulk_actions_reach_the_own_jobs_only(town: Town) -> None:
    mine = town.alice.enqueue("of-alice")
    body = {"action": "cancel", "q": "status:open", "dry_run": False}
    assert town.alice.post("/api/jobs/bulk", body)["done"] >= 1
    assert town.alice.job(mine)["status"] == "cancelled"
    body = {"action": "cancel", "ids": [town.job], "dry_run": False}
    assert town.alice.post("/api/jobs/bulk", body)["matched"] == 0
    assert town.bob.job(town.job)["status"] == "queued"


# ---------------------------------------------------------------------- naming what is another's


def test_another_tenant_can_be_named_nowhere(town: Town) -> None:
    job = {"type": "x", "tenant": "bob"}
    for path, body in (
        ("/api/jobs", job), ("/api/work/put", {"jobs": [{"type": "x"}, job]}),
        ("/api/batches", {"tenant": "bob"}), ("/api/jobs", {"type": "x", "tenant": ""}),
        ("/api/schedules", {"name": new_name(), "every": "1d", "job": job}),
    ):  # fmt: skip
        town.alice.problem(403, "POST", path, "tenant", json=body)


@pytest.mark.parametrize("path", ["/api/jobs", "/api/work/put"])
def test_following_anothers_job_or_batch_says_as_much_as_following_none(
    town: Town, path: str
) -> None:
    for field, own, none in (("after", town.job, 987_654_321), ("after", town.ended, 987_654_321),
                             ("batch", town.batch, 987_654_321)):  # fmt: skip
        texts = set()
        for number in (own, none):
            job = {"type": "x", field: [number] if field == "after" else number}
            body = job if path == "/api/jobs" else {"jobs": [{"type": "x"}, job]}
            problem = town.alice.problem(422, "POST", path, "bad-job", json=body)
            texts.add(re.sub(r"\d+", "…", problem["detail"]))
        assert len(texts) == 1
    assert town.bob.get(f"/api/batches/{town.batch}")["total"] == 1


@pytest.mark.parametrize("conflict", ["join", "replace", "reject"])
def test_unique_keys_of_tenants_never_meet(town: Town, conflict: str) -> None:
    before = town.bob.job(town.job)
    unique = {"key": town.unique, "on_conflict": conflict}
    mine = town.alice.post("/api/jobs", {"type": town.type, "unique": unique, "args": {"a": 1},
                                         "priority": 1}, 202)  # fmt: skip
    assert mine["joined"] is False
    assert mine["tenant"] == "alice"
    assert town.bob.job(town.job) == before
    assert town.bob.get(f"/api/jobs/{town.job}/payload")["value"] == {"what": MARK}
    both = town.bob.post("/api/jobs", {"type": town.type, "unique": {"key": town.unique}}, 202)
    assert (both["joined"], both["id"]) == (True, town.job)


def test_requests_of_tenants_never_join(town: Town) -> None:
    of = {"subscription_id": new_name(), "url": "http://example.org/x"}
    first = town.bob.request("scan", **of)
    second = town.alice.request("scan", **of)
    assert second["joined"] is False
    assert second["id"] != first["id"]
    assert town.alice.request("scan", **of)["id"] == second["id"]


def test_no_names_make_the_unique_key_of_another_tenant() -> None:
    """Whatever tenants, types and keys are called."""
    words = ["a", "b", "a:b", ":", "", "1:a", "tenant 1:a", "tenant 1:a:a", "b:a", "1", "a:1:"]
    keys: dict[str, str] = {}
    for tenant, type, key in product(words, words, words):
        if not type:
            continue
        body = JobBody.model_validate({"type": type, "unique": {"key": key}})
        job = new_job(body, tenant, 0.0, 1_000, apart=True)
        assert job.unique is not None
        assert keys.setdefault(job.unique.key, tenant) == tenant
        shared = new_job(body, tenant, 0.0, 1_000)
        assert shared.unique is not None
        assert shared.unique.key not in keys or type.startswith("tenant ")


def test_a_name_that_another_tenants_schedule_has_is_taken(town: Town) -> None:
    before = town.bob.get(f"/api/schedules/{town.schedule}")
    body = {"name": town.schedule, "every": "1m", "job": {"type": "of-alice"}}
    problem = town.alice.problem(409, "POST", "/api/schedules", "duplicate", json=body)
    assert "bob" not in problem["detail"].replace(town.schedule, "")
    assert town.bob.get(f"/api/schedules/{town.schedule}") == before


def test_the_tenant_without_a_name_is_no_exception(guarded_everywhere: Guarded, town: Town) -> None:
    """Neither does it see the others, nor do they see it."""
    with guarded_everywhere.as_("nobody") as nobody:
        mine = nobody.enqueue(new_name())
        assert nobody.job(mine)["tenant"] == ""
        nobody.problem(404, "GET", f"/api/jobs/{town.job}", "unknown-job")
        for path in ("/api/jobs", "/api/trail", "/api/audit", "/api/batches", "/api/queue/stats",
                     "/api/tasks/stats", "/api/schedules"):  # fmt: skip
            assert MARK not in nobody.send("GET", path).text, path
        nobody.problem(403, "GET", "/api/lanes")
        town.alice.problem(404, "GET", f"/api/jobs/{mine}", "unknown-job")


def test_whoever_has_no_tenant_sees_all(town: Town) -> None:
    """Or the tests above would show nothing."""
    assert town.operator.job(town.job)["tenant"] == "bob"
    assert MARK in town.operator.send("GET", "/api/trail", params={"limit": 1000}).text
    assert MARK in town.operator.send("GET", "/api/schedules").text
