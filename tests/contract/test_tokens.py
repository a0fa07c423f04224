"""Tokens, what each may do, and what it sees of others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest

from tests.contract.document import Operation, document_of
from tests.contract.kit import Api, new_name, problem_in
from tests.servers import Server, server_on

OPEN_TO_ALL = {"/healthz", "/readyz"}
SECRET_ADDRESSES = "/podcasts/"  # the address is the key: see test_podcasts.py
ACCOUNTS = "/api/archive/accounts"
CONTROL = ("/api/v0/health", "/api/v0/refresh", "/api/v0/flush")  # with a token of their own
CALLING = ("POST /api/channels/calls", "GET /api/channels/callback-secret")
ONLINE = ("/v1/chat/completions", "/v1/embeddings", "/v1/models", "/v1/models/{model}")
READING = (
    "/api/backend/articles",
    "/api/backend/feeds", "/api/backend/folders", "/api/backend/queue/schedule-",
    "/api/backend/opml", "/api/backend/rss/",
    "/api/subscriptions", "/api/archive/items", "/api/archive/failures",
    "/api/archive/reconcile",
)  # fmt: skip
READER_APPS = "/api/greader/"
LOGIN = "/api/greader/accounts/ClientLogin"
RULES = "/api/backend/rules"
LOOKING = (f"{RULES}/try", "/api/greader/reader/api/0/stream/items/contents")
SCOPES = ("read", "submit", "operate")


@dataclass
class Guarded:
    """A server that asks everybody for a token, and one token of each kind."""

    server: Server
    tokens: dict[str, str]

    def api(self, name: str) -> Api:
        return Api(self.server.url, self.tokens[name])


def token_for(admin: Api, name: str, *scopes: str, tenant: str | None = None) -> str:
    said = {"name": name, "scopes": list(scopes), "tenant": tenant}
    token: str = admin.post("/api/tokens", said, 201)["token"]
    return token


@pytest.fixture(scope="module", params=("sqlite", "postgres"))
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    with server_on(request.param) as server:
        with Api(server.url) as opened:
            tokens = {scope: token_for(opened, scope, scope) for scope in (*SCOPES, "admin")}
            for tenant in ("acme", "zeta"):
                tokens[tenant] = token_for(opened, tenant, *SCOPES, tenant=tenant)
        server.stop()
        server.environment["HEADWAY_AUTH"] = "required"
        server.start()
        yield Guarded(server, tokens)


def test_every_route_needs_a_token_except_for_two(guarded: Guarded) -> None:
    with httpx2.Client(base_url=guarded.server.url) as http:
        for operation in document_of(guarded.server.url).operations:
            if operation.path in CONTROL or operation.path.startswith(SECRET_ADDRESSES):
                continue  # it does not even say that it is there
            answer = http.request(operation.method, operation.at(), json={})
            if operation.path in OPEN_TO_ALL:
                assert answer.status_code == 200, operation.name
                continue
            assert answer.status_code == 401, operation.name
            assert said_in(answer, "no-token", "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "wrong", ["Bearer", "Bearer hw_1_2", "Basic YTpi", "Bearer x.y.z", "hw_1_2", "ü"]
)
def test_what_is_no_token_is_401(guarded: Guarded, wrong: str) -> None:
    headers = {b"Authorization": wrong.encode()}
    answer = httpx2.get(f"{guarded.server.url}/api/info", headers=headers)
    assert answer.status_code == 401
    problem_in(answer, "no-token")


def said_in(answer: httpx2.Response, kind: str, code: str) -> str:
    """What it is refused with: below /v1/ in OpenAI's shape, and for reader apps as plain text."""
    if answer.request.url.path.startswith(READER_APPS):
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        return answer.text
    if not answer.request.url.path.startswith("/v1/"):
        return str(problem_in(answer, kind)["detail"])
    error = answer.json()["error"]
    assert error["code"] == code
    return str(error["message"])


def needed_for(operation: Operation) -> str:
    """The scope, by what a route does."""
    if operation.path.startswith(("/api/tokens", "/api/keys")):
        return "admin"
    if operation.path in ONLINE or operation.name in CALLING:
        return "submit"
    if operation.path.startswith(ACCOUNTS):
        return "operate"
    if operation.method == "GET" or operation.path in LOOKING:
        return "read"
    enqueues = ("/api/jobs", "/api/requests/enqueue", "/api/work/put", "/api/batches")
    holds = operation.path.startswith(
        (
            "/api/slots",
            "/api/v0/fairqueue",
            "/v1/files",
            "/v1/batches",
            RULES,
            READER_APPS,
            *READING,
        )
    )
    return "submit" if operation.path in enqueues or holds else "operate"


@pytest.mark.parametrize("scope", [*SCOPES, "admin"])
def test_a_token_does_what_its_scope_says_and_nothing_else(guarded: Guarded, scope: str) -> None:
    with guarded.api(scope) as api:
        for operation in api.document.operations:
            if operation.path in OPEN_TO_ALL or operation.path.endswith("/events"):
                continue
            if operation.path in (*CONTROL, LOGIN) or operation.path.startswith(SECRET_ADDRESSES):
                continue
            # Nothing is there, and no body is right: whoever may, gets another problem than 403.
            answer = api.send(operation.method, operation.at(id="none", name="none"), json=5)
            ends_slots = operation.name == "DELETE /api/slots/{id}" and scope == "operate"
            allowed = scope in (needed_for(operation), "admin") or ends_slots
            if not allowed:
                assert answer.status_code == 403, operation.name
                assert scope != needed_for(operation)
                assert needed_for(operation) in said_in(answer, "scope", "scope")
            else:
                assert answer.status_code not in (401, 403), operation.name


@pytest.mark.parametrize("path", ["/api/events", "/api/requests/events"])
def test_streams_need_read(guarded: Guarded, path: str) -> None:
    with guarded.api("submit") as api:
        api.problem(403, "GET", path, "scope")
    with guarded.api("read") as api, api.http.stream("GET", path) as answer:
        assert answer.status_code == 200


def test_a_tenant_sees_and_does_only_its_own(guarded: Guarded) -> None:
    kind = new_name("kind")
    with guarded.api("acme") as acme, guarded.api("zeta") as zeta, guarded.api("admin") as admin:
        batch = acme.post("/api/batches", {"label": "x"}, 201)["id"]
        id = acme.enqueue(kind, batch=batch)
        assert acme.job(id)["tenant"] == "acme"
        assert zeta.get("/api/jobs", type=kind)["total"] == 0
        assert acme.get("/api/jobs", type=kind)["total"] == 1
        assert admin.get("/api/jobs", type=kind)["total"] == 1
        for noun in ("jobs", "tasks", "requests"):
            zeta.problem(404, "GET", f"/api/{noun}/{id}", "unknown-job")
            zeta.problem(404, "POST", f"/api/{noun}/{id}/cancel", "unknown-job")
        for part in ("explain", "events", "logs", "payload", "checkpoint", "result"):
            zeta.problem(404, "GET", f"/api/jobs/{id}/{part}", "unknown-job")
        zeta.problem(404, "GET", f"/api/batches/{batch}", "unknown-batch")
        zeta.problem(422, "POST", "/api/jobs", "bad-job", json={"type": kind, "after": [id]})
        zeta.problem(422, "POST", "/api/jobs", "bad-job", json={"type": kind, "batch": batch})
        assert zeta.get("/api/trail")["items"] == []
        assert zeta.get("/api/queue/stats")["counts"]["total"] == 0
        assert zeta.get("/api/tasks/stats")["items"] == []
        said = {"action": "cancel", "q": "status:open", "dry_run": False}
        assert zeta.post("/api/jobs/bulk", said)["matched"] == 0
        acme.problem(403, "POST", "/api/jobs", "tenant", json={"type": kind, "tenant": "zeta"})
        acme.problem(403, "GET", "/api/jobs", "tenant", params={"tenant": "zeta"})
        acme.problem(403, "GET", "/api/jobs", "tenant", params={"q": "tenant:zeta"})
        assert acme.post(f"/api/jobs/{id}/cancel")["status"] == "cancelled"
        (made,) = (e for e in admin.get("/api/audit")["items"] if e["job"] == id)
        assert made["who"] == "token:acme from 127.0.0.1"


def test_what_concerns_all_tenants_is_not_for_one(guarded: Guarded) -> None:
    with guarded.api("acme") as acme:
        for method, path, said in (
            ("GET", "/api/lanes", {}),
            ("GET", "/api/upstreams/x", {}),
            ("GET", "/api/learned", {}),
            ("GET", "/api/history", {}),
            ("GET", "/api/history", {"params": {"kind": "upstream", "name": "x"}}),
            ("GET", "/api/channels", {}),
            ("GET", "/api/channels/x/capacity", {}),
            ("PATCH", "/api/channels/x", {"json": {"rpm": 1}}),
            ("PUT", "/api/budgets/acme", {"json": {"period": "day", "amount": 1}}),
            ("POST", "/api/upstreams/x/learned/pin", {"json": {"rpm": 1}}),
            ("POST", "/api/lanes/x/pause", {}),
            ("POST", "/api/queue/pause", {}),
            ("POST", "/api/queue/capacity", {"params": {"no_cookie": 1}}),
            ("POST", "/api/tasks/cleanup", {}),
            ("PUT", "/api/retention", {"json": {"failed_days": 1}}),
            ("DELETE", "/api/retention", {}),
            ("POST", "/api/work/take", {"json": {"types": ["x"]}}),
            ("GET", "/metrics", {}),
            ("GET", "/api/archive/accounts", {}),
            ("PATCH", "/api/archive/accounts/1", {"json": {"enabled": False}}),
            ("GET", "/api/system/resources", {}),
            ("POST", "/api/simulate", {"json": {"kind": "lane", "name": "x", "settings": {}}}),
        ):
            acme.problem(403, method, path, "tenant", **said)


def test_a_schedule_of_another_tenant_is_not_there_and_its_name_is_taken(guarded: Guarded) -> None:
    said = {"name": new_name("schedule"), "every": "1h", "job": {"type": "x"}}
    with guarded.api("acme") as acme, guarded.api("zeta") as zeta:
        assert acme.post("/api/schedules", said, 201)["tenant"] == "acme"
        zeta.problem(404, "GET", f"/api/schedules/{said['name']}", "unknown-schedule")
        zeta.problem(409, "POST", "/api/schedules", "duplicate", json=said)
        assert zeta.get("/api/schedules")["items"] == []
        assert acme.send("DELETE", f"/api/schedules/{said['name']}").status_code == 204


def test_a_token_is_made_shown_once_and_revoked(guarded: Guarded) -> None:
    name = new_name("robot")
    with guarded.api("admin") as admin:
        made = admin.post(
            "/api/tokens",
            {"name": name, "scopes": ["read"], "tenant": "acme", "expires_in_s": 3600},
            201,
        )
        assert made["token"].startswith("hw_")
        assert (made["name"], made["scopes"], made["tenant"]) == (name, ["read"], "acme")
        assert made["expires_at"] > made["created_at"]
        listed = admin.get("/api/tokens")
        (row,) = (each for each in listed["items"] if each["name"] == name)
        assert "token" not in row
        secret = made["token"].split("_", 2)[2]
        assert secret not in str(listed)
        with Api(guarded.server.url, made["token"]) as robot:
            info = robot.get("/api/info")
            assert (info["who"], info["scopes"], info["tenant"]) == (
                f"token:{name}", ["read"], "acme"
            )  # fmt: skip
            assert admin.send("DELETE", f"/api/tokens/{made['id']}").status_code == 204
            robot.problem(401, "GET", "/api/info", "no-token")
        admin.problem(404, "DELETE", f"/api/tokens/{made['id']}", "unknown-token")
        admin.problem(404, "DELETE", "/api/tokens/none", "unknown-token")
        done = [each["event"] for each in admin.get("/api/audit")["items"]
                if each["subject"] == f"token:{name}"]  # fmt: skip
        assert done == ["token_revoked", "token_made"]
    assert secret not in guarded.server.printed()


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": ["read"]},
        {"name": "", "scopes": ["read"]},
        {"name": "a\nb", "scopes": ["read"]},
        {"name": "a", "scopes": []},
        {"name": "a", "scopes": ["root"]},
        {"name": "a", "scopes": ["read"], "expires_in_s": 0},
        {"name": "a", "scopes": ["read"], "tenant": 5},
    ],
)
def test_what_is_no_token_is_refused(guarded: Guarded, wrong: object) -> None:
    with guarded.api("admin") as admin:
        admin.problem(422, "POST", "/api/tokens", json=wrong)


def test_a_browser_logs_in_with_a_token_and_gets_a_cookie(guarded: Guarded) -> None:
    url = guarded.server.url
    with httpx2.Client(base_url=url) as http:
        first = http.get("/")
        assert (first.status_code, first.headers["location"]) == (303, "/login")
        assert http.get("/login").status_code == 200
        refused = http.post("/login", data={"token": "hw_no_no"})
        assert (refused.status_code, refused.headers["location"]) == (303, "/login?failed=1")
        assert "set-cookie" not in refused.headers
        entered = http.post("/login", data={"token": guarded.tokens["read"]})
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert guarded.tokens["read"] not in cookie
        assert http.get("/").status_code == 200
        assert http.get("/api/info").json()["who"] == "token:read"
        foreign = http.get("/api/info", headers={"Origin": "https://evil.example"})
        assert foreign.status_code == 403
        problem_in(foreign, "wrong-origin")
        assert http.post("/logout").status_code == 303
        assert http.get("/api/info").status_code == 401
        assert http.post("/login", content=b"x" * 20_000).status_code == 413
