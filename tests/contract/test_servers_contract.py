"""The servers that share a store."""

from __future__ import annotations

from tests.contract.kit import Api
from tests.hands.kit import eventually


def test_the_servers_are_listed_and_one_of_them_leads(api: Api) -> None:
    eventually(lambda: api.get("/api/servers")["items"] != [])
    answer = api.get("/api/servers")
    leaders = [each for each in answer["items"] if each["role"] == "leads"]
    assert len(leaders) == 1
    assert leaders[0]["url"].startswith("http://127.0.0.1:")
    assert leaders[0]["pid"] > 0
    store = api.get("/api/info")["store"]
    assert (answer["term"] is None) == (store == "sqlite")


def test_an_answer_says_which_servers_there_are_only_to_who_sees_everything(api: Api) -> None:
    made = api.post("/api/tokens", {"name": "t", "scopes": ["read"], "tenant": "acme"}, 201)
    with Api(api.url, made["token"]) as bound:
        bound.problem(403, "GET", "/api/servers", "tenant")
