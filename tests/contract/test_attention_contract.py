"""What needs attention, over HTTP: what it is made of, and who sees what."""

from __future__ import annotations

from tests.contract.kit import JSON, Api, new_name, worker_of
from tests.hands.kit import eventually
from tests.servers import Server


def about(api: Api, name: str) -> JSON | None:
    items = api.get("/api/attention")["items"]
    return next((each for each in items if each["subject"]["name"] == name), None)


def test_an_upstream_that_bans_us_is_told_until_it_is_open(api: Api, kind: str) -> None:
    host = f"{new_name('host')}.example"
    api.enqueue(kind, upstream=host)
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=412)
    item: JSON = eventually(lambda: about(api, host))
    assert (item["kind"], item["level"], item["subject"]["kind"]) == (
        "upstream_closed", "warn", "upstream"
    )  # fmt: skip
    assert (item["values"]["cause"], item["values"]["status"]) == ("ban", 412)
    assert item["text"].startswith(f"{host} is closed until 20")
    assert item["since"] < item["until"]
    api.post(f"/api/upstreams/{host}/open")
    eventually(lambda: about(api, host) is None)


def test_a_tenant_sees_its_own_and_nothing_else(api: Api, server: Server, kind: str) -> None:
    host = f"{new_name('host')}.example"
    api.post(f"/api/upstreams/{host}/close", {"for_s": 900, "why": "not for tenants"})
    api.enqueue(kind, tenant="acme-attention")
    with worker_of(api, kind) as worker:
        worker.complete(worker.take_one(), status_code=404)
    seen = {}
    for tenant in ("acme-attention", "zeta-attention"):
        said = {"name": new_name(), "scopes": ["read"], "tenant": tenant}
        with Api(server.url, api.post("/api/tokens", said, 201)["token"]) as bound:
            seen[tenant] = (about(bound, kind), about(bound, host))
    mine, not_mine = seen["acme-attention"]
    assert mine is not None
    assert (mine["kind"], mine["values"]["count"], not_mine) == ("jobs_failed", 1, None)
    assert seen["zeta-attention"] == (None, None)
    assert eventually(lambda: about(api, host))
    api.post(f"/api/upstreams/{host}/open")
