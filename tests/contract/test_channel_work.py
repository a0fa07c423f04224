"""Workers of one's own for a model: they stand at its channels like all others, and teach them."""

from __future__ import annotations

from tests.contract.kit import Api, new_name, worker_of
from tests.hands.kit import eventually

URL = "https://llm.example.com/v1"
HEADERS = {
    "x-ratelimit-limit-requests": "120",
    "x-ratelimit-remaining-requests": "119",
    "x-ratelimit-reset-requests": "500ms",
}


def test_a_worker_takes_the_work_of_a_model_and_hears_which_channel(api: Api, kind: str) -> None:
    code, model = new_name("channel"), new_name("model")
    api.post("/api/channels", {"code": code, "model": model, "base_url": URL}, 201)
    id = api.enqueue(kind, upstream=f"model:{model}", traffic="leftover")
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        assert (work["id"], work["upstream"]) == (id, code)
        worker.complete(work, status_code=200, body={"said": "hello"}, headers=HEADERS)
    eventually(lambda: api.get(f"/api/channels/{code}/capacity")["source"] == "headers")
    assert api.get(f"/api/channels/{code}/capacity")["limit_rpm"] == 120
    page = api.send("GET", "/metrics").text
    assert f'headway_learned_rate{{kind="upstream",name="{code}",unit="rpm"}} 120.0' in page


def test_a_429_puts_it_back_and_holds_the_channel(api: Api, kind: str) -> None:
    code, model = new_name("channel"), new_name("model")
    api.post("/api/channels", {"code": code, "model": model, "base_url": URL}, 201)
    id = api.enqueue(kind, upstream=f"model:{model}")
    with worker_of(api, kind) as worker:
        work = worker.take_one()
        worker.complete(work, status_code=429, retry_after_s=30)
        assert api.waiting(id)["status"] == "queued"
        assert api.get(f"/api/channels/{code}/capacity")["samples"]
