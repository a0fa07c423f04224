"""What calls have cost, and what a tenant may spend, over HTTP."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest

from headway.testing.llm_upstream import LlmUpstream
from tests.contract.calls_kit import answered, ask, channel, provider
from tests.contract.kit import JSON, Api, new_name
from tests.security.kit import guarded_on

TODAY = datetime.now(UTC).date()


@pytest.fixture(scope="module")
def upstream() -> Iterator[LlmUpstream]:
    with provider() as started:
        yield started


@pytest.fixture
def tenant() -> str:
    return new_name("tenant")


def spend(api: Api, model: str, tenant: str, calls: int = 1) -> None:
    for id in [ask(api, model, tenant=tenant) for _ in range(calls)]:
        answered(api, id)


def cost_of(bill: JSON) -> Decimal:
    """By hand."""
    paid = (
        bill["input_tokens"] * Decimal(str(bill["input_per_1k"]))
        + bill["output_tokens"] * Decimal(str(bill["output_per_1k"]))
    ) / 1000
    return paid * (1 - Decimal(str(bill["discount"])))


# ---------------------------------------------------------------------- what was spent


def test_costs_are_the_sum_of_the_bills(api: Api, upstream: LlmUpstream, tenant: str) -> None:
    code, model = channel(api, upstream, batch_discount=0.5)
    spend(api, model, tenant, 3)
    page = api.get("/api/costs/bills", tenant=tenant, size=2)
    assert (page["total"], page["count"], page["page"]) == (3, 2, 1)
    bills = page["items"] + api.get("/api/costs/bills", tenant=tenant, size=2, page=2)["items"]
    for bill in bills:
        assert (bill["channel"], bill["model"], bill["kind"]) == (code, model, "queued")
        assert (bill["discount"], bill["estimated"]) == (0.5, False)
        assert Decimal(bill["cost"]) == cost_of(bill) > 0
    (row,) = api.get("/api/costs", tenant=tenant, group="channel")["items"]
    assert (row["channel"], row["calls"], row["currency"]) == (code, 3, "USD")
    assert (row["tenant"], row["day"]) == (None, None)
    assert row["input_tokens"] == sum(bill["input_tokens"] for bill in bills)
    assert Decimal(row["cost"]) == sum(map(cost_of, bills))


def test_groups_combine_and_currencies_are_summed_up_by_themselves(
    api: Api, upstream: LlmUpstream, tenant: str
) -> None:
    _, first = channel(api, upstream)
    _, second = channel(api, upstream, price={"input_per_1k": 1, "currency": "EUR"})
    spend(api, first, tenant, 2)
    spend(api, second, tenant)
    found = api.get("/api/costs", tenant=tenant, group="day, model,kind")
    assert {(row["model"], row["calls"], row["currency"]) for row in found["items"]} == {
        (first, 2, "USD"), (second, 1, "EUR")}  # fmt: skip
    for row in found["items"]:
        assert row["day"] in {str(TODAY), str(datetime.now(UTC).date())}
        assert row["kind"] == "queued"
    assert [(each["currency"], each["calls"]) for each in found["totals"]] == [
        ("EUR", 1), ("USD", 2)]  # fmt: skip
    assert found["more"] is False


def test_spans_are_dates_or_times(api: Api, upstream: LlmUpstream, tenant: str) -> None:
    _, model = channel(api, upstream)
    spend(api, model, tenant)

    def calls(**span: Any) -> int:
        found = api.get("/api/costs", tenant=tenant, **span)["totals"]
        return sum(int(each["calls"]) for each in found)

    yesterday, tomorrow = str(TODAY - timedelta(days=1)), str(TODAY + timedelta(days=1))
    assert calls(**{"from": yesterday, "to": tomorrow}) == 1  # a date is included
    assert calls(**{"from": str(TODAY)}) == 1
    assert calls(**{"from": "2020-01-01", "to": yesterday}) == 0
    assert calls(**{"from": f"{tomorrow}T23:00:00Z"}) == 0
    assert calls(**{"to": f"{tomorrow}T23:59:59+01:00"}) == 1
    for wrong in ({"from": "yesterday"}, {"to": "2026-13-01"}, {"group": "colour"}, {"group": ","}):
        api.problem(422, "GET", "/api/costs", "bad-search", params=wrong)
    for path in ("/api/costs/bills", "/api/costs.csv"):
        api.problem(422, "GET", path, "bad-search", params={"from": "x"})


def test_the_export_has_every_row_and_runs_no_formula(api: Api, upstream: LlmUpstream) -> None:
    tenant = f"=cmd|' /C calc'!A0 {new_name()}"
    _, model = channel(api, upstream)
    spend(api, model, tenant, 2)
    answer = api.send("GET", "/api/costs.csv", params={"tenant": tenant})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(StringIO(answer.text)))
    assert [row["tenant"] for row in rows] == [f"'{tenant}"] * 2
    bills = api.get("/api/costs/bills", tenant=tenant)["items"]
    assert [row["id"] for row in rows] == [bill["id"] for bill in reversed(bills)]
    assert set(rows[0]) == set(bills[0])
    assert [row["cost"] for row in rows] == [bill["cost"] for bill in bills]


# ---------------------------------------------------------------------- what may be spent


def test_a_budget_holds_a_tenant_and_says_so(api: Api, upstream: LlmUpstream, tenant: str) -> None:
    code, model = channel(api, upstream)
    path = f"/api/budgets/{tenant}"
    (budget,) = api.ok("PUT", path, json={"period": "month", "amount": "0.000001"})["items"]
    assert (budget["spent"], budget["used_up"], budget["left"]) == ("0.00", False, "0.000001")
    assert budget["begins_at"] < budget["updated_at"] < budget["begins_anew_at"]
    spend(api, model, tenant)
    (budget,) = api.get(path)["items"]
    assert (budget["used_up"], budget["left"]) == (True, "0.00")
    assert Decimal(budget["spent"]) > 0
    assert budget in api.get("/api/budgets")["items"]
    held = ask(api, model, tenant=tenant)
    month = datetime.now(UTC).strftime("%B %Y")
    why = f"the budget of 0.000001 USD for {month} is used up"
    assert why in api.waiting(held)["wait_reason"]
    assert why in api.get(f"/api/jobs/{held}/explain")["text"]
    assert why in api.get(f"/api/channels/{code}/capacity")["idle_because"]
    online = api.http.post("/v1/chat/completions", json={
        "model": model, "messages": [{"role": "user", "content": "x"}]})  # fmt: skip
    assert online.status_code == 200  # of somebody else
    api.ok("PUT", path, json={"period": "month", "amount": 1})
    answered(api, held)
    api.ok("DELETE", path, 204)
    assert api.get(path)["items"] == []
    api.problem(404, "DELETE", path, "unknown-budget")


def test_a_tenant_has_several_budgets(api: Api, tenant: str) -> None:
    path = f"/api/budgets/{tenant}"
    for said in ({"period": "day", "amount": 5}, {"period": "total", "amount": 7.25},
                 {"period": "day", "amount": 6, "currency": "EUR"}):  # fmt: skip
        found = api.ok("PUT", path, json=said)["items"]
    assert {(e["period"], e["currency"], e["amount"]) for e in found} == {
        ("day", "USD", "5.00"), ("day", "EUR", "6.00"), ("total", "USD", "7.25")}  # fmt: skip
    api.ok("DELETE", path, 204, params={"period": "day", "currency": "EUR"})
    api.ok("DELETE", path, 204, params={"period": "total"})
    (left,) = api.get(path)["items"]
    assert (left["period"], left["currency"]) == ("day", "USD")
    api.ok("DELETE", path, 204)


@pytest.mark.parametrize(
    "wrong",
    [
        {"period": "week", "amount": 5}, {"amount": 5}, {"period": "day"},
        {"period": "day", "amount": -1}, {"period": "day", "amount": "5,0"},
        {"period": "day", "amount": 0.0000000001}, {"period": "day", "amount": True},
        {"period": "day", "amount": 5, "currency": "usd"}, {"period": "day", "amount": 5, "x": 1},
    ],
)  # fmt: skip
def test_what_is_no_budget_is_refused(api: Api, tenant: str, wrong: JSON) -> None:
    api.problem(422, "PUT", f"/api/budgets/{tenant}", json=wrong)
    assert api.get(f"/api/budgets/{tenant}")["items"] == []


# ---------------------------------------------------------------------- who sees what


def test_a_tenant_sees_its_own_only_and_its_online_calls_are_refused(
    upstream: LlmUpstream,
) -> None:
    with (
        guarded_on("sqlite") as guarded, guarded.as_("operator") as operator,
        guarded.as_("alice") as alice, guarded.as_("bob") as bob,
    ):  # fmt: skip
        _, model = channel(operator, upstream)
        for api in (alice, bob):
            answered(api, ask(api, model))
        for api, name in ((alice, "alice"), (bob, "bob")):
            assert [row["tenant"] for row in api.get("/api/costs")["items"]] == [name]
            assert {row["tenant"] for row in api.get("/api/costs/bills")["items"]} == {name}
            assert ",alice," in operator.send("GET", "/api/costs.csv").text
            assert len(api.send("GET", "/api/costs.csv").text.splitlines()) == 2
        assert len(operator.get("/api/costs")["items"]) == 2
        operator.ok("PUT", "/api/budgets/alice", json={"period": "total", "amount": 0})
        assert alice.get("/api/budgets")["items"] == alice.get("/api/budgets/alice")["items"] != []
        assert bob.get("/api/budgets")["items"] == []
        for path in (
            "/api/costs?tenant=alice",
            "/api/costs.csv?tenant=alice",
            "/api/budgets/alice",
        ):
            bob.problem(403, "GET", path, "tenant")
        raised = {"period": "total", "amount": 100}
        alice.problem(403, "PUT", "/api/budgets/alice", "tenant", json=raised)
        alice.problem(403, "DELETE", "/api/budgets/alice", "tenant")
        secret = alice.get("/api/channels/callback-secret")
        assert secret["tenant"] == "alice"
        bob.problem(403, "GET", "/api/channels/callback-secret?tenant=alice", "tenant")
        id = ask(alice, model)
        bob.problem(404, "GET", f"/api/channels/calls/{id}", "unknown-call")
        bob.problem(404, "POST", f"/api/channels/calls/{id}/cancel", "unknown-call")
        said = {"model": model, "messages": [{"role": "user", "content": "x"}]}
        refused = alice.http.post("/v1/chat/completions", json=said)
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "insufficient_quota"
        assert "the budget of 0.00 USD in total is used up" in refused.text
        assert bob.http.post("/v1/chat/completions", json=said).status_code == 200
